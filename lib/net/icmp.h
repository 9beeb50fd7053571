// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/wire.h"

namespace sluice::net {

struct IcmpError {
    std::uint8_t type = 0;
    std::uint8_t code = 0;
    std::uint32_t rest =
        0;  // host order: MTU, pointer << 24 (IPv4 parameter problem) or pointer (IPv6)
};

/// The ICMP messages that are errors and so begin with the packet that they are about behind eight
/// bytes (RFC 1122 3.2.2: with redirects and source quenches; RFC 4443 2.1: all types below 128, a
/// redirect is none of them).
constexpr bool quotes_a_packet(std::uint8_t type) noexcept {
    return type == icmp::kUnreachable || type == icmp::kSourceQuench || type == icmp::kRedirect ||
           type == icmp::kTimeExceeded || type == icmp::kParameterProblem;
}
constexpr bool quotes_a_packet6(std::uint8_t type) noexcept {
    return type < icmp6::kEcho;
}

/// Longest error that may be sent: RFC 1812 4.3.2.3 and RFC 4443 2.4 (c).
inline constexpr std::size_t kIcmpErrorMax = 576;
inline constexpr std::size_t kIcmp6ErrorMax = 1280;

/// May an error be sent about this packet at all? False about broadcast and multicast destinations
/// (IPv6: except packet too big and parameter problem code 2), bad sources (0/8, 127/8, 224/4,
/// 240/4; ::, ::1, ff00::/8), non-first fragments, and ICMP errors or redirects themselves
/// (RFC 1812 4.3.2.7, RFC 1122 3.2.2, RFC 4443 2.4 (e)); an unreadable upper layer counts as an
/// error. `l3`: the offending packet, validated, its first segment. `link_group`: came in an
/// Ethernet broadcast or multicast frame. Directed broadcasts as source or destination are the
/// caller's.
bool may_send_icmp_error(std::span<const std::uint8_t> l3,
                         bool link_group,
                         const IcmpError& error) noexcept;
bool may_send_icmp6_error(std::span<const std::uint8_t> l3,
                          bool link_group,
                          const IcmpError& error) noexcept;

/// Writes IP header, ICMP header and quote of `offending` into `out` and returns the bytes written.
/// `offending` must be cut to the IP packet (no Ethernet padding); as much of it is quoted as
/// kIcmpErrorMax / kIcmp6ErrorMax and `out` allow. IPv4: TTL 64, TOS 0xc0 (RFC 1812 4.3.2.5:
/// precedence 6), DF clear, `id` as given. IPv6: hop limit 64. Checksums filled in.
std::size_t write_icmp_error(std::span<std::uint8_t> out,
                             const IcmpError& error,
                             const Ipv4Addr& source,
                             std::uint16_t id,
                             std::span<const std::uint8_t> offending) noexcept;
std::size_t write_icmp6_error(std::span<std::uint8_t> out,
                              const IcmpError& error,
                              const Ipv6Addr& source,
                              std::span<const std::uint8_t> offending) noexcept;

/// The same for a redirect (RFC 4861 4.5, 8.2): from our link-local address, hop limit 255, with
/// the offending packet in a redirected header option. `target`: the better first hop's link-local
/// address, or the destination itself where that is on the link.
std::size_t write_icmp6_redirect(std::span<std::uint8_t> out,
                                 const Ipv6Addr& source,
                                 const Ipv6Addr& target,
                                 std::span<const std::uint8_t> offending) noexcept;

}  // namespace sluice::net
