// SPDX-License-Identifier: BSD-3-Clause
#include "config/netns_diff.h"

#include <algorithm>
#include <map>
#include <utility>

namespace sluice::config {
namespace {

const Netns& or_empty(const Netns* netns) {
    static const Netns kNone;
    return netns == nullptr ? kNone : *netns;
}

const std::vector<Address>& addresses_or_none(const Netns& netns, const std::string& name) {
    static const std::vector<Address> kNone;
    const auto* addresses = addresses_of(netns, name);
    return addresses == nullptr ? kNone : *addresses;
}

bool has_address(const std::vector<Address>& addresses, const net::InterfaceAddr& wanted) {
    return std::any_of(
        addresses.begin(), addresses.end(), [&](const Address& a) { return a.value == wanted; });
}

/// Calls fn(name, addresses) for each port, then each vlan.
template <class Fn>
void for_each_netdev(const Netns& netns, Fn&& fn) {
    for (const auto& [name, port] : netns.ports) {
        fn(name, port.addresses);
    }
    for (const auto& [name, vlan] : netns.vlans) {
        fn(name, vlan.addresses);
    }
}

class NeighborIndex {
public:
    explicit NeighborIndex(const std::vector<Neighbor>& neighbors) {
        for (const Neighbor& neighbor : neighbors) {
            index_.emplace(std::pair{std::string_view{neighbor.dev}, neighbor.to}, &neighbor);
        }
    }
    const Neighbor* find(const Neighbor& wanted) const {
        const auto it = index_.find({std::string_view{wanted.dev}, wanted.to});
        return it == index_.end() ? nullptr : it->second;
    }

private:
    std::map<std::pair<std::string_view, net::IpAddr>, const Neighbor*> index_;
};

}  // namespace

NetnsDiffer::NetnsDiffer(std::string_view name,
                         const Netns* from,
                         const Netns* to,
                         const Lifetimes& lifetimes,
                         std::vector<Step>& steps)
    : name_(name),
      from_(or_empty(from)),
      to_(or_empty(to)),
      ends_(to == nullptr),
      fates_(lifetimes.of(name)),
      steps_(steps),
      before_(masters_of(from_)),
      after_(masters_of(to_)),
      rules_(diff_rules(from_.routing_policy, to_.routing_policy)),
      nexthops_(diff_nexthops(
          from_.nexthops, to_.nexthops, [this](const std::string& dev) { return goes(dev); })),
      routes_(diff_routes(
          from_.routes, to_.routes, [this](const Route& route) { return uproots(route); })) {}

void NetnsDiffer::remove_rules() {
    for (const Rule* rule : rules_.removed) {
        add(RemoveRule{*rule});
    }
}

void NetnsDiffer::remove_routes() {
    for (const Route* route : routes_.removed) {
        add(RemoveRoute{*route});
    }
}

void NetnsDiffer::remove_nexthops() {
    add_all(nexthops_.early);
    if (ends_) {
        add_all(nexthops_.late);
    }
}

void NetnsDiffer::remove_neighbors() {
    const NeighborIndex wanted{to_.neighbors};
    for (const Neighbor& neighbor : from_.neighbors) {
        if (!keeps_addresses(neighbor.dev) || wanted.find(neighbor) == nullptr) {
            add(RemoveNeighbor{neighbor});
        }
    }
}

void NetnsDiffer::remove_addresses() {
    for_each_netdev(from_, [&](const std::string& name, const auto& addresses) {
        const auto& kept = addresses_or_none(to_, name);
        for (const Address& address : addresses) {
            if (!keeps_addresses(name) || !has_address(kept, address.value)) {
                add(RemoveAddress{name, address.value});
            }
        }
    });
}

void NetnsDiffer::leave_vrfs() {
    for (const auto& [netdev, vrf] : before_) {
        if (goes(netdev) || goes(vrf) || !after_.contains(netdev)) {
            add(SetVrf{std::string{netdev}, {}});
        }
    }
}

void NetnsDiffer::remove_vrfs() {
    for (const auto& [name, vrf] : from_.vrfs) {
        if (goes(name)) {
            add(RemoveVrf{name});
        }
    }
}

void NetnsDiffer::remove_vlans() {
    for (const auto& [name, vlan] : from_.vlans) {
        if (goes(name)) {
            add(RemoveVlan{name});
        }
    }
}

void NetnsDiffer::remove_ports() {
    for (const auto& [name, port] : from_.ports) {
        if (goes(name) && !fates_.departs.contains(name)) {
            add(RemovePort{name});
        }
    }
}

void NetnsDiffer::lower_vlans() {
    change_vlans([](const auto& from, const auto& to) { return to.mtu < from.mtu; });
}

void NetnsDiffer::raise_vlans() {
    change_vlans([](const auto& from, const auto& to) { return to.mtu >= from.mtu; });
}

void NetnsDiffer::change_ports() {
    for (const auto& [name, port] : from_.ports) {
        if (stays(name)) {
            change_netdev(name, port.settings, to_.ports.at(name).settings);
        }
    }
}

void NetnsDiffer::change_arrived(const std::string& name, const NetdevSettings& before) {
    change_netdev(name, before, to_.ports.at(name).settings);
}

void NetnsDiffer::change_hash() {
    change_hash(net::Family::kIpv4, from_.multipath_hash4, to_.multipath_hash4);
    change_hash(net::Family::kIpv6, from_.multipath_hash6, to_.multipath_hash6);
}

void NetnsDiffer::add_ports() {
    for (const auto& [name, port] : to_.ports) {
        if (!stays(name) && !fates_.arrives.contains(name)) {
            Port bare = port;
            bare.addresses.clear();
            add(AddPort{name, std::move(bare)});
        }
    }
}

void NetnsDiffer::add_vlans() {
    for (const auto& [name, vlan] : to_.vlans) {
        if (!stays(name)) {
            Vlan bare = vlan;
            bare.addresses.clear();
            add(AddVlan{name, std::move(bare)});
        }
    }
}

void NetnsDiffer::add_vrfs() {
    for (const auto& [name, vrf] : to_.vrfs) {
        if (!stays(name)) {
            add(AddVrf{name, vrf.table});
        }
    }
}

void NetnsDiffer::enter_vrfs() {
    for (const auto& [netdev, vrf] : after_) {
        if (!stays(netdev) || fates_.rehomed.contains(netdev)) {
            add(SetVrf{std::string{netdev}, std::string{vrf}});
        }
    }
}

void NetnsDiffer::add_addresses() {
    for_each_netdev(to_, [&](const std::string& name, const auto& addresses) {
        const auto& had = addresses_or_none(from_, name);
        for (const Address& address : addresses) {
            if (!keeps_addresses(name) || !has_address(had, address.value)) {
                add(AddAddress{name, address.value});
            }
        }
    });
}

void NetnsDiffer::add_neighbors() {
    const NeighborIndex running{from_.neighbors};
    for (const Neighbor& neighbor : to_.neighbors) {
        const Neighbor* had = running.find(neighbor);
        if (had == nullptr || !keeps_addresses(neighbor.dev) || had->lladdr != neighbor.lladdr) {
            add(SetNeighbor{neighbor});
        }
    }
}

void NetnsDiffer::add_nexthops() {
    add_all(nexthops_.added);
}

void NetnsDiffer::add_routes() {
    for (const auto& [from, to] : routes_.replaced) {
        add(ReplaceRoute{*from, *to});
    }
    for (const Route* route : routes_.added) {
        add(AddRoute{*route});
    }
}

void NetnsDiffer::add_rules() {
    for (const Rule* rule : rules_.added) {
        add(AddRule{*rule});
    }
}

void NetnsDiffer::remove_late_nexthops() {
    if (!ends_) {
        add_all(nexthops_.late);
    }
}

void NetnsDiffer::add(Action action) {
    steps_.push_back({std::string{name_}, std::move(action)});
}

void NetnsDiffer::add_all(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
        add(action);
    }
}

bool NetnsDiffer::stays(std::string_view name) const {
    return fates_.stays.contains(name);
}

bool NetnsDiffer::goes(std::string_view name) const {
    return fates_.goes.contains(name);
}

bool NetnsDiffer::keeps_addresses(std::string_view netdev) const {
    return stays(netdev) && !fates_.rehomed.contains(netdev);
}

bool NetnsDiffer::uproots(const Route& route) const {
    return goes(route.dev) ||
           (route.nexthop && (nexthops_.uprooted.contains(*route.nexthop) ||
                              (!route.to.is_v4() && nexthops_.ipv4_only.contains(*route.nexthop))));
}

template <class Fn>
void NetnsDiffer::change_vlans(Fn&& selected) {
    for (const auto& [name, vlan] : from_.vlans) {
        if (stays(name) && selected(vlan.settings, to_.vlans.at(name).settings)) {
            change_netdev(name, vlan.settings, to_.vlans.at(name).settings);
        }
    }
}

void NetnsDiffer::change_netdev(const std::string& name,
                                const NetdevSettings& from,
                                const NetdevSettings& to) {
    if (from != to) {
        add(ChangeNetdev{name, from, to});
    }
}

void NetnsDiffer::change_hash(net::Family family,
                              const MultipathHash& from,
                              const MultipathHash& to) {
    if (from != to && !ends_) {
        add(SetMultipathHash{family, from, to});
    }
}

}  // namespace sluice::config
