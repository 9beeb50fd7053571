// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "config/model.h"

namespace sluice::config {

/// Calls fn(name, netns) for "default", then for the others by name.
template <class ConfigT, class Fn>  // const or not
void for_each_netns(ConfigT& config, Fn&& fn) {
    fn(kDefaultNetns, config.default_netns);
    for (auto& [name, netns] : config.netns) {
        fn(std::string_view{name}, netns);
    }
}

/// Null when there is none.
inline const Netns* find_netns(const Config& config, std::string_view name) {
    if (name == kDefaultNetns) {
        return &config.default_netns;
    }
    const auto it = config.netns.find(std::string{name});
    return it == config.netns.end() ? nullptr : &it->second;
}

/// Of a port or vlan; null when it is neither.
template <class NetnsT>  // const or not
auto* addresses_of(NetnsT& netns, const std::string& name) {
    const auto port = netns.ports.find(name);
    if (port != netns.ports.end()) {
        return &port->second.addresses;
    }
    const auto vlan = netns.vlans.find(name);
    return vlan == netns.vlans.end() ? nullptr : &vlan->second.addresses;
}
template <class NetnsT>
auto* settings_of(NetnsT& netns, const std::string& name) {
    const auto port = netns.ports.find(name);
    if (port != netns.ports.end()) {
        return &port->second.settings;
    }
    const auto vlan = netns.vlans.find(name);
    return vlan == netns.vlans.end() ? nullptr : &vlan->second.settings;
}

inline const Port* find_port(const Netns& netns, const std::string& name) {
    const auto it = netns.ports.find(name);
    return it == netns.ports.end() ? nullptr : &it->second;
}

/// The vrf of each netdev that is in one.
using Masters = std::map<std::string_view, std::string_view>;
[[nodiscard]] inline Masters masters_of(const Netns& netns) {
    Masters masters;
    for (const auto& [name, vrf] : netns.vrfs) {
        for (const auto& member : vrf.interfaces) {
            masters.emplace(member, name);
        }
    }
    return masters;
}

/// The netns of a vlan's port; `own` is the vlan's.
inline std::string_view netns_of_port(const Vlan& vlan, std::string_view own) {
    return vlan.link_netns.empty() ? own : std::string_view{vlan.link_netns};
}

}  // namespace sluice::config
