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
    bool operator==(const ChangeInstance&) const = default;
};

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

using Action = std::variant<ChangeInstance,
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

/// The steps from `running` to `wanted`, in an order in which each is possible: what goes away
/// first (routes, neighbors, addresses, vlans, ports), then changes, then what is new in the
/// opposite order. Every removal is spelled out; none counts on another's side effects. Empty when
/// the two are equal. Start from Config{} with `wanted`'s instance-wide parts (see starting_point)
/// at start-up. Errors: settings that need a restart.
[[nodiscard]] std::expected<std::vector<Action>, std::vector<ConfigError>> diff(
    const Config& running, const Config& wanted);

/// `wanted` with nothing in it yet: what an instance has before the first diff.
[[nodiscard]] Config starting_point(const Config& wanted);

}  // namespace sluice::config
