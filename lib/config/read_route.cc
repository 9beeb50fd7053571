// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <string>
#include <utility>

#include "config/read_parts.h"

namespace sluice::config {
namespace {

constexpr std::array<Choice<RouteType>, 5> kRouteTypes{{
    {"unicast", RouteType::kUnicast},
    {"blackhole", RouteType::kBlackhole},
    {"unreachable", RouteType::kUnreachable},
    {"prohibit", RouteType::kProhibit},
    {"local", RouteType::kLocal},
}};

constexpr std::array<Choice<net::Family>, 2> kFamilies{{
    {"ipv4", net::Family::kIpv4},
    {"ipv6", net::Family::kIpv6},
}};

/// A route being read, and what only its reading needs.
struct RouteDraft {
    Route route;
    bool has_to = false;
    bool is_default = false;
    std::optional<net::Family> family;
    std::string vrf;
    Position to_at;
    Position family_at;
    Position vrf_at;
};

/// Stands for the netdev, which a route with a next hop has not, until resolve_routes().
constexpr std::string_view kOpenFamily = "?";

void read_to(Reader& r, const Node& node, RouteDraft& draft) {
    draft.to_at = node.at;
    if (node.kind == Node::Kind::kScalar && node.text == "default") {
        draft.is_default = draft.has_to = true;
    } else {
        draft.has_to = r.parsed(node, draft.route.to, "192.0.2.0/24, \"2001:db8::/32\" or default");
    }
}

constexpr std::array kRouteFields{
    Field<RouteDraft>{"to", read_to, kRequired},
    Field<RouteDraft>{"via",
                      [](Reader& r, const Node& n, RouteDraft& d) {
                          net::IpAddr via;
                          if (read_gateway(r, n, via)) {
                              d.route.via = via;
                          }
                      }},
    Field<RouteDraft>{"dev",
                      [](Reader& r, const Node& n, RouteDraft& d) { r.name(n, d.route.dev); }},
    Field<RouteDraft>{"vrf",
                      [](Reader& r, const Node& n, RouteDraft& d) {
                          d.vrf_at = n.at;
                          r.name(n, d.vrf);
                      }},
    Field<RouteDraft>{
        "metric", [](Reader& r, const Node& n, RouteDraft& d) { r.integer(n, d.route.metric); }},
    Field<RouteDraft>{
        "type",
        [](Reader& r, const Node& n, RouteDraft& d) { r.choice(n, d.route.type, kRouteTypes); }},
    Field<RouteDraft>{"mtu",
                      [](Reader& r, const Node& n, RouteDraft& d) {
                          r.integer(n, d.route.mtu, kMinMtu, kMaxMtu);
                      }},
    Field<RouteDraft>{
        "on-link", [](Reader& r, const Node& n, RouteDraft& d) { r.boolean(n, d.route.on_link); }},
    Field<RouteDraft>{"family",
                      [](Reader& r, const Node& n, RouteDraft& d) {
                          net::Family family{};
                          d.family_at = n.at;
                          if (read_family(r, n, family)) {
                              d.family = family;
                          }
                      }},
    Field<RouteDraft>{
        "table", [](Reader& r, const Node& n, RouteDraft& d) { read_table(r, n, d.route.table); }},
    Field<RouteDraft>{"nexthop",
                      [](Reader& r, const Node& n, RouteDraft& d) {
                          std::uint32_t id = 0;
                          if (r.integer(n, id, 1)) {
                              d.route.nexthop = id;
                          }
                      }},
};

struct SpecialRange {
    net::IpPrefix range;
    std::string_view what;
};

/// Destinations that are never looked up, so that a route there would be a mistake (RFC 1812 5.3.7,
/// RFC 4291 2.5).
std::string_view never_routed(const net::IpPrefix& to) {
    static const std::array kRanges{
        SpecialRange{net::Ipv4Prefix::of({{0, 0, 0, 0}}, 8), "in 0.0.0.0/8"},
        SpecialRange{net::Ipv4Prefix::of({{127, 0, 0, 0}}, 8), "loopback"},
        SpecialRange{net::Ipv4Prefix::of({{224, 0, 0, 0}}, 4), "multicast"},
        SpecialRange{net::Ipv4Prefix::of({{255, 255, 255, 255}}, 32), "limited broadcast"},
        SpecialRange{net::Ipv6Prefix::of(net::Ipv6Addr{}, 128), "the unspecified address"},
        SpecialRange{net::Ipv6Prefix::of({{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, 128),
                     "loopback"},
        SpecialRange{net::Ipv6Prefix::of({{0xff}}, 8), "multicast"},
        SpecialRange{net::Ipv6Prefix::of({{0xfe, 0x80}}, 10), "link-local"},
    };
    for (const auto& special : kRanges) {
        if (to.length() >= special.range.length() && special.range.contains(to.address())) {
            return special.what;
        }
    }
    return {};
}

/// Family of `to: default`: what is said, or what the gateway's is.
bool settle_family(Reader& r, RouteDraft& draft) {
    Route& route = draft.route;
    if (draft.is_default) {
        if (!draft.family && !route.via && !route.nexthop) {
            r.error(draft.to_at, "default of which family? Add family: ipv4 or family: ipv6");
            return false;
        }
        if (!draft.family && route.nexthop && !route.via) {
            if (route.dev.empty()) {
                route.dev = std::string(kOpenFamily);
            }
            r.open_families = true;
        }
        const auto of_gateway = route.via ? route.via->family() : net::Family::kIpv4;
        route.to = net::IpPrefix::default_route(draft.family.value_or(of_gateway));
    } else if (draft.family && *draft.family != route.to.family()) {
        r.error(draft.family_at,
                "family: {} is an {} prefix: leave family out",
                route.to.to_string(),
                net::to_string(route.to.family()));
        return false;
    }
    return true;
}

void check_route(Reader& r, const RouteDraft& draft) {
    const Route& route = draft.route;
    const bool has_target = route.via || !route.dev.empty() || route.nexthop;
    const auto special = never_routed(route.to);
    const bool drops = route.type != RouteType::kUnicast && route.type != RouteType::kLocal;
    if (!drops && !special.empty()) {
        r.error(draft.to_at,
                "{} is {}: nothing is ever routed there; leave the route out",
                route.to.to_string(),
                special);
    }
    if (route.type == RouteType::kUnicast && !has_target) {
        r.error(route.at,
                "the route to {} leads nowhere: add via or dev, or type: blackhole",
                route.to.to_string());
    }
    if (drops && has_target) {
        r.error(route.at,
                "a {} route has no via, dev or nexthop: leave them out",
                kRouteTypes[static_cast<std::size_t>(route.type)].word);
    }
    if (drops && route.mtu != 0) {
        r.error(route.at,
                "a {} route has no mtu: leave it out",
                kRouteTypes[static_cast<std::size_t>(route.type)].word);
    }
    if (route.type == RouteType::kLocal && (route.via || route.nexthop)) {
        r.error(route.at, "a local route has no via or nexthop: leave them out");
    }
    const bool has_dev = !route.dev.empty() && route.dev != kOpenFamily;
    if (route.nexthop && (route.via || has_dev || route.on_link || route.mtu != 0)) {
        r.error(route.at,
                "nexthop says all about the way: leave via, dev, vrf, on-link and mtu out");
        return;
    }
    if (route.via && !route.to.is_v4() && route.via->is_v4()) {
        r.error(route.at,
                "an IPv6 route via the IPv4 gateway {}: write an IPv6 gateway",
                route.via->to_string());
    }
    if (route.mtu != 0 && !route.to.is_v4() && route.mtu < kMinIpv6Mtu) {
        r.error(
            route.at, "mtu {} on an IPv6 route: at least {} (RFC 8200 5)", route.mtu, kMinIpv6Mtu);
    }
    if (route.on_link && (!route.via || route.dev.empty())) {
        r.error(route.at,
                "on-link says that via can be reached through dev: add both, or leave it out");
    } else if (route.via && route.via->is_v6() && route.via->v6().is_link_local() &&
               route.dev.empty()) {
        r.error(route.at,
                "the link-local gateway {} can be on any netdev: add dev",
                route.via->to_string());
    }
}

/// A default route over a next hop is of the family that its gateways are of.
void take_family_of_nexthop(Reader& r, const Netns& netns, Route& route) {
    bool v4 = false;
    bool v6 = false;
    const auto look_at = [&](std::uint32_t id) {
        const auto found = netns.nexthops.find(id);
        if (found != netns.nexthops.end() && found->second.via) {
            (found->second.via->is_v4() ? v4 : v6) = true;
        }
    };
    const auto found = netns.nexthops.find(*route.nexthop);
    if (found == netns.nexthops.end()) {
        return;  // which validate() says
    }
    look_at(*route.nexthop);
    for (const auto& [member, weight] : found->second.group) {
        look_at(member);
    }
    if (!v4 && !v6) {
        r.error(route.at,
                "default of which family? Next hop {} has no gateway: add family: ipv4 or "
                "family: ipv6",
                *route.nexthop);
    } else if (!v4) {
        route.to = net::IpPrefix::default_route(net::Family::kIpv6);
    }
}

constexpr std::array kNeighborFields{
    Field<Neighbor>{
        "to", [](Reader& r, const Node& n, Neighbor& v) { read_gateway(r, n, v.to); }, kRequired},
    Field<Neighbor>{
        "dev", [](Reader& r, const Node& n, Neighbor& v) { r.name(n, v.dev); }, kRequired},
    Field<Neighbor>{"lladdr",
                    [](Reader& r, const Node& n, Neighbor& v) { read_unicast_mac(r, n, v.lladdr); },
                    kRequired},
};

}  // namespace

bool read_family(Reader& r, const Node& node, net::Family& family) {
    return r.choice(node, family, kFamilies);
}

bool read_table(Reader& r, const Node& node, std::uint32_t& table) {
    if (node.kind == Node::Kind::kScalar && node.text == "main") {
        table = kMainTable;
        return true;
    }
    if (node.kind == Node::Kind::kScalar && node.text == "local") {
        r.error(node.at,
                "the local table holds this router's addresses alone: write main or a number, or "
                "type: local for one more");
        return false;
    }
    std::uint32_t value = 0;
    if (!r.integer(node, value, 1)) {
        return false;
    }
    if (value == kLocalTable) {
        r.error(
            node.at, "table {} holds this router's addresses alone: choose another", kLocalTable);
        return false;
    }
    table = value;
    return true;
}

bool read_gateway(Reader& r, const Node& node, net::IpAddr& address) {
    net::IpAddr value;
    if (!r.parsed(node, value, "10.0.1.2 or \"fe80::2\"")) {
        return false;
    }
    const bool wrong = value.is_v4() ? value.v4().is_this_network() || value.v4().is_multicast() ||
                                           value.v4().is_limited_broadcast()
                                     : value.v6().is_unspecified() || value.v6().is_loopback() ||
                                           value.v6().is_multicast();
    if (wrong) {
        r.error(node.at, "{} is not a unicast address: write a host's", value.to_string());
        return false;
    }
    address = value;
    return true;
}

void read_route(Reader& r, const Node& node, Netns& netns) {
    RouteDraft draft;
    draft.route.at = node.at;
    const auto errors_before = r.error_count();
    read_map(r, node, "route", kRouteFields, draft);
    if (node.kind != Node::Kind::kMap || !draft.has_to || r.error_count() != errors_before) {
        return;
    }
    if (!draft.vrf.empty()) {
        if (!draft.route.dev.empty()) {
            r.error(draft.vrf_at, "vrf is the dev of a route into a vrf: leave one of them out");
            return;
        }
        draft.route.dev = draft.vrf;
        r.named_vrfs.try_emplace({&netns, draft.vrf}, draft.vrf_at);
    }
    if (settle_family(r, draft)) {
        check_route(r, draft);
        netns.routes.push_back(std::move(draft.route));
    }
}

void read_neighbor(Reader& r, const Node& node, Netns& netns) {
    Neighbor neighbor;
    neighbor.at = node.at;
    const auto errors_before = r.error_count();
    read_map(r, node, "neighbor", kNeighborFields, neighbor);
    if (node.kind == Node::Kind::kMap && r.error_count() == errors_before) {
        netns.neighbors.push_back(std::move(neighbor));
    }
}

void resolve_routes(Reader& r, Netns& netns) {
    for (const auto& [place, at] : r.named_vrfs) {
        const auto& [owner, name] = place;
        if (owner == &netns && (netns.ports.contains(name) || netns.vlans.contains(name))) {
            r.error(at, "'{}' is a port or vlan: write dev: {}, or the name of a vrf", name, name);
        }
    }
    if (!r.open_families) {
        return;
    }
    for (Route& route : netns.routes) {
        if (route.dev == kOpenFamily) {
            route.dev.clear();
            take_family_of_nexthop(r, netns, route);
        }
    }
}

void add_route_keys(KeyTables& tables) {
    tables["route"] = keys_of(kRouteFields);
    tables["neighbor"] = keys_of(kNeighborFields);
}

}  // namespace sluice::config
