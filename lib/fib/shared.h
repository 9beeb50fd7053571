// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/id.h"
#include "base/reclaimer.h"
#include "fib/dst.h"
#include "fib/group.h"
#include "fib/neighbor_map.h"
#include "fib/netdev_view.h"

namespace sluice::fib {

enum class CacheMode : std::uint8_t { kOff, kAuto, kOn };

inline constexpr std::size_t kMaxGroups = 65536;
inline constexpr std::size_t kExceptionBuckets = 4096;

/// What the control thread publishes and workers read. Pointers are valid until the reader's next
/// quiescent state.
class Shared {
public:
    Shared(std::size_t dst_capacity,
           std::size_t neighbor_buckets,
           std::uint64_t secret,
           Reclaimer& reclaimer)
        : dsts(dst_capacity, reclaimer),
          groups(kMaxGroups, reclaimer),
          neighbors(neighbor_buckets, secret, reclaimer),
          exceptions(kExceptionBuckets, secret, reclaimer) {}

    /// Null: no such netdev (any more).
    const NetdevView* netdev(NetdevId id) const noexcept {
        return netdevs_[id.value].load(std::memory_order_acquire);
    }
    /// Control thread. The old view is the caller's to defer.
    const NetdevView* publish(NetdevId id, const NetdevView* view) noexcept {
        return netdevs_[id.value].exchange(view, std::memory_order_acq_rel);
    }

    DstPool dsts;
    GroupPool groups;
    NeighborMap neighbors;

    /// By (routing domain, destination): a dst that takes the place of what the table says, with a
    /// path MTU or another gateway, until it expires.
    NeighborMap exceptions;
    /// How many there are; zero saves a worker the question.
    std::atomic<std::uint32_t> exception_count{0};

    std::atomic<CacheMode> cache_mode{CacheMode::kAuto};
    /// A worker that sees another number than last time empties its caches first.
    std::atomic<std::uint32_t> cache_epoch{0};
    /// A worker that sees another number than last time starts its longest round anew.
    std::atomic<std::uint32_t> longest_round_epoch{0};
    /// Of the flow hash; another one on every box, so that two in a row do not agree.
    std::uint64_t flow_seed = 0;

    /// ICMP errors per second and in a burst, per netdev and worker; the control thread divides the
    /// configured limit by the number of workers.
    std::atomic<std::uint32_t> icmp_error_rate{100};
    std::atomic<std::uint32_t> icmp_error_burst{50};
    /// The adaptive idle mode; false: poll.
    std::atomic<bool> idle_sleep{true};

private:
    std::array<std::atomic<const NetdevView*>, kMaxNetdevs> netdevs_{};
};

}  // namespace sluice::fib
