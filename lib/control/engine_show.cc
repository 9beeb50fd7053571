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
        case DstType::kSourceInvalid:
        case DstType::kRouteLoop:
        case DstType::kGroupEmpty:
            break;  // of no route
    }
    return "none";
}

RouteInfo Engine::describe(const Table& table,
                           const net::IpPrefix& prefix,
                           std::uint32_t metric,
                           RouteOwner owner,
                           bool active,
                           const RouteTarget& target) const {
    RouteInfo info{.prefix = prefix,
                   .type = "unicast",
                   .via = {},
                   .dev = {},
                   .table = table.id,
                   .metric = metric,
                   .owner = owner,
                   .active = active};
    if (const ObjectTarget* object = as_object(target); object != nullptr) {
        info.nexthop = object->object->id;
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

template <class Fn>
auto Engine::shower(const Table& table, Fn& each) const {
    return [this, &table, &each](const auto& route) {
        if (!is_dead(*route.hop)) {
            each(describe(table,
                          route.key.prefix,
                          route.key.metric,
                          route.key.owner,
                          route.active,
                          *route.hop));
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
