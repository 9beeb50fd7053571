// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/diff.h"
#include "config/netdev_diff.h"
#include "config/netns.h"
#include "config/nexthop_diff.h"
#include "config/route_diff.h"
#include "config/rule_diff.h"

namespace sluice::config {

/// One netns, piece by piece: what runs over several netns goes in the order of the pieces.
class NetnsDiffer {
public:
    /// `from` or `to` is null where that configuration has no such netns.
    NetnsDiffer(std::string_view name,
                const Netns* from,
                const Netns* to,
                const Lifetimes& lifetimes,
                std::vector<Step>& steps);

    void remove_rules();
    void remove_routes();
    void remove_nexthops();
    void remove_neighbors();
    void remove_addresses();
    /// For none; those that change vrfs do so in enter_vrfs(), if the old one is still there.
    void leave_vrfs();
    void remove_vrfs();
    void remove_vlans();
    void remove_ports();

    // A vlan's MTU is never above its port's: lower the vlan first, raise it last.
    void lower_vlans();
    void raise_vlans();
    void change_ports();
    void change_arrived(const std::string& name, const NetdevSettings& before);
    void change_hash();

    void add_ports();
    void add_vlans();
    void add_vrfs();
    void enter_vrfs();
    void add_addresses();
    void add_neighbors();
    void add_nexthops();
    void add_routes();
    void add_rules();
    void remove_late_nexthops();

private:
    void add(Action action);
    void add_all(const std::vector<Action>& actions);

    bool stays(std::string_view name) const;
    bool goes(std::string_view name) const;
    /// In another vrf, another netdev may still have the same address.
    bool keeps_addresses(std::string_view netdev) const;
    bool uproots(const Route& route) const;

    template <class Fn>
    void change_vlans(Fn&& selected);
    void change_netdev(const std::string& name,
                       const NetdevSettings& from,
                       const NetdevSettings& to);
    void change_hash(net::Family family, const MultipathHash& from, const MultipathHash& to);

    std::string_view name_;
    const Netns& from_;
    const Netns& to_;
    bool ends_;  // the netns itself goes
    const Fates& fates_;
    std::vector<Step>& steps_;
    Masters before_;
    Masters after_;
    RuleDiff rules_;
    NextHopDiff nexthops_;
    RouteDiff routes_;
};

}  // namespace sluice::config
