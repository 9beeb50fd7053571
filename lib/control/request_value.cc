// SPDX-License-Identifier: BSD-3-Clause
#include "control/request_value.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "control/request_json.h"

namespace sluice::control {
namespace {

constexpr std::size_t kDeepest = 4;
constexpr std::size_t kMostKeys = 32;
constexpr std::size_t kKeptValues = 4096;  // what a line of unusual length took is given back

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

std::string Value::json() const {
    const auto list = [this](char open, char close) {
        std::string text(1, open);
        for (const Value& value : *this) {
            text += text.size() > 1 ? "," : "";
            text += is(Kind::kObject) ? dump(Json(value.key_)) + ':' + value.json() : value.json();
        }
        return text + close;
    };
    switch (kind_) {
        case Kind::kBool:
            return truth() ? "true" : "false";
        case Kind::kNatural:
            return fmt::format_int(number_).str();
        case Kind::kNegative:
            return fmt::format_int(std::bit_cast<std::int64_t>(number_)).str();
        case Kind::kFraction:
            return std::string(text_);
        case Kind::kString:
            return dump(Json(text_));
        case Kind::kArray:
            return list('[', ']');
        case Kind::kObject:
            return list('{', '}');
        case Kind::kNull:
            break;
    }
    return "null";
}

/// What the library's lexer finds, in a row. Its own builder checks neither bounds nor double keys,
/// and allocates for each value.
class ValueBuilder {
public:
    explicit ValueBuilder(Document& into) : values_(into.values_), texts_(into.texts_) {}

    // The names are the library's.
    bool null() { return add({}); }
    bool boolean(bool value) { return add(number(Value::Kind::kBool, value ? 1 : 0)); }
    bool number_integer(Json::number_integer_t value) {
        return add(number(Value::Kind::kNegative, std::bit_cast<std::uint64_t>(value)));
    }
    bool number_unsigned(Json::number_unsigned_t value) {
        return add(number(Value::Kind::kNatural, value));
    }
    bool number_float(Json::number_float_t /*value*/, const std::string& text) {
        return add(text_of(Value::Kind::kFraction, text));
    }
    bool string(const std::string& text) { return add(text_of(Value::Kind::kString, text)); }
    static bool binary(Json::binary_t& /*value*/) { return false; }
    bool start_object(std::size_t /*size*/) { return open(Value::Kind::kObject); }
    bool start_array(std::size_t /*size*/) { return open(Value::Kind::kArray); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    bool key(const std::string& name) {
        const Value& object = values_[open_[depth_ - 1]];
        std::size_t before = open_[depth_ - 1] + 1;
        for (std::uint32_t i = 0; i < object.children_; ++i) {
            if (values_[before].key_ == name) {
                return refuse(fmt::format("request: key \"{:.80}\" stands there twice", name));
            }
            before += values_[before].values_;
        }
        if (object.children_ == kMostKeys) {
            return refuse(fmt::format("request: more than {} keys in an object", kMostKeys));
        }
        key_ = keep(name);
        return true;
    }
    bool parse_error(std::size_t byte,
                     const std::string& /*token*/,
                     const nlohmann::detail::exception& found) {
        std::string_view what = found.what();
        const std::size_t detail = what.find(": syntax error while parsing ");
        what.remove_prefix(detail == std::string_view::npos
                               ? std::min(what.size(), what.find("] ") + 2)
                               : detail + 2);
        return refuse(fmt::format("request is not JSON: byte {}: {}", byte, what));
    }

    std::string error;

private:
    bool refuse(std::string what) {
        error = std::move(what);
        return false;
    }

    /// There is room for the whole line, and what it says is never longer: views stay good.
    std::string_view keep(std::string_view text) {
        const std::size_t start = texts_.size();
        texts_ += text;
        return std::string_view(texts_).substr(start);
    }
    static Value number(Value::Kind kind, std::uint64_t number) {
        Value value;
        value.kind_ = kind;
        value.number_ = number;
        return value;
    }
    Value text_of(Value::Kind kind, std::string_view text) {
        Value value;
        value.kind_ = kind;
        value.text_ = keep(text);
        return value;
    }

    bool add(Value value) {
        value.key_ = std::exchange(key_, {});
        if (depth_ != 0) {
            ++values_[open_[depth_ - 1]].children_;
        }
        values_.push_back(value);
        return true;
    }

    bool open(Value::Kind kind) {
        if (depth_ == kDeepest) {
            return refuse(fmt::format("request: nested deeper than {}", kDeepest));
        }
        add(number(kind, 0));
        open_[depth_++] = values_.size() - 1;
        return true;
    }

    bool close() {
        const std::size_t at = open_[--depth_];
        values_[at].values_ = static_cast<std::uint32_t>(values_.size() - at);
        return true;
    }

    std::vector<Value>& values_;
    std::string& texts_;
    std::array<std::size_t, kDeepest> open_{};
    std::size_t depth_ = 0;
    std::string_view key_;
};

Result<void> Document::parse(std::string_view line) {
    if (values_.capacity() > kKeptValues) {
        values_ = {};
        texts_ = {};
    }
    values_.clear();
    texts_.clear();
    texts_.reserve(line.size());
    ValueBuilder builder(*this);
    if (!Json::sax_parse(line, &builder)) {
        return fail(ErrorCode::kInvalid, "{}", builder.error);
    }
    return {};
}

}  // namespace sluice::control
