// SPDX-License-Identifier: BSD-3-Clause
// What there is to see of routes.
#include <optional>
#include <string>

#include "control/engine.h"

namespace sluice::control {

using fib::DstType;

std::string_view type_name(DstType type) noexcept {
    switch (type) {
        case DstType::kNone:
            return "none";
        case DstType::kUnicast:
        case DstType::kConnected:
            return "unicast";
        case DstType::kLocal:
            return "local";
        case DstType::kBroadcast:
            return "broadcast";
        case DstType::kUnreachable:
            return "unreachable";
        case DstType::kProhibit:
            return "prohibit";
        case DstType::kBlackhole:
            return "blackhole";
    }
    return "none";
}

RouteInfo Engine::describe(const net::IpPrefix& prefix,
                           std::uint32_t metric,
                           RouteOwner owner,
                           bool active,
                           const RouteTarget& target) const {
    const NextHop& hop = *as_next_hop(target);
    const Netdev* netdev =
        hop.key.netdev == kBlackholeNetdev ? nullptr : netdevs_.find(hop.key.netdev);
    return {.prefix = prefix,
            .type = std::string(type_name(hop.key.type)),
            .via = hop.key.gateway,
            .dev = netdev == nullptr ? "" : netdev->name,
            .metric = metric,
            .mtu = hop.key.mtu,
            .owner = owner,
            .on_link = hop.key.on_link,
            .active = active};
}

void Engine::for_each_route(const std::function<void(const RouteInfo&)>& each) const {
    const auto show = [&](const auto& route) {
        each(describe(
            route.key.prefix, route.key.metric, route.key.owner, route.active, *route.hop));
    };
    main_.v4.for_each(show);
    main_.v6.for_each(show);
}

std::optional<net::IpPrefix> Engine::routes_after(
    const std::optional<net::IpPrefix>& after,
    std::size_t limit,
    const std::function<void(const RouteInfo&)>& each) const {
    const auto show = [&](const auto& route) {
        each(describe(
            route.key.prefix, route.key.metric, route.key.owner, route.active, *route.hop));
    };
    std::optional<net::IpPrefix> last;
    if (!after || after->is_v4()) {
        last =
            main_.v4.for_each_after(after ? std::optional(after->v4()) : std::nullopt, limit, show);
        if (last) {
            return last;
        }
    }
    const bool inside_v6 = after && !after->is_v4();
    return main_.v6.for_each_after(
        inside_v6 ? std::optional(after->v6()) : std::nullopt, limit, show);
}

RouteLookup Engine::lookup_route(const net::IpAddr& destination) const {
    RouteLookup found;
    found.type = "none";
    const auto fill = [&](const auto* route) {
        if (route == nullptr) {
            return;
        }
        const RouteInfo info =
            describe(route->key.prefix, route->key.metric, route->key.owner, true, *route->hop);
        found.type = info.type;
        found.prefix = info.prefix;
        found.via = info.via;
        found.dev = info.dev;
        const NextHop& hop = *as_next_hop(*route->hop);
        if (hop.has_dst()) {
            found.mtu = shared_.dsts[hop.value].mtu;
        }
        const fib::NetdevView* view = shared_.netdev(hop.key.netdev);
        if (view == nullptr) {
            return;
        }
        const net::IpAddr peer = info.via ? *info.via : destination;
        if (destination.is_v4()) {
            const auto* source =
                peer.is_v4() ? view->source_for(peer.v4())
                             : (view->addresses4.empty() ? view->local->any4()
                                                         : &view->addresses4.front().address);
            if (source != nullptr) {
                found.source = *source;
            }
        } else if (const auto* source = view->source_for(peer.v6()); source != nullptr) {
            found.source = *source;
        }
    };
    if (destination.is_v4()) {
        fill(main_.v4.match(destination.v4()));
    } else {
        fill(main_.v6.match(destination.v6()));
    }
    return found;
}

}  // namespace sluice::control
