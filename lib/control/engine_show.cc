// SPDX-License-Identifier: BSD-3-Clause
// What there is to see of routes.
#include <optional>
#include <string>

#include "control/engine.h"
#include "control/route_labels.h"

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
        case DstType::kRouteLoop:
            return "loop";
        case DstType::kSourceInvalid:
        case DstType::kGroupEmpty:
            break;  // of no route
    }
    return "none";
}

template <class Addr>
RouteInfo Engine::describe(const Table& table,
                           const Route<Addr>& route,
                           const RouteTarget& target) const {
    RouteInfo info{.prefix = route.key.prefix,
                   .type = "unicast",
                   .via = {},
                   .dev = {},
                   .table = table.id,
                   .metric = route.key.metric,
                   .owner = route.key.owner,
                   .protocol = protocol_of(route.protocol, route.key.owner),
                   .active = route.active};
    if (const ObjectTarget* object = as_object(target); object != nullptr) {
        const NextHopObject& over = *object->object;
        if (!table.netns->multipath->owns(*object)) {
            info.nexthop = over.id;
        } else if (!over.members.empty()) {
            info.legs = legs_of(over);
            info.mtu = over.members.front().object->key.mtu;
        }
        return info;
    }
    const NextHopKey& key = as_next_hop(target)->key;
    const Netdev* netdev = key.netdev == kBlackholeNetdev ? nullptr : netdevs_.find(key.netdev);
    info.type = type_name(key.type);
    info.via = key.gateway;
    info.dev = netdev == nullptr ? "" : netdev->name;
    info.mtu = key.mtu;
    info.on_link = key.on_link;
    return info;
}

std::vector<RouteLeg> Engine::legs_of(const NextHopObject& group) const {
    std::vector<RouteLeg> legs;
    for (const auto& [single, weight] : group.members) {
        const Netdev* netdev = netdevs_.find(single->key.netdev);
        legs.push_back({.via = single->key.gateway,
                        .dev = netdev == nullptr ? "" : netdev->name,
                        .on_link = single->key.on_link,
                        .weight = weight,
                        .active = single->active});
    }
    return legs;
}

template RouteInfo Engine::describe(const Table&,
                                    const Route<net::Ipv4Addr>&,
                                    const RouteTarget&) const;
template RouteInfo Engine::describe(const Table&,
                                    const Route<net::Ipv6Addr>&,
                                    const RouteTarget&) const;

template <class Fn>
auto Engine::shower(const Table& table, Fn& each) const {
    return [this, &table, &each](const auto& route) {
        if (!is_dead(*route.hop)) {
            each(describe(table, route, *route.hop));
        }
    };
}

void Engine::for_each_route(const Netns& netns,
                            std::uint32_t id,
                            const std::function<void(const RouteInfo&)>& each) const {
    if (const Table* table = NetnsSet::find_table(netns, id); table != nullptr) {
        table->v4.for_each(shower(*table, each));
        table->v6.for_each(shower(*table, each));
    }
}

std::optional<net::IpPrefix> Engine::routes_after(
    const Netns& netns,
    std::uint32_t id,
    const std::optional<net::IpPrefix>& after,
    std::size_t limit,
    const std::function<void(const RouteInfo&)>& each) const {
    const Table* table = NetnsSet::find_table(netns, id);
    if (table == nullptr) {
        return std::nullopt;
    }
    const auto show = shower(*table, each);
    std::optional<net::IpPrefix> last;
    if (!after || after->is_v4()) {
        last = table->v4.for_each_after(
            after ? std::optional(after->v4()) : std::nullopt, limit, show);
        if (last) {
            return last;
        }
    }
    const bool inside_v6 = after && !after->is_v4();
    return table->v6.for_each_after(
        inside_v6 ? std::optional(after->v6()) : std::nullopt, limit, show);
}

}  // namespace sluice::control
