// SPDX-License-Identifier: BSD-3-Clause
#include "support/packet.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "support/frame.h"

namespace sluice::test {
namespace {

struct Case {
    std::string_view name;
    Packet packet;
    std::string_view hex;
};

// The ready frames of the public cases, P1 to P7.
TEST(Packet, ReadyFrames) {
    const Bytes x(18, 'x');
    for (const auto& c : {
             Case{"P1",
                  Packet().eth().ipv4().udp({.checksum = 0}).pad_to(60, 0xaa),
                  "02000000000102aa0000000208004500001c000100004011aec50a000002c000020903e807d00008"
                  "0000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
             Case{"P2",
                  Packet().eth().ipv4({.id = 0xafb4}).udp({.checksum = 0}).raw(x),
                  "02000000000102aa0000000208004500002eafb400004011feff0a000002c000020903e807d0001a"
                  "0000787878787878787878787878787878787878"},
             Case{"P3",
                  Packet().eth().ipv6().hop_by_hop(
                      {.length = 255, .next_header = net::IpProtocol::kUdp}),
                  "02000000000102aa0000000286dd6000000000080040fd0000000000000000000000000000022001"
                  "0db800020000000000000000000911ff010400000000"},
             Case{"P4",
                  Packet()
                      .eth()
                      .ipv6({.src = "fe80::2"})
                      .udp({.checksum = 0})
                      .raw({'a', 'b', 'c', 'd'}),
                  "02000000000102aa0000000286dd60000000000c1140fe8000000000000000000000000000022001"
                  "0db800020000000000000000000903e807d0000c000061626364"},
             Case{"P5",
                  Packet().eth().ipv4({.src = "0.0.0.0"}).udp({.checksum = 0}).raw(x),
                  "02000000000102aa0000000208004500002e000100004011b8b500000000c000020903e807d0001a"
                  "0000787878787878787878787878787878787878"},
             Case{"P6",
                  Packet()
                      .eth()
                      .ipv4({.total_length = 1400})
                      .udp({.length = 26, .checksum = 0})
                      .raw(x),
                  "02000000000102aa00000002080045000578000100004011a9690a000002c000020903e807d0001a"
                  "0000787878787878787878787878787878787878"},
             Case{"P7",
                  Packet()
                      .eth()
                      .ipv4({.options = {7, 7, 4, 0, 0, 0, 0}})
                      .udp({.checksum = 0})
                      .raw(Bytes(10, 'x')),
                  "02000000000102aa0000000208004700002e000100004011a1ac0a000002c0000209070704000000"
                  "000003e807d00012000078787878787878787878"},
         }) {
        EXPECT_EQ(difference(from_hex(c.hex), c.packet.bytes()), "") << c.name << "\n" << c.packet;
    }
}

// The same frames as scapy 2.5 makes them: lengths, types and checksums by other people's code.
TEST(Packet, AgreesWithScapy) {
    const Bytes pad{1, 4, 0, 0, 0, 0};
    const Bytes quoted = Packet().ipv4({.ttl = 1}).udp().payload(8).bytes();
    for (const auto& c : {
             Case{"UDP",
                  Packet().eth().ipv4({.ttl = 1, .df = true}).udp().payload(5),
                  "02000000000102aa00000002080045000021000140000111adc00a000002c000020903e807d0000d"
                  "220d0001020304"},
             Case{"VLAN and TCP",
                  Packet().eth().vlan({.id = 100, .priority = 3}).ipv4().tcp().payload(3),
                  "02000000000102aa000000028100606408004500002b000100004006aec10a000002c000020903e8"
                  "07d000000001000000005002ffffd61a0000000102"},
             Case{"echo",
                  Packet().eth().ipv4().icmp(8, 0, 0x12340001).payload(9),
                  "02000000000102aa00000002080045000025000100004001aecc0a000002c00002090800d1ba1234"
                  "0001000102030405060708"},
             Case{"extension headers",
                  Packet().eth().ipv6().hop_by_hop({.options = pad}).fragment().udp().payload(7),
                  "02000000000102aa0000000286dd60000000001f0040fd0000000000000000000000000000022001"
                  "0db80002000000000000000000092c00010400000000110000000000000103e807d0000fbd480001"
                  "0203040506"},
             Case{"TCP over IPv6",
                  Packet().eth().ipv6({.traffic_class = 0x12, .flow_label = 0x34567}).tcp(),
                  "02000000000102aa0000000286dd6123456700140640fd0000000000000000000000000000022001"
                  "0db800020000000000000000000903e807d000000001000000005002ffff79630000"},
             Case{"neighbor solicitation",
                  Packet()
                      .eth({.dst = "33:33:ff:00:00:01"})
                      .ipv6({.dst = "ff02::1:ff00:1", .hop_limit = 255})
                      .ndp_ns({.source_link = "02:aa:00:00:00:02"}),
                  "3333ff00000102aa0000000286dd6000000000203afffd000000000000000000000000000002ff02"
                  "00000000000000000001ff00000187007ced00000000fd0000000000000000000000000000010101"
                  "02aa00000002"},
             Case{
                 "neighbor advertisement",
                 Packet()
                     .eth()
                     .ipv6({.dst = "fd00::1", .hop_limit = 255})
                     .ndp_na(
                         {.solicited = true, .override = true, .target_link = "02:aa:00:00:00:02"}),
                 "02000000000102aa0000000286dd6000000000203afffd000000000000000000000000000002fd000"
                 "00000000000000000000000000188001bf060000000fd000000000000000000000000000002020102"
                 "aa00000002"},
             Case{"ARP",
                  Packet().eth({.dst = "ff:ff:ff:ff:ff:ff"}).arp(),
                  "ffffffffffff02aa000000020806000108000604000102aa000000020a0000020000000000000a00"
                  "0001"},
             Case{"time exceeded",
                  Packet()
                      .ipv4({.src = "10.0.0.1", .dst = "10.0.0.2", .tos = 0xc0, .id = 7})
                      .icmp(11)
                      .raw(quoted),
                  "45c0004000070000400165f40a0000010a0000020b00c12c0000000045000024000100000111edbd"
                  "0a000002c000020903e807d000101bfb0001020304050607"},
             Case{"packet too big, its quote made of layers",
                  Packet()
                      .ipv6({.src = "fd00::1", .dst = "fd00::2"})
                      .icmp6(2, 0, 1400)
                      .ipv6({.hop_limit = 1})
                      .udp()
                      .payload(8),
                  "6000000000403a40fd000000000000000000000000000001fd000000000000000000000000000002"
                  "02008d18000005786000000000101101fd00000000000000000000000000000220010db800020000"
                  "000000000000000903e807d00010bd3f0001020304050607"},
             Case{"routing header",
                  Packet()
                      .eth()
                      .ipv6()
                      .destination_options()
                      .routing({.segments_left = 1, .data = {0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0,
                                                             0, 0, 0, 0, 0,    0, 0, 0, 0, 7}})
                      .udp({.checksum = 0}),
                  "02000000000102aa0000000286dd6000000000283c40fd0000000000000000000000000000022001"
                  "0db80002000000000000000000092b000104000000001102000100000000fd000000000000000000"
                  "00000000000703e807d000080000"},
         }) {
        EXPECT_EQ(difference(from_hex(c.hex), c.packet.bytes()), "") << c.name << "\n" << c.packet;
    }
}

TEST(Packet, Changes) {
    const auto packet = [] { return Packet().raw({1, 2, 3}); };
    EXPECT_EQ(packet().pad_to(5, 9).bytes(), (Bytes{1, 2, 3, 9, 9}));
    EXPECT_EQ(packet().pad_to(2).bytes(), (Bytes{1, 2, 3}));
    EXPECT_EQ(packet().truncate(1).bytes(), (Bytes{1}));
    EXPECT_EQ(packet().truncate(9).bytes(), (Bytes{1, 2, 3}));
    EXPECT_EQ(packet().set(1, 7).bytes(), (Bytes{1, 7, 3}));
    EXPECT_EQ(packet().truncate(1).pad_to(2).bytes(), (Bytes{1, 0}));
}

// RFC 768: a sum of zero is sent as all ones. The payload is chosen for that sum.
TEST(Packet, UdpChecksumOfZero) {
    const auto with = [](std::uint8_t high, std::uint8_t low) {
        return Packet().ipv4().udp().raw({high, low});
    };
    const std::uint16_t missing = parse_l3(with(0, 0).bytes()).udp->checksum.host();
    const Packet packet =
        with(static_cast<std::uint8_t>(missing >> 8U), static_cast<std::uint8_t>(missing));
    EXPECT_EQ(parse_l3(packet.bytes()).udp->checksum.host(), 0xffff);
    EXPECT_EQ(verify_checksums_l3(packet.bytes()), "");
}

TEST(Packet, Describe) {
    EXPECT_EQ(Packet()
                  .eth({.type = 0x0800})
                  .vlan(7)
                  .ipv4({.dst = "10.0.0.1", .ttl = 1, .df = true, .options = {1, 1}})
                  .icmp(8, 0, 1)
                  .truncate(4)
                  .describe(),
              "Packet().eth({.type = 2048}).vlan({.id = 7})"
              ".ipv4({.dst = \"10.0.0.1\", .ttl = 1, .df = true, .options = {1, 1}})"
              ".icmp(8, 0, 0x1).truncate(4)\n02000000");
    EXPECT_EQ(Packet()
                  .ipv6()
                  .hop_by_hop({.next_header = net::IpProtocol::kUdp})
                  .raw({0, 255})
                  .truncate(0)
                  .describe(),
              "Packet().ipv6().hop_by_hop({.next_header = IpProtocol{17}}).raw({0x00, "
              "0xff}).truncate(0)\n");
}

TEST(Hex, ReadsWhatItPrints) {
    const Bytes bytes = Packet().payload(300).bytes();
    EXPECT_EQ(from_hex(to_hex(bytes)), bytes);
    EXPECT_EQ(from_hex("0aF\n f"), (Bytes{0x0a, 0xff}));
}

TEST(Difference, SaysWhere) {
    EXPECT_EQ(difference(Bytes{1, 2}, Bytes{1, 2}), "");
    EXPECT_EQ(difference(Bytes{1, 2}, Bytes{1, 3}),
              "differ at byte 1: want 2 bytes\n0102\ngot 2 bytes\n0103");
    EXPECT_EQ(difference(Bytes{1}, Bytes{1, 3}),
              "differ at byte 1: want 1 bytes\n01\ngot 2 bytes\n0103");
}

TEST(ParseFrame, ReadsEveryLayer) {
    const Frame udp = parse_frame(
        Packet().eth().vlan(100).ipv4({.ttl = 9}).udp().payload(5).pad_to(64, 0xaa).bytes());
    EXPECT_EQ(udp.vlan->id(), 100);
    EXPECT_EQ(udp.ipv4->ttl, 9);
    EXPECT_EQ(udp.udp->destination_port.host(), 2000);
    EXPECT_EQ(udp.l3_offset, 18U);
    EXPECT_EQ(udp.l3.size(), 33U);  // padding cut off
    EXPECT_EQ(udp.payload, (Bytes{0, 1, 2, 3, 4}));
    EXPECT_FALSE(udp.ipv6 || udp.arp || udp.icmp || udp.tcp);

    const Frame six = parse_frame(
        Packet().eth().ipv6().hop_by_hop().fragment({.more = true, .id = 7}).icmp6(128).bytes());
    EXPECT_EQ(six.ipv6->source, V6("fd00::2"));
    EXPECT_EQ(six.fragment->id.host(), 7U);
    EXPECT_EQ(six.icmp->type, 128);
    EXPECT_FALSE(six.vlan || six.ipv4);

    const Frame later = parse_frame(Packet()
                                        .eth()
                                        .ipv4({.frag_offset = 8, .protocol = net::IpProtocol::kUdp})
                                        .payload(8)
                                        .bytes());
    EXPECT_FALSE(later.udp);
    EXPECT_EQ(later.payload.size(), 8U);

    const Frame error = parse_l3(Packet().ipv4().icmp(11).ipv4({.ttl = 1}).udp().bytes());
    EXPECT_EQ(error.quoted_ipv4()->ttl, 1);
    EXPECT_EQ(parse_frame(Packet().eth().arp().pad_to(60).bytes()).arp->operation.host(), 1);
    EXPECT_EQ(parse_l3(Packet().ipv4().tcp().payload(3).bytes()).payload.size(), 3U);
}

TEST(ParseFrame, CutAnywhere) {
    const Bytes whole = Packet().eth().vlan(1).ipv6().hop_by_hop().icmp6(1).ipv6().udp().bytes();
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        const Frame frame = parse_frame(cut);
        EXPECT_EQ(frame.eth.has_value(), size >= 14) << size;
        EXPECT_EQ(frame.vlan.has_value(), size >= 18) << size;
        EXPECT_EQ(frame.ipv6.has_value(), size >= 58) << size;
        EXPECT_EQ(frame.icmp.has_value(), size >= 74) << size;
        verify_checksums(cut);
    }
}

TEST(VerifyChecksums, FindsEachWrongOne) {
    EXPECT_EQ(verify_checksums(Packet().eth().ipv4({.checksum = 1}).udp().payload(2).bytes()),
              "IPv4 checksum is 0x0001, should be 0xaec3\n");
    for (const auto& c : {Case{"UDP", Packet().eth().ipv4().udp({.checksum = 1}), ""},
                          Case{"UDP", Packet().eth().ipv6().udp({.checksum = 1}), ""},
                          Case{"TCP", Packet().eth().ipv4().tcp({.checksum = 1}), ""},
                          Case{"TCP", Packet().eth().ipv6().hop_by_hop().tcp({.checksum = 1}), ""},
                          Case{"ICMP", Packet().eth().ipv4().icmp(8, 0, 0, 1), ""},
                          Case{"ICMP", Packet().eth().ipv6().icmp6(128, 0, 0, 1), ""}}) {
        EXPECT_TRUE(verify_checksums(c.packet.bytes()).starts_with(c.name)) << c.packet;
    }
    EXPECT_EQ(verify_checksums(Packet().eth().ipv4().udp({.checksum = 0}).bytes()), "");
    EXPECT_EQ(verify_checksums(Packet().eth().ipv4({.mf = true}).udp({.checksum = 1}).bytes()), "");
}

}  // namespace
}  // namespace sluice::test
