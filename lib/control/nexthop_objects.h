// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "config/model.h"
#include "control/controller.h"
#include "control/netdevs.h"
#include "control/next_hop_counters.h"
#include "control/next_hops.h"
#include "fib/group.h"
#include "fib/shared.h"
#include "net/address.h"

namespace sluice::control {

class NextHopObjects;
struct NextHopObject;

/// What the routes of one family over a next-hop object lead to. Its value is always a group's,
/// even of a single gateway: so replacing an object, its netdev going down and a member leaving are
/// all one pointer swap, however many routes are over it.
struct ObjectTarget : RouteTarget {
    NextHopObjects* set = nullptr;
    NextHopObject* object = nullptr;       // null: gone, and the routes are about to go
    std::vector<NextHopObject*> assigned;  // of a resilient group: whose each bucket is
    bool balanced = true;                  // it has nothing to migrate
};

/// Null: it is something else.
inline ObjectTarget* as_object(RouteTarget& target) noexcept {
    return target.kind == RouteTarget::Kind::kObject ? static_cast<ObjectTarget*>(&target)
                                                     : nullptr;
}
inline const ObjectTarget* as_object(const RouteTarget& target) noexcept {
    return target.kind == RouteTarget::Kind::kObject ? static_cast<const ObjectTarget*>(&target)
                                                     : nullptr;
}

/// A gateway, a netdev, a blackhole, or a group of such.
struct NextHopObject {
    struct Member {
        NextHopObject* object;
        std::uint32_t weight;
    };

    std::uint32_t id = 0;
    config::NextHop config;
    RouteOwner owner = RouteOwner::kCli;
    std::uint8_t protocol = 0;  // NextHopInfo::protocol
    bool is_group = false;

    // Of what is no group.
    NextHopKey key;                      // but for the family
    bool active = false;                 // may be used now
    std::array<NextHop*, 2> hops{};      // by family of the packets, while something uses them
    std::vector<NextHopObject*> groups;  // that it is a member of

    std::vector<Member> members;  // of a group

    std::array<std::unique_ptr<ObjectTarget>, 2> targets;  // by family, while routes are over it
};

/// What a change of next-hop objects leaves to do, in this order (G-04): put the routes of `turned`
/// in or out of the tables, make everything cached of the netns stale, NextHopObjects::finish().
/// And at leisure, since nothing is sent over them any more: remove the routes of `orphaned`, then
/// forget() each.
struct NextHopChange {
    std::vector<RouteTarget*> turned;    // usable now, or no longer
    std::vector<RouteTarget*> orphaned;  // of objects that are gone
    std::vector<NextHop*> released;
    std::vector<std::uint32_t> counters;

    NextHopChange& operator+=(const NextHopChange& more) {
        turned.insert(turned.end(), more.turned.begin(), more.turned.end());
        orphaned.insert(orphaned.end(), more.orphaned.begin(), more.orphaned.end());
        released.insert(released.end(), more.released.begin(), more.released.end());
        counters.insert(counters.end(), more.counters.begin(), more.counters.end());
        return *this;
    }
};

/// The next-hop objects of one netns. Checks, changes, and publishes groups; routes are the
/// caller's. Control thread.
class NextHopObjects {
public:
    /// Limits the work of one change; 32 are asked for.
    static constexpr std::size_t kMaxMembers = 1024;

    NextHopObjects(fib::Shared& shared,
                   const Netdevs& netdevs,
                   NextHops& hops,
                   NextHopCounters& counters)
        : shared_(shared), netdevs_(netdevs), hops_(hops), counters_(counters) {}
    NextHopObjects(const NextHopObjects&) = delete;
    NextHopObjects& operator=(const NextHopObjects&) = delete;
    NextHopObjects(NextHopObjects&&) = delete;
    NextHopObjects& operator=(NextHopObjects&&) = delete;
    ~NextHopObjects();

    /// The netns ends: gives everything back. No route is over any of them, and no worker knows
    /// one.
    void clear();

    /// What can be told from `config` alone and from the other objects. `replace` as in add().
    Result<void> check(std::uint32_t id, const config::NextHop& config, bool replace) const;
    /// `key` is where what is no group leads. With `replace` it may take the place of one that is
    /// there. `now_s`: the workers' clock.
    Result<NextHopChange> add(std::uint32_t id,
                              const config::NextHop& config,
                              const NextHopKey& key,
                              RouteOwner owner,
                              std::uint8_t protocol,
                              bool replace,
                              std::uint32_t now_s);
    /// kNotFound.
    Result<NextHopChange> remove(std::uint32_t id);
    /// All that lead out of these netdevs.
    NextHopChange remove_on(std::span<const NetdevId> gone);
    /// The netdev or its addresses changed.
    NextHopChange reassess(const Netdev& netdev, std::uint32_t now_s);
    void finish(const NextHopChange& change);

    /// For a route of `family`; without one it is to be given to drop_if_unused(). kNotFound,
    /// kInvalid: it cannot serve that family, kLimit.
    Result<ObjectTarget*> target(std::uint32_t id, net::Family family);
    void drop_if_unused(ObjectTarget& target);
    /// An orphan without routes.
    void forget(ObjectTarget& orphan);

    /// Buckets of resilient groups that were idle for long enough move to where the weights want
    /// them. A few times a second.
    void migrate(std::uint32_t now_s);

    const NextHopObject* find(std::uint32_t id) const noexcept;
    std::vector<NextHopInfo> infos() const;
    bool empty() const noexcept { return objects_.empty(); }

private:
    NextHopObject* find(std::uint32_t id) noexcept;
    Result<void> check_kind(const config::NextHop& config) const;
    Result<void> check_group(const config::NextHop& config) const;
    Result<void> check_replacement(const NextHopObject& object,
                                   const config::NextHop& config) const;
    Result<NextHopChange> create(std::uint32_t id,
                                 const config::NextHop& config,
                                 const NextHopKey& key);
    Result<NextHopChange> replace_single(NextHopObject& object,
                                         const config::NextHop& config,
                                         NextHopKey key,
                                         std::uint32_t now_s);
    Result<NextHopChange> replace_group(NextHopObject& object,
                                        const config::NextHop& config,
                                        std::uint32_t now_s);
    void place(NextHopObject& single, const NextHopKey& key);
    void take_out(NextHopObject& object, std::set<NextHopObject*>& shrunk, NextHopChange& change);
    void remove_all(const std::vector<std::uint32_t>& ids, NextHopChange& change);

    /// The object's next hop for one family, for one target more or less.
    Result<void> acquire(NextHopObject& single, std::size_t family);
    void release(NextHopObject& single, std::size_t family, std::vector<NextHop*>& released);
    void release_target(ObjectTarget& target, std::vector<NextHop*>& released);

    /// Publishes what the target's object is now.
    void rebuild(ObjectTarget& target, std::uint32_t now_s, NextHopChange& change);
    void rebuild_all(NextHopObject& object, std::uint32_t now_s, NextHopChange& change);

    fib::Shared& shared_;
    const Netdevs& netdevs_;
    NextHops& hops_;
    NextHopCounters& counters_;
    std::map<std::uint32_t, std::unique_ptr<NextHopObject>> objects_;
    std::set<std::pair<NetdevId, std::uint32_t>> by_netdev_;  // those that are no groups
    std::vector<std::unique_ptr<ObjectTarget>> orphans_;      // until their routes are gone
};

}  // namespace sluice::control
