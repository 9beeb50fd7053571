// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/model.h"
#include "control/request_value.h"
#include "net/address.h"

namespace sluice::control {

/// A word and what it stands for.
template <class T>
struct Choice {
    std::string_view word;
    T value;
};

/// Reads the arguments of a request. The first thing that is wrong is kept in error() and readers
/// then return empty values, so a command reads all it takes and looks at error() once, before it
/// touches anything.
class Args {
public:
    /// `object`: outlives this and is a JSON object. Null values count as left out.
    explicit Args(const Value& object) : object_(object) {}

    bool has(std::string_view key) const { return find(key) != nullptr; }
    bool is(std::string_view key, std::string_view word) const {
        const Value* value = find(key);
        return value != nullptr && value->is(Value::Kind::kString) && value->text() == word;
    }

    std::optional<std::string> text(std::string_view key);
    std::optional<std::string> text_or_empty(std::string_view key);
    std::optional<std::string> new_name(std::string_view key);  // for what is to be made
    std::optional<bool> flag(std::string_view key);
    std::optional<net::MacAddr> mac(std::string_view key);     // of one station
    std::optional<net::IpAddr> address(std::string_view key);  // of one host
    std::optional<net::InterfaceAddr> interface_address(std::string_view key);
    std::optional<net::Family> family(std::string_view key);
    std::vector<std::string> texts(std::string_view key);  // at least one, at most kMaxTexts
    /// "prefix"; "default" takes its family from "family", else from "via".
    net::IpPrefix prefix();
    /// A prefix or one address; "all" is as good as nothing.
    std::optional<net::IpPrefix> selector(std::string_view key);
    /// A number, or "main".
    std::optional<std::uint32_t> table(std::string_view key);
    /// Of IP: a number or a usual name.
    std::optional<std::uint8_t> protocol(std::string_view key);
    /// Of a route, see route_labels.h: a number or a name.
    std::optional<std::uint8_t> route_protocol(std::string_view key);
    /// One port or [first, last].
    std::optional<config::PortRange> ports(std::string_view key);
    /// An array of objects with nothing but `keys`; null when left out.
    const Value* objects(std::string_view key, std::span<const std::string_view> keys);

    template <class T>
    std::optional<T> integer(std::string_view key,
                             T min = std::numeric_limits<T>::min(),
                             T max = std::numeric_limits<T>::max()) {
        const auto value = number(key, min, max);
        return value ? std::optional(static_cast<T>(*value)) : std::nullopt;
    }

    template <class T>
    std::optional<T> choice(std::string_view key, std::span<const Choice<T>> choices) {
        const auto word = string_at(key);
        if (!word) {
            return std::nullopt;
        }
        std::vector<std::string_view> words;
        for (const Choice<T>& choice : choices) {
            if (choice.word == *word) {
                return choice.value;
            }
        }
        for (const Choice<T>& choice : choices) {
            words.push_back(choice.word);
        }
        must_be_one_of(key, words);
        return std::nullopt;
    }

    /// What must be there: `args.need("dev", args.text("dev"))`.
    template <class T>
    T need(std::string_view key, std::optional<T> value) {
        if (!value) {
            missing(key);
        }
        return value ? *std::move(value) : T{};
    }

    /// Refuses the request for a reason of the caller's, unless something was wrong before.
    void refuse(Error error);
    void refuse(std::string reason) { refuse(Error{ErrorCode::kInvalid, std::move(reason)}); }
    const std::optional<Error>& error() const noexcept { return error_; }

    static constexpr std::size_t kMaxTexts = 4096;

private:
    const Value* find(std::string_view key) const;
    std::optional<std::string_view> string_at(std::string_view key);
    std::optional<std::uint64_t> number(std::string_view key, std::uint64_t min, std::uint64_t max);
    template <class T>
    std::optional<T> parsed(std::string_view key);
    void missing(std::string_view key);
    /// `value`: as JSON has it.
    void wrong(std::string_view key, std::string_view value, std::string_view what);
    void wrong(std::string_view key, const Value& value, std::string_view what) {
        wrong(key, value.json(), what);
    }
    void wrong_text(std::string_view key, const std::string& text, std::string_view what);
    void must_be_one_of(std::string_view key, std::span<const std::string_view> words);

    const Value& object_;
    std::optional<Error> error_;
};

}  // namespace sluice::control
