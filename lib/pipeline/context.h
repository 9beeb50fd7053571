// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/drop_reason.h"
#include "base/id.h"
#include "dpdk/ring.h"
#include "fib/shared.h"
#include "net/wire.h"
#include "pipeline/caches.h"
#include "pipeline/hold.h"
#include "pipeline/messages.h"
#include "pipeline/rate_limit.h"
#include "pipeline/redirect_limit.h"
#include "pipeline/transmit.h"
#include "stats/counters.h"

namespace sluice::pipeline {

inline constexpr std::size_t kMaxBatch = 256;
/// Room behind the last packet for whoever works in vectors.
inline constexpr std::size_t kBatchRoom = kMaxBatch + 16;

struct StraightImpl;
const StraightImpl& best_straight() noexcept;  // straight.h

/// One packet on its way through the stages, 32 bytes. Its bytes stay where the driver put them.
struct Packet {
    rte_mbuf* m = nullptr;
    const fib::NetdevView* in = nullptr;  // ingress; of an originated packet the one it belongs to
    std::uint8_t* l3 = nullptr;           // IP header, in the first segment
    NetdevId book{};                      // whose books it is on: in->id, or `lo` when originated
    std::uint8_t l2_bytes = 0;            // from the frame's start to l3
    std::uint8_t flags = 0;
    // Of one on the straight way only:
    std::uint16_t length = 0;  // of the IP packet, without padding
    NetdevId
        turn_back{};  // out of there it would be a redirect's business; kBlackholeNetdev: nowhere

    static constexpr std::uint8_t kLinkGroup = 1;     // came in a broadcast or multicast frame
    static constexpr std::uint8_t kOriginated = 2;    // ours: no TTL, no errors about it
    static constexpr std::uint8_t kChecksumGood = 4;  // the device verified the IPv4 header
    static constexpr std::uint8_t kIpv6 = 8;
    static constexpr std::uint8_t kIpBroadcast = 16;  // to a directed broadcast address
    static constexpr std::uint8_t kStraight = 32;     // nothing is special about it (straight.h)

    bool is(std::uint8_t flag) const noexcept { return (flags & flag) != 0; }
    unsigned family() const noexcept { return is(kIpv6) ? 2 : 1; }
    std::size_t l3_bytes() const noexcept { return m->pkt_len - l2_bytes; }  // padding included
    /// What of the packet is contiguous from l3 on.
    std::span<const std::uint8_t> l3_span() const noexcept {
        return {l3, static_cast<std::size_t>(m->data_len - l2_bytes)};
    }
    net::Ipv4Header& ip4() const noexcept {
        return *reinterpret_cast<net::Ipv4Header*>(l3);  // NOLINT: input stage checked the length
    }
    net::Ipv6Header& ip6() const noexcept {
        return *reinterpret_cast<net::Ipv6Header*>(l3);  // NOLINT: input stage checked the length
    }
};
static_assert(sizeof(Packet) == 32);

/// What the stages of one worker work on. Owned by the worker; nothing here is shared but what says
/// so.
struct Context {
    fib::Shared& shared;
    stats::Block& stats;
    rte_mempool* pool;
    Transmitter transmit;
    HoldTable holds;
    IcmpRateLimiter icmp_limit;
    EventQueue& events;      // to control
    dpdk::MbufRing& punted;  // to control
    Caches caches;
    RedirectLimiter redirects;
    std::uint64_t now_ns = 0;
    std::uint16_t ipv4_id = 0;  // of what we originate, never repeats soon (RFC 6864 4)
    /// Of what the control thread was told about use lately, so as not to repeat it per packet.
    std::array<fib::NeighborKeyWords, 16> reported{};
    unsigned reported_next = 0;
    const StraightImpl* straight = &best_straight();  // how frames are looked at

    std::uint32_t now_s() const noexcept {
        return static_cast<std::uint32_t>(now_ns / 1'000'000'000U);
    }

    /// By the rate limit of ICMP messages about what comes in by `ingress`.
    bool icmp_allowed(NetdevId ingress) noexcept {
        return icmp_limit.allow(ingress,
                                now_ns,
                                shared.icmp_error_rate.load(std::memory_order_relaxed),
                                shared.icmp_error_burst.load(std::memory_order_relaxed));
    }

    /// Ends a packet under `reason`.
    void drop(const Packet& p, DropReason reason) noexcept {
        stats.drop(p.book, reason, p.family());
        rte_pktmbuf_free(p.m);
    }
    void deliver(const Packet& p) noexcept {
        stats::bump(stats.netdev(p.book).delivered);
        rte_pktmbuf_free(p.m);
    }
};

}  // namespace sluice::pipeline
