// SPDX-License-Identifier: BSD-3-Clause
#include "control/neighbor_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/id.h"
#include "base/result.h"
#include "net/address.h"

namespace sluice::control {
namespace {

constexpr std::array<std::string_view, kNeighborStates> kStateNames{
#define SLUICE_X(enumerator, name) name,
    SLUICE_NEIGHBOR_STATES(SLUICE_X)
#undef SLUICE_X
};

bool is_station(const net::MacAddr& mac) noexcept {
    return !mac.is_group() && !mac.is_zero();
}

}  // namespace

std::string_view to_string(NeighborState state) noexcept {
    return kStateNames[std::to_underlying(state)];
}

NeighborTable::NeighborTable(NeighborActions& actions, const NeighborSettings& settings)
    : actions_(actions), settings_(settings), random_(settings.seed) {}

// --- what workers and the wire say ---

Resolve NeighborTable::resolve(const NeighborKey& key, Time now) {
    Entry* entry = lookup(key);
    if (entry == nullptr) {
        entry = create(key, NeighborState::kIncomplete, now);
        if (entry == nullptr) {
            return Resolve::kTableFull;
        }
        solicit(*entry, now);
        return Resolve::kStarted;
    }
    if (entry->mac) {
        actions_.reachable(key, *entry->mac);
        // The released packet is a use, whether or not its worker reports it.
        used(key, now);
        return Resolve::kKnown;
    }
    if (entry->state == NeighborState::kFailed) {
        set_state(*entry, NeighborState::kIncomplete, now);
        solicit(*entry, now);
    }
    return Resolve::kStarted;
}

void NeighborTable::used(const NeighborKey& key, Time now) {
    Entry* entry = lookup(key);
    if (entry == nullptr || entry->state != NeighborState::kStale) {
        return;
    }
    set_state(*entry, NeighborState::kDelay, now);
    arm(*entry, timers_, now + settings_.delay_first_probe);
    actions_.report_use(key, false);
}

Observed NeighborTable::observe(const NeighborKey& key, const Observation& observation, Time now) {
    if (observation.mac && !is_station(*observation.mac)) {
        return Observed::kBadMac;
    }
    Entry* entry = lookup(key);
    if (entry == nullptr) {
        if (!observation.create || !observation.mac) {
            return Observed::kUnknown;
        }
        entry = create(key, NeighborState::kStale, now);
        if (entry == nullptr) {
            return Observed::kTableFull;
        }
        learn(*entry, observation, now);
        return Observed::kCreated;
    }
    switch (entry->state) {
        case NeighborState::kPermanent:
            return Observed::kUnchanged;
        case NeighborState::kIncomplete:
        case NeighborState::kFailed:
            return learn(*entry, observation, now);
        default:
            return revise(*entry, observation, now);
    }
}

// RFC 4861 7.2.5, entry INCOMPLETE: the override flag does not matter.
Observed NeighborTable::learn(Entry& entry, const Observation& observation, Time now) {
    entry.is_router = observation.is_router.value_or(entry.is_router);
    if (!observation.mac) {
        return Observed::kUnchanged;
    }
    entry.mac = observation.mac;
    if (observation.solicited) {
        become_reachable(entry, now);
        actions_.reachable(entry.key, *entry.mac);
    } else {
        become_stale(entry, now);
        actions_.reachable(entry.key, *entry.mac);
        actions_.report_use(entry.key, true);
    }
    return Observed::kUpdated;
}

// RFC 4861 7.2.5, entry in any other state; 7.2.3 for solicitations, whose senders override.
Observed NeighborTable::revise(Entry& entry, const Observation& observation, Time now) {
    const bool was_stale = entry.state == NeighborState::kStale;
    const bool other_mac = observation.mac && observation.mac != entry.mac;
    if (other_mac && !observation.override) {
        // Somebody disagrees: trust the known address no longer, but keep it until asked.
        if (entry.state != NeighborState::kReachable) {
            return Observed::kUnchanged;
        }
        become_stale(entry, now);
        actions_.report_use(entry.key, true);
        return Observed::kUpdated;
    }
    entry.is_router = observation.is_router.value_or(entry.is_router);
    if (!observation.solicited && !other_mac) {
        return Observed::kUnchanged;
    }
    if (observation.solicited) {
        become_reachable(entry, now);
    } else {
        become_stale(entry, now);
    }
    if (other_mac) {
        entry.mac = observation.mac;
        actions_.reachable(entry.key, *entry.mac);
    }
    const bool is_stale = entry.state == NeighborState::kStale;
    if (is_stale != was_stale) {
        actions_.report_use(entry.key, is_stale);
    }
    return Observed::kUpdated;
}

// --- what the configuration says ---

void NeighborTable::pin(const NeighborKey& key) {
    ++pins_[key];
    if (Entry* entry = lookup(key); entry != nullptr) {
        entry->pinned = true;
        arm_idle(*entry);
    }
}

void NeighborTable::unpin(const NeighborKey& key) {
    const auto pin = pins_.find(key);
    SLUICE_CHECK(pin != pins_.end());
    if (--pin->second > 0) {
        return;
    }
    pins_.erase(pin);
    if (Entry* entry = lookup(key); entry != nullptr) {
        entry->pinned = false;
        arm_idle(*entry);
    }
}

Result<void> NeighborTable::add_permanent(const NeighborKey& key,
                                          const net::MacAddr& mac,
                                          Time now) {
    if (!is_station(mac)) {
        return fail(ErrorCode::kInvalid, "{} is no address of a station", mac.to_string());
    }
    Entry* entry = lookup(key);
    if (entry == nullptr) {
        entry = create(key, NeighborState::kPermanent, now);
        if (entry == nullptr) {
            return fail(ErrorCode::kLimit,
                        "neighbor table full (limits.neighbors: {})",
                        settings_.max_entries);
        }
    }
    const bool was_stale = entry->state == NeighborState::kStale;
    disarm(*entry);
    set_state(*entry, NeighborState::kPermanent, now);
    entry->mac = mac;
    actions_.reachable(key, mac);
    if (was_stale) {
        actions_.report_use(key, false);
    }
    return {};
}

bool NeighborTable::remove(const NeighborKey& key) {
    const auto it = entries_.find(key);
    if (it == entries_.end()) {
        return false;
    }
    erase(it);
    return true;
}

void NeighborTable::flush(NetdevId netdev, bool keep_permanent) {
    flush(netdev, keep_permanent, entries_.size());
}

bool NeighborTable::flush(NetdevId netdev, bool keep_permanent, std::size_t limit) {
    auto it = entries_.lower_bound(NeighborKey{.netdev = netdev, .address = {}});
    while (it != entries_.end() && it->first.netdev == netdev) {
        if (keep_permanent && it->second.state == NeighborState::kPermanent) {
            ++it;
        } else if (limit-- == 0) {
            return true;
        } else {
            it = erase(it);
        }
    }
    return false;
}

std::optional<net::IpAddr> NeighborTable::flush_learned(NetdevId netdev,
                                                        const net::IpAddr& from,
                                                        std::size_t limit,
                                                        std::size_t& removed) {
    auto it = entries_.lower_bound(NeighborKey{.netdev = netdev, .address = from});
    while (it != entries_.end() && it->first.netdev == netdev) {
        if (limit-- == 0) {
            return it->first.address;
        }
        if (it->second.state == NeighborState::kPermanent) {
            ++it;
        } else {
            it = erase(it);
            ++removed;
        }
    }
    return std::nullopt;
}

bool NeighborTable::has_any(NetdevId netdev) const noexcept {
    const auto it = entries_.lower_bound(NeighborKey{.netdev = netdev, .address = {}});
    return it != entries_.end() && it->first.netdev == netdev;
}

// --- time ---

std::size_t NeighborTable::tick(Time now) {
    std::size_t ran = 0;
    for (; ran < settings_.timers_per_tick; ++ran) {
        if (!timers_.empty() && timers_.begin()->first <= now) {
            Entry& entry = *timers_.begin()->second;
            disarm(entry);
            expired(entry, now);
        } else if (!idle_.empty() && idle_.begin()->first <= now) {
            erase(entries_.find(idle_.begin()->second->key));
        } else {
            break;
        }
    }
    return ran;
}

std::optional<Time> NeighborTable::next_deadline() const noexcept {
    std::optional<Time> next;
    for (const Queue* queue : {&timers_, &idle_}) {
        if (!queue->empty()) {
            next = std::min(next.value_or(Time::max()), queue->begin()->first);
        }
    }
    return next;
}

void NeighborTable::expired(Entry& entry, Time now) {
    switch (entry.state) {
        case NeighborState::kReachable:
            become_stale(entry, now);
            actions_.report_use(entry.key, true);
            break;
        case NeighborState::kDelay:
            set_state(entry, NeighborState::kProbe, now);
            solicit(entry, now);
            break;
        case NeighborState::kIncomplete:
        case NeighborState::kProbe:
            retransmit(entry, now);
            break;
        default:
            SLUICE_CHECK(false);  // no other state is in timers_
    }
}

void NeighborTable::retransmit(Entry& entry, Time now) {
    const unsigned unicasts =
        entry.state == NeighborState::kProbe ? settings_.max_unicast_solicit : 0;
    if (entry.solicits < unicasts + settings_.max_multicast_solicit) {
        solicit(entry, now);
        return;
    }
    entry.mac.reset();
    set_state(entry, NeighborState::kFailed, now);
    arm_idle(entry);
    actions_.failed(entry.key);
}

// Every way here but a new entry's comes from a timer or from FAILED, so at least retrans_time
// after the one before: RFC 1122 2.3.2.1. An address that moved silently answers no unicast probe,
// hence the multicast ones after them.
void NeighborTable::solicit(Entry& entry, Time now) {
    const bool unicast =
        entry.state == NeighborState::kProbe && entry.solicits < settings_.max_unicast_solicit;
    ++entry.solicits;
    arm(entry, timers_, now + settings_.retrans_time);
    actions_.solicit(entry.key, unicast ? entry.mac : std::nullopt);
}

// --- entries ---

NeighborTable::Entry* NeighborTable::lookup(const NeighborKey& key) noexcept {
    const auto it = entries_.find(key);
    return it == entries_.end() ? nullptr : &it->second;
}

const Neighbor* NeighborTable::find(const NeighborKey& key) const noexcept {
    const auto it = entries_.find(key);
    return it == entries_.end() ? nullptr : &it->second;
}

NeighborTable::Entry* NeighborTable::create(const NeighborKey& key, NeighborState state, Time now) {
    if (entries_.size() >= settings_.max_entries) {
        if (idle_.empty()) {
            return nullptr;
        }
        erase(entries_.find(idle_.begin()->second->key));
    }
    Entry& entry = entries_[key];
    entry.key = key;
    entry.state = state;
    entry.since = now;
    entry.pinned = pins_.contains(key);
    ++counts_[std::to_underlying(state)];
    return &entry;
}

NeighborTable::Entries::iterator NeighborTable::erase(Entries::iterator it) {
    Entry& entry = it->second;
    disarm(entry);
    --counts_[std::to_underlying(entry.state)];
    const NeighborKey key = entry.key;
    const NeighborState last = entry.state;
    it = entries_.erase(it);
    actions_.removed(key, last);
    return it;
}

void NeighborTable::set_state(Entry& entry, NeighborState state, Time now) {
    --counts_[std::to_underlying(entry.state)];
    ++counts_[std::to_underlying(state)];
    entry.state = state;
    entry.since = now;
    entry.solicits = 0;
}

void NeighborTable::become_reachable(Entry& entry, Time now) {
    set_state(entry, NeighborState::kReachable, now);
    // RFC 4861 6.3.2: random, lest neighbours that began together be probed together for ever.
    std::uniform_real_distribution<double> factor(0.5, 1.5);
    arm(entry,
        timers_,
        now + std::chrono::duration_cast<Time>(settings_.reachable_time * factor(random_)));
}

void NeighborTable::become_stale(Entry& entry, Time now) {
    set_state(entry, NeighborState::kStale, now);
    arm_idle(entry);
}

void NeighborTable::arm(Entry& entry, Queue& queue, Time at) {
    disarm(entry);
    entry.timer = queue.emplace(at, &entry);
    entry.queue = &queue;
}

void NeighborTable::disarm(Entry& entry) noexcept {
    if (entry.queue != nullptr) {
        entry.queue->erase(entry.timer);
        entry.queue = nullptr;
    }
}

void NeighborTable::arm_idle(Entry& entry) {
    const bool stale = entry.state == NeighborState::kStale;
    if (!stale && entry.state != NeighborState::kFailed) {
        return;
    }
    if (entry.pinned) {
        disarm(entry);
        return;
    }
    arm(entry, idle_, entry.since + (stale ? settings_.gc_stale_time : settings_.failed_hold));
}

}  // namespace sluice::control
