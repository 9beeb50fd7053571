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

/// May packet `p`, on the straight way, leave by `dst` with no more than a new TTL, a header and a
/// count?
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

/// One packet whatever it is. `route` is its way if its dst turned out not to be valid any more:
/// once more, from the tables.
template <class Header, class Addr>
void forward_one(Context& c,
                 Batch<Addr>& batch,
                 std::size_t i,
                 fib::DstCache<Addr>& cache,
                 stats::CacheCounters& counters,
                 Outcome (&act)(Context&, Packet&, const fib::Dst&) noexcept,
                 void (&route)(Context&, Packet&) noexcept) noexcept {
    batch.complete();
    Packet& p = batch.packets[i];
    const fib::Dst& dst = c.shared.dsts[batch.dsts[i]];
    if (p.is(Packet::kStraight) && leads_straight(dst, p)) {
        lower_ttl(*reinterpret_cast<Header*>(p.l3));  // NOLINT: classify checked the length
        if (dst.counter != 0) {
            stats::bump(c.stats.next_hop(dst.counter));
        }
        transmit(c, p, dst, p.length);
        return;
    }
    const Outcome outcome = act(c, p, dst);
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

/// A uniform batch: whoever's dst asks for nothing but a header gets it here; `other(i)` is the way
/// of packet i else.
template <std::uint8_t kL2, class Header, class Addr, class Other>
void forward_uniform(Context& c, const Batch<Addr>& batch, Other&& other) noexcept {
    constexpr std::size_t kPrefetchAhead = 8;
    const fib::Dst* const dsts = c.shared.dsts.data();
    const fib::DstIndex* const indices = batch.dsts.data();
    const std::uint32_t* const lengths = batch.lengths.data();
    const Packet* const packets = batch.packets.data();
    const std::size_t count = batch.count;
    const NetdevId turn_back = batch.model.turn_back;
    Transmitter::Appender straight(c.transmit, batch.model.book, sizeof(Addr) == 4 ? 1 : 2);
    for (std::size_t i = 0; i < count; ++i) {
        rte_prefetch0(&dsts[indices[i + kPrefetchAhead]]);  // the array has room behind
        const fib::Dst& dst = dsts[indices[i]];
        const bool plain = dst.plain(kL2) && lengths[i] <= dst.mtu;
        if (!plain || !straight.is_open(dst)) [[unlikely]] {
            if (!plain || dst.out == turn_back) {
                straight.close();
                other(i);
                continue;
            }
            straight.open(dst);
        }
        std::uint8_t* const l3 = packets[i].l3;
        lower_ttl(*reinterpret_cast<Header*>(l3));  // NOLINT: classify checked the length
        if (dst.counter != 0) {
            stats::bump(c.stats.next_hop(dst.counter));
        }
        dst.write_rewrite<kL2>(l3);
        straight.append(dst, packets[i].m);
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
    const auto one = [&](std::size_t i) {
        forward_one<Header>(c, batch, i, cache, counters, act, route);
    };
    if (!batch.uniform) [[unlikely]] {
        for (std::size_t i = 0; i < batch.count; ++i) {
            rte_prefetch0(&c.shared.dsts[batch.dsts[i]]);
        }
        for (std::size_t i = 0; i < batch.count; ++i) {
            one(i);
        }
    } else if (batch.model.l2_bytes == fib::Dst::kUntagged) {
        forward_uniform<fib::Dst::kUntagged, Header>(c, batch, one);
    } else {
        forward_uniform<fib::Dst::kTagged, Header>(c, batch, one);
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
