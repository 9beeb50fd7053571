// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>

#include "base/drop_reason.h"
#include "fib/netdev_view.h"
#include "net/icmp.h"
#include "net/validate.h"
#include "net/wire.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

namespace {

constexpr net::Ipv4Addr kAllHosts{{224, 0, 0, 1}};

// RFC 7126 4.3, 4.4: source routing is dropped; other options pass untouched (checks.md 130).
DropReason check_options(Context& c, const Packet& p) noexcept {
    const net::OptionVerdict options =
        net::check_ipv4_options(p.l3_span().first(p.ip4().header_bytes()));
    if (options.reason == DropReason::kIpv4BadOption) {
        ip4_error(
            c,
            p,
            {.type = net::icmp::kParameterProblem, .rest = std::uint32_t{options.pointer} << 24U});
    }
    return options.reason;
}

DropReason check(Context& c, const Packet& p) noexcept {
    const fib::NetdevView& in = *p.in;
    if (!in.has_ipv4) {
        return DropReason::kIpDisabled;
    }
    const DropReason header =
        net::validate_ipv4(p.l3_span(), p.l3_bytes(), p.is(Packet::kChecksumGood));
    if (header != DropReason::kNone) {
        return header;
    }
    const net::Ipv4Header& ip = p.ip4();
    DropReason reason = net::martian_source(ip.source, in.route_localnet);
    if (reason != DropReason::kNone) {
        return reason;
    }
    if (in.local->contains(ip.source)) {
        return DropReason::kMartianSourceOwn;
    }
    reason = net::martian_destination(ip.destination, in.route_localnet);
    if (reason != DropReason::kNone) {
        return reason;
    }
    if (ip.destination.is_reserved() && !in.forward_class_e &&
        !ip.destination.is_limited_broadcast()) {
        return DropReason::kDestinationReserved;
    }
    return ip.header_bytes() > sizeof(net::Ipv4Header) ? check_options(c, p) : DropReason::kNone;
}

}  // namespace

bool ip4_input(Context& c, Packet& p) noexcept {
    const DropReason reason = check(c, p);
    if (reason != DropReason::kNone) {
        c.drop(p, reason);
        return false;
    }
    const net::Ipv4Addr destination = p.ip4().destination;
    if (destination.is_limited_broadcast() || destination == kAllHosts) {
        ip4_local(c, p);
        return false;
    }
    if (destination.is_multicast()) {
        c.drop(p, DropReason::kDestinationMulticast);
        return false;
    }
    return true;
}

}  // namespace sluice::pipeline
