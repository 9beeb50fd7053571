// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <rte_mbuf.h>

#include "dpdk/mbuf.h"
#include "fib/dst.h"
#include "fib/neighbor_map.h"
#include "fib/netdev_view.h"
#include "net/icmp.h"
#include "net/wire.h"
#include "pipeline/stages.h"
#include "stats/counters.h"

namespace sluice::pipeline {

namespace {

constexpr std::uint8_t kRedirectHost = 1;  // RFC 1812 5.2.7.2: never the network codes

// Both limits: what one source is told, and what a netdev sends of ICMP errors in all.
rte_mbuf* buffer_for_redirect(Context& c, const Packet& p, std::uint64_t source) noexcept {
    if (!c.redirects.allow(source, c.now_ns) || !c.icmp_allowed(p.in->id)) {
        return nullptr;
    }
    rte_mbuf* m = rte_pktmbuf_alloc(c.pool);
    if (m != nullptr) {
        stats::bump(c.stats.worker().redirects_sent);
    }
    return m;
}

template <class Addr>
std::uint64_t source_key(const Context& c, const Packet& p, const Addr& source) noexcept {
    return fib::NeighborKeyWords::of(p.in->id, source).hash(c.shared.flow_seed | 1U);
}

}  // namespace

// RFC 1812 5.2.7.2, dst.md C-25: the source is directly attached to the link that the packet goes
// back out of, and so is the next hop.
void ip4_redirect(Context& c, const Packet& p, const fib::Dst& dst) noexcept {
    const net::Ipv4Header& ip = p.ip4();
    const bool own_gateway = dst.type == fib::DstType::kUnicast && dst.gateway_is_v6 == 0;
    const net::Ipv4Addr gateway = own_gateway ? dst.gateway4() : ip.destination;
    const net::Ipv4Addr* source = p.in->source_for(ip.source);
    if (source == nullptr || dst.gateway_is_v6 != 0 || !p.in->on_link(ip.source) ||
        !p.in->on_link(gateway) || p.is(Packet::kLinkGroup)) {
        return;
    }
    const net::IcmpError redirect{
        .type = net::icmp::kRedirect, .code = kRedirectHost, .rest = gateway.host()};
    if (!net::may_send_icmp_error(p.l3_span(), false, redirect)) {
        return;
    }
    rte_mbuf* m = buffer_for_redirect(c, p, source_key(c, p, ip.source));
    if (m == nullptr) {
        return;
    }
    std::array<std::uint8_t, net::kIcmpErrorMax> storage;  // filled as far as used
    dpdk::append_written(
        *m,
        net::write_icmp_error(
            dpdk::tail_room(*m), redirect, *source, c.ipv4_id++, quote(p, storage)));
    ip4_originate(c, m, *p.in);
}

// RFC 4861 8.2. The target is a link-local address, or the destination itself; a gateway that is
// known by a global address only cannot be named.
void ip6_redirect(Context& c, const Packet& p, const fib::Dst& dst) noexcept {
    const net::Ipv6Header& ip = p.ip6();
    const net::Ipv6Addr gateway =
        dst.type == fib::DstType::kUnicast ? dst.gateway6() : ip.destination;
    const bool direct = gateway == ip.destination;
    if ((!gateway.is_link_local() && !direct) || !p.in->on_link(ip.source) ||
        (direct && !p.in->on_link(gateway)) || p.is(Packet::kLinkGroup) ||
        p.in->link_local.is_unspecified()) {
        return;
    }
    std::array<std::uint8_t, net::kIcmp6ErrorMax> storage;  // filled as far as used
    const auto quoted = quote(p, storage);
    if (!net::may_send_icmp6_error(quoted, false, {.type = net::icmp6::kRedirect})) {
        return;
    }
    rte_mbuf* m = buffer_for_redirect(c, p, source_key(c, p, ip.source));
    if (m == nullptr) {
        return;
    }
    dpdk::append_written(
        *m, net::write_icmp6_redirect(dpdk::tail_room(*m), p.in->link_local, gateway, quoted));
    ip6_originate(c, m, *p.in);
}

}  // namespace sluice::pipeline
