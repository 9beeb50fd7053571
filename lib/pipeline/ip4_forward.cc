// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <rte_prefetch.h>

#include "base/drop_reason.h"
#include "fib/dst.h"
#include "fib/neighbor_map.h"
#include "fib/netdev_view.h"
#include "net/checksum.h"
#include "net/icmp.h"
#include "net/wire.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

namespace {

void reject(Context& c, const Packet& p, DropReason reason, const net::IcmpError& error) noexcept {
    ip4_error(c, p, error);
    c.drop(p, reason);
}

void reject_unreachable(Context& c,
                        const Packet& p,
                        DropReason reason,
                        std::uint8_t code) noexcept {
    reject(c, p, reason, {.type = net::icmp::kUnreachable, .code = code});
}

fib::NeighborKeyWords neighbor_key(const Packet& p, const fib::Dst& dst) noexcept {
    if (dst.type == fib::DstType::kConnected) {
        return fib::NeighborKeyWords::of(dst.out, p.ip4().destination);
    }
    return dst.gateway_is_v6 != 0 ? fib::NeighborKeyWords::of(dst.out, dst.gateway6())
                                  : fib::NeighborKeyWords::of(dst.out, dst.gateway4());
}

// To a neighbour: what a router does to every packet that it forwards (RFC 1812 5.2.1).
void to_neighbor(Context& c, Packet& p, const fib::Dst& dst, std::uint16_t mtu) noexcept {
    net::Ipv4Header& ip = p.ip4();
    const bool originated = p.is(Packet::kOriginated);
    const std::size_t length = ip.total_length.host();
    if (!originated) {
        if (!p.in->forwarding) [[unlikely]] {
            reject_unreachable(c, p, DropReason::kForwardingDisabled, net::icmp::kHost);
            return;
        }
        // RFC 1812 5.3.4: not what came as a broadcast or multicast of the link.
        if (p.is(Packet::kLinkGroup)) [[unlikely]] {
            c.drop(p, DropReason::kL2BroadcastUnicast);
            return;
        }
        // RFC 1812 5.3.1: a packet that would leave with TTL 0 does not.
        if (ip.ttl <= 1) [[unlikely]] {
            reject(c, p, DropReason::kTtlExpired, {.type = net::icmp::kTimeExceeded});
            return;
        }
    }
    if (length > mtu && ip.dont_fragment()) [[unlikely]] {
        // RFC 1191 4: the MTU of the next hop in the low half.
        reject(c,
               p,
               DropReason::kFragmentationNeeded,
               {.type = net::icmp::kUnreachable,
                .code = net::icmp::kFragmentationNeeded,
                .rest = mtu});
        return;
    }
    const std::uint32_t state = dst.state.load(std::memory_order_acquire);
    if (state != fib::Dst::kResolved) [[unlikely]] {
        if ((state & fib::Dst::kResolved) == 0) {
            hold(c, p, neighbor_key(p, dst));
            return;
        }
        report_use(c, neighbor_key(p, dst));
    }
    if (!originated) {
        net::decrement_ttl(ip);
    }
    if (length > mtu) [[unlikely]] {
        ip4_fragment(c, p, dst, mtu);
        return;
    }
    transmit(c, p, dst, length);
}

// RFC 1812 5.3.5, checks.md B: a directed broadcast of one of our links.
void to_broadcast(Context& c, Packet& p, const fib::Dst& dst) noexcept {
    p.flags |= Packet::kIpBroadcast;
    if (p.is(Packet::kOriginated)) {
        c.drop(p, DropReason::kDestinationBroadcast);
    } else if (!p.in->bc_forwarding) {
        ip4_local(c, p);
    } else if (dst.out == p.in->id) {
        c.drop(p, DropReason::kDestinationBroadcast);
    } else {
        to_neighbor(c, p, dst, dst.mtu);
    }
}

void no_way(Context& c, const Packet& p, fib::DstType type) noexcept {
    if (!p.is(Packet::kOriginated) && !p.in->forwarding) {
        reject_unreachable(c, p, DropReason::kForwardingDisabled, net::icmp::kHost);
        return;
    }
    switch (type) {
        case fib::DstType::kUnreachable:
            reject_unreachable(c, p, DropReason::kRouteUnreachable, net::icmp::kHost);
            return;
        case fib::DstType::kProhibit:
            reject_unreachable(c, p, DropReason::kRouteProhibit, net::icmp::kAdminProhibited);
            return;
        case fib::DstType::kBlackhole:
            c.drop(p, DropReason::kRouteBlackhole);
            return;
        default:
            reject_unreachable(c, p, DropReason::kNoRoute, net::icmp::kNet);
    }
}

}  // namespace

void ip4_act(Context& c, Packet& p, const fib::Dst& dst) noexcept {
    switch (dst.type) {
        case fib::DstType::kUnicast:
            to_neighbor(c, p, dst, dst.mtu);
            return;
        case fib::DstType::kConnected: {
            const fib::DstIndex host = c.shared.neighbors.find(neighbor_key(p, dst));
            // The host's own dst knows its netdev's MTU, the prefix's that of its route.
            const fib::Dst& to = host == fib::kNoRoute ? dst : c.shared.dsts[host];
            to_neighbor(c, p, to, std::min(to.mtu, dst.mtu));
            return;
        }
        case fib::DstType::kLocal:
            // RFC 1122 3.3.6: not what a broadcast frame may carry.
            if (p.is(Packet::kLinkGroup)) {
                c.drop(p, DropReason::kL2BroadcastUnicast);
            } else {
                ip4_local(c, p);
            }
            return;
        case fib::DstType::kBroadcast:
            to_broadcast(c, p, dst);
            return;
        default:
            no_way(c, p, dst.type);
    }
}

void ip4_forward(Context& c, Batch4& batch) noexcept {
    for (std::size_t i = 0; i < batch.count; ++i) {
        rte_prefetch0(&c.shared.dsts[batch.dsts[i]]);
    }
    for (std::size_t i = 0; i < batch.count; ++i) {
        ip4_act(c, batch.packets[i], c.shared.dsts[batch.dsts[i]]);
    }
}

}  // namespace sluice::pipeline
