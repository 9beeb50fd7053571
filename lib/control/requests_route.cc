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
#include "control/route_labels.h"
#include "net/address.h"

namespace sluice::control {
namespace {

constexpr std::array<std::string_view, 5> kTypes{
    "unicast", "blackhole", "unreachable", "prohibit", "local"};

std::string quoted_or_null(const std::string& text) {
    return text.empty() ? "null" : dump(Json(text));
}

std::string legs_text(const std::vector<RouteLeg>& legs) {
    if (legs.empty()) {
        return "null";
    }
    std::string text = "[";
    for (const RouteLeg& leg : legs) {
        fmt::format_to(std::back_inserter(text),
                       R"({}{{"via":{},"dev":{},"weight":{},"on_link":{},"active":{}}})",
                       text.size() == 1 ? "" : ",",
                       quoted_or_null(leg.via ? leg.via->to_string() : ""),
                       quoted_or_null(leg.dev),
                       leg.weight,
                       leg.on_link,
                       leg.active);
    }
    return text + "]";
}

/// Written out, not by way of a Json: a full table has a million of these, and one costs 1.9 µs of
/// the control thread this way instead of 7.0.
void append_route(std::string& out, const RouteInfo& route) {
    fmt::format_to(
        std::back_inserter(out),
        R"({{"prefix":"{}","family":"{}","type":"{}","via":{},"dev":{},"metric":{},"mtu":{},)"
        R"("owner":"{}","on_link":{},"active":{},"table":{},"nexthop":{},"nexthops":{},)"
        R"("protocol":"{}"}})",
        route.prefix.to_string(),
        net::to_string(route.prefix.family()),
        route.type,
        quoted_or_null(route.via ? route.via->to_string() : ""),
        quoted_or_null(route.dev),
        route.metric,
        route.mtu != 0 ? fmt::format_int(route.mtu).c_str() : "null",
        to_string(route.owner),
        route.on_link,
        route.active,
        route.table,
        route.nexthop ? fmt::format_int(*route.nexthop).c_str() : "null",
        legs_text(route.legs),
        protocol_name(protocol_of(route.protocol, route.owner)));
}

/// Of the main table's routes; as Linux splits them, which is what people expect to see under these
/// names.
enum class Part : std::uint8_t { kAll, kMain, kLocal };

struct Shown {
    Part part = Part::kAll;
    std::optional<net::Family> family;
    std::optional<std::uint8_t> protocol;

    bool takes(const RouteInfo& route) const noexcept {
        const bool local = route.type == "local" || route.type == "broadcast";
        return (part == Part::kAll || local == (part == Part::kLocal)) &&
               (!family || route.prefix.family() == *family) &&
               (!protocol || protocol_of(route.protocol, route.owner) == *protocol);
    }
};

/// Which tables `route show` reads, and what of them.
std::vector<std::uint32_t> read_tables(Context& context, Args& args, Shown& filter) {
    filter.family = args.family("family");
    filter.protocol = args.route_protocol("protocol");
    if (args.is("table", "all")) {
        const auto tables = context.controller.tables(context.netns);
        if (!tables) {
            args.refuse(tables.error());
        }
        return tables.value_or(std::vector<std::uint32_t>());
    }
    if (args.is("table", "local")) {
        filter.part = Part::kLocal;
        return {config::kMainTable};
    }
    const std::uint32_t table = table_or_vrf(context, args).value_or(config::kMainTable);
    filter.part = table == config::kMainTable ? Part::kMain : Part::kAll;
    return {table};
}

Result<Body> route_show(Context& context, Args& args) {
    Shown filter;
    std::vector<std::uint32_t> tables = read_tables(context, args, filter);
    if (!args.error() && !netns_exists(context.controller, context.netns)) {
        return no_netns(context.netns);
    }
    if (args.error()) {
        return refused(args);
    }
    // A full table takes seconds to print: it is read on in each slice, from where it was left.
    return Body{.head = "[",
                .rows =
                    [&controller = context.controller,
                     netns = context.netns,
                     filter,
                     tables = std::move(tables),
                     at = 0UZ,
                     last = std::optional<net::IpPrefix>(),
                     first = true](std::string& out) mutable {
                        if (at == tables.size()) {
                            return false;
                        }
                        last = controller.routes_after(
                            netns, tables[at], last, kRowsInSlice, [&](const RouteInfo& route) {
                                if (filter.takes(route)) {
                                    out += std::exchange(first, false) ? "" : ",";
                                    append_route(out, route);
                                }
                            });
                        at += last ? 0 : 1;
                        return at < tables.size();
                    },
                .tail = "]"};
}

Json exception_json(const ExceptionInfo& exception) {
    return {{"destination", exception.destination.to_string()},
            {"family", net::to_string(exception.destination.family())},
            {"vrf", text_or_null(exception.domain)},
            {"dev", text_or_null(exception.dev)},
            {"via", text_or_null(exception.via)},
            {"mtu", exception.mtu != 0 ? Json(exception.mtu) : Json()},
            {"expires_s", exception.expires_s}};
}

Result<Body> route_exceptions(Context& context, Args& args) {
    const auto family = args.family("family");
    if (args.error()) {
        return refused(args);
    }
    auto exceptions = context.controller.exceptions(context.netns);
    if (exceptions && family) {
        std::erase_if(*exceptions, [&](const ExceptionInfo& exception) {
            return exception.destination.family() != *family;
        });
    }
    return array_of(std::move(exceptions), exception_json);
}

Result<Body> route_flush_exceptions(Context& context, Args& /*args*/) {
    return removed(context, context.controller.flush_exceptions(context.netns));
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
    if (route.via && route.via->is_v4() && !route.prefix.is_v4()) {
        return wrong(
            fmt::format("via {}: an IPv6 route has an IPv6 gateway", route.via->to_string()));
    }
    if (route.nexthop && (!unicast || route.via || !route.dev.empty() || route.mtu != 0)) {
        return wrong("nexthop stands in place of type, via, dev, on_link and mtu");
    }
    if (!route.legs.empty() && (!unicast || route.via || !route.dev.empty() || route.nexthop)) {
        return wrong("nexthops stand in place of type, via, dev, on_link and nexthop");
    }
    if (route.on_link && (!route.via || route.dev.empty())) {
        return wrong("on_link is said of a gateway (via) on a device (dev)");
    }
    return std::nullopt;
}

/// [{"via": "10.0.0.2", "weight": 2}, ...]
std::vector<RouteLeg> read_legs(Args& args) {
    static constexpr std::array<std::string_view, 4> kKeys{"via", "dev", "weight", "on_link"};
    constexpr std::uint32_t kMaxWeight = 256;
    std::vector<RouteLeg> legs;
    const Value* const entries = args.objects("nexthops", kKeys);
    if (entries == nullptr) {
        return legs;
    }
    for (const Value& entry : *entries) {
        Args leg(entry);
        legs.push_back({.via = leg.address("via"),
                        .dev = leg.text("dev").value_or(""),
                        .on_link = leg.flag("on_link").value_or(false),
                        .weight = leg.integer<std::uint32_t>("weight", 1, kMaxWeight).value_or(1)});
        if (!leg.error() && !legs.back().via && legs.back().dev.empty()) {
            leg.refuse("give a gateway (via), a device (dev) or both");
        }
        if (leg.error()) {
            args.refuse("nexthops: " + leg.error()->message);
        }
    }
    return legs;
}

/// One of several is a plain next hop.
void take_single(RouteRequest& route) {
    if (route.legs.size() == 1 && !route.via && route.dev.empty()) {
        const RouteLeg leg = std::exchange(route.legs, {}).front();
        route.via = leg.via;
        route.dev = leg.dev;
        route.on_link = leg.on_link;
    }
}

RouteRequest read_route(Context& context, Args& args) {
    static constexpr std::array<Choice<RouteScope>, 3> kScopes{{{"global", RouteScope::kGlobal},
                                                                {"link", RouteScope::kLink},
                                                                {"host", RouteScope::kHost}}};
    RouteRequest route;
    route.type = args.text("type").value_or(route.type);
    route.via = args.address("via");
    route.dev = args.text("dev").value_or("");
    route.nexthop = args.integer<std::uint32_t>("nexthop", 1);
    route.metric = args.integer<std::uint32_t>("metric");
    route.mtu = args.integer<std::uint16_t>("mtu", config::kMinMtu, config::kMaxMtu).value_or(0);
    route.on_link = args.flag("on_link").value_or(false);
    route.owner = RouteOwner::kCli;
    route.legs = read_legs(args);
    take_single(route);
    route.protocol = args.route_protocol("protocol").value_or(0);
    route.scope = args.choice<RouteScope>("scope", kScopes);
    route.prefix = args.prefix();
    route.table = table_or_vrf(context, args).value_or(config::kMainTable);
    if (!args.error()) {
        if (auto wrong = what_is_wrong_with(route)) {
            args.refuse(*std::move(wrong));
        }
    }
    return route;
}

Result<Body> change_route(Context& context, Args& args, RouteMode mode) {
    const RouteRequest route = read_route(context, args);
    if (route.type == "unicast" && !route.via && route.dev.empty() && !route.nexthop &&
        route.legs.empty()) {
        args.refuse(
            fmt::format("route {}: give a gateway (via), a device (dev), a nexthop or a type",
                        route.prefix.to_string()));
    }
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.add_route(context.netns, route, mode));
}

Result<Body> route_add(Context& context, Args& args) {
    return change_route(context, args, RouteMode::kAdd);
}
Result<Body> route_replace(Context& context, Args& args) {
    return change_route(context, args, RouteMode::kReplace);
}

Result<Body> route_del(Context& context, Args& args) {
    const RouteRequest route = read_route(context, args);
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.delete_route(context.netns, route));
}

Result<Body> route_get(Context& context, Args& args) {
    constexpr std::uint8_t kMaxDscp = 63;
    const RouteQuery query{
        .destination = args.need("address", args.address("address")),
        .from = args.address("from"),
        .iif = args.text("iif").value_or(""),
        .dscp = args.integer<std::uint8_t>("dscp", 0, kMaxDscp).value_or(0),
        .protocol = args.protocol("protocol").value_or(0),
        .source_port = args.integer<std::uint16_t>("source_port").value_or(0),
        .destination_port = args.integer<std::uint16_t>("destination_port").value_or(0),
    };
    if (query.from && query.from->family() != query.destination.family()) {
        args.refuse(fmt::format("from {} is of the other family", query.from->to_string()));
    }
    if (args.error()) {
        return refused(args);
    }
    const auto found = context.controller.lookup_route(context.netns, query);
    if (!found) {
        return std::unexpected(found.error());
    }
    return Body::of({{"address", query.destination.to_string()},
                     {"type", found->type},
                     {"prefix", text_or_null(found->prefix)},
                     {"via", text_or_null(found->via)},
                     {"dev", text_or_null(found->dev)},
                     {"source", text_or_null(found->source)},
                     {"mtu", found->mtu != 0 ? Json(found->mtu) : Json()},
                     {"nexthop", number_or_null(found->nexthop)},
                     {"member", number_or_null(found->member)},
                     {"table", found->table != 0 ? Json(found->table) : Json()}});
}

Result<Body> route_flush(Context& context, Args& args) {
    const auto protocol = args.route_protocol("protocol");
    if (args.error()) {
        return refused(args);
    }
    return removed(context,
                   context.controller.flush_routes(context.netns, {RouteOwner::kCli, protocol}));
}

}  // namespace

std::span<const Command> route_commands() {
    static const std::vector<std::string_view> kRouteArgs{"prefix",
                                                          "type",
                                                          "via",
                                                          "dev",
                                                          "nexthop",
                                                          "nexthops",
                                                          "protocol",
                                                          "scope",
                                                          "metric",
                                                          "mtu",
                                                          "on_link",
                                                          "table",
                                                          "vrf",
                                                          "family"};
    static const std::vector<std::string_view> kGetArgs{
        "address", "from", "iif", "dscp", "protocol", "source_port", "destination_port"};
    static const std::array<Command, 8> kCommands{{
        {"route", "show", {"family", "table", "vrf", "protocol"}, route_show},
        {"route", "add", kRouteArgs, route_add},
        {"route", "replace", kRouteArgs, route_replace},
        {"route", "del", kRouteArgs, route_del},
        {"route", "get", kGetArgs, route_get},
        {"route", "flush", {"protocol"}, route_flush},
        {"route", "exceptions", {"family"}, route_exceptions},
        {"route", "flush_exceptions", {}, route_flush_exceptions},
    }};
    return kCommands;
}

}  // namespace sluice::control
