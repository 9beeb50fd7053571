// SPDX-License-Identifier: BSD-3-Clause
#include "control/engine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <thread>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/check.h"
#include "control/connected.h"
#include "control/neighbor_input.h"
#include "net/wire.h"

namespace sluice::control {

using fib::DstType;
using fib::NetdevKind;

namespace {

// Connected routes are not what limits.* count, but need room in the table.
constexpr std::size_t kConnectedRoom = 65536;

template <class Lpm>
Result<std::unique_ptr<Lpm>> make_lpm(std::size_t routes, Reclaimer& reclaimer) {
    fib::LpmOptions options;
    options.max_routes = routes + kConnectedRoom;
    return Lpm::create(options, reclaimer);
}

/// Modulo 2^64, as `held` is.
stats::NetdevCounters difference(const stats::NetdevCounters& now,
                                 const stats::NetdevCounters& then) {
    using Words = std::array<std::uint64_t, sizeof(stats::NetdevCounters) / sizeof(std::uint64_t)>;
    auto words = std::bit_cast<Words>(now);
    const auto before = std::bit_cast<Words>(then);
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] -= before[i];
    }
    return std::bit_cast<stats::NetdevCounters>(words);
}

/// Scopes and groups that no interface address can be of.
Result<void> check_own_address(const net::InterfaceAddr& own) {
    const auto refuse = [&](std::string_view why) {
        return fail(ErrorCode::kInvalid, "{} is {}", own.to_string(), why);
    };
    if (own.address.is_v6()) {
        const auto& a = own.address.v6();
        if (a.is_multicast() || a.is_unspecified() || a.is_loopback()) {
            return refuse("no unicast address that a netdev can have");
        }
        return {};
    }
    const auto& a = own.address.v4();
    if (a.is_multicast() || a.is_this_network() || a.is_reserved()) {
        return refuse("no unicast address that a netdev can have");
    }
    if (own.length == 0) {
        return refuse("without a subnet: give it a length of 1 to 32");
    }
    if (own.length < 31 && own.network().address() == own.address) {
        return refuse("the network's own address");
    }
    if (own.broadcast() == a) {
        return refuse("the broadcast address of its subnet");
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const EngineOptions& options,
                                               fib::Shared& shared,
                                               dpdk::RcuDomain& rcu,
                                               Dataplane& dataplane) {
    auto lpm4 = make_lpm<fib::Ipv4Lpm>(options.ipv4_routes, rcu);
    if (!lpm4) {
        return std::unexpected(lpm4.error());
    }
    auto lpm6 = make_lpm<fib::Ipv6Lpm>(options.ipv6_routes, rcu);
    if (!lpm6) {
        return std::unexpected(lpm6.error());
    }
    std::unique_ptr<Engine> engine(
        new Engine(options, shared, rcu, dataplane, std::move(*lpm4), std::move(*lpm6)));
    const auto blackhole = engine->make_netdev("blackhole", NetdevKind::kBlackhole);
    const auto lo = engine->make_netdev("lo", NetdevKind::kLoopback);
    SLUICE_CHECK(blackhole && (*blackhole)->id == kBlackholeNetdev && lo);
    engine->netns_.loopback = (*lo)->id;
    engine->netdevs_.publish_all(engine->netns_);
    return engine;
}

Engine::Engine(const EngineOptions& options,
               fib::Shared& shared,
               dpdk::RcuDomain& rcu,
               Dataplane& dataplane,
               std::unique_ptr<fib::Ipv4Lpm> lpm4,
               std::unique_ptr<fib::Ipv6Lpm> lpm6)
    : options_(options),
      shared_(shared),
      rcu_(rcu),
      dataplane_(dataplane),
      netns_{.id = {}, .name = "default", .loopback = {}, .local = {}},
      netdevs_(shared, rcu, options.clock),
      neighbors_(shared, netdevs_, dataplane, options.neighbors),
      hops_(shared, neighbors_),
      main_{.v4 = Rib<net::Ipv4Addr>(std::move(lpm4)), .v6 = Rib<net::Ipv6Addr>(std::move(lpm6))},
      queues_(dataplane) {
    netns_.fib4 = &main_.v4.lpm();
    netns_.fib6 = &main_.v6.lpm();
}

Engine::~Engine() {
    // Deferred calls refer to members, and may defer further ones.
    while (rcu_.pending() != 0) {
        rcu_.drain_blocking();
    }
}

Result<Netdev*> Engine::make_netdev(const std::string& name, NetdevKind kind) {
    auto netdev = netdevs_.create(name, kind, netns_);
    if (!netdev) {
        return netdev;
    }
    const std::size_t writers = dataplane_.workers() + 1;
    std::vector<stats::NetdevCounters> counted;
    for (std::size_t writer = 0; writer < writers; ++writer) {
        counted.push_back(counters(**netdev, writer));
    }
    (*netdev)->baseline = std::move(counted);
    return netdev;
}

stats::NetdevCounters Engine::counters(const Netdev& netdev, std::size_t writer) const {
    const stats::Block& block = writer < dataplane_.workers() ? dataplane_.block(writer) : block_;
    stats::NetdevCounters sum{};
    stats::accumulate(sum, block.netdev(netdev.id));
    if (writer < netdev.baseline.size()) {
        sum = difference(sum, netdev.baseline[writer]);
    }
    return sum;
}

Result<void> Engine::quiesce(const std::string& what) {
    using std::chrono::steady_clock;
    constexpr auto kPatience = std::chrono::milliseconds(200);
    const auto deadline = steady_clock::now() + kPatience;
    const auto token = rcu_.start();
    while (!rcu_.elapsed(token)) {
        if (steady_clock::now() > deadline) {
            return fail(ErrorCode::kBusy, "{}: workers still use it, try again", what);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    rcu_.poll();
    return {};
}

// --- addresses ----------------------------------------------------------------------------------

const Netdev* Engine::static_neighbor(const Netdev& netdev, const net::IpAddr& address) const {
    const bool link_local = address.is_v6() && address.v6().is_link_local();
    const Netdev* found = nullptr;
    netdevs_.for_each([&](const Netdev& other) {
        const Neighbor* neighbor = neighbors_.table().find({other.id, address});
        if (neighbor != nullptr && neighbor->state == NeighborState::kPermanent &&
            (!link_local || &other == &netdev)) {
            found = &other;
        }
    });
    return found;
}

Result<void> Engine::check_address(const Netdev& netdev, const net::InterfaceAddr& address) const {
    if (netdev.kind != NetdevKind::kPort && netdev.kind != NetdevKind::kVlan) {
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
    if (const Netdev* owner = netdevs_.owner_of(address.address); owner != nullptr) {
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
        auto ok = with_rib(route.prefix, [&](auto& rib, const auto& prefix) -> Result<void> {
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
            with_rib(route.prefix, [&](auto& rib, const auto& prefix) {
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
    std::swap(netdev.addresses, addresses);  // `addresses` are the old ones now
    const auto link_local = std::exchange(netdev.link_local, link_local_of(netdev));
    if (auto ok = sync_connected(netdev, addresses, netdev.addresses); !ok) {
        // What is left of the attempt goes; what was there takes no new room.
        static_cast<void>(sync_connected(netdev, netdev.addresses, addresses));
        netdev.addresses = std::move(addresses);
        netdev.link_local = link_local;
        return ok;
    }
    netdevs_.publish_all(netns_);
    reassess(netdev);
    return {};
}

Result<void> Engine::add_address(const std::string& dev, const net::InterfaceAddr& address) {
    const auto netdev = netdevs_.get(dev);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    if (auto ok = check_address(**netdev, address); !ok) {
        return ok;
    }
    auto addresses = (*netdev)->addresses;
    addresses.push_back(address);
    const auto link_local = (*netdev)->link_local;
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

Result<void> Engine::delete_address(const std::string& dev, const net::InterfaceAddr& address) {
    const auto netdev = netdevs_.get(dev);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    auto addresses = (*netdev)->addresses;
    if (std::erase(addresses, address) == 0) {
        return fail(ErrorCode::kNotFound, "{} has no address {}", dev, address.to_string());
    }
    return set_addresses(**netdev, std::move(addresses));
}

void Engine::order_addresses(const std::string& dev, std::span<const config::Address> wanted) {
    Netdev* netdev = netdevs_.find(dev);
    if (netdev == nullptr) {
        return;
    }
    std::ranges::stable_sort(netdev->addresses, {}, [&](const net::InterfaceAddr& own) {
        return std::ranges::find(wanted, own, &config::Address::value) - wanted.begin();
    });
    netdevs_.publish_all(netns_);
}

// --- neighbors ----------------------------------------------------------------------------------

Result<void> Engine::add_neighbor(const std::string& dev,
                                  const net::IpAddr& address,
                                  const net::MacAddr& lladdr,
                                  Time now) {
    const auto netdev = netdevs_.get(dev);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    if ((*netdev)->kind != NetdevKind::kPort && (*netdev)->kind != NetdevKind::kVlan) {
        return fail(ErrorCode::kUnsupported, "{} has no neighbors", dev);
    }
    const std::uint8_t bits = address.is_v4() ? 32 : 128;
    if (auto ok = check_own_address({address, bits}); !ok) {
        return ok;
    }
    if ((*netdev)->owns(address) || netdevs_.owner_of(address) != nullptr) {
        return fail(ErrorCode::kInvalid, "{} is an address of this router", address.to_string());
    }
    if (const auto wrong = (*netdev)->never_a_host(address); !wrong.empty()) {
        return fail(ErrorCode::kInvalid, "{} is {} on {}", address.to_string(), wrong, dev);
    }
    return neighbors_.table().add_permanent({(*netdev)->id, address}, lladdr, now);
}

Result<void> Engine::delete_neighbor(const std::string& dev, const net::IpAddr& address) {
    const auto netdev = netdevs_.get(dev);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    if (!neighbors_.table().remove({(*netdev)->id, address})) {
        return fail(ErrorCode::kNotFound, "no neighbor {} on {}", address.to_string(), dev);
    }
    return {};
}

Result<std::size_t> Engine::flush_neighbors(const std::string& dev) {
    if (!dev.empty()) {
        if (const auto netdev = netdevs_.get(dev); !netdev) {
            return std::unexpected(netdev.error());
        }
    }
    const std::size_t before = neighbors_.table().size();
    netdevs_.for_each([&](const Netdev& netdev) {
        if (dev.empty() || netdev.name == dev) {
            neighbors_.table().flush(netdev.id, true);
        }
    });
    return before - neighbors_.table().size();
}

// --- punted packets -----------------------------------------------------------------------------

void Engine::punted(NetdevId ingress,
                    std::span<const std::uint8_t> frame,
                    std::size_t l3_offset,
                    Time now) {
    stats::NetdevCounters& counters = block_.netdev(ingress);
    stats::bump(counters.held, ~std::uint64_t{0});  // the worker booked it on
    const auto* type = net::header_at<net::Be16>(frame, l3_offset < 2 ? 0 : l3_offset - 2);
    const bool arp = type != nullptr && type->host() == net::kEtherTypeArp;
    const unsigned family = arp ? 0 : 2;

    const Netdev* netdev = netdevs_.find(ingress);
    DropReason reason = DropReason::kNone;
    if (netdev == nullptr) {
        reason = DropReason::kNetdevGone;
    } else if (!netdev->up()) {
        reason = DropReason::kNetdevDown;
    } else {
        const NeighborInput input{neighbors_, dataplane_, *netdev, now};
        reason = arp ? arp_input(input, frame, l3_offset) : ndp_input(input, frame, l3_offset);
    }
    if (reason == DropReason::kNone) {
        stats::bump(counters.delivered);
    } else {
        block_.drop(ingress, reason, family);
    }
}

}  // namespace sluice::control
