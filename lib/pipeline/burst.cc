// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/burst.h"

#include <span>

#include <rte_mbuf.h>

#include "fib/netdev_view.h"
#include "pipeline/context.h"
#include "pipeline/stage_timer.h"
#include "pipeline/stages.h"
#include "stats/counters.h"

namespace sluice::pipeline {

void process_burst(Context& c,
                   BurstStorage& storage,
                   const fib::NetdevView& port,
                   std::span<rte_mbuf* const> burst,
                   StageTimer& timer) noexcept {
    Batch4& ip4 = storage.ip4;
    Batch6& ip6 = storage.ip6;
    classify(c, port, burst, ip4, ip6);
    timer.stage_done(stats::Stage::kClassify);
    if (ip4.count != 0) {
        ip4_input(c, ip4);
        timer.stage_done(stats::Stage::kInput);
        ip4_lookup(ip4);
        timer.stage_done(stats::Stage::kLookup);
        ip4_forward(c, ip4);
        timer.stage_done(stats::Stage::kForward);
    }
    if (ip6.count != 0) {
        ip6_input(c, ip6);
        timer.stage_done(stats::Stage::kInput);
        ip6_lookup(ip6);
        timer.stage_done(stats::Stage::kLookup);
        ip6_forward(c, ip6);
        timer.stage_done(stats::Stage::kForward);
    }
    // Before the next queue's packets displace these from the processor's caches.
    c.transmit.flush();
    timer.stage_done(stats::Stage::kTransmit);
}

}  // namespace sluice::pipeline
