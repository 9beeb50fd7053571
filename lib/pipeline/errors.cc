// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <rte_mbuf.h>

#include "dpdk/mbuf.h"
#include "fib/netdev_view.h"
#include "net/icmp.h"
#include "net/wire.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

namespace {

// A buffer for an error about `p`, or null: over the limit, or no mbuf. Counts what is not sent.
rte_mbuf* buffer_for_error(Context& c, const Packet& p) noexcept {
    rte_mbuf* m = c.icmp_allowed(p.in->id) ? rte_pktmbuf_alloc(c.pool) : nullptr;
    stats::NetdevCounters& counters = c.stats.netdev(p.in->id);
    stats::bump(m != nullptr ? counters.icmp_errors_sent : counters.icmp_errors_suppressed);
    return m;
}

}  // namespace

std::span<const std::uint8_t> quote(const Packet& p, std::span<std::uint8_t> storage) noexcept {
    const std::size_t length = p.is(Packet::kIpv6)
                                   ? sizeof(net::Ipv6Header) + p.ip6().payload_length.host()
                                   : p.ip4().total_length.host();
    return dpdk::copy_to_linear(*p.m, p.l2_bytes, storage.first(std::min(storage.size(), length)));
}

void ip4_error(Context& c, const Packet& p, const net::IcmpError& error) noexcept {
    // RFC 1812 4.3.2.7: not about broadcasts, of whichever of our links.
    if (p.is(Packet::kOriginated | Packet::kIpBroadcast)) {
        return;
    }
    const net::Ipv4Header& ip = p.ip4();
    const net::Ipv4Addr* source = p.in->source_for(ip.source);
    if (p.in->local->contains(ip.destination)) {
        source = &ip.destination;  // the address that was talked to, as with IPv6
    } else if (source == nullptr) {
        source = p.in->local->any4();
    }
    if (source == nullptr ||
        !net::may_send_icmp_error(p.l3_span(), p.is(Packet::kLinkGroup), error) ||
        p.in->is_broadcast(ip.source) || p.in->is_broadcast(ip.destination)) {
        return;
    }
    rte_mbuf* m = buffer_for_error(c, p);
    if (m == nullptr) {
        return;
    }
    std::array<std::uint8_t, net::kIcmpErrorMax> storage;  // filled as far as used
    dpdk::append_written(
        *m,
        net::write_icmp_error(dpdk::tail_room(*m), error, *source, c.ipv4_id++, quote(p, storage)));
    ip4_originate(c, m, *p.in);
}

void ip6_error(Context& c, const Packet& p, const net::IcmpError& error) noexcept {
    if (p.is(Packet::kOriginated)) {
        return;
    }
    const net::Ipv6Header& ip = p.ip6();
    // RFC 4443 2.2: an address of the router; never "::", also when the ingress has no global one.
    const net::Ipv6Addr* source = p.in->source_for(ip.source);
    if (p.in->local->contains(ip.destination) || p.in->owns(ip.destination)) {
        source = &ip.destination;  // RFC 4443 2.2 (a)
    } else if ((source == nullptr || source->is_link_local()) && !ip.source.is_link_local() &&
               p.in->local->any6() != nullptr) {
        source = p.in->local->any6();
    }
    std::array<std::uint8_t, net::kIcmp6ErrorMax> storage;  // filled as far as used
    const auto quoted = quote(p, storage);
    // Judged by what is quoted: the header chain may go on in other segments.
    if (source == nullptr || !net::may_send_icmp6_error(quoted, p.is(Packet::kLinkGroup), error)) {
        return;
    }
    rte_mbuf* m = buffer_for_error(c, p);
    if (m == nullptr) {
        return;
    }
    dpdk::append_written(*m, net::write_icmp6_error(dpdk::tail_room(*m), error, *source, quoted));
    ip6_originate(c, m, *p.in);
}

}  // namespace sluice::pipeline
