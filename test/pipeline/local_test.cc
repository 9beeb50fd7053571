// SPDX-License-Identifier: BSD-3-Clause
// What is for the router itself.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/drop_reason.h"
#include "net/wire.h"
#include "support/frame.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {

namespace {

using net::IpProtocol;
constexpr NetdevId kP0 = StageBench::kP0;
constexpr NetdevId kP1 = StageBench::kP1;
constexpr std::uint32_t kEchoRest = 0x12340001;

Packet from_h0() {
    return Packet().eth();
}
Packet to_all() {
    return Packet().eth({.dst = net::kBroadcastMac});
}
Packet request4(V4 to) {
    return from_h0().ipv4({.dst = to}).icmp(net::icmp::kEcho, 0, kEchoRest).payload(56);
}
Packet reply4(V4 from) {
    return by_p0()
        .ipv4({.src = from, .dst = "10.0.0.2"})
        .icmp(net::icmp::kEchoReply, 0, kEchoRest)
        .payload(56);
}
Packet request6(V6 to) {
    return from_h0().ipv6({.dst = to}).icmp6(net::icmp6::kEcho, 0, kEchoRest).payload(56);
}
Packet reply6(V6 from) {
    return by_p0()
        .ipv6({.src = from, .dst = "fd00::2"})
        .icmp6(net::icmp6::kEchoReply, 0, kEchoRest)
        .payload(56);
}
// The error comes from the address that was talked to.
Case refused4(std::string name, const Packet& in, DropReason reason, std::uint8_t code) {
    const V4 talked_to = parse_frame(in.bytes()).ipv4->destination;
    return {.name = std::move(name),
            .in = in,
            .want = dropped(reason, error4(in, net::icmp::kUnreachable, code, 0, talked_to))};
}
Case silent(std::string name, const Packet& in, DropReason reason) {
    return {.name = std::move(name), .in = in, .want = dropped(reason)};
}

class Local : public StageRows {};
TEST_P(Local, Row) {
    expect(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Echo4,
    Local,
    testing::Values(
        Case{.name = "own_of_the_ingress",
             .in = request4("10.0.0.1"),
             .want = answered(reply4("10.0.0.1"))},
        Case{.name = "own_of_the_other_port",
             .in = request4("10.0.1.1"),
             .want = answered(reply4("10.0.1.1"))},
        Case{.name = "Case_A3_ttl_1_is_delivered",
             .in = from_h0().ipv4({.dst = "10.0.0.1", .ttl = 1}).icmp(net::icmp::kEcho),
             .want = answered(
                 by_p0().ipv4({.src = "10.0.0.1", .dst = "10.0.0.2"}).icmp(net::icmp::kEchoReply))},
        Case{.name = "all_zeros_checksum_edge",
             .in = from_h0().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kEcho).raw(Bytes(3)),
             .want = answered(by_p0()
                                  .ipv4({.src = "10.0.0.1", .dst = "10.0.0.2"})
                                  .icmp(net::icmp::kEchoReply)
                                  .raw(Bytes(3)))},
        Case{.name = "Case_A14_padding_is_not_data",
             .in = from_h0()
                       .ipv4({.dst = "10.0.0.1"})
                       .icmp(net::icmp::kEcho)
                       .payload(1)
                       .pad_to(60, 0xaa),
             .want = answered(by_p0()
                                  .ipv4({.src = "10.0.0.1", .dst = "10.0.0.2"})
                                  .icmp(net::icmp::kEchoReply)
                                  .payload(1))},
        Case{.name = "options_come_back",
             .in = from_h0()
                       .ipv4({.dst = "10.0.0.1", .options = {148, 4, 0, 0}})
                       .icmp(net::icmp::kEcho),
             .want = answered(
                 by_p0()
                     .ipv4({.src = "10.0.0.1", .dst = "10.0.0.2", .options = {148, 4, 0, 0}})
                     .icmp(net::icmp::kEchoReply))},
        Case{
            .name = "df_goes_tos_stays",
            .in =
                from_h0().ipv4({.dst = "10.0.0.1", .tos = 0x88, .df = true}).icmp(net::icmp::kEcho),
            .want = answered(by_p0()
                                 .ipv4({.src = "10.0.0.1", .dst = "10.0.0.2", .tos = 0x88})
                                 .icmp(net::icmp::kEchoReply))},
        Case{.name = "Case_C11_zero_length_segment",
             .in = request4("10.0.0.1"),
             .want = answered(reply4("10.0.0.1")),
             .segments = {0, 14, 0, 20, 0, 8, 0}},
        Case{.name = "segments_of_odd_sizes",
             .in = from_h0().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kEcho).payload(301),
             .want = answered(by_p0()
                                  .ipv4({.src = "10.0.0.1", .dst = "10.0.0.2"})
                                  .icmp(net::icmp::kEchoReply)
                                  .payload(301)),
             .segments = {99, 3, 0, 101, 7}},
        silent(
            "bad_checksum",
            from_h0().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kEcho, 0, 0, std::uint16_t{0x1234}),
            DropReason::kIcmpBadChecksum),
        silent("too_short",
               from_h0().ipv4({.dst = "10.0.0.1", .protocol = IpProtocol::kIcmp}).payload(7),
               DropReason::kLocalTooShort),
        silent("of_a_fragment",
               from_h0().ipv4({.dst = "10.0.0.1", .mf = true}).icmp(net::icmp::kEcho),
               DropReason::kIpv4LocalFragment),
        silent("in_a_broadcast_frame",
               to_all().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kEcho),
               DropReason::kL2BroadcastUnicast),
        Case{.name = "reply_is_delivered",
             .in = from_h0().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kEchoReply),
             .want = delivered()},
        Case{.name = "error_is_delivered",
             .in = from_h0().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kUnreachable).payload(28),
             .want = delivered()},
        silent("timestamp_is_not_spoken",
               from_h0().ipv4({.dst = "10.0.0.1"}).icmp(13).payload(12),
               DropReason::kIcmpUnknownType),
        refused4("Case_B31_udp",
                 from_h0().ipv4({.dst = "10.0.1.1"}).udp({.dport = 33434}),
                 DropReason::kUdpNoPort,
                 net::icmp::kPort),
        silent("tcp_is_silent", from_h0().ipv4({.dst = "10.0.0.1"}).tcp(), DropReason::kTcpNoPort),
        silent("udp_too_short",
               from_h0().ipv4({.dst = "10.0.0.1", .protocol = IpProtocol::kUdp}).payload(7),
               DropReason::kLocalTooShort),
        refused4("unknown_protocol",
                 from_h0().ipv4({.dst = "10.0.0.1", .protocol = IpProtocol{253}}).payload(8),
                 DropReason::kUnknownProtocol,
                 net::icmp::kProtocol)),
    case_name);

// checks.md B, by the case that each row comes from.
INSTANTIATE_TEST_SUITE_P(Broadcast,
                         Local,
                         testing::Values(Case{.name = "Check_12_remote_net",
                                              .in = request4("10.0.1.255"),
                                              .want = answered(reply4("10.0.0.1"))},
                                         Case{.name = "Check_13_own_net",
                                              .in = request4("10.0.0.255"),
                                              .want = answered(reply4("10.0.0.1"))},
                                         Case{.name = "Check_13_own_net_in_a_broadcast_frame",
                                              .in = to_all()
                                                        .ipv4({.dst = "10.0.0.255"})
                                                        .icmp(net::icmp::kEcho, 0, kEchoRest)
                                                        .payload(56),
                                              .want = answered(reply4("10.0.0.1"))},
                                         Case{.name = "Check_14_113_limited",
                                              .in = to_all()
                                                        .ipv4({.dst = "255.255.255.255"})
                                                        .icmp(net::icmp::kEcho, 0, kEchoRest)
                                                        .payload(56),
                                              .want = answered(reply4("10.0.0.1"))},
                                         Case{.name = "all_hosts",
                                              .in = Packet()
                                                        .eth({.dst = "01:00:5e:00:00:01"})
                                                        .ipv4({.dst = "224.0.0.1"})
                                                        .icmp(net::icmp::kEcho, 0, kEchoRest)
                                                        .payload(56),
                                              .want = answered(reply4("10.0.0.1"))}),
                         case_name);

class Broadcasts : public StageRows {
protected:
    void SetUp() override {
        netdev(kP0).bc_forwarding = true;
        netdev(kP1).bc_forwarding = true;
    }
};

TEST_F(Broadcasts, Check_15_remote_is_forwarded) {
    expect({.name = "p0",
            .in = request4("10.0.1.255"),
            .want = forwarded(Packet()
                                  .eth({.dst = net::kBroadcastMac, .src = kP1Mac})
                                  .ipv4({.dst = "10.0.1.255", .ttl = 63})
                                  .icmp(net::icmp::kEcho, 0, kEchoRest)
                                  .payload(56))});
}
TEST_F(Broadcasts, Check_16_of_the_ingress_is_dropped) {
    expect(silent("p0", request4("10.0.0.255"), DropReason::kDestinationBroadcast));
}
TEST_F(Broadcasts, Check_14_limited_is_answered_all_the_same) {
    expect({.name = "p0", .in = request4("255.255.255.255"), .want = answered(reply4("10.0.0.1"))});
}
// RFC 1812 5.3.4
TEST_F(Broadcasts, link_broadcast_is_not_forwarded) {
    expect(
        silent("p0", to_all().ipv4({.dst = "10.0.1.255"}).udp(), DropReason::kL2BroadcastUnicast));
}
TEST_F(Broadcasts, Check_17_the_ingress_decides) {
    netdev(kP0).bc_forwarding = false;
    expect(
        {.name = "off on p0", .in = request4("10.0.1.255"), .want = answered(reply4("10.0.0.1"))});
    expect({.name = "on on p1",
            .in = Packet()
                      .eth({.dst = kP1Mac, .src = kH1Mac})
                      .ipv4({.src = "10.0.1.2", .dst = "10.0.0.255"})
                      .udp(),
            .want = forwarded(Packet()
                                  .eth({.dst = net::kBroadcastMac, .src = kP0Mac})
                                  .ipv4({.src = "10.0.1.2", .dst = "10.0.0.255", .ttl = 63})
                                  .udp(),
                              0),
            .port = kP1});
}

INSTANTIATE_TEST_SUITE_P(
    Echo6,
    Local,
    testing::Values(
        Case{.name = "own_of_the_ingress",
             .in = request6("fd00::1"),
             .want = answered(reply6("fd00::1"))},
        Case{.name = "own_of_the_other_port",
             .in = request6("fd00:1::1"),
             .want = answered(reply6("fd00:1::1"))},
        Case{.name = "hop_limit_1_is_delivered",
             .in = from_h0().ipv6({.dst = "fd00::1", .hop_limit = 1}).icmp6(net::icmp6::kEcho),
             .want = answered(
                 by_p0().ipv6({.src = "fd00::1", .dst = "fd00::2"}).icmp6(net::icmp6::kEchoReply))},
        Case{.name = "all_nodes",
             .in = Packet()
                       .eth({.dst = "33:33:00:00:00:01"})
                       .ipv6({.dst = "ff02::1"})
                       .icmp6(net::icmp6::kEcho, 0, kEchoRest)
                       .payload(56),
             .want = answered(reply6("fd00::1"))},
        Case{.name = "all_routers", .in = request6("ff02::2"), .want = answered(reply6("fd00::1"))},
        Case{.name = "class_stays_label_goes",
             .in = from_h0()
                       .ipv6({.dst = "fd00::1", .traffic_class = 0x88, .flow_label = 0x12345})
                       .icmp6(net::icmp6::kEcho),
             .want = answered(by_p0()
                                  .ipv6({.src = "fd00::1", .dst = "fd00::2", .traffic_class = 0x88})
                                  .icmp6(net::icmp6::kEchoReply))},
        Case{.name = "behind_extension_headers",
             .in = from_h0()
                       .ipv6({.dst = "fd00::1"})
                       .hop_by_hop()
                       .destination_options({.options = Bytes(14, 0)})
                       .icmp6(net::icmp6::kEcho, 0, kEchoRest)
                       .payload(56),
             .want = answered(reply6("fd00::1"))},
        Case{.name = "Case_H110_routing_header_0_with_none_left",
             .in = from_h0()
                       .ipv6({.dst = "fd00::1"})
                       .routing({.data = Bytes(20)})
                       .icmp6(net::icmp6::kEcho, 0, kEchoRest)
                       .payload(56),
             .want = answered(reply6("fd00::1"))},
        Case{.name = "atomic_fragment",
             .in = from_h0()
                       .ipv6({.dst = "fd00::1"})
                       .fragment()
                       .icmp6(net::icmp6::kEcho, 0, kEchoRest)
                       .payload(56),
             .want = answered(reply6("fd00::1"))},
        Case{.name = "padding_is_not_data",
             .in = from_h0()
                       .ipv6({.dst = "fd00::1"})
                       .icmp6(net::icmp6::kEcho)
                       .payload(1)
                       .pad_to(80, 0xaa),
             .want = answered(by_p0()
                                  .ipv6({.src = "fd00::1", .dst = "fd00::2"})
                                  .icmp6(net::icmp6::kEchoReply)
                                  .payload(1))},
        Case{.name = "segments_of_odd_sizes",
             .in = from_h0().ipv6({.dst = "fd00::1"}).icmp6(net::icmp6::kEcho).payload(1201),
             .want = answered(by_p0()
                                  .ipv6({.src = "fd00::1", .dst = "fd00::2"})
                                  .icmp6(net::icmp6::kEchoReply)
                                  .payload(1201)),
             .segments = {0, 61, 0, 701, 38, 77}},
        silent("of_a_fragment",
               from_h0()
                   .ipv6({.dst = "fd00::1"})
                   .fragment({.more = true})
                   .icmp6(net::icmp6::kEcho)
                   .payload(8),
               DropReason::kIpv6LocalFragment),
        silent("bad_checksum",
               from_h0()
                   .ipv6({.dst = "fd00::1"})
                   .icmp6(net::icmp6::kEcho, 0, 0, std::uint16_t{0x1234}),
               DropReason::kIcmpBadChecksum),
        silent("too_short",
               from_h0().ipv6({.dst = "fd00::1", .next_header = IpProtocol::kIcmpv6}).payload(7),
               DropReason::kLocalTooShort),
        silent("in_a_multicast_frame",
               Packet()
                   .eth({.dst = "33:33:00:00:00:01"})
                   .ipv6({.dst = "fd00::1"})
                   .icmp6(net::icmp6::kEcho),
               DropReason::kL2BroadcastUnicast),
        silent("from_nobody",
               from_h0().ipv6({.src = "::", .dst = "ff02::1"}).icmp6(net::icmp6::kEcho),
               DropReason::kMartianSourceZero),
        Case{.name = "reply_is_delivered",
             .in = from_h0().ipv6({.dst = "fd00::1"}).icmp6(net::icmp6::kEchoReply),
             .want = delivered()},
        Case{.name = "unknown_error_is_delivered",
             .in = from_h0().ipv6({.dst = "fd00::1"}).icmp6(100).payload(48),
             .want = delivered()},
        silent("unknown_message",
               from_h0().ipv6({.dst = "fd00::1"}).icmp6(200),
               DropReason::kIcmpUnknownType),
        Case{.name = "no_next_header",
             .in = from_h0().ipv6({.dst = "fd00::1", .next_header = IpProtocol::kNoNext}),
             .want = delivered()},
        silent("tcp_is_silent", from_h0().ipv6({.dst = "fd00::1"}).tcp(), DropReason::kTcpNoPort)),
    case_name);

Case refused6(std::string name,
              const Packet& in,
              DropReason reason,
              std::uint8_t type,
              std::uint8_t code,
              std::uint32_t rest = 0) {
    const V6 talked_to = parse_frame(in.bytes()).ipv6->destination;
    return {.name = std::move(name),
            .in = in,
            .want = dropped(reason, error6(in, type, code, rest, talked_to))};
}

INSTANTIATE_TEST_SUITE_P(
    Refused6,
    Local,
    testing::Values(
        refused6("udp",
                 from_h0().ipv6({.dst = "fd00:1::1"}).udp({.dport = 33434}),
                 DropReason::kUdpNoPort,
                 net::icmp6::kUnreachable,
                 net::icmp6::kPort),
        refused6("unknown_next_header",
                 from_h0().ipv6({.dst = "fd00::1", .next_header = IpProtocol{253}}).payload(8),
                 DropReason::kUnknownProtocol,
                 net::icmp6::kParameterProblem,
                 net::icmp6::kUnknownNextHeader,
                 6),
        refused6("unknown_behind_options",
                 from_h0()
                     .ipv6({.dst = "fd00::1"})
                     .destination_options({.next_header = IpProtocol{253}})
                     .payload(8),
                 DropReason::kUnknownProtocol,
                 net::icmp6::kParameterProblem,
                 net::icmp6::kUnknownNextHeader,
                 40),
        refused6("Case_H110_routing_header_0",
                 from_h0()
                     .ipv6({.dst = "fd00::1"})
                     .routing({.segments_left = 1, .data = Bytes(20)})
                     .udp(),
                 DropReason::kIpv6RoutingHeader,
                 net::icmp6::kParameterProblem,
                 net::icmp6::kBadHeader,
                 42),
        silent("hop_by_hop_past_the_packet",
               from_h0().ipv6({.dst = "fd00::1"}).hop_by_hop({.length = std::uint8_t{255}}).udp(),
               DropReason::kIpv6BadExtension),
        silent("udp_to_a_group", from_h0().ipv6({.dst = "ff02::1"}).udp(), DropReason::kUdpNoPort)),
    case_name);

/// Neighbour discovery and ARP: on their way to the control thread, as they came.
Case punts(std::string name, const Packet& in) {
    return {.name = std::move(name), .in = in, .want = held()};
}
INSTANTIATE_TEST_SUITE_P(
    Punt,
    Local,
    testing::Values(
        punts("arp_request", to_all().arp()),
        punts("arp_reply", from_h0().arp({.operation = 2})),
        punts("short_arp", from_h0().arp().truncate(20)),
        punts("solicitation",
              Packet()
                  .eth({.dst = "33:33:ff:00:00:01"})
                  .ipv6({.dst = "ff02::1:ff00:1", .hop_limit = 255})
                  .ndp_ns({.source_link = "02:aa:00:00:00:02"})),
        punts("Case_D59_duplicate_address_detection",
              Packet()
                  .eth({.dst = "33:33:ff:00:00:01"})
                  .ipv6({.src = "::", .dst = "ff02::1:ff00:1", .hop_limit = 255})
                  .ndp_ns()),
        punts("solicitation_of_the_link_local_address",
              Packet()
                  .eth({.dst = "33:33:ff:00:00:01"})
                  .ipv6({.src = "fe80::2", .dst = "ff02::1:ff00:1", .hop_limit = 255})
                  .ndp_ns({.target = "fe80::ff:fe00:1"})),
        punts("unicast_advertisement",
              from_h0().ipv6({.dst = "fd00::1", .hop_limit = 255}).ndp_na({.solicited = true})),
        // Judged by the control thread, which counts it.
        punts("hop_limit_254", from_h0().ipv6({.dst = "fd00::1", .hop_limit = 254}).ndp_na()),
        silent("solicitation_for_another_group",
               Packet()
                   .eth({.dst = "33:33:ff:00:00:99"})
                   .ipv6({.dst = "ff02::1:ff00:99", .hop_limit = 255})
                   .ndp_ns({.target = "fd00::99"}),
               DropReason::kDestinationMulticast),
        silent("bad_checksum",
               from_h0()
                   .ipv6({.dst = "fd00::1", .hop_limit = 255})
                   .icmp6(net::icmp6::kNeighborSolicitation, 0, 0, std::uint16_t{0x1234})
                   .payload(16),
               DropReason::kIcmpBadChecksum)),
    case_name);

class LocalMore : public StageRows {};

TEST_F(LocalMore, punted_frames_are_as_they_came_and_say_where) {
    const Bytes arp = to_all().arp().bytes();
    receive(kP1, std::vector<Bytes>{arp});
    ASSERT_EQ(worker().punted.count(), 1U);
    EXPECT_EQ(counters(kP1).held, 1U);
    const auto frames = take_punted();
    ASSERT_EQ(frames.size(), 1U);
    EXPECT_EQ(difference(arp, frames[0]), "");
    EXPECT_EQ(counters(kP1).held, 0U);
    EXPECT_EQ(counters(kP1).delivered, 1U);
}

TEST_F(LocalMore, Case_K147_punt_ring_full) {
    const Bytes arp = to_all().arp().bytes();
    receive(kP0, std::vector<Bytes>(100, arp));
    EXPECT_EQ(worker().punted.count(), worker().punted.capacity());
    EXPECT_EQ(counters(kP0).held, worker().punted.capacity());
    EXPECT_EQ(drops(kP0, DropReason::kPuntFull), 100 - worker().punted.capacity());
}

TEST_F(LocalMore, Case_D61_link_local_echo) {
    const V6 peer = "fe80::2";
    add_neighbor(kP0, peer);
    resolve(kP0, peer, kH0Mac);
    expect(
        {.name = "fe80",
         .in = from_h0().ipv6({.src = peer, .dst = "fe80::ff:fe00:1"}).icmp6(net::icmp6::kEcho),
         .want = answered(
             by_p0().ipv6({.src = "fe80::ff:fe00:1", .dst = peer}).icmp6(net::icmp6::kEchoReply))});
    expect(silent("of the other port",
                  from_h0().ipv6({.src = peer, .dst = "fe80::ff:fe00:2"}).icmp6(net::icmp6::kEcho),
                  DropReason::kDestinationLinkLocal));
}

TEST_F(LocalMore, hosts_are_no_routers) {
    netdev(kP0).forwarding = false;
    expect(silent("all routers", request6("ff02::2"), DropReason::kDestinationMulticast));
    expect({.name = "echo", .in = request4("10.0.0.1"), .want = answered(reply4("10.0.0.1"))});
}

// A route of type local makes its whole prefix ours: the reply comes from what was asked.
TEST_F(LocalMore, echo_to_a_local_route_is_answered_from_there) {
    add_route("203.0.113.0/24", {.type = fib::DstType::kLocal, .dev = kLo});
    expect(
        {.name = "echo", .in = request4("203.0.113.5"), .want = answered(reply4("203.0.113.5"))});
}

// A reply longer than the way back takes goes in fragments: DF was cleared.
TEST_F(LocalMore, long_reply_is_fragmented) {
    add_route("10.0.0.2/32", {.via = "10.0.0.2", .dev = kP0, .mtu = 576});
    receive(kP0,
            std::vector<Bytes>{from_h0()
                                   .ipv4({.dst = "10.0.0.1", .df = true})
                                   .icmp(net::icmp::kEcho)
                                   .payload(1400)
                                   .bytes()});
    EXPECT_EQ(take_sent().size(), 3U);
    EXPECT_EQ(counters(kLo).forwarded, 1U);
    EXPECT_EQ(counters(kP0).delivered, 1U);
}

TEST_F(LocalMore, reply_to_a_spoofed_broadcast_goes_nowhere) {
    expect({.name = "smurf",
            .in = from_h0().ipv4({.src = "10.0.1.255", .dst = "10.0.0.1"}).icmp(net::icmp::kEcho),
            .want = delivered()});
    EXPECT_EQ(drops(kLo, DropReason::kDestinationBroadcast), 2U);
}

TEST_F(LocalMore, reply_without_a_route_is_lost_on_lo) {
    expect({.name = "no way back",
            .in = from_h0().ipv4({.src = "203.0.113.9", .dst = "10.0.0.1"}).icmp(net::icmp::kEcho),
            .want = delivered()});
    EXPECT_EQ(drops(kLo, DropReason::kNoRoute), 2U);
}

}  // namespace

}  // namespace sluice::test
