// SPDX-License-Identifier: BSD-3-Clause
#include "config/guard.h"

#include <cstdint>

#include <fmt/format.h>

namespace sluice::config {
namespace {

constexpr bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Length of the UTF-8 sequence at the start of `text`; 0 when there is none (RFC 3629 4).
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const auto first = byte(0);
    const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || text.size() < length) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0U) != 0x80) {
            return 0;
        }
    }
    const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool outside = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
    return overlong || outside ? 0 : length;
}

/// Reads YAML just closely enough to tell where quotes, comments and flow collections begin and
/// end.
class Scan {
public:
    explicit Scan(std::string_view text) : text_(text) {}

    std::optional<Finding> run() {
        if (text_.size() > kMaxTextBytes) {
            return Finding{{}, fmt::format("larger than {} MB", kMaxTextBytes >> 20U)};
        }
        check_characters();
        while (!finding_ && i_ < text_.size()) {
            block_line();
        }
        return finding_;
    }

private:
    char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\n'; }
    bool blank_at(std::size_t i) const { return is_blank(at(i)); }
    bool at_line_end() const { return i_ >= text_.size() || text_[i_] == '\n'; }

    void refuse(std::size_t where, std::string what) {
        if (!finding_) {
            finding_ = Finding{{line_, static_cast<std::uint32_t>(where - line_start_ + 1)},
                               std::move(what)};
        }
        i_ = text_.size();
    }
    void newline() {
        ++i_;
        ++line_;
        line_start_ = i_;
    }
    void skip_spaces() {
        while (i_ < text_.size() && (text_[i_] == ' ' || text_[i_] == '\t' || text_[i_] == '\r')) {
            ++i_;
        }
    }
    void skip_to_line_end() {
        while (!at_line_end()) {
            ++i_;
        }
    }

    void check_characters() {
        for (std::size_t i = 0; i < text_.size() && !finding_;) {
            const auto c = static_cast<std::uint8_t>(text_[i]);
            const bool line_break = c == '\n' || (c == '\r' && at(i + 1) == '\n');
            if ((c < 0x20 && c != '\t' && !line_break) || c == 0x7f) {
                refuse(i, fmt::format("control character 0x{:02x}: this must be plain text", c));
            } else if (const auto length = utf8_length(text_.substr(i)); length == 0) {
                refuse(i, fmt::format("byte 0x{:02x} is not UTF-8: this must be plain text", c));
            } else {
                i += length;
                if (c == '\n') {
                    ++line_;
                    line_start_ = i;
                }
            }
        }
        if (!finding_) {
            i_ = 0;
            line_ = 1;
            line_start_ = 0;
        }
    }

    void block_line() {
        const std::size_t begin = i_;
        only_plain_ = true;
        skip_spaces();
        if (i_ == begin && at(i_) == '%') {
            refuse(i_, "YAML directives (%) are not used here: leave the line out");
            return;
        }
        if (at_line_end() || at(i_) == '#') {
            skip_to_line_end();
            blank_bytes_ += i_ - begin + 1;
            if (blank_bytes_ > kMaxBlankBytes) {
                refuse(begin,
                       fmt::format("more than {} MB of comments and blank lines in one piece",
                                   kMaxBlankBytes >> 20U));
            }
        } else {
            blank_bytes_ = 0;
            while (!finding_ && !at_line_end()) {
                block_token();
            }
            plain_lines_ = only_plain_ ? plain_lines_ + 1 : 0;
            if (plain_lines_ > kMaxScalarLines) {
                refuse(begin,
                       fmt::format("a value of more than {} lines: write it on one line",
                                   kMaxScalarLines));
            }
        }
        if (i_ < text_.size()) {
            newline();
        }
    }

    void block_token() {
        const char c = at(i_);
        const bool indicator = (c == '-' || c == '?' || c == ':') && blank_at(i_ + 1);
        if (c == '#' && (i_ == 0 || blank_at(i_ - 1))) {
            skip_to_line_end();
        } else if (indicator || c == ':') {  // a ':' right behind a quoted key needs no blank
            only_plain_ = false;
            ++i_;
        } else if (c == '"' || c == '\'') {
            only_plain_ = false;
            quoted();
        } else if (c == '[' || c == '{') {
            only_plain_ = false;
            flow();
        } else if (c == '|' || c == '>') {
            refuse(i_, "block scalars (| and >) are not used here: write the value on one line");
        } else if (c == '&' || c == '!' || c == '*') {  // refused later, with all the others
            only_plain_ = false;
            word();
        } else {
            plain();
        }
        skip_spaces();
    }

    void too_long(std::size_t begin) {
        refuse(begin, fmt::format("a value longer than {} bytes", kMaxScalarBytes));
    }
    void word() {
        const std::size_t begin = i_;
        while (i_ < text_.size() && !is_blank(text_[i_])) {
            ++i_;
        }
        if (i_ - begin > kMaxScalarBytes) {
            too_long(begin);
        }
    }
    void plain() {
        const std::size_t begin = i_;
        while (!at_line_end()) {
            if (text_[i_] == ':' && blank_at(i_ + 1)) {
                only_plain_ = false;
                break;
            }
            if (text_[i_] == '#' && blank_at(i_ - 1)) {
                break;
            }
            ++i_;
        }
        if (i_ - begin > kMaxScalarBytes) {
            too_long(begin);
        }
    }
    void quoted() {
        const std::size_t begin = i_;
        const char quote = text_[i_++];
        while (i_ < text_.size()) {
            const char c = text_[i_];
            if (i_ - begin > kMaxScalarBytes) {
                refuse(i_, fmt::format("a value longer than {} bytes", kMaxScalarBytes));
                return;
            }
            if (c == '\n') {
                newline();
                continue;
            }
            if (c == '\\' && quote == '"' && at(i_ + 1) != '\n') {
                ++i_;
            } else if (c == quote && quote == '\'' && at(i_ + 1) == '\'') {
                ++i_;
            } else if (c == quote) {
                ++i_;
                return;
            }
            ++i_;
        }
    }

    void flow() {
        std::size_t depth = 0;
        std::size_t tokens = 0;
        std::size_t scalar = i_;  // where the present plain scalar may have begun
        bool fresh = true;        // a quote here opens a string
        while (i_ < text_.size()) {
            const char c = text_[i_];
            const bool open = c == '[' || c == '{';
            const bool close = c == ']' || c == '}';
            const bool colon = c == ':' && (fresh || blank_at(i_ + 1) || at(i_ + 1) == ',' ||
                                            at(i_ + 1) == ']' || at(i_ + 1) == '}');
            if (c == '\n') {
                newline();
                scalar = i_;
                continue;
            }
            if (fresh && (c == '"' || c == '\'')) {
                quoted();
                scalar = i_;
                continue;
            }
            if (c == '#' && i_ > 0 && blank_at(i_ - 1)) {
                skip_to_line_end();
                continue;
            }
            ++i_;
            if (open || close || colon || c == ',') {
                depth += open ? 1U : 0U;
                depth -= close ? 1U : 0U;
                scalar = i_;
                fresh = true;
                if (depth > kMaxDepth) {
                    return refuse(i_ - 1, fmt::format("nested deeper than {} levels", kMaxDepth));
                }
                if (++tokens > kMaxFlowTokens) {
                    return refuse(i_ - 1,
                                  "a list in brackets this long: write long lists with one "
                                  "'- ' item a line");
                }
                if (depth == 0) {
                    return;
                }
            } else if (!is_blank(c)) {
                fresh = false;
            }
            if (i_ - scalar > kMaxScalarBytes) {
                return too_long(scalar);
            }
        }
    }

    std::string_view text_;
    std::size_t i_ = 0;
    std::size_t line_start_ = 0;
    std::uint32_t line_ = 1;
    std::size_t blank_bytes_ = 0;
    std::size_t plain_lines_ = 0;
    bool only_plain_ = true;
    std::optional<Finding> finding_;
};

}  // namespace

std::optional<Finding> find_hostile(std::string_view text) {
    return Scan{text}.run();
}

}  // namespace sluice::config
