// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/requests.h"

/// Inside of control/requests: what the files with the commands share.
namespace sluice::control {

using Json = nlohmann::ordered_json;  // answers keep the order of protocol.md

inline std::string dump(const Json& value) {
    // Replaces what is no UTF-8: a file name in a message may be anything.
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A result as JSON text: head, rows as they are made, tail.
struct Body {
    std::string head = "null";
    std::move_only_function<bool(std::string& out)> rows;  // false after the last slice
    std::string tail;

    static Body of(const Json& value) { return {.head = dump(value), .rows = {}, .tail = {}}; }
};

/// About 100 µs of work.
inline constexpr std::size_t kRowsInSlice = 64;

/// Rows of a result, one per item; `to_json` gets each once.
template <class T, class ToJson>
std::move_only_function<bool(std::string&)> rows_of(std::vector<T> items, ToJson to_json) {
    return [items = std::move(items), to_json = std::move(to_json), next = 0UZ](
               std::string& out) mutable {
        const std::size_t end = std::min(items.size(), next + kRowsInSlice);
        for (; next < end; ++next) {
            out += next == 0 ? "" : ",";
            out += dump(to_json(items[next]));
        }
        return next < items.size();
    };
}

template <class T, class ToJson>
Body array_of(std::vector<T> items, ToJson to_json) {
    return {.head = "[", .rows = rows_of(std::move(items), std::move(to_json)), .tail = "]"};
}

struct Context {
    Controller& controller;
    const Identity& identity;
};

struct Command {
    std::string_view object;
    std::string_view name;
    std::vector<std::string_view> args;  // that it takes
    Result<Body> (*run)(Context& context, Args& args);
};

/// A command that gives nothing back.
inline Result<Body> done(const Result<void>& result) {
    return result ? Result<Body>(Body{}) : std::unexpected(result.error());
}
inline std::unexpected<Error> refused(const Args& args) {
    return std::unexpected(*args.error());
}

bool link_exists(const Controller& controller, std::string_view name);

std::span<const Command> link_commands();      // requests_link.cc: link, addr
std::span<const Command> neighbor_commands();  // requests_neighbor.cc: neigh
std::span<const Command> route_commands();     // requests_route.cc: route
std::span<const Command> stats_commands();     // requests_stats.cc: stats
std::span<const Command> instance_commands();  // requests_instance.cc: config, version

}  // namespace sluice::control
