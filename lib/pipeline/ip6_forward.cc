// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/drop_reason.h"
#include "fib/dst.h"
#include "fib/neighbor_map.h"
#include "fib/netdev_view.h"
#include "net/icmp.h"
#include "net/wire.h"
#include "pipeline/forward_batch.h"
#include "pipeline/stages.h"
#include "stats/counters.h"

namespace sluice::pipeline {

namespace {

void reject(Context& c, const Packet& p, DropReason reason, const net::IcmpError& error) noexcept {
    ip6_error(c, p, error);
    c.drop(p, reason);
}

void reject_unreachable(Context& c,
                        const Packet& p,
                        DropReason reason,
                        std::uint8_t code) noexcept {
    reject(c, p, reason, {.type = net::icmp6::kUnreachable, .code = code});
}

fib::NeighborKeyWords neighbor_key(const Packet& p, const fib::Dst& dst) noexcept {
    return fib::NeighborKeyWords::of(
        dst.out, dst.type == fib::DstType::kConnected ? p.ip6().destination : dst.gateway6());
}

// What stops a packet that has a way (RFC 8200 3, RFC 4291 2.5.6). True: dealt with.
bool refuse_transit(Context& c, const Packet& p) noexcept {
    const net::Ipv6Header& ip = p.ip6();
    if (!p.in->forwarding) [[unlikely]] {
        c.drop(p, DropReason::kForwardingDisabled);
        return true;
    }
    if (p.is(Packet::kLinkGroup)) [[unlikely]] {
        c.drop(p, DropReason::kL2BroadcastUnicast);
        return true;
    }
    if (ip.source.is_link_local()) [[unlikely]] {
        reject_unreachable(c, p, DropReason::kMartianSourceLinkLocal, net::icmp6::kBeyondScope);
        return true;
    }
    if (ip.hop_limit <= 1) [[unlikely]] {
        reject(c, p, DropReason::kTtlExpired, {.type = net::icmp6::kTimeExceeded});
        return true;
    }
    return false;
}

Outcome to_neighbor(Context& c, Packet& p, const fib::Dst& dst, std::uint16_t mtu) noexcept {
    net::Ipv6Header& ip = p.ip6();
    const bool originated = p.is(Packet::kOriginated);
    const std::uint32_t state = dst.state.load(std::memory_order_acquire);
    if (state != fib::Dst::kResolved && !dst.valid(state, c.now_s())) [[unlikely]] {
        return Outcome::kInvalid;
    }
    if (!originated && refuse_transit(c, p)) {
        return Outcome::kEnded;
    }
    const std::size_t length = sizeof ip + ip.payload_length.host();
    if (length > mtu) [[unlikely]] {
        reject(c, p, DropReason::kPacketTooBig, {.type = net::icmp6::kPacketTooBig, .rest = mtu});
        return Outcome::kEnded;
    }
    if (!originated && dst.out == p.in->id && p.in->send_redirects) [[unlikely]] {
        ip6_redirect(c, p, dst);
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
        --ip.hop_limit;
    }
    if (dst.counter != 0) {
        stats::bump(c.stats.next_hop(dst.counter));
    }
    transmit(c, p, dst, length);
    return Outcome::kPassed;
}

void no_way(Context& c, const Packet& p, fib::DstType type) noexcept {
    if (type == fib::DstType::kSourceInvalid) {
        c.drop(p, DropReason::kSourceInvalid);
        return;
    }
    if (!p.is(Packet::kOriginated) && !p.in->forwarding) {
        c.drop(p, DropReason::kForwardingDisabled);
        return;
    }
    switch (type) {
        case fib::DstType::kUnreachable:
            reject_unreachable(c, p, DropReason::kRouteUnreachable, net::icmp6::kNoRoute);
            return;
        case fib::DstType::kProhibit:
            reject_unreachable(c, p, DropReason::kRouteProhibit, net::icmp6::kAdminProhibited);
            return;
        case fib::DstType::kBlackhole:
            c.drop(p, DropReason::kRouteBlackhole);
            return;
        case fib::DstType::kRouteLoop:
            c.drop(p, DropReason::kRouteLoop);
            return;
        case fib::DstType::kGroupEmpty:
            reject_unreachable(c, p, DropReason::kGroupEmpty, net::icmp6::kNoRoute);
            return;
        default:
            reject_unreachable(c, p, DropReason::kNoRoute, net::icmp6::kNoRoute);
    }
}

}  // namespace

Outcome ip6_act(Context& c, Packet& p, const fib::Dst& dst) noexcept {
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
            if (p.is(Packet::kLinkGroup)) {
                c.drop(p, DropReason::kL2BroadcastUnicast);
                return Outcome::kEnded;
            }
            ip6_local(c, p);
            return Outcome::kPassed;
        default:
            no_way(c, p, dst.type);
            return Outcome::kEnded;
    }
}

void ip6_forward(Context& c, Batch6& batch) noexcept {
    forward_batch<net::Ipv6Header>(
        c, batch, c.caches.destinations6, c.stats.worker().caches[1], ip6_act, ip6_route);
}

}  // namespace sluice::pipeline
