// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "control/engine.h"
#include "control/removal.h"
#include "control/route_labels.h"

namespace sluice::control {

namespace {

// What iproute2 calls "local": addresses make its routes.
constexpr std::uint32_t kLocalTable = 255;

}  // namespace

RouteTarget& Engine::take_out(RouteHook& hook, net::Family family) {
    const auto remove = [&](auto& route, auto&& rib_of) -> RouteTarget& {
        configured(family) -= route.key.owner == RouteOwner::kConnected ? 0 : 1;
        return *rib_of(netns_.table_of(route.table)).remove(route);
    };
    if (family == net::Family::kIpv4) {
        return remove(static_cast<Route<net::Ipv4Addr>&>(hook),
                      [](Table& table) -> auto& { return table.v4; });
    }
    return remove(static_cast<Route<net::Ipv6Addr>&>(hook),
                  [](Table& table) -> auto& { return table.v6; });
}

Result<void> Engine::check_limit(net::Family family) const {
    const bool v4 = family == net::Family::kIpv4;
    const std::size_t limit = v4 ? options_.ipv4_routes : options_.ipv6_routes;
    if ((v4 ? configured4_ : configured6_) >= limit) {
        return fail(ErrorCode::kLimit,
                    "all {} routes of limits.{}-routes are in use",
                    limit,
                    net::to_string(family));
    }
    return {};
}

Result<void> Engine::add_route(Netns& netns, const RouteRequest& route, RouteMode mode) {
    if (route.table == 0 || route.table == kLocalTable) {
        return fail(ErrorCode::kInvalid, "table {} takes no routes", route.table);
    }
    const Changes::Scope change(changes_);
    const auto target = target_for(netns, route);
    if (!target) {
        return std::unexpected(target.error());
    }
    auto ok = put_route(netns, route, mode, **target);
    drop_if_unused(netns, **target);
    return ok;
}

Result<void> Engine::put_route(Netns& netns,
                               const RouteRequest& route,
                               RouteMode mode,
                               RouteTarget& target) {
    const auto table = netns_.table(netns, route.table);
    if (!table) {
        return std::unexpected(table.error());
    }
    return with_rib(**table, route.prefix, [&](auto& rib, const auto& prefix) -> Result<void> {
        auto* there = rib.find({prefix, route.owner, 0, route.metric.value_or(0)});
        const bool dead = there != nullptr && is_dead(*there->hop);
        if (there != nullptr && !dead && mode == RouteMode::kAdd) {
            return fail(ErrorCode::kExists,
                        "route {} metric {} is already there ({})",
                        route.prefix.to_string(),
                        there->key.metric,
                        to_string(route.owner));
        }
        if (there == nullptr) {
            if (auto ok = check_limit(route.prefix.family()); !ok) {
                return ok;
            }
            auto ok =
                rib.add({prefix, route.owner, 0, route.metric.value_or(0)}, target, route.protocol);
            if (ok) {
                ++configured(route.prefix.family());
                changes_.prefix(netns, route.prefix);
            }
            return ok;
        }
        RouteTarget& old = *there->hop;
        if (&old == &target) {
            there->protocol = route.protocol;
            return {};
        }
        auto ok = rib.replace(*there, target);
        if (ok) {
            there->protocol = route.protocol;
            changes_.prefix(netns, route.prefix);
            if (!dead) {  // else a removal knows it
                drop_if_unused(netns, old);
            }
        }
        return ok;
    });
}

bool Engine::leads_as(const Netns& netns,
                      const RouteRequest& request,
                      const ObjectTarget& target) const {
    const NextHopObject& object = *target.object;
    const bool plain = !request.via && request.dev.empty() && request.type == "unicast";
    if (!netns.multipath->owns(target)) {
        return plain && request.mtu == 0 && request.legs.empty() &&
               (!request.nexthop || object.id == *request.nexthop);
    }
    const auto legs = legs_of(object);
    const auto named = [&](const RouteLeg& leg) {
        return std::ranges::any_of(legs, [&](const RouteLeg& own) {
            return own.via == leg.via && (leg.dev.empty() || own.dev == leg.dev) &&
                   own.weight == leg.weight;
        });
    };
    return plain && !request.nexthop &&
           (request.mtu == 0 || object.members.front().object->key.mtu == request.mtu) &&
           (request.legs.empty() ||
            (request.legs.size() == legs.size() && std::ranges::all_of(request.legs, named)));
}

template <class Addr>
bool Engine::matches(const Netns& netns,
                     const RouteRequest& request,
                     const Route<Addr>& route) const {
    const RouteTarget& target = *route.hop;
    if ((request.metric && route.key.metric != *request.metric) || is_dead(target) ||
        (request.protocol != 0 &&
         protocol_of(route.protocol, route.key.owner) != request.protocol)) {
        return false;
    }
    if (const ObjectTarget* object = as_object(target); object != nullptr) {
        return leads_as(netns, request, *object);
    }
    const NextHopKey& key = as_next_hop(target)->key;
    const Netdev* netdev = netdevs_.find(key.netdev);
    return !request.nexthop && request.legs.empty() &&
           (request.type == "unicast" || type_name(key.type) == request.type) &&
           (!request.via || key.gateway == request.via) &&
           (request.dev.empty() || netdev->name == request.dev) &&
           (request.mtu == 0 || key.mtu == request.mtu);
}

Result<void> Engine::delete_route(Netns& netns, const RouteRequest& route) {
    Table* table = NetnsSet::find_table(netns, route.table);
    if (table == nullptr) {
        return fail(ErrorCode::kNotFound, "no such route {}", route.prefix.to_string());
    }
    const Changes::Scope change(changes_);
    return with_rib(*table, route.prefix, [&](auto& rib, const auto& prefix) -> Result<void> {
        std::optional<RouteOwner> other;
        for (auto* there = rib.first(prefix); there != nullptr; there = rib.next(*there)) {
            if (!matches(netns, route, *there)) {
                continue;
            }
            if (there->key.owner != route.owner) {
                other = there->key.owner;
                continue;
            }
            drop_if_unused(netns, take_out(*there, route.prefix.family()));
            changes_.prefix(netns, route.prefix);
            return {};
        }
        if (other) {
            return fail(ErrorCode::kNotFound,
                        "route {} is not from here but from: {}",
                        route.prefix.to_string(),
                        to_string(*other));
        }
        return fail(ErrorCode::kNotFound, "no such route {}", route.prefix.to_string());
    });
}

Result<void> Engine::replace_route(Netns& netns, const RouteRequest& from, const RouteRequest& to) {
    const Changes::Scope change(changes_);
    if (from.metric.value_or(0) == to.metric.value_or(0)) {
        return add_route(netns, to, RouteMode::kReplace);
    }
    if (auto ok = add_route(netns, to, RouteMode::kAdd); !ok) {
        return ok;
    }
    if (auto ok = delete_route(netns, from); !ok) {
        static_cast<void>(delete_route(netns, to));
        return ok;
    }
    return {};
}

bool Engine::has_routes(NetdevId netdev, RouteOwner owner) {
    bool found = false;
    hops_.for_each_on(netdev, [&](NextHop& hop) {
        const auto is_owners = [&](const RouteHook& hook) {
            return hop.family == net::Family::kIpv4
                       ? static_cast<const Route<net::Ipv4Addr>&>(hook).key.owner == owner
                       : static_cast<const Route<net::Ipv6Addr>&>(hook).key.owner == owner;
        };
        found = found || std::ranges::any_of(hop.routes, is_owners);
    });
    return found;
}

void Engine::update_routes(RouteTarget& target) {
    const auto update = [&](auto& rib, const auto& route) {
        if (auto ok = rib.update(route.key.prefix); !ok) {
            spdlog::error("route {}: {}", route.key.prefix.to_string(), ok.error().message);
        }
    };
    for (RouteHook& hook : target.routes) {
        if (target.family == net::Family::kIpv4) {
            auto& route = static_cast<Route<net::Ipv4Addr>&>(hook);
            update(netns_.table_of(route.table).v4, route);
        } else {
            auto& route = static_cast<Route<net::Ipv6Addr>&>(hook);
            update(netns_.table_of(route.table).v6, route);
        }
    }
}

void Engine::settle(Netns& netns, const NextHopChange& change) {
    for (RouteTarget* target : change.turned) {
        update_routes(*target);
    }
    if (!change.orphaned.empty()) {
        auto removal = std::make_unique<Removal>();
        removal->netns = &netns;
        removal->targets = change.orphaned;
        begin(std::move(removal));
    }
    changes_.all(netns);
    netns.nexthops->finish(change);
}

void Engine::reassess(const Netdev& netdev) {
    hops_.for_each_on(netdev.id, [&](NextHop& hop) {
        const bool usable = is_usable(hop.key, netdev);
        if (std::exchange(hop.usable, usable) != usable) {
            update_routes(hop);
        }
    });
    Netns& netns = *netdev.netns;
    NextHopChange change = netns.nexthops->reassess(netdev, dataplane_.clock_s());
    change += netns.multipath->reassess(netdev, dataplane_.clock_s());
    settle(netns, change);
}

}  // namespace sluice::control
