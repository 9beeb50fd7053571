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
#include "control/request_value.h"
#include "control/server.h"

namespace sluice::control {
namespace {

/// Of interface.md's table, what a later release brings.
constexpr std::array<std::string_view, 2> kObjectsToCome{"trace", "capture"};

/// Views of the line.
struct Request {
    std::string_view object;
    std::string_view command;
    std::string_view netns;
    bool if_ok = false;
    const Value* args = nullptr;
};

constexpr std::string_view kForm =
    R"(a request is {"id": ..., "object": "route", "command": "show", "args": {...}})";

Result<void> take(const Value& value, Request& request) {
    using enum Value::Kind;
    const std::string_view key = value.key();
    if (key == "id") {
        return {};
    }
    if (key == "args") {
        if (!value.is(kObject)) {
            return fail(ErrorCode::kInvalid, "args must be an object");
        }
        request.args = &value;
        return {};
    }
    if (key == "if_ok") {
        if (!value.is(kBool)) {
            return fail(ErrorCode::kInvalid, "if_ok must be true or false");
        }
        request.if_ok = value.truth();
        return {};
    }
    std::string_view* const into = key == "object"    ? &request.object
                                   : key == "command" ? &request.command
                                   : key == "netns"   ? &request.netns
                                                      : nullptr;
    if (into == nullptr) {
        return fail(ErrorCode::kInvalid, "unknown key \"{:.80}\"; {}", key, kForm);
    }
    if (!value.is(kString)) {
        return fail(ErrorCode::kInvalid, "{} must be a string", key);
    }
    if (value.text().empty() && key == "netns") {
        return fail(ErrorCode::kInvalid, "netns must not be empty");
    }
    *into = value.text();
    return {};
}

/// What the envelope says; `id` is set as soon as it is known.
Result<Request> read(const Value& message, std::string& id) {
    using enum Value::Kind;
    if (!message.is(kObject)) {
        return fail(ErrorCode::kInvalid, "{}, not {}", kForm, message.kind_name());
    }
    if (const Value* own = message.find("id"); own != nullptr) {
        if (own->is(kFraction) || own->is(kBool) || own->is(kArray) || own->is(kObject)) {
            return fail(ErrorCode::kInvalid, "id must be a string, an integer or null");
        }
        id = own->json();
    }
    Request request;
    for (const Value& value : message) {
        if (auto taken = take(value, request); !taken) {
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

Result<void> check_args(const Command& command, const Value& args) {
    for (const Value& item : args) {
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

std::string error_line(std::string_view id, const Error& error) {
    return fmt::format(R"({{"id":{},"ok":false,"error":{{"code":"{}","message":{}}}}})",
                       id,
                       to_string(error.code),
                       dump(Json(error.message)));
}

Reply reply_of(std::string_view id, Body body) {
    Reply reply;
    reply.ready = std::move(body.ready);
    reply.text = fmt::format(R"({{"id":{},"ok":true,"result":{})", id, body.head);
    if (!body.rows) {
        reply.text += body.tail;
        reply.text += '}';
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

Result<Body> removed(Context& context, const Result<Flush>& flush) {
    if (!flush) {
        return std::unexpected(flush.error());
    }
    return Body{.head = R"({"removed":)",
                .rows =
                    [removed = flush->removed](std::string& out) {
                        out += fmt::format_int(*removed).c_str();
                        return false;
                    },
                .tail = "}",
                .ready = [&controller = context.controller,
                          ticket = flush->ticket] { return controller.settled(ticket); }};
}

Requests::Requests(Controller& controller, Identity identity)
    : controller_(controller), identity_(std::move(identity)) {}

Result<Body> Requests::run(std::string_view line, bool after_failure, std::string& id) {
    if (auto read = document_.parse(line); !read) {
        return std::unexpected(std::move(read.error()));
    }
    const auto request = read(document_.root(), id);
    if (!request) {
        return std::unexpected(request.error());
    }
    if (request->if_ok && after_failure) {
        return fail(ErrorCode::kInvalid, "skipped: the request before it failed");
    }
    // Requests come in runs of one kind.
    if (last_ == nullptr || last_->object != request->object || last_->name != request->command) {
        const auto command = find_command(*request);
        if (!command) {
            return std::unexpected(command.error());
        }
        last_ = *command;
    }
    static const Value kNone;
    const Value& given = request->args != nullptr ? *request->args : kNone;
    if (auto checked = check_args(*last_, given); !checked) {
        return std::unexpected(std::move(checked.error()));
    }
    const bool netns_given = !request->netns.empty();
    const std::string netns(netns_given ? request->netns : "default");
    Context context{.controller = controller_,
                    .identity = identity_,
                    .netns = netns,
                    .netns_given = netns_given};
    Args args(given);
    return last_->run(context, args);
}

Reply Requests::handle(std::string_view line, bool after_failure) {
    std::string id = "null";
    try {
        auto body = run(line, after_failure, id);
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
    return error_line("null", error);
}

}  // namespace sluice::control
