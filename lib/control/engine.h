// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "config/diff.h"
#include "config/model.h"
#include "control/controller.h"
#include "control/dataplane.h"
#include "control/neighbors.h"
#include "control/netdevs.h"
#include "control/next_hops.h"
#include "control/queues.h"
#include "control/rib.h"
#include "dpdk/rcu.h"
#include "fib/shared.h"
#include "net/address.h"
#include "stats/counters.h"

namespace sluice::control {

struct EngineOptions {
    std::uint32_t ipv4_routes = 1'000'000;  // limits.ipv4-routes
    std::uint32_t ipv6_routes = 250'000;
    NeighborSettings neighbors;
    bool rx_interrupts = false;
    std::uint16_t descriptors = 1024;  // per queue, receiving and sending
    Netdevs::Clock clock = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
};

/// A main or other routing table.
struct Table {
    Rib<net::Ipv4Addr> v4;
    Rib<net::Ipv6Addr> v6;
};

/// Everything the control thread owns, and what can be done to it. Each call checks first and
/// changes afterwards. It knows nothing of files or sockets. Control thread.
class Engine {
public:
    /// `shared` is what the workers of `dataplane` read.
    static Result<std::unique_ptr<Engine>> create(const EngineOptions& options,
                                                  fib::Shared& shared,
                                                  dpdk::RcuDomain& rcu,
                                                  Dataplane& dataplane);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    Engine(Engine&&) = delete;
    Engine& operator=(Engine&&) = delete;
    ~Engine();

public:  // links; engine_links.cc
    /// Without the addresses that `port` and `vlan` may carry.
    Result<void> add_port(const std::string& name, const config::Port& port);
    Result<void> add_vlan(const std::string& name, const config::Vlan& vlan);
    Result<void> delete_netdevs(std::span<const std::string> names);
    Result<void> change_netdev(const std::string& name, const config::NetdevSettings& to);
    void change_instance(const config::ChangeInstance& change);
    /// Follows carriers; cheap, ten times a second is plenty.
    void poll_links();

public:  // addresses
    Result<void> add_address(const std::string& dev, const net::InterfaceAddr& address);
    Result<void> delete_address(const std::string& dev, const net::InterfaceAddr& address);
    /// Puts its addresses into the order of `wanted`, others last: the first in a subnet is the one
    /// that packets from here have as source.
    void order_addresses(const std::string& dev, std::span<const config::Address> wanted);

public:  // routes; engine_routes.cc
    Result<void> add_route(const RouteRequest& route, RouteMode mode);
    Result<void> delete_route(const RouteRequest& route);
    /// Adds `to` before `from` goes, or in its place where the metrics are the same.
    Result<void> replace_route(const RouteRequest& from, const RouteRequest& to);
    std::size_t flush_routes(RouteOwner owner);
    RouteLookup lookup_route(const net::IpAddr& destination) const;
    void for_each_route(const std::function<void(const RouteInfo&)>& each) const;
    std::optional<net::IpPrefix> routes_after(
        const std::optional<net::IpPrefix>& after,
        std::size_t limit,
        const std::function<void(const RouteInfo&)>& each) const;

public:  // neighbors
    Result<void> add_neighbor(const std::string& dev,
                              const net::IpAddr& address,
                              const net::MacAddr& lladdr,
                              Time now);
    Result<void> delete_neighbor(const std::string& dev, const net::IpAddr& address);
    Result<std::size_t> flush_neighbors(const std::string& dev);

public:  // what workers bring
    /// Books a punted packet off and acts on it. `frame` contiguous from its Ethernet header; empty
    /// when it is longer than anything that ARP or neighbour discovery send.
    void punted(NetdevId ingress,
                std::span<const std::uint8_t> frame,
                std::size_t l3_offset,
                Time now);

public:
    /// For the end of the process: closes every device. Workers must have stopped.
    void close_ports();

    Netdevs& netdevs() noexcept { return netdevs_; }
    const Netdevs& netdevs() const noexcept { return netdevs_; }
    Neighbors& neighbors() noexcept { return neighbors_; }
    const Neighbors& neighbors() const noexcept { return neighbors_; }
    Dataplane& dataplane() noexcept { return dataplane_; }
    const stats::Block& block() const noexcept { return block_; }
    /// What `writer` (a worker, or the control thread behind the last one) counted for a netdev
    /// since that was created.
    stats::NetdevCounters counters(const Netdev& netdev, std::size_t writer) const;

private:
    Engine(const EngineOptions& options,
           fib::Shared& shared,
           dpdk::RcuDomain& rcu,
           Dataplane& dataplane,
           std::unique_ptr<fib::Ipv4Lpm> lpm4,
           std::unique_ptr<fib::Ipv6Lpm> lpm6);

    Result<Netdev*> make_netdev(const std::string& name, fib::NetdevKind kind);
    void remove_netdev(Netdev& netdev);
    Result<void> check_settings(const Netdev& netdev, const config::NetdevSettings& to) const;
    Result<void> set_up_device(Netdev& netdev, const config::NetdevSettings& to);
    Result<void> set_device_mtu(Netdev& netdev, std::uint16_t mtu);
    Result<void> update_promiscuous(Netdev& port, bool wanted);
    void change_mac(Netdev& netdev, const net::MacAddr& mac);
    void mac_settled(NetdevId id);
    void went_up_or_down(Netdev& netdev);
    void warn_of_twins(const Netdev& netdev) const;
    /// Waits until no worker uses what was unpublished before. Only for what has to touch a device
    /// anyway, whose own calls take longer than a worker's round. kBusy after a while.
    Result<void> quiesce(const std::string& what);

    /// The netdev with a static neighbor of that address; link-local ones: only `netdev` counts.
    const Netdev* static_neighbor(const Netdev& netdev, const net::IpAddr& address) const;
    Result<void> check_address(const Netdev& netdev, const net::InterfaceAddr& address) const;
    Result<void> set_addresses(Netdev& netdev, std::vector<net::InterfaceAddr> addresses);
    Result<void> sync_connected(Netdev& netdev,
                                std::span<const net::InterfaceAddr> before,
                                std::span<const net::InterfaceAddr> after);

    /// Checks a request, as far as it can without looking at other routes, and finds where it
    /// leads.
    Result<NextHopKey> resolve_request(const RouteRequest& route) const;
    Result<NextHop*> hop_for(const NextHopKey& key);
    Result<void> check_limit(net::Family family) const;
    RouteInfo describe(const net::IpPrefix& prefix,
                       std::uint32_t metric,
                       RouteOwner owner,
                       bool active,
                       const RouteTarget& target) const;
    /// Puts the routes over the netdev's next hops in or out of the lookup table.
    void reassess(const Netdev& netdev);
    void update_routes(RouteTarget& hop);

    template <class Fn>
    auto with_rib(const net::IpPrefix& prefix, Fn&& fn);

    EngineOptions options_;
    fib::Shared& shared_;
    dpdk::RcuDomain& rcu_;
    Dataplane& dataplane_;
    Netns netns_;
    Netdevs netdevs_;
    Neighbors neighbors_;
    NextHops hops_;
    Table main_;
    Queues queues_;
    std::size_t configured4_ = 0;  // routes that limits.* count: not the connected ones
    std::size_t configured6_ = 0;
    std::set<std::string> closing_;  // device names, until their ports are closed
    stats::Block block_;
};

template <class Fn>
auto Engine::with_rib(const net::IpPrefix& prefix, Fn&& fn) {
    return prefix.is_v4() ? fn(main_.v4, prefix.v4()) : fn(main_.v6, prefix.v6());
}

std::string_view type_name(fib::DstType type) noexcept;  // of a route

}  // namespace sluice::control
