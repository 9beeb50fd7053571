// SPDX-License-Identifier: BSD-3-Clause
#include "net/neighbor_message.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <gtest/gtest.h>

#include "support/frame.h"
#include "support/packet.h"

namespace sluice::net {
namespace {

using test::Bytes;
using test::Packet;

const test::Mac kOurMac = "02:00:00:00:00:01";
const test::Mac kHostMac = "02:aa:00:00:00:02";
const test::V4 kOurIp = "10.0.0.1";
const test::V4 kHostIp = "10.0.0.2";
const test::V6 kOurIp6 = "fd00::1";
const test::V6 kHostIp6 = "fd00::2";
const test::V6 kOurGroup = "ff02::1:ff00:1";

struct ArpCase {
    std::string_view name;
    test::Arp arp;
    bool good = false;
};

// RFC 826 "Packet Reception"; RFC 1812 3.3.2.
TEST(ParseArp, Fields) {
    for (const auto& c : {
             ArpCase{"request", {}, true},
             ArpCase{"reply", {.operation = 2}, true},
             ArpCase{"probe from 0.0.0.0 (RFC 5227)", {.sender_ip = "0.0.0.0"}, true},
             ArpCase{"gratuitous", {.target_ip = "10.0.0.2"}, true},
             ArpCase{"hardware type", {.hardware = 6}},
             ArpCase{"protocol type", {.protocol = 0x86dd}},
             ArpCase{"hardware address length", {.hardware_bytes = 8}},
             ArpCase{"protocol address length", {.protocol_bytes = 16}},
             ArpCase{"operation 0", {.operation = 0}},
             ArpCase{"reverse ARP", {.operation = 3}},
             ArpCase{"broadcast sender MAC", {.sender_mac = "ff:ff:ff:ff:ff:ff"}},
             ArpCase{"multicast sender MAC", {.sender_mac = "01:00:5e:00:00:01"}},
             ArpCase{"loopback sender", {.sender_ip = "127.0.0.1"}},
             ArpCase{"multicast sender", {.sender_ip = "224.0.0.1"}},
             ArpCase{"broadcast sender", {.sender_ip = "255.255.255.255"}},
         }) {
        const auto arp = parse_arp(Packet().arp(c.arp).pad_to(46).bytes());
        ASSERT_EQ(arp.has_value(), c.good) << c.name;
        if (!arp) {
            EXPECT_EQ(arp.error(), DropReason::kArpMalformed) << c.name;
            continue;
        }
        EXPECT_EQ(arp->operation, c.arp.operation) << c.name;
        EXPECT_EQ(arp->sender_mac, c.arp.sender_mac) << c.name;
        EXPECT_EQ(arp->sender_ip, c.arp.sender_ip) << c.name;
        EXPECT_EQ(arp->target_mac, c.arp.target_mac) << c.name;
        EXPECT_EQ(arp->target_ip, c.arp.target_ip) << c.name;
    }
}

TEST(MakeArp, Request) {
    const Frame frame = make_arp_request(kOurMac, kOurIp, kBroadcastMac, kHostIp);
    const Bytes want = Packet()
                           .eth({.dst = kBroadcastMac, .src = kOurMac})
                           .arp({.sender_mac = kOurMac, .sender_ip = kOurIp, .target_ip = kHostIp})
                           .pad_to(60)
                           .bytes();
    EXPECT_EQ(test::difference(want, frame.view()), "");
    EXPECT_EQ(make_arp_request(kOurMac, kOurIp, kHostMac, kHostIp).view()[0], 0x02);
}

TEST(MakeArp, Reply) {
    const Frame frame = make_arp_reply(kOurMac, kOurIp, kHostMac, kHostIp);
    const Bytes want = Packet()
                           .eth({.dst = kHostMac, .src = kOurMac})
                           .arp({.operation = 2,
                                 .sender_mac = kOurMac,
                                 .sender_ip = kOurIp,
                                 .target_mac = kHostMac,
                                 .target_ip = kHostIp})
                           .pad_to(60)
                           .bytes();
    EXPECT_EQ(test::difference(want, frame.view()), "");
}

constexpr auto kBad = DropReason::kNdpMalformed;

struct NdpCase {
    std::string_view name;
    Packet in;
    DropReason want = DropReason::kNone;
};

void expect(const NdpCase& c, std::size_t icmp_offset = sizeof(Ipv6Header)) {
    const auto parsed = parse_neighbor_discovery(c.in.bytes(), icmp_offset);
    const DropReason got = parsed ? DropReason::kNone : parsed.error();
    EXPECT_EQ(info(got).name, info(c.want).name) << c.name << "\n" << c.in.describe();
}

Packet ndp(test::V6 src, test::V6 dst, std::uint8_t hop_limit = 255) {
    return Packet().ipv6({.src = src, .dst = dst, .hop_limit = hop_limit});
}

Bytes link_option(std::uint8_t type) {
    return {type, 1, 2, 0xaa, 0, 0, 0, 2};
}

// RFC 4861 7.1.1.
TEST(ParseNdp, Case_29_Solicitation) {
    const auto to_us = [](std::uint8_t hop_limit = 255) {
        return ndp(kHostIp6, kOurGroup, hop_limit);
    };
    const auto dad = [](test::V6 dst) { return ndp("::", dst); };
    for (const auto& c : {
             NdpCase{"good", to_us().ndp_ns({.source_link = kHostMac})},
             NdpCase{"without option", to_us().ndp_ns()},
             NdpCase{"to the address itself", ndp(kHostIp6, kOurIp6).ndp_ns()},
             NdpCase{"unknown option skipped",
                     to_us().ndp_ns({.options = {14, 1, 1, 2, 3, 4, 5, 6}})},
             NdpCase{"Case 59: from ::", dad(kOurGroup).ndp_ns()},
             NdpCase{"from :: to the address", dad(kOurIp6).ndp_ns(), kBad},
             NdpCase{"from :: to all nodes", dad("ff02::1").ndp_ns(), kBad},
             NdpCase{"from :: with link option",
                     dad(kOurGroup).ndp_ns({.source_link = kHostMac}),
                     kBad},
             NdpCase{"hop limit 254", to_us(254).ndp_ns(), kBad},
             NdpCase{"multicast target", to_us().ndp_ns({.target = "ff02::1"}), kBad},
             NdpCase{"code 1", to_us().icmp6(135, 1).raw(Bytes(16, 0)), kBad},
             NdpCase{"length 23", to_us().icmp6(135).raw(Bytes(15, 0)), kBad},
             NdpCase{"one byte behind", to_us().ndp_ns({.options = {1}}), kBad},
             NdpCase{
                 "option length 0", to_us().ndp_ns({.options = {1, 0, 0, 0, 0, 0, 0, 0}}), kBad},
             NdpCase{"other option length 0",
                     to_us().ndp_ns({.options = {99, 0, 0, 0, 0, 0, 0, 0}}),
                     kBad},
             NdpCase{"option past the packet",
                     to_us().ndp_ns({.options = {99, 2, 0, 0, 0, 0, 0, 0}}),
                     kBad},
             NdpCase{"link option too long",
                     to_us().ndp_ns({.options = {1, 2, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}}),
                     kBad},
             NdpCase{"group MAC in the link option",
                     to_us().ndp_ns({.source_link = "33:33:00:00:00:01"}),
                     kBad},
             NdpCase{"bad checksum",
                     to_us().icmp6(135, 0, 0, 0x1234).raw(Bytes(16, 1)),
                     DropReason::kIcmpBadChecksum},
             NdpCase{"no neighbor discovery", to_us().icmp6(128).payload(20), kBad},
         }) {
        expect(c);
    }
}

TEST(ParseNdp, SolicitationFields) {
    const Bytes ip =
        ndp(kHostIp6, kOurGroup)
            .ndp_ns({.target = kOurIp6, .source_link = kHostMac, .options = link_option(2)})
            .bytes();
    const auto m = parse_neighbor_discovery(ip, 40);
    ASSERT_TRUE(m);
    EXPECT_EQ(m->type, icmp6::kNeighborSolicitation);
    EXPECT_EQ(m->source, kHostIp6);
    EXPECT_EQ(m->destination, kOurGroup);
    EXPECT_EQ(m->target, kOurIp6);
    EXPECT_EQ(m->source_link, kHostMac);
    EXPECT_EQ(m->target_link, std::nullopt);  // no use in a solicitation
}

// RFC 4861 7.1.2.
TEST(ParseNdp, Advertisement) {
    const auto na = [](test::V6 dst, std::uint8_t hop_limit = 255) {
        return ndp(kHostIp6, dst, hop_limit);
    };
    for (const auto& c : {
             NdpCase{"answer", na(kOurIp6).ndp_na({.solicited = true, .target_link = kHostMac})},
             NdpCase{"unasked for",
                     na("ff02::1").ndp_na({.override = true, .target_link = kHostMac})},
             NdpCase{"without option", na(kOurIp6).ndp_na({.solicited = true})},
             NdpCase{"solicited to a group", na("ff02::1").ndp_na({.solicited = true}), kBad},
             NdpCase{"multicast target", na(kOurIp6).ndp_na({.target = "ff02::1"}), kBad},
             NdpCase{"hop limit 64", na(kOurIp6, 64).ndp_na(), kBad},
             NdpCase{"length 23", na(kOurIp6).icmp6(136).raw(Bytes(15, 0)), kBad},
             NdpCase{"option length 0", na(kOurIp6).ndp_na({.options = {2, 0}}), kBad},
         }) {
        expect(c);
    }
    for (unsigned bits = 0; bits < 8; ++bits) {
        const bool r = (bits & 1U) != 0;
        const bool s = (bits & 2U) != 0;
        const bool o = (bits & 4U) != 0;
        const auto m = parse_neighbor_discovery(na(kOurIp6)
                                                    .ndp_na({.target = kHostIp6,
                                                             .router = r,
                                                             .solicited = s,
                                                             .override = o,
                                                             .target_link = kHostMac})
                                                    .bytes(),
                                                40);
        ASSERT_TRUE(m);
        EXPECT_EQ(m->router, r);
        EXPECT_EQ(m->solicited, s);
        EXPECT_EQ(m->override, o);
        EXPECT_EQ(m->target, kHostIp6);
        EXPECT_EQ(m->target_link, kHostMac);
        EXPECT_EQ(m->source_link, std::nullopt);
    }
}

// RFC 4861 6.1.1, 6.1.2, 8.1.
TEST(ParseNdp, Case_66_RouterMessagesAndRedirect) {
    const auto redirect = [](test::V6 src, test::V6 target, test::V6 destination) {
        Bytes body(target.bytes.begin(), target.bytes.end());
        body.insert(body.end(), destination.bytes.begin(), destination.bytes.end());
        return ndp(src, kOurIp6).icmp6(137).raw(body);
    };
    for (const auto& c : {
             NdpCase{"solicitation", ndp(kHostIp6, "ff02::2").icmp6(133).raw(link_option(1))},
             NdpCase{"solicitation from ::", ndp("::", "ff02::2").icmp6(133)},
             NdpCase{"solicitation from :: with link option",
                     ndp("::", "ff02::2").icmp6(133).raw(link_option(1)),
                     kBad},
             NdpCase{"advertisement", ndp("fe80::2", "ff02::1").icmp6(134).raw(Bytes(8, 0))},
             NdpCase{"advertisement, hop limit 254",
                     ndp("fe80::2", "ff02::1", 254).icmp6(134).raw(Bytes(8, 0)),
                     kBad},
             NdpCase{"advertisement, global source",
                     ndp(kHostIp6, "ff02::1").icmp6(134).raw(Bytes(8, 0)),
                     kBad},
             NdpCase{"advertisement, 15 bytes",
                     ndp("fe80::2", "ff02::1").icmp6(134).raw(Bytes(7, 0)),
                     kBad},
             NdpCase{"advertisement, option cut",
                     ndp("fe80::2", "ff02::1").icmp6(134).raw({0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0}),
                     kBad},
             NdpCase{"redirect to a router", redirect("fe80::2", "fe80::3", "2001:db8::1")},
             NdpCase{"redirect to the host itself",
                     redirect("fe80::2", "2001:db8::1", "2001:db8::1")},
             NdpCase{"redirect from a global source",
                     redirect(kHostIp6, "fe80::3", "2001:db8::1"),
                     kBad},
             NdpCase{"redirect to another host",
                     redirect("fe80::2", "2001:db8::2", "2001:db8::1"),
                     kBad},
             NdpCase{"redirect of a group", redirect("fe80::2", "fe80::3", "ff02::5"), kBad},
             NdpCase{
                 "redirect, 39 bytes", ndp("fe80::2", kOurIp6).icmp6(137).raw(Bytes(31, 0)), kBad},
         }) {
        expect(c);
    }
}

TEST(ParseNdp, BehindAnExtensionHeader) {
    const auto packet = [] { return ndp(kHostIp6, kOurGroup).hop_by_hop().ndp_ns(); };
    expect({"at its offset", packet()}, 48);
    expect({"offset past the packet", packet(), kBad}, 72);
    expect({"offset far past the packet", packet(), kBad}, 100000);
}

TEST(MakeNdp, Solicitation) {
    const Frame frame = make_neighbor_solicitation(kOurMac, kOurIp6, kHostIp6, std::nullopt);
    const Bytes want = Packet()
                           .eth({.dst = "33:33:ff:00:00:02", .src = kOurMac})
                           .ipv6({.src = kOurIp6, .dst = "ff02::1:ff00:2", .hop_limit = 255})
                           .ndp_ns({.target = kHostIp6, .source_link = kOurMac})
                           .bytes();
    EXPECT_EQ(test::difference(want, frame.view()), "");

    const Frame refresh = make_neighbor_solicitation(kOurMac, kOurIp6, kHostIp6, kHostMac);
    const Bytes want_refresh = Packet()
                                   .eth({.dst = kHostMac, .src = kOurMac})
                                   .ipv6({.src = kOurIp6, .dst = kHostIp6, .hop_limit = 255})
                                   .ndp_ns({.target = kHostIp6, .source_link = kOurMac})
                                   .bytes();
    EXPECT_EQ(test::difference(want_refresh, refresh.view()), "");
}

// RFC 4861 4.3: the source link option is not sent from ::.
TEST(MakeNdp, SolicitationFromUnspecifiedIsValid) {
    const Frame frame = make_neighbor_solicitation(kOurMac, {}, kOurIp6, std::nullopt);
    const auto m = parse_neighbor_discovery(frame.view().subspan(sizeof(EthernetHeader)), 40);
    ASSERT_TRUE(m);
    EXPECT_EQ(m->source_link, std::nullopt);
    EXPECT_EQ(test::verify_checksums(frame.view()), "");
}

// Cases 57 and 59; RFC 4861 7.2.4.
TEST(MakeNdp, Case_57_Case_59_Advertisement) {
    const Frame frame =
        make_neighbor_advertisement(kOurMac, kOurIp6, kOurIp6, kHostMac, kHostIp6, {});
    const Bytes want = Packet()
                           .eth({.dst = kHostMac, .src = kOurMac})
                           .ipv6({.src = kOurIp6, .dst = kHostIp6, .hop_limit = 255})
                           .ndp_na({.target = kOurIp6,
                                    .router = true,
                                    .solicited = true,
                                    .override = true,
                                    .target_link = kOurMac})
                           .bytes();
    EXPECT_EQ(test::difference(want, frame.view()), "");

    const Frame to_all = make_neighbor_advertisement(
        kOurMac, kOurIp6, kOurIp6, multicast_mac(kAllNodes), kAllNodes, {.solicited = false});
    const auto m = parse_neighbor_discovery(to_all.view().subspan(sizeof(EthernetHeader)), 40);
    ASSERT_TRUE(m);
    EXPECT_TRUE(m->router);
    EXPECT_FALSE(m->solicited);
    EXPECT_TRUE(m->override);
}

}  // namespace
}  // namespace sluice::net
