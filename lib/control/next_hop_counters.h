// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/index_pool.h"
#include "base/reclaimer.h"
#include "base/result.h"
#include "stats/counters.h"

namespace sluice::control {

/// Hands out the places where workers count the packets of next-hop objects (Dst::counter). A place
/// is taken again only when no worker can count there for its last owner, and what it had counted
/// by then is taken off: a new owner starts from zero. Control thread.
class NextHopCounters {
public:
    /// Sums what every writer counted at a place.
    using Sum = std::function<std::uint64_t(std::uint32_t counter)>;

    NextHopCounters(Sum sum, Reclaimer& reclaimer) : sum_(std::move(sum)), reclaimer_(reclaimer) {}

    /// kLimit: all are in use.
    Result<std::uint32_t> allocate();
    /// No dst that is published has it any more.
    void release(std::uint32_t counter);
    std::uint64_t packets(std::uint32_t counter) const {
        return sum_(counter) - baselines_[counter];
    }
    std::size_t in_use() const noexcept { return places_.in_use() - waiting_; }

private:
    Sum sum_;
    Reclaimer& reclaimer_;
    std::vector<std::uint64_t> baselines_ = std::vector<std::uint64_t>(1);  // 0 is nobody's
    IndexPool places_{1, stats::kMaxNextHopCounters};
    std::size_t waiting_ = 0;  // for their grace period
};

}  // namespace sluice::control
