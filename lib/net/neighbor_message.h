// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>

#include "base/drop_reason.h"
#include "net/wire.h"

/// ARP (RFC 826) and neighbour discovery (RFC 4861) messages, parsed and written.
namespace sluice::net {

struct Arp {
    std::uint16_t operation = 0;  // ArpHeader::kRequest or kReply
    MacAddr sender_mac;
    Ipv4Addr sender_ip;
    MacAddr target_mac;
    Ipv4Addr target_ip;
};
/// `payload` follows the Ethernet header (and tag). kArpMalformed: short, not Ethernet/IPv4,
/// unknown operation, group sender MAC, or a sender address of 127/8, multicast or broadcast.
/// Sender 0.0.0.0 is a probe (RFC 5227) and passes.
std::expected<Arp, DropReason> parse_arp(std::span<const std::uint8_t> payload) noexcept;

struct NeighborDiscovery {
    std::uint8_t type = 0;  // icmp6::kRouterSolicitation .. kRedirect
    Ipv6Addr source;
    Ipv6Addr destination;
    Ipv6Addr target;  // of a solicitation, advertisement or redirect
    bool router = false, solicited = false, override = false;  // flags of an advertisement
    std::optional<MacAddr> source_link;                        // option 1
    std::optional<MacAddr> target_link;                        // option 2
};
/// `ip` is the whole IPv6 packet, contiguous, cut to its length; `icmp_offset` where ICMPv6 begins.
/// Checks RFC 4861 6.1.1, 6.1.2, 7.1.1, 7.1.2, 8.1: hop limit 255, checksum, code 0, lengths,
/// option lengths not zero and inside, target no multicast, NS from :: only to a solicited-node
/// address and without source link option, S clear in a multicast NA, RA and redirect from
/// link-local. kIcmpBadChecksum or kNdpMalformed.
std::expected<NeighborDiscovery, DropReason> parse_neighbor_discovery(
    std::span<const std::uint8_t> ip, std::size_t icmp_offset) noexcept;

/// A whole frame, untagged; the caller inserts a VLAN tag where there is one. `bytes` is at least
/// 60 (padded with zeros).
struct Frame {
    std::array<std::uint8_t, 128> storage{};
    std::size_t bytes = 0;
    std::span<const std::uint8_t> view() const noexcept { return {storage.data(), bytes}; }
};

/// Who-has `target`, to `to` (broadcast, or the known MAC for a refresh).
Frame make_arp_request(const MacAddr& our_mac,
                       const Ipv4Addr& our_ip,
                       const MacAddr& to,
                       const Ipv4Addr& target) noexcept;
Frame make_arp_reply(const MacAddr& our_mac,
                     const Ipv4Addr& our_ip,
                     const MacAddr& to,
                     const Ipv4Addr& to_ip) noexcept;
/// To the solicited-node group, or to `to` when known (refresh). With the source link option.
Frame make_neighbor_solicitation(const MacAddr& our_mac,
                                 const Ipv6Addr& our_ip,
                                 const Ipv6Addr& target,
                                 std::optional<MacAddr> to) noexcept;
struct AdvertisementFlags {
    bool router = true, solicited = true, override = true;
};
/// `to_ip` kAllNodes with `to` its multicast MAC when the solicitation came from :: (RFC
/// 4861 7.2.4).
Frame make_neighbor_advertisement(const MacAddr& our_mac,
                                  const Ipv6Addr& our_source,
                                  const Ipv6Addr& target,
                                  const MacAddr& to,
                                  const Ipv6Addr& to_ip,
                                  AdvertisementFlags flags) noexcept;

}  // namespace sluice::net
