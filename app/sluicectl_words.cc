// SPDX-License-Identifier: BSD-3-Clause
#include "sluicectl_words.h"

#include <algorithm>
#include <array>
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
#include "sluicectl_values.h"

namespace sluicectl {
namespace {

using Words = std::span<const std::string>;

template <class... Args>
std::unexpected<std::string> wrong(fmt::format_string<Args...> format, Args&&... args) {
    return std::unexpected(fmt::format(format, std::forward<Args>(args)...));
}

bool abbreviates(std::string_view word, std::string_view full, std::size_t shortest) noexcept {
    return word.size() >= shortest && full.starts_with(word);
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
            if (begins_leg(words.subspan(i))) {
                // One leg has the words up to the next, and all behind the first belong to one.
                std::size_t end = i + 1;
                while (end < words.size() && !begins_leg(words.subspan(end))) {
                    ++end;
                }
                if (auto taken = take_leg(words.subspan(i + 1, end - i - 1)); !taken) {
                    return std::unexpected(std::move(taken.error()));
                }
                i = end - 1;
                continue;
            }
            const Keyword* keyword = find(word);
            if (keyword == nullptr) {
                if (auto taken = take_bare(word); !taken) {
                    return std::unexpected(std::move(taken.error()));
                }
                continue;
            }
            if (!stands_alone(keyword->kind) && i + 1 == words.size()) {
                return wrong("{} needs a value; {}", word, usage(form_));
            }
            // iproute2's `via inet6 ADDR` says what the address says anyway.
            if (keyword->key == "via" && is_one_of(words[i + 1], "inet|inet6") &&
                i + 2 < words.size()) {
                ++i;
            }
            if (auto taken = take(*keyword, stands_alone(keyword->kind) ? word : words[++i]);
                !taken) {
                return std::unexpected(std::move(taken.error()));
            }
        }
        for (const std::string_view key : form_.needs) {
            if (!args_.contains(key)) {
                return wrong("{} is missing; {}", key, usage(form_));
            }
        }
        return std::move(args_);
    }
    /// The protocol's word, where it is not the form's.
    std::string_view command() const noexcept { return command_; }

private:
    static bool stands_alone(Kind kind) noexcept {
        return kind == Kind::kTrue || kind == Kind::kFalse || kind == Kind::kNoise ||
               kind == Kind::kSelf || kind == Kind::kEmpty || kind == Kind::kCommand;
    }

    bool begins_leg(Words words) const {
        return form_.legs && words.size() > 1 && words[0] == "nexthop" &&
               is_one_of(words[1], "via|dev|inet|inet6");
    }

    std::expected<void, std::string> take_leg(Words words) {
        static const Form kLeg{.object = "route",
                               .command = "add",
                               .shortest = 1,
                               .usage = "... nexthop via ADDR [dev NAME] [onlink] [weight N]",
                               .positional = "",
                               .keywords = {{"via", "via"},
                                            {"dev", "dev"},
                                            {"weight", "weight", Kind::kNumber},
                                            {"onlink", "on_link", Kind::kTrue}},
                               .needs = {}};
        Parser parser(kLeg, defaults_);
        auto leg = parser.parse(words);
        if (!leg) {
            return std::unexpected(std::move(leg.error()));
        }
        args_["nexthops"].push_back(*std::move(leg));
        return {};
    }

    const Keyword* find(std::string_view word) const {
        const auto at = std::ranges::find(form_.keywords, word, &Keyword::word);
        return at == form_.keywords.end() ? nullptr : &*at;
    }

    std::expected<void, std::string> take(const Keyword& keyword, const std::string& word) {
        if (keyword.kind == Kind::kNoise ||
            (keyword.kind == Kind::kAny && is_one_of(word, "all|any|default"))) {
            return {};
        }
        if (keyword.kind == Kind::kCommand) {
            command_ = keyword.key;
            return {};
        }
        if (keyword.kind == Kind::kLiteral) {
            if (!is_one_of(word, keyword.key)) {
                return wrong("{} \"{}\": must be {}", keyword.word, word, keyword.key);
            }
            if (word == "resilient") {
                put(word, true);
            }
            return {};
        }
        auto value = value_of(keyword, word);
        if (!value) {
            return std::unexpected(std::move(value.error()));
        }
        if (!put(keyword.key, *std::move(value))) {
            return wrong("{} is given twice", keyword.word);
        }
        return {};
    }

    std::expected<void, std::string> take_bare(const std::string& word) {
        constexpr std::string_view kTypes = "unicast|blackhole|unreachable|prohibit|local";
        const std::string_view key = form_.positional;
        if (form_.typed && !args_.contains(key) && is_one_of(word, kTypes) && put("type", word)) {
            return {};
        }
        if (key.empty() || (args_.contains(key) && !form_.many)) {
            return wrong("\"{}\" is not understood here; {}", word, usage(form_));
        }
        if (const Keyword* same = find(key); same != nullptr && same->kind == Kind::kNumber) {
            return take(*same, word);
        }
        put(key, key == "file" ? absolute(word) : word);
        return {};
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

    static std::expected<Json, std::string> value_of(const Keyword& keyword,
                                                     const std::string& word) {
        switch (keyword.kind) {
            case Kind::kTrue:
                return true;
            case Kind::kFalse:
                return false;
            case Kind::kEmpty:
                return "";
            case Kind::kOnOff:
                if (word != "on" && word != "off") {
                    return wrong("{} \"{}\": must be on or off", keyword.word, word);
                }
                return word == "on";
            case Kind::kNumber:
            case Kind::kTable: {
                const auto as_number = number(word);
                if (!as_number && keyword.kind == Kind::kNumber) {
                    return wrong("{} \"{}\": must be a number", keyword.word, word);
                }
                return as_number ? Json(*as_number) : Json(word);
            }
            case Kind::kTos:
                return dscp_of_tos(keyword.word, word);
            case Kind::kPorts:
                return ports(keyword.word, word);
            case Kind::kSeconds:
                return milliseconds(keyword.word, word);
            case Kind::kMembers:
                return members(word);
            default:
                return word;
        }
    }

    const Form& form_;
    const Defaults& defaults_;
    std::string_view command_;
    Json args_ = Json::object();
};

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

void Request::append_line(std::string& out, bool if_ok) const {
    // What is no UTF-8 gets a replacement here, and so an answer that shows it.
    const auto text = [](const Json& value) {
        return value.dump(-1, ' ', false, Json::error_handler_t::replace);
    };
    // A command of an object of a later release is the user's word.
    const bool plain =
        std::ranges::all_of(command, [](char c) { return c == '_' || (c >= 'a' && c <= 'z'); });
    out += R"({"object":")";
    out += object;
    out += R"(","command":)";
    out += plain ? '"' + command + '"' : text(command);
    if (!netns.empty()) {
        out += R"(,"netns":)";
        out += text(netns);
    }
    out += if_ok ? R"(,"if_ok":true,"args":)" : R"(,"args":)";
    out += text(args);
    out += "}\n";
}

std::expected<Words, std::string> take_options(Words words, Defaults& defaults) {
    while (!words.empty() && words[0].size() > 1 && words[0][0] == '-') {
        const std::string& option = words[0];
        if (option == "-4" || option == "-6") {
            defaults.family = option == "-4" ? "ipv4" : "ipv6";
        } else if (is_one_of(option, "-n|-netns|--netns") && words.size() > 1) {
            defaults.netns = words[1];
            words = words.subspan(1);
        } else {
            return wrong("option \"{}\": a line may begin with -n NETNS, -4 or -6", option);
        }
        words = words.subspan(1);
    }
    return words;
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
    if (std::ranges::find(forms(), object, &Form::object) == forms().end()) {
        return request;  // of a later release: the daemon says so
    }
    const Form* form = form_of(object, request.command);
    if (form == nullptr) {
        return wrong(
            "{} has no command \"{}\"; it has {}", object, request.command, known_commands(object));
    }
    Parser parser(*form, defaults);
    auto args = parser.parse(words.subspan(std::min(words.size(), 2UZ)));
    if (!args) {
        return std::unexpected(std::move(args.error()));
    }
    request.command = parser.command().empty() ? form->command : parser.command();
    request.args = *std::move(args);
    if (form->family && !defaults.family.empty()) {
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

std::string command_summary(std::string_view word) {
    const std::string_view only = object_of(word);
    std::string text;
    for (const Form& form : forms()) {
        if (!word.empty() && form.object != only) {
            continue;
        }
        text += fmt::format(
            "  {} {}{}{}\n", form.object, form.command, form.usage.empty() ? "" : " ", form.usage);
    }
    return text;
}

}  // namespace sluicectl
