// SPDX-License-Identifier: BSD-3-Clause
#include "control/nexthop_objects.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/check.h"
#include "control/resilient.h"

namespace sluice::control {

using fib::DstType;

namespace {

constexpr std::array kFamilies{net::Family::kIpv4, net::Family::kIpv6};

std::size_t index_of(net::Family family) noexcept {
    return family == net::Family::kIpv4 ? 0 : 1;
}

NextHopKey key_for(const NextHopObject& single, std::size_t family) {
    NextHopKey key = single.key;
    key.family = kFamilies[family];
    return key;
}

/// The members that packets can go to now; of what is no group, itself.
std::vector<NextHopObject::Member> live_members(NextHopObject& object) {
    std::vector<NextHopObject::Member> live;
    if (!object.is_group) {
        if (object.active) {
            live.push_back({&object, 1});
        }
        return live;
    }
    for (const auto& member : object.members) {
        if (member.object->active) {
            live.push_back(member);
        }
    }
    return live;
}

std::vector<std::uint32_t> weights_of(const std::vector<NextHopObject::Member>& members) {
    std::vector<std::uint32_t> weights;
    for (const auto& member : members) {
        weights.push_back(member.weight);
    }
    return weights;
}

/// Every single object that a target of `object` leads to.
template <class Fn>
void for_each_single(NextHopObject& object, Fn&& fn) {
    if (!object.is_group) {
        fn(object);
        return;
    }
    for (const auto& member : object.members) {
        fn(*member.object);
    }
}

}  // namespace

NextHopObjects::~NextHopObjects() = default;

void NextHopObjects::clear() {
    std::vector<std::uint32_t> ids;
    for (const auto& [id, object] : objects_) {
        ids.push_back(id);
    }
    NextHopChange change;
    remove_all(ids, change);
    finish(change);
}

const NextHopObject* NextHopObjects::find(std::uint32_t id) const noexcept {
    const auto it = objects_.find(id);
    return it == objects_.end() ? nullptr : it->second.get();
}

NextHopObject* NextHopObjects::find(std::uint32_t id) noexcept {
    const auto it = objects_.find(id);
    return it == objects_.end() ? nullptr : it->second.get();
}

// --- next hops and targets ----------------------------------------------------------------------

Result<void> NextHopObjects::acquire(NextHopObject& single, std::size_t family) {
    if (single.hops[family] == nullptr) {
        const Netdev* netdev = netdevs_.find(single.key.netdev);
        SLUICE_CHECK(netdev != nullptr);
        const auto hop = hops_.get(key_for(single, family), *netdev);
        if (!hop) {
            return std::unexpected(hop.error());
        }
        single.hops[family] = *hop;
    }
    ++single.hops[family]->users;
    return {};
}

void NextHopObjects::release(NextHopObject& single,
                             std::size_t family,
                             std::vector<NextHop*>& released) {
    if (--single.hops[family]->users == 0) {
        released.push_back(std::exchange(single.hops[family], nullptr));
    }
}

void NextHopObjects::release_target(ObjectTarget& target, std::vector<NextHop*>& released) {
    const std::size_t family = index_of(target.family);
    for_each_single(*target.object,
                    [&](NextHopObject& single) { release(single, family, released); });
}

Result<ObjectTarget*> NextHopObjects::target(std::uint32_t id, net::Family family) {
    NextHopObject* object = find(id);
    if (object == nullptr) {
        return fail(ErrorCode::kNotFound, "no next hop {}", id);
    }
    const std::size_t f = index_of(family);
    if (object->targets[f] != nullptr) {
        return object->targets[f].get();
    }
    if (family == net::Family::kIpv6) {
        std::optional<std::uint32_t> wrong;
        for_each_single(*object, [&](const NextHopObject& single) {
            if (single.key.gateway && single.key.gateway->is_v4()) {
                wrong = single.id;
            }
        });
        if (wrong) {
            return fail(ErrorCode::kInvalid,
                        "an IPv6 route has no IPv4 gateway, and next hop {} is one",
                        *wrong);
        }
    }
    const auto value = shared_.groups.allocate();
    if (!value) {
        return std::unexpected(value.error());
    }
    auto made = std::make_unique<ObjectTarget>();
    made->kind = RouteTarget::Kind::kObject;
    made->value = *value;
    made->family = family;
    made->set = this;
    made->object = object;
    Result<void> ok;
    std::vector<NextHopObject*> acquired;
    for_each_single(*object, [&](NextHopObject& single) {
        if (ok && (ok = acquire(single, f))) {
            acquired.push_back(&single);
        }
    });
    if (!ok) {
        std::vector<NextHop*> released;
        for (NextHopObject* single : acquired) {
            release(*single, f, released);
        }
        for (NextHop* hop : released) {
            hops_.drop_if_unused(*hop);
        }
        shared_.groups.release(*value);
        return std::unexpected(ok.error());
    }
    NextHopChange change;
    rebuild(*made, 0, change);  // its buckets are all new: no time counts
    object->targets[f] = std::move(made);
    return object->targets[f].get();
}

void NextHopObjects::drop_if_unused(ObjectTarget& target) {
    if (!target.routes.empty() || target.object == nullptr) {
        return;
    }
    shared_.groups.publish(target.value, nullptr);
    shared_.groups.release(target.value);
    std::vector<NextHop*> released;
    release_target(target, released);
    target.object->targets[index_of(target.family)].reset();
    for (NextHop* hop : released) {
        hops_.drop_if_unused(*hop);
    }
}

void NextHopObjects::forget(ObjectTarget& orphan) {
    SLUICE_CHECK(orphan.routes.empty() && orphan.object == nullptr);
    shared_.groups.release(orphan.value);
    std::erase_if(orphans_, [&](const auto& owned) { return owned.get() == &orphan; });
}

// --- publishing ---------------------------------------------------------------------------------

void NextHopObjects::rebuild(ObjectTarget& target, std::uint32_t now_s, NextHopChange& change) {
    NextHopObject& object = *target.object;
    const std::size_t family = index_of(target.family);
    const auto live = live_members(object);
    const bool usable = !live.empty();
    if (std::exchange(target.usable, usable) != usable) {
        change.turned.push_back(&target);
    }
    if (!usable) {
        shared_.groups.publish(target.value, nullptr);
        return;
    }
    if (!object.config.resilient) {
        std::vector<fib::GroupMember> members;
        for (const auto& [single, weight] : live) {
            members.push_back({single->hops[family]->value, weight});
        }
        shared_.groups.publish(target.value, fib::make_group(members));
        return;
    }
    const fib::Group* group = shared_.groups[target.value];
    std::vector<std::uint32_t> owners(object.config.resilient->buckets, kNobody);
    std::map<const NextHopObject*, std::uint32_t> index;
    for (std::uint32_t i = 0; i < live.size(); ++i) {
        index[live[i].object] = i;
    }
    for (std::size_t bucket = 0; bucket < target.assigned.size(); ++bucket) {
        if (const auto at = index.find(target.assigned[bucket]); at != index.end()) {
            owners[bucket] = at->second;
        }
    }
    target.balanced = assign_buckets(owners, weights_of(live), [&](std::size_t bucket) {
        return group == nullptr ||
               bucket_idle(group->buckets[bucket].used_s.load(std::memory_order_relaxed),
                           now_s,
                           object.config.resilient->idle_timer);
    });
    std::unique_ptr<fib::Group> fresh;
    if (group == nullptr) {
        fresh = std::make_unique<fib::Group>(owners.size(), true);
        group = fresh.get();
    }
    target.assigned.resize(owners.size());
    for (std::size_t bucket = 0; bucket < owners.size(); ++bucket) {
        NextHopObject* single = live[owners[bucket]].object;
        target.assigned[bucket] = single;
        group->buckets[bucket].dst.store(single->hops[family]->value, std::memory_order_release);
    }
    if (fresh != nullptr) {
        shared_.groups.publish(target.value, std::move(fresh));
    }
}

void NextHopObjects::rebuild_all(NextHopObject& object,
                                 std::uint32_t now_s,
                                 NextHopChange& change) {
    for (const auto& target : object.targets) {
        if (target != nullptr) {
            rebuild(*target, now_s, change);
        }
    }
}

NextHopChange NextHopObjects::reassess(const Netdev& netdev, std::uint32_t now_s) {
    NextHopChange change;
    std::set<NextHopObject*> touched;
    auto it = by_netdev_.lower_bound({netdev.id, 0});
    for (; it != by_netdev_.end() && it->first == netdev.id; ++it) {
        NextHopObject& single = *find(it->second);
        const bool active = is_usable(single.key, netdev);
        if (std::exchange(single.active, active) != active) {
            touched.insert(&single);
            touched.insert(single.groups.begin(), single.groups.end());
        }
    }
    for (NextHopObject* object : touched) {
        rebuild_all(*object, now_s, change);
    }
    return change;
}

void NextHopObjects::migrate(std::uint32_t now_s) {
    for (const auto& [id, object] : objects_) {
        for (const auto& target : object->targets) {
            if (target != nullptr && target->usable && !target->balanced) {
                NextHopChange none;  // buckets change hands, nobody comes or goes
                rebuild(*target, now_s, none);
            }
        }
    }
}

// --- removal ------------------------------------------------------------------------------------

/// Out of its groups and the index; its targets stop.
void NextHopObjects::take_out(NextHopObject& object,
                              std::set<NextHopObject*>& shrunk,
                              NextHopChange& change) {
    for (auto& target : object.targets) {
        if (target == nullptr) {
            continue;
        }
        shared_.groups.publish(target->value, nullptr);
        release_target(*target, change.released);
        target->usable = false;
        target->object = nullptr;
        change.orphaned.push_back(target.get());
        orphans_.push_back(std::move(target));
    }
    if (object.is_group) {
        for (const auto& member : object.members) {
            std::erase(member.object->groups, &object);
        }
        return;
    }
    for (NextHopObject* group : object.groups) {
        std::erase_if(group->members, [&](const auto& member) { return member.object == &object; });
        group->config.group.erase(object.id);
        shrunk.insert(group);
        for (std::size_t family = 0; family < kFamilies.size(); ++family) {
            if (group->targets[family] != nullptr) {
                release(object, family, change.released);
            }
        }
    }
    by_netdev_.erase({object.key.netdev, object.id});
    change.counters.push_back(object.key.counter);
}

void NextHopObjects::remove_all(const std::vector<std::uint32_t>& ids, NextHopChange& change) {
    std::set<NextHopObject*> shrunk;
    std::vector<std::unique_ptr<NextHopObject>> gone;
    const auto remove = [&](std::uint32_t id) {
        const auto it = objects_.find(id);
        take_out(*it->second, shrunk, change);
        shrunk.erase(it->second.get());
        gone.push_back(std::move(it->second));
        objects_.erase(it);
    };
    // Groups first: one that goes too need not shrink before.
    for (const bool groups : {true, false}) {
        for (const std::uint32_t id : ids) {
            if (const NextHopObject* object = find(id);
                object != nullptr && object->is_group == groups) {
                remove(id);
            }
        }
    }
    for (NextHopObject* group : std::vector(shrunk.begin(), shrunk.end())) {
        if (group->members.empty()) {
            remove(group->id);
        }
    }
    for (NextHopObject* group : shrunk) {
        for (const auto& target : group->targets) {
            if (target != nullptr) {
                std::ranges::replace_if(
                    target->assigned,
                    [&](NextHopObject* owner) {
                        return std::ranges::any_of(
                            gone, [&](const auto& object) { return object.get() == owner; });
                    },
                    nullptr);
            }
        }
        rebuild_all(*group, 0, change);
    }
}

Result<NextHopChange> NextHopObjects::remove(std::uint32_t id) {
    if (find(id) == nullptr) {
        return fail(ErrorCode::kNotFound, "no next hop {}", id);
    }
    NextHopChange change;
    remove_all({id}, change);
    return change;
}

NextHopChange NextHopObjects::remove_on(std::span<const NetdevId> gone) {
    std::vector<std::uint32_t> ids;
    for (const NetdevId netdev : gone) {
        auto it = by_netdev_.lower_bound({netdev, 0});
        for (; it != by_netdev_.end() && it->first == netdev; ++it) {
            ids.push_back(it->second);
        }
    }
    NextHopChange change;
    remove_all(ids, change);
    return change;
}

void NextHopObjects::finish(const NextHopChange& change) {
    for (NextHop* hop : change.released) {
        hops_.drop_if_unused(*hop);
    }
    for (const std::uint32_t counter : change.counters) {
        counters_.release(counter);
    }
}

}  // namespace sluice::control
