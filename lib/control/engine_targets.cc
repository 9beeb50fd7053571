// SPDX-License-Identifier: BSD-3-Clause
// Where a route may lead: from what is asked for to a next hop, an object or a group.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "control/engine.h"
#include "net/wire.h"

namespace sluice::control {

using fib::DstType;
using fib::NetdevKind;

namespace {

/// Of the types that can be asked for.
std::optional<DstType> type_from_name(std::string_view name) {
    for (const DstType type : {DstType::kUnicast,
                               DstType::kLocal,
                               DstType::kUnreachable,
                               DstType::kProhibit,
                               DstType::kBlackhole}) {
        if (type_name(type) == name) {
            return type;
        }
    }
    return std::nullopt;
}

/// Prefixes that no router may forward to, RFC 1812 5.3.7, RFC 4291 2.5.3, 2.5.6; multicast waits
/// for its own tables.
Result<void> check_destination(const net::IpPrefix& prefix) {
    const auto refuse = [&](std::string_view what) {
        return fail(ErrorCode::kInvalid, "{}: no routes to {}", prefix.to_string(), what);
    };
    if (prefix.length() == 0) {
        return {};
    }
    if (prefix.is_v4()) {
        const auto& a = prefix.v4().address;
        if (a.is_multicast()) {
            return refuse("multicast groups");
        }
        if (a.is_loopback() || a.is_limited_broadcast() ||
            (a.is_this_network() && prefix.length() >= 8)) {
            return refuse("addresses that never leave a host");
        }
        return {};
    }
    const auto& a = prefix.v6().address;
    if (a.is_multicast()) {
        return refuse("multicast groups");
    }
    if (prefix.length() == 128 && (a.is_loopback() || a.is_unspecified())) {
        return refuse("addresses that never leave a host");
    }
    if (a.is_link_local()) {
        return refuse("link-local addresses, which every link has its own of");
    }
    return {};
}

/// What a gateway without a netdev is looked for in: the VRF of the table, or the netns's own.
const Netdev& domain_of(const Netns& netns, std::uint32_t table) {
    for (const auto& [name, netdev] : netns.netdevs) {
        if (netdev->kind == NetdevKind::kVrf && netdev->table->id == table) {
            return *netdev;
        }
    }
    return *netns.lo;
}

Result<void> check_gateway_kind(const net::IpAddr& via) {
    const bool host = via.is_v4() ? !via.v4().is_multicast() && !via.v4().is_this_network() &&
                                        !via.v4().is_limited_broadcast()
                                  : !via.v6().is_multicast() && !via.v6().is_unspecified() &&
                                        !via.v6().is_loopback();
    if (!host) {
        return fail(ErrorCode::kInvalid, "{} is no gateway's address", via.to_string());
    }
    return {};
}

/// The scope of a route must be wider than that of what it leads to: a gateway is on a link, a host
/// of a link on this router (checks.md 47). IPv6 knows no scopes of routes.
Result<void> check_scope(const RouteRequest& route, const NextHopKey& key) {
    if (!route.scope || !route.prefix.is_v4()) {
        return {};
    }
    const RouteScope next = key.gateway                       ? RouteScope::kLink
                            : key.type == DstType::kConnected ? RouteScope::kHost
                                                              : RouteScope::kNowhere;
    if (*route.scope < next) {
        return {};
    }
    return fail(ErrorCode::kInvalid,
                "{}: what is reached {} is not of scope {}",
                route.prefix.to_string(),
                key.gateway ? "over a gateway" : "directly",
                to_string(*route.scope));
}

std::vector<const NextHopObject*> singles_of(const NextHopObject* object) {
    std::vector<const NextHopObject*> singles;
    if (object != nullptr && !object->is_group) {
        singles.push_back(object);
    } else if (object != nullptr) {
        for (const auto& member : object->members) {
            singles.push_back(member.object);
        }
    }
    return singles;
}

}  // namespace

Result<NextHopKey> Engine::resolve_request(const Netns& netns, const RouteRequest& route) const {
    const auto type = type_from_name(route.type);
    if (!type) {
        return fail(ErrorCode::kInvalid,
                    "'{}' is no type of route: unicast, local, blackhole, unreachable, prohibit",
                    route.type);
    }
    if (auto ok = check_destination(route.prefix); !ok) {
        return std::unexpected(ok.error());
    }
    const net::Family family = route.prefix.family();
    NextHopKey key{.netdev = kBlackholeNetdev, .type = *type, .family = family};
    if (*type != DstType::kUnicast) {
        if (route.via || !route.dev.empty() || route.on_link) {
            return fail(
                ErrorCode::kInvalid, "a route of type {} has neither via nor dev", route.type);
        }
        if (*type == DstType::kLocal) {
            key.netdev = netns.lo->id;
        }
        return key;
    }
    const unsigned min_mtu = family == net::Family::kIpv4 ? net::kIpv4MinMtu : net::kIpv6MinMtu;
    if (route.mtu != 0 && route.mtu < min_mtu) {
        return fail(ErrorCode::kInvalid,
                    "MTU {} is below the {} of {}",
                    route.mtu,
                    min_mtu,
                    net::to_string(family));
    }
    if (!route.via && route.dev.empty()) {
        return fail(ErrorCode::kInvalid, "{}: via or dev is missing", route.prefix.to_string());
    }
    if (route.on_link && (!route.via || route.dev.empty())) {
        return fail(ErrorCode::kInvalid, "on-link needs via and dev");
    }
    if (route.via) {
        if (auto ok = check_gateway_kind(*route.via); !ok) {
            return std::unexpected(ok.error());
        }
        if (family == net::Family::kIpv6 && route.via->is_v4()) {
            return fail(ErrorCode::kInvalid,
                        "an IPv6 route has no IPv4 gateway ({})",
                        route.via->to_string());
        }
    }
    const Netdev* netdev = nullptr;
    if (!route.dev.empty()) {
        const auto named = netns.get(route.dev);
        if (!named) {
            return std::unexpected(named.error());
        }
        netdev = *named;
    } else if (route.via->is_v6() && route.via->v6().is_link_local()) {
        return fail(
            ErrorCode::kInvalid, "{} is link-local: say on which dev", route.via->to_string());
    } else if (netdev = Netdevs::on_link(domain_of(netns, route.table), *route.via);
               netdev == nullptr) {
        return fail(ErrorCode::kInvalid,
                    "{} is in no netdev's subnet: say dev and on-link",
                    route.via->to_string());
    }
    if (netdev->kind == NetdevKind::kVrf && !route.via) {
        key.netdev = netdev->id;
        key.type = DstType::kConnected;
        return key;
    }
    if (!netdev->is_link()) {
        return fail(ErrorCode::kInvalid, "nothing is reached over {}", netdev->name);
    }
    // An address of another VRF is one that packets can be sent to.
    if (route.via &&
        (netdev->owns(*route.via) || Netdevs::owner_of(netdev->domain(), *route.via) != nullptr)) {
        return fail(ErrorCode::kInvalid, "{} is an address of this router", route.via->to_string());
    }
    if (route.via && !route.on_link && !netdev->on_link(*route.via)) {
        return fail(ErrorCode::kInvalid,
                    "{} is in no subnet of {}: correct it, or say on-link",
                    route.via->to_string(),
                    netdev->name);
    }
    if (route.via) {
        if (const auto wrong = netdev->never_a_host(*route.via); !wrong.empty()) {
            return fail(ErrorCode::kInvalid,
                        "the gateway {} is {} on {}",
                        route.via->to_string(),
                        wrong,
                        netdev->name);
        }
    }
    key.netdev = netdev->id;
    key.type = route.via ? DstType::kUnicast : DstType::kConnected;
    key.gateway = route.via;
    key.mtu = route.mtu;
    key.on_link = route.on_link;
    return key;
}

Result<NextHop*> Engine::hop_for(const NextHopKey& key) {
    return hops_.get(key, *netdevs_.find(key.netdev));
}

Result<RouteTarget*> Engine::target_for(Netns& netns, const RouteRequest& route) {
    if (!route.legs.empty()) {
        return multipath_for(netns, route);
    }
    if (!route.nexthop) {
        const auto key = resolve_request(netns, route);
        if (!key) {
            return std::unexpected(key.error());
        }
        if (auto ok = check_scope(route, *key); !ok) {
            return std::unexpected(ok.error());
        }
        const auto hop = hop_for(*key);
        if (!hop) {
            return std::unexpected(hop.error());
        }
        return *hop;
    }
    if (auto ok = check_destination(route.prefix); !ok) {
        return std::unexpected(ok.error());
    }
    if (route.via || !route.dev.empty() || route.on_link || route.mtu != 0 ||
        route.type != "unicast") {
        return fail(ErrorCode::kInvalid,
                    "a route over nexthop {} has neither type, via, dev, mtu nor on-link",
                    *route.nexthop);
    }
    const NextHopObject* object = std::as_const(*netns.nexthops).find(*route.nexthop);
    for (const NextHopObject* single : singles_of(object)) {
        if (auto ok = check_scope(route, single->key); !ok) {
            return std::unexpected(ok.error());
        }
    }
    const auto target = netns.nexthops->target(*route.nexthop, route.prefix.family());
    if (!target) {
        return std::unexpected(target.error());
    }
    return *target;
}

Result<RouteTarget*> Engine::multipath_for(Netns& netns, const RouteRequest& route) {
    if (route.via || !route.dev.empty() || route.on_link || route.nexthop ||
        route.type != "unicast") {
        return fail(ErrorCode::kInvalid,
                    "a route with several next hops has neither type, via, dev, on-link nor a "
                    "next-hop object");
    }
    std::vector<Multipath::Leg> legs;
    for (const RouteLeg& leg : route.legs) {
        RouteRequest one = route;
        one.via = leg.via;
        one.dev = leg.dev;
        one.on_link = leg.on_link;
        const auto key = resolve_request(netns, one);
        if (!key) {
            return std::unexpected(key.error());
        }
        if (const Netdev& netdev = *netdevs_.find(key->netdev); !netdev.is_link()) {
            return fail(
                ErrorCode::kInvalid, "one next hop of several is no VRF: {} is one", netdev.name);
        }
        if (auto ok = check_scope(route, *key); !ok) {
            return std::unexpected(ok.error());
        }
        legs.push_back({.key = *key, .weight = leg.weight});
    }
    const auto target = netns.multipath->target(legs, route.prefix.family());
    if (!target) {
        return std::unexpected(target.error());
    }
    return *target;
}

void Engine::drop_if_unused(Netns& netns, RouteTarget& target) {
    if (NextHop* hop = as_next_hop(target); hop != nullptr) {
        hops_.drop_if_unused(*hop);
    } else {
        ObjectTarget& object = *as_object(target);
        if (netns.multipath->owns(object)) {
            netns.multipath->drop_if_unused(object);
        } else {
            netns.nexthops->drop_if_unused(object);
        }
    }
}

bool Engine::is_dead(const RouteTarget& target) const noexcept {
    if (const NextHop* hop = as_next_hop(target); hop != nullptr) {
        return netdevs_.find(hop->key.netdev) == nullptr;
    }
    return as_object(target)->object == nullptr;
}

}  // namespace sluice::control
