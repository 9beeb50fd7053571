// SPDX-License-Identifier: BSD-3-Clause
#include "sluicectl_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sluicectl_grammar.h"

namespace sluicectl {
namespace {

using Json = nlohmann::ordered_json;
using Words = std::span<const std::string>;

template <class... Args>
std::unexpected<std::string> wrong(fmt::format_string<Args...> format, Args&&... args) {
    return std::unexpected(fmt::format(format, std::forward<Args>(args)...));
}

bool abbreviates(std::string_view word, std::string_view full, std::size_t shortest) noexcept {
    return word.size() >= shortest && full.starts_with(word);
}

std::optional<std::uint64_t> number(std::string_view word) noexcept {
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
    return failed == std::errc{} && end == word.data() + word.size() ? std::optional(value)
                                                                     : std::nullopt;
}

std::string_view object_of(std::string_view word) {
    for (const Word& object : kObjects) {
        if (abbreviates(word, object.full, object.shortest)) {
            return object.canonical;
        }
    }
    return {};
}

const Form* form_of(std::string_view object, std::string_view word) {
    // iproute2 knows these as well, beside any command's own name.
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kSynonyms{
        {{"delete", "del"}, {"list", "show"}, {"lst", "show"}}};
    for (const Form& form : forms()) {
        if (form.object == object && abbreviates(word, form.command, form.shortest)) {
            return &form;
        }
    }
    for (const auto& [synonym, command] : kSynonyms) {
        if (abbreviates(word, synonym, 1)) {
            const auto at = std::ranges::find_if(forms(), [&](const Form& form) {
                return form.object == object && form.command == command;
            });
            return at == forms().end() ? nullptr : &*at;
        }
    }
    return nullptr;
}

std::string usage(const Form& form) {
    return fmt::format("usage: sluicectl {} {}{}{}",
                       form.object,
                       form.command,
                       form.usage.empty() ? "" : " ",
                       form.usage);
}

class Parser {
public:
    Parser(const Form& form, const Defaults& defaults) : form_(form), defaults_(defaults) {}

    std::expected<Json, std::string> parse(Words words) {
        for (std::size_t i = 0; i < words.size(); ++i) {
            const std::string& word = words[i];
            const Keyword* keyword = find(word);
            if (keyword == nullptr) {
                if (!take_bare(word)) {
                    return wrong("\"{}\" is not understood here; {}", word, usage(form_));
                }
                continue;
            }
            const bool alone = keyword->kind == Kind::kTrue || keyword->kind == Kind::kFalse;
            if (!alone && i + 1 == words.size()) {
                return wrong("{} needs a value; {}", word, usage(form_));
            }
            auto value = value_of(*keyword, alone ? word : words[++i]);
            if (!value) {
                return std::unexpected(std::move(value.error()));
            }
            if (keyword->kind != Kind::kLiteral && !put(keyword->key, *std::move(value))) {
                return wrong("{} is given twice", word);
            }
        }
        for (const std::string_view key : form_.needs) {
            if (!args_.contains(key)) {
                return wrong("{} is missing; {}", key, usage(form_));
            }
        }
        return std::move(args_);
    }

private:
    const Keyword* find(std::string_view word) const {
        const auto at = std::ranges::find(form_.keywords, word, &Keyword::word);
        return at == form_.keywords.end() ? nullptr : &*at;
    }

    bool take_bare(const std::string& word) {
        constexpr std::array<std::string_view, 5> kTypes{
            "unicast", "blackhole", "unreachable", "prohibit", "local"};
        if (form_.typed && !args_.contains(form_.positional) &&
            std::ranges::find(kTypes, word) != kTypes.end()) {
            return put("type", word);
        }
        if (form_.positional == "file") {
            return put("file", absolute(word));
        }
        return !form_.positional.empty() && put(form_.positional, word);
    }

    std::string absolute(const std::string& file) const {
        return (std::filesystem::path(defaults_.working_directory) / file).string();
    }

    bool put(std::string_view key, Json value) {
        if (form_.many && key == form_.positional) {
            args_[std::string(key)].push_back(std::move(value));
            return true;
        }
        return args_.emplace(std::string(key), std::move(value)).second;
    }

    std::expected<Json, std::string> value_of(const Keyword& keyword, const std::string& word) {
        const auto as_number = number(word);
        switch (keyword.kind) {
            case Kind::kTrue:
                return true;
            case Kind::kFalse:
                return false;
            case Kind::kOnOff:
                if (word != "on" && word != "off") {
                    return wrong("{} \"{}\": must be on or off", keyword.word, word);
                }
                return word == "on";
            case Kind::kNumber:
                if (!as_number) {
                    return wrong("{} \"{}\": must be a number", keyword.word, word);
                }
                return *as_number;
            case Kind::kTable:
                return as_number ? Json(*as_number) : Json(word);
            case Kind::kLiteral:
                if (word != keyword.key) {
                    return wrong("{} \"{}\": must be {}", keyword.word, word, keyword.key);
                }
                return word;
            case Kind::kText:
                return word;
        }
        std::unreachable();
    }

    const Form& form_;
    const Defaults& defaults_;
    Json args_ = Json::object();
};

/// Where "family" is an argument of a command, -4 and -6 set it.
bool takes_family(const Form& form) {
    return (form.command == "show" &&
            (form.object == "addr" || form.object == "route" || form.object == "neigh")) ||
           form.typed;
}

std::string known_commands(std::string_view object) {
    std::string names;
    for (const Form& form : forms()) {
        if (form.object == object) {
            names += names.empty() ? "" : ", ";
            names += form.command;
        }
    }
    return names;
}

}  // namespace

std::string Request::to_line(bool if_ok) const {
    Json line{{"object", object}, {"command", command}};
    if (!netns.empty()) {
        line["netns"] = netns;
    }
    if (if_ok) {
        line["if_ok"] = true;
    }
    line["args"] = args;
    // What is no UTF-8 gets a replacement here, and so an answer that shows it.
    return line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::expected<Request, std::string> parse_words(Words words, const Defaults& defaults) {
    if (words.empty()) {
        return wrong("no command given; try sluicectl --help");
    }
    const std::string_view object = object_of(words[0]);
    if (object.empty()) {
        std::vector<std::string_view> names;
        for (const Word& word : kObjects) {
            if (std::ranges::find(names, word.canonical) == names.end()) {
                names.push_back(word.canonical);
            }
        }
        return wrong("unknown object \"{}\"; there are {}", words[0], fmt::join(names, ", "));
    }
    Request request{.object = std::string(object),
                    .command = words.size() > 1 ? words[1] : "show",
                    .netns = defaults.netns};
    if (known_commands(object).empty()) {
        return request;  // of a later release: the daemon says so
    }
    const Form* form = form_of(object, request.command);
    if (form == nullptr) {
        return wrong(
            "{} has no command \"{}\"; it has {}", object, request.command, known_commands(object));
    }
    request.command = form->command;
    auto args = Parser(*form, defaults).parse(words.subspan(std::min(words.size(), 2UZ)));
    if (!args) {
        return std::unexpected(std::move(args.error()));
    }
    request.args = *std::move(args);
    if (takes_family(*form) && !defaults.family.empty()) {
        request.args["family"] = defaults.family;
    }
    return request;
}

std::expected<std::vector<std::string>, std::string> split_words(std::string_view line) {
    std::vector<std::string> words;
    std::size_t at = 0;
    while (true) {
        at = line.find_first_not_of(" \t\r", at);
        if (at == std::string_view::npos || line[at] == '#') {
            return words;
        }
        std::string word;
        while (at < line.size() && !std::string_view(" \t\r").contains(line[at])) {
            const char c = line[at++];
            if (c != '"' && c != '\'') {
                word += c;
                continue;
            }
            const std::size_t end = line.find(c, at);
            if (end == std::string_view::npos) {
                return wrong("quote {} is not closed", c);
            }
            word += line.substr(at, end - at);
            at = end + 1;
        }
        words.push_back(std::move(word));
    }
}

std::string command_summary() {
    std::string text;
    for (const Form& form : forms()) {
        text += fmt::format(
            "  {} {}{}{}\n", form.object, form.command, form.usage.empty() ? "" : " ", form.usage);
    }
    return text;
}

}  // namespace sluicectl
