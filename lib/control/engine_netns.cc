// SPDX-License-Identifier: BSD-3-Clause
// Netns that come and go, and what moves between them.
#include <algorithm>
#include <set>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/check.h"
#include "control/engine.h"
#include "control/names.h"
#include "control/policies.h"
#include "control/removal.h"

namespace sluice::control {

using fib::NetdevKind;

Result<Netns*> Engine::add_netns(const std::string& name) {
    if (auto ok = check_name(name); !ok) {
        return std::unexpected(ok.error());
    }
    if (netns_.find(name) != nullptr) {
        return fail(ErrorCode::kExists, "netns {} is there already", name);
    }
    if (auto ok = netdevs_.room(1); !ok) {
        return std::unexpected(ok.error());
    }
    const Changes::Scope change(changes_);
    const auto netns = netns_.create(name);
    if (netns) {
        equip(**netns);
    }
    return netns;
}

void Engine::equip(Netns& netns) {
    netns.nexthops = std::make_unique<NextHopObjects>(shared_, netdevs_, hops_, next_hop_counters_);
    netns.multipath = std::make_unique<Multipath>(shared_, netdevs_, hops_, next_hop_counters_);
    netns.policies = std::make_unique<Policies>(netns, netns_, hops_, changes_);
    const auto lo = make_netdev(netns, "lo", NetdevKind::kLoopback);
    SLUICE_CHECK(lo.has_value());
    (*lo)->table = netns.main;
    netns.lo = *lo;
    netdevs_.publish_domain(**lo);
}

Result<Ticket> Engine::delete_netns(Netns& netns) {
    if (&netns == default_) {
        return fail(ErrorCode::kInvalid, "{} is always there", netns.name);
    }
    std::vector<Netdev*> ports;
    std::vector<Netdev*> ending;
    for (const auto& [name, netdev] : netns.netdevs) {
        (netdev->kind == NetdevKind::kPort ? ports : ending).push_back(netdev);
    }
    for (const Netdev* port : ports) {
        if (default_->find(port->name) != nullptr) {
            return fail(ErrorCode::kBusy,
                        "its port {} returns to {}, which has a netdev of that name",
                        port->name,
                        default_->name);
        }
    }
    if (auto ok = netdevs_.room(ports.size()); !ok) {
        return std::unexpected(ok.error());
    }
    const Changes::Scope change(changes_);
    auto removal = std::make_unique<Removal>();
    std::vector<Netdev*> all = ending;
    all.insert(all.end(), ports.begin(), ports.end());
    cut_off(netns, all, *removal);
    for (Netdev* port : ports) {
        move(*port, *default_);
    }
    // Members before their VRFs, and all before `lo`, which is their domain's head.
    const auto rank = [](const Netdev* netdev) {
        return netdev->kind == NetdevKind::kLoopback ? 2 : netdev->kind == NetdevKind::kVrf ? 1 : 0;
    };
    std::ranges::stable_sort(ending, {}, rank);
    for (Netdev* netdev : ending) {
        netdev->addresses.clear();  // nobody is left to be told
    }
    // Stale in the old netns before the new one has them.
    changes_.all_now(netns);
    destroy(ending);
    arrive(ports);
    removal->ended = netns_.detach(netns);
    return begin(std::move(removal));
}

// --- moves --------------------------------------------------------------------------------------

void Engine::move(Netdev& netdev, Netns& to) {
    const NetdevId old = netdev.id;
    netdev.addresses.clear();
    netdev.link_local.reset();
    netdevs_.move(netdev, to);
    netdev.rewriting = 0;
    start_counting(netdev);
    if (netdev.device != nullptr) {
        queues_.rename(netdev, old);
    }
}

void Engine::arrive(std::span<Netdev* const> moved) {
    std::set<Netdev*> parents;
    for (Netdev* netdev : moved) {
        netdevs_.publish(*netdev);
        if (netdev->parent != nullptr) {
            parents.insert(netdev->parent);
        }
        changes_.all(*netdev->netns);
    }
    for (Netdev* parent : parents) {
        netdevs_.publish(*parent);
    }
}

Result<Ticket> Engine::move_link(Netns& netns, const std::string& name, Netns& to) {
    const auto found = netns.get(name);
    if (!found) {
        return std::unexpected(found.error());
    }
    if (!(*found)->is_link()) {
        return fail(ErrorCode::kUnsupported, "{} does not move: only ports and VLANs do", name);
    }
    if (&netns == &to) {
        return begin(std::make_unique<Removal>());
    }
    std::vector<Netdev*> moving{*found};
    std::ranges::copy_if((*found)->vlans, std::back_inserter(moving), [&](const Netdev* vlan) {
        return vlan->netns == &netns;
    });
    for (const Netdev* netdev : moving) {
        if (to.find(netdev->name) != nullptr) {
            return fail(
                ErrorCode::kExists, "netns {} has a netdev {} already", to.name, netdev->name);
        }
    }
    if (auto ok = netdevs_.room(moving.size()); !ok) {
        return std::unexpected(ok.error());
    }
    const Changes::Scope change(changes_);
    std::set<Netdev*> domains;
    for (const Netdev* netdev : moving) {
        if (!netdev->addresses.empty()) {
            domains.insert(&netdev->domain());
        }
    }
    auto removal = std::make_unique<Removal>();
    cut_off(netns, moving, *removal);
    for (Netdev* netdev : moving) {
        move(*netdev, to);
    }
    for (Netdev* domain : domains) {
        netdevs_.publish_domain(*domain);
    }
    // Stale in the old netns before the new one has them.
    changes_.all_now(netns);
    arrive(moving);
    spdlog::info("{}: moved from netns {} to {}", name, netns.name, to.name);
    return begin(std::move(removal));
}

}  // namespace sluice::control
