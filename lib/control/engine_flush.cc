// SPDX-License-Identifier: BSD-3-Clause
// What a user clears: routes of one owner, learned neighbors, exceptions. In slices, as removals
// are; what is left is found again by its key, so others may come and go between them.
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/engine.h"
#include "control/removal.h"
#include "control/route_labels.h"

namespace sluice::control {

namespace {

/// Where a flush of routes goes on.
struct RoutePlace {
    std::vector<std::uint32_t> tables;
    std::size_t table = 0;  // of `tables`
    std::optional<Route<net::Ipv4Addr>::Key> at4;
    std::optional<Route<net::Ipv6Addr>::Key> at6;
    bool v4_done = false;
};

/// A flush of what each of some netdevs has, by address. `some(netdev, at, removed)` goes on there
/// for a while and says where to go on next, nullopt: it is done with this one.
template <class Some>
auto for_each_of(std::vector<NetdevId> netdevs, const Netdevs& clock, Some some) {
    return [netdevs = std::move(netdevs),
            number = std::size_t{0},
            at = net::IpAddr{},
            &clock,
            some = std::move(some)](std::size_t& removed, Time deadline) mutable {
        for (; number < netdevs.size(); ++number, at = {}) {
            while (const auto next = some(netdevs[number], at, removed)) {
                at = *next;
                if (clock.now() >= deadline) {
                    return false;
                }
            }
        }
        return true;
    };
}

}  // namespace

Flush Engine::begin_flush(std::move_only_function<bool(std::size_t& removed, Time deadline)> work) {
    const Changes::Scope change(changes_);
    auto removed = std::make_shared<std::size_t>(0);
    auto removal = std::make_unique<Removal>();
    removal->flush = [removed, work = std::move(work)](Time deadline) mutable {
        return work(*removed, deadline);
    };
    return {.ticket = begin(std::move(removal)), .removed = std::move(removed)};
}

Flush Engine::flush_routes(Netns& netns, const RouteFilter& filter) {
    RoutePlace start;
    for (const auto& [id, table] : netns.tables) {
        start.tables.push_back(id);
    }
    return begin_flush([this, &netns, filter, place = std::move(start)](std::size_t& removed,
                                                                        Time deadline) mutable {
        const std::size_t before = removed;
        // Looks at the clock after some routes, be they the owner's or not.
        const auto flush = [&](auto& rib, auto& at, net::Family family) {
            auto* route = at ? rib.from(*at) : rib.front();
            for (std::size_t seen = 1; route != nullptr && rib.count(filter.owner) != 0; ++seen) {
                auto& here = *route;
                route = rib.after(here);
                if (filter.takes(here.key.owner, protocol_of(here.protocol, here.key.owner)) &&
                    !is_dead(*here.hop)) {
                    drop_if_unused(netns, take_out(here, family));
                    ++removed;
                }
                if (route != nullptr && seen % kBetweenLooks == 0 && netdevs_.now() >= deadline) {
                    at = route->key;
                    return false;
                }
            }
            return true;
        };
        bool done = true;
        for (; done && place.table < place.tables.size(); ++place.table) {
            Table* table = NetnsSet::find_table(netns, place.tables[place.table]);
            if (table == nullptr) {
                continue;
            }
            place.v4_done = place.v4_done || flush(table->v4, place.at4, net::Family::kIpv4);
            done = place.v4_done && flush(table->v6, place.at6, net::Family::kIpv6);
            if (!done) {
                break;
            }
            place.v4_done = false;
            place.at4.reset();
            place.at6.reset();
        }
        if (removed != before) {
            changes_.all(netns);
        }
        return done;
    });
}

Result<Flush> Engine::flush_neighbors(Netns& netns, const std::string& dev) {
    if (!dev.empty()) {
        if (const auto netdev = netns.get(dev); !netdev) {
            return std::unexpected(netdev.error());
        }
    }
    std::vector<NetdevId> ids;
    for (const auto& [name, netdev] : netns.netdevs) {
        if (dev.empty() || name == dev) {
            ids.push_back(netdev->id);
        }
    }
    return begin_flush(for_each_of(
        std::move(ids), netdevs_, [this](NetdevId id, const net::IpAddr& at, std::size_t& removed) {
            return neighbors_.table().flush_learned(id, at, kBetweenLooks, removed);
        }));
}

Flush Engine::flush_exceptions(Netns& netns) {
    std::vector<NetdevId> domains;
    for (const auto& [name, netdev] : netns.netdevs) {
        if (netdev->table != nullptr) {
            domains.push_back(netdev->id);
        }
    }
    return begin_flush(
        for_each_of(std::move(domains),
                    netdevs_,
                    [this](NetdevId domain, const net::IpAddr& at, std::size_t& removed) {
                        return exceptions_.flush_domain(domain, at, kBetweenLooks, removed);
                    }));
}

}  // namespace sluice::control
