// SPDX-License-Identifier: BSD-3-Clause
#include "control/request_value.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"

namespace sluice::control {
namespace {

constexpr std::size_t kDeepest = 4;
constexpr std::size_t kMostKeys = 32;
constexpr std::size_t kKeptValues = 4096;  // what a line of unusual length took is given back

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

/// How long the character is that begins `text`, which has a byte of 0x80 or more in front; 0: it
/// is none (RFC 3629 4).
std::size_t utf8_length(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
    };
    const unsigned first = byte(0);
    const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                               : first >= 0xe0 && first <= 0xef ? 3
                               : first >= 0xf0 && first <= 0xf4 ? 4
                                                                : 0;
    if (length == 0 || byte(1) < low || byte(1) > high) {
        return 0;
    }
    for (std::size_t i = 2; i < length; ++i) {
        if ((byte(i) & 0xc0U) != 0x80) {
            return 0;
        }
    }
    return length;
}

void append_utf8(std::string& out, std::uint32_t c) {
    const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xc0 | c >> 6U);
        put(0x80 | (c & 0x3fU));
    } else if (c < 0x10000) {
        put(0xe0 | c >> 12U);
        put(0x80 | (c >> 6U & 0x3fU));
        put(0x80 | (c & 0x3fU));
    } else {
        put(0xf0 | c >> 18U);
        put(0x80 | (c >> 12U & 0x3fU));
        put(0x80 | (c >> 6U & 0x3fU));
        put(0x80 | (c & 0x3fU));
    }
}

}  // namespace

std::string_view Value::kind_name() const noexcept {
    switch (kind_) {
        case Kind::kNull:
            return "null";
        case Kind::kBool:
            return "boolean";
        case Kind::kNatural:
        case Kind::kNegative:
        case Kind::kFraction:
            return "number";
        case Kind::kString:
            return "string";
        case Kind::kArray:
            return "array";
        case Kind::kObject:
            return "object";
    }
    return "";
}

/// RFC 8259, by recursive descent: a value may not be nested deeply.
class ValueParser {
public:
    ValueParser(std::string_view line, Document& into)
        : line_(line), values_(into.values_), decoded_(into.decoded_) {}

    bool parse() {
        if (!value({}, 0)) {
            return false;
        }
        skip_space();
        return at_ == line_.size() || not_json("only spaces may follow");
    }
    const std::string& error() const noexcept { return error_; }

private:
    bool refuse(std::string what) {
        error_ = std::move(what);
        return false;
    }
    bool not_json(std::string_view what) {
        return refuse(fmt::format("request is not JSON: byte {}: {}", at_ + 1, what));
    }

    char peek() const noexcept { return at_ < line_.size() ? line_[at_] : '\0'; }
    void skip_space() noexcept {
        while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' ||
                                      line_[at_] == '\r' || line_[at_] == '\n')) {
            ++at_;
        }
    }
    bool take(char c) noexcept {
        skip_space();
        const bool there = peek() == c;
        at_ += there ? 1 : 0;
        return there;
    }

    bool value(std::string_view key, std::size_t depth) {
        skip_space();
        const std::size_t number = values_.size();
        const std::size_t begin = at_;
        values_.emplace_back();
        values_.back().key_ = key;
        bool fine = false;
        switch (peek()) {
            case '{':
            case '[':
                fine = container(number, depth);
                break;
            case '"':
                values_[number].kind_ = Value::Kind::kString;
                fine = string(values_[number].text_);
                break;
            case 't':
                fine = word("true", number, Value::Kind::kBool, 1);
                break;
            case 'f':
                fine = word("false", number, Value::Kind::kBool, 0);
                break;
            case 'n':
                fine = word("null", number, Value::Kind::kNull, 0);
                break;
            default:
                fine = this->number(values_[number]);
        }
        if (fine) {
            Value& made = values_[number];
            made.raw_ = line_.substr(begin, at_ - begin);
            made.values_ = static_cast<std::uint32_t>(values_.size() - number);
        }
        return fine;
    }

    bool container(std::size_t number, std::size_t depth) {
        if (depth == kDeepest) {
            return refuse(fmt::format("request: nested deeper than {}", kDeepest));
        }
        const bool object = line_[at_++] == '{';
        const char close = object ? '}' : ']';
        values_[number].kind_ = object ? Value::Kind::kObject : Value::Kind::kArray;
        if (take(close)) {
            return true;
        }
        do {
            std::string_view key;
            if (object && !member(number, key)) {
                return false;
            }
            // Counted when it is whole: until then a look at those before it ends in front of it.
            if (!value(key, depth + 1)) {
                return false;
            }
            ++values_[number].children_;
        } while (take(','));
        return take(close) || not_json(object ? "',' or '}' is missing" : "',' or ']' is missing");
    }

    /// The name of the next value of the object, and the colon.
    bool member(std::size_t number, std::string_view& key) {
        skip_space();
        if (peek() != '"') {
            return not_json("a key in quotes is missing");
        }
        if (!string(key)) {
            return false;
        }
        std::size_t before = number + 1;
        for (std::uint32_t i = 0; i < values_[number].children_; ++i) {
            if (values_[before].key_ == key) {
                return refuse(fmt::format("request: key \"{:.80}\" stands there twice", key));
            }
            before += values_[before].values_;
        }
        if (values_[number].children_ == kMostKeys) {
            return refuse(fmt::format("request: more than {} keys in an object", kMostKeys));
        }
        return take(':') || not_json("':' is missing");
    }

    bool word(std::string_view word, std::size_t number, Value::Kind kind, std::uint64_t truth) {
        if (line_.substr(at_, word.size()) != word) {
            return not_json("no value");
        }
        at_ += word.size();
        values_[number].kind_ = kind;
        values_[number].number_ = truth;
        return true;
    }

    bool digits() noexcept {
        const std::size_t begin = at_;
        while (is_digit(peek())) {
            ++at_;
        }
        return at_ != begin;
    }

    bool number(Value& value) {
        const bool negative = peek() == '-';
        at_ += negative ? 1 : 0;
        const std::size_t begin = at_;
        if (!digits()) {
            return not_json("no value");
        }
        const std::string_view whole = line_.substr(begin, at_ - begin);
        if (whole.size() > 1 && whole[0] == '0') {
            return not_json("a number with a leading 0");
        }
        const auto [end, failed] =
            std::from_chars(whole.data(), whole.data() + whole.size(), value.number_);
        constexpr auto kLowest = std::uint64_t{1} << 63U;
        const bool fits = failed == std::errc() && (!negative || value.number_ <= kLowest);
        value.kind_ = !fits      ? Value::Kind::kFraction
                      : negative ? Value::Kind::kNegative
                                 : Value::Kind::kNatural;
        if (peek() == '.') {
            value.kind_ = Value::Kind::kFraction;
            ++at_;
            if (!digits()) {
                return not_json("a digit is missing");
            }
        }
        if (peek() == 'e' || peek() == 'E') {
            value.kind_ = Value::Kind::kFraction;
            ++at_;
            at_ += peek() == '+' || peek() == '-' ? 1 : 0;
            if (!digits()) {
                return not_json("a digit is missing");
            }
        }
        return true;
    }

    bool string(std::string_view& text) {
        const std::size_t begin = ++at_;
        while (at_ < line_.size()) {
            const auto c = static_cast<unsigned char>(line_[at_]);
            if (c == '"') {
                text = line_.substr(begin, at_++ - begin);
                return true;
            }
            if (c == '\\') {
                return escaped_string(begin, text);
            }
            if (!character(c)) {
                return false;
            }
        }
        return not_json("a quote is not closed");
    }

    /// Passes one that stands for itself.
    bool character(unsigned char c) {
        const std::size_t length = c < 0x80 ? 1 : utf8_length(line_.substr(at_));
        if (c < 0x20 || length == 0) {
            return not_json(c < 0x20 ? "a control character in a string" : "not UTF-8");
        }
        at_ += length;
        return true;
    }

    bool escaped_string(std::size_t begin, std::string_view& text) {
        // What it is without escapes is never longer, so views of it stay good.
        decoded_.reserve(line_.size());
        const std::size_t start = decoded_.size();
        decoded_ += line_.substr(begin, at_ - begin);
        while (at_ < line_.size()) {
            const auto c = static_cast<unsigned char>(line_[at_]);
            if (c == '"') {
                ++at_;
                text = std::string_view(decoded_).substr(start);
                return true;
            }
            const std::size_t from = at_;
            if (c == '\\' ? !escape() : !character(c)) {
                return false;
            }
            if (c != '\\') {
                decoded_ += line_.substr(from, at_ - from);
            }
        }
        return not_json("a quote is not closed");
    }

    bool escape() {
        constexpr std::string_view kNames = "\"\\/bfnrt";
        constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
        ++at_;
        if (peek() == 'u') {
            return unicode();
        }
        const std::size_t which = at_ < line_.size() ? kNames.find(line_[at_]) : kNames.npos;
        if (which == kNames.npos) {
            return not_json("no escape of JSON's");
        }
        decoded_ += kMeant[which];
        ++at_;
        return true;
    }

    /// Behind the backslash of \uXXXX.
    bool unicode() {
        std::uint32_t c = 0;
        if (!hex(c)) {
            return false;
        }
        if (c >= 0xd800 && c < 0xdc00 && line_.substr(at_, 2) == "\\u") {
            std::uint32_t low = 0;
            ++at_;
            if (!hex(low)) {
                return false;
            }
            if (low >= 0xdc00 && low < 0xe000) {
                append_utf8(decoded_, 0x10000 + ((c - 0xd800) << 10U) + (low - 0xdc00));
                return true;
            }
        }
        if (c >= 0xd800 && c < 0xe000) {
            return not_json("half a surrogate pair");
        }
        append_utf8(decoded_, c);
        return true;
    }

    bool hex(std::uint32_t& value) {
        const std::string_view four = line_.substr(at_ + 1, 4);
        const auto [end, failed] =
            std::from_chars(four.data(), four.data() + four.size(), value, 16);
        if (four.size() != 4 || failed != std::errc() || end != four.data() + 4) {
            return not_json("\\u has four hexadecimal digits");
        }
        at_ += 5;
        return true;
    }

    std::string_view line_;
    std::size_t at_ = 0;
    std::vector<Value>& values_;
    std::string& decoded_;
    std::string error_;
};

Result<void> Document::parse(std::string_view line) {
    if (values_.capacity() > kKeptValues) {
        values_ = {};
        decoded_ = {};
    }
    values_.clear();
    decoded_.clear();
    ValueParser parser(line, *this);
    if (!parser.parse()) {
        return fail(ErrorCode::kInvalid, "{}", parser.error());
    }
    return {};
}

}  // namespace sluice::control
