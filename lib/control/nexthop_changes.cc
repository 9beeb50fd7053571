// SPDX-License-Identifier: BSD-3-Clause
// What may be asked of next-hop objects, and how one takes the place of another.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "control/nexthop_objects.h"
#include "control/resilient.h"

namespace sluice::control {

namespace {

bool is_v4_gateway(const config::NextHop& config) {
    return config.via && config.via->is_v4();
}

bool serves_ipv6_routes(const NextHopObject& object) {
    return object.targets[1] != nullptr ||
           std::ranges::any_of(object.groups,
                               [](const auto* group) { return group->targets[1] != nullptr; });
}

}  // namespace

// --- checks -------------------------------------------------------------------------------------

Result<void> NextHopObjects::check_kind(const config::NextHop& config) const {
    if (!config.group.empty()) {
        if (config.via || !config.dev.empty() || config.on_link || config.blackhole) {
            return fail(ErrorCode::kInvalid,
                        "a group has members, and neither via, dev, on-link nor a type");
        }
        return check_group(config);
    }
    if (config.resilient) {
        return fail(ErrorCode::kInvalid, "only a group is resilient");
    }
    if (config.blackhole && (config.via || !config.dev.empty() || config.on_link)) {
        return fail(ErrorCode::kInvalid, "a blackhole has neither via nor dev");
    }
    if (!config.blackhole && !config.via && config.dev.empty()) {
        return fail(ErrorCode::kInvalid, "a next hop needs via, dev, a group or type blackhole");
    }
    return {};
}

Result<void> NextHopObjects::check_group(const config::NextHop& config) const {
    if (config.group.size() > kMaxMembers) {
        return fail(ErrorCode::kLimit, "a group has at most {} members", kMaxMembers);
    }
    for (const auto& [id, weight] : config.group) {
        const NextHopObject* member = find(id);
        if (member == nullptr) {
            return fail(ErrorCode::kNotFound, "no next hop {}", id);
        }
        if (member->is_group) {
            return fail(ErrorCode::kInvalid, "{} is a group itself: groups do not nest", id);
        }
        if (weight < 1 || weight > 65535) {
            return fail(ErrorCode::kInvalid, "weight {} of {} is not in 1 to 65535", weight, id);
        }
        if (member->config.blackhole && config.group.size() > 1) {
            return fail(
                ErrorCode::kInvalid, "{} is a blackhole, which is in a group only alone", id);
        }
    }
    if (config.resilient) {
        const std::uint32_t buckets = config.resilient->buckets;
        if (buckets < 1 || buckets > 16384 || (buckets & (buckets - 1)) != 0) {
            return fail(ErrorCode::kInvalid, "{} buckets: a power of two from 1 to 16384", buckets);
        }
        if (config.resilient->idle_timer.count() < 0) {
            return fail(ErrorCode::kInvalid, "the idle timer is negative");
        }
    }
    return {};
}

Result<void> NextHopObjects::check_replacement(const NextHopObject& object,
                                               const config::NextHop& config) const {
    if (object.is_group != !config.group.empty()) {
        return fail(ErrorCode::kInvalid,
                    "next hop {} is {} group: delete it first",
                    object.id,
                    object.is_group ? "a" : "no");
    }
    if (object.config.resilient.has_value() != config.resilient.has_value()) {
        return fail(ErrorCode::kInvalid,
                    "group {} is {}resilient: delete it first",
                    object.id,
                    object.config.resilient ? "" : "not ");
    }
    if (config.resilient && config.resilient->buckets != object.config.resilient->buckets) {
        return fail(ErrorCode::kInvalid,
                    "group {} has {} buckets, which stay: delete it first",
                    object.id,
                    object.config.resilient->buckets);
    }
    const auto refuse_v4 = [&](std::uint32_t id) {
        return fail(ErrorCode::kInvalid,
                    "IPv6 routes are over next hop {}, and {} is an IPv4 gateway",
                    object.id,
                    id);
    };
    if (object.is_group) {
        for (const auto& [id, weight] : config.group) {
            if (object.targets[1] != nullptr && is_v4_gateway(find(id)->config)) {
                return refuse_v4(id);
            }
        }
        return {};
    }
    if (is_v4_gateway(config) && serves_ipv6_routes(object)) {
        return refuse_v4(object.id);
    }
    if (config.blackhole) {
        for (const NextHopObject* group : object.groups) {
            if (group->members.size() > 1) {
                return fail(ErrorCode::kInvalid,
                            "next hop {} is in group {} with others, where a blackhole cannot be",
                            object.id,
                            group->id);
            }
        }
    }
    return {};
}

Result<void> NextHopObjects::check(std::uint32_t id,
                                   const config::NextHop& config,
                                   bool replace) const {
    if (id == 0) {
        return fail(ErrorCode::kInvalid, "next hop ids start at 1");
    }
    const NextHopObject* there = find(id);
    if (there != nullptr && !replace) {
        return fail(ErrorCode::kExists, "next hop {} is there already", id);
    }
    if (auto ok = check_kind(config); !ok) {
        return ok;
    }
    return there == nullptr ? Result<void>{} : check_replacement(*there, config);
}

// --- changes ------------------------------------------------------------------------------------

Result<NextHopChange> NextHopObjects::add(std::uint32_t id,
                                          const config::NextHop& config,
                                          const NextHopKey& key,
                                          RouteOwner owner,
                                          std::uint8_t protocol,
                                          bool replace,
                                          std::uint32_t now_s) {
    if (auto ok = check(id, config, replace); !ok) {
        return std::unexpected(ok.error());
    }
    NextHopObject* there = find(id);
    auto change = there == nullptr  ? create(id, config, key)
                  : there->is_group ? replace_group(*there, config, now_s)
                                    : replace_single(*there, config, key, now_s);
    if (change) {
        NextHopObject& object = *find(id);
        object.config = config;
        object.owner = owner;
        object.protocol = protocol;
    }
    return change;
}

Result<NextHopChange> NextHopObjects::create(std::uint32_t id,
                                             const config::NextHop& config,
                                             const NextHopKey& key) {
    auto object = std::make_unique<NextHopObject>();
    object->id = id;
    object->is_group = !config.group.empty();
    if (object->is_group) {
        for (const auto& [member, weight] : config.group) {
            NextHopObject* single = find(member);
            object->members.push_back({single, weight});
            single->groups.push_back(object.get());
        }
    } else {
        const auto counter = counters_.allocate();
        if (!counter) {
            return std::unexpected(counter.error());
        }
        object->key.counter = *counter;
        place(*object, key);
    }
    objects_.emplace(id, std::move(object));
    return NextHopChange{};
}

void NextHopObjects::place(NextHopObject& single, const NextHopKey& key) {
    const std::uint32_t counter = single.key.counter;
    by_netdev_.erase({single.key.netdev, single.id});
    single.key = key;
    single.key.counter = counter;
    single.active = is_usable(key, *netdevs_.find(key.netdev));
    by_netdev_.insert({key.netdev, single.id});
}

Result<NextHopChange> NextHopObjects::replace_single(NextHopObject& object,
                                                     const config::NextHop& config,
                                                     NextHopKey key,
                                                     std::uint32_t now_s) {
    NextHopChange change;
    key.counter = object.key.counter;
    std::array<NextHop*, 2> fresh{};
    for (std::size_t family = 0; family < fresh.size(); ++family) {
        if (object.hops[family] == nullptr) {
            continue;
        }
        key.family = object.hops[family]->family;
        const auto hop = hops_.get(key, *netdevs_.find(key.netdev));
        if (!hop) {
            if (family == 1 && fresh[0] != nullptr) {
                hops_.drop_if_unused(*fresh[0]);
            }
            return std::unexpected(hop.error());
        }
        fresh[family] = *hop;
    }
    for (std::size_t family = 0; family < fresh.size(); ++family) {
        NextHop* old = object.hops[family];
        if (fresh[family] != old) {
            fresh[family]->users = std::exchange(old->users, 0U);
            change.released.push_back(std::exchange(object.hops[family], fresh[family]));
        }
    }
    object.config = config;
    place(object, key);
    rebuild_all(object, now_s, change);
    for (NextHopObject* group : object.groups) {
        rebuild_all(*group, now_s, change);
    }
    return change;
}

Result<NextHopChange> NextHopObjects::replace_group(NextHopObject& object,
                                                    const config::NextHop& config,
                                                    std::uint32_t now_s) {
    NextHopChange change;
    std::vector<std::pair<NextHopObject*, std::size_t>> acquired;
    for (const auto& [id, weight] : config.group) {
        for (std::size_t family = 0; family < object.targets.size(); ++family) {
            if (object.targets[family] == nullptr) {
                continue;
            }
            NextHopObject* single = find(id);
            if (auto ok = acquire(*single, family); !ok) {
                for (const auto& [undo, of] : acquired) {
                    release(*undo, of, change.released);
                }
                finish(change);
                return std::unexpected(ok.error());
            }
            acquired.emplace_back(single, family);
        }
    }
    for (const auto& target : object.targets) {
        if (target != nullptr) {
            release_target(*target, change.released);
        }
    }
    for (const auto& member : object.members) {
        std::erase(member.object->groups, &object);
    }
    object.members.clear();
    for (const auto& [id, weight] : config.group) {
        NextHopObject* single = find(id);
        object.members.push_back({single, weight});
        single->groups.push_back(&object);
    }
    object.config = config;
    rebuild_all(object, now_s, change);
    return change;
}

// --- show ---------------------------------------------------------------------------------------

namespace {

/// How many buckets of a group each member has; as they would be where no route made it yet.
std::vector<std::uint32_t> buckets_of(const fib::Shared& shared, const NextHopObject& group) {
    std::vector<std::uint32_t> counts(group.members.size(), 0);
    const auto count = [&](const fib::Group& published, const auto& dst_of) {
        std::map<fib::DstIndex, std::uint32_t> by_dst;
        for (std::uint32_t bucket = 0; bucket <= published.mask; ++bucket) {
            ++by_dst[published.buckets[bucket].dst.load(std::memory_order_relaxed)];
        }
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const auto found = by_dst.find(static_cast<fib::DstIndex>(dst_of(i)));
            counts[i] = found == by_dst.end() ? 0 : found->second;
        }
    };
    for (std::size_t family = 0; family < group.targets.size(); ++family) {
        if (group.targets[family] == nullptr) {
            continue;
        }
        if (const fib::Group* published = shared.groups[group.targets[family]->value];
            published != nullptr) {
            count(*published,
                  [&](std::size_t i) { return group.members[i].object->hops[family]->value; });
        }
        return counts;
    }
    std::vector<std::size_t> live;
    std::vector<std::uint32_t> weights;
    std::vector<fib::GroupMember> members;
    for (std::size_t i = 0; i < group.members.size(); ++i) {
        if (group.members[i].object->active) {
            live.push_back(i);
            weights.push_back(group.members[i].weight);
            members.push_back({static_cast<fib::DstIndex>(i + 1), group.members[i].weight});
        }
    }
    if (live.empty()) {
        return counts;
    }
    if (group.config.resilient) {
        const auto shares = bucket_shares(weights, group.config.resilient->buckets);
        for (std::size_t i = 0; i < live.size(); ++i) {
            counts[live[i]] = static_cast<std::uint32_t>(shares[i]);
        }
    } else {
        count(*fib::make_group(members), [](std::size_t i) { return i + 1; });
    }
    return counts;
}

}  // namespace

std::vector<NextHopInfo> NextHopObjects::infos() const {
    std::vector<NextHopInfo> infos;
    for (const auto& [id, object] : objects_) {
        NextHopInfo info;
        info.id = id;
        info.hop = object->config;
        info.owner = object->owner;
        info.protocol = object->protocol;
        for (const auto& target : object->targets) {
            info.routes += target == nullptr ? 0 : target->routes.size();
        }
        if (object->is_group) {
            const auto buckets = buckets_of(shared_, *object);
            for (std::size_t i = 0; i < object->members.size(); ++i) {
                const auto& [single, weight] = object->members[i];
                info.members.push_back({.id = single->id,
                                        .weight = weight,
                                        .active = single->active,
                                        .buckets = buckets[i],
                                        .packets = counters_.packets(single->key.counter)});
                info.active = info.active || single->active;
                info.packets += info.members.back().packets;
            }
        } else {
            info.active = object->active;
            info.packets = counters_.packets(object->key.counter);
        }
        infos.push_back(std::move(info));
    }
    return infos;
}

}  // namespace sluice::control
