// SPDX-License-Identifier: BSD-3-Clause
// What multipath spreads by: checks.md C.
#include "pipeline/flow_hash.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fib/netdev_view.h"
#include "net/wire.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {

namespace {

constexpr std::uint64_t kSeed = 0x1234567890abcdefU;
constexpr fib::FlowHashFields kL4{};
constexpr fib::FlowHashFields kL3{
    .protocol = false, .source_port = false, .destination_port = false};

fib::FlowHashFields only(bool fib::FlowHashFields::* field) {
    fib::FlowHashFields fields{.source = false,
                               .destination = false,
                               .protocol = false,
                               .source_port = false,
                               .destination_port = false,
                               .flow_label = false,
                               .custom = true};
    fields.*field = true;
    return fields;
}

class FlowHash : public StageBench {
protected:
    std::uint32_t hash(const Packet& packet,
                       const fib::FlowHashFields& fields,
                       std::uint64_t seed = kSeed) {
        const Bytes frame = packet.bytes();
        const auto l3 = std::span(frame).subspan(sizeof(net::EthernetHeader));
        return (l3[0] >> 4U) == 6 ? pipeline::flow_hash6(seed, fields, l3)
                                  : pipeline::flow_hash4(seed, fields, l3);
    }
    /// Of 4,096 packets of a kind, how many go by the first of two equal paths.
    unsigned first_path(const std::function<Packet(unsigned)>& make,
                        const fib::FlowHashFields& fields) {
        unsigned count = 0;
        for (unsigned i = 0; i < 4096; ++i) {
            count += (hash(make(i), fields) & 1U) == 0 ? 1 : 0;
        }
        return count;
    }
};

const auto kBySource = [](unsigned i) {
    return Packet().eth().ipv4({.src = net::Ipv4Addr::from_host(0x0a000100U + i)}).udp();
};
const auto kByDestination = [](unsigned i) {
    return Packet().eth().ipv4({.dst = net::Ipv4Addr::from_host(0xc0000200U + i)}).udp();
};
const auto kBySourcePort = [](unsigned i) {
    return Packet().eth().ipv4().udp({.sport = static_cast<std::uint16_t>(i)});
};
const auto kByDestinationPort = [](unsigned i) {
    return Packet().eth().ipv4().udp({.dport = static_cast<std::uint16_t>(i)});
};
const auto kByLabel = [](unsigned i) {
    return Packet().eth().ipv6({.flow_label = i * 7919U % 0x100000U}).icmp6(128);
};
const auto kBySource6 = [](unsigned i) {
    net::Ipv6Addr source = V6("fd00::1000");
    source.bytes[14] = static_cast<std::uint8_t>(i >> 8U);
    source.bytes[15] = static_cast<std::uint8_t>(i);
    return Packet().eth().ipv6({.src = source}).udp();
};

// Checks 25 to 29: what is chosen spreads, what is not does not.
TEST_F(FlowHash, Check_25_to_29_custom_fields) {
    using Make = std::function<Packet(unsigned)>;
    using F = fib::FlowHashFields;
    struct Row {
        const char* name;
        bool F::* field;
        Make spreads;
        Make does_not;
    };
    for (const Row& row :
         {Row{"25 source", &F::source, kBySource, kByDestination},
          {"26 destination", &F::destination, kByDestination, kBySource},
          {"27 source port", &F::source_port, kBySourcePort, kByDestinationPort},
          {"28 destination port", &F::destination_port, kByDestinationPort, kBySourcePort},
          {"29 flow label", &F::flow_label, kByLabel, kBySource6},
          {"IPv6 source", &F::source, kBySource6, kByLabel}}) {
        SCOPED_TRACE(row.name);
        EXPECT_NEAR(first_path(row.spreads, only(row.field)), 2048, 200);
        const unsigned other = first_path(row.does_not, only(row.field));
        EXPECT_TRUE(other == 0 || other == 4096) << other;
    }
}

TEST_F(FlowHash, Check_18_to_22_named_policies) {
    EXPECT_NEAR(first_path(kBySourcePort, kL4), 2048, 200);
    EXPECT_NEAR(first_path(kByDestinationPort, kL4), 2048, 200);
    EXPECT_NEAR(first_path(kByLabel, kL4), 2048, 200);
    EXPECT_NEAR(first_path(kByLabel, kL3), 2048, 200);
    const unsigned ports = first_path(kBySourcePort, kL3);
    EXPECT_TRUE(ports == 0 || ports == 4096);
    EXPECT_NEAR(first_path(kBySource, kL3), 2048, 200);
    EXPECT_NEAR(first_path(kBySource6, kL3), 2048, 200);
}

TEST_F(FlowHash, Check_143_fragments_by_addresses_alone) {
    const auto first = Packet().eth().ipv4({.mf = true}).udp({.sport = 5}).payload(32);
    const auto later = Packet().eth().ipv4({.id = 1, .frag_offset = 40}).payload(32);
    EXPECT_EQ(hash(first, kL4), hash(later, kL4));
    const auto first6 = Packet()
                            .eth()
                            .ipv6({.flow_label = 9})
                            .fragment({.more = true})
                            .udp({.sport = 5})
                            .payload(32);
    const auto later6 = Packet().eth().ipv6({.flow_label = 9}).fragment({.offset = 40}).payload(32);
    EXPECT_EQ(hash(first6, kL4), hash(later6, kL4));
}

TEST_F(FlowHash, Check_31_an_error_goes_the_way_of_what_it_quotes) {
    const Ipv4 flow{.src = "192.0.2.9", .dst = "10.0.0.2"};
    const Bytes quoted = Packet().eth().ipv4(flow).udp({.sport = 5, .dport = 6}).bytes();
    const auto error = Packet()
                           .eth()
                           .ipv4({.src = "172.16.0.1", .dst = "192.0.2.9"})
                           .icmp(11)
                           .raw({quoted.begin() + 14, quoted.end()});
    const auto plain = Packet().eth().ipv4(flow).udp({.sport = 5, .dport = 6});
    EXPECT_EQ(hash(error, kL3), hash(plain, kL3));
    EXPECT_EQ(hash(error, kL4), hash(plain, kL4));

    const Ipv6 flow6{.src = "2001:db8:2::9", .dst = "fd00::2"};
    const Bytes quoted6 = Packet().eth().ipv6(flow6).udp({.sport = 5, .dport = 6}).bytes();
    const auto error6 = Packet()
                            .eth()
                            .ipv6({.src = "fd00:7::1", .dst = "2001:db8:2::9"})
                            .icmp6(3)
                            .raw({quoted6.begin() + 14, quoted6.end()});
    EXPECT_EQ(hash(error6, kL4),
              hash(Packet().eth().ipv6(flow6).udp({.sport = 5, .dport = 6}), kL4));
    // A quote that is cut off in its header is no flow; the error's own addresses are.
    const auto cut = Packet()
                         .eth()
                         .ipv4({.src = "172.16.0.1", .dst = "192.0.2.9"})
                         .icmp(11)
                         .raw({quoted.begin() + 14, quoted.begin() + 24});
    EXPECT_NE(hash(cut, kL3), hash(plain, kL3));
}

TEST_F(FlowHash, Case_F91_Check_141_another_seed_is_another_spread) {
    unsigned same = 0;
    std::set<std::uint32_t> first_two;
    for (unsigned i = 0; i < 4096; ++i) {
        const Packet packet = kBySourcePort(i);
        same += (hash(packet, kL4) & 1U) == (hash(packet, kL4, kSeed + 2) & 1U) ? 1 : 0;
        first_two.insert((hash(packet, kL4) & 1U) << 1U | (hash(packet, kL4, kSeed + 2) & 1U));
    }
    EXPECT_NEAR(same, 2048, 200);
    EXPECT_EQ(first_two.size(), 4U) << "two boxes in a row use all four paths";
}

TEST_F(FlowHash, both_directions_differ_and_low_bits_are_good) {
    std::set<std::uint32_t> low;
    for (unsigned i = 0; i < 256; ++i) {
        low.insert(hash(kBySource(i), kL3) & 0xffU);
    }
    EXPECT_GT(low.size(), 140U) << "of 256, random would be 162";
    EXPECT_NE(hash(Packet().eth().ipv4({.src = "10.0.0.2", .dst = "10.0.0.3"}), kL3),
              hash(Packet().eth().ipv4({.src = "10.0.0.3", .dst = "10.0.0.2"}), kL3));
}

// A packet goes the same way whether it came by the straight way, of which the lengths are known,
// or by the other one, and what is behind its end does not matter.
TEST_F(FlowHash, PacketsOfBothWaysAreReadAlike) {
    struct Row {
        const char* name;
        Bytes frame;
        std::uint32_t length;  // of the IP packet, put into its header
        bool has_ports;
    };
    const auto of = [](const Packet& p) { return p.bytes(); };
    const std::vector<Row> rows{
        {"udp4", of(Packet().eth().ipv4().udp().payload(18)), 46, true},
        {"udp4 cut in its ports", of(Packet().eth().ipv4().udp().payload(18)), 22, false},
        {"udp4 cut behind them", of(Packet().eth().ipv4().udp().payload(18)), 24, true},
        {"tcp4", of(Packet().eth().ipv4().tcp()), 40, true},
        {"icmp4", of(Packet().eth().ipv4().icmp(8).payload(18)), 46, false},
        {"udp6", of(Packet().eth().ipv6().udp().payload(18)), 66, true},
        {"udp6 cut in its ports", of(Packet().eth().ipv6().udp().payload(18)), 42, false},
        {"icmp6", of(Packet().eth().ipv6().icmp6(128).payload(18)), 62, false},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.name);
        Bytes frame = row.frame;
        const bool v6 = frame[14] >> 4U == 6;
        const auto length = static_cast<std::uint16_t>(row.length - (v6 ? 40 : 0));
        frame[v6 ? 18 : 16] = static_cast<std::uint8_t>(length >> 8U);
        frame[v6 ? 19 : 17] = static_cast<std::uint8_t>(length);
        Bytes other = frame;  // differs in what is behind its end alone
        std::fill(other.begin() + 14 + row.length, other.end(), std::uint8_t{0x55});
        std::vector<std::uint32_t> hashes;
        for (const Bytes& bytes : {frame, other}) {
            pipeline::Packet p;
            p.m = mbuf_of(bytes);
            p.l3 = rte_pktmbuf_mtod_offset(p.m, std::uint8_t*, 14);
            p.l2_bytes = 14;
            for (const std::uint32_t* lengths :
                 {static_cast<const std::uint32_t*>(nullptr), &row.length}) {
                fib::Transport transport;
                std::uint32_t hash = 0;
                (v6 ? pipeline::transports_of6 : pipeline::transports_of4)(
                    {&p, 1}, lengths, &transport);
                (v6 ? pipeline::flow_hashes6 : pipeline::flow_hashes4)(
                    kSeed, kL4, {&p, 1}, lengths, &hash);
                EXPECT_EQ(transport.has_ports, row.has_ports);
                hashes.push_back(hash);
            }
            rte_pktmbuf_free(p.m);
        }
        EXPECT_EQ(std::set(hashes.begin(), hashes.end()).size(), 1U);
    }
}

}  // namespace

}  // namespace sluice::test
