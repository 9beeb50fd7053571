// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>

#include <rte_cycles.h>

#include "stats/counters.h"

namespace sluice::pipeline {

/// Books TSC cycles on stages for the bursts that are sampled; a branch per stage for the others.
class StageTimer {
public:
    StageTimer(stats::WorkerCounters& counters, bool sampled) noexcept
        : counters_(sampled ? &counters : nullptr), last_(sampled ? rte_rdtsc() : 0) {}

    void stage_done(stats::Stage stage) noexcept {
        if (counters_ == nullptr) {
            return;
        }
        const std::uint64_t now = rte_rdtsc();
        stats::bump(counters_->stage_cycles[std::to_underlying(stage)], now - last_);
        last_ = now;
    }
    void count(std::uint64_t packets) noexcept {
        if (counters_ != nullptr) {
            stats::bump(counters_->sampled_packets, packets);
        }
    }

private:
    stats::WorkerCounters* counters_;
    std::uint64_t last_;
};

}  // namespace sluice::pipeline
