// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// Inside of control/requests: what a client sent. Answers are made with request_json.h; what is
/// read once, and a hundred thousand times in a row, is cheaper as a row of values than as the
/// library's tree.
namespace sluice::control {

/// Part of one line of JSON.
class Value {
public:
    enum class Kind : std::uint8_t {
        kNull,
        kBool,
        kNatural,
        kNegative,
        kFraction,
        kString,
        kArray,
        kObject
    };

    Kind kind() const noexcept { return kind_; }
    bool is(Kind kind) const noexcept { return kind_ == kind; }
    std::string_view kind_name() const noexcept;
    /// JSON again.
    std::string json() const;
    /// In an object: under which name.
    std::string_view key() const noexcept { return key_; }

    bool truth() const noexcept { return number_ != 0; }        // kBool
    std::uint64_t natural() const noexcept { return number_; }  // kNatural
    std::string_view text() const noexcept { return text_; }    // kString; kFraction as written

    /// Of an array or object: the values in it.
    std::size_t size() const noexcept { return children_; }
    bool empty() const noexcept { return children_ == 0; }
    class Iterator {
    public:
        explicit Iterator(const Value* at) noexcept : at_(at) {}
        const Value& operator*() const noexcept { return *at_; }
        Iterator& operator++() noexcept {
            at_ += at_->values_;
            return *this;
        }
        friend bool operator==(const Iterator&, const Iterator&) = default;

    private:
        const Value* at_;
    };
    Iterator begin() const noexcept { return Iterator(this + 1); }
    Iterator end() const noexcept { return Iterator(this + values_); }
    const Value* find(std::string_view key) const noexcept {
        for (const Value& value : *this) {
            if (value.key_ == key) {
                return &value;
            }
        }
        return nullptr;
    }

private:
    friend class ValueBuilder;

    Kind kind_ = Kind::kNull;
    std::uint32_t children_ = 0;
    std::uint32_t values_ = 1;  // this one and all in it, which stand behind it
    std::uint64_t number_ = 0;  // of kNegative in two's complement
    std::string_view key_, text_;
};

/// A line of JSON, read. One may be used again and again, and then allocates nothing.
class Document {
public:
    /// Bounds what it can cost before it costs it, and refuses keys that stand there twice (the
    /// library would keep one of them silently).
    Result<void> parse(std::string_view line);
    /// Good until the next parse().
    const Value& root() const noexcept { return values_.front(); }

private:
    friend class ValueBuilder;

    std::vector<Value> values_;  // each in front of what is in it
    std::string texts_;          // what they view
};

}  // namespace sluice::control
