// SPDX-License-Identifier: BSD-3-Clause
#include "control/requests.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_table.h"
#include "control/server.h"

namespace sluice::control {
namespace {

using nlohmann::json;

constexpr int kDeepest = 4;
constexpr std::size_t kMostKeys = 32;

/// Of interface.md's table, what a later release brings.
constexpr std::array<std::string_view, 7> kObjectsToCome{
    "nexthop", "rule", "netns", "cache", "uncached", "trace", "capture"};
struct ArgToCome {
    std::string_view object;
    std::string_view command;
    std::string_view arg;
};
constexpr std::array<ArgToCome, 8> kArgsToCome{{
    {"link", "set", "netns"},
    {"link", "set", "vrf"},
    {"route", "add", "nexthop"},
    {"route", "replace", "nexthop"},
    {"route", "del", "nexthop"},
    {"route", "get", "from"},
    {"route", "get", "iif"},
    {"route", "get", "dscp"},
}};

struct TooMuch {
    std::string what;
};

/// Bounds what a line can cost before it costs it, and finds keys that stand there twice (the
/// library keeps the last one silently).
class Guard {
public:
    bool operator()(int depth, json::parse_event_t event, json& parsed) {
        using enum json::parse_event_t;
        if ((event == object_start || event == array_start) && depth >= kDeepest) {
            throw TooMuch{fmt::format("nested deeper than {}", kDeepest)};
        }
        const auto level = static_cast<std::size_t>(depth);
        if (event == object_start) {
            keys_[level].clear();
        } else if (event == key) {
            add(keys_[level - 1], parsed.get_ref<const std::string&>());
        }
        return true;
    }

private:
    static void add(std::vector<std::string>& keys, const std::string& key) {
        if (std::ranges::find(keys, key) != keys.end()) {
            throw TooMuch{fmt::format("key \"{}\" stands there twice", key)};
        }
        if (keys.size() == kMostKeys) {
            throw TooMuch{fmt::format("more than {} keys in an object", kMostKeys)};
        }
        keys.push_back(key);
    }

    std::array<std::vector<std::string>, kDeepest> keys_;
};

Result<json> parse(std::string_view line) {
    try {
        return json::parse(line, Guard{});
    } catch (const TooMuch& bound) {
        return fail(ErrorCode::kInvalid, "request: {}", bound.what);
    } catch (const json::parse_error& error) {
        std::string_view what = error.what();
        const std::size_t detail = what.find(": syntax error while parsing ");
        what.remove_prefix(detail == std::string_view::npos
                               ? std::min(what.size(), what.find("] ") + 2)
                               : detail + 2);
        return fail(ErrorCode::kInvalid, "request is not JSON: byte {}: {}", error.byte, what);
    }
}

struct Request {
    std::string object;
    std::string command;
    std::string netns = "default";
    bool if_ok = false;
    json args = json::object();
};

/// What the envelope says; `id` is set as soon as it is known.
Result<Request> read(json message, json& id) {
    constexpr std::string_view kForm =
        R"(a request is {"id": ..., "object": "route", "command": "show", "args": {...}})";
    if (!message.is_object()) {
        return fail(ErrorCode::kInvalid, "{}, not {}", kForm, message.type_name());
    }
    if (const auto at = message.find("id"); at != message.end()) {
        if (!at->is_null() && !at->is_string() && !at->is_number_integer()) {
            return fail(ErrorCode::kInvalid, "id must be a string, an integer or null");
        }
        id = *at;
    }
    Request request;
    for (auto& [key, value] : message.items()) {
        if (key == "args") {
            if (!value.is_object()) {
                return fail(ErrorCode::kInvalid, "args must be an object");
            }
            request.args = std::move(value);
            continue;
        }
        std::string* const into = key == "object"    ? &request.object
                                  : key == "command" ? &request.command
                                  : key == "netns"   ? &request.netns
                                                     : nullptr;
        if (key == "id") {
            continue;
        }
        if (key == "if_ok") {
            if (!value.is_boolean()) {
                return fail(ErrorCode::kInvalid, "if_ok must be true or false");
            }
            request.if_ok = value.get<bool>();
            continue;
        }
        if (into == nullptr) {
            return fail(ErrorCode::kInvalid, "unknown key \"{:.80}\"; {}", key, kForm);
        }
        if (!value.is_string()) {
            return fail(ErrorCode::kInvalid, "{} must be a string", key);
        }
        *into = value.get<std::string>();
    }
    if (request.object.empty() || request.command.empty()) {
        return fail(ErrorCode::kInvalid,
                    "{} is missing; {}",
                    request.object.empty() ? "object" : "command",
                    kForm);
    }
    return request;
}

std::array<std::span<const Command>, 5> all_commands() {
    return {link_commands(),
            neighbor_commands(),
            route_commands(),
            stats_commands(),
            instance_commands()};
}

std::unexpected<Error> no_such_command(const Request& request) {
    std::vector<std::string_view> objects;
    std::vector<std::string_view> names;
    for (const auto group : all_commands()) {
        for (const Command& command : group) {
            if (std::ranges::find(objects, command.object) == objects.end()) {
                objects.push_back(command.object);
            }
            if (command.object == request.object) {
                names.push_back(command.name);
            }
        }
    }
    if (std::ranges::find(kObjectsToCome, request.object) != kObjectsToCome.end()) {
        return fail(ErrorCode::kUnsupported, "not built yet: {}", request.object);
    }
    if (request.object == "config" && request.command == "check") {
        return fail(ErrorCode::kUnsupported,
                    "config check needs no daemon: run sluice --check FILE");
    }
    if (names.empty()) {
        return fail(ErrorCode::kInvalid,
                    "unknown object \"{:.80}\"; there are {}",
                    request.object,
                    fmt::join(objects, ", "));
    }
    return fail(ErrorCode::kInvalid,
                "{} has no command \"{:.80}\"; it has {}",
                request.object,
                request.command,
                fmt::join(names, ", "));
}

Result<const Command*> find_command(const Request& request) {
    for (const auto group : all_commands()) {
        for (const Command& command : group) {
            if (command.object == request.object && command.name == request.command) {
                return &command;
            }
        }
    }
    return no_such_command(request);
}

Result<void> check_args(const Command& command, const json& args) {
    for (const auto& item : args.items()) {
        if (std::ranges::find(command.args, item.key()) != command.args.end()) {
            continue;
        }
        const bool to_come = std::ranges::any_of(kArgsToCome, [&](const ArgToCome& row) {
            return row.object == command.object && row.command == command.name &&
                   row.arg == item.key();
        });
        if (to_come) {
            return fail(ErrorCode::kUnsupported,
                        "not built yet: {} of {} {}",
                        item.key(),
                        command.object,
                        command.name);
        }
        return fail(
            ErrorCode::kInvalid,
            "{} {} has no argument \"{:.80}\"; it has {}",
            command.object,
            command.name,
            item.key(),
            command.args.empty() ? "none" : fmt::format("{}", fmt::join(command.args, ", ")));
    }
    return {};
}

Result<Body> run(std::string_view line, bool after_failure, json& id, Context& context) {
    auto message = parse(line);
    if (!message) {
        return std::unexpected(std::move(message.error()));
    }
    const auto request = read(*std::move(message), id);
    if (!request) {
        return std::unexpected(request.error());
    }
    if (request->if_ok && after_failure) {
        return fail(ErrorCode::kInvalid, "skipped: the request before it failed");
    }
    const auto command = find_command(*request);
    if (!command) {
        return std::unexpected(command.error());
    }
    if (request->netns != "default") {
        return fail(ErrorCode::kUnsupported,
                    "not built yet: netns \"{:.80}\"; there is only \"default\"",
                    request->netns);
    }
    if (auto checked = check_args(**command, request->args); !checked) {
        return std::unexpected(std::move(checked.error()));
    }
    Args args(request->args);
    return (*command)->run(context, args);
}

std::string error_line(const json& id, const Error& error) {
    Json answer;
    answer["id"] = id;
    answer["ok"] = false;
    answer["error"] = {{"code", to_string(error.code)}, {"message", error.message}};
    return dump(answer);
}

Reply reply_of(const json& id, Body body) {
    Reply reply;
    reply.text = fmt::format(R"({{"id":{},"ok":true,"result":{})", id.dump(), body.head);
    if (!body.rows) {
        reply.text += body.tail + '}';
        return reply;
    }
    reply.more = [rows = std::move(body.rows), end = body.tail + '}'](std::string& out) mutable {
        if (rows(out)) {
            return true;
        }
        out += end;
        return false;
    };
    return reply;
}

}  // namespace

Requests::Requests(Controller& controller, Identity identity)
    : controller_(controller), identity_(std::move(identity)) {}

Reply Requests::handle(std::string_view line, bool after_failure) {
    json id;
    try {
        Context context{controller_, identity_};
        auto body = run(line, after_failure, id, context);
        if (body) {
            return reply_of(id, *std::move(body));
        }
        return {.text = error_line(id, body.error()), .more = {}, .failed = true};
    } catch (const std::exception& exception) {
        // Out of memory, most likely; the daemon goes on without this request.
        return {.text = error_line(id, {ErrorCode::kInternal, exception.what()}),
                .more = {},
                .failed = true};
    }
}

std::string Requests::refusal(const Error& error) {
    return error_line(json{}, error);
}

}  // namespace sluice::control
