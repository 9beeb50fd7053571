// SPDX-License-Identifier: BSD-3-Clause
#include "net/validate.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string_view>

#include <gtest/gtest.h>

#include "support/packet.h"

namespace sluice::net {
namespace {

using enum DropReason;
using test::Bytes;
using test::from_hex;
using test::Packet;

struct Case {
    std::string_view name;
    Packet in;  // from the IP header on
    DropReason want = kNone;
    std::optional<std::size_t> packet_bytes = {};  // of a packet in several segments
    bool checksum_known_good = false;
};

void expect_ipv4(std::initializer_list<Case> cases) {
    for (const auto& c : cases) {
        const Bytes bytes = c.in.bytes();
        const std::size_t whole = c.packet_bytes.value_or(bytes.size());
        EXPECT_EQ(info(validate_ipv4(bytes, whole, c.checksum_known_good)).name, info(c.want).name)
            << c.name << "\n"
            << c.in.describe();
        EXPECT_EQ(info(validate_ipv4_any(bytes, whole, c.checksum_known_good)).name,
                  info(c.want).name)
            << c.name << ", without the short way";
    }
}

void expect_ipv6(std::initializer_list<Case> cases) {
    for (const auto& c : cases) {
        const Bytes bytes = c.in.bytes();
        EXPECT_EQ(info(validate_ipv6(bytes, c.packet_bytes.value_or(bytes.size()))).name,
                  info(c.want).name)
            << c.name << "\n"
            << c.in.describe();
    }
}

TEST(ValidateIpv4, Rfc1812_5_2_2_Clauses) {
    const auto with_options = [] {
        return Packet().ipv4({.options = {7, 7, 4, 0, 0, 0, 0}}).udp().payload(18);
    };
    expect_ipv4({
        {.name = "good", .in = Packet().ipv4().udp().payload(18)},
        {.name = "header only", .in = Packet().ipv4()},
        {.name = "options", .in = with_options()},
        {.name = "all 40 bytes of options", .in = Packet().ipv4({.options = Bytes(40, 1)}).udp()},
        {.name = "nothing", .in = Packet(), .want = kIpv4TooShort},
        {.name = "(1) 19 bytes", .in = Packet().ipv4().truncate(19), .want = kIpv4TooShort},
        {.name = "(3) version 5",
         .in = Packet().ipv4({.version = 5}).udp(),
         .want = kIpv4BadVersion},
        {.name = "(3) version 6",
         .in = Packet().ipv4({.version = 6}).udp(),
         .want = kIpv4BadVersion},
        {.name = "(4) IHL 4", .in = Packet().ipv4({.ihl = 4}).udp(), .want = kIpv4BadHeaderLength},
        {.name = "(4) IHL 0", .in = Packet().ipv4({.ihl = 0}).udp(), .want = kIpv4BadHeaderLength},
        {.name = "(5) total length 19",
         .in = Packet().ipv4({.total_length = 19}).udp(),
         .want = kIpv4BadTotalLength},
        {.name = "(5) total length 0",
         .in = Packet().ipv4({.total_length = 0}).udp(),
         .want = kIpv4BadTotalLength},
        {.name = "(5) total length within the options",
         .in = Packet().ipv4({.options = Bytes(8, 1), .total_length = 27}).udp(),
         .want = kIpv4BadTotalLength},
        {.name = "(5) IHL past the total length",
         .in = Packet().ipv4({.ihl = 15}).udp(),
         .want = kIpv4BadTotalLength},
        {.name = "header in two segments",
         .in = with_options().truncate(27),
         .want = kIpv4TooShort,
         .packet_bytes = 54},
        {.name = "payload in another segment",
         .in = with_options().truncate(28),
         .packet_bytes = 54},
    });
}

TEST(ValidateIpv4, Case_09_Checksum) {
    const auto good = [] { return Packet().ipv4().udp().payload(1480); };
    for (std::size_t bit = 0; bit < 16; ++bit) {
        const Bytes bytes = good().bytes();
        const std::size_t at = 10 + bit / 8;
        expect_ipv4({{.name = "one bit of the checksum",
                      .in = good().set(at, static_cast<std::uint8_t>(bytes[at] ^ 1U << bit % 8)),
                      .want = kIpv4BadChecksum},
                     {.name = "one bit, the device says it is good",
                      .in = good().set(at, static_cast<std::uint8_t>(bytes[at] ^ 1U << bit % 8)),
                      .checksum_known_good = true}});
    }
    expect_ipv4({{.name = "in an option",
                  .in = Packet().ipv4({.options = {1, 1, 1, 1}}).udp().set(20, 0),
                  .want = kIpv4BadChecksum}});
}

TEST(ValidateIpv4, Check_123_LengthsAndTinyFragments) {
    const auto tcp = static_cast<std::uint8_t>(IpProtocol::kTcp);
    ASSERT_EQ(tcp, 6);
    expect_ipv4({
        {.name = "IP shorter than the frame", .in = Packet().ipv4().udp().pad_to(46, 0xaa)},
        {.name = "IP longer than the frame",
         .in = Packet().ipv4({.total_length = 47}).udp().pad_to(46, 0xaa),
         .want = kIpv4Truncated},
        {.name = "exactly the frame", .in = Packet().ipv4({.total_length = 46}).udp().pad_to(46)},
        {.name = "segmented, pkt_len counts",
         .in = Packet().ipv4({.total_length = 9000}).udp().payload(100),
         .packet_bytes = 9000},
        {.name = "segmented, one byte short",
         .in = Packet().ipv4({.total_length = 9000}).udp().payload(100),
         .want = kIpv4Truncated,
         .packet_bytes = 8999},
        {.name = "TCP at fragment offset 1",
         .in = Packet().ipv4({.frag_offset = 8, .protocol = IpProtocol::kTcp}).payload(24),
         .want = kIpv4TinyFragment},
        {.name = "TCP at fragment offset 1, more to come",
         .in = Packet()
                   .ipv4({.mf = true, .frag_offset = 8, .protocol = IpProtocol::kTcp})
                   .payload(24),
         .want = kIpv4TinyFragment},
        {.name = "UDP at fragment offset 1",
         .in = Packet().ipv4({.frag_offset = 8, .protocol = IpProtocol::kUdp}).payload(24)},
        {.name = "TCP at fragment offset 2",
         .in = Packet().ipv4({.frag_offset = 16, .protocol = IpProtocol::kTcp}).payload(24)},
        {.name = "first TCP fragment", .in = Packet().ipv4({.mf = true}).tcp().payload(24)},
    });
}

constexpr std::size_t kEth = sizeof(EthernetHeader);

struct FrameCase {
    std::string_view name;
    std::string_view hex;
    DropReason want = kNone;
};

// The ready frames of the public cases.
TEST(Validate, ReadyFrames) {
    for (const auto& c :
         {FrameCase{
              "P1, padded",
              "02000000000102aa0000000208004500001c000100004011aec50a000002c000020903e807d00008"
              "0000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
          FrameCase{
              "P2, checksum 0xfeff",
              "02000000000102aa0000000208004500002eafb400004011feff0a000002c000020903e807d0001a"
              "0000787878787878787878787878787878787878"},
          FrameCase{
              "P5, source 0.0.0.0 (the header is good)",
              "02000000000102aa0000000208004500002e000100004011b8b500000000c000020903e807d0001a"
              "0000787878787878787878787878787878787878"},
          FrameCase{
              "P6, total length 1400 in 60 bytes",
              "02000000000102aa00000002080045000578000100004011a9690a000002c000020903e807d0001a"
              "0000787878787878787878787878787878787878",
              kIpv4Truncated},
          FrameCase{
              "P7, record route",
              "02000000000102aa0000000208004700002e000100004011a1ac0a000002c0000209070704000000"
              "000003e807d00012000078787878787878787878"}}) {
        const Bytes frame = from_hex(c.hex);
        const auto l3 = std::span(frame).subspan(kEth);
        EXPECT_EQ(info(validate_ipv4(l3, l3.size())).name, info(c.want).name) << c.name;
    }
    const Bytes p3 = from_hex(
        "02000000000102aa0000000286dd6000000000080040fd00000000000000000000000000000220010db8000200"
        "00"
        "000000000000000911ff010400000000");
    const auto l3 = std::span(p3).subspan(kEth);
    // Case 108: transit does not look into the options, and goes on.
    EXPECT_EQ(validate_ipv6(l3, l3.size()), kNone);
    EXPECT_EQ(find_upper_layer(l3).reason, kIpv6BadExtension);
}

TEST(ValidateIpv6, Check_125_Rfc8200_3) {
    expect_ipv6({
        {.name = "good", .in = Packet().ipv6().udp().payload(4)},
        {.name = "header only", .in = Packet().ipv6()},
        {.name = "padded", .in = Packet().ipv6().udp().pad_to(100, 0xaa)},
        {.name = "nothing", .in = Packet(), .want = kIpv6TooShort},
        {.name = "39 bytes", .in = Packet().ipv6().truncate(39), .want = kIpv6TooShort},
        {.name = "version 4", .in = Packet().ipv6({.version = 4}).udp(), .want = kIpv6BadVersion},
        {.name = "version 7", .in = Packet().ipv6({.version = 7}).udp(), .want = kIpv6BadVersion},
        {.name = "payload one byte past the frame",
         .in = Packet().ipv6({.payload_length = 9}).udp(),
         .want = kIpv6Truncated},
        {.name = "payload 65535",
         .in = Packet().ipv6({.payload_length = 65535}).udp(),
         .want = kIpv6Truncated},
        {.name = "payload in another segment",
         .in = Packet().ipv6({.payload_length = 1400}).udp(),
         .packet_bytes = 1440},
        {.name = "malformed chain is not looked at",
         .in = Packet().ipv6().hop_by_hop({.length = 255}).udp()},
    });
}

struct OptionCase {
    std::string_view name;
    Bytes options;
    DropReason want = kNone;
    unsigned pointer = 0;
};

// RFC 791 3.1, RFC 1812 5.2.4.1, RFC 7126 4.3 and 4.4.
TEST(CheckIpv4Options, Walk) {
    for (const auto& c : {
             OptionCase{"none", {}},
             OptionCase{"P7, record route", {7, 7, 4, 0, 0, 0, 0, 0}},
             OptionCase{"no-operations", {1, 1, 1, 1}},
             OptionCase{"end of list hides the rest", {0, 131, 1, 99}},
             OptionCase{"router alert", {148, 4, 0, 0}},
             OptionCase{"unknown, whole", {99, 4, 1, 2}},
             OptionCase{"length 0", {7, 0, 0, 0}, kIpv4BadOption, 21},
             OptionCase{"length 1", {7, 1, 0, 0}, kIpv4BadOption, 21},
             OptionCase{"length one past the header", {7, 5, 4, 0}, kIpv4BadOption, 21},
             OptionCase{"length 255", {1, 1, 7, 255}, kIpv4BadOption, 23},
             OptionCase{"no room for a length", {1, 1, 1, 7}, kIpv4BadOption, 23},
             OptionCase{"second option bad", {148, 4, 0, 0, 7, 9, 0, 0}, kIpv4BadOption, 25},
             OptionCase{"loose source route", {131, 7, 4, 10, 0, 0, 1, 0}, kIpv4SourceRoute, 20},
             OptionCase{"strict source route", {1, 137, 7, 4, 10, 0, 0, 1}, kIpv4SourceRoute, 21},
             OptionCase{"used up source route", {131, 7, 8, 10, 0, 0, 1, 0}, kIpv4SourceRoute, 20},
             OptionCase{"malformed source route", {131, 9, 4, 10, 0, 0, 1, 0}, kIpv4BadOption, 21},
         }) {
        const Bytes header = Packet().ipv4({.options = c.options}).bytes();
        const OptionVerdict verdict = check_ipv4_options(header);
        EXPECT_EQ(info(verdict.reason).name, info(c.want).name) << c.name;
        EXPECT_EQ(unsigned{verdict.pointer}, c.pointer) << c.name;
    }
}

struct MartianCase {
    std::string_view address;
    DropReason source;
    DropReason destination;
};

// Checks 124 and 128, case 103; RFC 1812 5.3.7, dst.md C-20 and C-21.
TEST(Martian, Check_124_128_Case_103_Ipv4) {
    for (const auto& c :
         {MartianCase{"0.0.0.0", kMartianSourceZero, kMartianDestinationZero},
          MartianCase{"0.1.2.3", kMartianSourceZero, kMartianDestinationZero},
          MartianCase{"127.0.0.1", kMartianSourceLoopback, kMartianDestinationLoopback},
          MartianCase{"127.255.255.255", kMartianSourceLoopback, kMartianDestinationLoopback},
          MartianCase{"224.0.0.9", kMartianSourceMulticast, kNone},
          MartianCase{"239.255.255.255", kMartianSourceMulticast, kNone},
          MartianCase{"255.255.255.255", kMartianSourceBroadcast, kNone},
          MartianCase{"240.0.0.1", kNone, kNone},  // check 3: forwarded
          MartianCase{"1.0.0.0", kNone, kNone},
          MartianCase{"126.255.255.255", kNone, kNone},
          MartianCase{"128.0.0.0", kNone, kNone},
          MartianCase{"223.255.255.255", kNone, kNone},
          MartianCase{"10.0.0.2", kNone, kNone}}) {
        const auto address = *Ipv4Addr::parse(c.address);
        EXPECT_EQ(martian_source(address, false), c.source) << c.address;
        EXPECT_EQ(martian_destination(address, false), c.destination) << c.address;
    }
}

TEST(Martian, Check_108_RouteLocalnetAdmitsLoopback) {
    const auto loopback = *Ipv4Addr::parse("127.25.3.14");
    EXPECT_EQ(martian_source(loopback, true), kNone);
    EXPECT_EQ(martian_destination(loopback, true), kNone);
    EXPECT_EQ(martian_source(Ipv4Addr{}, true), kMartianSourceZero);
    EXPECT_EQ(martian_destination(Ipv4Addr{}, true), kMartianDestinationZero);
}

TEST(Martian, Check_128_Case_103_Ipv6) {
    for (const auto& c : {MartianCase{"::", kMartianSourceZero, kMartianDestinationZero},
                          MartianCase{"::1", kMartianSourceLoopback, kMartianDestinationLoopback},
                          MartianCase{"ff02::1", kMartianSourceMulticast, kNone},
                          MartianCase{"fe80::2", kNone, kNone},
                          MartianCase{"::2", kNone, kNone},
                          MartianCase{"fd00::2", kNone, kNone}}) {
        const auto address = *Ipv6Addr::parse(c.address);
        EXPECT_EQ(martian_source(address), c.source) << c.address;
        EXPECT_EQ(martian_destination(address), c.destination) << c.address;
    }
}

// The short way through validate_ipv4 must never decide other than the whole.
TEST(ValidateIpv4, RandomHeadersAgreeWithTheWholeCheck) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE(seed);
    RecordProperty("seed", std::to_string(seed));
    std::mt19937 random(seed);
    int passed = 0;
    for (int round = 0; round < 20000; ++round) {
        auto packet =
            Packet().ipv4({.df = random() % 2 == 0,
                           .frag_offset = random() % 4 == 0 ? std::uint16_t{8} : std::uint16_t{0}});
        packet.tcp().payload(random() % 8);
        Bytes bytes = packet.bytes();
        for (auto flips = random() % 3; flips > 0; --flips) {
            bytes[random() % sizeof(Ipv4Header)] ^= static_cast<std::uint8_t>(1U << random() % 8);
        }
        bytes.resize(random() % 8 == 0 ? random() % bytes.size() : bytes.size());
        const bool good = random() % 2 == 0;
        const auto verdict = validate_ipv4(bytes, bytes.size(), good);
        ASSERT_EQ(verdict, validate_ipv4_any(bytes, bytes.size(), good)) << test::to_hex(bytes);
        passed += verdict == kNone ? 1 : 0;
    }
    EXPECT_GT(passed, 1000);
    EXPECT_LT(passed, 19000);
}

}  // namespace
}  // namespace sluice::net
