// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <limits>

#include "fib/dst.h"
#include "fib/neighbor_map.h"
#include "fib/netdev_view.h"
#include "net/icmp.h"
#include "net/wire.h"
#include "pipeline/stages.h"

/// ICMP messages about what this router itself sent. It keeps no sessions, so all that can be
/// checked of a quote is that it is a packet of ours of the one kind that we send (RFC 5927 4.1):
/// from an own address, ICMP. The control thread bounds how many it believes.
namespace sluice::pipeline {

namespace {

bool is_sender_the_gateway(const Context& c,
                           const Packet& p,
                           fib::DstIndex index,
                           const net::IpAddr& sender) noexcept {
    const fib::Dst& dst = c.shared.dsts[index];
    if (dst.type != fib::DstType::kUnicast || dst.out != p.in->id) {
        return false;
    }
    return sender.is_v4() ? dst.gateway_is_v6 == 0 && dst.gateway4() == sender.v4()
                          : dst.gateway6() == sender.v6();
}

}  // namespace

void ip4_learn(Context& c, const Packet& p, std::size_t offset) noexcept {
    const auto* icmp = net::header_at<net::IcmpHeader>(p.l3_span(), offset);
    const auto* quoted =
        net::header_at<net::Ipv4Header>(p.l3_span(), offset + sizeof(net::IcmpHeader));
    if (icmp == nullptr || quoted == nullptr || quoted->version() != 4 ||
        quoted->protocol != net::IpProtocol::kIcmp || !p.in->local->contains(quoted->source)) {
        return;
    }
    if (icmp->type == net::icmp::kUnreachable) {
        if (icmp->code == net::icmp::kFragmentationNeeded) {
            // RFC 1191 4: the MTU is the low half.
            c.events.push({.kind = WorkerEvent::Kind::kPathMtu,
                           .mtu = static_cast<std::uint16_t>(icmp->rest.host()),
                           .ingress = p.in->id,
                           .key = fib::NeighborKeyWords::of(p.in->domain, quoted->destination)});
        }
        return;
    }
    // RFC 1122 3.2.2.2: from the first hop that we use now, to another one on the same link. A
    // router takes none (RFC 1812 5.2.7.2).
    const auto gateway = net::Ipv4Addr::from_host(icmp->rest.host());
    if (p.in->forwarding || !p.in->on_link(gateway) || p.in->local->contains(gateway) ||
        !is_sender_the_gateway(
            c, p, ip4_decide_own(c, *p.in, quoted->destination), net::IpAddr{p.ip4().source})) {
        return;
    }
    c.events.push({.kind = WorkerEvent::Kind::kRedirect,
                   .ingress = p.in->id,
                   .key = fib::NeighborKeyWords::of(p.in->domain, quoted->destination),
                   .gateway = net::IpAddr{gateway}});
}

void ip6_learn(Context& c, const Packet& p, std::size_t offset) noexcept {
    const auto* icmp = net::header_at<net::IcmpHeader>(p.l3_span(), offset);
    if (icmp == nullptr) {
        return;
    }
    if (icmp->type == net::icmp6::kPacketTooBig) {
        const auto* quoted =
            net::header_at<net::Ipv6Header>(p.l3_span(), offset + sizeof(net::IcmpHeader));
        if (quoted == nullptr || quoted->version() != 6 || !p.in->local->contains(quoted->source)) {
            return;
        }
        const std::uint32_t mtu = icmp->rest.host();
        if (mtu <= std::numeric_limits<std::uint16_t>::max()) {
            c.events.push({.kind = WorkerEvent::Kind::kPathMtu,
                           .mtu = static_cast<std::uint16_t>(mtu),
                           .ingress = p.in->id,
                           .key = fib::NeighborKeyWords::of(p.in->domain, quoted->destination)});
        }
        return;
    }
    // RFC 4861 8.1: from the link-local address of the first hop that we use now, hop limit 255;
    // the target is link-local, or the destination itself.
    struct [[gnu::may_alias]] Redirect {
        net::IcmpHeader icmp;
        net::Ipv6Addr target;
        net::Ipv6Addr destination;
    };
    constexpr std::uint8_t kHopLimit = 255;
    const auto* redirect = net::header_at<Redirect>(p.l3_span(), offset);
    const net::Ipv6Header& ip = p.ip6();
    if (redirect == nullptr || icmp->code != 0 || ip.hop_limit != kHopLimit ||
        !ip.source.is_link_local() || redirect->destination.is_multicast() ||
        (!redirect->target.is_link_local() && redirect->target != redirect->destination) ||
        !is_sender_the_gateway(
            c, p, ip6_decide_own(c, *p.in, redirect->destination), net::IpAddr{ip.source})) {
        return;
    }
    c.events.push({.kind = WorkerEvent::Kind::kRedirect,
                   .ingress = p.in->id,
                   .key = fib::NeighborKeyWords::of(p.in->domain, redirect->destination),
                   .gateway = net::IpAddr{redirect->target}});
}

}  // namespace sluice::pipeline
