// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/drop_reason.h"
#include "fib/dst.h"
#include "fib/neighbor_map.h"
#include "fib/netdev_view.h"
#include "net/checksum.h"
#include "net/icmp.h"
#include "net/wire.h"
#include "pipeline/forward_batch.h"
#include "pipeline/stages.h"
#include "stats/counters.h"

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
Outcome to_neighbor(Context& c, Packet& p, const fib::Dst& dst, std::uint16_t mtu) noexcept {
    net::Ipv4Header& ip = p.ip4();
    const bool originated = p.is(Packet::kOriginated);
    const std::size_t length = ip.total_length.host();
    const std::uint32_t state = dst.state.load(std::memory_order_acquire);
    if (state != fib::Dst::kResolved && !dst.valid(state, c.now_s())) [[unlikely]] {
        return Outcome::kInvalid;
    }
    if (!originated) {
        if (!p.in->forwarding) [[unlikely]] {
            reject_unreachable(c, p, DropReason::kForwardingDisabled, net::icmp::kHost);
            return Outcome::kEnded;
        }
        // RFC 1812 5.3.4: not what came as a broadcast or multicast of the link.
        if (p.is(Packet::kLinkGroup)) [[unlikely]] {
            c.drop(p, DropReason::kL2BroadcastUnicast);
            return Outcome::kEnded;
        }
        // RFC 1812 5.3.1: a packet that would leave with TTL 0 does not.
        if (ip.ttl <= 1) [[unlikely]] {
            reject(c, p, DropReason::kTtlExpired, {.type = net::icmp::kTimeExceeded});
            return Outcome::kEnded;
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
        return Outcome::kEnded;
    }
    if (!originated && dst.out == p.in->id && p.in->send_redirects) [[unlikely]] {
        ip4_redirect(c, p, dst);
    }
    if (state != fib::Dst::kResolved) [[unlikely]] {
        if ((state & fib::Dst::kResolved) == 0) {
            hold(c, p, neighbor_key(p, dst));
            return Outcome::kEnded;
        }
        if ((state & fib::Dst::kReportUse) != 0) {
            report_use(c, neighbor_key(p, dst));
        }
    }
    if (!originated) {
        net::decrement_ttl(ip);
    }
    if (dst.counter != 0) {
        stats::bump(c.stats.next_hop(dst.counter));
    }
    if (length > mtu) [[unlikely]] {
        ip4_fragment(c, p, dst, mtu);
        return Outcome::kPassed;
    }
    transmit(c, p, dst, length);
    return Outcome::kPassed;
}

// RFC 1812 5.3.5, checks.md B: a directed broadcast of one of our links.
Outcome to_broadcast(Context& c, Packet& p, const fib::Dst& dst) noexcept {
    p.flags |= Packet::kIpBroadcast;
    if (p.is(Packet::kOriginated)) {
        c.drop(p, DropReason::kDestinationBroadcast);
    } else if (!p.in->bc_forwarding) {
        ip4_local(c, p);
    } else if (dst.out == p.in->id) {
        c.drop(p, DropReason::kDestinationBroadcast);
    } else if (to_neighbor(c, p, dst, dst.mtu) == Outcome::kInvalid) {
        return Outcome::kInvalid;
    }
    return Outcome::kEnded;  // checks.md 17, 113: never remembered
}

void no_way(Context& c, const Packet& p, fib::DstType type) noexcept {
    if (type == fib::DstType::kSourceInvalid) {
        c.drop(p, DropReason::kSourceInvalid);
        return;
    }
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
        case fib::DstType::kRouteLoop:
            c.drop(p, DropReason::kRouteLoop);
            return;
        case fib::DstType::kGroupEmpty:
            reject_unreachable(c, p, DropReason::kGroupEmpty, net::icmp::kHost);
            return;
        default:
            reject_unreachable(c, p, DropReason::kNoRoute, net::icmp::kNet);
    }
}

}  // namespace

Outcome ip4_act(Context& c, Packet& p, const fib::Dst& dst) noexcept {
    switch (dst.type) {
        case fib::DstType::kUnicast:
            return to_neighbor(c, p, dst, dst.mtu);
        case fib::DstType::kConnected:
            return to_connected(
                c, dst, neighbor_key(p, dst), [&](const fib::Dst& to, std::uint16_t mtu) {
                    return to_neighbor(c, p, to, mtu);
                });
        case fib::DstType::kLocal:
            if ((dst.state.load(std::memory_order_relaxed) & fib::Dst::kGone) != 0) {
                return Outcome::kInvalid;
            }
            // RFC 1122 3.3.6: not what a broadcast frame may carry.
            if (p.is(Packet::kLinkGroup)) {
                c.drop(p, DropReason::kL2BroadcastUnicast);
                return Outcome::kEnded;
            }
            ip4_local(c, p);
            return Outcome::kPassed;
        case fib::DstType::kBroadcast:
            return to_broadcast(c, p, dst);
        default:
            no_way(c, p, dst.type);
            return Outcome::kEnded;
    }
}

void ip4_forward(Context& c, Batch4& batch) noexcept {
    forward_batch<net::Ipv4Header>(
        c, batch, c.caches.destinations4, c.stats.worker().caches[0], ip4_act, ip4_route);
}

}  // namespace sluice::pipeline
