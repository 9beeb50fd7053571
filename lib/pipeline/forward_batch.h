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

/// May a packet on the straight way, of `length` bytes, leave by `dst` with nothing but a new TTL
/// and header? Of `model` only what packets of one netdev have in common is read.
inline bool leads_straight(const fib::Dst& dst,
                           const Packet& model,
                           std::uint32_t length) noexcept {
    return dst.type == fib::DstType::kUnicast &&
           dst.state.load(std::memory_order_acquire) == fib::Dst::kResolved && length <= dst.mtu &&
           dst.out != model.turn_back;
}

inline void lower_ttl(net::Ipv4Header& ip) noexcept {
    net::decrement_ttl(ip);
}
inline void lower_ttl(net::Ipv6Header& ip) noexcept {
    --ip.hop_limit;
}

/// `act` on the dst of packet i; `route` is its way if the dst turned out not to be valid any more:
/// once more, from the tables.
template <class Addr>
void forward_any(Context& c,
                 Batch<Addr>& batch,
                 std::size_t i,
                 fib::DstCache<Addr>& cache,
                 stats::CacheCounters& counters,
                 Outcome (&act)(Context&, Packet&, const fib::Dst&) noexcept,
                 void (&route)(Context&, Packet&) noexcept) noexcept {
    batch.complete();
    Packet& p = batch.packets[i];
    const Outcome outcome = act(c, p, c.shared.dsts[batch.dsts[i]]);
    if (outcome == Outcome::kPassed) {
        return;
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

/// The packets that may go straight do; `other(i)` is what becomes of packet i otherwise.
/// `kUniform`: what packets of one netdev have in common is read of the first one.
template <bool kUniform, class Header, class Addr, class Other>
void forward_straight(Context& c, Batch<Addr>& batch, Other&& other) noexcept {
    constexpr std::size_t kPrefetchAhead = 8;
    const fib::Dst* const dsts = c.shared.dsts.data();
    const fib::DstIndex* const indices = batch.dsts.data();
    const Packet* const packets = batch.packets.data();
    const std::size_t count = batch.count;
    Transmitter::Appender straight(c.transmit, sizeof(Addr) == 4 ? 1 : 2);
    const std::uint32_t* const lengths = batch.lengths.data();
    Packet model = batch.model;
    for (std::size_t i = 0; i < count; ++i) {
        rte_prefetch0(&dsts[indices[i + kPrefetchAhead]]);  // the array has room behind
        const Packet& p = packets[i];
        const fib::Dst& dst = dsts[indices[i]];
        if constexpr (!kUniform) {
            model = p;
        }
        const std::uint32_t length = kUniform ? lengths[i] : p.length;
        if (!leads_straight(dst, model, length) || (!kUniform && !model.is(Packet::kStraight)))
            [[unlikely]] {
            straight.close();
            other(i);
            continue;
        }
        lower_ttl(*reinterpret_cast<Header*>(p.l3));  // NOLINT: classify checked the length
        if (dst.counter != 0) {
            stats::bump(c.stats.next_hop(dst.counter));
        }
        if (dst.rewrite_bytes == model.l2_bytes) [[likely]] {
            dst.write_rewrite(p.l3);
            straight.append(dst, p.m, model.book);
        } else {
            straight.close();
            batch.complete();
            transmit(c, p, dst, length);
        }
    }
}

/// Acts on every packet's dst.
template <class Header, class Addr>
void forward_batch(Context& c,
                   Batch<Addr>& batch,
                   fib::DstCache<Addr>& cache,
                   stats::CacheCounters& counters,
                   Outcome (&act)(Context&, Packet&, const fib::Dst&) noexcept,
                   void (&route)(Context&, Packet&) noexcept) noexcept {
    const auto other = [&](std::size_t i) {
        forward_any(c, batch, i, cache, counters, act, route);
    };
    if (batch.uniform) [[likely]] {
        forward_straight<true, Header>(c, batch, other);
    } else {
        forward_straight<false, Header>(c, batch, other);
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
