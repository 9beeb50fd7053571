// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/error.h"
#include "config/node.h"

namespace sluice::config {

inline constexpr std::size_t kMaxNameBytes = 31;

/// A word and what it stands for.
template <class E>
struct Choice {
    std::string_view word;
    E value;
};

/// Collects errors and reads single values. A value that is wrong is reported and left as it was;
/// each function returns true when it has set `out`.
class Reader {
public:
    explicit Reader(std::string_view file) : file_(file) {}

    template <class... Args>
    void error(Position at, fmt::format_string<Args...> format, Args&&... args) {
        report(at, fmt::format(format, std::forward<Args>(args)...));
    }
    /// As it is, without the key in front. False when there are enough errors.
    bool report_plain(Position at, std::string what);

    bool boolean(const Node& node, bool& out);
    template <std::unsigned_integral T>
    bool integer(const Node& node,
                 T& out,
                 std::uint64_t min = 0,
                 std::uint64_t max = std::numeric_limits<T>::max()) {
        const auto value = number(node, min, max);
        if (value) {
            out = static_cast<T>(*value);
        }
        return value.has_value();
    }
    /// Any scalar that is not empty.
    bool text(const Node& node, std::string& out);
    /// A netdev's, vrf's, netns's or instance's name.
    bool name(const Node& node, std::string& out);

    template <class E, std::size_t N>
    bool choice(const Node& node, E& out, const std::array<Choice<E>, N>& choices) {
        std::string word;
        if (!text(node, word)) {
            return false;
        }
        std::vector<std::string_view> words;
        for (const auto& candidate : choices) {
            if (candidate.word == word) {
                out = candidate.value;
                return true;
            }
            words.push_back(candidate.word);
        }
        unknown_word(node.at, word, words);
        return false;
    }

    /// A type of net with parse(); `example` shows what would be right.
    template <class T>
    bool parsed(const Node& node, T& out, std::string_view example) {
        std::string spelling;
        if (!text(node, spelling)) {
            return false;
        }
        auto value = T::parse(spelling);
        if (!value) {
            error(node.at, "'{}': {}; write it like {}", spelling, value.error(), example);
            return false;
        }
        out = *value;
        return true;
    }

    /// The items of a list; none of an empty value. Reports anything else.
    std::span<const Node> list(const Node& node);
    /// The keys and values, alternating.
    std::span<const Node> map(const Node& node);

    /// Refuses a key that not_built.cc lists.
    void refuse_not_built(std::string_view map, const Node& key, const Node& value);
    void unknown_key(const Node& key, std::span<const std::string_view> known);
    /// `word` is none of `words`; says which one may have been meant.
    void unknown_word(Position at, std::string_view word, std::span<const std::string_view> words);
    void missing_key(Position at, std::string_view key);

    /// The key being read stands in front of each error.
    std::string_view swap_key(std::string_view key) { return std::exchange(key_, key); }

    /// Of errors in what is written; a key that is not built yet is not one.
    std::size_t error_count() const { return error_count_; }
    bool full() const { return errors_.size() > kMaxErrors; }
    void stopped_early() { stopped_early_ = true; }
    /// An error in a port or vlan makes what refers to it look wrong too.
    bool netdevs_complete = true;

    // What resolve_routes() has to look at.
    std::map<std::pair<const Netns*, std::string>, Position> named_vrfs;  // where first named
    bool open_families = false;  // there are default routes whose next hop tells their family

    std::vector<ConfigError> take_errors();  // sorted

private:
    void report(Position at, std::string what);
    std::optional<std::uint64_t> number(const Node& node, std::uint64_t min, std::uint64_t max);

    std::string file_;
    std::string_view key_;
    std::vector<ConfigError> errors_;
    std::size_t error_count_ = 0;
    bool stopped_early_ = false;
};

/// One key of a mapping that is read into a T. Adding a key to the language is adding one of these
/// (and one property to conf/sluice.schema.json).
template <class T>
struct Field {
    std::string_view key;
    void (*read)(Reader&, const Node& value, T& out);
    bool required = false;
};

inline constexpr bool kRequired = true;

template <class T, std::size_t N, std::size_t M>
constexpr std::array<Field<T>, N + M> concat(const std::array<Field<T>, N>& a,
                                             const std::array<Field<T>, M>& b) {
    std::array<Field<T>, N + M> all{};
    std::copy(a.begin(), a.end(), all.begin());
    std::copy(b.begin(), b.end(), all.begin() + N);
    return all;
}

/// Reads a mapping by its table of keys. `name` is the mapping's in not_built.cc and in the schema.
template <class T, std::size_t N>
void read_map(Reader& r,
              const Node& node,
              std::string_view name,
              const std::array<Field<T>, N>& fields,
              T& out) {
    const auto items = r.map(node);
    std::array<bool, N> seen{};
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        const Node& key = items[i];
        const auto field = std::find_if(
            fields.begin(), fields.end(), [&](const auto& f) { return f.key == key.text; });
        if (field == fields.end()) {
            std::array<std::string_view, N> known{};
            std::transform(
                fields.begin(), fields.end(), known.begin(), [](const auto& f) { return f.key; });
            r.unknown_key(key, known);
            continue;
        }
        seen[static_cast<std::size_t>(field - fields.begin())] = true;
        const auto outer = r.swap_key(field->key);
        field->read(r, items[i + 1], out);
        r.swap_key(outer);
        r.refuse_not_built(name, key, items[i + 1]);
    }
    for (std::size_t i = 0; i < N; ++i) {
        if (fields[i].required && !seen[i] && node.kind != Node::Kind::kBad) {
            r.missing_key(node.at, fields[i].key);
        }
    }
}

template <class T, std::size_t N>
std::vector<std::string_view> keys_of(const std::array<Field<T>, N>& fields) {
    std::vector<std::string_view> keys;
    for (const auto& field : fields) {
        keys.push_back(field.key);
    }
    return keys;
}

}  // namespace sluice::config
