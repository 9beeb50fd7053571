// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "config/config.h"
#include "net/address.h"
#include "stats/counters.h"

/// The control thread's whole interface to what is running: the configuration reader, the socket
/// and the tests all go through it. Every call checks first and changes afterwards: an error leaves
/// the state as it was. All members: control thread.
namespace sluice::control {

/// Who asked for a route; the smaller wins at equal metric (interface.md section 1).
enum class RouteOwner : std::uint8_t { kConnected, kFile, kCli, kFpm };
std::string_view to_string(RouteOwner owner) noexcept;  // "connected", "file", "cli", "fpm"

/// A change that is done as far as the caller's state goes, but of which something is still under
/// way: see Controller::settled().
using Ticket = std::uint64_t;

/// What goes bit by bit, and how much of it has gone so far: all when the ticket is settled.
struct Flush {
    Ticket ticket = 0;
    std::shared_ptr<const std::size_t> removed;
};

struct LinkInfo {
    NetdevId id;
    std::string name;
    std::string kind;  // "port", "vlan", "vrf", "loopback", "blackhole"
    std::string netns;
    std::optional<net::MacAddr> mac;
    std::uint16_t mtu = 0;
    bool up = false;       // administratively
    bool running = false;  // up, and so is the carrier
    bool forwarding = false;
    config::NetdevSettings settings;
    std::string vrf;          // that it is a member of; empty: none
    std::uint32_t table = 0;  // of a VRF
    std::size_t dsts = 0;     // that lead out of it, uncached ones too
    std::string device;       // of a port: devargs
    std::string driver;
    std::uint16_t rx_queues = 0;
    std::uint32_t speed_mbps = 0;  // 0: unknown
    std::string link;              // of a VLAN: its parent
    std::uint16_t vlan_id = 0;
    std::vector<net::InterfaceAddr> addresses;  // with the link-local one
};

struct LinkChange {
    std::optional<bool> up;
    std::optional<std::uint16_t> mtu;
    std::optional<net::MacAddr> mac;
    std::optional<bool> promiscuous;
    std::optional<std::string> vrf;  // empty: leaves its VRF
    std::optional<bool> forwarding;
    std::optional<bool> send_redirects;
    std::optional<config::SourceValidation> source_validation;
    std::optional<bool> route_localnet;
    std::optional<bool> bc_forwarding;
    std::optional<std::uint32_t> mark;
};

struct AddressInfo {
    std::string netdev;
    net::InterfaceAddr address;
    bool link_local = false;
};

/// One of several next hops that a route names itself.
struct RouteLeg {
    std::optional<net::IpAddr> via;
    std::string dev;
    bool on_link = false;
    std::uint32_t weight = 1;
    bool active = false;  // to be seen only
};

struct RouteInfo {
    net::IpPrefix prefix;
    std::string type;  // unicast, local, broadcast, blackhole, unreachable, prohibit
    std::optional<net::IpAddr> via;
    std::string dev;  // empty: none
    std::optional<std::uint32_t> nexthop{};
    std::uint32_t table = config::kMainTable;
    std::uint32_t metric = 0;
    std::uint16_t mtu = 0;  // 0: the netdev's
    RouteOwner owner = RouteOwner::kCli;
    std::uint8_t protocol = 0;  // control/route_labels.h
    bool on_link = false;
    bool active = false;  // in the table that packets are looked up in
    std::vector<RouteLeg> legs{};
};

/// How far away a route's destinations are; the smaller the further (rtnetlink's numbers).
enum class RouteScope : std::uint8_t { kGlobal = 0, kLink = 253, kHost = 254, kNowhere = 255 };
std::string_view to_string(RouteScope scope) noexcept;  // "global", "link", "host"

/// A route to add or remove. `dev` may be empty where the gateway is on-link. To remove: what is
/// given must match; `via`, `metric` absent, `dev` empty and `type` unicast match any.
struct RouteRequest {
    net::IpPrefix prefix;
    std::string type = "unicast";
    std::optional<net::IpAddr> via;
    std::string dev;  // a VRF: the lookup goes on in its table
    std::optional<std::uint32_t> nexthop{};
    std::uint32_t table = config::kMainTable;
    std::optional<std::uint32_t> metric;  // delete: any when absent
    std::uint16_t mtu = 0;
    bool on_link = false;
    RouteOwner owner = RouteOwner::kCli;
    /// In place of via and dev, at least two.
    std::vector<RouteLeg> legs{};
    std::uint8_t protocol = 0;  // a label to find it by; 0: its owner's (control/route_labels.h)
    std::optional<RouteScope> scope{};  // only checked: an IPv4 route has the scope of what it is
};
/// Which routes to clear, or to show.
struct RouteFilter {
    // NOLINTNEXTLINE(google-explicit-constructor): of an owner is the usual one
    RouteFilter(RouteOwner of, std::optional<std::uint8_t> with = {}) : owner(of), protocol(with) {}
    RouteOwner owner;
    std::optional<std::uint8_t> protocol;
    friend bool operator==(const RouteFilter&, const RouteFilter&) = default;
    bool takes(RouteOwner of, std::uint8_t with) const noexcept {
        return of == owner && (!protocol || *protocol == with);
    }
};
enum class RouteMode : std::uint8_t { kAdd, kReplace };

/// A packet to ask about: what the rules may read of it.
struct RouteQuery {
    net::IpAddr destination;
    std::optional<net::IpAddr> from{};
    std::string iif{};  // empty: one that sluice sends itself
    std::uint8_t dscp = 0;
    std::uint8_t protocol = 0;
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;
};

/// What it would meet.
struct RouteLookup {
    std::string type;  // of a route, or "none", or "loop": VRFs' tables that send to each other
    std::optional<net::IpPrefix> prefix;  // that matched; none: no route
    std::optional<net::IpAddr> via;
    std::string dev;
    std::optional<std::uint32_t> nexthop{};  // that the route names
    std::optional<std::uint32_t> member{};   // of that group: which this flow takes
    std::uint32_t table = 0;                 // where it matched
    std::optional<net::IpAddr> source;       // that sluice itself would use
    std::uint16_t mtu = 0;
};

struct VrfInfo {
    std::string name;
    std::uint32_t table = 0;
    std::vector<std::string> interfaces;
};

struct NetnsInfo {
    std::string name;
    std::size_t netdevs = 0;
    std::size_t routes4 = 0, routes6 = 0;            // of all its tables
    std::uint64_t generation4 = 0, generation6 = 0;  // of the last change to all of it
};

struct NextHopInfo {
    std::uint32_t id = 0;
    config::NextHop hop;
    RouteOwner owner = RouteOwner::kCli;
    std::uint8_t protocol = 0;  // a label to find it by; 0: its owner's (control/route_labels.h)
    bool active = false;     // usable: its netdev is up, its gateway in reach; a group: a member is
    std::size_t routes = 0;  // over it
    std::uint64_t packets = 0;  // sent over it, by groups too
    struct Member {
        std::uint32_t id = 0;
        std::uint32_t weight = 1;
        bool active = false;
        std::uint32_t buckets = 0;  // that it has now
        std::uint64_t packets = 0;
    };
    std::vector<Member> members;  // of a group
};

struct RuleInfo {
    config::Rule rule;
    RouteOwner owner = RouteOwner::kCli;
};

/// A path MTU or another gateway that was learned for one destination.
struct ExceptionInfo {
    net::IpAddr destination;
    std::string domain;  // the VRF; empty: the netns's main tables
    std::string dev;
    std::optional<net::IpAddr> via;
    std::uint16_t mtu = 0;
    std::uint32_t expires_s = 0;  // from now
};

/// Uncached dsts of one worker and family that lead out of a netdev.
struct UncachedInfo {
    std::size_t worker = 0;
    std::string netns;
    std::string netdev;
    net::Family family = net::Family::kIpv4;
    std::size_t dsts = 0;
};

/// A netdev that was removed while something still refers to it.
struct DrainInfo {
    NetdevId id;
    std::string name;
    std::size_t dsts = 0;    // not yet reclaimed
    std::uint64_t held = 0;  // packets in workers' hold queues that came in by it
    std::uint32_t since_ms = 0;
};

struct CacheInfo {
    config::CacheMode mode = config::CacheMode::kAuto;
    std::size_t entries = 0;  // per worker and family
    /// Rules that no key can hold, by netns name: their packets bypass the cache.
    std::vector<std::string> bypassing;
};

struct NeighborInfo {
    net::IpAddr address;
    std::string netdev;
    std::optional<net::MacAddr> lladdr;
    std::string state;  // incomplete, reachable, stale, delay, probe, failed, permanent
};

struct WorkerInfo {
    WorkerId id;
    unsigned lcore = 0;
    stats::WorkerCounters counters;  // read once
    double tsc_hz = 0;
};

struct PoolInfo {
    std::string name;
    std::uint32_t size = 0;
    std::uint32_t in_use = 0;  // by devices' queues too: a running daemon has a level above zero
};

class Controller {
public:
    Controller() = default;
    Controller(const Controller&) = delete;
    Controller& operator=(const Controller&) = delete;
    Controller(Controller&&) = delete;
    Controller& operator=(Controller&&) = delete;
    virtual ~Controller() = default;

    // `netns` names a routing instance in all of these; kNotFound when there is none.

    virtual Result<void> add_netns(const std::string& name) = 0;
    /// Its ports go to "default" (without their addresses), what else is in it ends. kBusy: a name
    /// clash there. kInvalid for "default".
    virtual Result<Ticket> delete_netns(const std::string& name) = 0;
    virtual std::vector<NetnsInfo> netns() const = 0;

    virtual Result<void> add_port(const std::string& netns,
                                  const std::string& name,
                                  const config::Port& port) = 0;
    virtual Result<void> add_vlan(const std::string& netns,
                                  const std::string& name,
                                  const config::Vlan& vlan) = 0;
    virtual Result<void> add_vrf(const std::string& netns,
                                 const std::string& name,
                                 std::uint32_t table) = 0;
    /// Ports, VLANs and VRFs. All or none; one pass, one generation (U-07). A port takes its VLANs
    /// along only if they are named too (else kBusy); a VRF gives its members back.
    virtual Result<Ticket> delete_netdevs(const std::string& netns,
                                          std::span<const std::string> names) = 0;
    virtual Result<void> change_link(const std::string& netns,
                                     const std::string& name,
                                     const LinkChange& change) = 0;
    /// M-01. A VLAN may move alone; a port takes its VLANs along. When settled(), no packet that
    /// came in under the old netns leaves by it any more.
    virtual Result<Ticket> move_link(const std::string& netns,
                                     const std::string& name,
                                     const std::string& to) = 0;
    /// Whether every worker works with what the change published, and the routes of what was
    /// removed are out of the tables. Others are served meanwhile; who asked waits (U-09, M-02).
    virtual bool settled(Ticket ticket) = 0;

    virtual Result<void> add_address(const std::string& netns,
                                     const std::string& dev,
                                     const net::InterfaceAddr& address) = 0;
    virtual Result<void> delete_address(const std::string& netns,
                                        const std::string& dev,
                                        const net::InterfaceAddr& address) = 0;

    virtual Result<void> add_route(const std::string& netns,
                                   const RouteRequest& route,
                                   RouteMode mode) = 0;
    virtual Result<void> delete_route(const std::string& netns, const RouteRequest& route) = 0;
    virtual Result<Flush> flush_routes(const std::string& netns, const RouteFilter& filter) = 0;
    virtual Result<RouteLookup> lookup_route(const std::string& netns,
                                             const RouteQuery& query) const = 0;

    /// `hop` of the kinds of the file. `replace`: also takes the place of one of the same kind.
    /// `protocol`: a label, as of routes.
    virtual Result<void> add_nexthop(const std::string& netns,
                                     std::uint32_t id,
                                     const config::NextHop& hop,
                                     bool replace,
                                     std::uint8_t protocol) = 0;
    /// Groups go on with their other members; a group without any goes, and so do routes over what
    /// went (G-04).
    virtual Result<void> delete_nexthop(const std::string& netns, std::uint32_t id) = 0;
    /// Deletes those that `filter` takes; how many they were.
    virtual Result<std::size_t> flush_nexthops(const std::string& netns,
                                               const RouteFilter& filter) = 0;
    virtual Result<std::vector<NextHopInfo>> nexthops(const std::string& netns) const = 0;

    virtual Result<void> add_rule(const std::string& netns, const config::Rule& rule) = 0;
    /// The one rule that is equal to `rule`; or, where that says nothing but a priority (and
    /// family), the first of that priority.
    virtual Result<void> delete_rule(const std::string& netns, const config::Rule& rule) = 0;
    virtual Result<std::vector<RuleInfo>> rules(const std::string& netns) const = 0;

    virtual Result<std::vector<ExceptionInfo>> exceptions(const std::string& netns) const = 0;
    virtual Result<Flush> flush_exceptions(const std::string& netns) = 0;

    virtual Result<void> add_neighbor(const std::string& netns,
                                      const std::string& dev,
                                      const net::IpAddr& address,
                                      const net::MacAddr& lladdr) = 0;
    virtual Result<void> delete_neighbor(const std::string& netns,
                                         const std::string& dev,
                                         const net::IpAddr& address) = 0;
    /// Removes learned entries, of `dev` or of all when empty.
    virtual Result<Flush> flush_neighbors(const std::string& netns, const std::string& dev) = 0;

    /// Of one netns, or of all when `netns` is empty, in order of id.
    virtual std::vector<LinkInfo> links(const std::string& netns) const = 0;
    /// One of them; searches links() unless there is a shorter way.
    virtual Result<LinkInfo> link(const std::string& netns, const std::string& name) const;
    virtual Result<std::vector<VrfInfo>> vrfs(const std::string& netns) const = 0;
    virtual Result<std::vector<AddressInfo>> addresses(const std::string& netns) const = 0;
    /// For the next `limit` prefixes of one table after `after` (from the start when absent), IPv4
    /// first, in prefix order, each with all its routes; returns the last of them, or nothing when
    /// there are no more. For a socket client that reads a full table while others are served; the
    /// table may change between two calls.
    virtual std::optional<net::IpPrefix> routes_after(
        const std::string& netns,
        std::uint32_t table,
        const std::optional<net::IpPrefix>& after,
        std::size_t limit,
        const std::function<void(const RouteInfo&)>& each) const = 0;
    /// Ids of the tables that have routes, ascending.
    virtual Result<std::vector<std::uint32_t>> tables(const std::string& netns) const = 0;
    virtual Result<std::vector<NeighborInfo>> neighbors(const std::string& netns) const = 0;

    virtual CacheInfo cache() const = 0;
    virtual void set_cache_mode(config::CacheMode mode) = 0;
    /// Everything cached is stale from here on, on every worker.
    virtual void flush_cache() = 0;
    virtual std::vector<UncachedInfo> uncached() const = 0;
    virtual std::vector<DrainInfo> draining() const = 0;

    /// Summed over workers and the control thread; `netdev` must exist.
    virtual stats::NetdevCounters netdev_counters(NetdevId netdev) const = 0;
    virtual std::vector<WorkerInfo> workers() const = 0;
    /// WorkerCounters::longest_round begins anew, on each worker with its next round.
    virtual void restart_longest_rounds() = 0;
    virtual std::vector<PoolInfo> pools() const = 0;
    /// As one writer counted it; `writer` a worker's index, or workers().size() for the control
    /// thread.
    virtual stats::NetdevCounters netdev_counters_of(NetdevId netdev, std::size_t writer) const = 0;

    virtual std::string effective_config() const = 0;  // YAML
    /// Re-reads the file that the daemon was started with, or `file`; validates, diffs and applies.
    /// On error nothing changed. Error messages are one per line.
    virtual Result<void> reload(const std::optional<std::string>& file) = 0;
};

}  // namespace sluice::control
