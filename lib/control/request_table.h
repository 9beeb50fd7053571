// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_json.h"
#include "control/requests.h"

/// Inside of control/requests: what the files with the commands share.
namespace sluice::control {

/// A result as JSON text: head, rows as they are made, tail.
struct Body {
    std::string head = "null";
    std::move_only_function<bool(std::string& out)> rows{};  // false after the last slice
    std::string tail{};
    std::move_only_function<bool()> ready{};  // Reply::ready

    static Body of(const Json& value) { return {.head = dump(value)}; }
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
template <class T, class ToJson>
Result<Body> array_of(Result<std::vector<T>>&& items, ToJson to_json) {
    if (!items) {
        return std::unexpected(std::move(items.error()));
    }
    return array_of(*std::move(items), std::move(to_json));
}

struct Context {
    Controller& controller;
    const Identity& identity;
    const std::string& netns;
    bool netns_given;  // else it is "default"
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
/// The same, answered when nothing of the change is under way any more.
Result<Body> settled(Context& context, const Result<Ticket>& ticket);
/// {"removed": ...}, when all of it is.
Result<Body> removed(Context& context, const Result<Flush>& flush);
inline std::unexpected<Error> refused(const Args& args) {
    return std::unexpected(*args.error());
}

inline Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}
template <class T>
Json text_or_null(const std::optional<T>& value) {
    return value ? Json(value->to_string()) : Json();
}
template <class T>
Json number_or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json();
}

bool netns_exists(const Controller& controller, std::string_view netns);
std::unexpected<Error> no_netns(std::string_view netns);
/// By `table`, or by the VRF that `vrf` names; nothing when neither is given.
std::optional<std::uint32_t> table_or_vrf(Context& context, Args& args);

std::span<const Command> link_commands();      // requests_link.cc: link, addr
std::span<const Command> neighbor_commands();  // requests_neighbor.cc: neigh
std::span<const Command> route_commands();     // requests_route.cc: route
std::span<const Command> nexthop_commands();   // requests_nexthop.cc: nexthop
std::span<const Command> rule_commands();      // requests_rule.cc: rule
std::span<const Command> netns_commands();     // requests_netns.cc: netns, vrf
std::span<const Command> cache_commands();     // requests_cache.cc: cache, uncached
std::span<const Command> stats_commands();     // requests_stats.cc: stats
std::span<const Command> instance_commands();  // requests_instance.cc: config, version

}  // namespace sluice::control
