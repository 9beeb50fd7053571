// SPDX-License-Identifier: BSD-3-Clause
#include "control/requests.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_json.h"
#include "control/request_table.h"
#include "control/server.h"

namespace sluice::control {
namespace {

/// Of interface.md's table, what a later release brings.
constexpr std::array<std::string_view, 2> kObjectsToCome{"trace", "capture"};

struct Request {
    std::string object;
    std::string command;
    std::string netns;
    bool if_ok = false;
    Json args = Json::object();
};

constexpr std::string_view kForm =
    R"(a request is {"id": ..., "object": "route", "command": "show", "args": {...}})";

Result<void> take(const std::string& key, Json& value, Request& request) {
    if (key == "id") {
        return {};
    }
    if (key == "args") {
        if (!value.is_object()) {
            return fail(ErrorCode::kInvalid, "args must be an object");
        }
        request.args = std::move(value);
        return {};
    }
    if (key == "if_ok") {
        if (!value.is_boolean()) {
            return fail(ErrorCode::kInvalid, "if_ok must be true or false");
        }
        request.if_ok = value.get<bool>();
        return {};
    }
    std::string* const into = key == "object"    ? &request.object
                              : key == "command" ? &request.command
                              : key == "netns"   ? &request.netns
                                                 : nullptr;
    if (into == nullptr) {
        return fail(ErrorCode::kInvalid, "unknown key \"{:.80}\"; {}", key, kForm);
    }
    auto* const text = value.get_ptr<std::string*>();
    if (text == nullptr) {
        return fail(ErrorCode::kInvalid, "{} must be a string", key);
    }
    if (text->empty() && key == "netns") {
        return fail(ErrorCode::kInvalid, "netns must not be empty");
    }
    *into = std::move(*text);
    return {};
}

/// What the envelope says; `id` is set as soon as it is known.
Result<Request> read(Json message, Json& id) {
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
    for (auto& [key, value] : message.get_ref<Json::object_t&>()) {
        if (auto taken = take(key, value, request); !taken) {
            return std::unexpected(std::move(taken.error()));
        }
    }
    if (request.object.empty() || request.command.empty()) {
        return fail(ErrorCode::kInvalid,
                    "{} is missing; {}",
                    request.object.empty() ? "object" : "command",
                    kForm);
    }
    return request;
}

std::array<std::span<const Command>, 9> all_commands() {
    return {link_commands(),
            neighbor_commands(),
            route_commands(),
            nexthop_commands(),
            rule_commands(),
            netns_commands(),
            cache_commands(),
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

Result<void> check_args(const Command& command, const Json& args) {
    for (const auto& item : args.items()) {
        if (std::ranges::find(command.args, item.key()) != command.args.end()) {
            continue;
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

Result<Body> run(std::string_view line,
                 bool after_failure,
                 Json& id,
                 Controller& controller,
                 const Identity& identity) {
    auto message = parse_line(line);
    if (!message) {
        return std::unexpected(std::move(message.error()));
    }
    auto request = read(*std::move(message), id);
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
    if (auto checked = check_args(**command, request->args); !checked) {
        return std::unexpected(std::move(checked.error()));
    }
    static const std::string kDefault = "default";
    const bool netns_given = !request->netns.empty();
    Context context{.controller = controller,
                    .identity = identity,
                    .netns = netns_given ? request->netns : kDefault,
                    .netns_given = netns_given};
    Args args(request->args);
    return (*command)->run(context, args);
}

std::string error_line(const Json& id, const Error& error) {
    Json answer;
    answer["id"] = id;
    answer["ok"] = false;
    answer["error"] = {{"code", to_string(error.code)}, {"message", error.message}};
    return dump(answer);
}

Reply reply_of(const Json& id, Body body) {
    Reply reply;
    reply.ready = std::move(body.ready);
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

Result<Body> settled(Context& context, const Result<Ticket>& ticket) {
    if (!ticket) {
        return std::unexpected(ticket.error());
    }
    return Body{.ready = [&controller = context.controller, ticket = *ticket] {
        return controller.settled(ticket);
    }};
}

Result<Body> removed(const Result<std::size_t>& count) {
    if (!count) {
        return std::unexpected(count.error());
    }
    return Body::of({{"removed", *count}});
}

Requests::Requests(Controller& controller, Identity identity)
    : controller_(controller), identity_(std::move(identity)) {}

Reply Requests::handle(std::string_view line, bool after_failure) {
    Json id;
    try {
        auto body = run(line, after_failure, id, controller_, identity_);
        if (body) {
            return reply_of(id, *std::move(body));
        }
        return {.text = error_line(id, body.error()), .failed = true};
    } catch (const std::exception& exception) {
        // Out of memory, most likely; the daemon goes on without this request.
        return {.text = error_line(id, {ErrorCode::kInternal, exception.what()}), .failed = true};
    }
}

std::string Requests::refusal(const Error& error) {
    return error_line(Json{}, error);
}

}  // namespace sluice::control
