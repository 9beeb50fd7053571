// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "net/checksum.h"
#include "net/icmp.h"
#include "net/neighbor_message.h"
#include "net/validate.h"
#include "support/packet.h"

/// Everything that reads packet bytes, over packets cut at every length and over noise. Each packet
/// lies in a heap block of exactly its size, so that the address sanitizer sees any read past it.
namespace sluice::net {
namespace {

using test::Bytes;
using test::Packet;

struct Seed {
    std::string_view name;
    Packet packet;  // from the IP or ARP header on
};

std::vector<Seed> seeds() {
    const Bytes source_route{131, 7, 4, 10, 0, 0, 1, 0};
    return {
        {"ipv4 udp", Packet().ipv4().udp().payload(20)},
        {"ipv4 tcp", Packet().ipv4().tcp().payload(4)},
        {"ipv4 icmp", Packet().ipv4().icmp(8).payload(8)},
        {"ipv4 icmp error", Packet().ipv4().icmp(3).ipv4().udp()},
        {"ipv4 record route", Packet().ipv4({.options = {7, 7, 4, 0, 0, 0, 0}}).udp()},
        {"ipv4 source route", Packet().ipv4({.options = source_route}).udp()},
        {"ipv4 all options", Packet().ipv4({.options = Bytes(40, 1)}).icmp(8)},
        {"ipv4 fragment", Packet().ipv4({.mf = true, .frag_offset = 8}).payload(24)},
        {"ipv6 udp", Packet().ipv6().udp().payload(20)},
        {"ipv6 icmp error", Packet().ipv6().icmp6(1).ipv6().udp()},
        {"ipv6 chain",
         Packet()
             .ipv6()
             .hop_by_hop()
             .destination_options()
             .routing({.segments_left = 1})
             .fragment()
             .destination_options()
             .icmp6(128)
             .payload(8)},
        {"ipv6 authentication",
         Packet().ipv6({.next_header = IpProtocol::kAh}).raw({58, 4}).payload(22).icmp6(128)},
        {"ipv6 hop-by-hop of 2048 bytes", Packet().ipv6().hop_by_hop({.length = 255}).udp()},
        {"ndp solicitation",
         Packet()
             .ipv6({.dst = "ff02::1:ff00:1", .hop_limit = 255})
             .ndp_ns({.source_link = "02:aa:00:00:00:02"})},
        {"ndp advertisement",
         Packet()
             .ipv6({.dst = "fd00::1", .hop_limit = 255})
             .ndp_na({.solicited = true, .target_link = "02:aa:00:00:00:02"})},
        {"ndp router advertisement",
         Packet()
             .ipv6({.src = "fe80::2", .hop_limit = 255})
             .icmp6(134)
             .raw({0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1})},
        {"ndp redirect",
         Packet().ipv6({.src = "fe80::2", .hop_limit = 255}).icmp6(137).raw(Bytes(32, 0xfe))},
        {"arp", Packet().arp()},
    };
}

/// Calls every reader. Returns what depends on what they read, so that none is optimized away, and
/// checks what must hold of any bytes.
std::size_t read_all(std::span<const std::uint8_t> packet) {
    // On the heap and exactly sized, without the capacity that a vector may keep.
    const auto block = std::make_unique<std::uint8_t[]>(packet.size());
    std::ranges::copy(packet, block.get());
    const std::span<const std::uint8_t> bytes(block.get(), packet.size());
    std::size_t seen = 0;
    // 65535: a packet that continues in another segment.
    for (const std::size_t whole : {bytes.size(), std::size_t{65535}}) {
        const bool valid = validate_ipv4(bytes, whole) == DropReason::kNone;
        const bool valid_by_device = validate_ipv4(bytes, whole, true) == DropReason::kNone;
        EXPECT_TRUE(valid_by_device || !valid);
        if (valid_by_device) {
            const std::size_t header = header_at<Ipv4Header>(bytes)->header_bytes();
            EXPECT_LE(header, bytes.size());
            seen += check_ipv4_options(bytes.first(header)).pointer;
        }
        seen += validate_ipv6(bytes, whole) == DropReason::kNone ? 1U : 0U;
    }
    const UpperLayer upper = find_upper_layer(bytes);
    if (upper.reason == DropReason::kNone) {
        EXPECT_LE(upper.offset, bytes.size());
        EXPECT_LT(upper.next_header_at, upper.offset);
        EXPECT_EQ(bytes[upper.next_header_at], static_cast<std::uint8_t>(upper.protocol));
    }
    for (const bool link_group : {false, true}) {
        const IcmpError error{.type = icmp6::kPacketTooBig, .code = 0, .rest = 1280};
        seen += may_send_icmp_error(bytes, link_group, error) ? 1U : 0U;
        seen += may_send_icmp6_error(bytes, link_group, error) ? 1U : 0U;
        const auto out = std::make_unique<std::uint8_t[]>(kIcmp6ErrorMax);
        seen += write_icmp_error({out.get(), kIcmpErrorMax}, error, {}, 1, bytes);
        seen += write_icmp6_error({out.get(), kIcmp6ErrorMax}, error, {}, bytes);
    }
    seen += parse_arp(bytes).has_value() ? 1U : 0U;
    for (const std::size_t offset : {std::size_t{0}, std::size_t{upper.offset}, bytes.size()}) {
        seen += parse_neighbor_discovery(bytes, offset).has_value() ? 1U : 0U;
    }
    return seen + internet_checksum(bytes).raw();
}

TEST(Truncation, EveryPacketAtEveryLength) {
    for (const auto& seed : seeds()) {
        const Bytes whole = seed.packet.bytes();
        for (std::size_t size = 0; size <= whole.size(); ++size) {
            SCOPED_TRACE(std::string(seed.name) + " cut to " + std::to_string(size));
            read_all(std::span(whole).first(size));
        }
    }
}

/// A cut packet whose length fields were made to fit, so that the readers get past validation.
Bytes fitted(std::span<const std::uint8_t> cut) {
    Bytes bytes(cut.begin(), cut.end());
    const auto size = static_cast<std::uint16_t>(bytes.size());
    if (auto* ip = mutable_header_at<Ipv4Header>(bytes); ip != nullptr && ip->version() == 4) {
        ip->total_length = Be16::from_host(size);
        ip->checksum = {};
        const std::size_t header = std::min<std::size_t>(ip->header_bytes(), bytes.size());
        ip->checksum = internet_checksum(std::span(bytes).first(header));
    } else if (auto* ip6 = mutable_header_at<Ipv6Header>(bytes); ip6 != nullptr) {
        ip6->payload_length = Be16::from_host(static_cast<std::uint16_t>(size - sizeof(*ip6)));
    }
    return bytes;
}

TEST(Truncation, EveryPacketAtEveryLengthWithLengthsThatFit) {
    std::size_t valid = 0;
    for (const auto& seed : seeds()) {
        const Bytes whole = seed.packet.bytes();
        for (std::size_t size = 0; size <= whole.size(); ++size) {
            SCOPED_TRACE(std::string(seed.name) + " cut to " + std::to_string(size));
            const Bytes cut = fitted(std::span(whole).first(size));
            valid += validate_ipv4(cut, cut.size()) == DropReason::kNone ? 1U : 0U;
            valid += validate_ipv6(cut, cut.size()) == DropReason::kNone ? 1U : 0U;
            read_all(cut);
        }
    }
    EXPECT_GT(valid, 300U);  // most got past validation
}

TEST(Truncation, RandomChangesAreReadSafely) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    RecordProperty("seed", std::to_string(seed));
    std::mt19937 random(seed);
    const auto corpus = seeds();
    for (int round = 0; round < 20000; ++round) {
        Bytes bytes = corpus[random() % corpus.size()].packet.bytes();
        for (auto changes = random() % 6; changes > 0; --changes) {
            bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
        }
        bytes.resize(random() % (bytes.size() + 1));
        read_all(random() % 2 == 0 ? bytes : fitted(bytes));
        if (HasFailure()) {
            FAIL() << test::to_hex(bytes);
        }
    }
}

}  // namespace
}  // namespace sluice::net
