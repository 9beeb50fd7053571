// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"
#include "net/address.h"

/// What a configuration file says, as plain values. A default written out and the same default left
/// out give equal models: a field is optional only where its default is not known before the device
/// is there. config::load() has resolved everything that depends on other parts of the file (see
/// there).
namespace sluice::config {

/// Where something stands in the file, 1-based; 0 means nowhere. Any two are equal, so that two
/// models are equal when they say the same, wherever they say it.
struct Position {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    friend constexpr bool operator==(Position, Position) noexcept { return true; }
};

/// The file a model was read from; like a Position it has no part in equality.
struct Origin {
    std::string file;
    friend bool operator==(const Origin&, const Origin&) noexcept { return true; }
};

inline constexpr std::uint16_t kMinMtu = 68;        // RFC 791
inline constexpr std::uint16_t kMinIpv6Mtu = 1280;  // RFC 8200 5
inline constexpr std::uint16_t kMaxMtu = 9702;
inline constexpr std::uint16_t kDefaultMtu = 1500;
inline constexpr std::uint32_t kMainTable = 254;
inline constexpr std::uint32_t kLocalTable = 255;  // kept for the addresses of this router
inline constexpr std::uint16_t kMaxBurst = 256;
inline constexpr std::size_t kMaxRules = 255;                 // of a family and netns
inline constexpr std::string_view kDefaultNetns = "default";  // the file's top level

struct Dpdk {
    std::vector<std::uint16_t> lcores{0, 1};  // the first is the control thread, the others workers
    bool hugepages = true;
    std::uint32_t memory_mb = 512;
    std::vector<std::string> extra_args;
    Position at;
    bool operator==(const Dpdk&) const = default;
};

enum class IdleMode : std::uint8_t { kAdaptive, kPoll };
enum class CacheMode : std::uint8_t { kOff, kAuto, kOn };

struct Workers {
    IdleMode idle = IdleMode::kAdaptive;
    std::uint16_t burst = 32;  // packets
    CacheMode cache = CacheMode::kAuto;
    std::uint16_t cache_entries = 512;  // per family
    Position at;
    bool operator==(const Workers&) const = default;
};

struct Endpoint {
    net::IpAddr address;
    std::uint16_t port = 0;
    std::string to_string() const;  // 127.0.0.1:9110, [::1]:9110
    bool operator==(const Endpoint&) const = default;
};

struct Control {
    std::string socket;               // resolved: /run/sluice/INSTANCE.sock when left out
    std::optional<Endpoint> metrics;  // not built
    std::optional<Endpoint> fpm;      // not built
    Position at;
    bool operator==(const Control&) const = default;
};

struct Limits {
    std::uint32_t ipv4_routes = 1'000'000;
    std::uint32_t ipv6_routes = 250'000;
    std::uint32_t neighbors = 65'536;
    std::uint16_t uncached_lists = kMaxNetdevs;  // per worker and family; a power of two
    Position at;
    bool operator==(const Limits&) const = default;
};

/// Rate limit of ICMP errors, per netdev (RFC 1812 4.3.2.8, RFC 4443 2.4 f).
struct Icmp {
    std::uint32_t error_rate = 100;  // per second; 0 sends none
    std::uint32_t error_burst = 50;
    bool operator==(const Icmp&) const = default;
};

enum class SourceValidation : std::uint8_t { kOff, kLoose, kStrict };
/// When an address that nobody asked about enters the neighbor table.
enum class LearnUnsolicited : std::uint8_t { kNever = 0, kAlways = 1, kSameSubnet = 2 };

/// What ports and vlans have in common, without the addresses.
struct NetdevSettings {
    std::uint16_t mtu = kDefaultMtu;  // a vlan's is its port's when left out (resolved)
    std::optional<net::MacAddr> mac;  // left out: the device's own, a vlan's is its port's
    bool up = true;                   // administrative state
    bool forwarding = true;
    bool send_redirects = false;
    SourceValidation source_validation = SourceValidation::kOff;
    bool route_localnet = false;
    bool bc_forwarding = false;
    bool accept_ra = false;  // not built
    LearnUnsolicited arp_accept = LearnUnsolicited::kNever;
    LearnUnsolicited accept_untracked_na = LearnUnsolicited::kNever;
    bool drop_unsolicited_na = false;
    bool promiscuous = false;
    std::uint32_t mark = 0;  // what packets that come in here start with, for rules
    bool operator==(const NetdevSettings&) const = default;
};

struct Address {
    net::InterfaceAddr value;
    Position at;
    bool operator==(const Address&) const = default;
};

struct Port {
    std::string device;                      // PCI address or devargs
    std::optional<std::uint16_t> rx_queues;  // left out: one per worker, as far as the device goes
    NetdevSettings settings;
    std::vector<Address> addresses;
    Position at;
    bool operator==(const Port&) const = default;
};

struct Vlan {
    std::string link;        // the port
    std::string link_netns;  // where the port is; empty: in the vlan's own netns
    std::uint16_t id = 0;
    NetdevSettings settings;
    std::vector<Address> addresses;
    Position at;
    bool operator==(const Vlan&) const = default;
};

/// Its members keep their netns; what comes in by them is looked up in `table`.
struct Vrf {
    std::uint32_t table = 0;
    std::vector<std::string> interfaces;
    Position at;
    bool operator==(const Vrf&) const = default;
};

struct ResilientGroup {
    std::uint16_t buckets = 128;
    std::chrono::milliseconds idle_timer{120'000};
    bool operator==(const ResilientGroup&) const = default;
};

/// A gateway, a netdev alone (no `via`), a blackhole, or a group of others.
struct NextHop {
    std::optional<net::IpAddr> via;
    std::string dev;
    bool on_link = false;
    bool blackhole = false;
    std::map<std::uint32_t, std::uint32_t> group;  // id: weight
    std::optional<ResilientGroup> resilient;
    Position at;
    bool operator==(const NextHop&) const = default;
};

enum class RouteType : std::uint8_t { kUnicast, kBlackhole, kUnreachable, kProhibit, kLocal };

/// Identified by (to, metric, table).
struct Route {
    net::IpPrefix to;
    RouteType type = RouteType::kUnicast;
    bool on_link = false;
    std::uint16_t mtu = 0;  // 0: the netdev's
    std::optional<net::IpAddr> via;
    std::string dev;  // resolved for unicast routes: the netdev whose subnet has `via`. A vrf: the
                      // lookup goes on in its table (`vrf: NAME` in the file is the same)
    std::uint32_t metric = 0;
    std::uint32_t table = kMainTable;
    std::optional<std::uint32_t> nexthop;  // instead of via, dev, on_link and mtu
    Position at;
    bool operator==(const Route&) const = default;
};

enum class RuleAction : std::uint8_t { kTable, kBlackhole, kUnreachable, kProhibit, kSetMark };

struct PortRange {
    std::uint16_t first = 0;
    std::uint16_t last = 0;
    bool operator==(const PortRange&) const = default;
};

/// Looked at in order of priority, equal ones in the order they were added. What is absent matches
/// everything; ports match only unfragmented TCP, UDP, SCTP and DCCP.
struct Rule {
    std::uint32_t priority = 0;
    net::Family family = net::Family::kIpv4;
    std::optional<net::IpPrefix> from;
    std::optional<net::IpPrefix> to;
    std::string iif;  // a netdev, or a vrf for all its members
    std::optional<std::uint8_t> dscp;
    std::optional<std::uint32_t> mark;
    std::optional<std::uint8_t> protocol;
    std::optional<PortRange> source_ports;
    std::optional<PortRange> destination_ports;
    RuleAction action = RuleAction::kTable;
    std::uint32_t table = kMainTable;                   // kTable
    std::optional<std::uint8_t> suppress_prefixlength;  // kTable: routes of at most that length
    std::uint32_t set_mark = 0;                         // kSetMark: the rules behind see this mark
    Position at;
    bool operator==(const Rule&) const = default;
};

/// What multipath routes of one family spread packets by.
enum class HashPolicy : std::uint8_t {
    kL3,      // addresses; IPv6: and the flow label
    kL4,      // addresses, protocol and ports; fragments: addresses only
    kCustom,  // `fields`
};
struct HashFields {
    bool source = false, destination = false, protocol = false, source_port = false,
         destination_port = false, flow_label = false;
    bool operator==(const HashFields&) const = default;
};
struct MultipathHash {
    HashPolicy policy = HashPolicy::kL4;
    HashFields fields;  // kCustom
    bool operator==(const MultipathHash&) const = default;
};

/// Identified by (dev, to).
struct Neighbor {
    net::IpAddr to;
    std::string dev;
    net::MacAddr lladdr;
    Position at;
    bool operator==(const Neighbor&) const = default;
};

struct Netns {
    std::map<std::string, Port> ports;
    std::map<std::string, Vlan> vlans;
    std::map<std::string, Vrf> vrfs;
    std::map<std::uint32_t, NextHop> nexthops;
    std::vector<Route> routes;  // in the file's order
    std::vector<Rule> routing_policy;
    std::vector<Neighbor> neighbors;
    MultipathHash multipath_hash4;  // multipath-hash: {ipv4: {policy: l4}, ipv6: {...}}
    MultipathHash multipath_hash6;
    Position at;
    bool operator==(const Netns&) const = default;
};

struct Config {
    Origin origin;
    std::string instance;  // resolved: the file's stem when left out
    Dpdk dpdk;
    Workers workers;
    Control control;
    Limits limits;
    Icmp icmp;
    bool forward_class_e = true;  // 240.0.0.0/4 is routed like any unicast, as Linux does
    Netns default_netns;
    std::map<std::string, Netns> netns;
    Position instance_at;
    bool operator==(const Config&) const = default;
};

}  // namespace sluice::config
