// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <gtest/gtest.h>

#include "net/validate.h"
#include "support/packet.h"

namespace sluice::net {
namespace {

using test::Bytes;
using test::Packet;
using P = IpProtocol;

struct Case {
    std::string_view name;
    Packet in;
    UpperLayer want;
};

void expect(const Case& c) {
    SCOPED_TRACE(std::string(c.name) + "\n" + c.in.describe());
    const UpperLayer got = find_upper_layer(c.in.bytes());
    EXPECT_EQ(info(got.reason).name, info(c.want.reason).name);
    if (c.want.reason != DropReason::kNone) {
        return;
    }
    EXPECT_EQ(got.protocol, c.want.protocol);
    EXPECT_EQ(got.offset, c.want.offset);
    EXPECT_EQ(got.next_header_at, c.want.next_header_at);
    EXPECT_EQ(got.fragment, c.want.fragment);
    EXPECT_EQ(got.first_fragment, c.want.first_fragment);
    EXPECT_EQ(got.source_routed, c.want.source_routed);
    EXPECT_EQ(got.routing_at, c.want.routing_at);
}

constexpr UpperLayer kBad{.reason = DropReason::kIpv6BadExtension};

TEST(FindUpperLayer, Chains) {
    const Bytes router_alert{5, 2, 0, 0};
    const Bytes ah{
        std::uint8_t{17}, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    for (const auto& c : {
             Case{"UDP at once",
                  Packet().ipv6().udp(),
                  {.protocol = P::kUdp, .offset = 40, .next_header_at = 6}},
             Case{"nothing behind",
                  Packet().ipv6(),
                  {.protocol = P::kNoNext, .offset = 40, .next_header_at = 6}},
             Case{"TCP named, no byte of it",
                  Packet().ipv6({.next_header = P::kTcp}),
                  {.protocol = P::kTcp, .offset = 40, .next_header_at = 6}},
             Case{"hop-by-hop",
                  Packet().ipv6().hop_by_hop().udp(),
                  {.protocol = P::kUdp, .offset = 48, .next_header_at = 40}},
             Case{"long destination options",
                  Packet().ipv6().destination_options({.options = Bytes(30, 0)}).icmp6(128),
                  {.protocol = P::kIcmpv6, .offset = 72, .next_header_at = 40}},
             Case{"ESP ends the walk",
                  Packet().ipv6({.next_header = P::kEsp}).payload(20),
                  {.protocol = P::kEsp, .offset = 40, .next_header_at = 6}},
             Case{"unknown ends the walk",
                  Packet()
                      .ipv6()
                      .destination_options({.next_header = static_cast<P>(200)})
                      .payload(2),
                  {.protocol = static_cast<P>(200), .offset = 48, .next_header_at = 40}},
             Case{"AH counts in 4 bytes",
                  Packet().ipv6({.next_header = P::kAh}).raw(ah).udp(),
                  {.protocol = P::kUdp, .offset = 64, .next_header_at = 40}},
             Case{"whole packet with a fragment header",
                  Packet().ipv6().fragment().udp(),
                  {.protocol = P::kUdp, .offset = 48, .next_header_at = 40}},
             Case{"first fragment",
                  Packet().ipv6().fragment({.more = true}).udp(),
                  {.protocol = P::kUdp, .offset = 48, .next_header_at = 40, .fragment = true}},
             Case{"later fragment: what follows is no header",
                  Packet()
                      .ipv6()
                      .fragment({.offset = 8, .next_header = P::kDestinationOptions})
                      .raw({17, 255}),
                  {.protocol = P::kDestinationOptions,
                   .offset = 48,
                   .next_header_at = 40,
                   .fragment = true,
                   .first_fragment = false}},
             Case{"hop-by-hop not first is unknown (RFC 8200 4)",
                  Packet().ipv6().destination_options().hop_by_hop().udp(),
                  {.protocol = P::kHopByHop, .offset = 48, .next_header_at = 40}},
             Case{"the order of RFC 8200 4.1",
                  Packet()
                      .ipv6()
                      .hop_by_hop()
                      .destination_options()
                      .routing()
                      .fragment()
                      .destination_options()
                      .udp(),
                  {.protocol = P::kUdp, .offset = 80, .next_header_at = 72}},
             Case{"Case 111: router alert and fragment",
                  Packet()
                      .ipv6()
                      .hop_by_hop({.options = router_alert})
                      .fragment({.more = true})
                      .udp(),
                  {.protocol = P::kUdp, .offset = 56, .next_header_at = 48, .fragment = true}},
             Case{"padding is not read",
                  Packet().ipv6().hop_by_hop({.length = 1}).pad_to(100, 0),
                  kBad},
             Case{"payload length 0 with a header named",
                  Packet().ipv6({.payload_length = 0}).hop_by_hop().udp(),
                  kBad},
             Case{"length past the packet", Packet().ipv6().hop_by_hop({.length = 2}).udp(), kBad},
             Case{"fragment header cut",
                  Packet().ipv6({.payload_length = 7}).fragment().udp(),
                  kBad},
             Case{"AH past the packet",
                  Packet().ipv6({.next_header = P::kAh}).raw({17, 5, 0, 0, 0, 0, 0, 0}),
                  kBad},
             Case{"no IPv6 header", Packet().ipv6().truncate(39), kBad},
         }) {
        expect(c);
    }
}

// Case 108, frame P3: the length of 2048 bytes is not believed.
TEST(FindUpperLayer, Case_108_P3) {
    const Bytes p3 = test::from_hex(
        "6000000000080040fd00000000000000000000000000000220010db800020000000000000000000911ff010400"
        "000000");
    EXPECT_EQ(find_upper_layer(p3).reason, DropReason::kIpv6BadExtension);
}

// RFC 8200 4.4, RFC 5095.
TEST(FindUpperLayer, Case_110_RoutingHeader) {
    const Bytes one_address(20, 0);
    for (const auto& c : {
             Case{"no segments left",
                  Packet().ipv6().routing({.data = one_address}).udp(),
                  {.protocol = P::kUdp, .offset = 64, .next_header_at = 40}},
             Case{"one segment left",
                  Packet().ipv6().routing({.segments_left = 1, .data = one_address}).udp(),
                  {.protocol = P::kUdp,
                   .offset = 64,
                   .next_header_at = 40,
                   .source_routed = true,
                   .routing_at = 40}},
             Case{"the second has segments left",
                  Packet().ipv6().routing().routing({.type = 4, .segments_left = 1}).udp(),
                  {.protocol = P::kUdp,
                   .offset = 56,
                   .next_header_at = 48,
                   .source_routed = true,
                   .routing_at = 48}},
             Case{"the first of two counts",
                  Packet().ipv6().routing({.segments_left = 2}).routing({.segments_left = 1}).udp(),
                  {.protocol = P::kUdp,
                   .offset = 56,
                   .next_header_at = 48,
                   .source_routed = true,
                   .routing_at = 40}},
         }) {
        expect(c);
    }
}

TEST(FindUpperLayer, NumberOfHeadersIsBounded) {
    Packet most;
    most.ipv6();
    for (unsigned i = 0; i < kMaxExtensionHeaders; ++i) {
        most.destination_options();
    }
    Packet more = most;
    EXPECT_EQ(find_upper_layer(most.udp().bytes()).protocol, P::kUdp);
    EXPECT_EQ(find_upper_layer(more.destination_options().udp().bytes()).reason,
              DropReason::kIpv6BadExtension);
}

// An extension header chain of the largest payload: the offset must not wrap.
TEST(FindUpperLayer, LargestPayload) {
    Packet packet;
    packet.ipv6({.payload_length = 65535});
    for (unsigned i = 0; i < kMaxExtensionHeaders; ++i) {
        packet.destination_options({.options = Bytes(2046, 0)});
    }
    const Bytes whole = packet.raw(Bytes(65535, 0)).bytes();
    const UpperLayer upper = find_upper_layer(whole);
    EXPECT_EQ(upper.reason, DropReason::kNone);
    EXPECT_EQ(upper.offset, 40 + 8 * 2048);
}

}  // namespace
}  // namespace sluice::net
