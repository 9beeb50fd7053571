// SPDX-License-Identifier: BSD-3-Clause
// `route get`: what the control thread says of a packet is what a worker does with it
// (test/pipeline: table_chain_test.cc, own_broadcast_test.cc, and the groups' buckets here).
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "control/flow_member.h"
#include "nexthop_fixture.h"
#include "pipeline/flow_hash.h"
#include "support/packet.h"

namespace sluice::control::test {
namespace {

using sluice::test::Packet;

class RouteGet : public NextHopTest {
protected:
    RouteLookup get(const RouteQuery& query) {
        const auto found = engine->lookup_route(ns(), query);
        EXPECT_TRUE(found.has_value());
        return found.value_or(RouteLookup{});
    }
    void leak(std::string_view to, std::uint32_t table, std::string vrf) {
        RouteRequest route;
        route.prefix = prefix(to);
        route.table = table;
        route.dev = std::move(vrf);
        add(route);
    }
    /// A default route in table 100, and a rule that sends everything there.
    void rule_to_default() {
        auto everywhere = via("0.0.0.0/0", "10.0.1.2");
        everywhere.table = 100;
        add(everywhere);
        config::Rule rule;
        rule.priority = 10;
        rule.table = 100;
        expect_ok(engine->add_rule(ns(), rule, RouteOwner::kCli));
    }
};

TEST_F(RouteGet, Check_118_a_chain_of_vrfs_ends_where_a_worker_says) {
    struct Row {
        std::string name;
        unsigned leaks;
        std::string type4, type6;
    };
    const std::vector<Row> rows{{"one", 1, "unicast", "unicast"},
                                {"as many as may be", fib::kMaxTableSteps, "unicast", "unicast"},
                                {"one more", fib::kMaxTableSteps + 1, "loop", "loop"}};
    unsigned next = 1;
    unsigned number = 0;
    for (const Row& row : rows) {
        SCOPED_TRACE(row.name);
        const std::string to4 = fmt::format("198.51.{}.0/24", ++number);
        const std::string to6 = fmt::format("2001:db8:{:x}::/48", number);
        std::uint32_t table = config::kMainTable;
        for (unsigned i = 0; i < row.leaks; ++i) {
            const std::string vrf = fmt::format("v{}", next);
            expect_ok(engine->add_vrf(ns(), vrf, 1000 + next));
            leak(to4, table, vrf);
            leak(to6, table, vrf);
            table = 1000 + next++;
        }
        for (const auto& [to, gateway] : {std::pair{to4, "10.0.1.2"}, {to6, "fd00:1::2"}}) {
            auto last = via(to, gateway);
            last.dev = "p1";
            last.table = table;
            add(last);
        }
        const auto found4 = get({.destination = ip(fmt::format("198.51.{}.1", number))});
        const auto found6 = get({.destination = ip(fmt::format("2001:db8:{:x}::1", number))});
        EXPECT_EQ(found4.type, row.type4);
        EXPECT_EQ(found6.type, row.type6);
        EXPECT_EQ(found4.dev, row.type4 == "loop" ? "" : "p1");
    }
}

// As a worker: the first table that has a route is the one, even if that leads to a VRF without.
TEST_F(RouteGet, Check_118_no_rule_after_the_one_that_leaks) {
    expect_ok(engine->add_vrf(ns(), "red", 200));
    leak("0.0.0.0/0", 100, "red");
    config::Rule rule;
    rule.priority = 10;
    rule.table = 100;
    expect_ok(engine->add_rule(ns(), rule, RouteOwner::kCli));
    add(via("192.0.2.0/24", "10.0.1.2"));
    EXPECT_EQ(get({.destination = ip("192.0.2.1"), .iif = "p0"}).type, "none");
}

TEST_F(RouteGet, Check_12_13_an_own_broadcast_is_ours_whatever_a_rule_says) {
    rule_to_default();
    struct Row {
        std::string name, to, iif, type, dev;
    };
    const std::vector<Row> rows{{"ingress link", "10.0.0.255", "p0", "broadcast", "p0"},
                                {"other link", "10.0.1.255", "p0", "broadcast", "p1"},
                                {"our own packet", "10.0.1.255", "", "broadcast", "p1"},
                                {"own address", "10.0.0.1", "p1", "local", "lo"},
                                {"a host", "10.0.0.9", "p1", "unicast", "p1"},
                                {"nobody's broadcast", "10.0.2.255", "p0", "unicast", "p1"}};
    for (const Row& row : rows) {
        SCOPED_TRACE(row.name);
        const auto found = get({.destination = ip(row.to), .iif = row.iif});
        EXPECT_EQ(found.type, row.type);
        if (row.type == "unicast") {
            EXPECT_EQ(found.dev, row.dev);
            EXPECT_EQ(found.table, 100U);
        }
    }
    // A route of type local is no address of ours: rules come first, as in a worker.
    add(typed("203.0.113.0/24", "local"));
    EXPECT_EQ(get({.destination = ip("203.0.113.1"), .iif = "p0"}).type, "unicast");
}

TEST_F(RouteGet, M_30_AGroupsMemberIsTheOneThatTheFlowTakes) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(3, over("10.0.1.3"));
    nexthop(10, group({{1, 1}, {2, 2}, {3, 1}}));
    nexthop(4, over("fd00::2"));
    nexthop(5, over("fd00:1::2"));
    nexthop(11, group({{4, 1}, {5, 1}}));
    route_over("192.0.2.0/24", 10);
    route_over("2001:db8::/32", 11);
    std::map<std::uint32_t, unsigned> times;
    for (std::uint16_t port = 0; port < 256; ++port) {
        for (const bool v4 : {true, false}) {
            RouteQuery query{.destination = ip(v4 ? "192.0.2.9" : "2001:db8::9"),
                             .from = ip(v4 ? "10.0.0.9" : "fd00::9"),
                             .iif = "p0",
                             .protocol = 17,
                             .source_port = port,
                             .destination_port = 53};
            const RouteLookup found = get(query);
            ASSERT_TRUE(found.member.has_value());
            ++times[*found.member];
            // What a worker computes from such a packet's bytes, and finds behind that.
            Packet packet = v4 ? Packet().ipv4({.src = "10.0.0.9", .dst = "192.0.2.9"})
                               : Packet().ipv6({.src = "fd00::9", .dst = "2001:db8::9"});
            const Bytes bytes = packet.udp({.sport = port, .dport = 53}).bytes();
            const auto* in = view("p0");
            const std::uint32_t hash =
                v4 ? pipeline::flow_hash4(shared.flow_seed, in->hash4, bytes)
                   : pipeline::flow_hash6(shared.flow_seed, in->hash6, bytes);
            const std::uint32_t value = v4 ? in->fib4->lookup_one(query.destination.v4())
                                           : in->fib6->lookup_one(query.destination.v6());
            const fib::Dst& taken = shared.dsts[shared.groups[value]->pick(hash, 0)];
            EXPECT_EQ(taken.out, netdev(found.dev).id);
            EXPECT_EQ(v4 ? net::IpAddr(taken.gateway4()) : net::IpAddr(taken.gateway6()),
                      found.via);
            EXPECT_TRUE(found.source.has_value());
            EXPECT_EQ(found.mtu, 1500);
        }
    }
    EXPECT_EQ(times.size(), 5U) << "each one at least once";
    EXPECT_GT(times[2], times[1]);
}

TEST_F(RouteGet, AResilientGroupsIdleBucketStaysIdle) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(10, resilient({{1, 1}, {2, 1}}, 8, 1000));
    route_over("192.0.2.0/24", 10);
    const std::uint32_t value = view("p0")->fib4->lookup_one(ip("192.0.2.9").v4());
    const fib::Group& buckets = *shared.groups[value];
    const auto used = [&] {
        std::vector<std::uint32_t> times;
        for (std::size_t i = 0; i <= buckets.mask; ++i) {
            times.push_back(buckets.buckets[i].used_s);
        }
        return times;
    };
    const auto before = used();
    EXPECT_TRUE(get({.destination = ip("192.0.2.9"), .from = ip("10.0.0.9")}).member);
    EXPECT_EQ(used(), before);
}

}  // namespace
}  // namespace sluice::control::test
