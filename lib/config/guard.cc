// SPDX-License-Identifier: BSD-3-Clause
#include "config/guard.h"

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "config/simple_item.h"

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
    using OnItem = std::function<bool(std::string_view list, const Node& item)>;

    Scan(std::string_view text, const OnItem& on_item) : text_(text), on_item_(on_item) {}

    Screened run() {
        if (text_.size() > kMaxTextBytes) {
            return {Finding{{}, fmt::format("larger than {} MB", kMaxTextBytes >> 20U)}, {}};
        }
        check_characters();
        std::size_t good = 0;
        while (!finding_ && i_ < text_.size()) {
            good = i_;
            block_line();
        }
        good = finding_ ? good : text_.size();
        rest_.append(text_, copied_, good - copied_);
        return {std::move(finding_), std::move(rest_)};
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
        if (cut_simple_item()) {
            return;
        }
        if (i_ - cut_bytes_ > kMaxYamlBytes) {
            refuse(i_,
                   fmt::format("more than {} MB besides routes and neighbors in their plain "
                               "form, '- {{to: ADDRESS, via: ADDRESS}}'",
                               kMaxYamlBytes >> 20U));
            return;
        }
        only_plain_ = true;
        skip_spaces();
        if (i_ == begin && at(i_) == '%') {
            refuse(i_, "YAML directives (%) are not used here: leave the line out");
            return;
        }
        if (at_line_end() || at(i_) == '#') {
            skip_to_line_end();
        } else {
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

    /// "routes:" with nothing behind it.
    static std::string_view list_begun_by(std::string_view line) {
        for (const std::string_view list : {"routes", "neighbors"}) {
            if (line.starts_with(list) && line.substr(list.size()).starts_with(":")) {
                const auto rest = line.find_first_not_of(" \r", list.size() + 1);
                const bool remark =
                    rest != std::string_view::npos && line[rest] == '#' && line[rest - 1] == ' ';
                return rest == std::string_view::npos || remark ? list : std::string_view{};
            }
        }
        return {};
    }

    /// True when the line that begins here, with those that belong to it, is dealt with.
    bool cut_simple_item() {
        const auto line = text_.substr(i_, text_.find('\n', i_) - i_);
        const auto indent = line.find_first_not_of(' ');
        if (indent == std::string_view::npos || line[indent] == '#' || line[indent] == '\r') {
            return false;
        }
        const bool item = line[indent] == '-' && blank_at(i_ + indent + 1);
        if (!item || list_.empty() || (list_indent_ && indent != *list_indent_)) {
            if (!list_indent_ || indent <= *list_indent_) {
                list_ = indent == 0 ? list_begun_by(line) : std::string_view{};
                list_indent_.reset();
            }
            return false;
        }
        list_indent_ = indent;
        const auto simple = parse_simple_item(text_, i_, line_);
        if (!simple) {
            return false;
        }
        rest_.append(text_, copied_, i_ - copied_);
        rest_.append(simple->lines, '\n');
        copied_ = simple->end;
        cut_bytes_ += simple->end - i_;
        i_ = line_start_ = simple->end;
        line_ += simple->lines;
        plain_lines_ = 0;
        if (!on_item_(list_, simple->node)) {
            refuse(i_, "reading stops here");
        }
        return true;
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
    const OnItem& on_item_;
    std::string_view list_;  // whose items come now
    std::optional<std::size_t> list_indent_;
    std::string rest_;
    std::size_t copied_ = 0;     // how far `rest_` has the text
    std::size_t cut_bytes_ = 0;  // that `rest_` does not have
    std::size_t i_ = 0;
    std::size_t line_start_ = 0;
    std::uint32_t line_ = 1;
    std::size_t plain_lines_ = 0;
    bool only_plain_ = true;
    std::optional<Finding> finding_;
};

}  // namespace

Screened screen(std::string_view text,
                const std::function<bool(std::string_view list, const Node& item)>& on_item) {
    return Scan{text, on_item}.run();
}

}  // namespace sluice::config
