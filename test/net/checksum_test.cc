// SPDX-License-Identifier: BSD-3-Clause
#include "net/checksum.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "support/frame.h"
#include "support/packet.h"

namespace sluice::net {
namespace {

using test::Bytes;

/// RFC 1071 1, word by word: the oracle.
std::uint16_t plain_checksum(std::span<const std::uint8_t> bytes) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        const unsigned low = i + 1 < bytes.size() ? bytes[i + 1] : 0U;
        sum += bytes[i] * 256U + low;
        sum = (sum & 0xffffU) + (sum >> 16U);
    }
    return static_cast<std::uint16_t>(~sum);
}

TEST(Checksum, Rfc1071Example) {
    const Bytes bytes{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};  // RFC 1071 3
    EXPECT_EQ(internet_checksum(bytes).host(), static_cast<std::uint16_t>(~0xddf2U));
}

TEST(Checksum, EveryLengthAndAlignmentAgreesWithThePlainSum) {
    std::mt19937 random(1);
    for (std::size_t size = 0; size <= 130; ++size) {
        for (std::size_t shift = 0; shift < 8; ++shift) {
            // Exactly sized: a read past the end is the address sanitizer's.
            Bytes bytes(shift + size);
            for (auto& b : bytes) {
                b = static_cast<std::uint8_t>(random());
            }
            const auto view = std::span<const std::uint8_t>(bytes).subspan(shift);
            EXPECT_EQ(internet_checksum(view).host(), plain_checksum(view)) << size << '+' << shift;
        }
    }
}

TEST(Checksum, LongestPacketOfOnesDoesNotOverflow) {
    const Bytes bytes(65535, 0xff);
    EXPECT_EQ(internet_checksum(bytes).host(), plain_checksum(bytes));
    EXPECT_EQ(fold_checksum(sum_words(bytes, 0xffffffffU)).host(), plain_checksum(bytes));
}

TEST(Checksum, SumsInPieces) {
    const Bytes bytes = test::Packet().ipv4().udp().payload(101).bytes();
    const auto view = std::span<const std::uint8_t>(bytes);
    for (std::size_t cut = 0; cut <= bytes.size(); cut += 2) {
        const std::uint32_t sum = sum_words(view.subspan(cut), sum_words(view.first(cut)));
        EXPECT_EQ(fold_checksum(sum), internet_checksum(view)) << cut;
    }
}

TEST(Checksum, OnlyZerosSumToZero) {
    EXPECT_EQ(sum_words(Bytes(40, 0)), 0U);
    EXPECT_NE(sum_words(Bytes(40, 0xff)), 0U);
    EXPECT_EQ(internet_checksum(Bytes(20, 0)).host(), 0xffff);
}

// RFC 8200 8.1, with the pseudo-header laid out byte by byte (frame P4).
TEST(Checksum, PseudoHeaders) {
    auto p4 = test::from_hex(
        "02000000000102aa0000000286dd60000000000c1140fe80000000000000000000000000000220010db8000200"
        "00"
        "000000000000000903e807d0000c000061626364");
    const auto* ip = header_at<Ipv6Header>(p4, 14);
    const auto udp = std::span(p4).subspan(54);
    const auto sum = plain_checksum([&] {
        Bytes pseudo(p4.begin() + 22, p4.begin() + 54);
        const Bytes rest{0, 0, 0, 12, 0, 0, 0, 17};  // RFC 8200 8.1: length, zeros, next header
        pseudo.insert(pseudo.end(), rest.begin(), rest.end());
        pseudo.insert(pseudo.end(), udp.begin(), udp.end());
        return pseudo;
    }());
    const std::uint32_t start =
        pseudo_header_sum(ip->source, ip->destination, 12, IpProtocol::kUdp);
    EXPECT_EQ(fold_checksum(sum_words(udp, start)).host(), sum);
}

TEST(Checksum, PseudoHeaderTakesLengthsPast64K) {
    const Ipv6Addr a = *Ipv6Addr::parse("fd00::1");
    const auto sum = [&](std::uint32_t length) {
        return fold_checksum(pseudo_header_sum(a, a, length, IpProtocol::kTcp));
    };
    EXPECT_NE(sum(0x00020000), sum(0));
    EXPECT_EQ(sum(0x00020000), sum(0x00000002));  // ones' complement sum of both halves
}

TEST(Checksum, Ipv4PseudoHeader) {
    const auto source = *Ipv4Addr::parse("10.0.0.2");
    const auto destination = *Ipv4Addr::parse("192.0.2.9");
    const Bytes pseudo{10, 0, 0, 2, 192, 0, 2, 9, 0, 17, 0x12, 0x34};  // RFC 768
    EXPECT_EQ(
        fold_checksum(pseudo_header_sum(source, destination, 0x1234, IpProtocol::kUdp)).host(),
        plain_checksum(pseudo));
}

TEST(Checksum, TwentyByteHeaderAgreesWithTheGeneralSum) {
    std::mt19937 random(2);
    for (int round = 0; round < 2000; ++round) {
        Bytes bytes = test::Packet()
                          .ipv4({.src = Ipv4Addr::from_host(static_cast<std::uint32_t>(random())),
                                 .id = static_cast<std::uint16_t>(random())})
                          .bytes();
        ASSERT_TRUE(checksum_ok(*header_at<Ipv4Header>(bytes)));
        ASSERT_TRUE(checksum_ok(std::span<const std::uint8_t>(bytes)));
        bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
        ASSERT_FALSE(checksum_ok(*header_at<Ipv4Header>(bytes)));
        ASSERT_FALSE(checksum_ok(std::span<const std::uint8_t>(bytes)));
    }
}

// Case 1 and RFC 1624 3: for every value of the checksum field, the incremental update gives what
// a full computation gives.
TEST(DecrementTtl, Case_01_EveryChecksumAgreesWithFullComputation) {
    for (std::uint32_t id = 0; id <= 0xffff; ++id) {
        Ipv4Header ip{};
        ip.version_ihl = 0x45;
        ip.total_length = Be16::from_host(46);
        ip.id = Be16::from_host(static_cast<std::uint16_t>(id));
        ip.ttl = 64;
        ip.protocol = IpProtocol::kUdp;
        ip.source = Ipv4Addr::from_host(0x0a000002);
        const auto bytes = [&ip] { return std::span(&ip.version_ihl, sizeof(ip)); };
        ip.checksum = Be16::from_host(plain_checksum(bytes()));
        decrement_ttl(ip);
        ASSERT_EQ(ip.ttl, 63);
        const Be16 have = ip.checksum;
        ip.checksum = {};
        ASSERT_EQ(have.host(), plain_checksum(bytes())) << id;
    }
}

// Case 12, frame P2: 0xfeff becomes 0x0000, which naive addition makes 0xffff.
TEST(DecrementTtl, Case_12_ZeroEdge) {
    auto p2 = test::from_hex(
        "02000000000102aa0000000208004500002eafb400004011feff0a000002c000020903e807d0001a0000787878"
        "78"
        "7878787878787878787878787878");
    auto* ip = mutable_header_at<Ipv4Header>(p2, sizeof(EthernetHeader));
    ASSERT_EQ(ip->checksum.host(), 0xfeff);
    ASSERT_TRUE(checksum_ok(*ip));
    decrement_ttl(*ip);
    EXPECT_EQ(ip->checksum.host(), 0x0000);
    EXPECT_EQ(ip->ttl, 63);
    EXPECT_TRUE(checksum_ok(*ip));
}

}  // namespace
}  // namespace sluice::net
