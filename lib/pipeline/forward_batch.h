// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <rte_prefetch.h>

#include "fib/dst.h"
#include "fib/dst_cache.h"
#include "fib/neighbor_map.h"
#include "net/checksum.h"
#include "net/wire.h"
#include "pipeline/stages.h"
#include "stats/counters.h"

/// What forwarding is to both families.
namespace sluice::pipeline {

/// May a packet on the straight way leave by `dst` with nothing but a new TTL and header?
inline bool leads_straight(const fib::Dst& dst, const Packet& p) noexcept {
    return dst.type == fib::DstType::kUnicast &&
           dst.state.load(std::memory_order_acquire) == fib::Dst::kResolved &&
           p.length <= dst.mtu && dst.out != p.turn_back;
}

inline void lower_ttl(net::Ipv4Header& ip) noexcept {
    net::decrement_ttl(ip);
}
inline void lower_ttl(net::Ipv6Header& ip) noexcept {
    --ip.hop_limit;
}

/// The packets on the straight way at once, `act` on each other one's dst; `route` is the way of
/// one whose dst turned out not to be valid any more: once more, from the tables.
template <class Header, class Addr>
void forward_batch(Context& c,
                   Batch<Addr>& batch,
                   fib::DstCache<Addr>& cache,
                   stats::CacheCounters& counters,
                   Outcome (&act)(Context&, Packet&, const fib::Dst&) noexcept,
                   void (&route)(Context&, Packet&) noexcept) noexcept {
    constexpr std::size_t kPrefetchAhead = 8;
    const fib::Dst* const dsts = c.shared.dsts.data();
    Transmitter::Appender straight(c.transmit, sizeof(Addr) == 4 ? 1 : 2);
    for (std::size_t i = 0; i < kPrefetchAhead && i < batch.count; ++i) {
        rte_prefetch0(&dsts[batch.dsts[i]]);
    }
    for (std::size_t i = 0; i < batch.count; ++i) {
        rte_prefetch0(&dsts[batch.dsts[i + kPrefetchAhead]]);  // the array has room behind
        Packet& p = batch.packets[i];
        const fib::Dst& dst = dsts[batch.dsts[i]];
        if (p.is(Packet::kStraight) && leads_straight(dst, p)) [[likely]] {
            lower_ttl(*reinterpret_cast<Header*>(p.l3));  // NOLINT: classify checked the length
            if (dst.counter != 0) {
                stats::bump(c.stats.next_hop(dst.counter));
            }
            if (p.l2_bytes == dst.rewrite_bytes) [[likely]] {
                dst.write_rewrite(p.l3 - dst.rewrite_bytes);
                straight.append(dst.port, p.m, p.book, dst.out);
            } else {
                straight.close();
                transmit(c, p, dst, p.length);
            }
            continue;
        }
        straight.close();
        const Outcome outcome = act(c, p, dst);
        if (outcome == Outcome::kPassed) {
            continue;
        }
        if (outcome == Outcome::kInvalid) {
            if (batch.cached) {
                stats::bump(counters.stale);
                cache.erase(batch.destinations[i], batch.tails[i]);
            }
            route(c, p);
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
