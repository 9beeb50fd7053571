// SPDX-License-Identifier: BSD-3-Clause
#include "control/next_hop_counters.h"

namespace sluice::control {

Result<std::uint32_t> NextHopCounters::allocate() {
    std::uint32_t counter = 0;
    if (!free_.empty()) {
        counter = free_.back();
        free_.pop_back();
    } else if (baselines_.size() < stats::kMaxNextHopCounters) {
        counter = static_cast<std::uint32_t>(baselines_.size());
        baselines_.push_back(0);
    } else {
        return fail(
            ErrorCode::kLimit, "all {} next hops are in use", stats::kMaxNextHopCounters - 1);
    }
    baselines_[counter] = sum_(counter);
    return counter;
}

void NextHopCounters::release(std::uint32_t counter) {
    ++waiting_;
    reclaimer_.defer([this, counter] {
        --waiting_;
        free_.push_back(counter);
    });
}

}  // namespace sluice::control
