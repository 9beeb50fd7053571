// SPDX-License-Identifier: BSD-3-Clause
// Netdevs that go. Packets stop at once; what leads to the netdevs is taken out in slices, so that
// other requests are served meanwhile (U-09, M-02).
#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include <spdlog/spdlog.h>

#include "control/engine.h"
#include "control/names.h"
#include "control/removal.h"

namespace sluice::control {

using fib::NetdevKind;

namespace {

// A slice may take this long, the check of the time included.
constexpr auto kSlice = std::chrono::microseconds(500);

}  // namespace

// --- the call -----------------------------------------------------------------------------------

void Engine::cut_off(Netns& netns, std::span<Netdev* const> netdevs, Removal& removal) {
    removal.netns = &netns;
    std::vector<NetdevId> ids;
    for (const Netdev* netdev : netdevs) {
        ids.push_back(netdev->id);
    }
    // All at once, so that no prefix falls back to another route that is about to go.
    for (const NetdevId id : ids) {
        hops_.for_each_on(id, [&](NextHop& hop) {
#ifdef SLUICE_TEST_WITHOUT_G04  // test/control/move_test.cc: objects and groups stay as they are
            if (hop.routes.empty()) {
                return;
            }
#endif
            hop.usable = false;
            if (hop.has_dst()) {
                fib::repoint_to_blackhole(shared_.dsts.writable(hop.value));
            }
        });
    }
#ifdef SLUICE_TEST_WITHOUT_G04
    const NextHopChange change;
#else
    NextHopChange change = netns.nexthops->remove_on(ids);
    change += netns.multipath->remove_on(ids);
#endif
    for (RouteTarget* target : change.turned) {
        update_routes(*target);
    }
    removal.targets.insert(removal.targets.end(), change.orphaned.begin(), change.orphaned.end());
    uncached_.for_each_of(
        ids, [&](fib::DstIndex dst) { fib::repoint_to_blackhole(shared_.dsts.writable(dst)); });
    changes_.all(netns);
    netns.nexthops->finish(change);
    removal.gone.insert(removal.gone.end(), ids.begin(), ids.end());
}

void Engine::close_device(Netdev& netdev) {
    if (netdev.device == nullptr) {
        return;
    }
    queues_.withdraw(netdev);
    const std::string device = device_of(netdev.devargs);
    closing_.insert(device);
    // Not through changes_: no cache knows of devices, and quiesce() waits for this within a call.
    changes_.rcu().defer([this, device, closing = std::move(netdev.device)]() mutable {
        closing.reset();
        closing_.erase(device);
    });
}

void Engine::destroy(std::span<Netdev* const> netdevs) {
    std::set<Netdev*> domains;
    std::set<Netdev*> parents;
    for (Netdev* netdev : netdevs) {
        if (!netdev->addresses.empty()) {
            domains.insert(&netdev->domain());
        }
        if (netdev->parent != nullptr) {
            std::erase(netdev->parent->vlans, netdev);
            parents.insert(netdev->parent);
        }
    }
    for (Netdev* netdev : netdevs) {
        domains.erase(netdev);
        parents.erase(netdev);
        close_device(*netdev);
        netdevs_.destroy(*netdev);
    }
    for (Netdev* parent : parents) {
        static_cast<void>(update_promiscuous(*parent, parent->settings.promiscuous));
        netdevs_.publish(*parent);
    }
    for (Netdev* domain : domains) {
        netdevs_.publish_domain(*domain);
    }
}

Result<Ticket> Engine::delete_netdevs(Netns& netns, std::span<const std::string> names) {
    std::vector<Netdev*> netdevs;
    for (const std::string& name : names) {
        const auto netdev = netns.get(name);
        if (!netdev) {
            return std::unexpected(netdev.error());
        }
        if (!(*netdev)->is_link() && (*netdev)->kind != NetdevKind::kVrf) {
            return fail(ErrorCode::kInvalid, "{} is always there", name);
        }
        if (std::ranges::find(netdevs, *netdev) != netdevs.end()) {
            return fail(ErrorCode::kInvalid, "{} is named twice", name);
        }
        netdevs.push_back(*netdev);
    }
    const std::set<Netdev*> set(netdevs.begin(), netdevs.end());
    for (const Netdev* port : netdevs) {
        for (Netdev* vlan : port->vlans) {
            if (!set.contains(vlan)) {
                return fail(ErrorCode::kBusy,
                            "{} has the VLAN {}{}: delete that first, or with it",
                            port->name,
                            vlan->name,
                            vlan->netns == &netns ? "" : " in netns " + vlan->netns->name);
            }
        }
    }
    const Changes::Scope change(changes_);
    if (auto ok = release_members(netns, set); !ok) {
        return std::unexpected(ok.error());
    }
    auto removal = std::make_unique<Removal>();
    cut_off(netns, netdevs, *removal);
    // Members before their VRF.
    std::ranges::stable_partition(
        netdevs, [](const Netdev* netdev) { return netdev->kind != NetdevKind::kVrf; });
    destroy(netdevs);
    return begin(std::move(removal));
}

// --- what is left -------------------------------------------------------------------------------

Ticket Engine::begin(std::unique_ptr<Removal> removal) {
    removal->ticket = ++last_ticket_;
    unsettled_.insert(removal->ticket);
    const Ticket ticket = removal->ticket;
    // Those before it may know targets that it would drop.
    if (removals_.empty() && step(*removal, netdevs_.now() + kSlice)) {
        finish(std::move(removal));
    } else {
        removal->sliced = true;
        removals_.push_back(std::move(removal));
    }
    return ticket;
}

bool Engine::step(Removal& removal, Time deadline) {
    const auto late = [&] { return netdevs_.now() >= deadline; };
    if (removal.flush && !removal.flush(deadline)) {
        return false;
    }
    while (!removal.unlisted) {
        removal.unlisted = !uncached_.flush(removal.gone, kBetweenLooks, [](auto&&...) {});
        if (!removal.unlisted && late()) {
            return false;
        }
    }
    for (; removal.exceptions_done < removal.gone.size(); ++removal.exceptions_done) {
        const NetdevId id = removal.gone[removal.exceptions_done];
        std::size_t in_domain = 0;
        while (exceptions_.flush_netdev(id, kBetweenLooks) != 0 ||
               exceptions_.flush_domain(id, {}, kBetweenLooks, in_domain)) {
            if (late()) {
                return false;
            }
        }
    }
#ifdef SLUICE_TEST_WITHOUT_G04  // a dst whose neighbor is gone sends nothing either
    removal.neighbors_done = removal.gone.size();
#endif
    for (; removal.neighbors_done < removal.gone.size(); ++removal.neighbors_done) {
        const NetdevId id = removal.gone[removal.neighbors_done];
        while (neighbors_.table().flush(id, false, kBetweenLooks)) {
            if (late()) {
                return false;
            }
        }
    }
    for (; removal.hops_done < removal.gone.size(); ++removal.hops_done) {
        const NetdevId id = removal.gone[removal.hops_done];
        bool done = true;
        hops_.for_each_on(
            id, [&](NextHop& hop) { done = done && withdraw(*removal.netns, hop, deadline); });
        if (!done) {
            return false;
        }
    }
    for (; removal.targets_done < removal.targets.size(); ++removal.targets_done) {
        if (!withdraw(*removal.netns, *removal.targets[removal.targets_done], deadline)) {
            return false;
        }
    }
    return removal.ended == nullptr || withdraw_all(*removal.ended, deadline);
}

bool Engine::withdraw(Netns& netns, RouteTarget& target, Time deadline) {
    for (std::size_t count = 1; !target.routes.empty(); ++count) {
        take_out(target.routes.front(), target.family);
        if (count % kBetweenLooks == 0 && netdevs_.now() >= deadline) {
            return false;
        }
    }
    if (ObjectTarget* orphan = as_object(target); orphan != nullptr) {
        orphan->set->forget(*orphan);
    } else {
        drop_if_unused(netns, target);
    }
    return true;
}

bool Engine::withdraw_all(Netns& netns, Time deadline) {
    std::size_t count = 0;
    const auto empty = [&](auto& rib) {
        while (rib.front() != nullptr) {
            const auto family = rib.front()->hop->family;
            drop_if_unused(netns, take_out(*rib.front(), family));
            if (++count % kBetweenLooks == 0 && netdevs_.now() >= deadline) {
                return false;
            }
        }
        return true;
    };
    return std::ranges::all_of(netns.tables, [&](const auto& entry) {
        return empty(entry.second->v4) && empty(entry.second->v6);
    });
}

void Engine::finish(std::unique_ptr<Removal> removal) {
    if (removal->sliced && removal->netns != nullptr) {
        // Destinations that had a route over what is gone have another, or none.
        changes_.all(*removal->netns);
    }
    if (removal->ended != nullptr) {
        changes_.defer([this, netns = std::move(removal->ended)]() mutable {
            netns_.destroy(std::move(netns));
        });
    }
    changes_.defer([this, ticket = removal->ticket] { unsettled_.erase(ticket); });
}

bool Engine::work() {
    if (removals_.empty()) {
        return false;
    }
    const Changes::Scope change(changes_);
    if (step(*removals_.front(), netdevs_.now() + kSlice)) {
        auto done = std::move(removals_.front());
        removals_.pop_front();
        finish(std::move(done));
    }
    return true;
}

bool Engine::settled(Ticket ticket) {
    changes_.rcu().poll();
    return !unsettled_.contains(ticket);
}

}  // namespace sluice::control
