// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "config/model.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_table.h"
#include "net/address.h"

namespace sluice::control {
namespace {

constexpr std::array<std::string_view, 5> kTypes{
    "unicast", "blackhole", "unreachable", "prohibit", "local"};

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}
template <class T>
Json text_or_null(const std::optional<T>& value) {
    return value ? Json(value->to_string()) : Json();
}

std::string quoted_or_null(const std::string& text) {
    return text.empty() ? "null" : dump(Json(text));
}

/// Written out, not by way of a Json: a full table has a million of these, and one costs 1.9 µs of
/// the control thread this way instead of 7.0.
void append_route(std::string& out, const RouteInfo& route) {
    fmt::format_to(
        std::back_inserter(out),
        R"({{"prefix":"{}","family":"{}","type":"{}","via":{},"dev":{},"metric":{},"mtu":{},)"
        R"("owner":"{}","on_link":{},"active":{}}})",
        route.prefix.to_string(),
        net::to_string(route.prefix.family()),
        route.type,
        quoted_or_null(route.via ? route.via->to_string() : ""),
        quoted_or_null(route.dev),
        route.metric,
        route.mtu != 0 ? fmt::format_int(route.mtu).c_str() : "null",
        to_string(route.owner),
        route.on_link,
        route.active);
}

/// As Linux splits them, which is what people expect to see under these names.
enum class Tables : std::uint8_t { kMain, kLocal, kAll };

struct RouteFilter {
    Tables tables = Tables::kMain;
    std::optional<net::Family> family;

    bool takes(const RouteInfo& route) const noexcept {
        const bool local = route.type == "local" || route.type == "broadcast";
        return (tables == Tables::kAll || local == (tables == Tables::kLocal)) &&
               (!family || route.prefix.family() == *family);
    }
};

Result<Body> route_show(Context& context, Args& args) {
    RouteFilter filter{.family = args.family("family")};
    const std::string table = args.table();
    if (table != "main" && table != "local" && table != "all") {
        args.refuse({ErrorCode::kInvalid,
                     fmt::format("table \"{:.80}\": must be main, local or all", table)});
    }
    if (args.error()) {
        return refused(args);
    }
    filter.tables = table == "all"     ? Tables::kAll
                    : table == "local" ? Tables::kLocal
                                       : Tables::kMain;
    // A full table takes seconds to print: it is read on in each slice, from where it was left.
    return Body{.head = "[",
                .rows =
                    [&controller = context.controller,
                     filter,
                     last = std::optional<net::IpPrefix>(),
                     first = true](std::string& out) mutable {
                        last = controller.routes_after(
                            last, kRowsInSlice, [&](const RouteInfo& route) {
                                if (filter.takes(route)) {
                                    out += std::exchange(first, false) ? "" : ",";
                                    append_route(out, route);
                                }
                            });
                        return last.has_value();
                    },
                .tail = "]"};
}

std::optional<Error> what_is_wrong_with(const RouteRequest& route) {
    const auto wrong = [&](std::string_view what) {
        return Error{ErrorCode::kInvalid,
                     fmt::format("route {}: {}", route.prefix.to_string(), what)};
    };
    if (std::ranges::find(kTypes, route.type) == kTypes.end()) {
        return wrong(
            fmt::format("type \"{:.80}\": must be one of {}", route.type, fmt::join(kTypes, ", ")));
    }
    const bool unicast = route.type == "unicast";
    if (!unicast && (route.via || route.on_link || (!route.dev.empty() && route.type != "local"))) {
        return wrong(fmt::format("a route of type {} has no gateway or device", route.type));
    }
    if (route.via && route.via->family() != route.prefix.family()) {
        return wrong(fmt::format("via {} is of the other family", route.via->to_string()));
    }
    if (route.on_link && (!route.via || route.dev.empty())) {
        return wrong("on_link is said of a gateway (via) on a device (dev)");
    }
    return std::nullopt;
}

RouteRequest read_route(Args& args) {
    RouteRequest route;
    route.type = args.text("type").value_or(route.type);
    route.via = args.address("via");
    route.dev = args.text("dev").value_or("");
    route.metric = args.integer<std::uint32_t>("metric");
    route.mtu = args.integer<std::uint16_t>("mtu", config::kMinMtu, config::kMaxMtu).value_or(0);
    route.on_link = args.flag("on_link").value_or(false);
    route.owner = RouteOwner::kCli;
    route.prefix = args.prefix();
    if (const std::string table = args.table(); table != "main") {
        args.refuse({ErrorCode::kUnsupported,
                     fmt::format("not built yet: table \"{:.80}\" of a route", table)});
    }
    if (!args.error()) {
        if (auto wrong = what_is_wrong_with(route)) {
            args.refuse(*std::move(wrong));
        }
    }
    return route;
}

Result<Body> change_route(Context& context, Args& args, RouteMode mode) {
    const RouteRequest route = read_route(args);
    if (route.type == "unicast" && !route.via && route.dev.empty()) {
        args.refuse({ErrorCode::kInvalid,
                     fmt::format("route {}: give a gateway (via), a device (dev) or a type",
                                 route.prefix.to_string())});
    }
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.add_route(route, mode));
}

Result<Body> route_add(Context& context, Args& args) {
    return change_route(context, args, RouteMode::kAdd);
}
Result<Body> route_replace(Context& context, Args& args) {
    return change_route(context, args, RouteMode::kReplace);
}

Result<Body> route_del(Context& context, Args& args) {
    const RouteRequest route = read_route(args);
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.delete_route(route));
}

Result<Body> route_get(Context& context, Args& args) {
    const auto address = args.need("address", args.address("address"));
    if (args.error()) {
        return refused(args);
    }
    const RouteLookup found = context.controller.lookup_route(address);
    return Body::of({{"address", address.to_string()},
                     {"type", found.type},
                     {"prefix", text_or_null(found.prefix)},
                     {"via", text_or_null(found.via)},
                     {"dev", text_or_null(found.dev)},
                     {"source", text_or_null(found.source)},
                     {"mtu", found.mtu != 0 ? Json(found.mtu) : Json()}});
}

Result<Body> route_flush(Context& context, Args& /*args*/) {
    return Body::of({{"removed", context.controller.flush_routes(RouteOwner::kCli)}});
}

}  // namespace

std::span<const Command> route_commands() {
    static const std::vector<std::string_view> kRouteArgs{
        "prefix", "type", "via", "dev", "metric", "mtu", "on_link", "table", "family"};
    static const std::array<Command, 6> kCommands{{
        {"route", "show", {"family", "table"}, route_show},
        {"route", "add", kRouteArgs, route_add},
        {"route", "replace", kRouteArgs, route_replace},
        {"route", "del", kRouteArgs, route_del},
        {"route", "get", {"address"}, route_get},
        {"route", "flush", {}, route_flush},
    }};
    return kCommands;
}

}  // namespace sluice::control
