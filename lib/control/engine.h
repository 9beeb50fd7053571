// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
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
#include "control/changes.h"
#include "control/controller.h"
#include "control/dataplane.h"
#include "control/dsts.h"
#include "control/exceptions.h"
#include "control/multipath.h"
#include "control/neighbors.h"
#include "control/netdevs.h"
#include "control/netns.h"
#include "control/next_hop_counters.h"
#include "control/next_hops.h"
#include "control/nexthop_objects.h"
#include "control/queues.h"
#include "control/rib.h"
#include "control/uncached.h"
#include "dpdk/rcu.h"
#include "fib/shared.h"
#include "net/address.h"
#include "stats/counters.h"

namespace sluice::control {

struct EngineOptions {
    std::uint32_t ipv4_routes = 1'000'000;  // limits.ipv4-routes
    std::uint32_t ipv6_routes = 250'000;
    NeighborSettings neighbors;
    std::size_t uncached_lists = kMaxNetdevs;  // see UncachedLists
    bool rx_interrupts = false;
    std::uint16_t descriptors = 1024;  // per queue, receiving and sending
    Netdevs::Clock clock = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
};

/// Work that is left of a removal or a move, done in slices; engine_removal.cc.
struct Removal;

/// Everything the control thread owns, and what can be done to it. Each call checks first and
/// changes afterwards. It knows nothing of files or sockets. Control thread.
class Engine final : private ExceptionActions {
public:
    /// `shared` is what the workers of `dataplane` read, and `changes` its reclaimer.
    static Result<std::unique_ptr<Engine>> create(const EngineOptions& options,
                                                  fib::Shared& shared,
                                                  Changes& changes,
                                                  Dataplane& dataplane);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    Engine(Engine&&) = delete;
    Engine& operator=(Engine&&) = delete;
    ~Engine() override;

public:  // netns; engine_netns.cc
    Result<Netns*> add_netns(const std::string& name);
    /// See Controller::delete_netns().
    Result<Ticket> delete_netns(Netns& netns);
    Netns& default_netns() noexcept { return *default_; }
    NetnsSet& netns() noexcept { return netns_; }
    const NetnsSet& netns() const noexcept { return netns_; }
    void set_multipath_hash(Netns& netns, net::Family family, const config::MultipathHash& hash);
    /// See Controller::move_link().
    Result<Ticket> move_link(Netns& netns, const std::string& name, Netns& to);

public:  // links; engine_links.cc, engine_change.cc, engine_vrfs.cc, engine_removal.cc
    /// Without the addresses that `port` and `vlan` may carry.
    Result<void> add_port(Netns& netns, const std::string& name, const config::Port& port);
    Result<void> add_vlan(Netns& netns, const std::string& name, const config::Vlan& vlan);
    Result<void> add_vrf(Netns& netns, const std::string& name, std::uint32_t table);
    /// Empty: leaves its VRF.
    Result<void> set_vrf(Netns& netns, const std::string& name, const std::string& vrf);
    /// See Controller::delete_netdevs().
    Result<Ticket> delete_netdevs(Netns& netns, std::span<const std::string> names);
    Result<void> change_netdev(Netns& netns,
                               const std::string& name,
                               const config::NetdevSettings& to);
    void change_instance(const config::ChangeInstance& change);
    void set_cache_mode(config::CacheMode mode);
    void flush_cache();
    /// Follows carriers; cheap, ten times a second is plenty.
    void poll_links();

public:  // work that is left, and who waits for it
    bool settled(Ticket ticket);
    /// Goes on with removals for about a slice; true: there is more to do at once.
    bool work();

public:  // addresses; engine_addresses.cc
    Result<void> add_address(Netns& netns,
                             const std::string& dev,
                             const net::InterfaceAddr& address);
    Result<void> delete_address(Netns& netns,
                                const std::string& dev,
                                const net::InterfaceAddr& address);
    /// Puts its addresses into the order of `wanted`, others last: the first in a subnet is the one
    /// that packets from here have as source.
    void order_addresses(Netns& netns,
                         const std::string& dev,
                         std::span<const config::Address> wanted);

public:  // routes; engine_routes.cc, engine_show.cc
    Result<void> add_route(Netns& netns, const RouteRequest& route, RouteMode mode);
    Result<void> delete_route(Netns& netns, const RouteRequest& route);
    /// Adds `to` before `from` goes, or in its place where the metrics are the same.
    Result<void> replace_route(Netns& netns, const RouteRequest& from, const RouteRequest& to);
    /// Whether one of that owner's leads out of the netdev, not counting those over next-hop
    /// objects.
    bool has_routes(NetdevId netdev, RouteOwner owner);
    Flush flush_routes(Netns& netns, const RouteFilter& filter);  // engine_flush.cc
    Result<RouteLookup> lookup_route(const Netns& netns, const RouteQuery& query) const;
    void for_each_route(const Netns& netns,
                        std::uint32_t table,
                        const std::function<void(const RouteInfo&)>& each) const;
    std::optional<net::IpPrefix> routes_after(
        const Netns& netns,
        std::uint32_t table,
        const std::optional<net::IpPrefix>& after,
        std::size_t limit,
        const std::function<void(const RouteInfo&)>& each) const;

public:  // next hops and rules; engine_nexthops.cc, engine_rules.cc
    Result<void> add_nexthop(Netns& netns,
                             std::uint32_t id,
                             const config::NextHop& hop,
                             RouteOwner owner,
                             bool replace,
                             std::uint8_t protocol = 0);
    Result<void> delete_nexthop(Netns& netns, std::uint32_t id);
    std::size_t flush_nexthops(Netns& netns, const RouteFilter& filter);
    std::vector<NextHopInfo> nexthops(const Netns& netns) const;
    Result<void> add_rule(Netns& netns, const config::Rule& rule, RouteOwner owner);
    Result<void> delete_rule(Netns& netns, const config::Rule& rule);
    std::vector<RuleInfo> rules(const Netns& netns) const;

public:  // neighbors; engine_neighbors.cc
    Result<void> add_neighbor(Netns& netns,
                              const std::string& dev,
                              const net::IpAddr& address,
                              const net::MacAddr& lladdr,
                              Time now);
    Result<void> delete_neighbor(Netns& netns, const std::string& dev, const net::IpAddr& address);
    Result<Flush> flush_neighbors(Netns& netns, const std::string& dev);  // engine_flush.cc

public:  // exceptions; engine_exceptions.cc
    std::vector<ExceptionInfo> exceptions(const Netns& netns) const;
    Flush flush_exceptions(Netns& netns);  // engine_flush.cc

public:  // what workers bring
    /// Books a punted packet off and acts on it. `frame` contiguous from its Ethernet header; empty
    /// when it is longer than anything that ARP or neighbour discovery send.
    void punted(NetdevId ingress,
                std::span<const std::uint8_t> frame,
                std::size_t l3_offset,
                Time now);
    void handle(std::size_t worker, const pipeline::WorkerEvent& event, Time now);
    /// What time brings: exceptions expire, idle buckets of groups move. A few times a second.
    void tick();

public:
    /// For the end of the process: closes every device. Workers must have stopped.
    void close_ports();

    Netdevs& netdevs() noexcept { return netdevs_; }
    const Netdevs& netdevs() const noexcept { return netdevs_; }
    Neighbors& neighbors() noexcept { return neighbors_; }
    const Neighbors& neighbors() const noexcept { return neighbors_; }
    Dataplane& dataplane() noexcept { return dataplane_; }
    fib::Shared& shared() noexcept { return shared_; }
    Changes& changes() noexcept { return changes_; }
    const stats::Block& block() const noexcept { return block_; }
    /// What `writer` (a worker, or the control thread behind the last one) counted for a netdev
    /// since that was created.
    stats::NetdevCounters counters(const Netdev& netdev, std::size_t writer) const;
    std::vector<DrainInfo> draining() const;
    const UncachedLists& uncached() const noexcept { return uncached_; }

private:
    Engine(const EngineOptions& options,
           fib::Shared& shared,
           Changes& changes,
           Dataplane& dataplane);

    Result<Netdev*> make_netdev(Netns& netns, const std::string& name, fib::NetdevKind kind);
    const stats::Block& block_of(std::size_t writer) const noexcept;
    /// From zero, whatever its id counted before.
    void start_counting(Netdev& netdev);
    std::uint64_t held(NetdevId id) const;
    std::uint64_t packets_at(std::uint32_t counter) const;
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

    /// The loopback, the main table and the next-hop objects of a new netns.
    void equip(Netns& netns);

    // Exceptions.
    fib::DstIndex lookup(NetdevId domain, const net::IpAddr& destination) override;
    void attach(const NeighborKey& key, fib::DstIndex dst) override;
    void detach(const NeighborKey& key, fib::DstIndex dst) override;
    void changed(NetdevId domain, const net::IpAddr& destination) override;
    void release(fib::DstIndex dst, net::Family family) override;
    void learn(std::size_t worker, const pipeline::WorkerEvent& event);
    /// Of the destinations in `prefix`, or of all where it is null.
    void recheck_exceptions(const net::IpPrefix* prefix);

    // Removal.
    static constexpr std::size_t kBetweenLooks = 32;  // at the clock: a few us for each at most
    /// Nothing leaves over any of them from here on: next hops and uncached dsts are re-pointed
    /// (U-04), groups shrink (G-04).
    void cut_off(Netns& netns, std::span<Netdev* const> netdevs, Removal& removal);
    /// Their devices close when no worker uses them any more. Those with a domain's head in it come
    /// before the head.
    void destroy(std::span<Netdev* const> netdevs);
    void close_device(Netdev& netdev);
    /// To another netns, without its addresses, not published yet.
    void move(Netdev& netdev, Netns& to);
    void arrive(std::span<Netdev* const> moved);
    /// The first slice, at the end of the call; work() does the rest.
    Ticket begin(std::unique_ptr<Removal> removal);
    bool step(Removal& removal, Time deadline);
    /// `work` adds to `removed`; true: done.
    Flush begin_flush(std::move_only_function<bool(std::size_t& removed, Time deadline)> work);
    bool withdraw(Netns& netns, RouteTarget& target, Time deadline);
    bool withdraw_all(Netns& netns, Time deadline);
    void finish(std::unique_ptr<Removal> removal);

    // VRFs.
    Result<void> check_master(const Netdev& netdev, const Netdev* master) const;
    Result<void> change_master(Netdev& netdev, Netdev* master);
    /// Members of VRFs in `going` that stay themselves return to the netns's own domain.
    Result<void> release_members(Netns& netns, const std::set<Netdev*>& going);

    /// The netdev of a domain with a static neighbor of that address; link-local ones: only
    /// `netdev` counts.
    const Netdev* static_neighbor(const Netdev& netdev, const net::IpAddr& address) const;
    Result<void> check_address(const Netdev& netdev, const net::InterfaceAddr& address) const;
    Result<void> set_addresses(Netdev& netdev, std::vector<net::InterfaceAddr> addresses);
    Result<void> sync_connected(Netdev& netdev,
                                std::span<const net::InterfaceAddr> before,
                                std::span<const net::InterfaceAddr> after);

    /// Checks a request, as far as it can without looking at other routes, and finds where it
    /// leads.
    Result<NextHopKey> resolve_request(const Netns& netns, const RouteRequest& route) const;
    Result<NextHop*> hop_for(const NextHopKey& key);
    Result<RouteTarget*> target_for(Netns& netns, const RouteRequest& route);
    Result<RouteTarget*> multipath_for(Netns& netns, const RouteRequest& route);
    Result<void> put_route(Netns& netns,
                           const RouteRequest& route,
                           RouteMode mode,
                           RouteTarget& target);
    void drop_if_unused(Netns& netns, RouteTarget& target);
    /// What a change of next-hop objects leaves to do.
    void settle(Netns& netns, const NextHopChange& change);
    Result<NextHopKey> resolve_nexthop(const Netns& netns,
                                       config::NextHop& hop,
                                       RouteOwner owner) const;
    Result<void> check_limit(net::Family family) const;
    template <class Addr>
    bool matches(const Netns& netns, const RouteRequest& request, const Route<Addr>& route) const;
    /// That of such a route over an object or a group of its own.
    bool leads_as(const Netns& netns,
                  const RouteRequest& request,
                  const ObjectTarget& target) const;
    std::vector<RouteLeg> legs_of(const NextHopObject& group) const;
    /// Its netdev is gone, and so will be its routes.
    bool is_dead(const RouteTarget& target) const noexcept;
    template <class Addr>
    RouteInfo describe(const Table& table,
                       const Route<Addr>& route,
                       const RouteTarget& target) const;
    template <class Fn>
    auto shower(const Table& table, Fn& each) const;
    /// What is looked up, and where it came in.
    struct Flow {
        const Netdev& in;
        const RouteQuery& query;
    };
    /// Among prefixes of at least `shortest`; through at most so many VRFs more. False: this table
    /// has no route.
    bool look_up(RouteLookup& found,
                 const Flow& flow,
                 const Table& table,
                 unsigned shortest,
                 unsigned steps) const;
    void complete(RouteLookup& found, const RouteTarget& target, const Flow& flow) const;
    /// Of a group: the next hop that the flow takes.
    const NextHop* member_of(RouteLookup& found,
                             const ObjectTarget& target,
                             const Flow& flow) const;
    /// Puts the routes over the netdev's next hops in or out of the lookup table.
    void reassess(const Netdev& netdev);
    void update_routes(RouteTarget& target);
    /// Removes the route; the target may be unused then.
    RouteTarget& take_out(RouteHook& hook, net::Family family);

    template <class Fn>
    static auto with_rib(Table& table, const net::IpPrefix& prefix, Fn&& fn) {
        return prefix.is_v4() ? fn(table.v4, prefix.v4()) : fn(table.v6, prefix.v6());
    }
    std::size_t& configured(net::Family family) noexcept {
        return family == net::Family::kIpv4 ? configured4_ : configured6_;
    }

    EngineOptions options_;
    fib::Shared& shared_;
    Changes& changes_;
    Dataplane& dataplane_;
    Netdevs netdevs_;
    UncachedLists uncached_;
    Dsts dsts_;
    Exceptions exceptions_;
    Neighbors neighbors_;
    NextHops hops_;
    NextHopCounters next_hop_counters_;
    NetnsSet netns_;  // routes know next hops, which go after them
    Netns* default_ = nullptr;
    Queues queues_;
    std::size_t configured4_ = 0;  // routes that limits.* count: not the connected ones
    std::size_t configured6_ = 0;
    std::set<std::string> closing_;  // device names, until their ports are closed
    std::deque<std::unique_ptr<Removal>> removals_;
    Ticket last_ticket_ = 0;
    std::set<Ticket> unsettled_;
    stats::Block block_;
};

std::string_view type_name(fib::DstType type) noexcept;  // of a route

}  // namespace sluice::control
