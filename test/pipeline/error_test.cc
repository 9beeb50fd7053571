// SPDX-License-Identifier: BSD-3-Clause
// ICMP errors: which packets cause them, what is in them, how many there are.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

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
Packet to_group_mac(const Mac& group) {
    return Packet().eth({.dst = group});
}

Case expired4(std::string name, const Packet& in) {
    return {.name = std::move(name),
            .in = in,
            .want = dropped(DropReason::kTtlExpired, error4(in, net::icmp::kTimeExceeded, 0))};
}
Case expired6(std::string name, const Packet& in) {
    return {.name = std::move(name),
            .in = in,
            .want = dropped(DropReason::kTtlExpired, error6(in, net::icmp6::kTimeExceeded, 0))};
}
Case silent(std::string name, const Packet& in, DropReason reason) {
    return {.name = std::move(name), .in = in, .want = dropped(reason)};
}

class Errors : public StageRows {};
TEST_P(Errors, Row) {
    expect(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    TimeExceeded,
    Errors,
    testing::Values(
        expired4("Case_A3_A4_A5_ttl_1", from_h0().ipv4({.ttl = 1}).udp().payload(18)),
        expired4("Case_A3_ttl_0", from_h0().ipv4({.ttl = 0}).udp().payload(18)),
        expired4("Case_A2_ttl_1_connected", from_h0().ipv4({.dst = "10.0.1.2", .ttl = 1}).udp()),
        expired4("ttl_1_before_df_and_mtu",
                 from_h0().ipv4({.ttl = 1, .df = true}).udp().payload(1473)),
        expired4("options_are_quoted", from_h0().ipv4({.ttl = 1, .options = Bytes(40, 1)}).udp()),
        expired4("padding_is_not_quoted", from_h0().ipv4({.ttl = 1}).udp().pad_to(60, 0xaa)),
        expired4("first_fragment", from_h0().ipv4({.ttl = 1, .mf = true}).udp().payload(16)),
        expired4("icmp_echo", from_h0().ipv4({.ttl = 1}).icmp(net::icmp::kEcho)),
        expired4("Case_B26_quote_just_fits", from_h0().ipv4({.ttl = 1}).udp().payload(520)),
        expired4("Case_B26_quote_of_1000_is_cut", from_h0().ipv4({.ttl = 1}).udp().payload(1000)),
        expired6("Case_A3_hop_limit_1", from_h0().ipv6({.hop_limit = 1}).udp().payload(18)),
        expired6("Case_A3_hop_limit_0", from_h0().ipv6({.hop_limit = 0}).udp().payload(18)),
        expired6("Case_A2_hop_limit_1_connected",
                 from_h0().ipv6({.dst = "fd00:1::2", .hop_limit = 1}).udp()),
        expired6("Case_B26_quote6_just_fits", from_h0().ipv6({.hop_limit = 1}).udp().payload(1184)),
        expired6("Case_B26_quote6_is_cut", from_h0().ipv6({.hop_limit = 1}).udp().payload(1185)),
        expired6("extension_headers_are_quoted",
                 from_h0().ipv6({.hop_limit = 1}).hop_by_hop().destination_options().udp()),
        expired6("first_fragment6",
                 from_h0().ipv6({.hop_limit = 1}).fragment({.more = true}).udp().payload(8))),
    case_name);

// Case B21's matrix, with TTL 1 and with no route.
INSTANTIATE_TEST_SUITE_P(
    Case_B21_never,
    Errors,
    testing::Values(
        silent("limited_broadcast",
               from_h0().ipv4({.dst = "255.255.255.255", .ttl = 1}).udp(),
               DropReason::kUdpNoPort),
        silent("directed_broadcast",
               from_h0().ipv4({.dst = "10.0.0.255", .ttl = 1}).udp(),
               DropReason::kUdpNoPort),
        silent("directed_broadcast_of_the_other_link",
               from_h0().ipv4({.dst = "10.0.1.255", .ttl = 1}).udp(),
               DropReason::kUdpNoPort),
        silent("protocol_to_the_other_link_s_broadcast",
               from_h0().ipv4({.dst = "10.0.1.255", .protocol = IpProtocol{253}}),
               DropReason::kUnknownProtocol),
        silent("all_hosts", from_h0().ipv4({.dst = "224.0.0.1"}).udp(), DropReason::kUdpNoPort),
        silent("multicast",
               from_h0().ipv4({.dst = "224.0.0.9", .ttl = 1}).udp(),
               DropReason::kDestinationMulticast),
        silent("all_nodes", from_h0().ipv6({.dst = "ff02::1"}).udp(), DropReason::kUdpNoPort),
        silent("link_broadcast_ttl",
               to_group_mac(net::kBroadcastMac).ipv4({.ttl = 1}).udp(),
               DropReason::kL2BroadcastUnicast),
        silent("link_broadcast_no_route",
               to_group_mac(net::kBroadcastMac).ipv4({.dst = "203.0.113.9"}).udp(),
               DropReason::kNoRoute),
        silent("link_multicast_hop_limit",
               to_group_mac("33:33:00:00:00:01").ipv6({.hop_limit = 1}).udp(),
               DropReason::kL2BroadcastUnicast),
        silent("link_multicast_no_route6",
               to_group_mac("33:33:00:00:00:01").ipv6({.dst = "2001:db8:9::1"}).udp(),
               DropReason::kNoRoute),
        silent("source_zero",
               from_h0().ipv4({.src = "0.0.0.0", .ttl = 1}).udp(),
               DropReason::kMartianSourceZero),
        silent("source_loopback",
               from_h0().ipv4({.src = "127.0.0.1", .ttl = 1}).udp(),
               DropReason::kMartianSourceLoopback),
        silent("source_multicast",
               from_h0().ipv4({.src = "224.0.0.9", .ttl = 1}).udp(),
               DropReason::kMartianSourceMulticast),
        silent("source_directed_broadcast_ttl",
               from_h0().ipv4({.src = "10.0.0.255", .ttl = 1}).udp(),
               DropReason::kTtlExpired),
        silent("source_directed_broadcast_no_route",
               from_h0().ipv4({.src = "10.0.0.255", .dst = "203.0.113.9"}).udp(),
               DropReason::kNoRoute),
        silent("source_class_E",
               from_h0().ipv4({.src = "240.0.0.1", .ttl = 1}).udp(),
               DropReason::kTtlExpired),
        silent("source_unspecified6",
               from_h0().ipv6({.src = "::", .hop_limit = 1}).udp(),
               DropReason::kMartianSourceZero),
        silent("source_multicast6",
               from_h0().ipv6({.src = "ff02::1", .hop_limit = 1}).udp(),
               DropReason::kMartianSourceMulticast),
        silent("Check_127_155_later_fragment",
               from_h0().ipv4({.ttl = 1, .frag_offset = 8}).payload(16),
               DropReason::kTtlExpired),
        silent("Check_127_155_later_fragment6",
               from_h0().ipv6({.hop_limit = 1}).fragment({.offset = 8}).payload(16),
               DropReason::kTtlExpired),
        silent("Check_127_155_about_an_error",
               from_h0().ipv4({.ttl = 1}).icmp(net::icmp::kUnreachable).payload(28),
               DropReason::kTtlExpired),
        silent("Check_127_about_a_redirect",
               from_h0().ipv4({.dst = "203.0.113.9"}).icmp(net::icmp::kRedirect).payload(28),
               DropReason::kNoRoute),
        silent("Check_127_155_about_an_error6",
               from_h0().ipv6({.hop_limit = 1}).icmp6(net::icmp6::kPacketTooBig).payload(48),
               DropReason::kTtlExpired),
        silent("about_an_error6_behind_extension_headers",
               from_h0()
                   .ipv6({.hop_limit = 1})
                   .destination_options()
                   .icmp6(net::icmp6::kTimeExceeded)
                   .payload(48),
               DropReason::kTtlExpired)),
    case_name);

class Error : public StageRows {};

// Forwarding a directed broadcast makes it no less a broadcast.
TEST_F(Error, Case_B21_forwarded_directed_broadcast) {
    netdev(kP0).bc_forwarding = true;
    expect(silent(
        "ttl", from_h0().ipv4({.dst = "10.0.1.255", .ttl = 1}).udp(), DropReason::kTtlExpired));
    expect(silent("mtu",
                  from_h0().ipv4({.dst = "10.0.1.255", .df = true}).udp().payload(1473),
                  DropReason::kFragmentationNeeded));
}

TEST_F(Error, Case_A6_ingress_without_a_global_address_of_the_family) {
    netdev(kP0).addresses6.clear();
    const Packet in = from_h0().ipv6({.hop_limit = 1}).udp();
    expect({.name = "v6",
            .in = in,
            .want = dropped(DropReason::kTtlExpired,
                            error6(in, net::icmp6::kTimeExceeded, 0, 0, "fd00::1"))});
}

TEST_F(Error, Check_94_source_on_the_sender_s_subnet) {
    add_address(kP0, "10.7.7.1/24");
    add_neighbor(kP0, net::IpAddr::parse("10.7.7.7").value());
    resolve(kP0, net::IpAddr::parse("10.7.7.7").value(), kH0Mac);
    const Packet in = from_h0().ipv4({.src = "10.7.7.7", .ttl = 1}).udp();
    const Packet error = by_p0()
                             .ipv4({.src = "10.7.7.1", .dst = "10.7.7.7", .tos = 0xc0})
                             .icmp(net::icmp::kTimeExceeded)
                             .raw(parse_frame(in.bytes()).l3);
    expect({.name = "second", .in = in, .want = dropped(DropReason::kTtlExpired, error)});
}

TEST_F(Error, Check_93_source_is_the_side_used_back) {
    const Packet in = Packet()
                          .eth({.dst = kP1Mac, .src = kH1Mac})
                          .ipv6({.src = "2001:db8:2::9", .dst = "fd00::2", .hop_limit = 1})
                          .udp();
    const Packet error = by_p1()
                             .ipv6({.src = "fd00:1::1", .dst = "2001:db8:2::9"})
                             .icmp6(net::icmp6::kTimeExceeded)
                             .raw(parse_frame(in.bytes()).l3);
    expect(
        {.name = "p1", .in = in, .want = dropped(DropReason::kTtlExpired, error, 1), .port = kP1});
}

// The sender is reached over the gateway, not where it came from: its table decides.
TEST_F(Error, Check_97_asymmetric_return) {
    const Packet in = from_h0().ipv4({.src = "192.0.2.9", .dst = "10.0.0.2", .ttl = 1}).udp();
    const Packet error = by_p1()
                             .ipv4({.src = "10.0.0.1", .dst = "192.0.2.9", .tos = 0xc0})
                             .icmp(net::icmp::kTimeExceeded)
                             .raw(parse_frame(in.bytes()).l3);
    expect({.name = "over p1", .in = in, .want = dropped(DropReason::kTtlExpired, error, 1)});
}

TEST_F(Error, Case_A8_own_errors_are_not_martians) {
    receive(kP0, std::vector<Bytes>{from_h0().ipv4({.ttl = 1}).udp().bytes()});
    EXPECT_EQ(take_sent().size(), 1U);
    EXPECT_EQ(drops(kP0, DropReason::kMartianSourceOwn), 0U);
    EXPECT_EQ(drops(kLo, DropReason::kMartianSourceOwn), 0U);
    EXPECT_EQ(counters(kLo).rx_packets, 1U);
    EXPECT_EQ(counters(kLo).forwarded, 1U);
}

// Check 147, 155, case B25: the configured rate, both families from one bucket, the rest counted,
// other flows untouched.
TEST_F(Error, Check_147_155_Case_B25_rate_limit) {
    shared().icmp_error_rate = 100;
    shared().icmp_error_burst = 50;
    const Bytes expiring4 = from_h0().ipv4({.ttl = 1}).udp().bytes();
    const Bytes expiring6 = from_h0().ipv6({.hop_limit = 1}).udp().bytes();
    const Bytes good = from_h0().ipv4().udp().bytes();
    std::uint64_t passed = 0;
    const auto send = [&](unsigned rounds) {
        std::size_t errors = 0;
        for (unsigned i = 0; i < rounds; ++i) {
            receive(kP0, std::vector<Bytes>{expiring4, good, expiring6});
            for (const Sent& sent : take_sent()) {
                errors += sent.port == 0 ? 1U : 0U;
                passed += sent.port == 1 ? 1U : 0U;
            }
        }
        return errors;
    };
    EXPECT_EQ(send(1000), 50U);
    EXPECT_EQ(counters(kP0).icmp_errors_sent, 50U);
    EXPECT_EQ(counters(kP0).icmp_errors_suppressed, 1950U);
    EXPECT_EQ(send(10), 0U);
    advance_ns(100'000'000);
    EXPECT_EQ(send(10), 10U);
    advance_ns(3'600'000'000'000);
    EXPECT_EQ(send(100), 50U);
    EXPECT_EQ(passed, 1120U);
    EXPECT_EQ(drops(kP0, DropReason::kTtlExpired), 2240U);
}

TEST_F(Error, rate_limit_is_per_netdev) {
    shared().icmp_error_rate = 1;
    shared().icmp_error_burst = 1;
    const Bytes on_p0 = from_h0().ipv4({.ttl = 1}).udp().bytes();
    const Bytes on_p1 = Packet()
                            .eth({.dst = kP1Mac, .src = kH1Mac})
                            .ipv4({.src = "10.0.1.2", .dst = "10.0.0.2", .ttl = 1})
                            .udp()
                            .bytes();
    receive(kP0, std::vector<Bytes>{on_p0, on_p0});
    EXPECT_EQ(take_sent().size(), 1U);
    receive(kP1, std::vector<Bytes>{on_p1});
    EXPECT_EQ(take_sent().size(), 1U);
    EXPECT_EQ(counters(kP0).icmp_errors_suppressed, 1U);
    EXPECT_EQ(counters(kP1).icmp_errors_suppressed, 0U);
}

TEST_F(Error, rate_zero_sends_none) {
    shared().icmp_error_rate = 0;
    expect(silent("off", from_h0().ipv4({.ttl = 1}).udp(), DropReason::kTtlExpired));
    EXPECT_EQ(counters(kP0).icmp_errors_suppressed, 2U);
}

// What is never sent costs no token.
TEST_F(Error, refused_errors_leave_the_bucket_alone) {
    shared().icmp_error_rate = 1;
    shared().icmp_error_burst = 1;
    const Bytes never = from_h0().ipv4({.ttl = 1, .frag_offset = 8}).payload(8).bytes();
    receive(kP0, std::vector<Bytes>{never, never, from_h0().ipv4({.ttl = 1}).udp().bytes()});
    EXPECT_EQ(take_sent().size(), 1U);
    EXPECT_EQ(counters(kP0).icmp_errors_suppressed, 0U);
}

TEST_F(Error, identification_counts_up) {
    const Bytes expiring = from_h0().ipv4({.ttl = 1}).udp().bytes();
    receive(kP0, std::vector<Bytes>{expiring, expiring});
    const auto sent = take_sent();
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_NE(parse_frame(sent[0].bytes).ipv4->id, parse_frame(sent[1].bytes).ipv4->id);
}

}  // namespace

}  // namespace sluice::test
