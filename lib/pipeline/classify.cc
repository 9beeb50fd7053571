// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "base/drop_reason.h"
#include "dpdk/mbuf.h"
#include "fib/netdev_view.h"
#include "net/wire.h"
#include "pipeline/stages.h"
#include "pipeline/straight.h"

namespace sluice::pipeline {

namespace {

// Headers up to the transport's first bytes must be contiguous: what every later stage reads
// without asking. Longer header chains are walked with bounds.
constexpr std::uint16_t kContiguous =
    sizeof(net::EthernetHeader) + sizeof(net::VlanTag) + sizeof(net::Ipv6Header) + 40;

struct Verdict {
    DropReason reason = DropReason::kNone;
    const fib::NetdevView* in = nullptr;  // null: book on the port
    std::uint16_t type = 0;               // host order
    std::uint8_t l2_bytes = 0;
    std::uint8_t flags = 0;
};

// The sub-interface of a tag, or the port itself for a priority tag.
Verdict classify_tagged(const Context& c,
                        const fib::NetdevView& port,
                        std::uint16_t id,
                        std::uint16_t type,
                        std::uint8_t l2_bytes) noexcept {
    Verdict v{.in = &port, .type = type, .l2_bytes = l2_bytes};
    if (type == net::kEtherTypeVlan || type == net::kEtherTypeQinq) {
        v.reason = DropReason::kVlanQinq;
    } else if (id != 0) {
        v.in = nullptr;
        if (port.vlans != nullptr && (*port.vlans)[id] != kBlackholeNetdev) {
            v.in = c.shared.netdev((*port.vlans)[id]);
        }
        if (v.in == nullptr) {
            v.reason = DropReason::kVlanUnknown;
        }
    }
    return v;
}

Verdict classify_frame(const Context& c, const fib::NetdevView& port, const rte_mbuf& m) noexcept {
    const auto* eth = dpdk::header_at<net::EthernetHeader>(m, 0);
    if (eth == nullptr) {
        return {.reason = DropReason::kEthTooShort};
    }
    Verdict v{.in = &port, .type = eth->type.host(), .l2_bytes = sizeof *eth};
    if ((m.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0) {
        // A device set up to strip tags (by hand, or unable not to) leaves the tag in the mbuf.
        v = classify_tagged(c, port, m.vlan_tci & 0x0fffU, v.type, v.l2_bytes);
    } else if (v.type == net::kEtherTypeVlan) {
        const auto* tag = dpdk::header_at<net::VlanTag>(m, sizeof *eth);
        if (tag == nullptr) {
            return {.reason = DropReason::kVlanTooShort};
        }
        v = classify_tagged(c, port, tag->id(), tag->type.host(), sizeof *eth + sizeof *tag);
    } else if (v.type == net::kEtherTypeQinq) {
        v.reason = DropReason::kVlanQinq;
    }
    if (v.reason != DropReason::kNone) {
        return v;
    }
    if (!v.in->up) {
        v.reason = DropReason::kNetdevDown;
    } else if (eth->destination.is_group()) {
        v.flags = Packet::kLinkGroup;
    } else if (eth->destination != v.in->mac) {
        v.reason = DropReason::kEthOtherHost;
    }
    if (v.reason == DropReason::kNone && eth->source.is_group()) {
        v.reason = DropReason::kEthBadSource;
    }
    return v;
}

// Counts received packets by run of one netdev.
class ReceiveCounter {
public:
    explicit ReceiveCounter(Context& c) : c_(c) {}
    void count(NetdevId id, std::uint64_t packets, std::uint64_t bytes) noexcept {
        if (id != id_) {
            flush();
            id_ = id;
        }
        packets_ += packets;
        bytes_ += bytes;
    }
    void flush() noexcept {
        if (packets_ != 0) {
            stats::NetdevCounters& counters = c_.stats.netdev(id_);
            stats::bump(counters.rx_packets, packets_);
            stats::bump(counters.rx_bytes, bytes_);
        }
        packets_ = bytes_ = 0;
    }

private:
    Context& c_;
    NetdevId id_;
    std::uint64_t packets_ = 0, bytes_ = 0;
};

std::uint8_t checksum_flag(const rte_mbuf& m) noexcept {
    return (m.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD
               ? Packet::kChecksumGood
               : std::uint8_t{0};
}

// Field by field into its place: a struct built on the stack and copied as vectors waits for its
// own narrow stores, 80 cycles a packet.
void place(Packet& p, rte_mbuf* m, const fib::NetdevView* in, const Verdict& v) noexcept {
    p.m = m;
    p.in = in;
    p.l3 = rte_pktmbuf_mtod_offset(m, std::uint8_t*, v.l2_bytes);
    p.book = in->id;
    p.l2_bytes = v.l2_bytes;
    p.flags = v.flags;
}

// Whatever the straight way does not take.
void classify_any(Context& c,
                  const fib::NetdevView& port,
                  rte_mbuf* m,
                  ReceiveCounter& received,
                  Batch4& ip4,
                  Batch6& ip6) noexcept {
    const std::size_t wanted = std::min<std::size_t>(kContiguous, m->pkt_len);
    const bool contiguous = m->data_len >= wanted || pull_up(*m, wanted);
    Verdict v =
        contiguous ? classify_frame(c, port, *m) : Verdict{.reason = DropReason::kEthTooShort};
    const fib::NetdevView* in = v.in != nullptr ? v.in : &port;
    received.count(in->id, 1, m->pkt_len);
    if (v.reason != DropReason::kNone) {
        c.stats.drop(in->id, v.reason, 0);
        rte_pktmbuf_free(m);
    } else if (v.type == net::kEtherTypeIpv4) {
        v.flags |= checksum_flag(*m);
        Packet& p = ip4.packets[ip4.count];
        place(p, m, in, v);
        if (ip4_input(c, p)) {
            ip4.destinations[ip4.count++] = p.ip4().destination;
            ip4.uniform = false;
        }
    } else if (v.type == net::kEtherTypeIpv6) {
        v.flags |= Packet::kIpv6;
        Packet& p = ip6.packets[ip6.count];
        place(p, m, in, v);
        if (ip6_input(c, p)) {
            ip6.destinations[ip6.count++] = p.ip6().destination;
            ip6.uniform = false;
        }
    } else if (v.type == net::kEtherTypeArp) {
        Packet p;
        place(p, m, in, v);
        punt(c, p);
    } else {
        c.stats.drop(in->id, DropReason::kEthUnknownType, 0);
        rte_pktmbuf_free(m);
    }
}

// The netdev of the tag that was last asked about.
class TaggedIngress {
public:
    TaggedIngress(const Context& c, const fib::NetdevView& port) : c_(c), port_(port) {}
    /// Of a frame with a tag.
    const StraightIngress& of(const std::uint8_t* frame) noexcept {
        const std::uint16_t id =
            rte_bswap16(load<std::uint16_t>(frame + sizeof(net::EthernetHeader))) & 0x0fffU;
        if (id != id_) {
            id_ = id;
            const NetdevId netdev = port_.vlans != nullptr ? (*port_.vlans)[id] : kBlackholeNetdev;
            const fib::NetdevView* in =
                netdev != kBlackholeNetdev ? c_.shared.netdev(netdev) : nullptr;
            ingress_ = in != nullptr ? StraightIngress(*in, id) : StraightIngress{};
        }
        return ingress_;
    }

private:
    const Context& c_;
    const fib::NetdevView& port_;
    std::uint16_t id_ = 0;  // a priority tag's, which is the port's and rare
    StraightIngress ingress_;
};

bool has_tag(const std::uint8_t* frame) noexcept {
    return load<std::uint16_t>(frame + offsetof(net::EthernetHeader, type)) ==
           StraightIngress::kTypeVlan;
}

// What packets on the straight way are to the stages behind. In whole words: this is most of what
// the stage costs.
template <class Addr>
void place_straight(Batch<Addr>& batch,
                    const StraightIngress& in,
                    rte_mbuf* const* mbufs,
                    const std::uint8_t* const* frames,
                    const std::uint32_t* lengths,
                    std::size_t count) noexcept {
    constexpr std::size_t kTail = offsetof(Packet, book);
    static_assert(offsetof(Packet, length) == kTail + 4 && sizeof(Packet) == kTail + 8);
    Packet model = in.model;
    model.flags |= sizeof(Addr) == 16 ? Packet::kIpv6 : std::uint8_t{0};
    const fib::NetdevView* const view = model.in;
    const std::size_t l2_bytes = model.l2_bytes;
    const auto tail = load<std::uint64_t>(reinterpret_cast<const std::uint8_t*>(&model) + kTail);
    Packet* p = &batch.packets[batch.count];
    Addr* destination = &batch.destinations[batch.count];
    batch.count += count;
    for (std::size_t k = 0; k < count; ++k, ++p) {
        p->m = mbufs[k];
        p->in = view;
        p->l3 = const_cast<std::uint8_t*>(frames[k]) + l2_bytes;  // NOLINT: the mbuf is ours
        const std::uint64_t word = tail | (std::uint64_t{lengths[k]} << 32U);
        std::memcpy(reinterpret_cast<std::uint8_t*>(p) + kTail, &word, sizeof word);
        if constexpr (sizeof(Addr) == 16) {
            std::memcpy(
                destination++, p->l3 + offsetof(net::Ipv6Header, destination), sizeof(Addr));
        }
    }
}

// A frame of another netdev than the burst's first one.
bool classify_straight(const StraightIngress& in,
                       rte_mbuf* m,
                       const std::uint8_t* frame,
                       std::uint32_t bytes,
                       ReceiveCounter& received,
                       Batch4& ip4,
                       Batch6& ip6) noexcept {
    if (const std::uint32_t length = straight_frame4(in, frame, bytes); length != 0) {
        std::memcpy(&ip4.destinations[ip4.count],
                    frame + in.model.l2_bytes + offsetof(net::Ipv4Header, destination),
                    sizeof(net::Ipv4Addr));
        place_straight(ip4, in, &m, &frame, &length, 1);
        ip4.uniform = false;
    } else if (const std::uint32_t length6 = straight_frame6(in, frame, bytes); length6 != 0) {
        place_straight(ip6, in, &m, &frame, &length6, 1);
        ip6.uniform = false;
    } else {
        return false;
    }
    received.count(in.model.book, 1, bytes);
    return true;
}

// Stands in for a frame that is too short or in pieces; on no way. The same for all workers, never
// written.
constexpr std::array<std::uint8_t, StraightBurst::kLeast + 16> kNoFrame{};

// Brings the frames' first lines near and tells which are whole. How many groups there are.
std::size_t gather(std::span<rte_mbuf* const> burst, StraightBurst& straight) noexcept {
    std::size_t i = 0;
    for (; i < burst.size(); ++i) {
        const rte_mbuf& m = *burst[i];
        const auto* frame = rte_pktmbuf_mtod(&m, const std::uint8_t*);
        rte_prefetch0(frame);
        const std::uint32_t bytes = m.data_len;
        const bool whole = (bytes == m.pkt_len) & (bytes >= StraightBurst::kLeast) &
                           ((m.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0);
        straight.frames[i] = whole ? frame : kNoFrame.data();
        straight.bytes[i] = bytes;
    }
    for (; i % StraightBurst::kGroup != 0; ++i) {
        straight.frames[i] = kNoFrame.data();
        straight.bytes[i] = 0;
    }
    return i / StraightBurst::kGroup;
}

std::uint64_t sum_of(const std::uint32_t* bytes, std::size_t count) noexcept {
    return std::accumulate(bytes, bytes + count, std::uint64_t{0});
}

// Finds the packets on the straight way that came in by `in`.
void find_straight(const Context& c,
                   const StraightIngress& in,
                   std::size_t count,
                   std::size_t groups,
                   StraightBurst& straight,
                   net::Ipv4Addr* destinations) noexcept {
    const auto first = load<std::uint16_t>(straight.frames[0] + in.model.l2_bytes - 2);
    // Families mostly come alone: the other one is asked about only when something is left.
    if (first != static_cast<std::uint16_t>(StraightIngress::kType6)) {
        if (c.straight->ip4(in, straight, groups, destinations) == count) {
            std::fill_n(straight.ip6.data(), groups, std::uint16_t{0});
        } else {
            c.straight->ip6(in, straight, groups);
        }
    } else if (c.straight->ip6(in, straight, groups) == count) {
        std::fill_n(straight.ip4.data(), groups, std::uint16_t{0});
    } else {
        c.straight->ip4(in, straight, groups, destinations);
    }
}

}  // namespace

void classify(Context& c,
              const fib::NetdevView& port,
              std::span<rte_mbuf* const> burst,
              StraightBurst& straight,
              Batch4& ip4,
              Batch6& ip6) noexcept {
    ReceiveCounter received(c);
    ip4.count = 0;
    ip6.count = 0;
    ip4.uniform = ip6.uniform = true;
    const std::size_t groups = gather(burst, straight);
    const StraightIngress untagged(port);
    TaggedIngress tagged(c, port);
    // The burst is looked at as what its first frame is.
    StraightIngress in = untagged;
    if (has_tag(straight.frames[0])) {
        const StraightIngress& first = tagged.of(straight.frames[0]);
        in = first.local != nullptr ? first : untagged;
    }
    find_straight(c, in, burst.size(), groups, straight, ip4.destinations.data());
    for (std::size_t group = 0; group < groups; ++group) {
        const std::size_t first = group * StraightBurst::kGroup;
        const std::size_t count = std::min(StraightBurst::kGroup, burst.size() - first);
        const auto all = static_cast<std::uint16_t>((1U << count) - 1);
        const std::uint16_t is4 = straight.ip4[group];
        const std::uint16_t is6 = straight.ip6[group];
        rte_mbuf* const* mbufs = &burst[first];
        const std::uint8_t* const* frames = &straight.frames[first];
        const std::uint32_t* lengths = &straight.lengths[first];
        if (is4 == all && ip4.count == first) [[likely]] {
            // Their destinations are where they belong already.
            place_straight(ip4, in, mbufs, frames, lengths, count);
            received.count(in.model.book, count, sum_of(&straight.bytes[first], count));
            continue;
        }
        if (is6 == all) {
            place_straight(ip6, in, mbufs, frames, lengths, count);
            received.count(in.model.book, count, sum_of(&straight.bytes[first], count));
            continue;
        }
        for (std::size_t k = 0; k < count; ++k) {
            const std::uint32_t bytes = straight.bytes[first + k];
            if (((is4 >> k) & 1U) != 0) {
                ip4.destinations[ip4.count] = ip4.destinations[first + k];
                place_straight(ip4, in, mbufs + k, frames + k, lengths + k, 1);
                received.count(in.model.book, 1, bytes);
            } else if (((is6 >> k) & 1U) != 0) {
                place_straight(ip6, in, mbufs + k, frames + k, lengths + k, 1);
                received.count(in.model.book, 1, bytes);
            } else {
                // What is not `in`'s may be another netdev's.
                const StraightIngress& other = has_tag(frames[k]) ? tagged.of(frames[k]) : untagged;
                if (other.model.in == in.model.in ||
                    !classify_straight(other, mbufs[k], frames[k], bytes, received, ip4, ip6)) {
                    classify_any(c, port, mbufs[k], received, ip4, ip6);
                }
            }
        }
    }
    received.flush();
}

}  // namespace sluice::pipeline
