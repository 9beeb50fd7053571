// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <expected>
#include <string>
#include <variant>
#include <vector>

#include "config/error.h"
#include "config/model.h"

namespace sluice::config {

/// Instance-wide settings that may change while packets flow.
struct ChangeInstance {
    Icmp icmp;
    bool forward_class_e = true;
    IdleMode idle = IdleMode::kAdaptive;
    CacheMode cache = CacheMode::kAuto;
    bool operator==(const ChangeInstance&) const = default;
};

[[nodiscard]] ChangeInstance instance_of(const Config& config);

/// Ports and vlans come without their addresses, which follow as AddAddress.
struct AddPort {
    std::string name;
    Port port;
};
struct RemovePort {
    std::string name;
};
struct AddVlan {
    std::string name;
    Vlan vlan;
};
struct RemoveVlan {
    std::string name;
};
/// A port or vlan that stays; from and to differ.
struct ChangeNetdev {
    std::string name;
    NetdevSettings from;
    NetdevSettings to;
};
struct AddAddress {
    std::string netdev;
    net::InterfaceAddr address;
};
struct RemoveAddress {
    std::string netdev;
    net::InterfaceAddr address;
};
struct AddRoute {
    Route route;
};
struct RemoveRoute {
    Route route;
};
/// Same prefix and table; the metric may differ. No packet may find neither.
struct ReplaceRoute {
    Route from;
    Route to;
};
/// Also takes the place of a static entry with another MAC.
struct SetNeighbor {
    Neighbor neighbor;
};
struct RemoveNeighbor {
    Neighbor neighbor;
};

/// The step's netns comes to be, or goes: empty by then.
struct AddNetns {};
struct RemoveNetns {};
/// A port that both have under one name and device, in two netns: it moves from the step's to `to`
/// and keeps its settings. Its vlans and addresses were removed before and are added after.
struct MovePort {
    std::string name;
    std::string to;
};
struct AddVrf {
    std::string name;
    std::uint32_t table = 0;
};
struct RemoveVrf {
    std::string name;
};
/// A port or vlan enters a vrf, or leaves for none (empty).
struct SetVrf {
    std::string netdev;
    std::string vrf;
};
struct AddNextHop {
    std::uint32_t id = 0;
    NextHop hop;
};
struct RemoveNextHop {
    std::uint32_t id = 0;
};
/// What stays of the same kind (gateway or netdev, blackhole, group) is replaced in place.
struct ReplaceNextHop {
    std::uint32_t id = 0;
    NextHop from;
    NextHop to;
};
struct AddRule {
    Rule rule;
};
struct RemoveRule {
    Rule rule;
};
struct SetMultipathHash {
    net::Family family = net::Family::kIpv4;
    MultipathHash from;
    MultipathHash to;
};

using Action = std::variant<ChangeInstance,
                            AddNetns,
                            RemoveNetns,
                            MovePort,
                            AddVrf,
                            RemoveVrf,
                            SetVrf,
                            AddNextHop,
                            RemoveNextHop,
                            ReplaceNextHop,
                            AddRule,
                            RemoveRule,
                            SetMultipathHash,
                            AddPort,
                            RemovePort,
                            AddVlan,
                            RemoveVlan,
                            ChangeNetdev,
                            AddAddress,
                            RemoveAddress,
                            AddRoute,
                            RemoveRoute,
                            ReplaceRoute,
                            SetNeighbor,
                            RemoveNeighbor>;

/// An action and the netns that it is about: "default", or one of Config::netns.
struct Step {
    std::string netns;
    Action action;
};

/// The steps from `running` to `wanted`, in an order in which each is possible: what goes away
/// first (rules, routes, next hops, neighbors, addresses, vrf members, vrfs, vlans, ports), then
/// new netns, moves, netns that go, and changes, then what is new in the opposite order. Next hops
/// that the file lacks but whose netdev stays go last of all, when the routes over them have
/// changed over. Every removal is spelled out; none counts on another's side effects. Empty when
/// the two are equal. Start from Config{} with `wanted`'s instance-wide parts (see starting_point)
/// at start-up. Errors: settings that need a restart.
[[nodiscard]] std::expected<std::vector<Step>, std::vector<ConfigError>> diff(const Config& running,
                                                                              const Config& wanted);

/// `wanted` with nothing in it yet: what an instance has before the first diff.
[[nodiscard]] Config starting_point(const Config& wanted);

}  // namespace sluice::config
