// SPDX-License-Identifier: BSD-3-Clause
#include "control/next_hop_counters.h"

namespace sluice::control {

Result<std::uint32_t> NextHopCounters::allocate() {
    const auto counter = places_.take();
    if (!counter) {
        return fail(
            ErrorCode::kLimit, "all {} next hops are in use", stats::kMaxNextHopCounters - 1);
    }
    if (*counter == baselines_.size()) {
        baselines_.emplace_back();
    }
    baselines_[*counter] = sum_(*counter);
    return *counter;
}

void NextHopCounters::release(std::uint32_t counter) {
    ++waiting_;
    reclaimer_.defer([this, counter] {
        --waiting_;
        places_.give(counter);
    });
}

}  // namespace sluice::control
