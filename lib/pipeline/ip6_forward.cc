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
#include "net/icmp.h"
#include "net/wire.h"
#include "pipeline/stages.h"

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

void to_neighbor(Context& c, Packet& p, const fib::Dst& dst, std::uint16_t mtu) noexcept {
    net::Ipv6Header& ip = p.ip6();
    const bool originated = p.is(Packet::kOriginated);
    if (!originated && refuse_transit(c, p)) {
        return;
    }
    const std::size_t length = sizeof ip + ip.payload_length.host();
    if (length > mtu) [[unlikely]] {
        reject(c, p, DropReason::kPacketTooBig, {.type = net::icmp6::kPacketTooBig, .rest = mtu});
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
        --ip.hop_limit;
    }
    transmit(c, p, dst, length);
}

void no_way(Context& c, const Packet& p, fib::DstType type) noexcept {
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
        default:
            reject_unreachable(c, p, DropReason::kNoRoute, net::icmp6::kNoRoute);
    }
}

}  // namespace

void ip6_act(Context& c, Packet& p, const fib::Dst& dst) noexcept {
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
            if (p.is(Packet::kLinkGroup)) {
                c.drop(p, DropReason::kL2BroadcastUnicast);
            } else {
                ip6_local(c, p);
            }
            return;
        default:
            no_way(c, p, dst.type);
    }
}

void ip6_forward(Context& c, Batch6& batch) noexcept {
    for (std::size_t i = 0; i < batch.count; ++i) {
        rte_prefetch0(&c.shared.dsts[batch.dsts[i]]);
    }
    for (std::size_t i = 0; i < batch.count; ++i) {
        ip6_act(c, batch.packets[i], c.shared.dsts[batch.dsts[i]]);
    }
}

}  // namespace sluice::pipeline
