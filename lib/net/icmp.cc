// SPDX-License-Identifier: BSD-3-Clause
#include "net/icmp.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "net/checksum.h"
#include "net/validate.h"

namespace sluice::net {
namespace {

/// RFC 1812 5.3.7: a source that names no single host.
bool is_bad_source(const Ipv4Addr& source) noexcept {
    return source.is_this_network() || source.is_loopback() || source.is_multicast() ||
           source.is_reserved();
}

/// RFC 4443 2.4 (e.6)
bool is_bad_source(const Ipv6Addr& source) noexcept {
    return source.is_unspecified() || source.is_loopback() || source.is_multicast();
}

}  // namespace

bool may_send_icmp_error(std::span<const std::uint8_t> l3,
                         bool link_group,
                         const IcmpError& /*error*/) noexcept {
    const auto* ip = header_at<Ipv4Header>(l3);
    if (ip == nullptr) {
        return false;
    }
    // RFC 1812 4.3.2.7, RFC 1122 3.2.2: not about broadcasts and multicasts of IP or of the link.
    if (link_group || ip->destination.is_multicast() || ip->destination.is_limited_broadcast()) {
        return false;
    }
    if (is_bad_source(ip->source)) {
        return false;
    }
    // RFC 1812 4.3.2.7: only about the first fragment.
    if (ip->fragment_offset_bytes() != 0) {
        return false;
    }
    // RFC 1812 4.3.2.7: not about ICMP errors.
    if (ip->protocol == IpProtocol::kIcmp) {
        const auto* type = header_at<std::uint8_t>(l3, ip->header_bytes());
        return type != nullptr && !quotes_a_packet(*type);
    }
    return true;
}

bool may_send_icmp6_error(std::span<const std::uint8_t> l3,
                          bool link_group,
                          const IcmpError& error) noexcept {
    const auto* ip = header_at<Ipv6Header>(l3);
    if (ip == nullptr) {
        return false;
    }
    // RFC 4443 2.4 (e.3) to (e.5): two errors are of use to a multicast sender.
    const bool group_allowed =
        error.type == icmp6::kPacketTooBig ||
        (error.type == icmp6::kParameterProblem && error.code == icmp6::kUnknownOption);
    if ((link_group || ip->destination.is_multicast()) && !group_allowed) {
        return false;
    }
    if (is_bad_source(ip->source)) {
        return false;
    }
    const UpperLayer upper = find_upper_layer(l3);
    // The upper layer of a later fragment cannot be seen, so it may be an ICMP error.
    if (upper.reason != DropReason::kNone || !upper.first_fragment) {
        return false;
    }
    // RFC 4443 2.4 (e.1), (e.2)
    if (upper.protocol == IpProtocol::kIcmpv6) {
        const auto* type = header_at<std::uint8_t>(l3, upper.offset);
        return type != nullptr && !quotes_a_packet6(*type) && *type != icmp6::kRedirect;
    }
    return true;
}

std::size_t write_icmp_error(std::span<std::uint8_t> out,
                             const IcmpError& error,
                             const Ipv4Addr& source,
                             std::uint16_t id,
                             std::span<const std::uint8_t> offending) noexcept {
    constexpr std::size_t kHeaders = sizeof(Ipv4Header) + sizeof(IcmpHeader);
    // RFC 1812 4.3.2.5: precedence 6 (internetwork control).
    constexpr std::uint8_t kTos = 0xc0;
    constexpr std::uint8_t kTtl = 64;
    const auto* about = header_at<Ipv4Header>(offending);
    if (about == nullptr || out.size() < kHeaders) {
        return 0;
    }
    // RFC 1812 4.3.2.3: as much as fits.
    const std::size_t room = std::min(out.size(), kIcmpErrorMax) - kHeaders;
    const std::size_t quoted = std::min(offending.size(), room);
    const std::size_t bytes = kHeaders + quoted;

    Ipv4Header ip{};
    ip.version_ihl = Ipv4Header::kNoOptions;
    ip.tos = kTos;
    ip.total_length = Be16::from_host(static_cast<std::uint16_t>(bytes));
    ip.id = Be16::from_host(id);
    ip.ttl = kTtl;
    ip.protocol = IpProtocol::kIcmp;
    ip.source = source;
    ip.destination = about->source;
    *mutable_header_at<Ipv4Header>(out) = ip;
    mutable_header_at<Ipv4Header>(out)->checksum = internet_checksum(out.first(sizeof(ip)));

    auto* icmp = mutable_header_at<IcmpHeader>(out, sizeof(ip));
    *icmp = {.type = error.type,
             .code = error.code,
             .checksum = {},
             .rest = Be32::from_host(error.rest)};
    std::memcpy(out.data() + kHeaders, offending.data(), quoted);
    icmp->checksum = internet_checksum(out.subspan(sizeof(ip), bytes - sizeof(ip)));
    return bytes;
}

std::size_t write_icmp6_error(std::span<std::uint8_t> out,
                              const IcmpError& error,
                              const Ipv6Addr& source,
                              std::span<const std::uint8_t> offending) noexcept {
    constexpr std::size_t kHeaders = sizeof(Ipv6Header) + sizeof(IcmpHeader);
    constexpr std::uint8_t kHopLimit = 64;
    const auto* about = header_at<Ipv6Header>(offending);
    if (about == nullptr || out.size() < kHeaders) {
        return 0;
    }
    // RFC 4443 2.4 (c): as much as fits the minimum MTU.
    const std::size_t room = std::min(out.size(), kIcmp6ErrorMax) - kHeaders;
    const std::size_t quoted = std::min(offending.size(), room);
    const std::size_t upper_bytes = sizeof(IcmpHeader) + quoted;

    Ipv6Header ip{};
    ip.version_class_flow = Be32::from_host(6U << 28U);
    ip.payload_length = Be16::from_host(static_cast<std::uint16_t>(upper_bytes));
    ip.next_header = IpProtocol::kIcmpv6;
    ip.hop_limit = kHopLimit;
    ip.source = source;
    ip.destination = about->source;
    *mutable_header_at<Ipv6Header>(out) = ip;

    auto* icmp = mutable_header_at<IcmpHeader>(out, sizeof(ip));
    *icmp = {.type = error.type,
             .code = error.code,
             .checksum = {},
             .rest = Be32::from_host(error.rest)};
    std::memcpy(out.data() + kHeaders, offending.data(), quoted);
    // RFC 4443 2.3
    const std::uint32_t pseudo = pseudo_header_sum(
        ip.source, ip.destination, static_cast<std::uint32_t>(upper_bytes), IpProtocol::kIcmpv6);
    icmp->checksum = fold_checksum(sum_words(out.subspan(sizeof(ip), upper_bytes), pseudo));
    return sizeof(ip) + upper_bytes;
}

std::size_t write_icmp6_redirect(std::span<std::uint8_t> out,
                                 const Ipv6Addr& source,
                                 const Ipv6Addr& target,
                                 std::span<const std::uint8_t> offending) noexcept {
    struct [[gnu::may_alias]] Message {
        Ipv6Header ip;
        IcmpHeader icmp;
        Ipv6Addr target;
        Ipv6Addr destination;
        std::uint8_t option;
        std::uint8_t option_length;  // in 8-byte units
        std::array<std::uint8_t, 6> reserved;
    };
    static_assert(sizeof(Message) == sizeof(Ipv6Header) + 48 && alignof(Message) == 1);
    constexpr std::uint8_t kHopLimit = 255;  // RFC 4861 4.5
    constexpr std::uint8_t kRedirectedHeader = 4;
    const auto* about = header_at<Ipv6Header>(offending);
    auto* message = mutable_header_at<Message>(out);
    if (about == nullptr || message == nullptr) {
        return 0;
    }
    const std::size_t room = std::min(out.size(), kIcmp6ErrorMax) - sizeof *message;
    const std::size_t quoted = std::min(offending.size(), room) & ~std::size_t{7};
    const std::size_t upper_bytes = sizeof *message - sizeof(Ipv6Header) + quoted;

    *message = {};
    message->ip.version_class_flow = Be32::from_host(6U << 28U);
    message->ip.payload_length = Be16::from_host(static_cast<std::uint16_t>(upper_bytes));
    message->ip.next_header = IpProtocol::kIcmpv6;
    message->ip.hop_limit = kHopLimit;
    message->ip.source = source;
    message->ip.destination = about->source;
    message->icmp.type = icmp6::kRedirect;
    message->target = target;
    message->destination = about->destination;
    message->option = kRedirectedHeader;
    message->option_length = static_cast<std::uint8_t>(1 + quoted / 8);
    std::memcpy(out.data() + sizeof *message, offending.data(), quoted);
    const std::uint32_t pseudo = pseudo_header_sum(message->ip.source,
                                                   message->ip.destination,
                                                   static_cast<std::uint32_t>(upper_bytes),
                                                   IpProtocol::kIcmpv6);
    message->icmp.checksum =
        fold_checksum(sum_words(out.subspan(sizeof(Ipv6Header), upper_bytes), pseudo));
    return sizeof(Ipv6Header) + upper_bytes;
}

}  // namespace sluice::net
