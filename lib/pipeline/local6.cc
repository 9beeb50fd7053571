// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "dpdk/mbuf.h"
#include "fib/netdev_view.h"
#include "net/checksum.h"
#include "net/icmp.h"
#include "net/validate.h"
#include "net/wire.h"
#include "pipeline/chain_sum.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

namespace {

// RFC 4443 2.3, over chains too.
bool checksum_ok(const Packet& p, std::size_t offset, std::size_t length) noexcept {
    const net::Ipv6Header& ip = p.ip6();
    const std::uint32_t pseudo = net::pseudo_header_sum(
        ip.source, ip.destination, static_cast<std::uint32_t>(length), net::IpProtocol::kIcmpv6);
    return net::fold_checksum(pseudo + sum_chain(*p.m, p.l2_bytes + offset, length)).raw() == 0;
}

// RFC 4443 4.2. The reply carries no extension headers: the fixed header moves up to the message.
void answer_echo(Context& c, Packet& p, std::size_t offset, std::size_t length) noexcept {
    const net::Ipv6Header request = p.ip6();
    net::Ipv6Addr from = request.destination;
    if (from.is_multicast()) {
        const net::Ipv6Addr* own = p.in->source_for(request.source);
        if (own == nullptr) {
            c.deliver(p);
            return;
        }
        from = *own;
    }
    rte_mbuf* m = p.m;
    rte_pktmbuf_adj(m, static_cast<std::uint16_t>(p.l2_bytes + offset - sizeof(net::Ipv6Header)));
    auto* ip = dpdk::header_at<net::Ipv6Header>(*m, 0);
    auto* icmp = dpdk::header_at<net::IcmpHeader>(*m, sizeof *ip);
    *ip = {.version_class_flow =
               net::Be32::from_host(6U << 28U | std::uint32_t{request.traffic_class()} << 20U),
           .payload_length = net::Be16::from_host(static_cast<std::uint16_t>(length)),
           .next_header = net::IpProtocol::kIcmpv6,
           .hop_limit = 64,
           .source = from,
           .destination = request.source};
    icmp->type = net::icmp6::kEchoReply;
    icmp->checksum = {};
    icmp->checksum = net::fold_checksum(net::pseudo_header_sum(ip->source,
                                                               ip->destination,
                                                               static_cast<std::uint32_t>(length),
                                                               net::IpProtocol::kIcmpv6) +
                                        sum_chain(*m, sizeof *ip, length));

    stats::bump(c.stats.netdev(p.book).delivered);
    ip6_originate(c, m, *p.in);
}

bool is_neighbor_discovery(std::uint8_t type) noexcept {
    return type >= net::icmp6::kRouterSolicitation && type <= net::icmp6::kRedirect;
}

void icmp6_input(Context& c, Packet& p, std::size_t offset, std::size_t length) noexcept {
    const auto* icmp = dpdk::header_at<net::IcmpHeader>(*p.m, p.l2_bytes + offset);
    if (length < sizeof(net::IcmpHeader) || icmp == nullptr) {
        c.drop(p, DropReason::kLocalTooShort);
        return;
    }
    if (!checksum_ok(p, offset, length)) {
        c.drop(p, DropReason::kIcmpBadChecksum);
        return;
    }
    if (icmp->type == net::icmp6::kRedirect && !p.in->forwarding) {
        ip6_learn(c, p, offset);  // RFC 4861 8.3: a host's business, not a router's
        c.deliver(p);
    } else if (is_neighbor_discovery(icmp->type)) {
        punt(c, p);
    } else if (p.ip6().source.is_unspecified()) {
        c.drop(p, DropReason::kMartianSourceZero);
    } else if (icmp->type == net::icmp6::kEcho) {
        answer_echo(c, p, offset, length);
    } else if (icmp->type == net::icmp6::kPacketTooBig) {
        ip6_learn(c, p, offset);
        c.deliver(p);
    } else if (icmp->type == net::icmp6::kEchoReply || icmp->type < net::icmp6::kEcho) {
        c.deliver(p);  // RFC 4443 2.4 (a): errors go up, unknown ones too
    } else {
        c.drop(p, DropReason::kIcmpUnknownType);
    }
}

void refuse(Context& c, const Packet& p, DropReason reason, const net::IcmpError& error) noexcept {
    if (!p.ip6().source.is_unspecified()) {
        ip6_error(c, p, error);
    }
    c.drop(p, reason);
}

}  // namespace

void ip6_local(Context& c, Packet& p) noexcept {
    if (p.is(Packet::kOriginated)) {
        c.drop(p, DropReason::kMartianSourceOwn);
        return;
    }
    const std::size_t total = sizeof(net::Ipv6Header) + p.ip6().payload_length.host();
    trim_to(*p.m, p.l2_bytes + total);
    // The header chain is read in one piece; one that is longer than a segment's room is refused.
    pull_up(*p.m, std::min<std::size_t>(p.m->pkt_len, p.m->data_len + rte_pktmbuf_tailroom(p.m)));
    const net::UpperLayer upper = net::find_upper_layer(p.l3_span());
    if (upper.reason != DropReason::kNone) {
        c.drop(p, upper.reason);
        return;
    }
    if (upper.source_routed) {
        // RFC 8200 4.4: the type is not one we process; the pointer names the routing type.
        refuse(c,
               p,
               DropReason::kIpv6RoutingHeader,
               {.type = net::icmp6::kParameterProblem,
                .code = net::icmp6::kBadHeader,
                .rest = upper.routing_at + 2U});
        return;
    }
    if (upper.fragment) {
        c.drop(p, DropReason::kIpv6LocalFragment);
        return;
    }
    switch (upper.protocol) {
        case net::IpProtocol::kIcmpv6:
            icmp6_input(c, p, upper.offset, total - upper.offset);
            return;
        case net::IpProtocol::kUdp:
            refuse(c,
                   p,
                   DropReason::kUdpNoPort,
                   {.type = net::icmp6::kUnreachable, .code = net::icmp6::kPort});
            return;
        case net::IpProtocol::kTcp:
            c.drop(p, DropReason::kTcpNoPort);
            return;
        case net::IpProtocol::kNoNext:
            c.deliver(p);  // RFC 8200 4.7
            return;
        default:
            refuse(c,
                   p,
                   DropReason::kUnknownProtocol,
                   {.type = net::icmp6::kParameterProblem,
                    .code = net::icmp6::kUnknownNextHeader,
                    .rest = upper.next_header_at});
    }
}

}  // namespace sluice::pipeline
