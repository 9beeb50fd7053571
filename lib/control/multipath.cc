// SPDX-License-Identifier: BSD-3-Clause
#include "control/multipath.h"

#include <algorithm>
#include <utility>

namespace sluice::control {

namespace {

bool has_routes(const NextHopObject& object) noexcept {
    return std::ranges::any_of(object.targets,
                               [](const auto& target) { return target != nullptr; });
}

}  // namespace

std::uint32_t Multipath::next_id() {
    do {
        ++last_id_;
    } while (last_id_ == 0 || std::as_const(objects_).find(last_id_) != nullptr);
    return last_id_;
}

Result<std::uint32_t> Multipath::single(const Leg& leg) {
    NextHopKey key = leg.key;
    key.family = net::Family::kIpv4;  // one for both
    if (const auto it = singles_.find(key); it != singles_.end()) {
        return it->second;
    }
    config::NextHop config;
    config.via = key.gateway;
    config.on_link = key.on_link;
    config.dev = "-";  // the key has it
    const std::uint32_t id = next_id();
    const auto made = objects_.add(id, config, key, RouteOwner::kCli, 0, false, 0);
    if (!made) {
        return std::unexpected(made.error());
    }
    singles_.emplace(key, id);
    return id;
}

Result<std::uint32_t> Multipath::group(const Members& members) {
    if (const auto it = groups_.find(members); it != groups_.end()) {
        // One that has lost members is another one by now.
        const NextHopObject* object = std::as_const(objects_).find(it->second);
        if (object != nullptr && object->config.group == members) {
            return it->second;
        }
    }
    config::NextHop config;
    config.group = members;
    const std::uint32_t id = next_id();
    const auto made = objects_.add(id, config, {}, RouteOwner::kCli, 0, false, 0);
    if (!made) {
        return std::unexpected(made.error());
    }
    groups_[members] = id;
    return id;
}

Result<ObjectTarget*> Multipath::target(std::span<const Leg> legs, net::Family family) {
    Members members;
    Result<void> ok;
    for (const Leg& leg : legs) {
        const auto id = single(leg);
        if (!id) {
            ok = std::unexpected(id.error());
        } else if (!members.emplace(*id, leg.weight).second) {
            ok = fail(ErrorCode::kInvalid, "one next hop stands there twice");
        }
        if (!ok) {
            break;
        }
    }
    if (ok) {
        const auto id = group(members);
        const auto made = id ? objects_.target(*id, family) : std::unexpected(id.error());
        if (made) {
            return *made;
        }
        ok = std::unexpected(made.error());
    }
    sweep();
    return std::unexpected(ok.error());
}

void Multipath::drop_if_unused(ObjectTarget& target) {
    if (!target.routes.empty() || target.object == nullptr) {
        return;
    }
    NextHopObject& object = *target.object;
    objects_.drop_if_unused(target);
    if (has_routes(object)) {
        return;  // of the other family
    }
    std::vector<std::uint32_t> members;
    for (const auto& member : object.members) {
        members.push_back(member.object->id);
    }
    if (const auto it = groups_.find(object.config.group);
        it != groups_.end() && it->second == object.id) {
        groups_.erase(it);
    }
    remove(object.id);
    for (const std::uint32_t id : members) {
        const NextHopObject* leg = std::as_const(objects_).find(id);
        if (leg->groups.empty()) {
            NextHopKey key = leg->key;
            key.counter = 0;
            singles_.erase(key);
            remove(id);
        }
    }
}

void Multipath::remove(std::uint32_t id) {
    if (const auto change = objects_.remove(id); change) {
        objects_.finish(*change);
    }
}

NextHopChange Multipath::remove_on(std::span<const NetdevId> gone) {
    NextHopChange change = objects_.remove_on(gone);
    if (!change.counters.empty()) {
        sweep();
    }
    return change;
}

void Multipath::sweep() {
    std::erase_if(groups_, [&](const auto& entry) {
        const NextHopObject* object = std::as_const(objects_).find(entry.second);
        const bool unused = object != nullptr && !has_routes(*object);
        if (unused) {
            remove(entry.second);
        }
        return unused || object == nullptr || object->config.group != entry.first;
    });
    std::erase_if(singles_, [&](const auto& entry) {
        const NextHopObject* leg = std::as_const(objects_).find(entry.second);
        if (leg != nullptr && leg->groups.empty()) {
            remove(entry.second);
            leg = nullptr;
        }
        return leg == nullptr;
    });
}

}  // namespace sluice::control
