// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>

#include "base/drop_reason.h"
#include "fib/netdev_view.h"
#include "net/validate.h"
#include "net/wire.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

namespace {

DropReason check(const Packet& p) noexcept {
    const fib::NetdevView& in = *p.in;
    if (!in.has_ipv6) {
        return DropReason::kIpDisabled;
    }
    const DropReason header = net::validate_ipv6(p.l3_span(), p.l3_bytes());
    if (header != DropReason::kNone) {
        return header;
    }
    const net::Ipv6Header& ip = p.ip6();
    // RFC 4862 5.4.2: duplicate address detection asks from the unspecified address.
    const bool detection = ip.source.is_unspecified() && ip.destination.is_multicast();
    if (!detection) {
        const DropReason source = net::martian_source(ip.source);
        if (source != DropReason::kNone) {
            return source;
        }
    }
    // A link-local address is ours on its own link only (RFC 4291 2.5.6).
    if (ip.source.is_link_local() ? in.owns(ip.source) : in.local->contains(ip.source)) {
        return DropReason::kMartianSourceOwn;
    }
    return net::martian_destination(ip.destination);
}

// Scope decides before the table: groups and link-local addresses mean the ingress link.
// False: the table decides.
bool decide_by_scope(Context& c, Packet& p) noexcept {
    const net::Ipv6Addr& destination = p.ip6().destination;
    if (destination.is_multicast()) {
        if (p.in->in_group(destination)) {
            ip6_local(c, p);
        } else {
            c.drop(p, DropReason::kDestinationMulticast);
        }
        return true;
    }
    if (destination.is_link_local()) {
        if (p.in->owns(destination)) {
            ip6_local(c, p);
        } else {
            // RFC 4291 2.5.6: never forwarded.
            c.drop(p, DropReason::kDestinationLinkLocal);
        }
        return true;
    }
    return false;
}

}  // namespace

bool ip6_input(Context& c, Packet& p) noexcept {
    const DropReason reason = check(p);
    if (reason != DropReason::kNone) {
        c.drop(p, reason);
        return false;
    }
    return !decide_by_scope(c, p);
}

}  // namespace sluice::pipeline
