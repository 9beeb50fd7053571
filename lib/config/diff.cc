// SPDX-License-Identifier: BSD-3-Clause
#include "config/diff.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "config/netdev_diff.h"
#include "config/netns.h"
#include "config/nexthop_diff.h"
#include "config/route_diff.h"
#include "config/rule_diff.h"
#include "config/validate.h"

namespace sluice::config {
namespace {

std::vector<ConfigError> restart_needed(const Config& running, const Config& wanted) {
    Findings findings{wanted};
    const auto check = [&](bool same, Position at, std::string_view key) {
        if (!same) {
            findings.add(
                at, "{}: a change needs a restart: put it back, or restart the instance", key);
        }
    };
    check(running.instance == wanted.instance, wanted.instance_at, "instance");
    check(running.dpdk.lcores == wanted.dpdk.lcores, wanted.dpdk.at, "dpdk.lcores");
    check(running.dpdk.hugepages == wanted.dpdk.hugepages, wanted.dpdk.at, "dpdk.hugepages");
    check(running.dpdk.memory_mb == wanted.dpdk.memory_mb, wanted.dpdk.at, "dpdk.memory-mb");
    check(running.dpdk.extra_args == wanted.dpdk.extra_args, wanted.dpdk.at, "dpdk.extra-args");
    check(running.workers.burst == wanted.workers.burst, wanted.workers.at, "workers.burst");
    check(running.workers.cache_entries == wanted.workers.cache_entries,
          wanted.workers.at,
          "workers.cache-entries");
    check(running.control.socket == wanted.control.socket, wanted.control.at, "control.socket");
    check(running.limits == wanted.limits, wanted.limits.at, "limits");
    return findings.take();
}

const std::vector<Address>& addresses_of(const Netns& netns, const std::string& name) {
    static const std::vector<Address> kNone;
    if (const auto port = netns.ports.find(name); port != netns.ports.end()) {
        return port->second.addresses;
    }
    const auto vlan = netns.vlans.find(name);
    return vlan == netns.vlans.end() ? kNone : vlan->second.addresses;
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

/// One netns, piece by piece: what runs over several netns goes in the order of the pieces.
class NetnsDiffer {
public:
    NetnsDiffer(std::string_view name,
                const Netns& from,
                const Netns& to,
                const Lifetimes& lifetimes,
                std::vector<Step>& steps)
        : name_(name),
          from_(from),
          to_(to),
          fates_(lifetimes.of(name)),
          steps_(steps),
          before_(masters_of(from)),
          after_(masters_of(to)),
          rules_(diff_rules(from.routing_policy, to.routing_policy)),
          nexthops_(diff_nexthops(
              from.nexthops, to.nexthops, [this](const std::string& dev) { return goes(dev); })),
          routes_(diff_routes(
              from.routes, to.routes, [this](const Route& route) { return uproots(route); })) {}

    void remove_rules() {
        for (const Rule* rule : rules_.removed) {
            add(RemoveRule{*rule});
        }
    }
    void remove_routes() {
        for (const Route* route : routes_.removed) {
            add(RemoveRoute{*route});
        }
    }
    void remove_nexthops() { add_all(nexthops_.early); }
    void remove_neighbors() {
        const NeighborIndex wanted{to_.neighbors};
        for (const Neighbor& neighbor : from_.neighbors) {
            if (!keeps_addresses(neighbor.dev) || wanted.find(neighbor) == nullptr) {
                add(RemoveNeighbor{neighbor});
            }
        }
    }
    void remove_addresses() {
        for_each_netdev(from_, [&](const std::string& name, const auto& addresses) {
            const auto& kept = addresses_of(to_, name);
            for (const Address& address : addresses) {
                if (!keeps_addresses(name) || !has_address(kept, address.value)) {
                    add(RemoveAddress{name, address.value});
                }
            }
        });
    }
    /// For none; those that change vrfs do so in enter_vrfs(), if the old one is still there.
    void leave_vrfs() {
        for (const auto& [netdev, vrf] : before_) {
            if (goes(netdev) || goes(vrf) || !after_.contains(netdev)) {
                add(SetVrf{std::string{netdev}, {}});
            }
        }
    }
    void remove_vrfs() {
        for (const auto& [name, vrf] : from_.vrfs) {
            if (goes(name)) {
                add(RemoveVrf{name});
            }
        }
    }
    void remove_vlans() {
        for (const auto& [name, vlan] : from_.vlans) {
            if (goes(name)) {
                add(RemoveVlan{name});
            }
        }
    }
    void remove_ports() {
        for (const auto& [name, port] : from_.ports) {
            if (goes(name) && !fates_.departs.contains(name)) {
                add(RemovePort{name});
            }
        }
    }

    // A vlan's MTU is never above its port's: lower the vlan first, raise it last.
    void lower_vlans() {
        change_vlans([](const auto& from, const auto& to) { return to.mtu < from.mtu; });
    }
    void raise_vlans() {
        change_vlans([](const auto& from, const auto& to) { return to.mtu >= from.mtu; });
    }
    void change_ports() {
        for (const auto& [name, port] : from_.ports) {
            if (stays(name)) {
                change_netdev(name, port.settings, to_.ports.at(name).settings);
            }
        }
    }
    void change_arrived(const std::string& name, const NetdevSettings& before) {
        change_netdev(name, before, to_.ports.at(name).settings);
    }
    void change_hash() {
        change_hash(net::Family::kIpv4, from_.multipath_hash4, to_.multipath_hash4);
        change_hash(net::Family::kIpv6, from_.multipath_hash6, to_.multipath_hash6);
    }

    void add_ports() {
        for (const auto& [name, port] : to_.ports) {
            if (!stays(name) && !fates_.arrives.contains(name)) {
                Port bare = port;
                bare.addresses.clear();
                add(AddPort{name, std::move(bare)});
            }
        }
    }
    void add_vlans() {
        for (const auto& [name, vlan] : to_.vlans) {
            if (!stays(name)) {
                Vlan bare = vlan;
                bare.addresses.clear();
                add(AddVlan{name, std::move(bare)});
            }
        }
    }
    void add_vrfs() {
        for (const auto& [name, vrf] : to_.vrfs) {
            if (!stays(name)) {
                add(AddVrf{name, vrf.table});
            }
        }
    }
    void enter_vrfs() {
        for (const auto& [netdev, vrf] : after_) {
            if (!stays(netdev) || fates_.rehomed.contains(netdev)) {
                add(SetVrf{std::string{netdev}, std::string{vrf}});
            }
        }
    }
    void add_addresses() {
        for_each_netdev(to_, [&](const std::string& name, const auto& addresses) {
            const auto& had = addresses_of(from_, name);
            for (const Address& address : addresses) {
                if (!keeps_addresses(name) || !has_address(had, address.value)) {
                    add(AddAddress{name, address.value});
                }
            }
        });
    }
    void add_neighbors() {
        const NeighborIndex running{from_.neighbors};
        for (const Neighbor& neighbor : to_.neighbors) {
            const Neighbor* had = running.find(neighbor);
            if (had == nullptr || !keeps_addresses(neighbor.dev) ||
                had->lladdr != neighbor.lladdr) {
                add(SetNeighbor{neighbor});
            }
        }
    }
    void add_nexthops() { add_all(nexthops_.added); }
    void add_routes() {
        for (const auto& [from, to] : routes_.replaced) {
            add(ReplaceRoute{*from, *to});
        }
        for (const Route* route : routes_.added) {
            add(AddRoute{*route});
        }
    }
    void add_rules() {
        for (const Rule* rule : rules_.added) {
            add(AddRule{*rule});
        }
    }
    void remove_late_nexthops() { add_all(nexthops_.late); }

private:
    void add(Action action) { steps_.push_back({std::string{name_}, std::move(action)}); }
    void add_all(const std::vector<Action>& actions) {
        for (const Action& action : actions) {
            add(action);
        }
    }

    bool stays(std::string_view name) const { return fates_.stays.contains(name); }
    bool goes(std::string_view name) const { return fates_.goes.contains(name); }
    /// In another vrf, another netdev may still have the same address.
    bool keeps_addresses(std::string_view netdev) const {
        return stays(netdev) && !fates_.rehomed.contains(netdev);
    }
    bool uproots(const Route& route) const {
        return goes(route.dev) ||
               (route.nexthop &&
                (nexthops_.uprooted.contains(*route.nexthop) ||
                 (!route.to.is_v4() && nexthops_.ipv4_only.contains(*route.nexthop))));
    }

    template <class Fn>
    void change_vlans(Fn&& selected) {
        for (const auto& [name, vlan] : from_.vlans) {
            if (stays(name) && selected(vlan.settings, to_.vlans.at(name).settings)) {
                change_netdev(name, vlan.settings, to_.vlans.at(name).settings);
            }
        }
    }
    void change_netdev(const std::string& name,
                       const NetdevSettings& from,
                       const NetdevSettings& to) {
        if (from != to) {
            add(ChangeNetdev{name, from, to});
        }
    }
    void change_hash(net::Family family, const MultipathHash& from, const MultipathHash& to) {
        if (from != to) {
            add(SetMultipathHash{family, from, to});
        }
    }

    std::string_view name_;
    const Netns& from_;
    const Netns& to_;
    const Fates& fates_;
    std::vector<Step>& steps_;
    Masters before_;
    Masters after_;
    RuleDiff rules_;
    NextHopDiff nexthops_;
    RouteDiff routes_;
};

class Differ {
public:
    Differ(const Config& running, const Config& wanted)
        : running_(running), wanted_(wanted), lifetimes_(running, wanted) {
        const auto take = [&](std::string_view name, const Netns& /*netns*/) {
            const Netns* from = find_netns(running_, name);
            const Netns* to = find_netns(wanted_, name);
            netns_.try_emplace(name,
                               name,
                               from == nullptr ? kEmpty : *from,
                               to == nullptr ? kEmpty : *to,
                               lifetimes_,
                               steps_);
        };
        for_each_netns(running, take);
        for_each_netns(wanted, take);
    }

    std::vector<Step> run() {
        using N = NetnsDiffer;
        for_all({&N::remove_rules,
                 &N::remove_routes,
                 &N::remove_nexthops,
                 &N::remove_neighbors,
                 &N::remove_addresses,
                 &N::leave_vrfs,
                 &N::remove_vrfs,
                 &N::remove_vlans,
                 &N::remove_ports});
        move();
        change_instance();
        for_all({&N::lower_vlans, &N::change_ports});
        change_arrived();
        for_all({&N::raise_vlans, &N::change_hash});
        for_all({&N::add_ports,
                 &N::add_vlans,
                 &N::add_vrfs,
                 &N::enter_vrfs,
                 &N::add_addresses,
                 &N::add_neighbors,
                 &N::add_nexthops,
                 &N::add_routes,
                 &N::add_rules,
                 &N::remove_late_nexthops});
        return std::move(steps_);
    }

private:
    static const Netns kEmpty;

    void for_all(std::initializer_list<void (NetnsDiffer::*)()> pieces) {
        for (const auto piece : pieces) {
            for (auto& [name, netns] : netns_) {
                (netns.*piece)();
            }
        }
    }

    void move() {
        for (const auto& [name, netns] : wanted_.netns) {
            if (!running_.netns.contains(name)) {
                steps_.push_back({name, AddNetns{}});
            }
        }
        for (const PortMove& move : lifetimes_.moves()) {
            steps_.push_back(
                {std::string{move.from}, MovePort{std::string{move.name}, std::string{move.to}}});
        }
        for (const auto& [name, netns] : running_.netns) {
            if (!wanted_.netns.contains(name)) {
                steps_.push_back({name, RemoveNetns{}});
            }
        }
    }

    void change_instance() {
        const auto of = [](const Config& config) {
            return ChangeInstance{.icmp = config.icmp,
                                  .forward_class_e = config.forward_class_e,
                                  .idle = config.workers.idle,
                                  .cache = config.workers.cache};
        };
        if (of(running_) != of(wanted_)) {
            steps_.push_back({std::string{kDefaultNetns}, of(wanted_)});
        }
    }

    void change_arrived() {
        for (const PortMove& move : lifetimes_.moves()) {
            const std::string name{move.name};
            netns_.at(move.to).change_arrived(
                name, find_netns(running_, move.from)->ports.at(name).settings);
        }
    }

    const Config& running_;
    const Config& wanted_;
    Lifetimes lifetimes_;
    std::map<std::string_view, NetnsDiffer> netns_;
    std::vector<Step> steps_;
};

const Netns Differ::kEmpty;

}  // namespace

std::expected<std::vector<Step>, std::vector<ConfigError>> diff(const Config& running,
                                                                const Config& wanted) {
    if (auto errors = restart_needed(running, wanted); !errors.empty()) {
        return std::unexpected(std::move(errors));
    }
    return Differ{running, wanted}.run();
}

Config starting_point(const Config& wanted) {
    Config blank;
    blank.origin = wanted.origin;
    blank.instance = wanted.instance;
    blank.dpdk = wanted.dpdk;
    blank.workers = wanted.workers;
    blank.control = wanted.control;
    blank.limits = wanted.limits;
    blank.icmp = wanted.icmp;
    blank.forward_class_e = wanted.forward_class_e;
    return blank;
}

}  // namespace sluice::config
