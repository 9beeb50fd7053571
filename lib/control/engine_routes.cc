// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

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

Result<NextHopKey> Engine::resolve_request(const RouteRequest& route) const {
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
            key.netdev = netns_.loopback;
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
        if (netdevs_.owner_of(*route.via) != nullptr) {
            return fail(
                ErrorCode::kInvalid, "{} is an address of this router", route.via->to_string());
        }
    }
    const Netdev* netdev = nullptr;
    if (!route.dev.empty()) {
        const auto named = netdevs_.get(route.dev);
        if (!named) {
            return std::unexpected(named.error());
        }
        netdev = *named;
    } else if (route.via->is_v6() && route.via->v6().is_link_local()) {
        return fail(
            ErrorCode::kInvalid, "{} is link-local: say on which dev", route.via->to_string());
    } else if (netdev = netdevs_.on_link(*route.via); netdev == nullptr) {
        return fail(ErrorCode::kInvalid,
                    "{} is in no netdev's subnet: say dev and on-link",
                    route.via->to_string());
    }
    if (netdev->kind != NetdevKind::kPort && netdev->kind != NetdevKind::kVlan) {
        return fail(ErrorCode::kInvalid, "nothing is reached over {}", netdev->name);
    }
    if (route.via && netdev->owns(*route.via)) {
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

Result<void> Engine::add_route(const RouteRequest& route, RouteMode mode) {
    const auto key = resolve_request(route);
    if (!key) {
        return std::unexpected(key.error());
    }
    return with_rib(route.prefix, [&](auto& rib, const auto& prefix) -> Result<void> {
        auto* there = rib.find({prefix, route.owner, 0, route.metric.value_or(0)});
        if (there != nullptr && mode == RouteMode::kAdd) {
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
        }
        const auto hop = hop_for(*key);
        if (!hop) {
            return std::unexpected(hop.error());
        }
        if (there != nullptr) {
            RouteTarget* old = there->hop;
            if (old == *hop) {
                return {};
            }
            auto ok = rib.replace(*there, **hop);
            hops_.drop_if_unused(ok ? *old : static_cast<RouteTarget&>(**hop));
            return ok;
        }
        if (auto ok = rib.add({prefix, route.owner, 0, route.metric.value_or(0)}, **hop); !ok) {
            hops_.drop_if_unused(**hop);
            return ok;
        }
        ++(route.prefix.is_v4() ? configured4_ : configured6_);
        return {};
    });
}

Result<void> Engine::delete_route(const RouteRequest& route) {
    return with_rib(route.prefix, [&](auto& rib, const auto& prefix) -> Result<void> {
        std::optional<RouteOwner> other;
        for (auto* there = rib.first(prefix); there != nullptr; there = rib.next(*there)) {
            const NextHopKey& key = as_next_hop(*there->hop)->key;
            const Netdev* netdev = netdevs_.find(key.netdev);
            const bool matches =
                (!route.metric || there->key.metric == *route.metric) &&
                (route.type == "unicast" || type_name(key.type) == route.type) &&
                (!route.via || key.gateway == route.via) &&
                (route.dev.empty() || (netdev != nullptr && netdev->name == route.dev)) &&
                (route.mtu == 0 || key.mtu == route.mtu);
            if (!matches) {
                continue;
            }
            if (there->key.owner != route.owner) {
                other = there->key.owner;
                continue;
            }
            hops_.drop_if_unused(*rib.remove(*there));
            --(route.prefix.is_v4() ? configured4_ : configured6_);
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

Result<void> Engine::replace_route(const RouteRequest& from, const RouteRequest& to) {
    if (from.metric.value_or(0) == to.metric.value_or(0)) {
        return add_route(to, RouteMode::kReplace);
    }
    if (auto ok = add_route(to, RouteMode::kAdd); !ok) {
        return ok;
    }
    if (auto ok = delete_route(from); !ok) {
        static_cast<void>(delete_route(to));
        return ok;
    }
    return {};
}

std::size_t Engine::flush_routes(RouteOwner owner) {
    const auto flush = [&](auto& rib, std::size_t& configured) {
        using Rib = std::remove_reference_t<decltype(rib)>;
        std::vector<typename Rib::Key> keys;
        rib.for_each([&](const auto& route) {
            if (route.key.owner == owner) {
                keys.push_back(route.key);
            }
        });
        for (const auto& key : keys) {
            hops_.drop_if_unused(*rib.remove(*rib.find(key)));
        }
        configured -= keys.size();
        return keys.size();
    };
    return flush(main_.v4, configured4_) + flush(main_.v6, configured6_);
}

void Engine::update_routes(RouteTarget& hop) {
    const auto update = [&](auto& rib, const auto& route) {
        if (auto ok = rib.update(route.key.prefix); !ok) {
            spdlog::error("route {}: {}", route.key.prefix.to_string(), ok.error().message);
        }
    };
    for (RouteHook& hook : hop.routes) {
        if (hop.family == net::Family::kIpv4) {
            update(main_.v4, static_cast<Route<net::Ipv4Addr>&>(hook));
        } else {
            update(main_.v6, static_cast<Route<net::Ipv6Addr>&>(hook));
        }
    }
}

void Engine::reassess(const Netdev& netdev) {
    hops_.for_each_on(netdev.id, [&](NextHop& hop) {
        const bool usable = is_usable(hop.key, netdev);
        if (std::exchange(hop.usable, usable) != usable) {
            update_routes(hop);
        }
    });
}

}  // namespace sluice::control
