// SPDX-License-Identifier: BSD-3-Clause
#include "config/netdev_diff.h"

#include <algorithm>
#include <string>
#include <utility>

#include "config/netns.h"

namespace sluice::config {
namespace {

bool same_port(const Port& a, const Port& b) {
    return a.device == b.device && a.rx_queues == b.rx_queues;
}

bool same_vlan(const Vlan& a, const Vlan& b) {
    return a.link == b.link && a.link_netns == b.link_netns && a.id == b.id;
}

/// Null when there is no such netns, or none of that name in it.
template <class T>
const T* find(const Netns* netns,
              std::map<std::string, T> Netns::* things,
              const std::string& name) {
    if (netns == nullptr) {
        return nullptr;
    }
    const auto it = (netns->*things).find(name);
    return it == (netns->*things).end() ? nullptr : &it->second;
}

}  // namespace

Lifetimes::Lifetimes(const Config& running, const Config& wanted) {
    find_ports(running, wanted);
    find_others(running, wanted);
}

const Fates& Lifetimes::of(std::string_view netns) const {
    static const Fates kNone;
    const auto it = fates_.find(netns);
    return it == fates_.end() ? kNone : it->second;
}

void Lifetimes::find_ports(const Config& running, const Config& wanted) {
    struct Place {
        std::string_view netns;
        const Port* port;
    };
    std::map<std::pair<std::string_view, std::string_view>, Place> places;  // by name and device
    for_each_netns(wanted, [&](std::string_view netns, const Netns& to) {
        for (const auto& [name, port] : to.ports) {
            places.try_emplace({name, port.device}, Place{netns, &port});
        }
    });
    std::vector<PortMove> moves;
    for_each_netns(running, [&](std::string_view netns, const Netns& from) {
        for (const auto& [name, port] : from.ports) {
            const auto place = places.find({name, port.device});
            const bool kept = place != places.end() && same_port(port, *place->second.port);
            if (kept && place->second.netns == netns) {
                fates_[netns].stays.insert(name);
                continue;
            }
            fates_[netns].goes.insert(name);
            if (kept) {
                moves.push_back({name, netns, place->second.netns});
            }
        }
    });
    order_moves(std::move(moves));
}

void Lifetimes::order_moves(std::vector<PortMove> pending) {
    while (!pending.empty()) {
        const auto free = std::find_if(pending.begin(), pending.end(), [&](const PortMove& move) {
            return std::none_of(pending.begin(), pending.end(), [&](const PortMove& other) {
                return other.name == move.name && other.from == move.to;
            });
        });
        if (free == pending.end()) {
            // Ports of one name that change places: one of them is removed and added.
            pending.pop_back();
            continue;
        }
        fates_[free->from].departs.insert(free->name);
        fates_[free->to].arrives.insert(free->name);
        moves_.push_back(*free);
        pending.erase(free);
    }
}

void Lifetimes::find_others(const Config& running, const Config& wanted) {
    for_each_netns(running, [&](std::string_view netns, const Netns& from) {
        const Netns* to = find_netns(wanted, netns);
        Fates& fates = fates_[netns];
        for (const auto& [name, vlan] : from.vlans) {
            const Vlan* next = find(to, &Netns::vlans, name);
            const bool stays = next != nullptr && same_vlan(vlan, *next) &&
                               of(netns_of_port(vlan, netns)).stays.contains(vlan.link);
            (stays ? fates.stays : fates.goes).insert(name);
        }
        for (const auto& [name, vrf] : from.vrfs) {
            const Vrf* next = find(to, &Netns::vrfs, name);
            const bool stays = next != nullptr && vrf.table == next->table;
            (stays ? fates.stays : fates.goes).insert(name);
        }
        if (to == nullptr) {
            return;
        }
        const Masters before = masters_of(from);
        const Masters after = masters_of(*to);
        for (const std::string_view name : fates.stays) {
            const auto old = before.find(name);
            const auto now = after.find(name);
            const bool free_before = old == before.end();
            const bool free_after = now == after.end();
            if (free_before != free_after || (!free_before && (old->second != now->second ||
                                                               fates.goes.contains(old->second)))) {
                fates.rehomed.insert(name);
            }
        }
    });
}

}  // namespace sluice::config
