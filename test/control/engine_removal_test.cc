// SPDX-License-Identifier: BSD-3-Clause
// Netdevs that go: what is re-pointed, visited and bumped, and who waits (dst.md U, G, X).
#include <atomic>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "control/policies.h"
#include "engine_fixture.h"

namespace sluice::control::test {
namespace {

class EngineRemoval : public EngineTest {
protected:
    EngineRemoval() { add_bench(); }

    Ticket remove(std::vector<std::string> names) {
        const auto ticket = engine->delete_netdevs(ns(), names);
        expect_ok(ticket);
        return *ticket;
    }
    /// A host on the netdev's link that answered.
    void add_host(std::string_view dev, const net::IpAddr& address) {
        expect_ok(engine->add_neighbor(ns(), std::string(dev), address, kHostMac, now));
    }
    static bool gone(const fib::Dst& d) { return (d.state.load() & fib::Dst::kGone) != 0; }
};

TEST_F(EngineRemoval, U_01_HostsAreListedForTheWorkerThatAskedAndDisplacedOnesUntilNobodyHasThem) {
    const auto& uncached = engine->uncached();
    EXPECT_EQ(uncached.size(), 0U);
    add_host("p1", ip("10.0.1.9"));
    EXPECT_EQ(uncached.count(0, net::Family::kIpv4, netdev("p1").id), 1U);
    add(via("192.0.2.0/24", "10.0.1.2"));
    EXPECT_EQ(uncached.size(), 1U) << "a next hop's dst is not uncached";
    expect_ok(engine->delete_route(ns(), via("192.0.2.0/24", "10.0.1.2")));
    EXPECT_EQ(uncached.size(), 2U) << "displaced, and a worker may have it";
    expect_ok(engine->delete_neighbor(ns(), "p1", ip("10.0.1.9")));
    EXPECT_EQ(uncached.size(), 2U);
    settle();
    EXPECT_EQ(uncached.size(), 0U);
}

TEST_F(EngineRemoval, U_04_WhoStillHoldsADstFindsItRePointed) {
    add(via("192.0.2.0/24", "10.0.1.2"));
    add_host("p1", ip("10.0.1.9"));
    const fib::Dst& hop = dst("192.0.2.9");
    const fib::Dst& host_dst = *host("p1", "10.0.1.9");
    const fib::Dst& other = dst("10.0.0.9");
    add(via("198.51.100.0/24", "10.0.1.3"));
    const fib::Dst& displaced = dst("198.51.100.9");
    expect_ok(engine->delete_route(ns(), via("198.51.100.0/24", "10.0.1.3")));
    remove({"p1"});
    EXPECT_TRUE(gone(hop));
    EXPECT_TRUE(gone(host_dst));
    EXPECT_TRUE(gone(displaced));
    EXPECT_FALSE(gone(other));
}

TEST_F(EngineRemoval, U_06_NoVisitToWhatIsOnOtherNetdevs) {
    for (unsigned i = 2; i < 250; ++i) {
        add_host("p0", ip(fmt::format("10.0.0.{}", i)));
    }
    add_vlan("v1", "p1", 1);
    add_vlan("v2", "p1", 2);
    remove({"v1", "v2"});
    EXPECT_EQ(engine->uncached().visits(), 0U);
    add_host("p1", ip("10.0.1.9"));
    remove({"p1"});
    EXPECT_LE(engine->uncached().visits(), 8U) << "its host and its own routes' dsts";
}

TEST_F(EngineRemoval, U_07_G_03_ABatchBumpsOnce) {
    std::vector<std::string> names;
    for (std::uint16_t i = 1; i <= 36; ++i) {
        names.push_back(fmt::format("v{}", i));
        add_vlan(names.back(), "p0", i);
        expect_ok(
            engine->add_address(ns(), names.back(), interface(fmt::format("10.9.{}.1/24", i))));
    }
    settle();
    const std::uint64_t before = changes.bumps();
    const Ticket ticket = remove(names);
    EXPECT_EQ(changes.bumps(), before + 2) << "one of each family";
    settle();
    EXPECT_TRUE(engine->settled(ticket));
    EXPECT_TRUE(engine->draining().empty());
}

/// Every look at the clock takes 100 us.
class EngineSlices : public EngineTest {
protected:
    EngineSlices() : EngineTest(1, {}, std::chrono::microseconds(100)) { add_bench(); }
};

TEST_F(EngineSlices, U_09_OthersAreServedWhileAMillionRoutesWouldBeWithdrawn) {
    for (unsigned i = 0; i < 2000; ++i) {
        add(via(fmt::format("100.{}.{}.0/24", 64 + i / 250, i % 250), "10.0.1.2"));
    }
    add(via("0.0.0.0/0", "10.0.0.2"));
    const auto ticket = engine->delete_netdevs(ns(), std::vector<std::string>{"p1"});
    ASSERT_TRUE(ticket.has_value());
    settle();
    EXPECT_FALSE(engine->settled(*ticket));
    ASSERT_FALSE(engine->draining().empty());
    EXPECT_EQ(engine->draining().front().name, "p1");
    EXPECT_GT(engine->draining().front().dsts, 0U);

    // Nobody sees what is about to go, and it is in nobody's way.
    std::size_t shown = 0;
    engine->for_each_route(ns(), config::kMainTable, [&](const RouteInfo& r) {
        shown += r.via == ip("10.0.1.2") ? 1 : 0;
    });
    EXPECT_EQ(shown, 0U);
    EXPECT_EQ(code(engine->delete_route(ns(), via("100.71.249.0/24", "10.0.1.2"))), "not_found");
    add(via("100.71.249.0/24", "10.0.0.3"));
    add_port("p2", "02:00:00:00:00:09");

    const std::uint64_t before = changes.bumps();
    std::size_t slices = 0;
    while (engine->work()) {
        ++slices;
    }
    EXPECT_GT(slices, 5U);
    EXPECT_GT(changes.bumps(), before) << "destinations fall back to other routes";
    settle();
    EXPECT_TRUE(engine->settled(*ticket));
    EXPECT_TRUE(engine->draining().empty());
    EXPECT_EQ(route("100.64.0.9"), "unicast via 10.0.0.2 dev p0");
    EXPECT_EQ(route("100.71.249.9"), "unicast via 10.0.0.3 dev p0");
}

TEST_F(EngineSlices, U_09_ANetnsThatEndsWhileItsNetdevsDrain) {
    Netns& blue = **engine->add_netns("blue");
    expect_ok(engine->move_link(ns(), "p1", blue));
    expect_ok(engine->add_address(blue, "p1", interface("10.0.1.1/24")));
    settle();
    const std::size_t dsts = shared.dsts.in_use();
    for (unsigned i = 0; i < 1000; ++i) {
        expect_ok(
            engine->add_route(blue,
                              via(fmt::format("100.{}.{}.0/24", 64 + i / 250, i % 250), "10.0.1.2"),
                              RouteMode::kAdd));
    }
    const auto moved = engine->move_link(blue, "p1", ns());
    ASSERT_TRUE(moved.has_value());
    const auto ended = engine->delete_netns(blue);
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(engine->netns().find("blue"), nullptr);
    ASSERT_TRUE(engine->add_netns("blue").has_value()) << "its name is free at once";
    EXPECT_FALSE(engine->settled(*ended));
    while (engine->work()) {
        settle();
    }
    settle();
    EXPECT_TRUE(engine->settled(*moved));
    EXPECT_TRUE(engine->settled(*ended));
    EXPECT_LE(shared.dsts.in_use(), dsts);
    EXPECT_TRUE(engine->draining().empty());
}

TEST_F(EngineRemoval, X_01_NothingRefersToWhatWasRemoved) {
    const std::size_t before = shared.dsts.in_use();
    for (int round = 0; round < 20; ++round) {
        add_port("p2", "02:00:00:00:00:09");
        expect_ok(engine->add_address(ns(), "p2", interface("10.2.0.1/24")));
        expect_ok(engine->add_address(ns(), "p2", interface("fd00:2::1/64")));
        add(via("192.0.2.0/24", "10.2.0.2"));
        add(via("2001:db8::/32", "fd00:2::2"));
        add_host("p2", ip("10.2.0.9"));
        resolve("p2", "fd00:2::9");
        const Ticket ticket = remove({"p2"});
        EXPECT_FALSE(engine->draining().empty());
        settle();
        EXPECT_TRUE(engine->settled(ticket));
        EXPECT_TRUE(engine->draining().empty());
        EXPECT_EQ(shared.dsts.in_use(), before);
        EXPECT_EQ(engine->uncached().size(), 0U);
        EXPECT_EQ(shared.neighbors.size(), 0U);
    }
}

// --- generations --------------------------------------------------------------------------------

TEST_F(EngineRemoval, G_01_G_02_AllStartEqualAndNeverMeetAgain) {
    Netns& a = **engine->add_netns("a");
    Netns& b = **engine->add_netns("b");
    const auto stamp = [](const Netns& netns, std::string_view address) {
        return netns.generations4.stamp(ip(address).v4());
    };
    EXPECT_EQ(stamp(a, "192.0.2.1"), stamp(b, "192.0.2.1"));
    expect_ok(engine->add_route(a, typed("192.0.2.0/24", "blackhole"), RouteMode::kAdd));
    EXPECT_NE(stamp(a, "192.0.2.1"), stamp(b, "192.0.2.1"));
    expect_ok(engine->add_route(b, typed("192.0.2.0/24", "blackhole"), RouteMode::kAdd));
    EXPECT_NE(stamp(a, "192.0.2.1"), stamp(b, "192.0.2.1"));
    EXPECT_NE(stamp(b, "192.0.2.1"), fib::GenerationSequence::kInitial);
}

TEST_F(EngineRemoval, G_03_WhatBumpsWhat) {
    add_vlan("v", "p1", 7);
    expect_ok(engine->add_vrf(ns(), "blue", 100));
    add_host("p1", ip("10.0.1.9"));
    const auto settings = [&](auto&& change) {
        config::NetdevSettings to = netdev("p1").settings;
        change(to);
        return engine->change_netdev(ns(), "p1", to);
    };
    struct Case {
        std::string name;
        std::function<Result<void>()> change;
        bool here, elsewhere, v6;  // 192.0.2.1, 198.51.100.1, 2001:db8::1
    };
    config::Rule rule;
    rule.priority = 5;
    rule.from = prefix("10.0.0.0/8");
    rule.table = 100;
    config::NextHop blackhole;
    blackhole.blackhole = true;
    const auto add_it = [&](RouteRequest r) { return engine->add_route(ns(), r, RouteMode::kAdd); };
    auto in_table = via("192.0.2.0/24", "10.0.1.2");
    in_table.table = 77;
    const std::vector<Case> cases{
        {"route", [&] { return add_it(via("192.0.2.0/24", "10.0.1.2")); }, true, false, false},
        {"route again, refused",
         [&] { return add_it(via("192.0.2.0/24", "10.0.1.2")); },
         false,
         false,
         false},
        {"route replaced",
         [&] {
             return engine->add_route(ns(), via("192.0.2.0/24", "10.0.1.3"), RouteMode::kReplace);
         },
         true,
         false,
         false},
        {"route replaced by itself",
         [&] {
             return engine->add_route(ns(), via("192.0.2.0/24", "10.0.1.3"), RouteMode::kReplace);
         },
         false,
         false,
         false},
        {"route deleted",
         [&] { return engine->delete_route(ns(), via("192.0.2.0/24", "10.0.1.3")); },
         true,
         false,
         false},
        {"route in another table", [&] { return add_it(in_table); }, true, false, false},
        {"IPv6 route",
         [&] { return add_it(via("2001:db8::/48", "fd00:1::2")); },
         false,
         false,
         true},
        {"address",
         [&] { return engine->add_address(ns(), "p1", interface("10.7.0.1/24")); },
         true,
         true,
         true},
        {"address deleted",
         [&] { return engine->delete_address(ns(), "p1", interface("10.7.0.1/24")); },
         true,
         true,
         true},
        {"down", [&] { return settings([](auto& to) { to.up = false; }); }, true, true, true},
        {"up", [&] { return settings([](auto& to) { to.up = true; }); }, true, true, true},
        {"up again", [&] { return settings([](auto& to) { to.up = true; }); }, false, false, false},
        {"mtu", [&] { return settings([](auto& to) { to.mtu = 1600; }); }, true, true, true},
        {"mtu refused",
         [&] { return settings([](auto& to) { to.mtu = 67; }); },
         false,
         false,
         false},
        {"flag",
         [&] {
             return settings(
                 [](auto& to) { to.source_validation = config::SourceValidation::kStrict; });
         },
         true,
         true,
         true},
        {"vrf", [&] { return engine->set_vrf(ns(), "v", "blue"); }, true, true, true},
        {"rule", [&] { return engine->add_rule(ns(), rule, RouteOwner::kCli); }, true, true, true},
        {"rule deleted", [&] { return engine->delete_rule(ns(), rule); }, true, true, true},
        {"next hop",
         [&] { return engine->add_nexthop(ns(), 1, blackhole, RouteOwner::kCli, false); },
         true,
         true,
         true},
        {"neighbor of elsewhere",
         [&] { return engine->delete_neighbor(ns(), "p1", ip("10.0.1.9")); },
         false,
         false,
         false},
    };
    const auto stamps = [&] {
        return std::array{ns().generations4.stamp(ip("192.0.2.1").v4()),
                          ns().generations4.stamp(ip("198.51.100.1").v4()),
                          ns().generations6.stamp(ip("2001:db8::1").v6())};
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const auto before = stamps();
        static_cast<void>(c.change());
        const auto after = stamps();
        EXPECT_EQ(after[0] != before[0], c.here);
        EXPECT_EQ(after[1] != before[1], c.elsewhere);
        EXPECT_EQ(after[2] != before[2], c.v6);
    }
}

TEST_F(EngineRemoval, G_03_AHostsDstIsStaleBeforeItsIndexIsReused) {
    add_host("p1", ip("10.0.1.9"));
    const auto stamp = [&] { return ns().generations4.stamp(ip("10.0.1.9").v4()); };
    const auto before = stamp();
    expect_ok(engine->delete_neighbor(ns(), "p1", ip("10.0.1.9")));
    EXPECT_NE(stamp(), before);
}

TEST_F(EngineRemoval, G_04_WhatIsDeferredWaitsForTheBump) {
    bool freed = false;
    {
        const Changes::Scope change(changes);
        changes.defer([&] { freed = true; });
        settle();
        EXPECT_FALSE(freed) << "its grace period has not begun";
        changes.all(ns());
    }
    settle();
    EXPECT_TRUE(freed);
}

TEST(ChangesTest, G_01_WhenStampsStartOverEveryNetnsGetsAnotherFirst) {
    dpdk::RcuDomain rcu;
    Changes narrow(rcu, 16);
    std::atomic<std::uint32_t> epoch = 7;
    narrow.set_epoch(epoch);
    Netns busy;
    Netns idle;
    narrow.every_netns = [&](const auto& fn) {
        fn(busy);
        fn(idle);
    };
    std::set<fib::Stamp> halves;
    for (int i = 0; i < 200; ++i) {
        const auto before = idle.generations4.whole();
        const auto epoch_before = epoch.load();
        const auto own = busy.generations4.whole();
        const Changes::Scope change(narrow);
        narrow.prefix(busy, prefix("192.0.2.0/24"));
        narrow.all(busy);
        {
            const Changes::Scope inner(narrow);
        }
        narrow.all_now(busy);
        const bool wrapped = epoch.load() != epoch_before;
        EXPECT_EQ(idle.generations4.whole() != before, wrapped);
        EXPECT_NE(busy.generations4.whole(), own);
        EXPECT_NE(busy.generations4.whole(), idle.generations4.whole());
        if (wrapped) {
            halves.insert(idle.generations4.whole());
        }
    }
    EXPECT_GT(epoch.load(), 7U);
    EXPECT_GE(halves.size(), 2U);
    EXPECT_FALSE(halves.contains(fib::GenerationSequence::kInitial));
}

TEST(ChangesTest, G_03_ManyPrefixesAreOneBumpOfAll) {
    dpdk::RcuDomain rcu;
    Changes changes(rcu);
    Netns netns;
    const auto stamp = [&](std::string_view address) {
        return netns.generations4.stamp(ip(address).v4());
    };
    {
        const Changes::Scope change(changes);
        const Changes::Scope inner(changes);
        for (unsigned i = 0; i < 20; ++i) {
            changes.prefix(netns, prefix(fmt::format("100.{}.0.0/24", i)));
        }
    }
    EXPECT_EQ(changes.bumps(), 1U);
    EXPECT_NE(stamp("100.7.0.1"), fib::GenerationSequence::kInitial);
    EXPECT_EQ(netns.generations6.whole(), fib::GenerationSequence::kInitial);
    EXPECT_EQ(netns.generations4.whole(), fib::GenerationSequence::kInitial);
    {
        const Changes::Scope change(changes);
        for (unsigned i = 0; i < 100; ++i) {
            changes.prefix(netns, prefix(fmt::format("100.{}.0.0/24", i)));
        }
    }
    EXPECT_NE(netns.generations4.whole(), fib::GenerationSequence::kInitial);
}

TEST_F(EngineRemoval, C_51_FlushCacheMakesAllStaleEverywhere) {
    Netns& blue = **engine->add_netns("blue");
    const auto epoch = shared.cache_epoch.load();
    const auto before = blue.generations6.whole();
    engine->flush_cache();
    EXPECT_NE(shared.cache_epoch.load(), epoch);
    EXPECT_NE(blue.generations6.whole(), before);
}

}  // namespace
}  // namespace sluice::control::test
