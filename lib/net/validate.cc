// SPDX-License-Identifier: BSD-3-Clause
#include "net/validate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::net {

DropReason validate_ipv4_any(std::span<const std::uint8_t> l3,
                             std::size_t packet_bytes,
                             bool checksum_known_good) noexcept {
    // RFC 1812 5.2.2 (1): the link layer's length holds the smallest header.
    const auto* ip = header_at<Ipv4Header>(l3);
    if (ip == nullptr || packet_bytes < sizeof(Ipv4Header)) {
        return DropReason::kIpv4TooShort;
    }
    // RFC 1812 5.2.2 (3)
    if (ip->version() != 4) {
        return DropReason::kIpv4BadVersion;
    }
    // RFC 1812 5.2.2 (4): IHL says at least 20 bytes.
    const std::size_t header_bytes = ip->header_bytes();
    if (header_bytes < sizeof(Ipv4Header)) {
        return DropReason::kIpv4BadHeaderLength;
    }
    // RFC 1812 5.2.2 (5): total length covers the header.
    const std::size_t total_length = ip->total_length.host();
    if (total_length < header_bytes) {
        return DropReason::kIpv4BadTotalLength;
    }
    // RFC 1812 5.2.2: the frame holds the whole datagram; more is padding.
    if (total_length > packet_bytes) {
        return DropReason::kIpv4Truncated;
    }
    if (header_bytes > l3.size()) {
        return DropReason::kIpv4TooShort;
    }
    // RFC 1812 5.2.2 (2). After the lengths, so that the sum stays inside the packet.
    if (!checksum_known_good && !checksum_ok(l3.first(header_bytes))) {
        return DropReason::kIpv4BadChecksum;
    }
    // RFC 1858 3.2.2, RFC 3128: a fragment at offset 1 (8 bytes) can only mean to rewrite or to
    // hide the TCP flags.
    constexpr unsigned kTinyOffsetBytes = 8;
    if (ip->protocol == IpProtocol::kTcp && ip->fragment_offset_bytes() == kTinyOffsetBytes) {
        return DropReason::kIpv4TinyFragment;
    }
    return DropReason::kNone;
}

DropReason validate_ipv6(std::span<const std::uint8_t> l3, std::size_t packet_bytes) noexcept {
    // RFC 8200 3
    const auto* ip = header_at<Ipv6Header>(l3);
    if (ip == nullptr || packet_bytes < sizeof(Ipv6Header)) {
        return DropReason::kIpv6TooShort;
    }
    // RFC 8200 3: Version.
    if (ip->version() != 6) {
        return DropReason::kIpv6BadVersion;
    }
    // RFC 8200 3: Payload Length is the rest of the packet; more is padding.
    if (ip->payload_length.host() > packet_bytes - sizeof(Ipv6Header)) {
        return DropReason::kIpv6Truncated;
    }
    return DropReason::kNone;
}

OptionVerdict check_ipv4_options(std::span<const std::uint8_t> header) noexcept {
    constexpr std::uint8_t kEndOfList = 0;
    constexpr std::uint8_t kNoOperation = 1;
    constexpr std::uint8_t kLooseSourceRoute = 131;
    constexpr std::uint8_t kStrictSourceRoute = 137;
    const auto bad_at = [](std::size_t pointer) {
        return OptionVerdict{DropReason::kIpv4BadOption, static_cast<std::uint8_t>(pointer)};
    };
    std::size_t at = sizeof(Ipv4Header);
    while (at < header.size() && header[at] != kEndOfList) {
        const std::uint8_t type = header[at];
        if (type == kNoOperation) {
            ++at;
            continue;
        }
        // RFC 791 3.1: every other option has a length octet, which counts type and length too.
        if (header.size() - at < 2) {
            return bad_at(at);
        }
        const std::size_t length = header[at + 1];
        if (length < 2 || length > header.size() - at) {
            return bad_at(at + 1);
        }
        // RFC 7126 4.3, 4.4: drop packets that choose their route.
        if (type == kLooseSourceRoute || type == kStrictSourceRoute) {
            return {DropReason::kIpv4SourceRoute, static_cast<std::uint8_t>(at)};
        }
        at += length;
    }
    return {};
}

DropReason martian_source(const Ipv4Addr& source, bool route_localnet) noexcept {
    // RFC 1812 5.3.7 and 4.2.2.11; 240.0.0.0/4 but its last address passes as unicast.
    if (source.is_this_network()) {
        return DropReason::kMartianSourceZero;
    }
    if (source.is_loopback() && !route_localnet) {
        return DropReason::kMartianSourceLoopback;
    }
    if (source.is_multicast()) {
        return DropReason::kMartianSourceMulticast;
    }
    if (source.is_limited_broadcast()) {
        return DropReason::kMartianSourceBroadcast;
    }
    return DropReason::kNone;
}

DropReason martian_source(const Ipv6Addr& source) noexcept {
    // RFC 4291 2.5.2, 2.5.3, 2.7: none of these is ever the source of a packet on a link, but ::
    // of neighbour discovery, which the caller looks for first.
    if (source.is_unspecified()) {
        return DropReason::kMartianSourceZero;
    }
    if (source.is_loopback()) {
        return DropReason::kMartianSourceLoopback;
    }
    if (source.is_multicast()) {
        return DropReason::kMartianSourceMulticast;
    }
    return DropReason::kNone;
}

DropReason martian_destination(const Ipv4Addr& destination, bool route_localnet) noexcept {
    // RFC 1812 5.3.7, RFC 1122 3.2.1.3 (a), (g)
    if (destination.is_this_network()) {
        return DropReason::kMartianDestinationZero;
    }
    if (destination.is_loopback() && !route_localnet) {
        return DropReason::kMartianDestinationLoopback;
    }
    return DropReason::kNone;
}

DropReason martian_destination(const Ipv6Addr& destination) noexcept {
    // RFC 4291 2.5.2, 2.5.3
    if (destination.is_unspecified()) {
        return DropReason::kMartianDestinationZero;
    }
    if (destination.is_loopback()) {
        return DropReason::kMartianDestinationLoopback;
    }
    return DropReason::kNone;
}

namespace {

/// Bytes of the extension header at `at`; 0 if it runs out of `packet`.
std::size_t extension_bytes(std::span<const std::uint8_t> packet,
                            std::size_t at,
                            IpProtocol kind) noexcept {
    const auto* extension = header_at<Ipv6Extension>(packet, at);
    if (extension == nullptr) {
        return 0;
    }
    std::size_t bytes = (extension->length + 1U) * 8U;  // RFC 8200 4.3, 4.4, 4.6
    if (kind == IpProtocol::kAh) {
        bytes = (extension->length + 2U) * 4U;  // RFC 4302 2.2
    } else if (kind == IpProtocol::kIpv6Fragment) {
        bytes = sizeof(Ipv6FragmentHeader);  // RFC 8200 4.5: the second byte is reserved
    }
    return bytes <= packet.size() - at ? bytes : 0;
}

bool is_walked(IpProtocol kind, bool first) noexcept {
    switch (kind) {
        case IpProtocol::kHopByHop:
            // RFC 8200 4: anywhere but first it is treated as a header that nobody knows.
            return first;
        case IpProtocol::kIpv6Route:
        case IpProtocol::kIpv6Fragment:
        case IpProtocol::kAh:
        case IpProtocol::kDestinationOptions:
            return true;
        default:
            return false;
    }
}

}  // namespace

UpperLayer find_upper_layer(std::span<const std::uint8_t> l3) noexcept {
    UpperLayer upper;
    const auto* ip = header_at<Ipv6Header>(l3);
    if (ip == nullptr) {
        upper.reason = DropReason::kIpv6BadExtension;
        return upper;
    }
    constexpr std::size_t kMaxOffset = 0xffff;  // what UpperLayer can name
    const std::size_t packet_bytes = sizeof(Ipv6Header) + ip->payload_length.host();
    const auto packet = l3.first(std::min({l3.size(), packet_bytes, kMaxOffset}));
    std::size_t at = sizeof(Ipv6Header);
    std::size_t named_at = offsetof(Ipv6Header, next_header);
    IpProtocol kind = ip->next_header;
    for (unsigned walked = 0; is_walked(kind, walked == 0) && upper.first_fragment; ++walked) {
        const std::size_t bytes = extension_bytes(packet, at, kind);
        if (bytes == 0 || walked == kMaxExtensionHeaders) {
            upper.reason = DropReason::kIpv6BadExtension;
            break;
        }
        if (kind == IpProtocol::kIpv6Route && !upper.source_routed) {
            const auto* routing = header_at<Ipv6RoutingHeader>(packet, at);
            upper.source_routed = routing->segments_left > 0;
            upper.routing_at = upper.source_routed ? static_cast<std::uint16_t>(at) : 0;
        } else if (kind == IpProtocol::kIpv6Fragment) {
            const auto* fragment = header_at<Ipv6FragmentHeader>(packet, at);
            upper.fragment = upper.fragment || fragment->more() || fragment->offset_bytes() != 0;
            upper.first_fragment = fragment->offset_bytes() == 0;
        }
        kind = header_at<Ipv6Extension>(packet, at)->next_header;
        named_at = at;
        at += bytes;
    }
    upper.protocol = kind;
    upper.offset = static_cast<std::uint16_t>(at);
    upper.next_header_at = static_cast<std::uint16_t>(named_at);
    return upper;
}

}  // namespace sluice::net
