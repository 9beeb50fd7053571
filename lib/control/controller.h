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

struct LinkInfo {
    NetdevId id;
    std::string name;
    std::string kind;  // "port", "vlan", "loopback", "blackhole"
    std::string netns;
    std::optional<net::MacAddr> mac;
    std::uint16_t mtu = 0;
    bool up = false;       // administratively
    bool running = false;  // up, and so is the carrier
    bool forwarding = false;
    std::string device;  // of a port: devargs
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
};

struct AddressInfo {
    std::string netdev;
    net::InterfaceAddr address;
    bool link_local = false;
};

struct RouteInfo {
    net::IpPrefix prefix;
    std::string type;  // unicast, local, broadcast, blackhole, unreachable, prohibit
    std::optional<net::IpAddr> via;
    std::string dev;  // empty: none
    std::uint32_t metric = 0;
    std::uint16_t mtu = 0;  // 0: the netdev's
    RouteOwner owner = RouteOwner::kCli;
    bool on_link = false;
    bool active = false;  // in the table that packets are looked up in
};

/// A route to add or remove. `dev` may be empty where the gateway is on-link. To remove: what is
/// given must match; `via`, `metric` absent, `dev` empty and `type` unicast match any.
struct RouteRequest {
    net::IpPrefix prefix;
    std::string type = "unicast";
    std::optional<net::IpAddr> via;
    std::string dev;
    std::optional<std::uint32_t> metric;  // delete: any when absent
    std::uint16_t mtu = 0;
    bool on_link = false;
    RouteOwner owner = RouteOwner::kCli;
};
enum class RouteMode : std::uint8_t { kAdd, kReplace };

/// What a packet to an address would meet.
struct RouteLookup {
    std::string type;
    std::optional<net::IpPrefix> prefix;  // that matched; none: no route
    std::optional<net::IpAddr> via;
    std::string dev;
    std::optional<net::IpAddr> source;  // that sluice itself would use
    std::uint16_t mtu = 0;
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

    virtual Result<void> add_port(const std::string& name, const config::Port& port) = 0;
    virtual Result<void> add_vlan(const std::string& name, const config::Vlan& vlan) = 0;
    /// All or none; one pass. A port takes its VLANs along only if they are named too (else kBusy).
    virtual Result<void> delete_netdevs(std::span<const std::string> names) = 0;
    virtual Result<void> change_link(const std::string& name, const LinkChange& change) = 0;

    virtual Result<void> add_address(const std::string& dev, const net::InterfaceAddr& address) = 0;
    virtual Result<void> delete_address(const std::string& dev,
                                        const net::InterfaceAddr& address) = 0;

    virtual Result<void> add_route(const RouteRequest& route, RouteMode mode) = 0;
    virtual Result<void> delete_route(const RouteRequest& route) = 0;
    /// Removes every route of `owner`; returns how many.
    virtual std::size_t flush_routes(RouteOwner owner) = 0;
    virtual RouteLookup lookup_route(const net::IpAddr& destination) const = 0;

    virtual Result<void> add_neighbor(const std::string& dev,
                                      const net::IpAddr& address,
                                      const net::MacAddr& lladdr) = 0;
    virtual Result<void> delete_neighbor(const std::string& dev, const net::IpAddr& address) = 0;
    /// Removes learned entries, of `dev` or of all when empty; returns how many.
    virtual Result<std::size_t> flush_neighbors(const std::string& dev) = 0;

    virtual std::vector<LinkInfo> links() const = 0;
    virtual std::vector<AddressInfo> addresses() const = 0;
    /// Calls `each` for every route of the main table, IPv4 first, in prefix order.
    virtual void for_each_route(const std::function<void(const RouteInfo&)>& each) const = 0;
    /// The same for the next `limit` prefixes after `after` (from the start when absent), each with
    /// all its routes; returns the last of them, or nothing when there are no more. For a socket
    /// client that reads a full table while others are served; the table may change between two
    /// calls.
    virtual std::optional<net::IpPrefix> routes_after(
        const std::optional<net::IpPrefix>& after,
        std::size_t limit,
        const std::function<void(const RouteInfo&)>& each) const = 0;
    virtual std::vector<NeighborInfo> neighbors() const = 0;
    /// Summed over workers and the control thread; `netdev` must exist.
    virtual stats::NetdevCounters netdev_counters(NetdevId netdev) const = 0;
    virtual std::vector<WorkerInfo> workers() const = 0;
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
