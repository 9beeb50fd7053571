// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/id.h"
#include "base/index_pool.h"
#include "base/pages.h"
#include "base/reclaimer.h"
#include "base/result.h"
#include "fib/lpm.h"
#include "net/address.h"

namespace sluice::fib {

/// Index into the dst pool; what an LPM table stores as its value.
using DstIndex = std::uint32_t;
// kNoRoute (0, fib/lpm.h) is what a lookup without a match yields. It is a real dst of type
// kNoRoute, so "no route" is one more type to act on and not a special case.

/// What a table may hold besides the index of a dst: a multipath group (fib/group.h), or "look on
/// in the table of this VRF", with the master's netdev id in the low bits.
inline constexpr std::uint32_t kGroupBit = 1U << 23U;
inline constexpr std::uint32_t kTableBit = 1U << 22U;
inline constexpr std::uint32_t kSpecialBits = kGroupBit | kTableBit;
inline constexpr std::size_t kMaxDsts = kTableBit;
/// So many tables send a packet on; one more makes it a loop.
inline constexpr unsigned kMaxTableSteps = 8;

enum class DstType : std::uint8_t {
    kNone,       // no route
    kUnicast,    // one neighbour: a gateway, or a host of a connected prefix
    kConnected,  // a prefix on a link: the neighbour is the packet's destination
    kLocal,
    kBroadcast,
    kUnreachable,
    kProhibit,
    kBlackhole,
    // What a worker's decision may come to besides a route.
    kSourceInvalid,
    kRouteLoop,
    kGroupEmpty,
};

/// Dsts that are always there, for what is no route's: of the types that they are named after.
inline constexpr DstIndex kSourceInvalidDst = 1;
inline constexpr DstIndex kRouteLoopDst = 2;
inline constexpr DstIndex kGroupEmptyDst = 3;
inline constexpr DstIndex kFirstDst = 4;

/// The result of a route lookup: one cache line. Constant while published, except the atomic words.
struct alignas(64) Dst {
    // What a packet needs to be judged.
    DstType type;
    std::uint8_t rewrite_bytes;  // 14, or 18 with a VLAN tag
    NetdevId out;
    std::uint16_t port;  // ethdev to transmit on
    std::uint16_t mtu;   // of the path, bytes of IP packet

    // What is true of the neighbour now; kResolved alone is the fast path.
    static constexpr std::uint32_t kResolved = 1;  // the rewrite holds the neighbour's MAC
    static constexpr std::uint32_t kReportUse =
        2;  // tell the control thread of the next use (STALE)
    /// Re-pointed to the blackhole netdev (U-04): whoever still holds it drops under netdev_gone.
    static constexpr std::uint32_t kGone = 4;
    static constexpr std::uint32_t kExpires = 8;  // expiry_s counts
    std::atomic<std::uint32_t> state;
    std::uint32_t counter;  // of a next-hop object: where each worker counts its packets; 0 nowhere

    std::uint32_t expiry_s;  // worker clock: not valid from this second on
    std::uint32_t base;      // of a learned dst: the one it takes the place of, and of no other

    /// Ethernet header ready to store: destination MAC, source MAC, [tag,] EtherType. The first
    /// 8 bytes are one aligned word, so that a neighbour's MAC changes in one store.
    alignas(8) std::array<std::uint8_t, 18> rewrite;
    std::uint16_t gateway_is_v6;
    NetdevId idev;  // netdev whose IPv6 settings it uses
    NetnsId netns;

    /// Worker threads: may a packet still be sent by it, whose state was just read? (C-11)
    bool valid(std::uint32_t read_state, std::uint32_t now_s) const noexcept {
        return (read_state & kGone) == 0 && ((read_state & kExpires) == 0 || now_s < expiry_s);
    }

    /// Worker threads: by it a packet may leave with nothing but a new header of `header_bytes`.
    bool plain(std::uint8_t header_bytes) const noexcept {
        std::uint16_t head = 0;  // one word, as nearly every packet asks
        std::memcpy(&head, &type, sizeof head);
        return head == (static_cast<std::uint16_t>(DstType::kUnicast) | header_bytes << 8U) &&
               state.load(std::memory_order_acquire) == kResolved;
    }

    /// Of a unicast dst: the neighbour's address, network order, IPv4 in the first 4 bytes.
    std::array<std::uint8_t, 16> gateway;
    net::Ipv4Addr gateway4() const noexcept {
        return {{gateway[0], gateway[1], gateway[2], gateway[3]}};
    }
    net::Ipv6Addr gateway6() const noexcept { return {gateway}; }
    void set_gateway(const net::IpAddr& address) noexcept;

    /// Worker threads. Stores the header in front of `l3`, kBytes bytes, which rewrite_bytes is.
    /// The first word is read atomically; the rest does not change while the dst is published.
    template <std::uint8_t kBytes>
    void write_rewrite(std::uint8_t* l3) const noexcept {
        const std::uint64_t word =
            std::atomic_ref<std::uint64_t>(
                const_cast<std::uint64_t&>(*reinterpret_cast<const std::uint64_t*>(
                    rewrite.data())))  // NOLINT: aligned by Dst
                .load(std::memory_order_relaxed);
        std::memcpy(l3 - kBytes, &word, 8);
        // With two bytes of our own MAC once more.
        std::memcpy(l3 - kBytes + 6, rewrite.data() + 6, kBytes - 6);
    }
    void write_rewrite(std::uint8_t* l3) const noexcept {
        rewrite_bytes == kTagged ? write_rewrite<kTagged>(l3) : write_rewrite<kUntagged>(l3);
    }
    static constexpr std::uint8_t kUntagged = 14, kTagged = 18;
};
static_assert(sizeof(Dst) == 64);
static_assert(offsetof(Dst, rewrite) % 8 == 0);
static_assert(offsetof(Dst, type) == 0 && offsetof(Dst, rewrite_bytes) == 1);
static_assert(std::endian::native == std::endian::little);

/// All dsts of the process: slots that never move. Allocation and writing: control thread.
class DstPool {
public:
    /// At most kMaxDsts.
    DstPool(std::size_t capacity, Reclaimer& reclaimer);

    /// Worker threads: any index that a table or map gave.
    const Dst& operator[](DstIndex index) const noexcept { return slots_[index]; }
    const Dst* data() const noexcept { return &slots_[0]; }

    /// A slot of type kNone to fill before publishing its index, for a dst that leads out of
    /// `owner`. kLimit when all are in use.
    Result<DstIndex> allocate(NetdevId owner = kBlackholeNetdev);
    Dst& writable(DstIndex index) noexcept { return slots_[index]; }
    /// The index is no longer published anywhere; the slot is reused after a grace period.
    void release(DstIndex index);

    std::size_t in_use() const noexcept { return kFirstDst + indices_.in_use(); }
    std::size_t capacity() const noexcept { return slots_.size(); }
    /// Allocated for that netdev and not reclaimed yet: while there are any its id means nothing
    /// else.
    std::size_t leading_out_of(NetdevId owner) const noexcept { return owned_[owner.value]; }

private:
    PageArray<Dst> slots_;
    std::vector<NetdevId> owners_;  // by slot; workers never read them
    // What the control thread writes, apart from the pointer that workers read for each packet.
    alignas(64) std::array<std::uint32_t, kMaxNetdevs> owned_{};
    IndexPool indices_;
    Reclaimer& reclaimer_;
};

/// Control thread. Stores `mac` as the destination of `dst`'s rewrite, then marks it resolved:
/// a worker that sees kResolved sees the MAC. Leaves kReportUse as it is.
void resolve(Dst& dst, const net::MacAddr& mac) noexcept;
/// Clears all but kGone and kExpires.
void unresolve(Dst& dst) noexcept;
/// Re-points a published dst to the blackhole netdev: one store that every worker's next look sees.
/// For good; the netdev that it led to may go once workers have passed a quiescent state.
void repoint_to_blackhole(Dst& dst) noexcept;
void set_report_use(Dst& dst, bool on) noexcept;

}  // namespace sluice::fib
