// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/address.h"
#include "net/byte_order.h"

/// Headers as they lie in a packet. All members have alignment 1, so there is no padding; all may
/// alias: a pointer into packet bytes is only ever made by a checked accessor (header_at below, or
/// dpdk/mbuf.h for mbufs).
namespace sluice::net {

/// The header at `offset`, nullptr when `bytes` ends before it does.
template <class T>
const T* header_at(std::span<const std::uint8_t> bytes, std::size_t offset = 0) noexcept {
    static_assert(alignof(T) == 1);
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
        return nullptr;
    }
    return reinterpret_cast<const T*>(bytes.data() + offset);  // NOLINT: the checked accessor
}
template <class T>
T* mutable_header_at(std::span<std::uint8_t> bytes, std::size_t offset = 0) noexcept {
    return const_cast<T*>(header_at<T>(bytes, offset));  // NOLINT: `bytes` is not const
}

inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherTypeArp = 0x0806;
inline constexpr std::uint16_t kEtherTypeVlan = 0x8100;
inline constexpr std::uint16_t kEtherTypeQinq = 0x88a8;
inline constexpr std::uint16_t kEtherTypeIpv6 = 0x86dd;

struct [[gnu::may_alias]] EthernetHeader {
    MacAddr destination;
    MacAddr source;
    Be16 type;
};
static_assert(sizeof(EthernetHeader) == 14 && alignof(EthernetHeader) == 1);

/// IEEE 802.1Q: what follows the 0x8100 that stands in EthernetHeader::type.
struct [[gnu::may_alias]] VlanTag {
    Be16 tci;  // priority 3 bits, drop eligible 1 bit, id 12 bits
    Be16 type;
    constexpr std::uint16_t id() const noexcept { return tci.host() & 0x0fffU; }
};
static_assert(sizeof(VlanTag) == 4 && alignof(VlanTag) == 1);

enum class IpProtocol : std::uint8_t {
    kHopByHop = 0,
    kIcmp = 1,
    kTcp = 6,
    kUdp = 17,
    kDccp = 33,
    kIpv6Route = 43,
    kIpv6Fragment = 44,
    kEsp = 50,
    kAh = 51,
    kIcmpv6 = 58,
    kNoNext = 59,
    kDestinationOptions = 60,
    kSctp = 132,
};

/// Whether the first four bytes of its header are a source and a destination port.
constexpr bool has_ports(IpProtocol protocol) noexcept {
    return protocol == IpProtocol::kUdp || protocol == IpProtocol::kTcp ||
           protocol == IpProtocol::kSctp || protocol == IpProtocol::kDccp;
}

struct [[gnu::may_alias]] Ipv4Header {
    std::uint8_t version_ihl;
    std::uint8_t tos;
    Be16 total_length;
    Be16 id;
    Be16 flags_fragment;  // reserved, DF, MF, offset in 8-byte units (13 bits)
    std::uint8_t ttl;
    IpProtocol protocol;
    Be16 checksum;
    Ipv4Addr source;
    Ipv4Addr destination;

    static constexpr std::uint8_t kNoOptions = 0x45;  // version_ihl of a header without options
    static constexpr std::uint16_t kDontFragment = 0x4000;
    static constexpr std::uint16_t kMoreFragments = 0x2000;
    static constexpr std::uint16_t kOffsetMask = 0x1fff;
    constexpr unsigned version() const noexcept { return version_ihl >> 4U; }
    constexpr unsigned header_bytes() const noexcept { return (version_ihl & 0x0fU) * 4U; }
    constexpr bool dont_fragment() const noexcept {
        return (flags_fragment.host() & kDontFragment) != 0;
    }
    constexpr bool more_fragments() const noexcept {
        return (flags_fragment.host() & kMoreFragments) != 0;
    }
    constexpr unsigned fragment_offset_bytes() const noexcept {
        return (flags_fragment.host() & kOffsetMask) * 8U;
    }
    constexpr bool is_fragment() const noexcept {
        return (flags_fragment.host() & (kMoreFragments | kOffsetMask)) != 0;
    }
};
static_assert(sizeof(Ipv4Header) == 20 && alignof(Ipv4Header) == 1);

struct [[gnu::may_alias]] Ipv6Header {
    Be32 version_class_flow;
    Be16 payload_length;
    IpProtocol next_header;
    std::uint8_t hop_limit;
    Ipv6Addr source;
    Ipv6Addr destination;

    constexpr unsigned version() const noexcept { return version_class_flow.host() >> 28U; }
    constexpr std::uint8_t traffic_class() const noexcept {
        return static_cast<std::uint8_t>(version_class_flow.host() >> 20U);
    }
    constexpr std::uint32_t flow_label() const noexcept {
        return version_class_flow.host() & 0xfffffU;
    }
};
static_assert(sizeof(Ipv6Header) == 40 && alignof(Ipv6Header) == 1);

/// First bytes of hop-by-hop, destination options and routing headers (RFC 8200 4).
struct [[gnu::may_alias]] Ipv6Extension {
    IpProtocol next_header;
    std::uint8_t length;  // in 8-byte units, the first 8 bytes not counted
};
static_assert(sizeof(Ipv6Extension) == 2);

struct [[gnu::may_alias]] Ipv6RoutingHeader {
    IpProtocol next_header;
    std::uint8_t length;
    std::uint8_t type;
    std::uint8_t segments_left;
};
static_assert(sizeof(Ipv6RoutingHeader) == 4);

struct [[gnu::may_alias]] Ipv6FragmentHeader {
    IpProtocol next_header;
    std::uint8_t reserved;
    Be16 offset_flags;  // offset in 8-byte units (13 bits), reserved, M
    Be32 id;
    constexpr unsigned offset_bytes() const noexcept { return offset_flags.host() & 0xfff8U; }
    constexpr bool more() const noexcept { return (offset_flags.host() & 1U) != 0; }
};
static_assert(sizeof(Ipv6FragmentHeader) == 8);

struct [[gnu::may_alias]] UdpHeader {
    Be16 source_port;
    Be16 destination_port;
    Be16 length;
    Be16 checksum;
};
static_assert(sizeof(UdpHeader) == 8);

struct [[gnu::may_alias]] TcpHeader {
    Be16 source_port;
    Be16 destination_port;
    Be32 sequence;
    Be32 acknowledgement;
    Be16 offset_flags;
    Be16 window;
    Be16 checksum;
    Be16 urgent;
};
static_assert(sizeof(TcpHeader) == 20);

/// ICMP and ICMPv6 share this: type, code, checksum and four bytes that each type reads its own way
/// (echo: id and sequence; fragmentation needed: unused and MTU; packet too big: MTU).
struct [[gnu::may_alias]] IcmpHeader {
    std::uint8_t type;
    std::uint8_t code;
    Be16 checksum;
    Be32 rest;
};
static_assert(sizeof(IcmpHeader) == 8);

namespace icmp {  // RFC 792, RFC 1812 5.2.7
inline constexpr std::uint8_t kEchoReply = 0;
inline constexpr std::uint8_t kUnreachable = 3;
inline constexpr std::uint8_t kSourceQuench = 4;
inline constexpr std::uint8_t kRedirect = 5;
inline constexpr std::uint8_t kEcho = 8;
inline constexpr std::uint8_t kTimeExceeded = 11;
inline constexpr std::uint8_t kParameterProblem = 12;
// codes of kUnreachable
inline constexpr std::uint8_t kNet = 0;
inline constexpr std::uint8_t kHost = 1;
inline constexpr std::uint8_t kProtocol = 2;
inline constexpr std::uint8_t kPort = 3;
inline constexpr std::uint8_t kFragmentationNeeded = 4;
inline constexpr std::uint8_t kSourceRouteFailed = 5;
inline constexpr std::uint8_t kAdminProhibited = 13;
}  // namespace icmp

namespace icmp6 {  // RFC 4443, RFC 4861
inline constexpr std::uint8_t kUnreachable = 1;
inline constexpr std::uint8_t kPacketTooBig = 2;
inline constexpr std::uint8_t kTimeExceeded = 3;
inline constexpr std::uint8_t kParameterProblem = 4;
inline constexpr std::uint8_t kEcho = 128;
inline constexpr std::uint8_t kEchoReply = 129;
inline constexpr std::uint8_t kRouterSolicitation = 133;
inline constexpr std::uint8_t kRouterAdvertisement = 134;
inline constexpr std::uint8_t kNeighborSolicitation = 135;
inline constexpr std::uint8_t kNeighborAdvertisement = 136;
inline constexpr std::uint8_t kRedirect = 137;
// codes of kUnreachable
inline constexpr std::uint8_t kNoRoute = 0;
inline constexpr std::uint8_t kAdminProhibited = 1;
inline constexpr std::uint8_t kBeyondScope = 2;
inline constexpr std::uint8_t kAddress = 3;
inline constexpr std::uint8_t kPort = 4;
// codes of kParameterProblem
inline constexpr std::uint8_t kBadHeader = 0;
inline constexpr std::uint8_t kUnknownNextHeader = 1;
inline constexpr std::uint8_t kUnknownOption = 2;
}  // namespace icmp6

/// RFC 826, for Ethernet and IPv4.
struct [[gnu::may_alias]] ArpHeader {
    Be16 hardware;  // 1
    Be16 protocol;  // 0x0800
    std::uint8_t hardware_bytes;
    std::uint8_t protocol_bytes;
    Be16 operation;
    MacAddr sender_mac;
    Ipv4Addr sender_ip;
    MacAddr target_mac;
    Ipv4Addr target_ip;
    static constexpr std::uint16_t kRequest = 1;
    static constexpr std::uint16_t kReply = 2;
};
static_assert(sizeof(ArpHeader) == 28 && alignof(ArpHeader) == 1);

/// RFC 4861 4.3, 4.4: neighbour solicitation and advertisement without options. In an advertisement
/// IcmpHeader::rest holds R (bit 31), S (30), O (29).
struct [[gnu::may_alias]] NeighborMessage {
    IcmpHeader icmp;
    Ipv6Addr target;
};
static_assert(sizeof(NeighborMessage) == 24);

/// IPv6's smallest link MTU (RFC 8200 5) and the least that IPv4 must carry whole (RFC 791).
inline constexpr unsigned kIpv6MinMtu = 1280;
inline constexpr unsigned kIpv4MinMtu = 68;

}  // namespace sluice::net
