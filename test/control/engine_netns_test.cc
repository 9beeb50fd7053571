// SPDX-License-Identifier: BSD-3-Clause
// Netns and VRFs, and what moves between them (dst.md M; checks 73, 103, 139).
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine_fixture.h"

namespace sluice::control::test {
namespace {

class EngineNetns : public EngineTest {
protected:
    EngineNetns() {
        add_bench();
        blue = *engine->add_netns("blue");
    }
    bool gone(const fib::Dst& d) { return (d.state.load() & fib::Dst::kGone) != 0; }
    std::uint32_t value(const fib::NetdevView& view, std::string_view address) {
        return view.fib4->lookup_one(ip(address).v4());
    }
    Netns* blue = nullptr;
};

TEST_F(EngineNetns, ANetnsHasItsOwnLoopbackTableAndNames) {
    const auto* lo = shared.netdev(blue->lo->id);
    ASSERT_NE(lo, nullptr);
    EXPECT_EQ(lo->loopback, blue->lo->id);
    EXPECT_NE(lo->fib4, view("p0")->fib4);
    EXPECT_NE(lo->generations4, view("p0")->generations4);
    EXPECT_NE(lo->ingress_class, shared.netdev(NetdevId{1})->ingress_class);
    config::Vlan vlan;
    vlan.link = "p0";
    vlan.id = 7;
    EXPECT_EQ(code(engine->add_vlan(*blue, "v", vlan)), "not_found") << "p0 is elsewhere";
    EXPECT_EQ(code(engine->add_netns("blue")), "exists");
    EXPECT_EQ(code(engine->add_netns("a b")), "invalid");
    EXPECT_EQ(code(engine->delete_netns(ns())), "invalid");
}

TEST_F(EngineNetns, M_01_APortMovesWithItsVlansAndLeavesNothingBehind) {
    add_vlan("p1.7", "p1", 7);
    expect_ok(engine->add_address(ns(), "p1.7", interface("10.7.0.1/24")));
    add(via("192.0.2.0/24", "10.0.1.2"));
    add(via("0.0.0.0/0", "10.0.0.2"));
    expect_ok(engine->add_neighbor(ns(), "p1", ip("10.0.1.2"), kHostMac, now));
    const NetdevId old = netdev("p1").id;
    const fib::Dst& hop = dst("192.0.2.9");
    const auto stamp = ns().generations4.whole();
    plane.hardware.log.clear();

    const auto ticket = engine->move_link(ns(), "p1", *blue);
    ASSERT_TRUE(ticket.has_value());
    EXPECT_TRUE(gone(hop));
    EXPECT_EQ(shared.netdev(old), nullptr);
    EXPECT_NE(ns().generations4.whole(), stamp);
    EXPECT_EQ(ns().find("p1"), nullptr);
    EXPECT_EQ(ns().find("p1.7"), nullptr);
    const Netdev& moved = netdev("p1", "blue");
    EXPECT_NE(moved.id, old);
    EXPECT_TRUE(moved.addresses.empty());
    EXPECT_TRUE(moved.up());
    const auto* there = shared.netdev(moved.id);
    EXPECT_EQ(there->fib4, &blue->main->v4.lpm());
    EXPECT_EQ((*there->vlans)[7], netdev("p1.7", "blue").id);
    EXPECT_EQ(plane.queues[0].back().netdev, moved.id);
    EXPECT_TRUE(plane.hardware.log.empty()) << "the device goes on";
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.0.2 dev p0");
    EXPECT_EQ(engine->neighbors().table().size(), 0U);
    EXPECT_FALSE(view("p0")->local->contains(ip("10.0.1.1").v4()));
    settle();
    EXPECT_TRUE(engine->settled(*ticket));
    EXPECT_TRUE(engine->draining().empty());

    // The same addresses again, and back.
    expect_ok(engine->add_address(*blue, "p1", interface("10.0.0.1/24")));
    EXPECT_TRUE(shared.netdev(moved.id)->local->contains(ip("10.0.0.1").v4()));
    expect_ok(engine->move_link(*blue, "p1", ns()));
    expect_ok(engine->add_address(ns(), "p1", interface("10.0.1.1/24")));
    add(via("192.0.2.0/24", "10.0.1.2"));
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.1.2 dev p1");
}

TEST_F(EngineNetns, M_01_AVlanMovesAlone) {
    add_vlan("p1.7", "p1", 7);
    expect_ok(engine->move_link(ns(), "p1.7", *blue));
    const Netdev& vlan = netdev("p1.7", "blue");
    EXPECT_EQ((*view("p1")->vlans)[7], vlan.id);
    EXPECT_EQ(shared.netdev(vlan.id)->netns, blue->id);
    expect_ok(engine->add_address(*blue, "p1.7", interface("10.7.0.1/24")));
    EXPECT_EQ(code(engine->delete_netdevs(ns(), std::vector<std::string>{"p1"})), "busy");
    // Its port follows its netdevs of the same netns, and leaves this one where it is.
    expect_ok(engine->move_link(ns(), "p1", **engine->add_netns("red")));
    EXPECT_EQ((*shared.netdev(netdev("p1", "red").id)->vlans)[7], vlan.id);
    EXPECT_EQ(vlan.netns, blue);
    set_up("p0", false);
    EXPECT_TRUE(vlan.up());
}

TEST_F(EngineNetns, M_01_RefusedMovesLeaveBothAsTheyWere) {
    add_vlan("p1.7", "p1", 7);
    add_vlan("other", "p0", 8);
    expect_ok(engine->move_link(ns(), "other", *blue));
    add_port("p2", "02:00:00:00:00:09");
    expect_ok(engine->move_link(ns(), "p2", *blue));
    expect_ok(engine->add_vrf(ns(), "vrf", 100));
    add(via("192.0.2.0/24", "10.0.1.2"));
    config::Vlan vlan;
    vlan.link = "p2";
    vlan.id = 7;
    expect_ok(engine->add_vlan(*blue, "p1.7", vlan));
    settle();
    const std::string before = dump();
    const auto bumps = changes.bumps();
    EXPECT_EQ(code(engine->move_link(ns(), "p1", *blue)), "exists") << "its VLAN's name is taken";
    EXPECT_EQ(code(engine->move_link(ns(), "p1.7", *blue)), "exists");
    EXPECT_EQ(code(engine->move_link(ns(), "lo", *blue)), "unsupported");
    EXPECT_EQ(code(engine->move_link(ns(), "vrf", *blue)), "unsupported");
    EXPECT_EQ(code(engine->move_link(ns(), "p9", *blue)), "not_found");
    EXPECT_EQ(dump(), before);
    EXPECT_EQ(changes.bumps(), bumps);
    EXPECT_EQ(rcu.pending(), 0U);
    const auto stay = engine->move_link(ns(), "p1", ns());
    ASSERT_TRUE(stay.has_value());
    EXPECT_EQ(dump(), before) << "it is there already";
}

TEST_F(EngineNetns, M_01_G_04_GroupsShrinkAndGoWithTheirLastMember) {
    const auto hop = [](std::string_view gateway) {
        config::NextHop h;
        h.via = ip(gateway);
        return h;
    };
    expect_ok(engine->add_nexthop(ns(), 1, hop("10.0.0.2"), RouteOwner::kCli, false));
    expect_ok(engine->add_nexthop(ns(), 2, hop("10.0.1.2"), RouteOwner::kCli, false));
    config::NextHop group;
    group.group = {{1, 1}, {2, 1}};
    expect_ok(engine->add_nexthop(ns(), 10, group, RouteOwner::kCli, false));
    RouteRequest over;
    over.prefix = prefix("192.0.2.0/24");
    over.nexthop = 10;
    add(over);
    over.prefix = prefix("198.51.100.0/24");
    over.nexthop = 2;
    add(over);
    const auto outputs = [&](std::string_view address) {
        std::set<std::string> names;
        const std::uint32_t v = value(*view("p0"), address);
        const fib::Group* g = (v & fib::kGroupBit) != 0 ? shared.groups[v] : nullptr;
        for (std::uint32_t i = 0; g != nullptr && i <= g->mask; ++i) {
            const fib::Dst& d = shared.dsts[g->buckets[i].dst.load()];
            const Netdev* out = engine->netdevs().find(d.out);
            names.insert(out == nullptr || gone(d) ? "gone" : out->name);
        }
        return names;
    };
    EXPECT_EQ(outputs("192.0.2.9"), (std::set<std::string>{"p0", "p1"}));
    expect_ok(engine->move_link(ns(), "p1", *blue));
    EXPECT_EQ(outputs("192.0.2.9"), std::set<std::string>{"p0"});
    EXPECT_EQ(value(*view("p0"), "198.51.100.9"), fib::kNoRoute);
    EXPECT_EQ(engine->nexthops(ns()).size(), 2U);
    expect_ok(engine->move_link(ns(), "p0", *blue));
    EXPECT_TRUE(engine->nexthops(ns()).empty());
    EXPECT_EQ(value(*shared.netdev(NetdevId{1}), "192.0.2.9"), fib::kNoRoute);
    settle();
    EXPECT_TRUE(engine->draining().empty());
}

TEST_F(EngineNetns, M_02_OthersGoOnBeforeItsGracePeriodIsOver) {
    struct Reader {
        explicit Reader(dpdk::RcuDomain& rcu) : reader(rcu, WorkerId{0}) {}
        dpdk::RcuReader reader;
    } worker(rcu);
    const auto ticket = engine->move_link(ns(), "p1", *blue);
    ASSERT_TRUE(ticket.has_value());
    EXPECT_FALSE(engine->settled(*ticket));
    add(via("192.0.2.0/24", "10.0.0.2"));
    expect_ok(engine->add_address(*blue, "p1", interface("10.0.1.1/24")));
    EXPECT_FALSE(engine->settled(*ticket)) << "a worker may still send for the old netns";
    worker.reader.quiescent();
    EXPECT_TRUE(engine->settled(*ticket));
}

TEST_F(EngineNetns, ADeletedNetnsReturnsItsPortsToDefault) {
    add_vlan("p1.7", "p1", 7);
    settle();
    const std::size_t dsts = shared.dsts.in_use();
    expect_ok(engine->move_link(ns(), "p1", *blue));
    expect_ok(engine->add_vrf(*blue, "vrf", 100));
    expect_ok(engine->set_vrf(*blue, "p1.7", "vrf"));
    expect_ok(engine->add_address(*blue, "p1", interface("10.0.1.1/24")));
    expect_ok(engine->add_address(*blue, "p1.7", interface("10.0.1.1/24")));
    for (const char* to : {"192.0.2.0/24", "0.0.0.0/0"}) {
        expect_ok(engine->add_route(*blue, via(to, "10.0.1.2"), RouteMode::kAdd));
    }
    expect_ok(engine->add_route(*blue, typed("203.0.113.0/24", "blackhole"), RouteMode::kAdd));
    config::Rule rule;
    rule.priority = 5;
    rule.from = prefix("10.0.0.0/8");
    rule.table = 100;
    expect_ok(engine->add_rule(*blue, rule, RouteOwner::kCli));
    add_vlan("p1", "p0", 9);
    const std::string before = dump();
    EXPECT_EQ(code(engine->delete_netns(*blue)), "busy") << "default has a p1";
    EXPECT_EQ(dump(), before);
    expect_ok(engine->delete_netdevs(ns(), std::vector<std::string>{"p1"}));

    const auto ticket = engine->delete_netns(*blue);
    ASSERT_TRUE(ticket.has_value());
    settle();
    EXPECT_TRUE(engine->settled(*ticket));
    EXPECT_EQ(engine->netns().find("blue"), nullptr);
    EXPECT_TRUE(netdev("p1").addresses.empty());
    EXPECT_TRUE(netdev("p1").vlans.empty());
    EXPECT_EQ(view("p1")->vlans, nullptr);
    EXPECT_TRUE(engine->draining().empty());
    EXPECT_LE(shared.dsts.in_use(), dsts);
    EXPECT_EQ(engine->uncached().size(), 0U);
    expect_ok(engine->add_address(ns(), "p1", interface("10.0.1.1/24")));
}

// Found by the differential test: they share what they lead to, which was given back twice.
TEST_F(EngineNetns, RulesOfOneAnswerGoWithTheirNetns) {
    const std::size_t dsts = shared.dsts.in_use();
    for (int again = 0; again < 2; ++again) {
        expect_ok(engine->add_netns("green"));
        for (const std::uint32_t priority : {1U, 2U, 3U}) {
            for (const net::Family family : {net::Family::kIpv4, net::Family::kIpv6}) {
                config::Rule rule;
                rule.priority = priority;
                rule.family = family;
                rule.action = config::RuleAction::kBlackhole;
                expect_ok(engine->add_rule(ns("green"), rule, RouteOwner::kCli));
            }
        }
        expect_ok(engine->delete_netns(ns("green")));
        settle();
        EXPECT_EQ(shared.dsts.in_use(), dsts);
    }
}

TEST_F(EngineNetns, FourHundredNetnsAgainAndAgain) {
    for (int round = 0; round < 4; ++round) {
        for (std::uint16_t i = 1; i <= 400; ++i) {
            const std::string name = fmt::format("v{}", i);
            const auto netns = engine->add_netns(fmt::format("n{}", i));
            ASSERT_TRUE(netns.has_value());
            add_vlan(name, "p0", i);
            expect_ok(engine->move_link(ns(), name, **netns));
            expect_ok(engine->add_address(**netns, name, interface("10.0.0.1/24")));
            expect_ok(engine->add_route(**netns, via("0.0.0.0/0", "10.0.0.2"), RouteMode::kAdd));
        }
        settle();
        for (std::uint16_t i = 1; i <= 400; ++i) {
            expect_ok(engine->delete_netns(ns(fmt::format("n{}", i))));
        }
        settle();
    }
    EXPECT_TRUE(engine->draining().empty());
}

class EngineNetnsLimits : public EngineTest {
protected:
    EngineNetnsLimits() : EngineTest(1, {.ipv4_routes = 3, .ipv6_routes = 1, .neighbors = {}}) {
        add_bench();
    }
};

TEST_F(EngineNetnsLimits, RoutesOfAllNetnsCountTogether) {
    Netns& blue = **engine->add_netns("blue");
    add(via("192.0.2.0/24", "10.0.1.2"));
    for (const char* to : {"192.0.2.0/24", "198.51.100.0/24"}) {
        expect_ok(engine->add_route(blue, typed(to, "blackhole"), RouteMode::kAdd));
    }
    const auto more = via("203.0.113.0/24", "10.0.1.2");
    EXPECT_EQ(code(engine->add_route(ns(), more, RouteMode::kAdd)), "limit");
    expect_ok(engine->delete_netns(blue));
    expect_ok(engine->add_route(ns(), more, RouteMode::kAdd));
}

// --- VRFs ---------------------------------------------------------------------------------------

class EngineVrfs : public EngineNetns {
protected:
    EngineVrfs() {
        expect_ok(engine->add_vrf(ns(), "red", 100));
        expect_ok(engine->set_vrf(ns(), "p1", "red"));
        plane.sent.clear();
    }
};

TEST_F(EngineVrfs, Check_59_AMembersConnectedRoutesAreInTheVrfsTable) {
    EXPECT_EQ(value(*view("p0"), "10.0.1.9"), fib::kNoRoute);
    EXPECT_NE(value(*view("p1"), "10.0.1.9"), fib::kNoRoute);
    EXPECT_EQ(value(*view("p1"), "10.0.0.9"), fib::kNoRoute);
    EXPECT_EQ(view("p1")->fib4, view("red")->fib4);
    EXPECT_EQ(view("p1")->domain, netdev("red").id);
    EXPECT_EQ(view("p0")->domain, netdev("lo").id);
    EXPECT_TRUE(view("p1")->local->contains(ip("10.0.1.1").v4()));
    EXPECT_FALSE(view("p1")->local->contains(ip("10.0.0.1").v4()));
    EXPECT_FALSE(view("p0")->local->contains(ip("10.0.1.1").v4()));
    // U-05: what is local there is the VRF's, by the member's settings.
    const fib::Dst& own = shared.dsts[value(*view("p1"), "10.0.1.1")];
    EXPECT_EQ(own.out, netdev("red").id);
    EXPECT_EQ(own.idev, netdev("p1").id);
}

TEST_F(EngineVrfs, OneAddressInTwoDomains) {
    expect_ok(engine->add_address(ns(), "p1", interface("10.0.0.1/24")));
    EXPECT_EQ(code(engine->set_vrf(ns(), "p1", "")), "exists") << "p0 has it out there";
    EXPECT_EQ(netdev("p1").master, &netdev("red"));
    const std::string before = dump();
    EXPECT_EQ(code(engine->delete_netdevs(ns(), std::vector<std::string>{"red"})), "exists");
    EXPECT_EQ(dump(), before);
    expect_ok(engine->delete_address(ns(), "p1", interface("10.0.0.1/24")));
    expect_ok(engine->set_vrf(ns(), "p1", ""));
    EXPECT_EQ(route("10.0.1.9"), "unicast dev p1");
    EXPECT_EQ(view("p1")->domain, netdev("lo").id);
}

TEST_F(EngineVrfs, Check_73_AnAddressOfAnotherVrfIsALegalGateway) {
    auto request = via("192.0.2.0/24", "10.0.1.1");
    request.dev = "p0";
    request.on_link = true;
    expect_ok(engine->add_route(ns(), request, RouteMode::kAdd));
    request.prefix = prefix("198.51.100.0/24");
    request.via = ip("10.0.0.1");
    EXPECT_EQ(code(engine->add_route(ns(), request, RouteMode::kAdd)), "invalid");
}

TEST_F(EngineVrfs, ARouteOverAVrfSendsTheLookupToItsTable) {
    RouteRequest leak;
    leak.prefix = prefix("10.0.1.0/24");
    leak.dev = "red";
    add(leak);
    EXPECT_EQ(value(*view("p0"), "10.0.1.9"), fib::kTableBit | netdev("red").id.value);
    const auto found = engine->lookup_route(ns(), {.destination = ip("10.0.1.9")});
    EXPECT_EQ(found->dev, "p1");
    leak.prefix = prefix("10.0.0.0/24");
    leak.table = 100;
    leak.dev = "p0";
    expect_ok(engine->add_route(ns(), leak, RouteMode::kAdd));
    EXPECT_EQ(shared.dsts[value(*view("p1"), "10.0.0.9")].out, netdev("p0").id);
}

TEST_F(EngineVrfs, Check_139_AMoveToAnotherVrfClearsTheNeighbors) {
    resolve("p1", "10.0.1.9");
    expect_ok(engine->add_neighbor(ns(), "p1", ip("10.0.1.8"), kHostMac, now));
    expect_ok(engine->add_vrf(ns(), "green", 101));
    expect_ok(engine->set_vrf(ns(), "p1", "green"));
    EXPECT_EQ(neighbor("p1", "10.0.1.9"), "none");
    EXPECT_EQ(neighbor("p1", "10.0.1.8"), "permanent 02:aa:00:00:00:02");
    plane.sent.clear();
    resolve("p1", "10.0.1.9");
    EXPECT_EQ(plane.sent.size(), 1U) << "asked for again";
    EXPECT_EQ(value(*view("red"), "10.0.1.9"), fib::kNoRoute);
    EXPECT_NE(value(*view("green"), "10.0.1.9"), fib::kNoRoute);
}

TEST_F(EngineVrfs, Check_103_ADeletedVrfReturnsItsMembers) {
    auto in_table = typed("192.0.2.0/24", "blackhole");
    in_table.table = 100;
    add(in_table);
    RouteRequest leak;
    leak.prefix = prefix("203.0.113.0/24");
    leak.dev = "red";
    add(leak);
    expect_ok(engine->delete_netdevs(ns(), std::vector<std::string>{"red"}));
    settle();
    EXPECT_EQ(netdev("p1").master, nullptr);
    EXPECT_EQ(route("10.0.1.9"), "unicast dev p1");
    EXPECT_EQ(route("10.0.1.1"), "local dev p1");
    EXPECT_EQ(route("203.0.113.9"), "none");
    EXPECT_TRUE(view("p0")->local->contains(ip("10.0.1.1").v4()));
    std::size_t left = 0;
    engine->for_each_route(ns(), 100, [&](const RouteInfo&) { ++left; });
    EXPECT_EQ(left, 1U) << "a table's route stays";
    EXPECT_TRUE(engine->draining().empty());
}

TEST_F(EngineVrfs, U_05_MemberAndVrfGoInEitherOrder) {
    const auto with_local = [&] {
        expect_ok(engine->add_address(ns(), "p1", interface("fd00:9::1/64")));
        // Displaced, and a worker has it.
        expect_ok(engine->delete_address(ns(), "p1", interface("fd00:9::1/64")));
    };
    with_local();
    EXPECT_GT(engine->uncached().size(), 0U);
    expect_ok(engine->delete_netdevs(ns(), std::vector<std::string>{"p1"}));
    expect_ok(engine->delete_netdevs(ns(), std::vector<std::string>{"red"}));
    settle();
    EXPECT_TRUE(engine->draining().empty());
    EXPECT_EQ(engine->uncached().size(), 0U);

    add_port("p1", "02:00:00:00:00:02");
    expect_ok(engine->add_vrf(ns(), "red", 100));
    expect_ok(engine->set_vrf(ns(), "p1", "red"));
    with_local();
    expect_ok(engine->delete_netdevs(ns(), std::vector<std::string>{"red"}));
    expect_ok(engine->delete_netdevs(ns(), std::vector<std::string>{"p1"}));
    settle();
    EXPECT_TRUE(engine->draining().empty());
    EXPECT_EQ(engine->uncached().size(), 0U);
}

TEST_F(EngineVrfs, C_03_IngressClassesFollowWhatALookupDependsOn) {
    add_vlan("a", "p0", 1);
    add_vlan("b", "p0", 2);
    const auto number = [&](std::string_view name) { return view(name)->ingress_class; };
    EXPECT_EQ(number("a"), number("b"));
    EXPECT_EQ(number("a"), number("p0"));
    EXPECT_NE(number("a"), number("p1")) << "another VRF";
    const auto before = number("a");
    config::NetdevSettings to = netdev("b").settings;
    to.forwarding = false;
    expect_ok(engine->change_netdev(ns(), "b", to));
    EXPECT_NE(number("a"), number("b"));
    EXPECT_EQ(number("a"), before);
    to.forwarding = true;
    expect_ok(engine->change_netdev(ns(), "b", to));
    EXPECT_EQ(number("a"), number("b"));
    expect_ok(engine->set_vrf(ns(), "b", "red"));
    EXPECT_EQ(number("b"), number("p1"));
}

TEST_F(EngineVrfs, RefusedVrfChangesLeaveEverything) {
    settle();
    const std::string before = dump();
    EXPECT_EQ(code(engine->add_vrf(ns(), "red", 7)), "exists");
    EXPECT_EQ(code(engine->add_vrf(ns(), "green", 100)), "exists");
    for (const std::uint32_t table : {0U, 253U, 254U, 255U}) {
        EXPECT_EQ(code(engine->add_vrf(ns(), "green", table)), "invalid");
    }
    EXPECT_EQ(code(engine->set_vrf(ns(), "p0", "p1")), "invalid");
    EXPECT_EQ(code(engine->set_vrf(ns(), "p0", "nowhere")), "not_found");
    EXPECT_EQ(code(engine->set_vrf(ns(), "lo", "red")), "unsupported");
    EXPECT_EQ(code(engine->set_vrf(ns(), "red", "red")), "unsupported");
    settle();
    EXPECT_EQ(dump(), before);
}

// --- ingress classes ----------------------------------------------------------------------------

TEST(IngressClassesTest, C_03_ANumberIsUsedAgainOnlyAfterAGracePeriodAndSaysSo) {
    dpdk::RcuDomain rcu;
    IngressClasses classes(rcu);
    fib::NetdevView view;
    std::set<std::uint16_t> seen;
    for (unsigned i = 0; i <= fib::CacheTail::kMaxIngressClass; ++i) {
        view.netns = NetnsId{static_cast<std::uint16_t>(i)};
        const auto taken = classes.take(view);
        EXPECT_TRUE(seen.insert(taken.number).second);
        EXPECT_FALSE(taken.reused);
        classes.drop(taken.number);
        if (i == 5) {
            const auto again = classes.take(view);
            EXPECT_TRUE(seen.insert(again.number).second) << "a worker may still use the old one";
            classes.drop(again.number);
            ++i;
        }
    }
    while (rcu.pending() != 0) {
        rcu.poll();
    }
    const auto taken = classes.take(view);
    EXPECT_TRUE(taken.reused);
    EXPECT_EQ(taken.number, 0U) << "free for longest";
    const auto same = classes.take(view);
    EXPECT_EQ(same.number, taken.number);
    EXPECT_FALSE(same.reused);
}

}  // namespace
}  // namespace sluice::control::test
