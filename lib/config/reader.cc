// SPDX-License-Identifier: BSD-3-Clause
#include "config/reader.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include <fmt/ranges.h>

#include "config/not_built.h"
#include "config/spelling.h"

namespace sluice::config {

std::string ConfigError::to_string() const {
    if (line == 0) {
        return fmt::format("{}: {}", file, what);
    }
    return fmt::format("{}:{}:{}: {}", file, line, column, what);
}

bool Reader::report_plain(Position at, std::string what) {
    if (errors_.size() < kMaxErrors) {
        errors_.push_back({file_, at.line, at.column, std::move(what)});
    } else if (!full()) {
        errors_.push_back({file_,
                           at.line,
                           at.column,
                           fmt::format("more than {} errors: the rest is left out", kMaxErrors)});
    }
    return !full();
}

void Reader::report(Position at, std::string what) {
    ++error_count_;
    report_plain(at, key_.empty() ? std::move(what) : fmt::format("{}: {}", key_, what));
}

bool Reader::text(const Node& node, std::string& out) {
    using enum Node::Kind;
    if (node.kind == kBad) {
        return false;
    }
    if (node.kind == kList || node.kind == kMap) {
        error(node.at, "a {} where one value is wanted", node.kind == kList ? "list" : "mapping");
        return false;
    }
    if (node.kind == kEmpty || node.text.empty()) {
        error(node.at, "has no value: write one or leave the key out");
        return false;
    }
    out = node.text;
    return true;
}

bool Reader::boolean(const Node& node, bool& out) {
    std::string word;
    if (!text(node, word)) {
        return false;
    }
    if (!node.quoted && (word == "true" || word == "false")) {
        out = word == "true";
        return true;
    }
    if (word == "true" || word == "false") {
        error(node.at, "\"{}\" in quotes is a string: write {} without quotes", word, word);
    } else if (const auto meant = boolean_of_other_yaml(word)) {
        error(node.at,
              "'{}' is not a boolean here (no yes, no, on, off, True): write {}",
              word,
              *meant);
    } else {
        error(node.at, "'{}' is not a boolean: write true or false", word);
    }
    return false;
}

std::optional<std::uint64_t> Reader::number(const Node& node,
                                            std::uint64_t min,
                                            std::uint64_t max) {
    std::string word;
    if (!text(node, word)) {
        return std::nullopt;
    }
    const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
    if (digits && node.quoted) {
        error(node.at, "\"{}\" in quotes is a string: write {} without quotes", word, word);
        return std::nullopt;
    }
    if (!digits || (word.size() > 1 && word.front() == '0')) {
        error(node.at,
              "'{}' is not a number: write decimal digits only, without leading zeros, {} to {}",
              word,
              min,
              max);
        return std::nullopt;
    }
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc{} || value < min || value > max) {
        error(node.at, "{} is out of range: {} to {}", word, min, max);
        return std::nullopt;
    }
    return value;
}

bool Reader::name(const Node& node, std::string& out) {
    std::string word;
    if (!text(node, word)) {
        return false;
    }
    if (!is_name(word)) {
        error(node.at,
              "'{}' is not a name: 1 to {} letters, digits, '.', '_' or '-', the first a letter, "
              "digit or '_'",
              word,
              kMaxNameBytes);
        return false;
    }
    out = std::move(word);
    return true;
}

void Reader::unknown_word(Position at,
                          std::string_view word,
                          std::span<const std::string_view> words) {
    if (const auto close = nearest(word, words); !close.empty()) {
        error(at,
              "'{}' is not known: did you mean {}? It can be {}",
              word,
              close,
              fmt::join(words, ", "));
    } else {
        error(at, "'{}' is not known: it can be {}", word, fmt::join(words, ", "));
    }
}

std::span<const Node> Reader::list(const Node& node) {
    using enum Node::Kind;
    if (node.kind == kScalar || node.kind == kMap) {
        error(node.at,
              "a {} where a list is wanted: write [a, b], or '- a' lines",
              node.kind == kMap ? "mapping" : "single value");
        return {};
    }
    return node.items;
}

std::span<const Node> Reader::map(const Node& node) {
    using enum Node::Kind;
    if (node.kind == kScalar || node.kind == kList) {
        error(node.at,
              "a {} where a mapping is wanted: write 'key: value' lines, or {{key: value}}",
              node.kind == kList ? "list" : "single value");
        return {};
    }
    return node.items;
}

void Reader::refuse_not_built(std::string_view map, const Node& key, const Node& value) {
    if (is_not_built(map, key.text, value)) {
        report_plain(key.at, not_built_message(map, key.text, value));
    }
}

void Reader::unknown_key(const Node& key, std::span<const std::string_view> known) {
    if (key.kind == Node::Kind::kBad || full()) {
        return;  // guessing takes time that nobody would see the fruit of
    }
    if (const auto close = nearest(key.text, known); !close.empty()) {
        error(key.at, "unknown key '{}': did you mean '{}'?", key.text, close);
    } else {
        error(key.at, "unknown key '{}': here go {}", key.text, fmt::join(known, ", "));
    }
}

void Reader::missing_key(Position at, std::string_view key) {
    if (!stopped_early_) {
        error(at, "'{}' is missing: add it", key);
    }
}

std::vector<ConfigError> Reader::take_errors() {
    std::stable_sort(errors_.begin(), errors_.end(), [](const auto& a, const auto& b) {
        return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    });
    return std::move(errors_);
}

}  // namespace sluice::config
