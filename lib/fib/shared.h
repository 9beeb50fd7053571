// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/id.h"
#include "base/reclaimer.h"
#include "fib/dst.h"
#include "fib/neighbor_map.h"
#include "fib/netdev_view.h"

namespace sluice::fib {

/// What the control thread publishes and workers read. Pointers are valid until the reader's next
/// quiescent state.
class Shared {
public:
    Shared(std::size_t dst_capacity,
           std::size_t neighbor_buckets,
           std::uint64_t secret,
           Reclaimer& reclaimer)
        : dsts(dst_capacity, reclaimer), neighbors(neighbor_buckets, secret, reclaimer) {}

    /// Null: no such netdev (any more).
    const NetdevView* netdev(NetdevId id) const noexcept {
        return netdevs_[id.value].load(std::memory_order_acquire);
    }
    /// Control thread. The old view is the caller's to defer.
    const NetdevView* publish(NetdevId id, const NetdevView* view) noexcept {
        return netdevs_[id.value].exchange(view, std::memory_order_acq_rel);
    }

    DstPool dsts;
    NeighborMap neighbors;

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
