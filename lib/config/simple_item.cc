// SPDX-License-Identifier: BSD-3-Clause
#include "config/simple_item.h"

#include <utility>

#include "config/guard.h"

namespace sluice::config {
namespace {

constexpr std::size_t kMaxKeys = 16;

constexpr bool is_alphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
constexpr bool is_plain(char c) {
    return is_alphanumeric(c) || c == '.' || c == '/' || c == '_' || c == '-';
}
constexpr bool is_in_quotes(char c) {
    return c >= ' ' && c < 0x7f && c != '"' && c != '\'' && c != '\\';
}

class Cursor {
public:
    Cursor(std::string_view text, std::size_t offset, std::uint32_t line)
        : text_(text), i_(offset), line_start_(offset), line_(line) {}

    std::optional<SimpleItem> run() {
        const auto first_line = line_;
        skip_spaces();
        if (!take('-') || !take(' ')) {
            return std::nullopt;
        }
        skip_spaces();
        SimpleItem item;
        item.node.kind = Node::Kind::kMap;
        item.node.at = here();
        const bool read = peek() == '{' ? flow(item.node) : block(item.node);
        if (!read || has_duplicates(item.node)) {
            return std::nullopt;
        }
        item.end = line_start_;
        item.lines = line_ - first_line;
        return item;
    }

private:
    char peek(std::size_t ahead = 0) const {
        return i_ + ahead < text_.size() ? text_[i_ + ahead] : '\n';
    }
    std::size_t column() const { return i_ - line_start_; }
    Position here() const { return {line_, static_cast<std::uint32_t>(column() + 1)}; }
    bool take(char c) {
        if (peek() != c || i_ >= text_.size()) {
            return false;
        }
        ++i_;
        return true;
    }
    void skip_spaces() {
        while (peek() == ' ') {
            ++i_;
        }
    }

    /// Blanks and a remark up to the line's end, and on to the next line.
    bool end_line() {
        const auto begin = i_;
        skip_spaces();
        if (peek() == '#' && i_ > begin) {
            const auto end = text_.find('\n', i_);
            i_ = end == std::string_view::npos ? text_.size() : end;
        }
        if (peek() == '\r') {
            ++i_;
        }
        if (peek() != '\n') {
            return false;
        }
        i_ = i_ < text_.size() ? i_ + 1 : i_;
        line_start_ = i_;
        ++line_;
        return true;
    }

    bool pair(Node& map) {
        Node key{.kind = Node::Kind::kScalar, .at = here()};
        while ((peek() >= 'a' && peek() <= 'z') || (peek() == '-' && !key.text.empty())) {
            key.text += text_[i_++];
        }
        if (key.text.empty() || key.text.size() > kMaxScalarBytes || !take(':') || !take(' ')) {
            return false;
        }
        skip_spaces();
        map.items.push_back(std::move(key));
        return value(map.items.emplace_back()) && map.items.size() <= 2 * kMaxKeys;
    }

    bool value(Node& node) {
        node.kind = Node::Kind::kScalar;
        node.at = here();
        const char quote = peek();
        if (quote == '"' || quote == '\'') {
            node.quoted = true;
            ++i_;
            const auto begin = i_;
            while (is_in_quotes(peek())) {
                ++i_;
            }
            node.text = text_.substr(begin, i_ - begin);
            return take(quote) && node.text.size() <= kMaxScalarBytes;
        }
        const auto begin = i_;
        if (!is_alphanumeric(peek())) {
            return false;
        }
        while (is_plain(peek()) || (peek() == ':' && (is_plain(peek(1)) || peek(1) == ':'))) {
            ++i_;
        }
        node.text = text_.substr(begin, i_ - begin);
        return node.text.size() <= kMaxScalarBytes;
    }

    bool flow(Node& map) {
        take('{');
        do {
            skip_spaces();
            if (!pair(map)) {
                return false;
            }
            skip_spaces();
        } while (take(','));
        return take('}') && end_line();
    }

    bool block(Node& map) {
        const auto indent = column();
        do {
            if (!pair(map) || !end_line()) {
                return false;
            }
            while (blank_line()) {
            }
            skip_spaces();
        } while (i_ < text_.size() && column() == indent);
        // A line further in would go on with the last value.
        const bool ended = i_ >= text_.size() || column() < indent;
        i_ = line_start_;
        return ended && peek() != '\t';
    }

    bool blank_line() {
        const auto begin = i_;
        skip_spaces();
        if (i_ < text_.size() && (peek() == '\n' || peek() == '\r' || peek() == '#')) {
            i_ = begin;
            const auto end = text_.find('\n', i_);
            i_ = end == std::string_view::npos ? text_.size() : end + 1;
            line_start_ = i_;
            ++line_;
            return true;
        }
        i_ = begin;
        return false;
    }

    static bool has_duplicates(const Node& map) {
        for (std::size_t i = 0; i < map.items.size(); i += 2) {
            for (std::size_t j = i + 2; j < map.items.size(); j += 2) {
                if (map.items[i].text == map.items[j].text) {
                    return true;
                }
            }
        }
        return false;
    }

    std::string_view text_;
    std::size_t i_;
    std::size_t line_start_;
    std::uint32_t line_;
};

}  // namespace

std::optional<SimpleItem> parse_simple_item(std::string_view text,
                                            std::size_t offset,
                                            std::uint32_t line) {
    return Cursor{text, offset, line}.run();
}

}  // namespace sluice::config
