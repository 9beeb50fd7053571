// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "control/engine.h"
#include "control/removal.h"
#include "net/wire.h"

namespace sluice::control {

using fib::DstType;
using fib::NetdevKind;

namespace {

// What iproute2 calls "local": addresses make its routes.
constexpr std::uint32_t kLocalTable = 255;

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
    if (!route.nexthop) {
        const auto key = resolve_request(netns, route);
        if (!key) {
            return std::unexpected(key.error());
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
    const auto target = netns.nexthops->target(*route.nexthop, route.prefix.family());
    if (!target) {
        return std::unexpected(target.error());
    }
    return *target;
}

void Engine::drop_if_unused(Netns& netns, RouteTarget& target) {
    if (NextHop* hop = as_next_hop(target); hop != nullptr) {
        hops_.drop_if_unused(*hop);
    } else {
        netns.nexthops->drop_if_unused(*as_object(target));
    }
}

bool Engine::is_dead(const RouteTarget& target) const noexcept {
    if (const NextHop* hop = as_next_hop(target); hop != nullptr) {
        return netdevs_.find(hop->key.netdev) == nullptr;
    }
    return as_object(target)->object == nullptr;
}

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
            auto ok = rib.add({prefix, route.owner, 0, route.metric.value_or(0)}, target);
            if (ok) {
                ++configured(route.prefix.family());
                changes_.prefix(netns, route.prefix);
            }
            return ok;
        }
        RouteTarget& old = *there->hop;
        if (&old == &target) {
            return {};
        }
        auto ok = rib.replace(*there, target);
        if (ok) {
            changes_.prefix(netns, route.prefix);
            if (!dead) {  // else a removal knows it
                drop_if_unused(netns, old);
            }
        }
        return ok;
    });
}

bool Engine::matches(const RouteRequest& route,
                     const RouteTarget& target,
                     std::uint32_t metric) const {
    if ((route.metric && metric != *route.metric) || is_dead(target)) {
        return false;
    }
    if (const ObjectTarget* object = as_object(target); object != nullptr) {
        const bool plain = !route.via && route.dev.empty() && route.mtu == 0;
        return plain && route.type == "unicast" &&
               (!route.nexthop || object->object->id == *route.nexthop);
    }
    const NextHopKey& key = as_next_hop(target)->key;
    const Netdev* netdev = netdevs_.find(key.netdev);
    return !route.nexthop && (route.type == "unicast" || type_name(key.type) == route.type) &&
           (!route.via || key.gateway == route.via) &&
           (route.dev.empty() || netdev->name == route.dev) &&
           (route.mtu == 0 || key.mtu == route.mtu);
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
            if (!matches(route, *there->hop, there->key.metric)) {
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

std::size_t Engine::flush_routes(Netns& netns, RouteOwner owner) {
    const Changes::Scope change(changes_);
    std::size_t count = 0;
    const auto flush = [&](auto& rib, net::Family family) {
        using Rib = std::remove_reference_t<decltype(rib)>;
        std::vector<typename Rib::Key> keys;
        rib.for_each([&](const auto& route) {
            if (route.key.owner == owner && !is_dead(*route.hop)) {
                keys.push_back(route.key);
            }
        });
        for (const auto& key : keys) {
            drop_if_unused(netns, take_out(*rib.find(key), family));
        }
        count += keys.size();
    };
    for (const auto& [id, table] : netns.tables) {
        flush(table->v4, net::Family::kIpv4);
        flush(table->v6, net::Family::kIpv6);
    }
    if (count > 0) {
        changes_.all(netns);
    }
    return count;
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
    settle(netns, netns.nexthops->reassess(netdev, dataplane_.clock_s()));
}

}  // namespace sluice::control
