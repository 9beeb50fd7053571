// SPDX-License-Identifier: BSD-3-Clause
// IPv4 from validation to the frame that leaves.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "fib/dst.h"
#include "net/wire.h"
#include "support/frame.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {

namespace {

using net::IpProtocol;
constexpr NetdevId kP0 = StageBench::kP0;
constexpr NetdevId kP1 = StageBench::kP1;

Packet from_h0() {
    return Packet().eth();
}
/// Like from_h0(), of H1 on p1.
Packet from_h1() {
    return Packet().eth({.dst = StageBench::kP1Mac, .src = StageBench::kH1Mac});
}

Case to_gateway(std::string name, const Ipv4& in) {
    Ipv4 out = in;
    --out.ttl;
    return {.name = std::move(name),
            .in = from_h0().ipv4(in).udp().payload(18),
            .want = forwarded(by_p1().ipv4(out).udp().payload(18))};
}

Case to_nowhere(std::string name, const Ipv4& in, DropReason reason) {
    return {.name = std::move(name),
            .in = from_h0().ipv4(in).udp().payload(18),
            .want = dropped(reason)};
}

class Forward4 : public StageRows {};
TEST_P(Forward4, Row) {
    expect(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Routes,
    Forward4,
    testing::Values(
        to_gateway("Check_1_Case_A1_A2_gateway", {}),
        Case{.name = "Case_A2_connected",
             .in = from_h0().ipv4({.dst = "10.0.1.2"}).udp().payload(18),
             .want = forwarded(by_p1().ipv4({.dst = "10.0.1.2", .ttl = 63}).udp().payload(18))},
        Case{.name = "Check_1_back_from_H1",
             .in = from_h1().ipv4({.src = "192.0.2.9", .dst = "10.0.0.2"}).udp().payload(18),
             .want = forwarded(
                 by_p0().ipv4({.src = "192.0.2.9", .dst = "10.0.0.2", .ttl = 63}).udp().payload(18),
                 0),
             .port = kP1},
        Case{.name = "Case_H114_out_by_the_ingress_no_redirect",
             .in = from_h0().ipv4({.src = "10.0.0.7", .dst = "10.0.0.2"}).udp().payload(18),
             .want = forwarded(
                 by_p0().ipv4({.src = "10.0.0.7", .dst = "10.0.0.2", .ttl = 63}).udp().payload(18),
                 0)},
        to_gateway("Check_3_class_E_source", {.src = "240.0.0.1"}),
        to_gateway("Check_4_source_is_destination", {.src = "192.0.2.9"}),
        to_gateway("Case_A4_ttl_two_leaves_with_one", {.ttl = 2}),
        to_gateway("tos_and_ecn_pass", {.tos = 0xbb}),
        to_gateway("Check_130_record_route_passes", {.options = {7, 7, 4, 0, 0, 0, 0, 0}}),
        to_gateway("Check_130_router_alert_passes", {.options = {148, 4, 0, 0}}),
        to_gateway("Check_130_forty_bytes_of_nop", {.options = Bytes(40, 1)}),
        to_gateway("first_fragment_passes", {.mf = true}),
        to_gateway("later_fragment_passes", {.frag_offset = 1480}),
        Case{.name = "tcp_passes",
             .in = from_h0().ipv4().tcp(),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).tcp())},
        Case{.name = "icmp_error_in_transit_passes",
             .in = from_h0().ipv4().icmp(11).payload(28),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).icmp(11).payload(28))},
        Case{.name = "shortest_packet_that_is_only_a_header",
             .in = from_h0().ipv4({.protocol = IpProtocol{253}}),
             .want = forwarded(by_p1().ipv4({.ttl = 63, .protocol = IpProtocol{253}}))},
        Case{.name = "Case_A9_frame_of_1518",
             .in = from_h0().ipv4().udp().payload(1472).pad_to(1518),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().payload(1472))},
        Case{.name = "Check_123_padding_up_to_60_stays",
             .in = from_h0().ipv4().udp().pad_to(60, 0xaa),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().pad_to(60, 0xaa))},
        Case{.name = "Check_153_padding_past_60_goes",
             .in = from_h0().ipv4().udp().payload(72).pad_to(1414, 0xaa),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().payload(72))},
        Case{.name = "padding_to_60_of_a_longer_frame",
             .in = from_h0().ipv4().udp().pad_to(64, 0xaa),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().pad_to(60, 0xaa))}),
    case_name);

// From the list of ready frames.
INSTANTIATE_TEST_SUITE_P(
    ReadyFrames,
    Forward4,
    testing::Values(
        Case{.name = "P1_padding",
             .in = Packet().raw(
                 from_hex("02000000000102aa0000000208004500001c000100004011aec50a000002c0000209"
                          "03e807d000080000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")),
             .want = forwarded(
                 by_p1().ipv4({.ttl = 63}).udp({.checksum = std::uint16_t{0}}).pad_to(60, 0xaa))},
        Case{.name = "P2_Case_A12_checksum_zero_edge",
             .in = Packet().raw(
                 from_hex("02000000000102aa0000000208004500002eafb400004011feff0a000002c0000209"
                          "03e807d0001a0000787878787878787878787878787878787878")),
             .want = forwarded(Packet().raw(
                 from_hex("02bb0000000202000000000208004500002eafb400003f1100000a000002c0000209"
                          "03e807d0001a0000787878787878787878787878787878787878")))},
        Case{.name = "P5_Case_H103_source_zero",
             .in = Packet().raw(
                 from_hex("02000000000102aa0000000208004500002e000100004011b8b500000000c0000209"
                          "03e807d0001a0000787878787878787878787878787878787878")),
             .want = dropped(DropReason::kMartianSourceZero)},
        Case{.name = "P6_Check_154_Case_C39_truncated",
             .in = Packet().raw(
                 from_hex("02000000000102aa00000002080045000578000100004011a9690a000002c0000209"
                          "03e807d0001a0000787878787878787878787878787878787878")),
             .want = dropped(DropReason::kIpv4Truncated)},
        Case{.name = "P7_Check_130_options",
             .in = Packet().raw(from_hex(
                 "02000000000102aa00000002080047"
                 "00002e000100004011a1ac0a000002c0000209070704000000000003e807d00012000078787878"
                 "787878787878")),
             .want = forwarded(Packet().raw(from_hex(
                 "02bb00000002020000000002080047"
                 "00002e000100003f11a2ac0a000002c0000209070704000000000003e807d00012000078787878"
                 "787878787878")))}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Header,
    Forward4,
    testing::Values(
        Case{.name = "shorter_than_a_header",
             .in = from_h0().ipv4().truncate(14 + 19),
             .want = dropped(DropReason::kIpv4TooShort)},
        Case{.name = "nothing_behind_the_ether_type",
             .in = from_h0().ipv4().truncate(14),
             .want = dropped(DropReason::kIpv4TooShort)},
        to_nowhere("Check_123_version", {.version = std::uint8_t{5}}, DropReason::kIpv4BadVersion),
        to_nowhere("ihl_below_five", {.ihl = std::uint8_t{4}}, DropReason::kIpv4BadHeaderLength),
        to_nowhere("total_length_below_the_header",
                   {.total_length = std::uint16_t{19}},
                   DropReason::kIpv4BadTotalLength),
        to_nowhere("Check_123_length_past_the_frame",
                   {.total_length = std::uint16_t{47}},
                   DropReason::kIpv4Truncated),
        to_nowhere("Check_123_Case_A9_checksum",
                   {.checksum = std::uint16_t{0x1234}},
                   DropReason::kIpv4BadChecksum),
        Case{.name = "ihl_past_the_packet",
             .in = from_h0().ipv4({.ihl = std::uint8_t{15}}),
             .want = dropped(DropReason::kIpv4BadTotalLength)},
        Case{.name = "Check_123_tiny_fragment",
             .in = from_h0().ipv4({.frag_offset = 8, .protocol = IpProtocol::kTcp}).payload(16),
             .want = dropped(DropReason::kIpv4TinyFragment)},
        to_nowhere("loose_source_route",
                   {.options = {131, 7, 4, 10, 0, 1, 2}},
                   DropReason::kIpv4SourceRoute),
        to_nowhere("strict_source_route",
                   {.options = {137, 7, 4, 10, 0, 1, 2}},
                   DropReason::kIpv4SourceRoute),
        Case{.name = "option_longer_than_the_header",
             .in = from_h0().ipv4({.options = {7, 9, 4, 0}}).udp().payload(18),
             .want = dropped(DropReason::kIpv4BadOption,
                             error4(from_h0().ipv4({.options = {7, 9, 4, 0}}).udp().payload(18),
                                    net::icmp::kParameterProblem,
                                    0,
                                    21U << 24U))},
        // Case A9: what the device says of the checksum.
        Case{.name = "Case_A9_device_says_good",
             .in = from_h0().ipv4().udp().payload(18),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().payload(18)),
             .offload_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD},
        Case{.name = "Case_A9_device_says_bad_and_is_wrong",
             .in = from_h0().ipv4().udp().payload(18),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().payload(18)),
             .offload_flags = RTE_MBUF_F_RX_IP_CKSUM_BAD},
        Case{.name = "Case_A9_device_says_bad_and_is_right",
             .in = from_h0().ipv4({.checksum = std::uint16_t{0x1234}}).udp().payload(18),
             .want = dropped(DropReason::kIpv4BadChecksum),
             .offload_flags = RTE_MBUF_F_RX_IP_CKSUM_BAD},
        Case{.name = "Case_A9_device_says_nothing",
             .in = from_h0().ipv4({.checksum = std::uint16_t{0x1234}}).udp().payload(18),
             .want = dropped(DropReason::kIpv4BadChecksum),
             .offload_flags = RTE_MBUF_F_RX_IP_CKSUM_UNKNOWN},
        Case{.name = "Case_A9_device_says_none",
             .in = from_h0().ipv4({.checksum = std::uint16_t{0x1234}}).udp().payload(18),
             .want = dropped(DropReason::kIpv4BadChecksum),
             .offload_flags = RTE_MBUF_F_RX_IP_CKSUM_NONE}),
    case_name);

INSTANTIATE_TEST_SUITE_P(Martians,
                         Forward4,
                         testing::Values(to_nowhere("Check_128_source_zero_net",
                                                    {.src = "0.1.2.3"},
                                                    DropReason::kMartianSourceZero),
                                         to_nowhere("Check_128_source_loopback",
                                                    {.src = "127.0.0.1"},
                                                    DropReason::kMartianSourceLoopback),
                                         to_nowhere("Check_128_source_multicast",
                                                    {.src = "224.0.0.1"},
                                                    DropReason::kMartianSourceMulticast),
                                         to_nowhere("Check_128_source_broadcast",
                                                    {.src = "255.255.255.255"},
                                                    DropReason::kMartianSourceBroadcast),
                                         to_nowhere("Check_128_Case_A8_source_own_of_the_ingress",
                                                    {.src = "10.0.0.1"},
                                                    DropReason::kMartianSourceOwn),
                                         to_nowhere("Check_128_source_own_of_another_port",
                                                    {.src = "10.0.1.1"},
                                                    DropReason::kMartianSourceOwn),
                                         to_nowhere("Case_H103_destination_zero_net",
                                                    {.dst = "0.1.2.3"},
                                                    DropReason::kMartianDestinationZero),
                                         to_nowhere("Case_H103_destination_loopback",
                                                    {.dst = "127.0.0.1"},
                                                    DropReason::kMartianDestinationLoopback),
                                         to_nowhere("Check_113_zero_to_zero",
                                                    {.src = "0.0.0.0", .dst = "0.0.0.0"},
                                                    DropReason::kMartianSourceZero),
                                         to_nowhere("Check_124_source_zero_to_an_own_address",
                                                    {.src = "0.0.0.0", .dst = "10.0.0.1"},
                                                    DropReason::kMartianSourceZero),
                                         to_nowhere("Check_124_source_broadcast_to_an_own_address",
                                                    {.src = "255.255.255.255", .dst = "10.0.0.1"},
                                                    DropReason::kMartianSourceBroadcast),
                                         to_nowhere("multicast_without_a_route",
                                                    {.dst = "239.1.2.3"},
                                                    DropReason::kDestinationMulticast)),
                         case_name);

Case about_route(std::string name, const char* destination, DropReason reason, std::uint8_t code) {
    const Packet in = from_h0().ipv4({.dst = destination}).udp().payload(18);
    return {.name = std::move(name),
            .in = in,
            .want = dropped(reason, error4(in, net::icmp::kUnreachable, code))};
}

/// The bench with one route of every other type.
class Routes4 : public StageRows {
protected:
    void SetUp() override {
        add_route("198.51.100.0/26", {.type = fib::DstType::kUnreachable});
        add_route("198.51.100.64/26", {.type = fib::DstType::kProhibit});
        add_route("198.51.100.128/26", {.type = fib::DstType::kBlackhole});
        add_route("169.254.1.0/24", {.via = "10.0.1.2", .dev = kP1});
        add_route("240.0.0.0/4", {.via = "10.0.1.2", .dev = kP1});
    }
};
TEST_P(Routes4, Row) {
    expect(GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Types,
    Routes4,
    testing::Values(
        about_route(
            "Check_129_Case_B20_no_route", "203.0.113.9", DropReason::kNoRoute, net::icmp::kNet),
        about_route("unreachable", "198.51.100.1", DropReason::kRouteUnreachable, net::icmp::kHost),
        about_route(
            "prohibit", "198.51.100.65", DropReason::kRouteProhibit, net::icmp::kAdminProhibited),
        Case{.name = "blackhole_is_silent",
             .in = from_h0().ipv4({.dst = "198.51.100.129"}).udp().payload(18),
             .want = dropped(DropReason::kRouteBlackhole)},
        to_gateway("Check_6_link_local_destination", {.dst = "169.254.1.1"}),
        to_gateway("Case_H104_class_E_destination", {.dst = "240.1.1.1"})),
    case_name);

class Ip4 : public StageRows {};

TEST_F(Ip4, Case_H104_class_E_when_switched_off) {
    add_route("240.0.0.0/4", {.via = "10.0.1.2", .dev = kP1});
    netdev(kP0).forward_class_e = false;
    expect({.name = "off",
            .in = from_h0().ipv4({.dst = "240.1.1.1"}).udp(),
            .want = dropped(DropReason::kDestinationReserved)});
}

TEST_F(Ip4, Check_122_no_address_then_an_address) {
    const NetdevId p2 = add_netdev({.port = 2, .mac = "02:00:00:00:00:03"});
    const Packet in = Packet().eth({.dst = "02:00:00:00:00:03"}).ipv4({.src = "10.0.2.2"}).udp();
    const Packet out = by_p1().ipv4({.src = "10.0.2.2", .ttl = 63}).udp();
    expect({.name = "none", .in = in, .want = dropped(DropReason::kIpDisabled), .port = p2});
    add_address(p2, "10.0.2.1/24");
    expect({.name = "one", .in = in, .want = forwarded(out), .port = p2});
    netdev(p2).has_ipv4 = false;
    expect({.name = "removed", .in = in, .want = dropped(DropReason::kIpDisabled), .port = p2});
}

TEST_F(Ip4, Check_110_forwarding_is_the_ingress_s_business) {
    netdev(kP0).forwarding = false;
    const Packet in = from_h0().ipv4().udp();
    expect({.name = "off on p0",
            .in = in,
            .want = dropped(DropReason::kForwardingDisabled,
                            error4(in, net::icmp::kUnreachable, net::icmp::kHost))});
    expect({.name = "on on p1",
            .in = from_h1().ipv4().udp(),
            .want = forwarded(by_p1().ipv4({.ttl = 63}).udp()),
            .port = kP1});
    const Packet lost = from_h0().ipv4({.dst = "203.0.113.9"}).udp();
    expect({.name = "off, no route",
            .in = lost,
            .want = dropped(DropReason::kForwardingDisabled,
                            error4(lost, net::icmp::kUnreachable, net::icmp::kHost))});
}

TEST_F(Ip4, Check_108_localnet_when_switched_on) {
    add_address(kP0, "127.25.3.4/24");
    add_neighbor(kP0, net::IpAddr::parse("127.25.3.14").value());
    resolve(kP0, net::IpAddr::parse("127.25.3.14").value(), kH0Mac);
    const Packet in =
        from_h0().ipv4({.src = "127.25.3.14", .dst = "127.25.3.4"}).icmp(net::icmp::kEcho);
    expect({.name = "off", .in = in, .want = dropped(DropReason::kMartianSourceLoopback)});
    netdev(kP0).route_localnet = true;
    expect({.name = "on",
            .in = in,
            .want = answered(by_p0()
                                 .ipv4({.src = "127.25.3.4", .dst = "127.25.3.14"})
                                 .icmp(net::icmp::kEchoReply))});
}

TEST_F(Ip4, Case_H106_slash_31_and_32) {
    const NetdevId p2 = add_netdev(
        {.port = 2, .mac = "02:00:00:00:00:03", .addresses = {"10.9.9.0/31", "10.8.8.8/32"}});
    add_neighbor(p2, net::IpAddr::parse("10.9.9.1").value());
    resolve(p2, net::IpAddr::parse("10.9.9.1").value(), "02:cc:00:00:00:02");
    expect({.name = "to the peer",
            .in = from_h0().ipv4({.dst = "10.9.9.1"}).udp(),
            .want = forwarded(Packet()
                                  .eth({.dst = "02:cc:00:00:00:02", .src = "02:00:00:00:00:03"})
                                  .ipv4({.dst = "10.9.9.1", .ttl = 63})
                                  .udp(),
                              2)});
    for (const char* own : {"10.9.9.0", "10.8.8.8"}) {
        expect({.name = own,
                .in = from_h0().ipv4({.dst = own}).icmp(net::icmp::kEcho),
                .want = answered(
                    by_p0().ipv4({.src = own, .dst = "10.0.0.2"}).icmp(net::icmp::kEchoReply))});
    }
}

TEST_F(Ip4, Check_72_gateway_of_the_other_family) {
    add_route("203.0.113.0/24", {.via = "fd00:1::2", .dev = kP1});
    expect({.name = "via v6",
            .in = from_h0().ipv4({.dst = "203.0.113.9"}).udp(),
            .want = forwarded(by_p1().ipv4({.dst = "203.0.113.9", .ttl = 63}).udp())});
}

// A burst of everything keeps each packet's fate and the order of those that leave.
TEST_F(Ip4, one_burst_of_many_kinds) {
    const Packet good = from_h0().ipv4().udp().payload(18);
    receive(kP0,
            std::vector<Bytes>{good.bytes(),
                               from_h0().ipv6().udp().bytes(),
                               from_h0().ipv4({.checksum = std::uint16_t{1}}).udp().bytes(),
                               from_h0().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kEcho).bytes(),
                               from_h0().ipv4({.id = 7}).udp().bytes(),
                               from_h0().arp().bytes()});
    const auto sent = take_sent();
    ASSERT_EQ(sent.size(), 4U);
    EXPECT_EQ(counters(kP0).forwarded, 3U);
    EXPECT_EQ(counters(kP0).delivered, 1U);
    EXPECT_EQ(drops(kP0, DropReason::kIpv4BadChecksum), 1U);
    EXPECT_EQ(take_punted().size(), 1U);
    std::vector<std::uint16_t> ids;
    for (const Sent& s : sent) {
        const Frame frame = parse_frame(s.bytes);
        if (s.port == 1 && frame.ipv4) {
            ids.push_back(frame.ipv4->id.host());
        }
    }
    EXPECT_EQ(ids, (std::vector<std::uint16_t>{1, 7}));
    EXPECT_EQ(counters(kP1).tx_packets, 3U);
    EXPECT_EQ(counters(kP0).tx_packets, 1U);
}

}  // namespace

}  // namespace sluice::test
