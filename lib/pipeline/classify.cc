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

// The sub-interface of a tag; null: there is none.
const fib::NetdevView* vlan_of(const Context& c,
                               const fib::NetdevView& port,
                               std::uint16_t id) noexcept {
    const NetdevId netdev = port.vlans != nullptr ? (*port.vlans)[id] : kBlackholeNetdev;
    return netdev != kBlackholeNetdev ? c.shared.netdev(netdev) : nullptr;
}

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
        v.in = vlan_of(c, port, id);
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
        }
    } else if (v.type == net::kEtherTypeIpv6) {
        v.flags |= Packet::kIpv6;
        Packet& p = ip6.packets[ip6.count];
        place(p, m, in, v);
        if (ip6_input(c, p)) {
            ip6.destinations[ip6.count++] = p.ip6().destination;
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
            const fib::NetdevView* in = vlan_of(c_, port_, id);
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

template <class Addr>
constexpr std::uint8_t kFamilyFlag = sizeof(Addr) == 16 ? Packet::kIpv6 : std::uint8_t{0};

template <class Addr>
void place_straight(Batch<Addr>& batch,
                    const StraightIngress& in,
                    rte_mbuf* m,
                    std::uint8_t* l3,
                    std::uint32_t length) noexcept {
    Packet& p = batch.packets[batch.count];
    p = in.model;
    p.m = m;
    p.l3 = l3;
    p.length = static_cast<std::uint16_t>(length);
    p.flags |= kFamilyFlag<Addr>;
    std::memcpy(
        &batch.destinations[batch.count], l3 + StraightFamily<Addr>::kDestination, sizeof(Addr));
    ++batch.count;
}

// A frame of another netdev than the burst's first one.
template <class Addr>
bool classify_straight(const StraightIngress& in,
                       rte_mbuf* m,
                       std::uint8_t* l3,
                       std::uint32_t bytes,
                       Batch<Addr>& batch) noexcept {
    const std::uint32_t length = straight_length<Addr>(in, l3, bytes);
    if (length != 0) {
        place_straight(batch, in, m, l3, length);
    }
    return length != 0;
}

// Stands in for a frame that is too short or in pieces; on no way. The same for all workers, never
// written.
std::uint8_t* no_frame() noexcept {
    static constexpr std::array<std::uint8_t, StraightBurst::kLeast + 16> kNothing{};
    return const_cast<std::uint8_t*>(kNothing.data());  // NOLINT: nobody writes to what has no way
}

std::uint8_t* frame_of(const rte_mbuf& m) noexcept {
    const std::uint32_t bytes = m.data_len;
    const bool whole = bytes == m.pkt_len && bytes >= StraightBurst::kLeast &&
                       (m.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0;
    return whole ? rte_pktmbuf_mtod(&m, std::uint8_t*) : no_frame();
}

// Lays out the burst as packets whose l3 is l2_bytes behind each frame's start, and brings the
// frames' first lines near. They are whole then, or no_frame().
void lay_out(std::span<rte_mbuf* const> burst,
             std::uint8_t l2_bytes,
             StraightBurst& straight,
             Packet* packets) noexcept {
    std::size_t i = 0;
    for (; i < burst.size(); ++i) {
        std::uint8_t* frame = frame_of(*burst[i]);
        rte_prefetch0(frame);
        packets[i].m = burst[i];
        packets[i].l3 = frame + l2_bytes;
        straight.bytes[i] = burst[i]->data_len;
    }
    for (; i % StraightBurst::kGroup != 0; ++i) {
        packets[i].l3 = no_frame() + l2_bytes;
        straight.bytes[i] = 0;
    }
    straight.groups = i / StraightBurst::kGroup;
    straight.packets = packets;
}

// What is left of a burst that is not uniform: each packet to its own place.
void sort_out(Context& c,
              const fib::NetdevView& port,
              TaggedIngress& tagged,
              const StraightIngress& in,
              std::size_t count,
              const StraightBurst& straight,
              Batch4& ip4,
              Batch6& ip6) noexcept {
    ReceiveCounter received(c);
    const StraightIngress untagged(port);
    for (std::size_t i = 0; i < count; ++i) {
        rte_mbuf* const m = straight.packets[i].m;
        std::uint8_t* const l3 = straight.packets[i].l3;
        const std::uint32_t bytes = straight.bytes[i];
        const std::size_t group = i / StraightBurst::kGroup;
        const std::size_t bit = i % StraightBurst::kGroup;
        if (((straight.ip4[group] >> bit) & 1U) != 0) {
            place_straight(ip4, in, m, l3, ip4.lengths[i]);
            received.count(in.model.book, 1, bytes);
            continue;
        }
        if (((straight.ip6[group] >> bit) & 1U) != 0) {
            place_straight(ip6, in, m, l3, ip6.lengths[i]);
            received.count(in.model.book, 1, bytes);
            continue;
        }
        // What is not `in`'s may be another netdev's.
        std::uint8_t* const frame = l3 - in.model.l2_bytes;
        const StraightIngress& other = has_tag(frame) ? tagged.of(frame) : untagged;
        std::uint8_t* const its_l3 = frame + other.model.l2_bytes;
        if (other.model.in != in.model.in && (classify_straight(other, m, its_l3, bytes, ip4) ||
                                              classify_straight(other, m, its_l3, bytes, ip6))) {
            received.count(other.model.book, 1, bytes);
        } else {
            classify_any(c, port, m, received, ip4, ip6);
        }
    }
    received.flush();
}

template <class Addr>
void take_whole(Context& c,
                Batch<Addr>& batch,
                const StraightIngress& in,
                const StraightBurst& straight,
                std::size_t count) noexcept {
    batch.count = count;
    batch.uniform = true;
    batch.bare = true;
    batch.model = in.model;
    batch.model.flags |= kFamilyFlag<Addr>;
    stats::NetdevCounters& counters = c.stats.netdev(in.model.book);
    stats::bump(counters.rx_packets, count);
    stats::bump(
        counters.rx_bytes,
        std::accumulate(straight.bytes.data(), straight.bytes.data() + count, std::uint64_t{0}));
}

}  // namespace

void classify(Context& c,
              const fib::NetdevView& port,
              std::span<rte_mbuf* const> burst,
              StraightBurst& straight,
              Batch4& ip4,
              Batch6& ip6) noexcept {
    ip4.count = ip6.count = 0;
    ip4.uniform = ip6.uniform = false;
    ip4.bare = ip6.bare = false;
    // The burst is looked at as what its first frame is: by tag and family.
    const std::uint8_t* const first = frame_of(*burst[0]);
    TaggedIngress tagged(c, port);
    StraightIngress in(port);
    if (has_tag(first)) {
        const StraightIngress& vlan = tagged.of(first);
        in = vlan.local != nullptr ? vlan : in;
    }
    const bool first6 = load<std::uint16_t>(first + in.model.l2_bytes - 2) ==
                        static_cast<std::uint16_t>(StraightFamily<net::Ipv6Addr>::kType);
    const std::size_t count = burst.size();
    lay_out(burst, in.model.l2_bytes, straight, first6 ? ip6.packets.data() : ip4.packets.data());
    const auto look4 = [&] {
        return c.straight->ip4(
            in, straight, ip4.lengths.data(), ip4.destinations.data(), straight.ip4.data());
    };
    const auto look6 = [&] {
        return c.straight->ip6(
            in, straight, ip6.lengths.data(), ip6.destinations.data(), straight.ip6.data());
    };
    if (first6) {
        if (look6() == count) [[likely]] {
            take_whole(c, ip6, in, straight, count);
            return;
        }
        look4();
    } else {
        if (look4() == count) [[likely]] {
            take_whole(c, ip4, in, straight, count);
            return;
        }
        look6();
    }
    sort_out(c, port, tagged, in, count, straight, ip4, ip6);
}

}  // namespace sluice::pipeline
