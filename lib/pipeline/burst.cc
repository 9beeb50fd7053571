// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/burst.h"

#include <atomic>
#include <cstdint>
#include <span>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "fib/netdev_view.h"
#include "fib/shared.h"
#include "pipeline/context.h"
#include "pipeline/stage_timer.h"
#include "pipeline/stages.h"
#include "stats/counters.h"

namespace sluice::pipeline {

namespace {

/// From decide to forward of one family, and the meter of its cache around what the cache decides
/// about.
template <auto Decide, auto Forward, auto Remember, class Addr>
void process(Context& c, Batch<Addr>& batch, CacheMeter& meter, StageTimer& timer) noexcept {
    const fib::CacheMode mode = c.shared.cache_mode.load(std::memory_order_relaxed);
    const bool metered = mode == fib::CacheMode::kAuto;
    const bool use_cache = mode == fib::CacheMode::kOn || (metered && meter.use());
    const bool timed = metered && meter.timing();
    const std::uint64_t start = timed ? rte_rdtsc() : 0;
    const auto packets = static_cast<std::uint32_t>(batch.count);
    Decide(c, batch, use_cache);
    timer.stage_done(stats::Stage::kLookup);
    Forward(c, batch);
    if (batch.pending_count != 0) {
        Remember(c, batch);
    }
    timer.stage_done(stats::Stage::kForward);
    if (metered) {
        meter.done(packets, batch.misses, timed ? rte_rdtsc() - start : 0);
    }
}

}  // namespace

void process_burst(Context& c,
                   BurstStorage& storage,
                   const fib::NetdevView& port,
                   std::span<rte_mbuf* const> burst,
                   StageTimer& timer) noexcept {
    const std::uint32_t epoch = c.shared.cache_epoch.load(std::memory_order_acquire);
    if (epoch != c.caches.epoch) [[unlikely]] {
        c.caches.clear();
        c.caches.epoch = epoch;
    }
    Batch4& ip4 = storage.ip4;
    Batch6& ip6 = storage.ip6;
    classify(c, port, burst, storage.straight, ip4, ip6);
    timer.stage_done(stats::Stage::kInput);
    if (ip4.count != 0) {
        process<ip4_decide, ip4_forward, ip4_remember>(c, ip4, c.caches.meter4, timer);
    }
    if (ip6.count != 0) {
        process<ip6_decide, ip6_forward, ip6_remember>(c, ip6, c.caches.meter6, timer);
    }
    // Before the next queue's packets displace these from the processor's caches.
    c.transmit.flush();
    timer.stage_done(stats::Stage::kTransmit);
}

}  // namespace sluice::pipeline
