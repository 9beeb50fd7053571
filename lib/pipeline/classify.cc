// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "base/drop_reason.h"
#include "dpdk/mbuf.h"
#include "fib/netdev_view.h"
#include "net/wire.h"
#include "pipeline/stages.h"

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

}  // namespace

void classify(Context& c,
              const fib::NetdevView& port,
              std::span<rte_mbuf* const> burst,
              Batch4& ip4,
              Batch6& ip6) noexcept {
    ReceiveCounter received(c);
    ip4.count = 0;
    ip6.count = 0;
    for (std::size_t i = 0; i < burst.size() && i < kPrefetchAhead; ++i) {
        rte_prefetch0(rte_pktmbuf_mtod(burst[i], void*));
    }
    for (std::size_t i = 0; i < burst.size(); ++i) {
        if (i + kPrefetchAhead < burst.size()) {
            rte_prefetch0(rte_pktmbuf_mtod(burst[i + kPrefetchAhead], void*));
        }
        rte_mbuf* m = burst[i];
        const std::size_t wanted = std::min<std::size_t>(kContiguous, m->pkt_len);
        const bool contiguous = m->data_len >= wanted || pull_up(*m, wanted);
        Verdict v =
            contiguous ? classify_frame(c, port, *m) : Verdict{.reason = DropReason::kEthTooShort};
        const fib::NetdevView* in = v.in != nullptr ? v.in : &port;
        received.count(in->id, m->pkt_len);
        if (v.reason != DropReason::kNone) [[unlikely]] {
            c.stats.drop(in->id, v.reason, 0);
            rte_pktmbuf_free(m);
        } else if (v.type == net::kEtherTypeIpv4) {
            v.flags |= checksum_flag(*m);
            place(ip4.packets[ip4.count++], m, in, v);
        } else if (v.type == net::kEtherTypeIpv6) {
            v.flags |= Packet::kIpv6;
            place(ip6.packets[ip6.count++], m, in, v);
        } else if (v.type == net::kEtherTypeArp) {
            Packet p;
            place(p, m, in, v);
            punt(c, p);
        } else {
            c.stats.drop(in->id, DropReason::kEthUnknownType, 0);
            rte_pktmbuf_free(m);
        }
    }
    received.flush();
}

}  // namespace sluice::pipeline
