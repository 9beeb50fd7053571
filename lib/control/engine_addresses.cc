// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "control/connected.h"
#include "control/engine.h"
#include "control/host_address.h"
#include "net/wire.h"

namespace sluice::control {

const Netdev* Engine::static_neighbor(const Netdev& netdev, const net::IpAddr& address) const {
    const bool link_local = address.is_v6() && address.v6().is_link_local();
    const Netdev* found = nullptr;
    for (const auto& [name, other] : netdev.netns->netdevs) {
        const Neighbor* neighbor = neighbors_.table().find({other->id, address});
        if (neighbor != nullptr && neighbor->state == NeighborState::kPermanent &&
            (link_local ? other == &netdev : &other->domain() == &netdev.domain())) {
            found = other;
        }
    }
    return found;
}

Result<void> Engine::check_address(const Netdev& netdev, const net::InterfaceAddr& address) const {
    if (!netdev.is_link()) {
        return fail(ErrorCode::kUnsupported, "{} takes no addresses", netdev.name);
    }
    if (auto ok = check_own_address(address); !ok) {
        return ok;
    }
    if (address.address.is_v4() && address.address.v4().is_loopback() &&
        !netdev.settings.route_localnet) {
        return fail(ErrorCode::kInvalid,
                    "{} is a loopback address, and route-localnet is off on {}",
                    address.to_string(),
                    netdev.name);
    }
    const bool link_local = address.address.is_v6() && address.address.v6().is_link_local();
    for (const auto& own : netdev.addresses) {
        const bool other_local =
            link_local && own.address.is_v6() && own.address.v6().is_link_local();
        if (own.address == address.address || other_local) {
            return fail(ErrorCode::kExists, "{} has {} already", netdev.name, own.to_string());
        }
    }
    if (const Netdev* owner = Netdevs::owner_of(netdev.domain(), address.address);
        owner != nullptr) {
        return fail(ErrorCode::kExists,
                    "{} is an address of {} already",
                    address.address.to_string(),
                    owner->name);
    }
    if (const Netdev* on = static_neighbor(netdev, address.address); on != nullptr) {
        return fail(ErrorCode::kExists,
                    "{} is a static neighbor on {}: delete that first",
                    address.address.to_string(),
                    on->name);
    }
    if (address.address.is_v6() && netdev.settings.mtu < net::kIpv6MinMtu) {
        return fail(ErrorCode::kInvalid,
                    "{} has MTU {}, IPv6 needs {} (RFC 8200 5)",
                    netdev.name,
                    netdev.settings.mtu,
                    net::kIpv6MinMtu);
    }
    return {};
}

Result<void> Engine::sync_connected(Netdev& netdev,
                                    std::span<const net::InterfaceAddr> before,
                                    std::span<const net::InterfaceAddr> after) {
    const auto old = connected_routes(before);
    const auto wanted = connected_routes(after);
    for (const ConnectedRoute& route : wanted) {
        const auto hop = hops_.get(
            {.netdev = netdev.id, .type = route.type, .family = route.prefix.family()}, netdev);
        if (!hop) {
            return std::unexpected(hop.error());
        }
        auto ok = with_rib(
            netdev.routing_table(),
            route.prefix,
            [&](auto& rib, const auto& prefix) -> Result<void> {
                auto* there = rib.find({prefix, RouteOwner::kConnected, netdev.id.value, 0});
                if (there == nullptr) {
                    return rib.add({prefix, RouteOwner::kConnected, netdev.id.value, 0}, **hop);
                }
                if (there->hop == *hop) {
                    return {};
                }
                RouteTarget* was = there->hop;
                auto replaced = rib.replace(*there, **hop);
                hops_.drop_if_unused(*was);
                return replaced;
            });
        if (!ok) {
            hops_.drop_if_unused(**hop);
            return ok;
        }
    }
    for (const ConnectedRoute& route : old) {
        const auto same = [&](const ConnectedRoute& w) { return w.prefix == route.prefix; };
        if (std::ranges::none_of(wanted, same)) {
            with_rib(netdev.routing_table(), route.prefix, [&](auto& rib, const auto& prefix) {
                auto* there = rib.find({prefix, RouteOwner::kConnected, netdev.id.value, 0});
                if (there != nullptr) {
                    hops_.drop_if_unused(*rib.remove(*there));
                }
                return 0;
            });
        }
    }
    return {};
}

Result<void> Engine::set_addresses(Netdev& netdev, std::vector<net::InterfaceAddr> addresses) {
    const Changes::Scope change(changes_);
    std::swap(netdev.addresses, addresses);  // `addresses` are the old ones now
    const auto link_local = std::exchange(netdev.link_local, link_local_of(netdev));
    if (auto ok = sync_connected(netdev, addresses, netdev.addresses); !ok) {
        // What is left of the attempt goes; what was there takes no new room.
        static_cast<void>(sync_connected(netdev, netdev.addresses, addresses));
        netdev.addresses = std::move(addresses);
        netdev.link_local = link_local;
        return ok;
    }
    netdevs_.publish_domain(netdev.domain());
    reassess(netdev);
    changes_.all(*netdev.netns);
    return {};
}

Result<void> Engine::add_address(Netns& netns,
                                 const std::string& dev,
                                 const net::InterfaceAddr& address) {
    const auto netdev = netns.get(dev);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    if (auto ok = check_address(**netdev, address); !ok) {
        return ok;
    }
    auto addresses = (*netdev)->addresses;
    addresses.push_back(address);
    const auto link_local = (*netdev)->link_local;
    const Changes::Scope change(changes_);
    if (auto ok = set_addresses(**netdev, std::move(addresses)); !ok) {
        return ok;
    }
    neighbors_.table().remove({(*netdev)->id, address.address});
    neighbors_.announce_own(**netdev, address.address);
    const auto now = (*netdev)->link_local;
    if (now && now != link_local && address.address != net::IpAddr{*now}) {
        neighbors_.announce_own(**netdev, *now);
    }
    return {};
}

Result<void> Engine::delete_address(Netns& netns,
                                    const std::string& dev,
                                    const net::InterfaceAddr& address) {
    const auto netdev = netns.get(dev);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    auto addresses = (*netdev)->addresses;
    if (std::erase(addresses, address) == 0) {
        return fail(ErrorCode::kNotFound, "{} has no address {}", dev, address.to_string());
    }
    return set_addresses(**netdev, std::move(addresses));
}

void Engine::order_addresses(Netns& netns,
                             const std::string& dev,
                             std::span<const config::Address> wanted) {
    Netdev* netdev = netns.find(dev);
    if (netdev == nullptr) {
        return;
    }
    std::ranges::stable_sort(netdev->addresses, {}, [&](const net::InterfaceAddr& own) {
        return std::ranges::find(wanted, own, &config::Address::value) - wanted.begin();
    });
    const Changes::Scope change(changes_);
    netdevs_.publish_domain(netdev->domain());
    changes_.all(netns);
}

}  // namespace sluice::control
