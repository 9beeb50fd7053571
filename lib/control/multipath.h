// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/result.h"
#include "control/next_hops.h"
#include "control/nexthop_objects.h"
#include "net/address.h"

namespace sluice::control {

/// The groups of routes that name several next hops themselves: next-hop objects like the user's,
/// but without a name, shared by routes with the same legs, and gone with the last of these. They
/// shrink and vanish with their netdevs as all groups do (G-04). Of one netns; control thread.
class Multipath {
public:
    struct Leg {
        NextHopKey key;
        std::uint32_t weight = 1;
    };

    Multipath(fib::Shared& shared,
              const Netdevs& netdevs,
              NextHops& hops,
              NextHopCounters& counters)
        : objects_(shared, netdevs, hops, counters) {}

    /// For a route of `family`; without one it is to be given to drop_if_unused(). kInvalid: a leg
    /// stands there twice, or cannot serve that family; kLimit.
    Result<ObjectTarget*> target(std::span<const Leg> legs, net::Family family);
    void drop_if_unused(ObjectTarget& target);
    bool owns(const ObjectTarget& target) const noexcept { return target.set == &objects_; }

    /// As those of NextHopObjects.
    NextHopChange remove_on(std::span<const NetdevId> gone);
    NextHopChange reassess(const Netdev& netdev, std::uint32_t now_s) {
        return objects_.reassess(netdev, now_s);
    }
    void clear() { objects_.clear(); }

private:
    using Members = std::map<std::uint32_t, std::uint32_t>;  // id: weight

    Result<std::uint32_t> single(const Leg& leg);
    Result<std::uint32_t> group(const Members& members);
    /// Forgets what nobody has any more. A look at all of them.
    void sweep();
    void remove(std::uint32_t id);
    std::uint32_t next_id();

    NextHopObjects objects_;
    std::map<NextHopKey, std::uint32_t> singles_;
    std::map<Members, std::uint32_t> groups_;
    std::uint32_t last_id_ = 0;
};

}  // namespace sluice::control
