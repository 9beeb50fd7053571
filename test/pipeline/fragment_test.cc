// SPDX-License-Identifier: BSD-3-Clause
// Packets longer than the path takes, and chains of segments.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
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

Packet from_h0() {
    return Packet().eth();
}

/// UDP header and `payload` counting bytes, as they follow the IP header.
Bytes datagram(std::size_t payload) {
    Bytes l3 = parse_frame(Packet().eth().ipv4().udp().payload(payload).bytes()).l3;
    l3.erase(l3.begin(), l3.begin() + 20);
    return l3;
}
Bytes piece(const Bytes& of, std::size_t from, std::size_t length) {
    const auto begin = of.begin() + static_cast<std::ptrdiff_t>(from);
    return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}
constexpr IpProtocol kUdp = IpProtocol::kUdp;

/// Towards 10.0.1.2 and the gateway with an MTU of 1400.
class Mtu1400 : public StageRows {
protected:
    void SetUp() override {
        add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1, .mtu = 1400});
        add_route("2001:db8:2::/48", {.via = "fd00:1::2", .dev = kP1, .mtu = 1400});
    }
};
TEST_P(Mtu1400, Row) {
    expect(GetParam());
}

Case too_big4(std::string name, const Packet& in) {
    return {.name = std::move(name),
            .in = in,
            .want = dropped(
                DropReason::kFragmentationNeeded,
                error4(in, net::icmp::kUnreachable, net::icmp::kFragmentationNeeded, 1400))};
}
Case too_big6(std::string name, const Packet& in) {
    return {
        .name = std::move(name),
        .in = in,
        .want = dropped(DropReason::kPacketTooBig, error6(in, net::icmp6::kPacketTooBig, 0, 1400))};
}

INSTANTIATE_TEST_SUITE_P(
    Case_C32,
    Mtu1400,
    testing::Values(
        Case{.name = "exactly_the_mtu",
             .in = from_h0().ipv4({.df = true}).udp().payload(1372),
             .want = forwarded(by_p1().ipv4({.ttl = 63, .df = true}).udp().payload(1372))},
        Case{.name = "exactly_the_mtu6",
             .in = from_h0().ipv6().udp().payload(1352),
             .want = forwarded(by_p1().ipv6({.hop_limit = 63}).udp().payload(1352))},
        too_big4("Check_131_152_Case_C36_df_and_one_more",
                 from_h0().ipv4({.df = true}).udp().payload(1373)),
        too_big4("df_and_1500", from_h0().ipv4({.df = true}).udp().payload(1472)),
        too_big6("Check_132_152_one_more", from_h0().ipv6().udp().payload(1353)),
        too_big6("of_1500", from_h0().ipv6().udp().payload(1452)),
        too_big6("Case_C37_hop_by_hop", from_h0().ipv6().hop_by_hop().udp().payload(1400)),
        too_big6("Case_C37_first_fragment",
                 from_h0().ipv6().fragment({.more = true}).udp().payload(1400)),
        Case{.name = "Case_C37_later_fragment_gets_no_error",
             .in = from_h0().ipv6().fragment({.offset = 8}).payload(1400),
             .want = dropped(DropReason::kPacketTooBig)},
        Case{.name = "padding_is_not_length",
             .in = from_h0().ipv4({.df = true}).udp().payload(1372).pad_to(1500, 0xaa),
             .want = forwarded(by_p1().ipv4({.ttl = 63, .df = true}).udp().payload(1372))},
        // 1376 is what of 1380 divides by eight.
        Case{.name = "Check_131_one_more_two_fragments",
             .in = from_h0().ipv4({.id = 77}).udp().payload(1373),
             .want = in_fragments(
                 {by_p1()
                      .ipv4({.ttl = 63, .id = 77, .mf = true, .protocol = kUdp})
                      .raw(piece(datagram(1373), 0, 1376)),
                  by_p1()
                      .ipv4({.ttl = 63, .id = 77, .frag_offset = 1376, .protocol = kUdp})
                      .raw(piece(datagram(1373), 1376, 5))})},
        Case{.name = "padding_is_not_fragmented",
             .in = from_h0().ipv4({.id = 77}).udp().payload(1373).pad_to(1500, 0xaa),
             .want = in_fragments(
                 {by_p1()
                      .ipv4({.ttl = 63, .id = 77, .mf = true, .protocol = kUdp})
                      .raw(piece(datagram(1373), 0, 1376)),
                  by_p1()
                      .ipv4({.ttl = 63, .id = 77, .frag_offset = 1376, .protocol = kUdp})
                      .raw(piece(datagram(1373), 1376, 5))})},
        // RFC 791 3.1: record route (7) stays in the first, router alert (148) is in all.
        Case{.name = "options_by_their_copied_flag",
             .in = from_h0()
                       .ipv4({.options = {1, 7, 7, 4, 0, 0, 0, 0, 148, 4, 0, 0}})
                       .udp()
                       .payload(1400),
             .want = in_fragments({by_p1()
                                       .ipv4({.ttl = 63,
                                              .mf = true,
                                              .options = {1, 7, 7, 4, 0, 0, 0, 0, 148, 4, 0, 0},
                                              .protocol = kUdp})
                                       .raw(piece(datagram(1400), 0, 1368)),
                                   by_p1()
                                       .ipv4({.ttl = 63,
                                              .frag_offset = 1368,
                                              .options = {148, 4, 0, 0},
                                              .protocol = kUdp})
                                       .raw(piece(datagram(1400), 1368, 40))})},
        Case{
            .name = "Check_151_middle_fragment_again",
            .in = from_h0().ipv4({.mf = true, .frag_offset = 2960, .protocol = kUdp}).payload(1480),
            .want = in_fragments(
                {by_p1()
                     .ipv4({.ttl = 63, .mf = true, .frag_offset = 2960, .protocol = kUdp})
                     .payload(1376),
                 by_p1()
                     .ipv4({.ttl = 63, .mf = true, .frag_offset = 4336, .protocol = kUdp})
                     .raw(piece(parse_frame(Packet().eth().ipv4().payload(1480).bytes()).payload,
                                1376,
                                104))})},
        Case{.name = "Check_151_last_fragment_again",
             .in = from_h0().ipv4({.frag_offset = 2960, .protocol = kUdp}).payload(1480),
             .want = in_fragments(
                 {by_p1()
                      .ipv4({.ttl = 63, .mf = true, .frag_offset = 2960, .protocol = kUdp})
                      .payload(1376),
                  by_p1()
                      .ipv4({.ttl = 63, .frag_offset = 4336, .protocol = kUdp})
                      .raw(piece(parse_frame(Packet().eth().ipv4().payload(1480).bytes()).payload,
                                 1376,
                                 104))})},
        Case{
            .name = "fragment_with_df_is_too_big",
            .in = from_h0().ipv4({.df = true, .frag_offset = 2960, .protocol = kUdp}).payload(1480),
            .want = dropped(DropReason::kFragmentationNeeded)},
        // What a fragment at the end of the numbers would become has no offset.
        Case{.name = "fragment_past_65535_is_no_datagram",
             .in = from_h0().ipv4({.frag_offset = 65528, .protocol = kUdp}).payload(1480),
             .want = dropped(DropReason::kIpv4BadTotalLength)}),
    case_name);

/// What the fragments' payloads make together, when there is no gap or overlap.
Bytes reassembled(const std::vector<Sent>& fragments) {
    std::map<std::size_t, Bytes> pieces;
    bool last_seen = false;
    for (const Sent& sent : fragments) {
        const Frame frame = parse_frame(sent.bytes);
        EXPECT_EQ(verify_checksums(sent.bytes), "");
        last_seen |= !frame.ipv4->more_fragments();
        pieces[frame.ipv4->fragment_offset_bytes()] = piece(
            frame.l3, frame.ipv4->header_bytes(), frame.l3.size() - frame.ipv4->header_bytes());
    }
    EXPECT_TRUE(last_seen);
    Bytes whole;
    for (const auto& [offset, bytes] : pieces) {
        EXPECT_EQ(offset, whole.size());
        whole.insert(whole.end(), bytes.begin(), bytes.end());
    }
    return whole;
}

class Fragments : public StageRows {};

TEST_F(Fragments, Check_131_every_mtu_down_to_the_least_reassembles) {
    for (const std::uint16_t mtu :
         std::initializer_list<std::uint16_t>{68, 69, 75, 76, 77, 576, 1280, 1499}) {
        SCOPED_TRACE(mtu);
        add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1, .mtu = mtu});
        receive(kP0, std::vector<Bytes>{from_h0().ipv4().udp().payload(1472).bytes()});
        const auto sent = take_sent();
        EXPECT_GT(sent.size(), 1U);
        for (const Sent& fragment : sent) {
            EXPECT_LE(parse_frame(fragment.bytes).ipv4->total_length.host(), mtu);
        }
        EXPECT_EQ(reassembled(sent), datagram(1472));
    }
    EXPECT_EQ(counters(kP0).forwarded, 8U);
}

TEST_F(Fragments, options_of_forty_bytes_at_the_least_mtu) {
    add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1, .mtu = 68});
    Bytes options(40, 1);
    options[0] = 136;  // stream id, copied
    options[1] = 4;
    receive(kP0,
            std::vector<Bytes>{from_h0().ipv4({.options = options}).udp().payload(992).bytes()});
    const auto sent = take_sent();
    ASSERT_GT(sent.size(), 2U);
    EXPECT_EQ(parse_frame(sent[0].bytes).ipv4->header_bytes(), 60U);
    EXPECT_EQ(parse_frame(sent[1].bytes).ipv4->header_bytes(), 24U);
    EXPECT_EQ(reassembled(sent), datagram(992));
}

// Case C39 and C35: a jumbo frame of several segments, whole and in fragments.
TEST_F(Fragments, Case_C39_jumbo_of_several_segments) {
    netdev(kP0).mtu = 9000;
    const Packet in = from_h0().ipv4().udp().payload(8972);
    add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1, .mtu = 9000});
    const Case whole{.name = "whole",
                     .in = in,
                     .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().payload(8972))};
    for (const std::vector<std::size_t>& segments : {std::vector<std::size_t>{},
                                                     {14},
                                                     {0, 14},
                                                     {13, 0, 1, 20},
                                                     {34, 0, 8},
                                                     {97},
                                                     {98},
                                                     {60}}) {
        Case row = whole;
        row.segments = segments;
        SCOPED_TRACE(testing::PrintToString(segments));
        expect(row);
    }
    add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1, .mtu = 1500});
    for (const std::vector<std::size_t>& segments :
         {std::vector<std::size_t>{}, {15, 1, 1, 1}, {0, 2001, 1}}) {
        SCOPED_TRACE(testing::PrintToString(segments));
        receive(kP0, std::vector{mbuf_of(in.bytes(), segments)});
        const auto sent = take_sent();
        EXPECT_EQ(sent.size(), 7U);
        EXPECT_EQ(reassembled(sent), datagram(8972));
    }
    add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1, .mtu = 4000});
    receive(kP0, std::vector{mbuf_of(in.bytes())});
    const auto sent = take_sent();
    EXPECT_EQ(sent.size(), 3U);
    EXPECT_EQ(reassembled(sent), datagram(8972));
}

// A route with a netdev and no gateway: its MTU holds for resolved hosts as for unresolved ones.
TEST_F(Fragments, Check_132_mtu_of_an_on_link_route_holds_when_the_host_is_known) {
    add_route("198.51.100.0/24", {.type = fib::DstType::kConnected, .dev = kP1, .mtu = 1400});
    add_route("2001:db8:9::/64", {.type = fib::DstType::kConnected, .dev = kP1, .mtu = 1400});
    const net::IpAddr host4 = *net::IpAddr::parse("198.51.100.9");
    const net::IpAddr host6 = *net::IpAddr::parse("2001:db8:9::9");
    const Packet in4 = from_h0().ipv4({.dst = "198.51.100.9", .df = true}).udp().payload(1373);
    const Packet in6 = from_h0().ipv6({.dst = "2001:db8:9::9"}).udp().payload(1353);
    const auto check = [&](std::string name) {
        expect(too_big4(name + " 4", in4));
        expect(too_big6(name + " 6", in6));
    };
    check("unresolved");
    for (const net::IpAddr& host : {host4, host6}) {
        add_neighbor(kP1, host);
        resolve(kP1, host, kH1Mac);
    }
    check("resolved");
}

TEST_F(Fragments, Case_C39_jumbo6_and_its_error) {
    add_route("2001:db8:2::/48", {.via = "fd00:1::2", .dev = kP1, .mtu = 9000});
    const Packet in = from_h0().ipv6().udp().payload(8952);
    expect({.name = "fits",
            .in = in,
            .want = forwarded(by_p1().ipv6({.hop_limit = 63}).udp().payload(8952)),
            .segments = {14, 0, 40}});
    add_route("2001:db8:2::/48", {.via = "fd00:1::2", .dev = kP1, .mtu = 1500});
    expect(
        {.name = "too big, quoted across segments",
         .in = in,
         .want = dropped(DropReason::kPacketTooBig, error6(in, net::icmp6::kPacketTooBig, 0, 1500)),
         .segments = {20, 0, 1000, 200}});
}

TEST_F(Fragments, padding_that_lies_in_its_own_segments_goes) {
    expect({.name = "padding",
            .in = from_h0().ipv4().udp().payload(100).pad_to(1414, 0xaa),
            .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().payload(100)),
            .segments = {142, 0, 500, 0, 100}});
}

// Case C44: longer than any datagram of one MTU, DF set as TCP does.
TEST_F(Fragments, Case_C44_frame_past_the_mtu_is_answered_not_cut) {
    const Packet in = from_h0().ipv4({.df = true}).tcp().payload(20000);
    expect({.name = "super frame",
            .in = in,
            .want = dropped(
                DropReason::kFragmentationNeeded,
                error4(in, net::icmp::kUnreachable, net::icmp::kFragmentationNeeded, 1500))});
}

TEST_F(Fragments, no_mbuf_for_a_fragment) {
    add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1, .mtu = 576});
    rte_mbuf* m = mbuf_of(from_h0().ipv4().udp().payload(1472).bytes());
    std::vector<rte_mbuf*> taken;
    while (rte_mbuf* other = rte_pktmbuf_alloc(pool())) {
        taken.push_back(other);
    }
    // One fragment can be made, the second cannot.
    rte_pktmbuf_free(taken.back());
    taken.pop_back();
    receive(kP0, std::vector{m});
    EXPECT_EQ(take_sent().size(), 0U);
    EXPECT_EQ(drops(kP0, DropReason::kFragmentationFailed), 1U);
    EXPECT_EQ(counters(kLo).rx_packets, 0U) << "no error is sent";
    rte_pktmbuf_free_bulk(taken.data(), static_cast<unsigned>(taken.size()));
}

TEST_F(Fragments, no_mbuf_for_an_error) {
    rte_mbuf* m = mbuf_of(from_h0().ipv4({.ttl = 1}).udp().bytes());
    std::vector<rte_mbuf*> taken;
    while (rte_mbuf* other = rte_pktmbuf_alloc(pool())) {
        taken.push_back(other);
    }
    receive(kP0, std::vector{m});
    EXPECT_EQ(take_sent().size(), 0U);
    EXPECT_EQ(drops(kP0, DropReason::kTtlExpired), 1U);
    EXPECT_EQ(counters(kP0).icmp_errors_suppressed, 1U);
    rte_pktmbuf_free_bulk(taken.data(), static_cast<unsigned>(taken.size()));
}

// Case C35: many of them, nothing is lost from the pool (checked when the test ends).
TEST_F(Fragments, Case_C35_many) {
    add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1, .mtu = 576});
    const Bytes frame = from_h0().ipv4().udp().payload(1472).bytes();
    for (int i = 0; i < 500; ++i) {
        receive(kP0, std::vector<Bytes>(8, frame));
        take_sent();
    }
    EXPECT_EQ(counters(kP0).forwarded, 4000U);
    EXPECT_EQ(counters(kP1).tx_packets, 12000U);
}

// The device takes the first fragment and no more: the packet has left, its rest is counted.
TEST_F(Fragments, device_full_behind_the_first_fragment) {
    add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1, .mtu = 576});
    const Bytes frame = from_h0().ipv4().udp().payload(1472).bytes();
    device_room = 1;
    receive(kP0, std::vector<Bytes>{frame});
    EXPECT_EQ(counters(kP0).forwarded, 1U);
    EXPECT_EQ(counters(kP1).fragments_lost, 2U);
    device_room = 0;
    receive(kP0, std::vector<Bytes>{frame});
    EXPECT_EQ(drops(kP0, DropReason::kTxFull), 1U);
    EXPECT_EQ(counters(kP1).fragments_lost, 4U);
}

}  // namespace

}  // namespace sluice::test
