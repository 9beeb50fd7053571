// SPDX-License-Identifier: BSD-3-Clause
// Frames cut off anywhere, split anywhere, and at random. Meant for the ASan build: every frame
// lies in a heap block that ends where it ends, so that a read past it is seen.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include "net/checksum.h"
#include "net/wire.h"
#include "pipeline/stages.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {

namespace {

constexpr NetdevId kP0 = StageBench::kP0;

/// Every header that is read somewhere, in transit, to the router and to nowhere.
std::vector<Packet> corpus() {
    std::vector<Packet> all;
    for (const char* to : {"192.0.2.9", "10.0.1.2", "10.0.0.1", "10.0.0.255", "203.0.113.9"}) {
        for (const std::uint8_t ttl : {std::uint8_t{1}, std::uint8_t{64}}) {
            const Ipv4 plain{.dst = to, .ttl = ttl};
            const Ipv4 options{
                .dst = to, .ttl = ttl, .options = {1, 7, 7, 4, 0, 0, 0, 0, 148, 4, 0, 0}};
            all.push_back(Packet().eth().ipv4(plain).udp().payload(30));
            all.push_back(Packet().eth().ipv4(plain).tcp());
            all.push_back(Packet().eth().ipv4(plain).icmp(net::icmp::kEcho).payload(9));
            all.push_back(Packet().eth().ipv4(plain).icmp(net::icmp::kUnreachable).payload(28));
            all.push_back(Packet().eth().ipv4(options).udp());
            all.push_back(Packet().eth().ipv4(options).icmp(net::icmp::kEcho).payload(9));
            all.push_back(Packet().eth().vlan(0).ipv4(options).udp());
        }
    }
    all.push_back(Packet().eth().ipv4({.options = {131, 7, 4, 10, 0, 1, 2}}).udp());
    for (const char* to : {"2001:db8:2::9", "fd00:1::2", "fd00::1", "ff02::1", "2001:db8:9::1"}) {
        for (const std::uint8_t hops : {std::uint8_t{1}, std::uint8_t{255}}) {
            const Ipv6 ip{.dst = to, .hop_limit = hops};
            all.push_back(Packet().eth().ipv6(ip).udp().payload(30));
            all.push_back(Packet().eth().ipv6(ip).icmp6(net::icmp6::kEcho).payload(9));
            all.push_back(Packet().eth().ipv6(ip).icmp6(net::icmp6::kPacketTooBig).payload(48));
            all.push_back(Packet()
                              .eth()
                              .ipv6(ip)
                              .hop_by_hop({.options = {5, 2, 0, 0}})
                              .destination_options({.options = Bytes(14, 0)})
                              .routing({.segments_left = 1, .data = Bytes(20)})
                              .fragment({.more = true})
                              .udp());
            all.push_back(Packet().eth().ipv6(ip).routing().fragment().icmp6(net::icmp6::kEcho));
            all.push_back(Packet().eth().vlan(0).ipv6(ip).hop_by_hop().tcp());
            all.push_back(Packet().eth().ipv6(ip).ndp_ns({.source_link = "02:aa:00:00:00:02"}));
            all.push_back(Packet().eth().ipv6(ip).ndp_na({.target_link = "02:aa:00:00:00:02"}));
        }
    }
    all.push_back(Packet().eth({.dst = net::kBroadcastMac}).arp());
    all.push_back(Packet().eth().vlan(10).vlan(20).ipv4().udp());
    return all;
}

/// The frame with its IP length made to end where it ends, and the IPv4 checksum right again.
Bytes with_fitting_length(Bytes frame) {
    const bool tagged = frame.size() > 18 && frame[12] == 0x81;
    const std::size_t l3 = tagged ? 18 : 14;
    const std::span<std::uint8_t> rest = std::span(frame).subspan(std::min(l3, frame.size()));
    auto* ip4 = net::mutable_header_at<net::Ipv4Header>(rest);
    auto* ip6 = net::mutable_header_at<net::Ipv6Header>(rest);
    if (ip4 != nullptr && ip4->version() == 4) {
        ip4->total_length = net::Be16::from_host(static_cast<std::uint16_t>(rest.size()));
        const std::size_t header = std::min<std::size_t>(ip4->header_bytes(), rest.size());
        ip4->checksum = {};
        ip4->checksum = net::internet_checksum(rest.first(header));
    } else if (ip6 != nullptr && ip6->version() == 6) {
        ip6->payload_length =
            net::Be16::from_host(static_cast<std::uint16_t>(rest.size() - sizeof *ip6));
    }
    return frame;
}

class Robustness : public StageRows {
public:
    /// One packet; the sent frames, and how it ended, as one text to compare.
    std::string fate(rte_mbuf* m) {
        worker().context.ipv4_id = 1;
        advance_ns(1'000'000'000);
        pipeline::drop_all_held(worker().context);
        const stats::NetdevCounters before = counters(kP0);
        receive(kP0, std::vector{m});
        const stats::NetdevCounters after = counters(kP0);
        std::string text = "forwarded " + std::to_string(after.forwarded - before.forwarded) +
                           " delivered " + std::to_string(after.delivered - before.delivered) +
                           " held " + std::to_string(after.held - before.held);
        for (std::size_t i = 0; i < kDropReasons; ++i) {
            if (after.drops[i] != before.drops[i]) {
                text += std::string(" ") + std::string(kDropInfo[i].name);
            }
        }
        for (const Sent& sent : take_sent()) {
            text += "\nport " + std::to_string(sent.port) + " " + to_hex(sent.bytes);
        }
        take_punted();
        return text;
    }
};

TEST_F(Robustness, every_header_cut_at_every_length) {
    for (const Packet& packet : corpus()) {
        const Bytes whole = packet.bytes();
        for (std::size_t length = 0; length < whole.size(); ++length) {
            const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
            const std::string how = fate(exact_mbuf(cut));
            // The IP length says more than there is; ARP is the control thread's to judge.
            const bool arp = length >= 14 && whole[12] == 0x08 && whole[13] == 0x06;
            EXPECT_EQ(how.starts_with(arp ? "forwarded 0 delivered 0 held 1"
                                          : "forwarded 0 delivered 0 held 0 "),
                      true)
                << length << " bytes of " << packet << how;
        }
    }
}

TEST_F(Robustness, every_header_ended_by_its_ip_length_at_every_length) {
    for (const Packet& packet : corpus()) {
        const Bytes whole = packet.bytes();
        for (std::size_t length = 14; length <= whole.size(); ++length) {
            const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
            fate(exact_mbuf(with_fitting_length(cut)));
        }
    }
}

// Where a device puts the segments makes no difference.
TEST_F(Robustness, every_frame_split_at_every_byte) {
    for (const Packet& packet : corpus()) {
        const Bytes whole = packet.bytes();
        const std::string want = fate(mbuf_of(whole));
        for (std::size_t at = 0; at <= whole.size(); ++at) {
            ASSERT_EQ(fate(mbuf_of(whole, {at})), want) << "at " << at << " of " << packet;
        }
        ASSERT_EQ(fate(mbuf_of(whole, {0, 1, 0, 13, 7, 0})), want) << packet;
        ASSERT_EQ(fate(mbuf_of(whole, std::vector<std::size_t>(whole.size(), 1))), want) << packet;
    }
}

TEST_F(Robustness, random_changes) {
    const std::vector<Packet> packets = corpus();
    std::vector<Bytes> frames;
    for (const Packet& packet : packets) {
        frames.push_back(packet.bytes());
    }
    std::mt19937 random(20240501);
    const auto below = [&](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    for (unsigned i = 0; i < 12'000; ++i) {
        Bytes frame = frames[below(frames.size())];
        for (std::size_t changes = below(4); changes > 0; --changes) {
            frame[below(frame.size())] = static_cast<std::uint8_t>(below(256));
        }
        if (below(4) == 0) {
            frame.resize(1 + below(frame.size()));
        }
        if (below(2) == 0) {
            frame = with_fitting_length(frame);
        }
        fate(below(2) == 0 ? exact_mbuf(frame)
                           : mbuf_of(frame, {below(frame.size() + 1), below(20)}));
    }
    EXPECT_EQ(counters(kP0).rx_packets, 12'000U);
}

TEST_F(Robustness, random_bytes) {
    std::mt19937 random(7);
    for (unsigned i = 0; i < 5'000; ++i) {
        Bytes frame(1 + random() % 200);
        std::ranges::generate(frame, [&] { return static_cast<std::uint8_t>(random()); });
        const Bytes header = Packet().eth().ipv6().bytes();
        std::copy_n(header.begin(), std::min<std::size_t>(frame.size(), 13), frame.begin());
        if (frame.size() > 14) {
            frame[12] = i % 2 == 0 ? 0x08 : 0x86;
            frame[13] = i % 2 == 0 ? 0x00 : 0xdd;
            frame[14] = static_cast<std::uint8_t>((i % 2 == 0 ? 0x45 : 0x60) + random() % 11);
        }
        fate(exact_mbuf(i % 4 < 2 ? with_fitting_length(frame) : frame));
    }
    EXPECT_EQ(counters(kP0).rx_packets, 5'000U);
}

}  // namespace

}  // namespace sluice::test
