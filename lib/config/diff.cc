// SPDX-License-Identifier: BSD-3-Clause
#include "config/diff.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "config/route_diff.h"
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
    check(running.control.socket == wanted.control.socket, wanted.control.at, "control.socket");
    check(running.limits == wanted.limits, wanted.limits.at, "limits");
    return findings.take();
}

/// The netdevs that cannot go from the one model to the other without being removed and added.
class Lifetimes {
public:
    Lifetimes(const Netns& from, const Netns& to) {
        for (const auto& [name, port] : from.ports) {
            const auto next = to.ports.find(name);
            const bool stays = next != to.ports.end() && next->second.device == port.device &&
                               next->second.rx_queues == port.rx_queues;
            (stays ? stay_ : gone_).insert(name);
        }
        for (const auto& [name, vlan] : from.vlans) {
            const auto next = to.vlans.find(name);
            const bool stays = next != to.vlans.end() && next->second.link == vlan.link &&
                               next->second.id == vlan.id && stay_.contains(vlan.link);
            (stays ? stay_ : gone_).insert(name);
        }
    }
    bool stays(std::string_view name) const { return stay_.contains(name); }
    bool goes(std::string_view name) const { return gone_.contains(name); }

private:
    std::set<std::string_view> stay_;
    std::set<std::string_view> gone_;
};

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

class Differ {
public:
    Differ(const Config& running, const Config& wanted)
        : running_(running),
          wanted_(wanted),
          from_(running.default_netns),
          to_(wanted.default_netns),
          lifetimes_(from_, to_),
          routes_(diff_routes(from_.routes, to_.routes, [this](const Route& r) {
              return lifetimes_.goes(r.dev);
          })) {}

    std::vector<Action> run() {
        remove();
        change();
        add();
        return std::move(actions_);
    }

private:
    void remove() {
        for (const Route* route : routes_.removed) {
            actions_.emplace_back(RemoveRoute{*route});
        }
        for (const Neighbor& neighbor : from_.neighbors) {
            if (lifetimes_.goes(neighbor.dev) || !find_neighbor(to_, neighbor)) {
                actions_.emplace_back(RemoveNeighbor{neighbor});
            }
        }
        for_each_netdev(from_, [&](const std::string& name, const auto& addresses) {
            const auto& kept = addresses_of(to_, name);
            for (const Address& address : addresses) {
                if (lifetimes_.goes(name) || !has_address(kept, address.value)) {
                    actions_.emplace_back(RemoveAddress{name, address.value});
                }
            }
        });
        for (const auto& [name, vlan] : from_.vlans) {
            if (lifetimes_.goes(name)) {
                actions_.emplace_back(RemoveVlan{name});
            }
        }
        for (const auto& [name, port] : from_.ports) {
            if (lifetimes_.goes(name)) {
                actions_.emplace_back(RemovePort{name});
            }
        }
    }

    void change() {
        const ChangeInstance before{running_.icmp, running_.forward_class_e, running_.workers.idle};
        const ChangeInstance after{wanted_.icmp, wanted_.forward_class_e, wanted_.workers.idle};
        if (before != after) {
            actions_.emplace_back(after);
        }
        // A vlan's MTU is never above its port's: lower the vlan first, raise it last.
        change_vlans([](const auto& from, const auto& to) { return to.mtu < from.mtu; });
        for (const auto& [name, port] : from_.ports) {
            if (lifetimes_.stays(name)) {
                change_netdev(name, port.settings, to_.ports.at(name).settings);
            }
        }
        change_vlans([](const auto& from, const auto& to) { return to.mtu >= from.mtu; });
    }

    template <class Fn>
    void change_vlans(Fn&& selected) {
        for (const auto& [name, vlan] : from_.vlans) {
            if (lifetimes_.stays(name) && selected(vlan.settings, to_.vlans.at(name).settings)) {
                change_netdev(name, vlan.settings, to_.vlans.at(name).settings);
            }
        }
    }
    void change_netdev(const std::string& name,
                       const NetdevSettings& from,
                       const NetdevSettings& to) {
        if (from != to) {
            actions_.emplace_back(ChangeNetdev{name, from, to});
        }
    }

    void add() {
        for (const auto& [name, port] : to_.ports) {
            if (!lifetimes_.stays(name)) {
                Port bare = port;
                bare.addresses.clear();
                actions_.emplace_back(AddPort{name, std::move(bare)});
            }
        }
        for (const auto& [name, vlan] : to_.vlans) {
            if (!lifetimes_.stays(name)) {
                Vlan bare = vlan;
                bare.addresses.clear();
                actions_.emplace_back(AddVlan{name, std::move(bare)});
            }
        }
        for_each_netdev(to_, [&](const std::string& name, const auto& addresses) {
            const auto& had = addresses_of(from_, name);
            for (const Address& address : addresses) {
                if (!lifetimes_.stays(name) || !has_address(had, address.value)) {
                    actions_.emplace_back(AddAddress{name, address.value});
                }
            }
        });
        for (const Neighbor& neighbor : to_.neighbors) {
            const Neighbor* had = find_neighbor(from_, neighbor);
            if (had == nullptr || lifetimes_.goes(neighbor.dev) || had->lladdr != neighbor.lladdr) {
                actions_.emplace_back(SetNeighbor{neighbor});
            }
        }
        for (const auto& [from, to] : routes_.replaced) {
            actions_.emplace_back(ReplaceRoute{*from, *to});
        }
        for (const Route* route : routes_.added) {
            actions_.emplace_back(AddRoute{*route});
        }
    }

    const Neighbor* find_neighbor(const Netns& netns, const Neighbor& wanted) {
        auto& index = &netns == &from_ ? from_neighbors_ : to_neighbors_;
        if (index.empty()) {
            for (const Neighbor& neighbor : netns.neighbors) {
                index.emplace(std::pair{std::string_view{neighbor.dev}, neighbor.to}, &neighbor);
            }
        }
        const auto it = index.find({std::string_view{wanted.dev}, wanted.to});
        return it == index.end() ? nullptr : it->second;
    }

    using NeighborIndex = std::map<std::pair<std::string_view, net::IpAddr>, const Neighbor*>;
    const Config& running_;
    const Config& wanted_;
    const Netns& from_;
    const Netns& to_;
    Lifetimes lifetimes_;
    RouteDiff routes_;
    NeighborIndex from_neighbors_;
    NeighborIndex to_neighbors_;
    std::vector<Action> actions_;
};

}  // namespace

std::expected<std::vector<Action>, std::vector<ConfigError>> diff(const Config& running,
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
