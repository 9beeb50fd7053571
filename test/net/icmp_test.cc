// SPDX-License-Identifier: BSD-3-Clause
#include "net/icmp.h"

#include <algorithm>
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

constexpr IcmpError kTtl{.type = icmp::kTimeExceeded, .code = 0, .rest = 0};
constexpr IcmpError kNoRoute{.type = icmp::kUnreachable, .code = icmp::kNet, .rest = 0};
constexpr IcmpError kTtl6{.type = icmp6::kTimeExceeded, .code = 0, .rest = 0};
constexpr IcmpError kNoRoute6{.type = icmp6::kUnreachable, .code = icmp6::kNoRoute, .rest = 0};
constexpr IcmpError kTooBig{.type = icmp6::kPacketTooBig, .code = 0, .rest = 1400};
constexpr IcmpError kBadHeader{
    .type = icmp6::kParameterProblem, .code = icmp6::kBadHeader, .rest = 0};
constexpr IcmpError kUnknownOption{
    .type = icmp6::kParameterProblem, .code = icmp6::kUnknownOption, .rest = 0};

struct Case {
    std::string_view name;
    Packet about;
    bool want = false;
    bool link_group = false;
};

// RFC 1812 4.3.2.7, RFC 1122 3.2.2.
TEST(MaySendIcmpError, Case_21_Check_127) {
    const auto echo_like = [](std::uint8_t type) { return Packet().ipv4().icmp(type).payload(8); };
    for (const auto& c : {
             Case{"UDP", Packet().ipv4().udp(), true},
             Case{"echo", echo_like(icmp::kEcho), true},
             Case{"echo reply", echo_like(icmp::kEchoReply), true},
             Case{"first fragment", Packet().ipv4({.mf = true}).udp().payload(16), true},
             Case{"class E destination", Packet().ipv4({.dst = "240.1.1.1"}).udp(), true},
             Case{"echo behind options", Packet().ipv4({.options = {148, 4, 0, 0}}).icmp(8), true},
             Case{"link-layer broadcast", Packet().ipv4().udp(), false, true},
             Case{"limited broadcast", Packet().ipv4({.dst = "255.255.255.255"}).udp()},
             Case{"multicast", Packet().ipv4({.dst = "224.0.0.1"}).udp()},
             Case{"source 0.0.0.0", Packet().ipv4({.src = "0.0.0.0"}).udp()},
             Case{"source 0/8", Packet().ipv4({.src = "0.1.2.3"}).udp()},
             Case{"source 127.0.0.1", Packet().ipv4({.src = "127.0.0.1"}).udp()},
             Case{"source 224.0.0.9", Packet().ipv4({.src = "224.0.0.9"}).udp()},
             Case{"source 240.0.0.1", Packet().ipv4({.src = "240.0.0.1"}).udp()},
             Case{"source broadcast", Packet().ipv4({.src = "255.255.255.255"}).udp()},
             Case{"later fragment", Packet().ipv4({.frag_offset = 8}).payload(16)},
             Case{"unreachable", echo_like(icmp::kUnreachable)},
             Case{"source quench", echo_like(icmp::kSourceQuench)},
             Case{"redirect", echo_like(icmp::kRedirect)},
             Case{"time exceeded", echo_like(icmp::kTimeExceeded)},
             Case{"parameter problem", echo_like(icmp::kParameterProblem)},
             Case{"error behind options",
                  Packet().ipv4({.options = {148, 4, 0, 0}}).icmp(icmp::kTimeExceeded)},
             Case{"ICMP without a type", Packet().ipv4({.protocol = IpProtocol::kIcmp})},
             Case{"no IP header", Packet().ipv4().truncate(19)},
         }) {
        const Bytes l3 = c.about.bytes();
        EXPECT_EQ(may_send_icmp_error(l3, c.link_group, kTtl), c.want) << c.name;
        EXPECT_EQ(may_send_icmp_error(l3, c.link_group, kNoRoute), c.want) << c.name;
    }
}

// RFC 4443 2.4 (e).
TEST(MaySendIcmp6Error, Case_21_Check_127) {
    const auto message = [](std::uint8_t type) { return Packet().ipv6().icmp6(type).payload(8); };
    for (const auto& c : {
             Case{"UDP", Packet().ipv6().udp(), true},
             Case{"echo", message(icmp6::kEcho), true},
             Case{"echo reply", message(icmp6::kEchoReply), true},
             Case{"echo behind headers",
                  Packet().ipv6().hop_by_hop().destination_options().icmp6(128),
                  true},
             Case{"first fragment", Packet().ipv6().fragment({.more = true}).udp(), true},
             Case{"link-local source", Packet().ipv6({.src = "fe80::2"}).udp(), true},
             Case{"source ::", Packet().ipv6({.src = "::"}).udp()},
             Case{"source ::1", Packet().ipv6({.src = "::1"}).udp()},
             Case{"source ff02::1", Packet().ipv6({.src = "ff02::1"}).udp()},
             Case{"later fragment", Packet().ipv6().fragment({.offset = 8}).payload(8)},
             Case{"unreachable", message(icmp6::kUnreachable)},
             Case{"packet too big", message(icmp6::kPacketTooBig)},
             Case{"time exceeded", message(icmp6::kTimeExceeded)},
             Case{"parameter problem", message(icmp6::kParameterProblem)},
             Case{"unknown error", message(127)},
             Case{"redirect", message(icmp6::kRedirect)},
             Case{"error behind headers", Packet().ipv6().hop_by_hop().icmp6(1)},
             Case{"ICMPv6 without a type", Packet().ipv6({.next_header = IpProtocol::kIcmpv6})},
             Case{"chain cannot be read", Packet().ipv6().hop_by_hop({.length = 9}).udp()},
             Case{"no IP header", Packet().ipv6().truncate(39)},
         }) {
        const Bytes l3 = c.about.bytes();
        for (const auto& error : {kTtl6, kNoRoute6, kTooBig, kUnknownOption}) {
            EXPECT_EQ(may_send_icmp6_error(l3, false, error), c.want)
                << c.name << unsigned{error.type};
        }
    }
}

// RFC 4443 2.4 (e.3) to (e.5) with their exceptions.
TEST(MaySendIcmp6Error, Case_21_Case_23_GroupDestinations) {
    const Bytes multicast = Packet().ipv6({.dst = "ff02::1"}).udp().bytes();
    const Bytes unicast = Packet().ipv6().udp().bytes();
    for (const auto& error : {kTtl6, kNoRoute6, kBadHeader}) {
        EXPECT_FALSE(may_send_icmp6_error(multicast, false, error)) << unsigned{error.type};
        EXPECT_FALSE(may_send_icmp6_error(unicast, true, error)) << unsigned{error.type};
    }
    for (const auto& error : {kTooBig, kUnknownOption}) {
        EXPECT_TRUE(may_send_icmp6_error(multicast, true, error)) << unsigned{error.type};
        EXPECT_TRUE(may_send_icmp6_error(unicast, true, error)) << unsigned{error.type};
    }
}

const test::V4 kRouter = "10.0.0.1";
const test::V6 kRouter6 = "fd00::1";

TEST(WriteIcmpError, Case_05_TimeExceeded) {
    const Bytes about =
        Packet().ipv4({.ttl = 1, .tos = 0x10, .df = true}).udp().payload(32).bytes();
    Bytes out(1500, 0x55);
    const std::size_t size = write_icmp_error(out, kTtl, kRouter, 0x1234, about);
    out.resize(size);
    const Bytes want =
        Packet()
            .ipv4({.src = kRouter, .dst = "10.0.0.2", .ttl = 64, .tos = 0xc0, .id = 0x1234})
            .icmp(11, 0)
            .raw(about)
            .bytes();
    EXPECT_EQ(test::difference(want, out), "");
}

TEST(WriteIcmpError, RestOfTheHeader) {
    const Bytes about = Packet().ipv4({.df = true}).udp().bytes();
    Bytes out(100);
    out.resize(write_icmp_error(
        out,
        {.type = icmp::kUnreachable, .code = icmp::kFragmentationNeeded, .rest = 1400},
        kRouter,
        1,
        about));
    const auto frame = test::parse_l3(out);
    EXPECT_EQ(frame.icmp->rest.host(), 1400U);  // RFC 1191 4: unused, then the MTU
    EXPECT_EQ(out[26], 1400 / 256);
    EXPECT_EQ(out[27], 1400 % 256);
}

// RFC 1812 4.3.2.3: as much as possible, 576 bytes in all.
TEST(WriteIcmpError, Case_26_QuoteLength) {
    for (const std::size_t payload : {0U, 1U, 519U, 520U, 521U, 1000U, 8000U}) {
        SCOPED_TRACE(payload);
        const Bytes about = Packet().ipv4().udp().payload(payload).bytes();
        Bytes out(2000);
        out.resize(write_icmp_error(out, kTtl, kRouter, 1, about));
        EXPECT_EQ(out.size(), std::min(28 + about.size(), kIcmpErrorMax));
        const auto frame = test::parse_l3(out);
        EXPECT_EQ(frame.ipv4->total_length.host(), out.size());
        EXPECT_TRUE(std::ranges::equal(frame.payload, std::span(about).first(out.size() - 28)));
        EXPECT_EQ(test::verify_checksums_l3(out), "");
    }
}

TEST(WriteIcmp6Error, Case_26_QuoteLength) {
    for (const std::size_t payload : {0U, 1U, 1183U, 1184U, 1185U, 1400U, 8000U}) {
        SCOPED_TRACE(payload);
        const Bytes about = Packet().ipv6().udp().payload(payload).bytes();
        Bytes out(2000);
        out.resize(write_icmp6_error(out, kTooBig, kRouter6, about));
        EXPECT_EQ(out.size(), std::min(48 + about.size(), kIcmp6ErrorMax));
        const Bytes want =
            Packet()
                .ipv6({.src = kRouter6, .dst = "fd00::2", .hop_limit = 64})
                .icmp6(2, 0, 1400)
                .raw(Bytes(about.begin(),
                           about.begin() + static_cast<std::ptrdiff_t>(out.size()) - 48))
                .bytes();
        EXPECT_EQ(test::difference(want, out), "");
    }
}

TEST(WriteIcmpError, StaysInsideTheBuffer) {
    const Bytes about = Packet().ipv4().udp().payload(200).bytes();
    const Bytes about6 = Packet().ipv6().udp().payload(200).bytes();
    for (std::size_t room = 0; room <= 300; ++room) {
        // Exactly sized: a write past the end is the address sanitizer's.
        Bytes out(room);
        EXPECT_EQ(write_icmp_error(out, kTtl, kRouter, 1, about),
                  room < 28 ? 0 : std::min<std::size_t>(room, 28 + about.size()));
        EXPECT_EQ(write_icmp6_error(out, kTtl6, kRouter6, about6),
                  room < 48 ? 0 : std::min<std::size_t>(room, 48 + about6.size()));
    }
    Bytes out(100);
    EXPECT_EQ(write_icmp_error(out, kTtl, kRouter, 1, std::span(about).first(19)), 0U);
    EXPECT_EQ(write_icmp6_error(out, kTtl6, kRouter6, std::span(about6).first(39)), 0U);
}

}  // namespace
}  // namespace sluice::net
