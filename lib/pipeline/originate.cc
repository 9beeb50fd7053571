// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>

#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "fib/dst.h"
#include "fib/neighbor_map.h"
#include "fib/netdev_view.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

namespace {

// What we send is received on `lo`, so that its book balances as every other netdev's.
Packet own_packet(Context& c,
                  rte_mbuf* m,
                  const fib::NetdevView& in,
                  std::uint8_t family) noexcept {
    stats::NetdevCounters& lo = c.stats.netdev(in.loopback);
    stats::bump(lo.rx_packets);
    stats::bump(lo.rx_bytes, m->pkt_len);
    return {.m = m,
            .in = &in,
            .l3 = rte_pktmbuf_mtod(m, std::uint8_t*),
            .book = in.loopback,
            .flags = static_cast<std::uint8_t>(Packet::kOriginated | family)};
}

// Looked up a moment ago: what is not valid now has just been taken away.
template <class Act>
void act_or_drop(Context& c, Packet& p, Act act, fib::DstIndex index) noexcept {
    if (act(c, p, c.shared.dsts[index]) == Outcome::kInvalid) {
        c.drop(p, DropReason::kNetdevGone);
    }
}

// A link-local destination means the netdev, no table: its host dst, or the wait for one.
void to_link_local(Context& c, Packet& p) noexcept {
    const auto key = fib::NeighborKeyWords::of(p.in->id, p.ip6().destination);
    const fib::DstIndex host = c.shared.neighbors.find(key);
    if (host == fib::kNoRoute) {
        hold(c, p, key);
    } else {
        act_or_drop(c, p, ip6_act, host);
    }
}

}  // namespace

void ip4_route(Context& c, Packet& p) noexcept {
    act_or_drop(c, p, ip4_act, ip4_decide_one(c, p));
}

void ip6_route(Context& c, Packet& p) noexcept {
    if (p.ip6().destination.is_link_local()) {
        to_link_local(c, p);
    } else {
        act_or_drop(c, p, ip6_act, ip6_decide_one(c, p));
    }
}

void ip4_originate(Context& c, rte_mbuf* m, const fib::NetdevView& in) noexcept {
    Packet p = own_packet(c, m, in, 0);
    ip4_route(c, p);
}

void ip6_originate(Context& c, rte_mbuf* m, const fib::NetdevView& in) noexcept {
    Packet p = own_packet(c, m, in, Packet::kIpv6);
    ip6_route(c, p);
}

}  // namespace sluice::pipeline
