// SPDX-License-Identifier: BSD-3-Clause
#include "nexthop_fixture.h"

namespace sluice::control::test {
namespace {

class NextHopObjectsTest : public NextHopTest {};

TEST_F(NextHopObjectsTest, Check_32_BlackholeAloneAndAsTheOnlyMember) {
    nexthop(1, blackhole());
    nexthop(2, group({{1, 1}}));
    nexthop(3, over("10.0.1.2"));
    for (const auto& [net, address] :
         {std::pair{"192.0.2.0/24", "192.0.2.9"}, {"2001:db8::/48", "2001:db8::9"}}) {
        SCOPED_TRACE(net);
        route_over(net, 1);
        EXPECT_EQ(paths(address), "blackhole");
        route_over(net, 2, RouteMode::kReplace);
        EXPECT_EQ(paths(address), "blackhole");
    }
    route_over("192.0.2.0/24", 3, RouteMode::kReplace);
    EXPECT_EQ(paths("192.0.2.9"), "10.0.1.2");
}

TEST_F(NextHopObjectsTest, Check_33_ReplacedInPlaceWithoutTouchingRoutes) {
    nexthop(1, blackhole());
    route_over("192.0.2.0/24", 1);
    const std::uint32_t value = value_of("192.0.2.9");
    replace(1, over("10.0.1.2"));
    EXPECT_EQ(paths("192.0.2.9"), "10.0.1.2");
    replace(1, over("10.0.0.2"));
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2");
    replace(1, blackhole());
    EXPECT_EQ(paths("192.0.2.9"), "blackhole");
    EXPECT_EQ(value_of("192.0.2.9"), value);
}

TEST_F(NextHopObjectsTest, Check_33_ReplacedDstsAreReclaimed) {
    nexthop(1, over("10.0.1.2"));
    route_over("192.0.2.0/24", 1);
    route_over("2001:db8::/48", 1, RouteMode::kAdd, "invalid");
    settle();
    const std::size_t before = shared.dsts.in_use();
    for (int i = 0; i < 10; ++i) {
        replace(1, over(i % 2 == 0 ? "10.0.1.3" : "10.0.1.2"));
    }
    settle();
    EXPECT_EQ(shared.dsts.in_use(), before);
}

TEST_F(NextHopObjectsTest, Check_34_GroupReplacedByABlackholeAndBack) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(3, blackhole());
    nexthop(10, group({{1, 1}, {2, 1}}));
    route_over("192.0.2.0/24", 10);
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2 x1, 10.0.1.2 x1");
    replace(10, group({{3, 1}}));
    EXPECT_EQ(paths("192.0.2.9"), "blackhole");
    replace(10, group({{1, 1}, {2, 1}}));
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2 x1, 10.0.1.2 x1");
}

TEST_F(NextHopObjectsTest, Check_24_WeightsFollowAReplacementAtOnce) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(10, group({{1, 1}, {2, 1}}));
    route_over("192.0.2.0/24", 10);
    replace(10, group({{1, 3}, {2, 1}}));
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2 x3, 10.0.1.2 x1");
}

TEST_F(NextHopObjectsTest, Check_36_DeletedMemberLeavesTheOthersTheirWeights) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(3, over("10.0.1.3"));
    nexthop(10, group({{1, 3}, {2, 1}, {3, 4}}));
    route_over("192.0.2.0/24", 10);
    expect_ok(engine->delete_nexthop(netns(), 3));
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2 x3, 10.0.1.2 x1");
    EXPECT_EQ(info(10).hop.group, (std::map<std::uint32_t, std::uint32_t>{{1, 3}, {2, 1}}));
    EXPECT_EQ(engine->delete_nexthop(netns(), 3).error().code, ErrorCode::kNotFound);
}

TEST_F(NextHopObjectsTest, Check_53_AFlushTakesThoseOfOneProtocol) {
    constexpr std::uint8_t kBgp = 186;
    const auto add =
        [&](std::uint32_t id, const config::NextHop& hop, RouteOwner owner, int proto) {
            expect_ok(engine->add_nexthop(
                netns(), id, hop, owner, false, static_cast<std::uint8_t>(proto)));
        };
    add(1, over("10.0.0.2"), RouteOwner::kCli, kBgp);
    add(2, over("10.0.1.2"), RouteOwner::kCli, 0);
    add(3, over("10.0.1.3"), RouteOwner::kFile, 0);
    add(10, group({{1, 1}, {2, 1}}), RouteOwner::kCli, 0);
    add(11, group({{1, 1}}), RouteOwner::kCli, kBgp);
    add(12, group({{3, 1}}), RouteOwner::kCli, kBgp);
    route_over("192.0.2.0/24", 10);
    route_over("198.51.100.0/24", 11);
    EXPECT_EQ(engine->flush_nexthops(netns(), {RouteOwner::kCli, kBgp}), 3U);
    EXPECT_EQ(paths("192.0.2.9"), "10.0.1.2");
    EXPECT_EQ(paths("198.51.100.9"), "none");
    std::vector<std::uint32_t> left;
    for (const NextHopInfo& info : engine->nexthops(netns())) {
        left.push_back(info.id);
    }
    EXPECT_EQ(left, (std::vector<std::uint32_t>{2, 3, 10}));
    EXPECT_EQ(engine->flush_nexthops(netns(), {RouteOwner::kCli, kBgp}), 0U);
    EXPECT_EQ(engine->flush_nexthops(netns(), {RouteOwner::kCli}), 2U);
    EXPECT_EQ(engine->nexthops(netns()).size(), 1U) << "the file's stays";
}

TEST_F(NextHopObjectsTest, Check_36_LastMemberGoneTheGroupAndItsRoutesGo) {
    nexthop(1, over("10.0.0.2"));
    nexthop(10, group({{1, 1}}));
    route_over("192.0.2.0/24", 10);
    route_over("198.51.100.0/24", 1);
    RouteRequest backup = via("192.0.2.0/24", "10.0.1.2");
    backup.metric = 9;
    expect_ok(engine->add_route(netns(), backup, RouteMode::kAdd));
    expect_ok(engine->delete_nexthop(netns(), 1));
    EXPECT_TRUE(engine->nexthops(netns()).empty());
    EXPECT_EQ(paths("192.0.2.9"), "10.0.1.2");
    EXPECT_EQ(paths("198.51.100.9"), "none");
    settle();
    EXPECT_EQ(shared.groups.in_use(), 0U);
}

TEST_F(NextHopObjectsTest, Check_37_62_142_GroupsShrinkWithTheirNetdevs) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(10, group({{1, 1}, {2, 3}}));
    route_over("192.0.2.0/24", 10);
    route_over("198.51.100.0/24", 2);
    set_up("p1", false);
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2");
    EXPECT_EQ(paths("198.51.100.9"), "none");
    // Added while a leg is down: it is not used.
    route_over("203.0.113.0/24", 10);
    EXPECT_EQ(paths("203.0.113.9"), "10.0.0.2");
    EXPECT_TRUE(info(1).active);
    EXPECT_FALSE(info(2).active);
    set_up("p0", false);
    EXPECT_EQ(paths("192.0.2.9", "p1"), "none");
    EXPECT_FALSE(info(10).active);
    set_up("p1", true);
    EXPECT_EQ(paths("192.0.2.9"), "10.0.1.2");
    set_up("p0", true);
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2 x1, 10.0.1.2 x3");
    EXPECT_EQ(paths("203.0.113.9"), "10.0.0.2 x1, 10.0.1.2 x3");
}

TEST_F(NextHopObjectsTest, Check_37_SubnetGoneIsAsGoodAsDown) {
    nexthop(1, over("10.0.1.2"));
    route_over("192.0.2.0/24", 1);
    expect_ok(engine->delete_address(netns(), "p1", interface("10.0.1.1/24")));
    EXPECT_EQ(paths("192.0.2.9"), "none");
    expect_ok(engine->add_address(netns(), "p1", interface("10.0.1.1/24")));
    EXPECT_EQ(paths("192.0.2.9"), "10.0.1.2");
}

TEST_F(NextHopObjectsTest, Check_38_OneInSeveralGroups) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(10, group({{1, 1}, {2, 1}}));
    nexthop(11, group({{1, 1}, {2, 3}}));
    route_over("192.0.2.0/24", 10);
    route_over("198.51.100.0/24", 11);
    EXPECT_EQ(paths("198.51.100.9"), "10.0.0.2 x1, 10.0.1.2 x3");
    expect_ok(engine->delete_nexthop(netns(), 2));
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2");
    EXPECT_EQ(paths("198.51.100.9"), "10.0.0.2");
}

TEST_F(NextHopObjectsTest, Check_42_DeviceAloneAndInAGroup) {
    nexthop(1, dev("p0"));
    nexthop(2, over("10.0.1.2"));
    nexthop(10, group({{1, 1}, {2, 1}}));
    route_over("192.0.2.0/24", 1);
    route_over("198.51.100.0/24", 10);
    EXPECT_EQ(paths("192.0.2.9"), "dev p0");
    EXPECT_EQ(paths("198.51.100.9"), "10.0.1.2 x1, dev p0 x1");
}

TEST_F(NextHopObjectsTest, Check_44_45_46_Ipv4OverIpv6Gateways) {
    nexthop(1, over("fe80::9", "p1"));
    nexthop(2, over("10.0.0.2"));
    nexthop(10, group({{1, 1}, {2, 1}}));
    route_over("0.0.0.0/0", 1);
    route_over("192.0.2.0/24", 10);
    EXPECT_EQ(paths("203.0.113.9"), "fe80::9");
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2 x1, fe80::9 x1");
    const fib::Dst& d = shared.dsts[shared.groups[value_of("203.0.113.9")]->pick(0, 0)];
    EXPECT_EQ(d.rewrite[12] << 8 | d.rewrite[13], net::kEtherTypeIpv4);
}

TEST_F(NextHopObjectsTest, Check_43_NoIpv4GatewayServesIpv6Routes) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("fd00:1::2"));
    nexthop(3, over("fd00::2"));
    nexthop(10, group({{1, 1}, {2, 1}}));
    nexthop(11, group({{2, 1}, {3, 1}}));
    unchanged([&] { return add_over("2001:db8::/48", 1); }, ErrorCode::kInvalid);
    unchanged([&] { return add_over("2001:db8::/48", 10); }, ErrorCode::kInvalid);
    route_over("2001:db8::/48", 11);
    EXPECT_EQ(paths("2001:db8::9"), "fd00:1::2 x1, fd00::2 x1");
    unchanged([&] { return engine_replace(2, over("10.0.1.2")); }, ErrorCode::kInvalid);
    unchanged([&] { return engine_replace(11, group({{1, 1}, {2, 1}})); }, ErrorCode::kInvalid);
    EXPECT_EQ(paths("2001:db8::9"), "fd00:1::2 x1, fd00::2 x1");
    replace(10, group({{2, 1}}));
    route_over("2001:db8:1::/48", 10);
    EXPECT_EQ(paths("2001:db8:1::9"), "fd00:1::2");
}

TEST_F(NextHopObjectsTest, Check_50_ThirtyTwoMembers) {
    std::map<std::uint32_t, std::uint32_t> members;
    for (std::uint32_t id = 1; id <= 32; ++id) {
        nexthop(id, over(fmt::format("10.0.1.{}", id + 1)));
        members[id] = 1;
    }
    nexthop(100, group(members));
    route_over("192.0.2.0/24", 100);
    const NextHopInfo shown = info(100);
    ASSERT_EQ(shown.members.size(), 32U);
    for (const auto& member : shown.members) {
        EXPECT_EQ(member.buckets, 1U);
    }
}

TEST_F(NextHopObjectsTest, Check_35_39_40_41_RefusedAndNothingChanged) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(3, blackhole());
    nexthop(10, group({{1, 1}, {2, 1}}));
    nexthop(12, resilient({{1, 1}, {2, 1}}, 64, 120'000));
    route_over("192.0.2.0/24", 10);
    route_over("198.51.100.0/24", 1);
    config::NextHop group_with_dev = group({{1, 1}});
    group_with_dev.dev = "p0";
    config::NextHop blackhole_with_dev = blackhole();
    blackhole_with_dev.dev = "p0";
    config::NextHop lone_resilient = over("10.0.0.7");
    lone_resilient.resilient = config::ResilientGroup{};
    struct Case {
        std::string name;
        std::uint32_t id;
        config::NextHop hop;
        bool replace;
        ErrorCode code = ErrorCode::kInvalid;
    };
    const std::vector<Case> cases{
        {"35: blackhole with another", 20, group({{1, 1}, {3, 1}}), false},
        {"35: a member becomes a blackhole", 1, blackhole(), true},
        {"39: unknown id", 20, group({{1, 1}, {99, 1}}), false, ErrorCode::kNotFound},
        {"39: group inside group", 20, group({{10, 1}}), false},
        {"39: group with device", 20, group_with_dev, false},
        {"39: weight 0", 20, group({{1, 0}}), false},
        {"39: weight 65536", 20, group({{1, 65536}}), false},
        {"40: next hop becomes a group", 1, group({{2, 1}}), true},
        {"40: group becomes a next hop", 10, over("10.0.0.9"), true},
        {"41: gateway in no subnet", 20, over("203.0.113.1"), false},
        {"41: gateway not on the port", 20, over("10.0.0.9", "p1"), false},
        {"41: link-local without port", 20, over("fe80::1"), false},
        {"41: duplicate id", 1, over("10.0.0.3"), false, ErrorCode::kExists},
        {"41: no such port", 20, over("10.0.0.9", "p9"), false, ErrorCode::kNotFound},
        {"57: other bucket count", 12, resilient({{1, 1}}, 128, 120'000), true},
        {"57: no longer resilient", 12, group({{1, 1}}), true},
        {"57: becomes resilient", 10, resilient({{1, 1}}, 64, 120'000), true},
        {"buckets no power of two", 20, resilient({{1, 1}}, 100, 0), false},
        {"buckets 0", 20, resilient({{1, 1}}, 0, 0), false},
        {"76: own address", 20, over("10.0.0.1"), false},
        {"76: own address, on-link", 20, on_link("10.0.0.1", "p0"), false},
        {"76: multicast gateway", 20, on_link("224.0.0.5", "p0"), false},
        {"76: on-link without port", 20, on_link("203.0.113.1", ""), false},
        {"id 0", 0, over("10.0.0.3"), false},
        {"nothing", 20, config::NextHop{}, false},
        {"blackhole with device", 20, blackhole_with_dev, false},
        {"resilient without group", 20, lone_resilient, false},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        unchanged(
            [&] { return engine->add_nexthop(netns(), c.id, c.hop, RouteOwner::kCli, c.replace); },
            c.code);
    }
    unchanged([&] { return engine->delete_nexthop(netns(), 20); }, ErrorCode::kNotFound);
    unchanged([&] { return add_over("203.0.113.0/24", 20); }, ErrorCode::kNotFound);
}

TEST_F(NextHopObjectsTest, Check_41_PortDownOrWithoutCarrier) {
    set_up("p1", false);
    unchanged([&] { return engine_add(1, over("10.0.1.2", "p1")); }, ErrorCode::kInvalid);
    // A file is taken as it is; the next hop waits.
    expect_ok(engine->add_nexthop(netns(), 1, over("10.0.1.2", "p1"), RouteOwner::kFile, false));
    EXPECT_FALSE(info(1).active);
    set_up("p1", true);
    EXPECT_TRUE(info(1).active);
    plane.hardware.link_up = false;
    engine->poll_links();
    unchanged([&] { return engine_add(2, over("10.0.1.2", "p1")); }, ErrorCode::kInvalid);
}

TEST_F(NextHopObjectsTest, Check_41_75_OnLinkGatewayNeedNotBeReachable) {
    nexthop(1, on_link("203.0.113.1", "p1"));
    route_over("192.0.2.0/24", 1);
    EXPECT_EQ(paths("192.0.2.9"), "203.0.113.1");
    nexthop(2, over("10.0.0.9"));
    EXPECT_EQ(info(2).hop.dev, "p0") << "found by its subnet";
}

TEST_F(NextHopObjectsTest, Check_145_NetdevDeletedAndMadeAgain) {
    nexthop(1, over("10.0.1.2"));
    nexthop(2, over("10.0.0.2"));
    nexthop(10, group({{1, 1}, {2, 1}}));
    route_over("192.0.2.0/24", 10);
    route_over("198.51.100.0/24", 1);
    const std::string p1 = "p1";
    ASSERT_TRUE(engine->delete_netdevs(netns(), std::span(&p1, 1)));
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2");
    EXPECT_EQ(paths("198.51.100.9"), "none");
    EXPECT_EQ(ids(), "2 10");
    settle();
    add_port("p1", "02:00:00:00:00:02");
    expect_ok(engine->add_address(netns(), "p1", interface("10.0.1.1/24")));
    nexthop(1, over("10.0.1.2"));
    replace(10, group({{1, 1}, {2, 1}}));
    route_over("198.51.100.0/24", 1);
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2 x1, 10.0.1.2 x1");
    EXPECT_EQ(paths("198.51.100.9"), "10.0.1.2");
    EXPECT_EQ(paths("198.51.100.9"), "10.0.1.2");
}

TEST_F(NextHopObjectsTest, U_09_ManyRoutesOfADeletedNextHopGoInSlices) {
    nexthop(1, over("10.0.1.2"));
    nexthop(2, over("10.0.0.2"));
    constexpr unsigned kRoutes = 5000;
    const auto to = [](unsigned i) { return fmt::format("20.{}.{}.0/24", i / 256, i % 256); };
    for (unsigned i = 0; i < kRoutes; ++i) {
        route_over(to(i), 1);
    }
    expect_ok(engine->delete_nexthop(netns(), 1));
    // Nothing is sent over it from here on, and its prefixes may be had again at once.
    for (const std::string_view address : {"20.0.0.1", "20.19.135.1"}) {
        const std::string left = paths(address);
        EXPECT_TRUE(left == "none" || left == "no member") << left;
    }
    nexthop(1, over("10.0.1.3"));
    route_over(to(0), 1);
    route_over(to(kRoutes - 1), 2);
    while (engine->work()) {
    }
    settle();
    EXPECT_EQ(paths("20.0.0.1"), "10.0.1.3");
    EXPECT_EQ(paths("20.0.1.1"), "none");
    EXPECT_EQ(paths("20.19.135.1"), "10.0.0.2");
    EXPECT_EQ(info(1).routes, 1U);
    EXPECT_EQ(shared.groups.in_use(), 2U);
}

TEST_F(NextHopObjectsTest, G_04_SurvivorsArePublishedThenTheGenerationThenTheRelease) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(10, group({{1, 1}, {2, 1}}));
    route_over("192.0.2.0/24", 10);
    settle();
    const std::uint32_t value = value_of("192.0.2.9");
    const fib::Group* old = shared.groups[value];
    const auto dsts = shared.dsts.in_use();
    const auto stamp4 = netns().generations4.stamp(ip("203.0.113.1").v4());
    const auto stamp6 = netns().generations6.stamp(ip("2001:db8::1").v6());
    expect_ok(engine->delete_nexthop(netns(), 2));
    EXPECT_NE(netns().generations4.stamp(ip("203.0.113.1").v4()), stamp4) << "the whole netns";
    EXPECT_NE(netns().generations6.stamp(ip("2001:db8::1").v6()), stamp6);
    EXPECT_NE(shared.groups[value], old);
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2");
    // Check 157: whoever still reads the old group reads it whole, and its dsts are not reused.
    EXPECT_EQ(old->mask, 1U);
    EXPECT_NE(old->buckets[0].dst.load(), old->buckets[1].dst.load());
    EXPECT_EQ(shared.dsts.in_use(), dsts);
    settle();
    EXPECT_EQ(shared.dsts.in_use(), dsts - 1);
}

TEST_F(NextHopObjectsTest, G_03_ReplacementBumpsOnceAndAQuestionNever) {
    nexthop(1, over("10.0.0.2"));
    route_over("192.0.2.0/24", 1);
    const auto before = changes.bumps();
    replace(1, over("10.0.1.2"));
    EXPECT_EQ(changes.bumps(), before + 2) << "one of each family";
    static_cast<void>(info(1));
    EXPECT_EQ(changes.bumps(), before + 2);
}

TEST_F(NextHopObjectsTest, Check_58_CountersFollowTheNextHopAndStartFromZero) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(10, group({{1, 1}, {2, 3}}));
    route_over("192.0.2.0/24", 10);
    send("192.0.2.9", 640);
    EXPECT_EQ(info(1).packets, 160U);
    EXPECT_EQ(info(2).packets, 480U);
    EXPECT_EQ(info(10).packets, 640U);
    // A replaced next hop goes on counting where it was.
    replace(1, over("10.0.0.3"));
    send("192.0.2.9", 640);
    EXPECT_EQ(info(1).packets, 320U);
    // Its place is another's only after a grace period, and then starts from zero.
    const fib::Group* late = shared.groups[value_of("192.0.2.9")];
    expect_ok(engine->delete_nexthop(netns(), 1));
    nexthop(3, over("10.0.0.4"));
    for (std::uint32_t hash = 0; hash <= late->mask; ++hash) {  // a worker in its last round
        stats::bump(plane.blocks[0].next_hop(shared.dsts[late->pick(hash, 0)].counter));
    }
    EXPECT_EQ(info(3).packets, 0U);
    settle();
    nexthop(4, over("10.0.0.5"));
    route_over("198.51.100.0/24", 4);
    EXPECT_EQ(info(4).packets, 0U);
    send("198.51.100.9", 5);
    EXPECT_EQ(info(4).packets, 5U);
}

TEST_F(NextHopObjectsTest, RoutesAreCountedAndShown) {
    nexthop(1, over("10.0.0.2"));
    route_over("192.0.2.0/24", 1);
    route_over("198.51.100.0/24", 1);
    EXPECT_EQ(info(1).routes, 2U);
    RouteQuery query;
    query.destination = ip("192.0.2.9");
    const auto found = engine->lookup_route(netns(), query);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->nexthop, 1U);
    EXPECT_EQ(found->source, ip("10.0.0.1"));
    expect_ok(engine->delete_route(netns(), over_object("192.0.2.0/24", 1)));
    expect_ok(engine->delete_route(netns(), over_object("198.51.100.0/24", 1)));
    EXPECT_EQ(info(1).routes, 0U);
    settle();
    EXPECT_EQ(shared.groups.in_use(), 0U) << "a group is there while a route is";
}

TEST_F(NextHopObjectsTest, X_04_NothingIsLeftOfManyChanges) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(10, group({{1, 1}, {2, 1}}));
    settle();
    const std::string before = dump();
    for (int round = 0; round < 50; ++round) {
        nexthop(3, over("10.0.1.3"));
        nexthop(11, resilient({{1, 1}, {2, 2}, {3, 3}}, 64, 0));
        route_over("192.0.2.0/24", 10);
        route_over("2001:db8::/48", 10, RouteMode::kAdd, "invalid");
        route_over("198.51.100.0/24", 11);
        replace(11, resilient({{1, 1}, {3, 1}}, 64, 0));
        replace(3, blackhole(), "invalid");
        replace(3, over("fd00:1::3"));
        set_up("p1", false);
        set_up("p1", true);
        expect_ok(engine->delete_nexthop(netns(), 3));
        expect_ok(engine->delete_route(netns(), over_object("192.0.2.0/24", 10)));
        expect_ok(engine->delete_nexthop(netns(), 11));
        settle();
    }
    EXPECT_EQ(dump(), before);
    EXPECT_EQ(shared.groups.in_use(), 0U);
}

// --- resilient ----------------------------------------------------------------------------------

TEST_F(NextHopObjectsTest, Check_54_TimerZeroFollowsTheWeightsAtOnce) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(10, resilient({{1, 1}, {2, 1}}, 64, 0));
    route_over("192.0.2.0/24", 10);
    use_all_buckets("192.0.2.9");
    replace(10, resilient({{1, 3}, {2, 1}}, 64, 0));
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2 x3, 10.0.1.2 x1");
}

TEST_F(NextHopObjectsTest, Check_55_56_BucketsMoveWhenTheyWereIdle) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(10, resilient({{1, 1}, {2, 1}}, 64, 5'000));
    route_over("192.0.2.0/24", 10);
    use_all_buckets("192.0.2.9");
    replace(10, resilient({{1, 3}, {2, 1}}, 64, 5'000));
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2 x1, 10.0.1.2 x1") << "in use";
    pass_seconds(5);
    engine->tick();
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2 x1, 10.0.1.2 x1");
    pass_seconds(1);
    engine->tick();
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.2 x3, 10.0.1.2 x1");
    EXPECT_EQ(info(10).members[0].buckets, 48U);
}

TEST_F(NextHopObjectsTest, Check_57_144_OnlyTheBucketsOfWhoIsGoneMove) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(3, over("10.0.1.3"));
    nexthop(10, resilient({{1, 1}, {2, 1}, {3, 1}}, 64, 120'000));
    route_over("192.0.2.0/24", 10);
    use_all_buckets("192.0.2.9");
    const auto before = buckets("192.0.2.9");
    expect_ok(engine->delete_nexthop(netns(), 3));
    const auto after = buckets("192.0.2.9");
    std::size_t moved = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (before[i] == "10.0.1.3") {
            EXPECT_NE(after[i], "10.0.1.3");
            ++moved;
        } else {
            EXPECT_EQ(after[i], before[i]);
        }
    }
    EXPECT_EQ(moved, 21U);
    // Check 144: a third path takes nothing that is in use.
    nexthop(4, over("10.0.1.4"));
    replace(10, resilient({{1, 1}, {2, 1}, {4, 1}}, 64, 120'000));
    EXPECT_EQ(buckets("192.0.2.9"), after);
    pass_seconds(121);
    engine->tick();
    EXPECT_EQ(info(10).members[2].buckets, 21U);
    // Nor does a port that was down for a moment get other than its own back.
    use_all_buckets("192.0.2.9");
    const auto settled = buckets("192.0.2.9");
    set_up("p0", false);
    set_up("p0", true);
    const auto back = buckets("192.0.2.9");
    for (std::size_t i = 0; i < back.size(); ++i) {
        if (settled[i] != "10.0.0.2") {
            EXPECT_EQ(back[i], settled[i]);
        }
    }
}

TEST_F(NextHopObjectsTest, ResilientBucketIsRepointedWhenItsMemberIsReplaced) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, over("10.0.1.2"));
    nexthop(10, resilient({{1, 1}, {2, 1}}, 64, 120'000));
    route_over("192.0.2.0/24", 10);
    use_all_buckets("192.0.2.9");
    replace(1, over("10.0.0.3"));
    EXPECT_EQ(paths("192.0.2.9"), "10.0.0.3 x1, 10.0.1.2 x1");
}

}  // namespace
}  // namespace sluice::control::test
