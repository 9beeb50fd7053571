// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace sluice {

/// Every way a packet can end other than forwarded, delivered or held: enumerator, counter name (a
/// contract: `stats drops`, metrics), source. One row here is all it takes to add one.
// clang-format off
#define SLUICE_DROP_REASONS(X)                                                                     \
    X(kNone,                    "none",                      "not a drop")                         \
    /* link layer */                                                                               \
    X(kEthTooShort,             "eth_too_short",             "IEEE 802.3: no room for a header")   \
    X(kEthBadSource,            "eth_bad_source",            "IEEE 802.3: group source address")   \
    X(kEthOtherHost,            "eth_other_host",            "destination MAC is not ours")        \
    X(kEthUnknownType,          "eth_unknown_type",          "EtherType not spoken here")          \
    X(kVlanTooShort,            "vlan_too_short",            "IEEE 802.1Q: tag cut off")           \
    X(kVlanUnknown,             "vlan_unknown",              "IEEE 802.1Q: no such sub-interface") \
    X(kVlanQinq,                "vlan_qinq",                 "IEEE 802.1ad: second tag")           \
    X(kL2BroadcastUnicast,      "l2_broadcast_unicast",      "RFC 1812 3.3.4, RFC 1122 3.3.6")     \
    /* netdev */                                                                                   \
    X(kNetdevDown,              "netdev_down",               "ingress or egress is down")          \
    X(kNetdevGone,              "netdev_gone",               "output re-pointed to blackhole")     \
    X(kIpDisabled,              "ip_disabled",               "ingress has no address of the family")\
    X(kForwardingDisabled,      "forwarding_disabled",       "ingress does not forward")           \
    /* IPv4 header, RFC 1812 5.2.2 */                                                              \
    X(kIpv4TooShort,            "ipv4_too_short",            "RFC 1812 5.2.2 (1)")                 \
    X(kIpv4BadVersion,          "ipv4_bad_version",          "RFC 1812 5.2.2 (3)")                 \
    X(kIpv4BadHeaderLength,     "ipv4_bad_header_length",    "RFC 1812 5.2.2 (4)")                 \
    X(kIpv4BadTotalLength,      "ipv4_bad_total_length",     "RFC 1812 5.2.2 (5)")                 \
    X(kIpv4Truncated,           "ipv4_truncated",            "RFC 1812 5.2.2: longer than frame")  \
    X(kIpv4BadChecksum,         "ipv4_bad_checksum",         "RFC 1812 5.2.2 (2)")                 \
    X(kIpv4TinyFragment,        "ipv4_tiny_fragment",        "RFC 1858, RFC 3128")                 \
    X(kIpv4BadOption,           "ipv4_bad_option",           "RFC 1812 5.2.4.1: malformed option") \
    X(kIpv4SourceRoute,         "ipv4_source_route",         "RFC 7126 4.3, 4.4")                  \
    X(kIpv4LocalFragment,       "ipv4_local_fragment",       "fragment to an own address: no reassembly") \
    /* IPv6 header, RFC 8200 3 and 4 */                                                            \
    X(kIpv6TooShort,            "ipv6_too_short",            "RFC 8200 3")                         \
    X(kIpv6BadVersion,          "ipv6_bad_version",          "RFC 8200 3")                         \
    X(kIpv6Truncated,           "ipv6_truncated",            "RFC 8200 3: longer than frame")      \
    X(kIpv6BadExtension,        "ipv6_bad_extension",        "RFC 8200 4: header chain malformed") \
    X(kIpv6RoutingHeader,       "ipv6_routing_header",       "RFC 5095, RFC 8200 4.4")             \
    X(kIpv6LocalFragment,       "ipv6_local_fragment",       "fragment to an own address: no reassembly") \
    /* martians */                                                                                 \
    X(kMartianSourceZero,       "martian_source_zero",       "RFC 1812 5.3.7: 0.0.0.0/8 or ::")    \
    X(kMartianSourceLoopback,   "martian_source_loopback",   "RFC 1812 5.3.7: 127/8 or ::1")       \
    X(kMartianSourceMulticast,  "martian_source_multicast",  "RFC 1812 5.3.7: 224/4 or ff00::/8")  \
    X(kMartianSourceBroadcast,  "martian_source_broadcast",  "RFC 1812 5.3.7: 255.255.255.255")    \
    X(kMartianSourceOwn,        "martian_source_own",        "an own address as source")           \
    X(kMartianSourceLinkLocal,  "martian_source_link_local", "RFC 4291 2.5.6: fe80::/10 leaves its link") \
    X(kMartianDestinationZero,  "martian_destination_zero",  "RFC 1812 5.3.7: 0.0.0.0/8 or ::")    \
    X(kMartianDestinationLoopback, "martian_destination_loopback", "RFC 1812 5.3.7: 127/8 or ::1") \
    X(kDestinationLinkLocal,    "destination_link_local",    "RFC 4291 2.5.6: fe80::/10 not ours") \
    X(kDestinationMulticast,    "destination_multicast",     "group we are not in, not routed")    \
    X(kDestinationBroadcast,    "destination_broadcast",     "broadcast not for us, not forwarded")\
    X(kDestinationReserved,     "destination_reserved",      "240.0.0.0/4 while forwarding it is off") \
    /* routing */                                                                                  \
    X(kNoRoute,                 "no_route",                  "RFC 1812 5.2.7.1, RFC 4443 3.1")     \
    X(kRouteUnreachable,        "route_unreachable",         "route of type unreachable")          \
    X(kRouteProhibit,           "route_prohibit",            "route of type prohibit")             \
    X(kRouteBlackhole,          "route_blackhole",           "route of type blackhole")            \
    X(kRouteLoop,               "route_loop",                "tables that send to each other")     \
    X(kGroupEmpty,              "group_empty",               "multipath group without a member")   \
    X(kSourceInvalid,           "source_invalid",            "RFC 3704 2.2, 2.3: source validation") \
    X(kTtlExpired,              "ttl_expired",               "RFC 1812 5.3.1, RFC 4443 3.3")       \
    X(kFragmentationNeeded,     "fragmentation_needed",      "RFC 1812 5.3.3, RFC 1191 4: DF set") \
    X(kPacketTooBig,            "packet_too_big",            "RFC 4443 3.2, RFC 8200 5")           \
    X(kFragmentationFailed,     "fragmentation_failed",      "no mbuf for a fragment")             \
    /* neighbours */                                                                               \
    X(kHoldQueueFull,           "hold_queue_full",           "displaced by a newer packet, RFC 4861 7.2.2") \
    X(kHoldTableFull,           "hold_table_full",           "too many neighbours unresolved")     \
    X(kNeighborFailed,          "neighbor_failed",           "no answer, RFC 1122 2.3.2.2, RFC 4861 7.2.2") \
    X(kNeighborTableFull,       "neighbor_table_full",       "limits.neighbors reached")           \
    /* local delivery */                                                                           \
    X(kLocalTooShort,           "local_too_short",           "upper-layer header cut off")         \
    X(kIcmpBadChecksum,         "icmp_bad_checksum",         "RFC 792, RFC 4443 2.3")              \
    X(kIcmpUnknownType,         "icmp_unknown_type",         "RFC 1122 3.2.2, RFC 4443 2.4")       \
    X(kUdpNoPort,               "udp_no_port",               "RFC 1122 4.1.3.1: nobody listens")   \
    X(kTcpNoPort,               "tcp_no_port",               "nobody listens")                     \
    X(kUnknownProtocol,         "unknown_protocol",          "RFC 1122 3.2.2.1, RFC 4443 3.4")     \
    X(kArpMalformed,            "arp_malformed",             "RFC 826: sizes, types, opcode")      \
    X(kArpNotForUs,             "arp_not_for_us",            "target is no address of the ingress") \
    X(kArpBadSender,            "arp_bad_sender",            "sender off-subnet, own, or not the frame's") \
    X(kArpUnknownSender,        "arp_unknown_sender",        "gratuitous, not known, arp-accept off") \
    X(kNdpMalformed,            "ndp_malformed",             "RFC 4861 6.1, 7.1")                  \
    X(kNdpNotForUs,             "ndp_not_for_us",            "target is no address of the ingress") \
    X(kNdpBadSender,            "ndp_bad_sender",            "sender off-subnet or own")           \
    X(kNdpUnknownSender,        "ndp_unknown_sender",        "RFC 4861 7.2.5: advertisement unasked for") \
    X(kNdpIgnored,              "ndp_ignored",               "router messages nobody here reads")  \
    X(kRateLimited,             "rate_limited",              "local answers over their limit")     \
    /* transmit and resources */                                                                   \
    X(kPuntFull,                "punt_full",                 "control thread is behind")           \
    X(kTxFull,                  "tx_full",                   "device queue full")                  \
    X(kTxTooBig,                "tx_too_big",                "longer than the device takes")       \
    X(kNoBuffer,                "no_buffer",                 "no mbuf for a reply")                \
    X(kStopped,                 "stopped",                   "still held when the worker stopped")
// clang-format on

/// Verdict of a check: kNone is "goes on".
enum class DropReason : std::uint8_t {
#define SLUICE_X(enumerator, name, source) enumerator,
    SLUICE_DROP_REASONS(SLUICE_X)
#undef SLUICE_X
        kCount
};

inline constexpr std::size_t kDropReasons = std::to_underlying(DropReason::kCount);

struct DropInfo {
    std::string_view name;
    std::string_view source;  // the clause or the rule of ours that it stands for
};

inline constexpr std::array kDropInfo{
#define SLUICE_X(enumerator, name, source) DropInfo{name, source},
    SLUICE_DROP_REASONS(SLUICE_X)
#undef SLUICE_X
};
static_assert(kDropInfo.size() == kDropReasons);

constexpr const DropInfo& info(DropReason reason) noexcept {
    return kDropInfo[std::to_underlying(reason)];
}

/// kNone for a name that no reason has.
DropReason drop_reason_from_name(std::string_view name) noexcept;

}  // namespace sluice
