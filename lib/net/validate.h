// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/drop_reason.h"
#include "net/checksum.h"
#include "net/wire.h"

/// Pure checks of one packet. `l3` is what is contiguous of the packet from its IP header on (the
/// first mbuf segment), `packet_bytes` the whole packet's length from there, padding included:
/// lengths are compared with packet_bytes, reads stay within l3. kNone is "goes on".
namespace sluice::net {

/// The whole of validate_ipv4, for the packets that are not of the common shape.
DropReason validate_ipv4_any(std::span<const std::uint8_t> l3,
                             std::size_t packet_bytes,
                             bool checksum_known_good) noexcept;

/// RFC 1812 5.2.2 in this order: length, version, IHL, total length, frame, checksum; then fragment
/// offset 1 with a TCP header cut (RFC 3128). `checksum_known_good` skips the sum (the NIC did it).
/// A header that continues past `l3` is kIpv4TooShort.
inline DropReason validate_ipv4(std::span<const std::uint8_t> l3,
                                std::size_t packet_bytes,
                                bool checksum_known_good = false) noexcept {
    const auto* ip = header_at<Ipv4Header>(l3);
    // Whole, without options, unfragmented, right: nearly every packet takes this one branch. What
    // does not is looked at again from the start, so that the reasons are found in one place.
    if (ip != nullptr && ip->version_ihl == Ipv4Header::kNoOptions && !ip->is_fragment() &&
        ip->total_length.host() >= sizeof(Ipv4Header) && ip->total_length.host() <= packet_bytes &&
        (checksum_known_good || checksum_ok(*ip))) [[likely]] {
        return DropReason::kNone;
    }
    return validate_ipv4_any(l3, packet_bytes, checksum_known_good);
}

/// RFC 8200 3. Extension headers are not looked at (transit must not).
DropReason validate_ipv6(std::span<const std::uint8_t> l3, std::size_t packet_bytes) noexcept;

/// RFC 791 3.1, RFC 1812 5.2.4.1, 5.3.13: walks the options of a validated header. kIpv4BadOption
/// (then `pointer` is the offset of the bad byte, for a parameter problem) or kIpv4SourceRoute.
struct OptionVerdict {
    DropReason reason = DropReason::kNone;
    std::uint8_t pointer = 0;
};
OptionVerdict check_ipv4_options(std::span<const std::uint8_t> header) noexcept;

/// What of an address makes a packet a martian (RFC 1812 5.3.7, 5.3.4; dst.md C-20, C-21).
/// `route_localnet` admits 127/8. Own addresses and link-local scope are the caller's business.
DropReason martian_source(const Ipv4Addr& source, bool route_localnet) noexcept;
DropReason martian_source(const Ipv6Addr& source) noexcept;
DropReason martian_destination(const Ipv4Addr& destination, bool route_localnet) noexcept;
DropReason martian_destination(const Ipv6Addr& destination) noexcept;

/// More extension headers than this make a packet malformed (RFC 8200 4.1 has each kind at most
/// once, destination options twice: seven).
inline constexpr unsigned kMaxExtensionHeaders = 8;

/// Where the upper layer of an IPv6 packet begins (RFC 8200 4: hop-by-hop, routing, destination
/// options, AH and fragment headers are walked, ESP and unknown ones end the walk, and so does
/// hop-by-hop anywhere but first, which is to be treated as unknown). The walk ends behind the
/// fragment header of a non-first fragment: what follows is not a header. It stays in the payload
/// length and in `l3`.
struct UpperLayer {
    DropReason reason = DropReason::kNone;  // kIpv6BadExtension: chain runs out, or is too long
    IpProtocol protocol = IpProtocol::kNoNext;
    std::uint16_t offset = 0;          // from the IPv6 header; of `protocol`'s first byte
    std::uint16_t next_header_at = 0;  // offset of the byte that named `protocol`
    bool fragment = false;             // a fragment header with offset or M set
    bool first_fragment = true;        // offset is zero, or no fragment header
    bool source_routed = false;        // a routing header with segments left > 0
    std::uint16_t routing_at = 0;      // offset of that routing header
};
UpperLayer find_upper_layer(std::span<const std::uint8_t> l3) noexcept;

}  // namespace sluice::net
