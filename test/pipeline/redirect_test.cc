// SPDX-License-Identifier: BSD-3-Clause
// Redirects that we send (checks.md H, dst.md C-25), and what ICMP messages about our own packets
// teach (checks.md I).
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "fib/dst.h"
#include "fib/neighbor_map.h"
#include "net/wire.h"
#include "pipeline/messages.h"
#include "support/frame.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {

namespace {

constexpr NetdevId kP0 = StageBench::kP0;
constexpr NetdevId kP1 = StageBench::kP1;
constexpr std::uint64_t kSecondNs = 1'000'000'000;

class Redirect : public StageBench {
protected:
    /// 198.51.100.0/24 and 2001:db8:5::/48 are behind another router on p0's link.
    Redirect() {
        netdev(kP0).send_redirects = true;
        const auto router = net::IpAddr::parse("10.0.0.254").value();
        const auto router6 = net::IpAddr::parse("fe80::254").value();
        add_neighbor(kP0, router);
        add_neighbor(kP0, router6);
        resolve(kP0, router, "02:aa:00:00:00:fe");
        resolve(kP0, router6, "02:aa:00:00:00:fe");
        add_route("198.51.100.0/24", {.via = "10.0.0.254", .dev = kP0});
        add_route("2001:db8:5::/48", {.via = "fe80::254", .dev = kP0});
        add_neighbor(kP0, net::IpAddr::parse("fd00::2").value());
        resolve(kP0, net::IpAddr::parse("fd00::2").value(), kH0Mac);
    }

    struct Result {
        std::size_t forwarded = 0;
        std::vector<Bytes> redirects;
    };
    Result send(const Bytes& frame) {
        receive(kP0, std::vector<Bytes>{frame});
        Result result;
        for (Sent& sent : take_sent()) {
            const Frame parsed = parse_frame(sent.bytes);
            const bool v6 = (parsed.l3[0] >> 4U) == 6;
            const bool redirect = v6 ? parsed.l3[6] == 58 && parsed.l3[40] == 137
                                     : parsed.l3[9] == 1 && parsed.l3[20] == 5;
            if (redirect) {
                EXPECT_EQ(verify_checksums(sent.bytes), "");
                result.redirects.push_back(parsed.l3);
            } else {
                ++result.forwarded;
            }
        }
        return result;
    }
    static Bytes frame4(const char* source = "10.0.0.2", const char* destination = "198.51.100.1") {
        return Packet().eth().ipv4({.src = source, .dst = destination}).udp().payload(8).bytes();
    }
    static Bytes frame6(const char* source = "fd00::2") {
        return Packet()
            .eth()
            .ipv6({.src = source, .dst = "2001:db8:5::1"})
            .udp()
            .payload(8)
            .bytes();
    }
};

TEST_F(Redirect, Check_81_forwards_and_names_the_better_gateway) {
    const Result result = send(frame4());
    EXPECT_EQ(result.forwarded, 1U);
    ASSERT_EQ(result.redirects.size(), 1U);
    const Bytes& ip = result.redirects[0];
    EXPECT_EQ((Bytes{ip.begin() + 12, ip.begin() + 16}), (Bytes{10, 0, 0, 1}));
    EXPECT_EQ((Bytes{ip.begin() + 16, ip.begin() + 20}), (Bytes{10, 0, 0, 2}));
    EXPECT_EQ(ip[21], 1) << "for the host";
    EXPECT_EQ((Bytes{ip.begin() + 24, ip.begin() + 28}), (Bytes{10, 0, 0, 254}));
    EXPECT_EQ((Bytes{ip.begin() + 44, ip.begin() + 48}), (Bytes{198, 51, 100, 1})) << "quoted";
}

TEST_F(Redirect, Check_81_ipv6) {
    const Result result = send(frame6());
    EXPECT_EQ(result.forwarded, 1U);
    ASSERT_EQ(result.redirects.size(), 1U);
    const Bytes& ip = result.redirects[0];
    EXPECT_EQ(ip[7], 255) << "hop limit";
    const net::Ipv6Addr own = net::link_local_from_mac(kP0Mac);
    EXPECT_EQ((Bytes{ip.begin() + 8, ip.begin() + 24}),
              (Bytes{own.bytes.begin(), own.bytes.end()}));
    const V6 target = "fe80::254";
    const V6 destination = "2001:db8:5::1";
    EXPECT_EQ((Bytes{ip.begin() + 48, ip.begin() + 64}),
              (Bytes{target.bytes.begin(), target.bytes.end()}));
    EXPECT_EQ((Bytes{ip.begin() + 64, ip.begin() + 80}),
              (Bytes{destination.bytes.begin(), destination.bytes.end()}));
    EXPECT_EQ(ip[80], 4) << "redirected header";
}

TEST_F(Redirect, C_25_Check_112_the_hundredth_packet_follows_the_limit) {
    std::size_t redirects = 0;
    for (int i = 0; i < 100; ++i) {
        const Result result = send(frame4());
        EXPECT_EQ(result.forwarded, 1U);
        redirects += result.redirects.size();
        advance_ns(kSecondNs / 10);
    }
    EXPECT_EQ(redirects, 9U) << "one a second, then silence: it does not listen";
    EXPECT_EQ(send(frame4("10.0.0.2")).redirects.size(), 0U);
    advance_ns(30 * kSecondNs);
    EXPECT_EQ(send(frame4()).redirects.size(), 1U) << "after a pause it is told again";
}

TEST_F(Redirect, C_25_the_limit_is_by_source) {
    EXPECT_EQ(send(frame4("10.0.0.2")).redirects.size(), 1U);
    EXPECT_EQ(send(frame4("10.0.0.2")).redirects.size(), 0U);
    add_neighbor(kP0, net::IpAddr::parse("10.0.0.3").value());
    resolve(kP0, net::IpAddr::parse("10.0.0.3").value(), kH0Mac);
    EXPECT_EQ(send(frame4("10.0.0.3")).redirects.size(), 1U);
}

TEST_F(Redirect, Case_H114_none_where_it_would_be_wrong) {
    EXPECT_EQ(send(frame4("172.16.0.1")).redirects.size(), 0U) << "the source is elsewhere";
    EXPECT_EQ(send(frame6("2001:db8:7::1")).redirects.size(), 0U);
    EXPECT_EQ(send(Packet().eth().ipv4().udp().bytes()).redirects.size(), 0U) << "another egress";
    EXPECT_EQ(
        send(Packet().eth().ipv4({.dst = "198.51.100.1", .frag_offset = 64}).payload(8).bytes())
            .redirects.size(),
        0U)
        << "later fragment";
    EXPECT_EQ(send(Packet().eth().ipv4({.dst = "198.51.100.1"}).icmp(3).payload(28).bytes())
                  .redirects.size(),
              0U)
        << "about an ICMP error";
    netdev(kP0).send_redirects = false;
    EXPECT_EQ(send(frame4()).redirects.size(), 0U);
    EXPECT_EQ(send(frame6()).redirects.size(), 0U);
}

TEST_F(Redirect, to_a_neighbor_it_names_the_neighbor) {
    add_neighbor(kP0, net::IpAddr::parse("10.0.0.9").value());
    resolve(kP0, net::IpAddr::parse("10.0.0.9").value(), "02:aa:00:00:00:09");
    const Result result = send(frame4("10.0.0.2", "10.0.0.9"));
    ASSERT_EQ(result.redirects.size(), 1U);
    EXPECT_EQ((Bytes{result.redirects[0].begin() + 24, result.redirects[0].begin() + 28}),
              (Bytes{10, 0, 0, 9}));
}

// --- learning -----------------------------------------------------------------------------------

class Learn : public StageBench {
protected:
    static constexpr auto kPathMtu = pipeline::WorkerEvent::Kind::kPathMtu;
    static constexpr auto kRedirect = pipeline::WorkerEvent::Kind::kRedirect;

    /// An error by H0 about a packet of ours to 192.0.2.9.
    static Packet error4(std::uint8_t type,
                         std::uint8_t code,
                         std::uint32_t rest,
                         const char* about_source = "10.0.0.1",
                         net::IpProtocol protocol = net::IpProtocol::kIcmp,
                         const char* sender = "10.0.0.2") {
        const Bytes quoted =
            Packet()
                .eth()
                .ipv4({.src = about_source, .dst = "192.0.2.9", .protocol = protocol})
                .payload(8)
                .bytes();
        return Packet()
            .eth()
            .ipv4({.src = sender, .dst = "10.0.0.1"})
            .icmp(type, code, rest)
            .raw({quoted.begin() + 14, quoted.end()});
    }
};

TEST_F(Learn, Check_87_fragmentation_needed) {
    receive(kP0, std::vector<Bytes>{error4(3, 4, 1400).bytes()});
    const auto told = events();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].kind, kPathMtu);
    EXPECT_EQ(told[0].mtu, 1400);
    EXPECT_EQ(told[0].key, fib::NeighborKeyWords::of(kLo, V4("192.0.2.9")));
}

TEST_F(Learn, Check_87_packet_too_big) {
    const Bytes quoted =
        Packet().eth().ipv6({.src = "fd00::1", .dst = "2001:db8:2::9"}).icmp6(129).bytes();
    receive(kP0,
            std::vector<Bytes>{Packet()
                                   .eth()
                                   .ipv6({.dst = "fd00::1"})
                                   .icmp6(2, 0, 1300)
                                   .raw({quoted.begin() + 14, quoted.end()})
                                   .bytes()});
    const auto told = events();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].mtu, 1300);
    EXPECT_EQ(told[0].key, fib::NeighborKeyWords::of(kLo, V6("2001:db8:2::9")));
}

TEST_F(Learn, only_about_packets_of_ours) {
    receive(kP0, std::vector<Bytes>{error4(3, 4, 1400, "10.0.0.77").bytes()});
    receive(kP0, std::vector<Bytes>{error4(3, 4, 1400, "10.0.0.1", net::IpProtocol::kUdp).bytes()});
    receive(kP0, std::vector<Bytes>{error4(3, 1, 0).bytes()});
    receive(kP0, std::vector<Bytes>{error4(3, 4, 1400).truncate(14 + 20 + 8 + 12).bytes()});
    EXPECT_TRUE(events().empty());
}

TEST_F(Learn, Check_86_redirect_where_we_are_a_host) {
    add_route("192.0.2.0/24", {.via = "10.0.0.2", .dev = kP0});
    const std::uint32_t gateway = V4("10.0.0.9").host();
    receive(kP0, std::vector<Bytes>{error4(5, 1, gateway).bytes()});
    EXPECT_TRUE(events().empty()) << "a router takes none (RFC 1812 5.2.7.2)";
    netdev(kP0).forwarding = false;
    receive(kP0, std::vector<Bytes>{error4(5, 1, gateway).bytes()});
    const auto told = events();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].kind, kRedirect);
    EXPECT_EQ(told[0].gateway, net::IpAddr{V4("10.0.0.9")});
    EXPECT_EQ(told[0].key, fib::NeighborKeyWords::of(kLo, V4("192.0.2.9")));
    receive(kP0,
            std::vector<Bytes>{
                error4(5, 1, gateway, "10.0.0.1", net::IpProtocol::kIcmp, "10.0.0.3").bytes()});
    EXPECT_TRUE(events().empty()) << "not from the gateway that we use";
    receive(kP0, std::vector<Bytes>{error4(5, 1, V4("172.16.0.1").host()).bytes()});
    EXPECT_TRUE(events().empty()) << "to a gateway that is not on the link";
    receive(kP0, std::vector<Bytes>{error4(5, 1, V4("10.0.0.1").host()).bytes()});
    EXPECT_TRUE(events().empty()) << "to ourselves";
}

}  // namespace

}  // namespace sluice::test
