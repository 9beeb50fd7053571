// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <rte_prefetch.h>

#include "fib/dst.h"
#include "fib/dst_cache.h"
#include "fib/neighbor_map.h"
#include "pipeline/stages.h"
#include "stats/counters.h"

/// What forwarding is to both families.
namespace sluice::pipeline {

/// `act` on each packet's dst; `route` is the way of one whose dst turned out not to be valid any
/// more: once more, from the tables.
template <class Addr>
void forward_batch(Context& c,
                   Batch<Addr>& batch,
                   fib::DstCache<Addr>& cache,
                   stats::CacheCounters& counters,
                   Outcome (&act)(Context&, Packet&, const fib::Dst&) noexcept,
                   void (&route)(Context&, Packet&) noexcept) noexcept {
    for (std::size_t i = 0; i < batch.count; ++i) {
        rte_prefetch0(&c.shared.dsts[batch.dsts[i]]);
    }
    for (std::size_t i = 0; i < batch.count; ++i) {
        const Outcome outcome = act(c, batch.packets[i], c.shared.dsts[batch.dsts[i]]);
        if (outcome == Outcome::kPassed) [[likely]] {
            continue;
        }
        if (outcome == Outcome::kInvalid) {
            if (batch.cached) {
                stats::bump(counters.stale);
                cache.erase(batch.destinations[i], batch.tails[i]);
            }
            route(c, batch.packets[i]);
        }
        batch.dsts[i] = fib::kNoRoute;
    }
}

/// To a host of a connected prefix: by its own dst, where it has one, which knows its netdev's MTU,
/// and by the MTU and counter of the prefix's route. `send(dst, mtu)` does it.
template <class Send>
Outcome to_connected(Context& c,
                     const fib::Dst& prefix,
                     const fib::NeighborKeyWords& host,
                     Send&& send) noexcept {
    const fib::DstIndex own = c.shared.neighbors.find(host);
    const fib::Dst& dst = own == fib::kNoRoute ? prefix : c.shared.dsts[own];
    const Outcome outcome = send(dst, std::min(dst.mtu, prefix.mtu));
    if (outcome == Outcome::kPassed && prefix.counter != 0 && &dst != &prefix) {
        stats::bump(c.stats.next_hop(prefix.counter));
    }
    return outcome;
}

}  // namespace sluice::pipeline
