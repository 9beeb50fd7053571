// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fib/dst.h"
#include "fib/group.h"
#include "fib/netdev_view.h"
#include "fib/policy.h"
#include "net/address.h"
#include "net/wire.h"
#include "pipeline/flow_hash.h"
#include "pipeline/stages.h"
#include "stats/counters.h"

/// What a decision consists of, of a batch (decide.cc) and of one packet (decide_one.cc).
namespace sluice::pipeline {

using fib::DstIndex;
using fib::DstType;
using fib::NetdevView;

struct DecideIpv4 {
    using Addr = net::Ipv4Addr;
    static constexpr std::size_t kFamily = 0;
    static const fib::Ipv4Lpm& table(const NetdevView& in) noexcept { return *in.fib4; }
    static const fib::Ipv4Policy* policy(const NetdevView& in) noexcept { return in.policy4; }
    static const auto& generations(const NetdevView& in) noexcept { return *in.generations4; }
    static auto& destinations(Context& c) noexcept { return c.caches.destinations4; }
    static auto& sources(Context& c) noexcept { return c.caches.sources4; }
    static auto& memo(Context& c) noexcept { return c.caches.memo4; }
    static std::uint8_t dscp(const Packet& p) noexcept {
        return static_cast<std::uint8_t>(p.ip4().tos >> 2U);
    }
    static const Addr& source(const Packet& p) noexcept { return p.ip4().source; }
    static const Addr& destination(const Packet& p) noexcept { return p.ip4().destination; }
    static void transports(std::span<const Packet> packets,
                           const std::uint32_t* lengths,
                           fib::Transport* to) noexcept {
        transports_of4(packets, lengths, to);
    }
    static void hashes(const Context& c,
                       const NetdevView& in,
                       std::span<const Packet> packets,
                       const std::uint32_t* lengths,
                       std::uint32_t* to) noexcept {
        flow_hashes4(c.shared.flow_seed, in.hash4, packets, lengths, to);
    }
    /// Sources that no route leads to, by their scope.
    static bool beyond_routes(const Addr& /*source*/) noexcept { return false; }
};

struct DecideIpv6 {
    using Addr = net::Ipv6Addr;
    static constexpr std::size_t kFamily = 1;
    static const fib::Ipv6Lpm& table(const NetdevView& in) noexcept { return *in.fib6; }
    static const fib::Ipv6Policy* policy(const NetdevView& in) noexcept { return in.policy6; }
    static const auto& generations(const NetdevView& in) noexcept { return *in.generations6; }
    static auto& destinations(Context& c) noexcept { return c.caches.destinations6; }
    static auto& sources(Context& c) noexcept { return c.caches.sources6; }
    static auto& memo(Context& c) noexcept { return c.caches.memo6; }
    static std::uint8_t dscp(const Packet& p) noexcept {
        return static_cast<std::uint8_t>(p.ip6().traffic_class() >> 2U);
    }
    static const Addr& source(const Packet& p) noexcept { return p.ip6().source; }
    static const Addr& destination(const Packet& p) noexcept { return p.ip6().destination; }
    static void transports(std::span<const Packet> packets,
                           const std::uint32_t* lengths,
                           fib::Transport* to) noexcept {
        transports_of6(packets, lengths, to);
    }
    static void hashes(const Context& c,
                       const NetdevView& in,
                       std::span<const Packet> packets,
                       const std::uint32_t* lengths,
                       std::uint32_t* to) noexcept {
        flow_hashes6(c.shared.flow_seed, in.hash6, packets, lengths, to);
    }
    static bool beyond_routes(const Addr& source) noexcept { return source.is_link_local(); }
};

template <class F>
stats::CacheCounters& counters(Context& c) noexcept {
    return c.stats.worker().caches[F::kFamily];
}

/// Follows "look on in that VRF's table".
template <class F>
std::uint32_t follow_tables(const Context& c,
                            std::uint32_t value,
                            const typename F::Addr& address) noexcept {
    for (unsigned step = 0; (value & fib::kTableBit) != 0; ++step) {
        if (step == fib::kMaxTableSteps) {
            return fib::kRouteLoopDst;
        }
        const NetdevId vrf{static_cast<std::uint16_t>(value & ~fib::kSpecialBits)};
        const NetdevView* view = c.shared.netdev(vrf);
        value = view == nullptr ? fib::kNoRoute : F::table(*view).lookup_one(address);
    }
    return value;
}

/// What was learned for one destination takes the place of the dst that it was learned behind, but
/// of no other that rules or a group lead to (checks.md 90).
template <class F>
DstIndex with_exception(const Context& c,
                        const NetdevView& in,
                        DstIndex index,
                        const typename F::Addr& address) noexcept {
    const DstIndex learned =
        c.shared.exceptions.find(fib::NeighborKeyWords::of(in.domain, address));
    if (learned == fib::kNoRoute) {
        return index;
    }
    const fib::Dst& dst = c.shared.dsts[learned];
    const std::uint32_t state = dst.state.load(std::memory_order_acquire);
    return dst.base == index && dst.valid(state, c.now_s()) ? learned : index;
}

inline bool any_exceptions(const Context& c) noexcept {
    return c.shared.exception_count.load(std::memory_order_relaxed) != 0;
}

/// The group's member for a packet of this flow hash. It is another one for every flow, so what was
/// learned behind it is looked for here, not in the cache.
template <class F>
DstIndex member_of(const Context& c,
                   const NetdevView& in,
                   std::uint32_t value,
                   std::uint32_t flow_hash,
                   std::uint32_t now_s,
                   const typename F::Addr& destination) noexcept {
    const fib::Group* group = c.shared.groups[value];
    const DstIndex member = group == nullptr ? fib::kNoRoute : group->pick(flow_hash, now_s);
    if (member == fib::kNoRoute) [[unlikely]] {
        return fib::kGroupEmptyDst;
    }
    return any_exceptions(c) ? with_exception<F>(c, in, member, destination) : member;
}

/// What is for the router itself is found before any rule: a default route in a rule's table does
/// not take it away.
template <class Addr>
bool is_own(const NetdevView& in, const Addr& destination) noexcept {
    return in.local->takes(destination);
}

}  // namespace sluice::pipeline
