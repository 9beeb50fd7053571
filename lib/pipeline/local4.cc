// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <span>

#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "dpdk/mbuf.h"
#include "fib/netdev_view.h"
#include "net/checksum.h"
#include "net/icmp.h"
#include "net/wire.h"
#include "pipeline/chain_sum.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

namespace {

// To a unicast address of ours, which can then be the answer's source?
bool to_unicast(const Packet& p) noexcept {
    const net::Ipv4Addr& a = p.ip4().destination;
    return !a.is_multicast() && !a.is_limited_broadcast() && !p.is(Packet::kIpBroadcast);
}

// RFC 1812 4.3.3.6: the request becomes the reply, options and data as they came.
void answer_echo(Context& c,
                 Packet& p,
                 net::IcmpHeader& icmp,
                 std::size_t header,
                 std::size_t payload) noexcept {
    net::Ipv4Header& ip = p.ip4();
    net::Ipv4Addr from = ip.destination;
    if (!to_unicast(p)) {
        const net::Ipv4Addr* own = p.in->source_for(ip.source);
        if (own == nullptr) {
            c.deliver(p);
            return;
        }
        from = *own;
    }
    ip.destination = ip.source;
    ip.source = from;
    ip.ttl = 64;
    ip.flags_fragment = {};
    ip.id = net::Be16::from_host(c.ipv4_id++);
    ip.checksum = {};
    ip.checksum = net::internet_checksum({p.l3, ip.header_bytes()});
    // In full: an update from type 8 to type 0 (RFC 1624) is wrong for a reply that is all zeros.
    icmp.type = net::icmp::kEchoReply;
    icmp.checksum = {};
    icmp.checksum = net::fold_checksum(sum_chain(*p.m, p.l2_bytes + header, payload));

    stats::bump(c.stats.netdev(p.book).delivered);
    rte_pktmbuf_adj(p.m, p.l2_bytes);
    ip4_originate(c, p.m, *p.in);
}

void icmp_input(Context& c, Packet& p, std::size_t header, std::size_t payload) noexcept {
    auto* icmp = dpdk::header_at<net::IcmpHeader>(*p.m, p.l2_bytes + header);
    if (payload < sizeof(net::IcmpHeader) || icmp == nullptr) {
        c.drop(p, DropReason::kLocalTooShort);
        return;
    }
    if (net::fold_checksum(sum_chain(*p.m, p.l2_bytes + header, payload)).raw() != 0) {
        c.drop(p, DropReason::kIcmpBadChecksum);
        return;
    }
    switch (icmp->type) {
        case net::icmp::kEcho:
            answer_echo(c, p, *icmp, header, payload);
            return;
        case net::icmp::kUnreachable:
        case net::icmp::kRedirect:
            ip4_learn(c, p, header);
            c.deliver(p);
            return;
        case net::icmp::kEchoReply:
        case net::icmp::kSourceQuench:
        case net::icmp::kTimeExceeded:
        case net::icmp::kParameterProblem:
            c.deliver(p);
            return;
        default:
            c.drop(p, DropReason::kIcmpUnknownType);
    }
}

void refuse(Context& c, const Packet& p, DropReason reason, std::uint8_t code) noexcept {
    ip4_error(c, p, {.type = net::icmp::kUnreachable, .code = code});
    c.drop(p, reason);
}

}  // namespace

void ip4_local(Context& c, Packet& p) noexcept {
    const net::Ipv4Header& ip = p.ip4();
    if (p.is(Packet::kOriginated)) {
        // We do not talk to ourselves: an answer to a spoofed own address ends here.
        c.drop(p, DropReason::kMartianSourceOwn);
        return;
    }
    if (ip.is_fragment()) {
        c.drop(p, DropReason::kIpv4LocalFragment);
        return;
    }
    const std::size_t header = ip.header_bytes();
    const std::size_t payload = ip.total_length.host() - header;
    trim_to(*p.m, p.l2_bytes + ip.total_length.host());
    switch (ip.protocol) {
        case net::IpProtocol::kIcmp:
            icmp_input(c, p, header, payload);
            return;
        case net::IpProtocol::kUdp:
            if (payload < sizeof(net::UdpHeader)) {
                c.drop(p, DropReason::kLocalTooShort);
            } else {
                refuse(c, p, DropReason::kUdpNoPort, net::icmp::kPort);
            }
            return;
        case net::IpProtocol::kTcp:
            c.drop(p, DropReason::kTcpNoPort);
            return;
        default:
            refuse(c, p, DropReason::kUnknownProtocol, net::icmp::kProtocol);
    }
}

}  // namespace sluice::pipeline
