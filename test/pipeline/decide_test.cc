// SPDX-License-Identifier: BSD-3-Clause
// The decision about a destination: cache, validity, groups, VRFs, rules, source validation. What
// holds with the cache has to hold without: the suite runs both ways.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/drop_reason.h"
#include "fib/dst.h"
#include "fib/group.h"
#include "fib/neighbor_map.h"
#include "fib/policy.h"
#include "fib/shared.h"
#include "net/address.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {

namespace {

constexpr NetdevId kP0 = StageBench::kP0;
constexpr NetdevId kP1 = StageBench::kP1;
constexpr std::uint64_t kSecondNs = 1'000'000'000;

Bytes to4(const char* destination, const char* source = "10.0.0.2", std::uint8_t tos = 0) {
    return Packet().eth().ipv4({.src = source, .dst = destination, .tos = tos}).udp().bytes();
}
Bytes to6(const char* destination, const char* source = "fd00::2", std::uint8_t tos = 0) {
    return Packet()
        .eth()
        .ipv6({.src = source, .dst = destination, .traffic_class = tos})
        .udp()
        .bytes();
}

class Decide : public StageBench {
protected:
    bool cached() { return shared().cache_mode == fib::CacheMode::kOn; }
    stats::CacheCounters& cache4() { return worker().block.worker().caches[0]; }
    stats::CacheCounters& cache6() { return worker().block.worker().caches[1]; }

    /// The ports that a frame leaves by; one burst of its own.
    std::vector<std::uint16_t> ports_of(const Bytes& frame, NetdevId in = kP0) {
        receive(in, std::vector<Bytes>{frame});
        std::vector<std::uint16_t> ports;
        for (const Sent& sent : take_sent()) {
            ports.push_back(sent.port);
        }
        return ports;
    }
    /// What a frame from H0 is dropped under; kNone: it is not.
    DropReason drop_of(const Bytes& frame, NetdevId in = kP0) {
        const auto before = counters(in);
        receive(in, std::vector<Bytes>{frame});
        const auto after = counters(in);
        take_sent();
        for (std::size_t i = 0; i < kDropReasons; ++i) {
            if (after.drops[i] != before.drops[i]) {
                return static_cast<DropReason>(i);
            }
        }
        return DropReason::kNone;
    }
    std::uint32_t group_of(const std::vector<fib::GroupMember>& members) {
        const std::uint32_t value = shared().groups.allocate().value();
        shared().groups.publish(value, fib::make_group(members));
        return value;
    }
    void set_route(const char* prefix, std::uint32_t value) {
        const auto parsed = net::IpPrefix::parse(prefix).value();
        ASSERT_TRUE(parsed.is_v4() ? fib4().set(parsed.v4(), value).has_value()
                                   : fib6().set(parsed.v6(), value).has_value());
        bump();
    }
};

// --- the cache itself ---------------------------------------------------------------------------

TEST_F(Decide, C_10_second_packet_hits) {
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{1});
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{1});
    EXPECT_EQ(ports_of(to6("2001:db8:2::9")), std::vector<std::uint16_t>{1});
    EXPECT_EQ(ports_of(to6("2001:db8:2::9")), std::vector<std::uint16_t>{1});
    EXPECT_EQ(cache4().hits, cached() ? 1U : 0U);
    EXPECT_EQ(cache4().misses, cached() ? 1U : 0U);
    EXPECT_EQ(cache4().inserts, cached() ? 1U : 0U);
    EXPECT_EQ(cache4().bypassed, cached() ? 0U : 2U);
    EXPECT_EQ(cache6().hits, cached() ? 1U : 0U);
}

TEST_F(Decide, C_03_ecn_bits_are_not_in_the_key) {
    for (const std::uint8_t tos :
         {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{3}}) {
        ports_of(to4("192.0.2.9", "10.0.0.2", tos));
        ports_of(to6("2001:db8:2::9", "fd00::2", tos));
    }
    EXPECT_EQ(cache4().misses, cached() ? 1U : 0U);
    EXPECT_EQ(cache6().misses, cached() ? 1U : 0U);
    ports_of(to4("192.0.2.9", "10.0.0.2", 0x20));
    EXPECT_EQ(cache4().misses, cached() ? 2U : 0U) << "the DSCP is";
}

TEST_F(Decide, C_03_ingress_class_is_in_the_key) {
    ports_of(to4("192.0.2.9"));
    netdev(kP1).ingress_class = 1;
    ports_of(Packet()
                 .eth({.dst = kP1Mac, .src = kH1Mac})
                 .ipv4({.src = "10.0.1.2", .dst = "192.0.2.9"})
                 .udp()
                 .bytes(),
             kP1);
    EXPECT_EQ(cache4().misses, cached() ? 2U : 0U);
}

TEST_F(Decide, C_11_C_41_route_change_is_seen_by_the_next_packet) {
    ports_of(to4("192.0.2.9"));
    ports_of(to6("2001:db8:2::9"));
    add_route("192.0.2.0/24", {.via = "10.0.0.2", .dev = kP0});
    add_route("2001:db8:2::/48", {.via = "fd00::2", .dev = kP0});
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{0});
    EXPECT_EQ(ports_of(to6("2001:db8:2::9")), std::vector<std::uint16_t>{0});
    EXPECT_EQ(cache4().stale, cached() ? 1U : 0U);
    EXPECT_EQ(cache6().stale, cached() ? 1U : 0U);
}

TEST_F(Decide, G_05_a_change_elsewhere_leaves_the_rest_cached) {
    ports_of(to4("192.0.2.9"));
    ports_of(to6("2001:db8:2::9"));
    generations4().bump(net::Ipv4Prefix{V4("203.0.113.0"), 24}, sequence().next());
    generations6().bump(net::Ipv6Prefix{V6("2a00:1::"), 32}, sequence().next());
    ports_of(to4("192.0.2.9"));
    ports_of(to6("2001:db8:2::9"));
    EXPECT_EQ(cache4().hits, cached() ? 1U : 0U);
    EXPECT_EQ(cache6().hits, cached() ? 1U : 0U);
}

TEST_F(Decide, cache_epoch_empties_every_entry) {
    ports_of(to4("192.0.2.9"));
    ++shared().cache_epoch;
    ports_of(to4("192.0.2.9"));
    EXPECT_EQ(cache4().hits, 0U);
    EXPECT_EQ(worker().context.caches.destinations4.size(), cached() ? 1U : 0U);
}

// The result of a packet that was dropped or held is not kept.
TEST_F(Decide, C_30_only_what_passed_is_inserted) {
    add_route("198.51.100.0/24", {.type = fib::DstType::kBlackhole});
    add_route("198.51.101.0/24", {.type = fib::DstType::kUnreachable});
    add_route("198.51.102.0/24", {.type = fib::DstType::kProhibit});
    const std::vector<Bytes> frames = {
        to4("203.0.113.9"),   // no route
        to4("198.51.100.9"),  // blackhole
        to4("198.51.101.9"),
        to4("198.51.102.9"),
        to4("10.0.1.77"),   // held
        to4("10.0.1.255"),  // directed broadcast
        Packet().eth().ipv4({.ttl = 1}).udp().bytes(),
        Packet().eth().ipv4({.df = true}).udp().payload(1600).bytes(),
        Packet().eth({.dst = net::kBroadcastMac}).ipv4().udp().bytes(),
        Packet().eth().ipv4({.src = "127.0.0.1"}).udp().bytes(),
        Packet().eth().ipv4({.src = "224.0.0.9"}).udp().bytes(),
        Packet().eth().ipv4({.src = "0.0.0.0"}).udp().bytes(),
        to4("224.0.0.5"),
        to4("255.255.255.255"),
    };
    for (const Bytes& frame : frames) {
        receive(kP0, std::vector<Bytes>{frame});
        take_sent();
    }
    netdev(kP0).forwarding = false;
    ports_of(to4("192.0.2.9"));
    EXPECT_EQ(cache4().inserts, 0U);
    EXPECT_EQ(worker().context.caches.destinations4.size(), 0U);
    events();
}

TEST_F(Decide, C_22_M_110_forwarding_is_asked_per_ingress) {
    netdev(kP0).forwarding = false;
    EXPECT_EQ(drop_of(to4("192.0.2.9")), DropReason::kForwardingDisabled);
    const Bytes from_h1 = Packet()
                              .eth({.dst = kP1Mac, .src = kH1Mac})
                              .ipv4({.src = "10.0.1.2", .dst = "192.0.2.9"})
                              .udp()
                              .bytes();
    EXPECT_EQ(ports_of(from_h1, kP1), std::vector<std::uint16_t>{1});
    EXPECT_EQ(drop_of(to4("192.0.2.9")), DropReason::kForwardingDisabled)
        << "also behind the warm entry of the other ingress";
}

TEST_F(Decide, connected_hosts_are_cached_by_their_own_dst) {
    ports_of(to4("10.0.1.2"));
    ports_of(to6("fd00:1::2"));
    EXPECT_EQ(ports_of(to4("10.0.1.2")), std::vector<std::uint16_t>{1});
    EXPECT_EQ(ports_of(to6("fd00:1::2")), std::vector<std::uint16_t>{1});
    EXPECT_EQ(cache4().hits, cached() ? 1U : 0U);
}

// A cold cache fills at once; after that a flood gets one insert a burst.
TEST_F(Decide, C_50_C_51_a_flood_inserts_little) {
    unsigned next = 0;
    const auto flood = [&] {
        std::vector<Bytes> burst;
        for (unsigned i = 0; i < 32; ++i, ++next) {
            burst.push_back(to4(fmt::format("8.{}.{}.1", next / 256, next % 256).c_str()));
        }
        receive(kP0, burst);
        take_sent();
    };
    add_route("8.0.0.0/8", {.via = "10.0.1.2", .dev = kP1});
    while (next < 1024) {
        flood();
    }
    EXPECT_GE(cache4().inserts, cached() ? 512U : 0U);
    EXPECT_LE(cache4().inserts, 512U + 1024 / 32);
    const std::uint64_t before = cache4().inserts;
    flood();
    EXPECT_EQ(cache4().inserts - before, cached() ? 1U : 0U);
    // A generation later every flow that is still there is put back in one burst.
    next = 1024 - 32;
    flood();
    const std::uint64_t resident = cache4().hits;
    bump();
    next = 1024 - 32;
    const std::uint64_t inserts = cache4().inserts;
    flood();
    EXPECT_EQ(cache4().inserts - inserts, cache4().stale + (cached() ? 1 : 0));
    EXPECT_NEAR(static_cast<double>(cache4().stale), static_cast<double>(resident), 1);
}

// --- validity -----------------------------------------------------------------------------------

TEST_F(Decide, X_02_a_repointed_dst_is_not_served_from_the_cache) {
    const fib::DstIndex old = add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1});
    ports_of(to4("192.0.2.9"));
    // Before the generation is bumped.
    const fib::DstIndex fresh = add_dst(net::Family::kIpv4, {.via = "10.0.0.2", .dev = kP0});
    ASSERT_TRUE(fib4().set({V4("192.0.2.0"), 24}, fresh).has_value());
    fib::repoint_to_blackhole(shared().dsts.writable(old));
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{0});
    EXPECT_EQ(cache4().stale, cached() ? 1U : 0U);
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{0});
}

TEST_F(Decide, U_04_a_repointed_dst_drops_and_counts) {
    const fib::DstIndex dst = add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1});
    const fib::DstIndex dst6 = add_route("2001:db8:2::/48", {.via = "fd00:1::2", .dev = kP1});
    ports_of(to4("192.0.2.9"));
    fib::repoint_to_blackhole(shared().dsts.writable(dst));
    fib::repoint_to_blackhole(shared().dsts.writable(dst6));
    EXPECT_EQ(drop_of(to4("192.0.2.9")), DropReason::kNetdevGone);
    EXPECT_EQ(drop_of(to6("2001:db8:2::9")), DropReason::kNetdevGone);
    fib::resolve(shared().dsts.writable(dst), kH1Mac);
    EXPECT_EQ(drop_of(to4("192.0.2.9")), DropReason::kNetdevGone) << "an answer brings it not back";
}

TEST_F(Decide, U_04_a_local_dst_too) {
    ports_of(to4("10.0.1.1"));
    const std::uint32_t own = fib4().get({V4("10.0.1.1"), 32}).value();
    fib::repoint_to_blackhole(shared().dsts.writable(own));
    EXPECT_EQ(drop_of(to4("10.0.1.1")), DropReason::kNetdevGone);
}

TEST_F(Decide, C_11_C_12_an_exception_holds_until_it_expires) {
    const std::uint32_t now_s = worker().context.now_s();
    const fib::DstIndex learned =
        add_dst(net::Family::kIpv4, {.via = "10.0.0.2", .dev = kP0, .mtu = 1400});
    fib::Dst& dst = shared().dsts.writable(learned);
    dst.base = fib4().get({V4("192.0.2.0"), 24}).value();
    dst.expiry_s = now_s + 10;
    dst.state.fetch_or(fib::Dst::kExpires);
    shared().exceptions.insert(fib::NeighborKeyWords::of(kLo, V4("192.0.2.9")), learned);
    shared().exception_count = 1;
    bump();
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{0});
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{0});
    EXPECT_EQ(ports_of(to4("192.0.2.10")), std::vector<std::uint16_t>{1});
    EXPECT_EQ(drop_of(Packet().eth().ipv4({.df = true}).udp().payload(1400).bytes()),
              DropReason::kFragmentationNeeded);
    advance_ns(10 * kSecondNs);
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{1}) << "expired";
    EXPECT_EQ(cache4().stale, cached() ? 1U : 0U);
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{1});
}

// Learned behind one route, it does not follow where rules or a group send a packet.
TEST_F(Decide, Check_90_an_exception_is_of_the_route_it_was_learned_behind) {
    const fib::DstIndex one = add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1});
    const fib::DstIndex two = add_dst(net::Family::kIpv4, {.via = "10.0.0.2", .dev = kP0});
    set_route("198.51.100.0/24", group_of({{.dst = one}, {.dst = two}}));
    const fib::DstIndex learned =
        add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1, .mtu = 600});
    fib::Dst& dst = shared().dsts.writable(learned);
    dst.base = one;
    dst.expiry_s = worker().context.now_s() + 10;
    dst.state.fetch_or(fib::Dst::kExpires);
    shared().exceptions.insert(fib::NeighborKeyWords::of(kLo, V4("198.51.100.1")), learned);
    shared().exception_count = 1;
    bump();
    unsigned too_big = 0;
    unsigned by_p0 = 0;
    for (std::uint16_t sport = 0; sport < 64; ++sport) {
        const Bytes frame = Packet()
                                .eth()
                                .ipv4({.dst = "198.51.100.1", .df = true})
                                .udp({.sport = sport})
                                .payload(700)
                                .bytes();
        const std::uint64_t before = drops(kP0, DropReason::kFragmentationNeeded);
        receive(kP0, std::vector<Bytes>{frame});
        too_big += drops(kP0, DropReason::kFragmentationNeeded) != before ? 1 : 0;
        for (const Sent& sent : take_sent()) {
            by_p0 += sent.port == 0 && sent.bytes.size() == frame.size() ? 1 : 0;
        }
    }
    EXPECT_GT(too_big, 10U) << "flows of the first member";
    EXPECT_EQ(too_big + by_p0, 64U) << "and those of the other are not concerned";
}

// --- groups -------------------------------------------------------------------------------------

TEST_F(Decide, C_30_M_30_members_are_chosen_per_packet_hit_or_miss) {
    const std::uint32_t group =
        group_of({{.dst = add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1})},
                  {.dst = add_dst(net::Family::kIpv4, {.via = "10.0.0.2", .dev = kP0})}});
    set_route("198.51.100.0/24", group);
    std::map<std::uint16_t, unsigned> by_port;
    keep_sent = true;
    for (std::uint16_t sport = 0; sport < 2000; ++sport) {
        const Bytes frame =
            Packet().eth().ipv4({.dst = "198.51.100.1"}).udp({.sport = sport, .dport = 5}).bytes();
        const auto ports = ports_of(frame);
        ASSERT_EQ(ports.size(), 1U);
        ASSERT_EQ(ports_of(frame), ports) << "one flow, one path";
        ++by_port[ports[0]];
    }
    EXPECT_NEAR(by_port[0], 1000, 100);
    EXPECT_NEAR(by_port[1], 1000, 100);
    EXPECT_EQ(cache4().misses, cached() ? 1U : 0U) << "the group is what is cached";
}

TEST_F(Decide, Check_143_fragments_of_a_datagram_take_one_path) {
    const std::uint32_t group =
        group_of({{.dst = add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1})},
                  {.dst = add_dst(net::Family::kIpv4, {.via = "10.0.0.2", .dev = kP0})}});
    set_route("198.51.100.0/24", group);
    for (std::uint16_t sport = 0; sport < 64; ++sport) {
        const auto first = ports_of(Packet()
                                        .eth()
                                        .ipv4({.dst = "198.51.100.1", .mf = true})
                                        .udp({.sport = sport})
                                        .payload(64)
                                        .bytes());
        const auto second = ports_of(
            Packet().eth().ipv4({.dst = "198.51.100.1", .frag_offset = 72}).payload(64).bytes());
        EXPECT_EQ(first, second);
    }
}

TEST_F(Decide, G_04_a_shrunk_group_is_seen_at_once) {
    const fib::DstIndex one = add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1});
    const fib::DstIndex two = add_dst(net::Family::kIpv4, {.via = "10.0.0.2", .dev = kP0});
    const std::uint32_t group = group_of({{.dst = one}, {.dst = two}});
    set_route("198.51.100.0/24", group);
    for (std::uint16_t sport = 0; sport < 64; ++sport) {
        ports_of(Packet().eth().ipv4({.dst = "198.51.100.1"}).udp({.sport = sport}).bytes());
    }
    shared().groups.publish(group, fib::make_group({{.dst = two}}));
    for (std::uint16_t sport = 0; sport < 64; ++sport) {
        EXPECT_EQ(
            ports_of(Packet().eth().ipv4({.dst = "198.51.100.1"}).udp({.sport = sport}).bytes()),
            std::vector<std::uint16_t>{0});
    }
    shared().groups.publish(group, nullptr);
    EXPECT_EQ(drop_of(to4("198.51.100.1")), DropReason::kGroupEmpty);
}

TEST_F(Decide, Check_58_next_hops_count_their_packets) {
    const fib::DstIndex one = add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1});
    const fib::DstIndex two = add_dst(net::Family::kIpv4, {.via = "10.0.0.2", .dev = kP0});
    shared().dsts.writable(one).counter = 7;
    shared().dsts.writable(two).counter = 8;
    set_route("198.51.100.0/24", group_of({{.dst = one}, {.dst = two}}));
    std::map<std::uint16_t, unsigned> by_port;
    for (std::uint16_t sport = 0; sport < 200; ++sport) {
        ++by_port[ports_of(
            Packet().eth().ipv4({.dst = "198.51.100.1"}).udp({.sport = sport}).bytes())[0]];
    }
    EXPECT_EQ(worker().block.next_hop(7), by_port[1]);
    EXPECT_EQ(worker().block.next_hop(8), by_port[0]);
    EXPECT_EQ(worker().block.next_hop(0), 0U);
}

TEST_F(Decide, device_only_next_hop_counts_under_its_own_number) {
    const fib::DstIndex dst =
        add_dst(net::Family::kIpv4, {.type = fib::DstType::kConnected, .dev = kP1});
    shared().dsts.writable(dst).counter = 9;
    set_route("10.0.1.2/32", dst);
    ports_of(to4("10.0.1.2"));
    ports_of(to4("10.0.1.2"));
    EXPECT_EQ(worker().block.next_hop(9), 2U);
}

// --- VRFs ---------------------------------------------------------------------------------------

class Leak : public Decide {
protected:
    Leak() {
        red_ = add_netdev({});
        netdev(red_).kind = fib::NetdevKind::kVrf;
        table_ = fib::Ipv4Lpm::create({}, reclaimer()).value();
        table6_ = fib::Ipv6Lpm::create({}, reclaimer()).value();
        netdev(red_).fib4 = table_.get();
        netdev(red_).fib6 = table6_.get();
    }
    std::uint32_t into(NetdevId vrf) const { return fib::kTableBit | vrf.value; }

    NetdevId red_;
    std::unique_ptr<fib::Ipv4Lpm> table_;
    std::unique_ptr<fib::Ipv6Lpm> table6_;
};

TEST_F(Leak, Check_118_result_of_the_other_table) {
    const fib::DstIndex there = add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1});
    const fib::DstIndex there6 = add_dst(net::Family::kIpv6, {.via = "fd00:1::2", .dev = kP1});
    ASSERT_TRUE(table_->set({V4("198.51.100.0"), 25}, there).has_value());
    ASSERT_TRUE(table6_->set({V6("2001:db8:9::"), 49}, there6).has_value());
    set_route("198.51.100.0/24", into(red_));
    set_route("2001:db8:9::/48", into(red_));
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(ports_of(to4("198.51.100.1")), std::vector<std::uint16_t>{1});
        EXPECT_EQ(ports_of(to6("2001:db8:9::1")), std::vector<std::uint16_t>{1});
    }
    EXPECT_EQ(drop_of(to4("198.51.100.200")), DropReason::kNoRoute);
    EXPECT_EQ(cache4().hits, cached() ? 1U : 0U);
}

TEST_F(Leak, Check_118_a_loop_drops) {
    set_route("198.51.100.0/24", into(red_));
    ASSERT_TRUE(table_->set({V4("198.51.100.0"), 24}, into(red_)).has_value());
    EXPECT_EQ(drop_of(to4("198.51.100.1")), DropReason::kRouteLoop);
    EXPECT_EQ(drop_of(to4("198.51.100.1")), DropReason::kRouteLoop);
}

TEST_F(Leak, a_vrf_that_went_away_is_no_route) {
    set_route("198.51.100.0/24", into(red_));
    unpublish(red_);
    EXPECT_EQ(drop_of(to4("198.51.100.1")), DropReason::kNoRoute);
    publish(red_);
}

// --- rules --------------------------------------------------------------------------------------

class Rules : public Decide {
protected:
    Rules() {
        other_ = fib::Ipv4Lpm::create({}, reclaimer()).value();
        SLUICE_CHECK(other_
                         ->set({V4("0.0.0.0"), 0},
                               add_dst(net::Family::kIpv4, {.via = "10.0.0.2", .dev = kP0}))
                         .has_value());
    }
    void use(const std::vector<fib::PolicyRule<net::Ipv4Addr>>& rules) {
        auto all = rules;
        all.push_back({.table = &fib4()});
        policy_ = fib::Ipv4Policy::compile(all, 0, reclaimer()).value();
        netdev(kP0).policy4 = policy_.get();
        bump();
    }
    std::unique_ptr<fib::Ipv4Lpm> other_;
    std::unique_ptr<const fib::Ipv4Policy> policy_;
};

TEST_F(Rules, Check_80_a_rule_added_behind_a_warm_cache_is_obeyed) {
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{1});
    use({{.dscp = 8, .table = other_.get()}});
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{1});
    EXPECT_EQ(ports_of(to4("192.0.2.9", "10.0.0.2", 8 << 2)), std::vector<std::uint16_t>{0});
}

TEST_F(Rules, C_40_rules_by_source_keep_the_cache_on) {
    use({{.from = net::Ipv4Prefix{V4("10.0.0.64"), 26}, .table = other_.get()}});
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(ports_of(to4("192.0.2.9", "10.0.0.2")), std::vector<std::uint16_t>{1});
        EXPECT_EQ(ports_of(to4("192.0.2.9", "10.0.0.70")), std::vector<std::uint16_t>{0});
    }
    EXPECT_EQ(ports_of(to4("192.0.2.9", "10.0.0.3")), std::vector<std::uint16_t>{1});
    EXPECT_EQ(cache4().misses, cached() ? 2U : 0U);
    EXPECT_EQ(cache4().hits, cached() ? 3U : 0U) << "one entry a rule class";
}

// A rule of the ingress sends its packets elsewhere, not our answers to them.
TEST_F(Rules, own_packets_do_not_meet_the_rules_of_an_ingress) {
    use({{.table = other_.get()}});
    EXPECT_EQ(ports_of(to4("192.0.2.9")), std::vector<std::uint16_t>{0});
    const Bytes echo = Packet()
                           .eth({.dst = kP0Mac, .src = kH0Mac})
                           .ipv4({.src = "192.0.2.9", .dst = "10.0.0.1"})
                           .icmp(8)
                           .payload(8)
                           .bytes();
    ASSERT_TRUE(
        other_->set({V4("10.0.0.1"), 32}, fib4().get({V4("10.0.0.1"), 32}).value()).has_value());
    bump();
    EXPECT_EQ(ports_of(echo), std::vector<std::uint16_t>{1}) << "by the main table";
}

TEST_F(Rules, C_40_rules_by_port) {
    use({{.protocol = 17, .destination_ports = fib::PolicyPorts{777, 777}, .table = other_.get()}});
    const auto with_port = [&](std::uint16_t dport) {
        return Packet().eth().ipv4().udp({.dport = dport}).bytes();
    };
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(ports_of(with_port(776)), std::vector<std::uint16_t>{1});
        EXPECT_EQ(ports_of(with_port(777)), std::vector<std::uint16_t>{0});
    }
}

// --- source validation --------------------------------------------------------------------------

class Validation : public Decide {
protected:
    /// 198.51.100.0/24 is behind p1.
    Validation() {
        add_route("198.51.100.0/24", {.via = "10.0.1.2", .dev = kP1});
        add_route("2001:db8:3::/48", {.via = "fd00:1::2", .dev = kP1});
        add_route("203.0.113.0/24", {.type = fib::DstType::kBlackhole});
    }
};

TEST_F(Validation, strict_loose_off) {
    struct Row {
        const char* source;
        DropReason strict, loose;
    };
    constexpr auto kFine = DropReason::kNone;
    constexpr auto kBad = DropReason::kSourceInvalid;
    for (const Row& row : {Row{"10.0.0.2", kFine, kFine},
                           {"10.0.0.77", kFine, kFine},
                           {"198.51.100.1", kBad, kFine},
                           {"10.0.1.2", kBad, kFine},
                           {"172.16.0.1", kBad, kBad},
                           {"203.0.113.1", kBad, kBad}}) {
        SCOPED_TRACE(row.source);
        for (const char* when : {"cold", "warm"}) {
            SCOPED_TRACE(when);
            netdev(kP0).source_validation = fib::SourceValidation::kStrict;
            EXPECT_EQ(drop_of(to4("192.0.2.9", row.source)), row.strict);
            netdev(kP0).source_validation = fib::SourceValidation::kLoose;
            bump();
            EXPECT_EQ(drop_of(to4("192.0.2.9", row.source)), row.loose);
            netdev(kP0).source_validation = fib::SourceValidation::kOff;
            bump();
            EXPECT_EQ(drop_of(to4("192.0.2.9", row.source)), kFine);
        }
    }
    netdev(kP0).source_validation = fib::SourceValidation::kStrict;
    EXPECT_EQ(drop_of(to6("2001:db8:2::9", "2001:db8:3::1")), kBad);
    EXPECT_EQ(drop_of(to6("2001:db8:2::9", "fd00::77")), kFine);
}

// Of every burst of 64 with one, eight or all but one legitimate packets, each spoofed one goes.
TEST_F(Validation, C_23_M_111_spoofed_packets_behind_legitimate_ones) {
    netdev(kP0).source_validation = fib::SourceValidation::kStrict;
    for (const std::size_t each : {2UZ, 8UZ, 64UZ}) {
        std::uint64_t spoofed = 0;
        std::uint64_t fine = 0;
        const std::uint64_t before = drops(kP0, DropReason::kSourceInvalid);
        for (unsigned burst = 0; burst < 100; ++burst) {
            std::vector<Bytes> frames;
            std::vector<Bytes> frames6;
            for (std::size_t i = 0; i < 64; ++i) {
                const bool good = i % each == 0;
                ++(good ? fine : spoofed);
                frames.push_back(to4("192.0.2.9", good ? "10.0.0.2" : "198.51.100.1"));
                frames6.push_back(to6("2001:db8:2::9", good ? "fd00::2" : "2001:db8:3::1"));
            }
            receive(kP0, frames);
            receive(kP0, frames6);
        }
        EXPECT_EQ(drops(kP0, DropReason::kSourceInvalid) - before, 2 * spoofed);
        EXPECT_EQ(take_sent().size(), 2 * fine);
    }
}

TEST_F(Validation, C_24_local_destinations_too) {
    netdev(kP0).source_validation = fib::SourceValidation::kStrict;
    const auto echo = [](const char* source) {
        return Packet().eth().ipv4({.src = source, .dst = "10.0.0.1"}).icmp(8).payload(8).bytes();
    };
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(drop_of(echo("10.0.0.2")), DropReason::kNone);
        EXPECT_EQ(drop_of(echo("198.51.100.1")), DropReason::kSourceInvalid);
    }
}

TEST_F(Validation, Check_49_a_group_is_fine_if_a_member_leads_back) {
    netdev(kP0).source_validation = fib::SourceValidation::kStrict;
    const fib::DstIndex one = add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1});
    const fib::DstIndex two = add_dst(net::Family::kIpv4, {.via = "10.0.0.2", .dev = kP0});
    const std::uint32_t group = group_of({{.dst = one}, {.dst = two}});
    set_route("172.16.0.0/12", group);
    EXPECT_EQ(drop_of(to4("192.0.2.9", "172.16.0.1")), DropReason::kNone);
    shared().groups.publish(group, fib::make_group({{.dst = one}}));
    bump();
    EXPECT_EQ(drop_of(to4("192.0.2.9", "172.16.0.1")), DropReason::kSourceInvalid);
}

// Found by reading for the differential test: the bucket moves, and no generation with it.
TEST_F(Validation, C_23_X_03_a_resilient_group_leads_back_as_long_as_a_bucket_does) {
    netdev(kP0).source_validation = fib::SourceValidation::kStrict;
    const fib::DstIndex one = add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1});
    const fib::DstIndex two = add_dst(net::Family::kIpv4, {.via = "10.0.0.2", .dev = kP0});
    auto group = std::make_unique<fib::Group>(2, true);
    group->buckets[0].dst = one;
    group->buckets[1].dst = two;
    fib::Group& buckets = *group;
    const std::uint32_t value = shared().groups.allocate().value();
    shared().groups.publish(value, std::move(group));
    set_route("172.16.0.0/12", value);
    EXPECT_EQ(drop_of(to4("192.0.2.9", "172.16.0.1")), DropReason::kNone);
    buckets.buckets[1].dst = one;
    EXPECT_EQ(drop_of(to4("192.0.2.9", "172.16.0.1")), DropReason::kSourceInvalid);
}

// A flow's source is found beside its destination's entry, and only as long as nothing about it has
// changed: its address, DSCP and ingress, and the generation of its own block.
TEST_F(Validation, C_23_a_source_is_remembered_behind_a_destination) {
    netdev(kP0).source_validation = fib::SourceValidation::kStrict;
    netdev(kP1).source_validation = fib::SourceValidation::kStrict;
    const auto settle = [&] {
        for (int i = 0; i < 4; ++i) {  // a miss, and a find in the cache of sources
            EXPECT_EQ(drop_of(to4("192.0.2.9")), DropReason::kNone);
            EXPECT_EQ(drop_of(to6("2001:db8:2::9")), DropReason::kNone);
        }
    };
    settle();
    worker().context.caches.sources4.clear();
    worker().context.caches.sources6.clear();
    const std::uint64_t misses = cache4().source_misses + cache6().source_misses;
    settle();
    EXPECT_EQ(cache4().source_misses + cache6().source_misses, misses);

    EXPECT_EQ(drop_of(to4("192.0.2.9", "198.51.100.1")), DropReason::kSourceInvalid);
    EXPECT_EQ(drop_of(to6("2001:db8:2::9", "2001:db8:3::1")), DropReason::kSourceInvalid);
    const auto by_p1 = [](Bytes frame) {
        const auto mac = Mac(kP1Mac);
        std::ranges::copy(mac.bytes, frame.begin());
        return frame;
    };
    EXPECT_EQ(drop_of(by_p1(to4("192.0.2.9")), kP1), DropReason::kSourceInvalid);
    EXPECT_EQ(drop_of(by_p1(to6("2001:db8:2::9")), kP1), DropReason::kSourceInvalid);

    settle();
    // The destinations' entries stay valid.
    const net::Prefix<net::Ipv4Addr> host4{V4("10.0.0.2"), 32};
    const net::Prefix<net::Ipv6Addr> host6{V6("fd00::2"), 128};
    const auto over4 = add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1});
    const auto over6 = add_dst(net::Family::kIpv6, {.via = "fd00:1::2", .dev = kP1});
    ASSERT_TRUE(fib4().set(host4, over4).has_value() && fib6().set(host6, over6).has_value());
    generations4().bump(host4, sequence().next());
    generations6().bump(host6, sequence().next());
    const std::uint64_t stale = cache4().stale + cache6().stale;
    EXPECT_EQ(drop_of(to4("192.0.2.9")), DropReason::kSourceInvalid);
    EXPECT_EQ(drop_of(to6("2001:db8:2::9")), DropReason::kSourceInvalid);
    EXPECT_EQ(cache4().stale + cache6().stale, stale);
}

// Routes of a removed netdev are taken out in slices, which bump nothing.
TEST_F(Validation, C_23_X_02_a_route_over_what_is_gone_vouches_for_no_source) {
    netdev(kP0).source_validation = fib::SourceValidation::kLoose;
    const fib::DstIndex over4 = add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1});
    const fib::DstIndex over6 = add_dst(net::Family::kIpv6, {.via = "fd00:1::2", .dev = kP1});
    set_route("172.16.0.0/12", over4);
    set_route("2001:db8:9::/48", over6);
    const Bytes frame4 = to4("192.0.2.9", "172.16.0.1");
    const Bytes frame6 = to6("2001:db8:2::9", "2001:db8:9::1");
    EXPECT_EQ(drop_of(frame4), DropReason::kNone);
    EXPECT_EQ(drop_of(frame6), DropReason::kNone);
    fib::repoint_to_blackhole(shared().dsts.writable(over4));
    fib::repoint_to_blackhole(shared().dsts.writable(over6));
    bump();
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(drop_of(frame4), DropReason::kSourceInvalid);
        EXPECT_EQ(drop_of(frame6), DropReason::kSourceInvalid);
    }
}

TEST_F(Validation, a_source_is_valid_only_where_it_was_seen) {
    netdev(kP0).source_validation = fib::SourceValidation::kStrict;
    netdev(kP1).source_validation = fib::SourceValidation::kStrict;
    EXPECT_EQ(drop_of(to4("192.0.2.9", "10.0.0.2")), DropReason::kNone);
    const Bytes by_p1 = Packet()
                            .eth({.dst = kP1Mac, .src = kH1Mac})
                            .ipv4({.src = "10.0.0.2", .dst = "192.0.2.9"})
                            .udp()
                            .bytes();
    EXPECT_EQ(drop_of(by_p1, kP1), DropReason::kSourceInvalid);
    EXPECT_EQ(drop_of(by_p1, kP1), DropReason::kSourceInvalid);
}

}  // namespace

}  // namespace sluice::test
