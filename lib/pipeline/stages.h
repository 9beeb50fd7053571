// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <rte_mbuf.h>

#include "fib/shared.h"
#include "net/icmp.h"
#include "pipeline/context.h"
#include "pipeline/straight.h"

/// The stages, in a packet's order. Each takes what the one before left; all run on the worker's
/// thread, allocate nothing and log nothing.
namespace sluice::pipeline {

/// A decision that the cache did not have, until the packet has passed every check (C-30).
struct PendingInsert {
    std::uint16_t packet;
    fib::Stamp stamp;
    std::uint32_t value;
};

/// Packets of one family between classify and forward.
template <class Addr>
struct Batch {
    std::size_t count = 0;
    /// All are on the straight way and came in by one netdev: then `lengths` are theirs, and what
    /// they have in common is `model`'s.
    bool uniform = false;
    /// Of uniform ones only m and l3 are filled in yet.
    bool bare = false;
    Packet model;
    std::array<std::uint32_t, kBatchRoom> lengths;
    std::array<Packet, kMaxBatch> packets;
    std::array<Addr, kBatchRoom> destinations;
    std::array<fib::DstIndex, kBatchRoom> dsts;

    /// For whoever reads more of a packet than the straight way does.
    void complete() noexcept {
        if (!bare) {
            return;
        }
        bare = false;
        for (std::size_t i = 0; i < count; ++i) {
            Packet& p = packets[i];
            p.in = model.in;
            p.book = model.book;
            p.l2_bytes = model.l2_bytes;
            p.flags = model.flags;
            p.length = static_cast<std::uint16_t>(lengths[i]);
            p.turn_back = model.turn_back;
        }
    }

    // Of the decision (decide.cc).
    std::size_t pending_count = 0;
    bool cached = false;  // the caches were asked: `tails` are filled in
    std::uint32_t misses = 0;
    std::array<std::uint32_t, kBatchRoom> tails;
    std::array<fib::Stamp, kBatchRoom> stamps;
    std::array<PendingInsert, kMaxBatch> pending;
    std::array<Addr, kBatchRoom> sources;
    std::array<Addr, kBatchRoom> missed;
    std::array<std::uint8_t, kBatchRoom> dscps;
    std::array<std::uint32_t, kBatchRoom> classes;
    std::array<std::uint32_t, kBatchRoom> values;
    std::array<std::uint16_t, kBatchRoom> positions;
    std::array<fib::Transport, kBatchRoom> transports;
    std::array<std::uint32_t, kBatchRoom> source_tails;
    std::array<fib::Stamp, kBatchRoom> source_stamps;
    std::array<std::uint32_t, kBatchRoom> places;  // of the entries in the cache
    std::array<std::uint32_t, kBatchRoom> hashes;
};
using Batch4 = Batch<net::Ipv4Addr>;
using Batch6 = Batch<net::Ipv6Addr>;

/// Link layer (classify.cc): destination MAC, VLAN tag, EtherType; IP packets that pass input too
/// go to the batches with their destinations, ARP to the control thread. `port`: the netdev of the
/// port that the burst came from; one frame at least.
void classify(Context& c,
              const fib::NetdevView& port,
              std::span<rte_mbuf* const> burst,
              StraightBurst& straight,
              Batch4& ip4,
              Batch6& ip6) noexcept;

/// Header validation and martians of a packet that is not on the straight way (ip4_input.cc,
/// ip6_input.cc). What is for this router whatever the table says (multicast, limited broadcast,
/// link-local) is dealt with here. True: it goes on; false: it has ended.
bool ip4_input(Context& c, Packet& p) noexcept;
bool ip6_input(Context& c, Packet& p) noexcept;

/// Fills batch.dsts (decide.cc): rules, table, VRF, group, source validation; from the cache where
/// `use_cache` and it has them. A packet that must not go on gets one of the dsts for that.
void ip4_decide(Context& c, Batch4& batch, bool use_cache) noexcept;
void ip6_decide(Context& c, Batch6& batch, bool use_cache) noexcept;
/// After forward: puts what passed into the cache, an insert budget per burst at most.
void ip4_remember(Context& c, Batch4& batch) noexcept;
void ip6_remember(Context& c, Batch6& batch) noexcept;

/// Acts on each packet's dst (ip4_forward.cc, ip6_forward.cc). Of a packet whose decision is not to
/// be remembered batch.dsts becomes kNoRoute.
void ip4_forward(Context& c, Batch4& batch) noexcept;
void ip6_forward(Context& c, Batch6& batch) noexcept;

// What leaves the straight path, one packet at a time.

/// How a packet took its dst.
enum class Outcome : std::uint8_t {
    kPassed,   // it went where the dst leads: the decision may be remembered
    kEnded,    // held or dropped
    kInvalid,  // the dst is not valid any more (re-pointed, expired); the packet is untouched
};

/// Rest of the way of one packet with its dst found.
Outcome ip4_act(Context& c, Packet& p, const fib::Dst& dst) noexcept;
Outcome ip6_act(Context& c, Packet& p, const fib::Dst& dst) noexcept;

/// The decision about one packet without the cache; its source is not validated.
fib::DstIndex ip4_decide_one(Context& c, const Packet& p) noexcept;
fib::DstIndex ip6_decide_one(Context& c, const Packet& p) noexcept;
/// The same about an address that we would send to from `in`'s routing domain.
fib::DstIndex ip4_decide_own(Context& c,
                             const fib::NetdevView& in,
                             const net::Ipv4Addr& destination) noexcept;
fib::DstIndex ip6_decide_own(Context& c,
                             const fib::NetdevView& in,
                             const net::Ipv6Addr& destination) noexcept;

/// Looks one packet up and acts (originate.cc): of our own, or held before.
void ip4_route(Context& c, Packet& p) noexcept;
void ip6_route(Context& c, Packet& p) noexcept;

/// To an address or group of this router (local4.cc, local6.cc).
void ip4_local(Context& c, Packet& p) noexcept;
void ip6_local(Context& c, Packet& p) noexcept;

/// Sends an ICMP error about `p` where the RFCs and the rate limit let it; `p` stays the caller's.
/// errors.cc
void ip4_error(Context& c, const Packet& p, const net::IcmpError& error) noexcept;
void ip6_error(Context& c, const Packet& p, const net::IcmpError& error) noexcept;

/// As much of the IP packet as an ICMP message may quote (errors.cc); in `storage` unless it is
/// contiguous.
std::span<const std::uint8_t> quote(const Packet& p, std::span<std::uint8_t> storage) noexcept;

/// Tells the source of `p` of a better first hop (redirect.cc), where the RFCs and the rate limit
/// let it; `p` stays the caller's. `dst` leads out of the ingress.
void ip4_redirect(Context& c, const Packet& p, const fib::Dst& dst) noexcept;
void ip6_redirect(Context& c, const Packet& p, const fib::Dst& dst) noexcept;
/// Learns from an ICMP message about a packet of ours (learn.cc): a path MTU, or, where the ingress
/// does not forward, another gateway. `l3`: the ICMP message's packet, as far as it is contiguous;
/// `offset` of the ICMP header.
void ip4_learn(Context& c, const Packet& p, std::size_t offset) noexcept;
void ip6_learn(Context& c, const Packet& p, std::size_t offset) noexcept;

/// Routes and sends a packet of our own (originate.cc): `m` begins with its IP header; `in` is the
/// netdev that it answers on, whose table is asked and whose link a link-local address means.
void ip4_originate(Context& c, rte_mbuf* m, const fib::NetdevView& in) noexcept;
void ip6_originate(Context& c, rte_mbuf* m, const fib::NetdevView& in) noexcept;

/// IPv4 with DF clear, longer than the path takes (fragment.cc): sends the fragments, frees `p.m`.
void ip4_fragment(Context& c, Packet& p, const fib::Dst& dst, std::uint16_t mtu) noexcept;

/// Waits for a neighbour (resolve.cc).
void hold(Context& c, Packet& p, const fib::NeighborKeyWords& key) noexcept;
/// The answer: held packets go on, or are dropped.
void release_held(Context& c, const WorkerCommand& command) noexcept;
/// Against an answer that got lost; a few per call.
void drop_overdue(Context& c) noexcept;
/// Everything still held, at the end.
void drop_all_held(Context& c) noexcept;
/// Tells the control thread that `key` was used, not more than once in a while.
void report_use(Context& c, const fib::NeighborKeyWords& key) noexcept;

/// ARP and neighbour discovery, to the control thread (punt.cc).
void punt(Context& c, Packet& p) noexcept;

/// Stores the link-layer header and queues the packet for its port; the last step (output.cc).
/// `l3_bytes`: IP length, what follows it is padding. `booked` false: a fragment after the first.
void transmit(Context& c,
              const Packet& p,
              const fib::Dst& dst,
              std::size_t l3_bytes,
              bool booked = true) noexcept;

/// Brings the first `bytes` bytes into the first segment; the data's start stays where it is.
/// False, and nothing is changed: no room to.
bool pull_up(rte_mbuf& m, std::size_t bytes) noexcept;
/// Cuts `m` to `bytes` from the end; for chains too.
void trim_to(rte_mbuf& m, std::size_t bytes) noexcept;

}  // namespace sluice::pipeline
