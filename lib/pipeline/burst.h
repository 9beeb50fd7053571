// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include <rte_mbuf.h>

#include "fib/netdev_view.h"
#include "pipeline/context.h"
#include "pipeline/stage_timer.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

/// Room for the packets of one burst between the stages; too big for a stack that must stay warm.
struct BurstStorage {
    StraightBurst straight;
    Batch4 ip4;
    Batch6 ip6;
};

/// The whole way of one RX burst, from classify to transmit. `port`: the netdev of the port that it
/// came from. At most kMaxBatch packets.
void process_burst(Context& c,
                   BurstStorage& storage,
                   const fib::NetdevView& port,
                   std::span<rte_mbuf* const> burst,
                   StageTimer& timer) noexcept;

}  // namespace sluice::pipeline
