// SPDX-License-Identifier: BSD-3-Clause
#include "net/neighbor_message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>

#include "net/checksum.h"

namespace sluice::net {
namespace {

constexpr std::uint16_t kHardwareEthernet = 1;
constexpr std::size_t kMinFrame = 60;  // IEEE 802.3, without the check sequence
constexpr std::uint8_t kNdpHopLimit = 255;
constexpr std::uint8_t kSourceLinkOption = 1;
constexpr std::uint8_t kTargetLinkOption = 2;
// RFC 4861 4.4
constexpr std::uint32_t kRouterFlag = 1U << 31U;
constexpr std::uint32_t kSolicitedFlag = 1U << 30U;
constexpr std::uint32_t kOverrideFlag = 1U << 29U;

/// RFC 4861 4.6.1 and RFC 2464 6: a link-layer address option of Ethernet.
struct [[gnu::may_alias]] LinkOption {
    std::uint8_t type;
    std::uint8_t length;  // in 8-byte units
    MacAddr mac;
};
static_assert(sizeof(LinkOption) == 8 && alignof(LinkOption) == 1);

/// RFC 4861 4.5, without options.
struct [[gnu::may_alias]] RedirectMessage {
    IcmpHeader icmp;
    Ipv6Addr target;
    Ipv6Addr destination;
};
static_assert(sizeof(RedirectMessage) == 40);

bool is_solicited_node(const Ipv6Addr& address) noexcept {
    return address == solicited_node(address);
}

/// Bytes before the options; 0 for what is no neighbour discovery message.
std::size_t fixed_bytes(std::uint8_t type) noexcept {
    constexpr std::size_t kRouterAdvertisementBytes = 16;  // RFC 4861 4.2
    switch (type) {
        case icmp6::kRouterSolicitation:
            return sizeof(IcmpHeader);
        case icmp6::kRouterAdvertisement:
            return kRouterAdvertisementBytes;
        case icmp6::kNeighborSolicitation:
        case icmp6::kNeighborAdvertisement:
            return sizeof(NeighborMessage);
        case icmp6::kRedirect:
            return sizeof(RedirectMessage);
        default:
            return 0;
    }
}

/// Which option the message may carry for the sender's or target's link-layer address.
std::uint8_t link_option_of(std::uint8_t type) noexcept {
    return type == icmp6::kNeighborAdvertisement || type == icmp6::kRedirect ? kTargetLinkOption
                                                                             : kSourceLinkOption;
}

/// RFC 4861 4.6: false when an option is malformed. Options that the message has no use for are
/// skipped, and of two alike the first counts.
bool parse_options(std::span<const std::uint8_t> options, NeighborDiscovery& message) noexcept {
    const std::uint8_t wanted = link_option_of(message.type);
    auto& link = wanted == kSourceLinkOption ? message.source_link : message.target_link;
    while (!options.empty()) {
        constexpr std::size_t kUnit = 8;
        const std::size_t bytes = options.size() >= 2 ? options[1] * kUnit : 0;
        // RFC 4861 6.1.1, 6.1.2, 7.1.1, 7.1.2, 8.1: every length is greater than zero.
        if (bytes == 0 || bytes > options.size()) {
            return false;
        }
        if (options[0] == wanted && !link) {
            const auto* option = header_at<LinkOption>(options);
            if (bytes != sizeof(LinkOption) || option->mac.is_group()) {
                return false;
            }
            link = option->mac;
        }
        options = options.subspan(bytes);
    }
    return true;
}

/// The checks that look at more than one field.
bool is_consistent(const NeighborDiscovery& m, const Ipv6Addr* redirected) noexcept {
    switch (m.type) {
        case icmp6::kRouterSolicitation:
            // RFC 4861 6.1.1
            return !m.source.is_unspecified() || !m.source_link;
        case icmp6::kRouterAdvertisement:
            // RFC 4861 6.1.2
            return m.source.is_link_local();
        case icmp6::kNeighborSolicitation:
            // RFC 4861 7.1.1
            return !m.target.is_multicast() &&
                   (!m.source.is_unspecified() ||
                    (is_solicited_node(m.destination) && !m.source_link));
        case icmp6::kNeighborAdvertisement:
            // RFC 4861 7.1.2
            return !m.target.is_multicast() && !(m.destination.is_multicast() && m.solicited);
        default:
            // RFC 4861 8.1: the target is a router's link-local address, or the destination itself.
            return m.source.is_link_local() && redirected != nullptr &&
                   !redirected->is_multicast() &&
                   (m.target.is_link_local() || m.target == *redirected);
    }
}

void put_ethernet(Frame& frame,
                  const MacAddr& to,
                  const MacAddr& from,
                  std::uint16_t type) noexcept {
    *mutable_header_at<EthernetHeader>(frame.storage) = {to, from, Be16::from_host(type)};
}

Frame make_arp(const ArpHeader& arp, const MacAddr& to) noexcept {
    Frame frame;
    put_ethernet(frame, to, arp.sender_mac, kEtherTypeArp);
    *mutable_header_at<ArpHeader>(frame.storage, sizeof(EthernetHeader)) = arp;
    frame.bytes = std::max(kMinFrame, sizeof(EthernetHeader) + sizeof(ArpHeader));
    return frame;
}

struct NdpAddresses {
    MacAddr from_mac;
    MacAddr to_mac;
    Ipv6Addr from;
    Ipv6Addr to;
};

/// A solicitation or advertisement, with a link option of type `option` unless that is 0.
Frame make_ndp(const NdpAddresses& addresses,
               const NeighborMessage& message,
               std::uint8_t option) noexcept {
    constexpr std::size_t kIpAt = sizeof(EthernetHeader);
    constexpr std::size_t kIcmpAt = kIpAt + sizeof(Ipv6Header);
    constexpr std::size_t kOptionAt = kIcmpAt + sizeof(NeighborMessage);
    static_assert(kOptionAt + sizeof(LinkOption) <= sizeof(Frame::storage));
    const std::size_t upper_bytes =
        sizeof(NeighborMessage) + (option != 0 ? sizeof(LinkOption) : 0);

    Frame frame;
    put_ethernet(frame, addresses.to_mac, addresses.from_mac, kEtherTypeIpv6);
    Ipv6Header ip{};
    ip.version_class_flow = Be32::from_host(6U << 28U);
    ip.payload_length = Be16::from_host(static_cast<std::uint16_t>(upper_bytes));
    ip.next_header = IpProtocol::kIcmpv6;
    ip.hop_limit = kNdpHopLimit;
    ip.source = addresses.from;
    ip.destination = addresses.to;
    *mutable_header_at<Ipv6Header>(frame.storage, kIpAt) = ip;
    auto* ndp = mutable_header_at<NeighborMessage>(frame.storage, kIcmpAt);
    *ndp = message;
    if (option != 0) {
        *mutable_header_at<LinkOption>(frame.storage, kOptionAt) = {option, 1, addresses.from_mac};
    }
    frame.bytes = kIcmpAt + upper_bytes;
    const std::uint32_t pseudo = pseudo_header_sum(
        ip.source, ip.destination, static_cast<std::uint32_t>(upper_bytes), IpProtocol::kIcmpv6);
    ndp->icmp.checksum = fold_checksum(sum_words(frame.view().subspan(kIcmpAt), pseudo));
    return frame;
}

}  // namespace

std::expected<Arp, DropReason> parse_arp(std::span<const std::uint8_t> payload) noexcept {
    const auto* arp = header_at<ArpHeader>(payload);
    // RFC 826: hardware, protocol and both lengths are ours.
    if (arp == nullptr || arp->hardware.host() != kHardwareEthernet ||
        arp->protocol.host() != kEtherTypeIpv4 || arp->hardware_bytes != sizeof(MacAddr) ||
        arp->protocol_bytes != sizeof(Ipv4Addr)) {
        return std::unexpected(DropReason::kArpMalformed);
    }
    const std::uint16_t operation = arp->operation.host();
    if (operation != ArpHeader::kRequest && operation != ArpHeader::kReply) {
        return std::unexpected(DropReason::kArpMalformed);
    }
    // RFC 1812 3.3.2: a group address is nobody's, and must not get into the table.
    if (arp->sender_mac.is_group()) {
        return std::unexpected(DropReason::kArpMalformed);
    }
    if (arp->sender_ip.is_loopback() || arp->sender_ip.is_multicast() ||
        arp->sender_ip.is_limited_broadcast()) {
        return std::unexpected(DropReason::kArpMalformed);
    }
    return Arp{operation, arp->sender_mac, arp->sender_ip, arp->target_mac, arp->target_ip};
}

std::expected<NeighborDiscovery, DropReason> parse_neighbor_discovery(
    std::span<const std::uint8_t> ip, std::size_t icmp_offset) noexcept {
    const auto malformed = std::unexpected(DropReason::kNdpMalformed);
    const auto* header = header_at<Ipv6Header>(ip);
    const auto* icmp = header_at<IcmpHeader>(ip, icmp_offset);
    // RFC 4861 6.1, 7.1, 8.1: hop limit 255, or it came from off the link.
    if (header == nullptr || icmp == nullptr || header->hop_limit != kNdpHopLimit) {
        return malformed;
    }
    const auto body = ip.subspan(icmp_offset);
    const std::uint32_t pseudo = pseudo_header_sum(header->source,
                                                   header->destination,
                                                   static_cast<std::uint32_t>(body.size()),
                                                   IpProtocol::kIcmpv6);
    if (fold_checksum(sum_words(body, pseudo)).raw() != 0) {
        return std::unexpected(DropReason::kIcmpBadChecksum);
    }
    const std::size_t fixed = fixed_bytes(icmp->type);
    if (fixed == 0 || icmp->code != 0 || body.size() < fixed) {
        return malformed;
    }
    NeighborDiscovery message;
    message.type = icmp->type;
    message.source = header->source;
    message.destination = header->destination;
    if (const auto* with_target = header_at<NeighborMessage>(body);
        with_target != nullptr && fixed >= sizeof(NeighborMessage)) {
        message.target = with_target->target;
    }
    if (message.type == icmp6::kNeighborAdvertisement) {
        const std::uint32_t flags = icmp->rest.host();
        message.router = (flags & kRouterFlag) != 0;
        message.solicited = (flags & kSolicitedFlag) != 0;
        message.override = (flags & kOverrideFlag) != 0;
    }
    const auto* redirect = header_at<RedirectMessage>(body);
    if (!parse_options(body.subspan(fixed), message) ||
        !is_consistent(message, redirect != nullptr ? &redirect->destination : nullptr)) {
        return malformed;
    }
    return message;
}

Frame make_arp_request(const MacAddr& our_mac,
                       const Ipv4Addr& our_ip,
                       const MacAddr& to,
                       const Ipv4Addr& target) noexcept {
    return make_arp({.hardware = Be16::from_host(kHardwareEthernet),
                     .protocol = Be16::from_host(kEtherTypeIpv4),
                     .hardware_bytes = sizeof(MacAddr),
                     .protocol_bytes = sizeof(Ipv4Addr),
                     .operation = Be16::from_host(ArpHeader::kRequest),
                     .sender_mac = our_mac,
                     .sender_ip = our_ip,
                     .target_mac = {},
                     .target_ip = target},
                    to);
}

Frame make_arp_reply(const MacAddr& our_mac,
                     const Ipv4Addr& our_ip,
                     const MacAddr& to,
                     const Ipv4Addr& to_ip) noexcept {
    return make_arp({.hardware = Be16::from_host(kHardwareEthernet),
                     .protocol = Be16::from_host(kEtherTypeIpv4),
                     .hardware_bytes = sizeof(MacAddr),
                     .protocol_bytes = sizeof(Ipv4Addr),
                     .operation = Be16::from_host(ArpHeader::kReply),
                     .sender_mac = our_mac,
                     .sender_ip = our_ip,
                     .target_mac = to,
                     .target_ip = to_ip},
                    to);
}

Frame make_neighbor_solicitation(const MacAddr& our_mac,
                                 const Ipv6Addr& our_ip,
                                 const Ipv6Addr& target,
                                 std::optional<MacAddr> to) noexcept {
    const Ipv6Addr group = solicited_node(target);
    const NdpAddresses addresses{.from_mac = our_mac,
                                 .to_mac = to.value_or(multicast_mac(group)),
                                 .from = our_ip,
                                 .to = to ? target : group};
    const NeighborMessage message{
        .icmp = {.type = icmp6::kNeighborSolicitation, .code = 0, .checksum = {}, .rest = {}},
        .target = target};
    // RFC 4861 4.3: no source link option from ::.
    return make_ndp(addresses, message, our_ip.is_unspecified() ? 0 : kSourceLinkOption);
}

Frame make_neighbor_advertisement(const MacAddr& our_mac,
                                  const Ipv6Addr& our_source,
                                  const Ipv6Addr& target,
                                  const MacAddr& to,
                                  const Ipv6Addr& to_ip,
                                  AdvertisementFlags flags) noexcept {
    const NdpAddresses addresses{
        .from_mac = our_mac, .to_mac = to, .from = our_source, .to = to_ip};
    const std::uint32_t bits = (flags.router ? kRouterFlag : 0) |
                               (flags.solicited ? kSolicitedFlag : 0) |
                               (flags.override ? kOverrideFlag : 0);
    const NeighborMessage message{.icmp = {.type = icmp6::kNeighborAdvertisement,
                                           .code = 0,
                                           .checksum = {},
                                           .rest = Be32::from_host(bits)},
                                  .target = target};
    return make_ndp(addresses, message, kTargetLinkOption);
}

}  // namespace sluice::net
