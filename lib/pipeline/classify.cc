// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

// Packets ahead, for the mbuf's data; chosen with scripts/bench forward.
constexpr std::size_t kPrefetchAhead = 4;

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
    void count(NetdevId id, std::uint32_t bytes) noexcept {
        if (id != id_) {
            flush();
            id_ = id;
        }
        ++packets_;
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
    received.count(in->id, m->pkt_len);
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

// The sub-interface of the tag that was last asked about.
class TaggedIngress {
public:
    TaggedIngress(const Context& c, const fib::NetdevView& port) : c_(c), port_(port) {}
    const StraightIngress& find(std::uint16_t id) noexcept {
        if (id != id_) {
            id_ = id;
            const NetdevId netdev = port_.vlans != nullptr ? (*port_.vlans)[id] : kBlackholeNetdev;
            const fib::NetdevView* in =
                netdev != kBlackholeNetdev ? c_.shared.netdev(netdev) : nullptr;
            ingress_ = in != nullptr ? StraightIngress(*in, kBytes) : StraightIngress{};
        }
        return ingress_;
    }
    static constexpr std::uint8_t kBytes = sizeof(net::EthernetHeader) + sizeof(net::VlanTag);

private:
    const Context& c_;
    const fib::NetdevView& port_;
    std::uint16_t id_ = 0;  // a priority tag's, which is the port's and rare
    StraightIngress ingress_;
};

// Puts the frame into its batch if it is on the straight way.
bool classify_straight(const StraightIngress& port,
                       TaggedIngress& tagged,
                       rte_mbuf* m,
                       ReceiveCounter& received,
                       Batch4& ip4,
                       Batch6& ip6) noexcept {
    constexpr std::uint32_t kLeast = TaggedIngress::kBytes + sizeof(net::Ipv4Header);
    const std::uint32_t bytes = m->pkt_len;
    if (bytes != m->data_len || bytes < kLeast || (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0)
        [[unlikely]] {
        return false;
    }
    std::uint8_t* frame = rte_pktmbuf_mtod(m, std::uint8_t*);
    const StraightIngress* in = &port;
    std::uint8_t* l3 = frame + sizeof(net::EthernetHeader);
    auto type = load<std::uint32_t>(l3 - 2);
    if (static_cast<std::uint16_t>(type) == StraightIngress::kTypeVlan) {
        in = &tagged.find(rte_bswap16(static_cast<std::uint16_t>(type >> 16U)) & 0x0fffU);
        l3 += sizeof(net::VlanTag);
        type = load<std::uint32_t>(l3 - 2);
    }
    if ((load<std::uint64_t>(frame) & StraightIngress::kMacBits) != in->mac) [[unlikely]] {
        return false;
    }
    const auto room = static_cast<std::uint32_t>(bytes - static_cast<std::size_t>(l3 - frame));
    // What a frame of the least length has behind the packet stays (output.cc).
    const std::uint32_t spare = room + kMinFrame + 1 - bytes;
    const auto place_straight = [&](Packet& p, std::uint16_t length, std::uint8_t flags) {
        p = in->model;
        p.m = m;
        p.l3 = l3;
        p.length = length;
        p.flags |= flags;
        received.count(p.book, bytes);
    };
    if ((type & StraightIngress::kBits4) == in->type4) {
        const std::uint8_t good = checksum_flag(*m);
        const std::uint16_t length = straight4(l3, room, spare, good != 0, *in->local);
        if (length == 0) [[unlikely]] {
            return false;
        }
        std::memcpy(&ip4.destinations[ip4.count], l3 + offsetof(net::Ipv4Header, destination), 4);
        place_straight(ip4.packets[ip4.count++], length, 0);
        return true;
    }
    if ((type & StraightIngress::kBits6) == in->type6 && room >= sizeof(net::Ipv6Header)) {
        const std::uint16_t length = straight6(l3, room, spare, *in->local);
        if (length == 0) [[unlikely]] {
            return false;
        }
        std::memcpy(&ip6.destinations[ip6.count], l3 + offsetof(net::Ipv6Header, destination), 16);
        place_straight(ip6.packets[ip6.count++], length, Packet::kIpv6);
        return true;
    }
    return false;
}

}  // namespace

void classify(Context& c,
              const fib::NetdevView& port,
              std::span<rte_mbuf* const> burst,
              Batch4& ip4,
              Batch6& ip6) noexcept {
    ReceiveCounter received(c);
    const StraightIngress straight(port, sizeof(net::EthernetHeader));
    TaggedIngress tagged(c, port);
    ip4.count = 0;
    ip6.count = 0;
    for (std::size_t i = 0; i < burst.size() && i < kPrefetchAhead; ++i) {
        rte_prefetch0(rte_pktmbuf_mtod(burst[i], void*));
    }
    for (std::size_t i = 0; i < burst.size(); ++i) {
        if (i + kPrefetchAhead < burst.size()) {
            rte_prefetch0(rte_pktmbuf_mtod(burst[i + kPrefetchAhead], void*));
        }
        if (!classify_straight(straight, tagged, burst[i], received, ip4, ip6)) [[unlikely]] {
            classify_any(c, port, burst[i], received, ip4, ip6);
        }
    }
    received.flush();
}

}  // namespace sluice::pipeline
