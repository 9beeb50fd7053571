// SPDX-License-Identifier: BSD-3-Clause
// IPv6 from validation to the frame that leaves.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/drop_reason.h"
#include "fib/dst.h"
#include "fib/netdev_view.h"
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
Packet from_h1() {
    return Packet().eth({.dst = StageBench::kP1Mac, .src = StageBench::kH1Mac});
}

Case to_gateway(std::string name, const Ipv6& in) {
    Ipv6 out = in;
    --out.hop_limit;
    return {.name = std::move(name),
            .in = from_h0().ipv6(in).udp().payload(18),
            .want = forwarded(by_p1().ipv6(out).udp().payload(18))};
}
Case to_nowhere(std::string name, const Ipv6& in, DropReason reason) {
    return {.name = std::move(name),
            .in = from_h0().ipv6(in).udp().payload(18),
            .want = dropped(reason)};
}

class Forward6 : public StageRows {};
TEST_P(Forward6, Row) {
    expect(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Routes,
    Forward6,
    testing::Values(
        to_gateway("Check_2_Case_A1_A2_gateway", {}),
        Case{.name = "Case_A2_connected",
             .in = from_h0().ipv6({.dst = "fd00:1::2"}).udp(),
             .want = forwarded(by_p1().ipv6({.dst = "fd00:1::2", .hop_limit = 63}).udp())},
        Case{
            .name = "Check_2_back_from_H1",
            .in = from_h1().ipv6({.src = "2001:db8:2::9", .dst = "fd00::2"}).udp(),
            .want = forwarded(
                by_p0().ipv6({.src = "2001:db8:2::9", .dst = "fd00::2", .hop_limit = 63}).udp(), 0),
            .port = kP1},
        to_gateway("Check_5_source_is_destination", {.src = "2001:db8:2::9"}),
        to_gateway("hop_limit_two_leaves_with_one", {.hop_limit = 2}),
        to_gateway("class_and_flow_label_pass", {.traffic_class = 0xbb, .flow_label = 0xfffff}),
        Case{.name = "Case_H108_hop_by_hop_passes",
             .in = from_h0().ipv6().hop_by_hop({.options = {5, 2, 0, 0}}).udp(),
             .want = forwarded(
                 by_p1().ipv6({.hop_limit = 63}).hop_by_hop({.options = {5, 2, 0, 0}}).udp())},
        Case{.name = "Case_H110_routing_header_with_segments_left_0",
             .in = from_h0().ipv6().routing().udp(),
             .want = forwarded(by_p1().ipv6({.hop_limit = 63}).routing().udp())},
        Case{.name = "Case_H110_routing_header_in_transit",
             .in = from_h0().ipv6().routing({.segments_left = 1, .data = Bytes(20, 1)}).udp(),
             .want = forwarded(by_p1()
                                   .ipv6({.hop_limit = 63})
                                   .routing({.segments_left = 1, .data = Bytes(20, 1)})
                                   .udp())},
        Case{.name = "Case_H111_router_alert_and_fragment",
             .in = from_h0()
                       .ipv6()
                       .hop_by_hop({.options = {5, 2, 0, 0}})
                       .fragment({.offset = 8, .more = true})
                       .payload(16),
             .want = forwarded(by_p1()
                                   .ipv6({.hop_limit = 63})
                                   .hop_by_hop({.options = {5, 2, 0, 0}})
                                   .fragment({.offset = 8, .more = true})
                                   .payload(16))},
        Case{.name = "unknown_next_header_passes",
             .in = from_h0().ipv6({.next_header = IpProtocol{253}}).payload(9),
             .want = forwarded(
                 by_p1().ipv6({.hop_limit = 63, .next_header = IpProtocol{253}}).payload(9))},
        Case{
            .name = "header_alone_passes",
            .in = from_h0().ipv6({.next_header = IpProtocol::kNoNext}),
            .want = forwarded(by_p1().ipv6({.hop_limit = 63, .next_header = IpProtocol::kNoNext}))},
        Case{.name = "Check_123_padding_goes",
             .in = from_h0().ipv6().udp().payload(12).pad_to(90, 0xaa),
             .want = forwarded(by_p1().ipv6({.hop_limit = 63}).udp().payload(12))},
        Case{.name = "P3_Case_H108_hop_by_hop_past_the_packet",
             .in = Packet().raw(from_hex(
                 "02000000000102aa0000000286dd6000000000080040fd000000000000000000000000000002"
                 "20010db800020000000000000000000911ff010400000000")),
             .want = forwarded(Packet().raw(from_hex(
                 "02bb0000000202000000000286dd600000000008003ffd000000000000000000000000000002"
                 "20010db800020000000000000000000911ff010400000000")))}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Header,
    Forward6,
    testing::Values(
        Case{.name = "shorter_than_a_header",
             .in = from_h0().ipv6().truncate(14 + 39),
             .want = dropped(DropReason::kIpv6TooShort)},
        to_nowhere("version", {.version = std::uint8_t{4}}, DropReason::kIpv6BadVersion),
        to_nowhere("Check_125_length_past_the_frame",
                   {.payload_length = std::uint16_t{27}},
                   DropReason::kIpv6Truncated),
        to_nowhere("Check_128_source_unspecified", {.src = "::"}, DropReason::kMartianSourceZero),
        to_nowhere("Check_128_source_loopback", {.src = "::1"}, DropReason::kMartianSourceLoopback),
        to_nowhere("Check_128_source_multicast",
                   {.src = "ff02::1"},
                   DropReason::kMartianSourceMulticast),
        to_nowhere("Check_128_source_own", {.src = "fd00::1"}, DropReason::kMartianSourceOwn),
        to_nowhere("Check_128_source_own_of_another_port",
                   {.src = "fd00:1::1"},
                   DropReason::kMartianSourceOwn),
        to_nowhere("Check_128_source_own_link_local",
                   {.src = "fe80::ff:fe00:1", .dst = "fd00::1"},
                   DropReason::kMartianSourceOwn),
        to_nowhere("destination_unspecified", {.dst = "::"}, DropReason::kMartianDestinationZero),
        to_nowhere("destination_loopback", {.dst = "::1"}, DropReason::kMartianDestinationLoopback),
        to_nowhere("Case_H113_link_local_destination",
                   {.dst = "fe80::9"},
                   DropReason::kDestinationLinkLocal),
        to_nowhere("Case_H113_link_local_of_the_other_port",
                   {.dst = "fe80::ff:fe00:2"},
                   DropReason::kDestinationLinkLocal),
        to_nowhere("Case_H113_group_of_link_scope",
                   {.dst = "ff02::99"},
                   DropReason::kDestinationMulticast),
        to_nowhere("Case_H113_group_of_interface_scope",
                   {.dst = "ff01::1"},
                   DropReason::kDestinationMulticast),
        to_nowhere("group_of_global_scope_without_a_route",
                   {.dst = "ff0e::1"},
                   DropReason::kDestinationMulticast)),
    case_name);

Case about_route(std::string name, const char* to, DropReason reason, std::uint8_t code) {
    const Packet in = from_h0().ipv6({.dst = to}).udp().payload(18);
    return {.name = std::move(name),
            .in = in,
            .want = dropped(reason, error6(in, net::icmp6::kUnreachable, code))};
}

class Routes6 : public StageRows {
protected:
    void SetUp() override {
        add_route("2001:db8:3::/48", {.type = fib::DstType::kUnreachable});
        add_route("2001:db8:4::/48", {.type = fib::DstType::kProhibit});
        add_route("2001:db8:5::/48", {.type = fib::DstType::kBlackhole});
    }
};
TEST_P(Routes6, Row) {
    expect(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Types,
                         Routes6,
                         testing::Values(about_route("Check_129_Case_B20_no_route",
                                                     "2001:db8:9::9",
                                                     DropReason::kNoRoute,
                                                     net::icmp6::kNoRoute),
                                         about_route("unreachable",
                                                     "2001:db8:3::9",
                                                     DropReason::kRouteUnreachable,
                                                     net::icmp6::kNoRoute),
                                         about_route("prohibit",
                                                     "2001:db8:4::9",
                                                     DropReason::kRouteProhibit,
                                                     net::icmp6::kAdminProhibited),
                                         to_nowhere("blackhole_is_silent",
                                                    {.dst = "2001:db8:5::9"},
                                                    DropReason::kRouteBlackhole)),
                         case_name);

class Ip6 : public StageRows {};

TEST_F(Ip6, P4_Check_126_Case_H113_link_local_source_leaves_its_link) {
    add_neighbor(kP0, net::IpAddr::parse("fe80::2").value());
    resolve(kP0, net::IpAddr::parse("fe80::2").value(), kH0Mac);
    const Packet in = Packet().raw(
        from_hex("02000000000102aa0000000286dd60000000000c1140fe800000000000000000000000000002"
                 "20010db800020000000000000000000903e807d0000c000061626364"));
    Packet error = by_p0();
    error.ipv6({.src = "fe80::ff:fe00:1", .dst = "fe80::2"})
        .icmp6(net::icmp6::kUnreachable, net::icmp6::kBeyondScope)
        .raw(parse_frame(in.bytes()).l3);
    expect({.name = "P4", .in = in, .want = dropped(DropReason::kMartianSourceLinkLocal, error)});
}

TEST_F(Ip6, Case_H113_link_local_destination_with_a_default_route) {
    add_route("::/0", {.via = "fd00:1::2", .dev = kP1});
    expect({.name = "fe80::9",
            .in = from_h0().ipv6({.dst = "fe80::9"}).udp(),
            .want = dropped(DropReason::kDestinationLinkLocal)});
    expect({.name = "ff02::99",
            .in = from_h0().ipv6({.dst = "ff02::99"}).udp(),
            .want = dropped(DropReason::kDestinationMulticast)});
}

// Another host may have the link-local address that we have on another link.
TEST_F(Ip6, link_local_of_another_port_is_no_own_source) {
    const V6 of_p1 = "fe80::ff:fe00:2";
    netdev(kP0).local = std::make_shared<const fib::LocalAddresses>(
        std::vector<net::Ipv4Addr>{},
        std::vector<net::Ipv6Addr>{V6("fe80::ff:fe00:1"), of_p1, V6("fd00::1")});
    add_neighbor(kP0, of_p1);
    resolve(kP0, of_p1, kH0Mac);
    expect({.name = "echo",
            .in = from_h0().ipv6({.src = of_p1, .dst = "fd00::1"}).icmp6(net::icmp6::kEcho),
            .want = answered(
                by_p0().ipv6({.src = "fd00::1", .dst = of_p1}).icmp6(net::icmp6::kEchoReply))});
}

TEST_F(Ip6, Check_44_link_local_gateway) {
    add_neighbor(kP1, net::IpAddr::parse("fe80::9").value());
    resolve(kP1, net::IpAddr::parse("fe80::9").value(), "02:bb:00:00:00:09");
    add_route("2001:db8:7::/48", {.via = "fe80::9", .dev = kP1});
    expect({.name = "via fe80::9",
            .in = from_h0().ipv6({.dst = "2001:db8:7::1"}).udp(),
            .want = forwarded(Packet()
                                  .eth({.dst = "02:bb:00:00:00:09", .src = kP1Mac})
                                  .ipv6({.dst = "2001:db8:7::1", .hop_limit = 63})
                                  .udp())});
}

TEST_F(Ip6, Check_110_forwarding_is_the_ingress_s_business) {
    netdev(kP0).forwarding = false;
    expect({.name = "off",
            .in = from_h0().ipv6().udp(),
            .want = dropped(DropReason::kForwardingDisabled)});
    expect({.name = "off, no route",
            .in = from_h0().ipv6({.dst = "2001:db8:9::9"}).udp(),
            .want = dropped(DropReason::kForwardingDisabled)});
    expect({.name = "on on p1",
            .in = from_h1().ipv6().udp(),
            .want = forwarded(by_p1().ipv6({.hop_limit = 63}).udp()),
            .port = kP1});
}

TEST_F(Ip6, Check_122_no_address) {
    netdev(kP0).has_ipv6 = false;
    expect(
        {.name = "none", .in = from_h0().ipv6().udp(), .want = dropped(DropReason::kIpDisabled)});
}

TEST_F(Ip6, Case_H106_slash_127) {
    const NetdevId p2 =
        add_netdev({.port = 2, .mac = "02:00:00:00:00:03", .addresses = {"fd00:9::/127"}});
    add_neighbor(p2, net::IpAddr::parse("fd00:9::1").value());
    resolve(p2, net::IpAddr::parse("fd00:9::1").value(), "02:cc:00:00:00:02");
    expect({.name = "peer",
            .in = from_h0().ipv6({.dst = "fd00:9::1"}).udp(),
            .want = forwarded(Packet()
                                  .eth({.dst = "02:cc:00:00:00:02", .src = "02:00:00:00:00:03"})
                                  .ipv6({.dst = "fd00:9::1", .hop_limit = 63})
                                  .udp(),
                              2)});
    expect(
        {.name = "own",
         .in = from_h0().ipv6({.dst = "fd00:9::"}).icmp6(net::icmp6::kEcho),
         .want = answered(
             by_p0().ipv6({.src = "fd00:9::", .dst = "fd00::2"}).icmp6(net::icmp6::kEchoReply))});
}

}  // namespace

}  // namespace sluice::test
