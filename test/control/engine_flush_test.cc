// SPDX-License-Identifier: BSD-3-Clause
// What a user clears goes in slices, so that no other request waits for it (U-08, U-09).
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine_fixture.h"

namespace sluice::control::test {
namespace {

constexpr std::size_t kMany = 3000;

class EngineFlush : public EngineTest {
protected:
    /// A slice is over after some 25 looks at the clock.
    EngineFlush() : EngineTest(1, {}, std::chrono::microseconds(20)) { add_bench(); }

    static RouteRequest numbered(std::size_t i, bool v4, RouteOwner owner = RouteOwner::kCli) {
        auto route = v4 ? via(fmt::format("100.{}.{}.0/24", 64 + i / 256, i % 256), "10.0.1.2")
                        : via(fmt::format("2001:db8:{:x}::/48", i), "fd00:1::2");
        route.owner = owner;
        return route;
    }
    std::size_t routes(std::uint32_t table = config::kMainTable) {
        std::size_t count = 0;
        engine->for_each_route(ns(), table, [&](const RouteInfo&) { ++count; });
        return count;
    }
    void learn(std::string_view dev, const std::string& address) {
        resolve(dev, address);
        engine->neighbors().table().observe(
            {netdev(dev).id, ip(address)}, {.mac = kHostMac, .solicited = true}, now);
    }
};

TEST_F(EngineFlush, U_08_RoutesOfOneOwnerGoInSlices) {
    const std::size_t others = routes();
    for (std::size_t i = 0; i < kMany; ++i) {
        add(numbered(i, true));
        add(numbered(i, false));
        auto route = numbered(i, true);
        route.table = 100;
        add(route);
        if (i % 3 == 0) {
            add(numbered(i, true, RouteOwner::kFile));
        }
    }
    const auto stamp = ns().generations4.stamp(ip("100.64.0.1").v4());
    const Flush flush = engine->flush_routes(ns(), RouteOwner::kCli);
    EXPECT_GT(*flush.removed, 0U);
    EXPECT_LT(*flush.removed, kMany);
    EXPECT_NE(ns().generations4.stamp(ip("100.64.0.1").v4()), stamp) << "of a slice's own";
    EXPECT_FALSE(engine->settled(flush.ticket));
    std::size_t slices = 0;
    std::size_t last = *flush.removed;
    while (engine->work()) {
        ++slices;
        EXPECT_LE(*flush.removed - last, 1000U) << "in one slice";
        last = *flush.removed;
        // Others go on meanwhile, right where the flush is.
        auto passing = numbered(kMany + slices, true, RouteOwner::kFile);
        add(passing);
        expect_ok(engine->delete_route(ns(), passing));
    }
    EXPECT_GT(slices, 9U);
    settle();
    EXPECT_TRUE(engine->settled(flush.ticket));
    EXPECT_EQ(*flush.removed, 3 * kMany);
    EXPECT_EQ(routes(), others + kMany / 3);
    EXPECT_EQ(routes(100), 0U);
    EXPECT_EQ(route("100.64.0.1"), "unicast via 10.0.1.2 dev p1") << "the file's";
    EXPECT_EQ(route("100.64.1.1"), "none");
}

TEST_F(EngineFlush, U_08_ANetnsMayEndMeanwhile) {
    Netns* blue = *engine->add_netns("blue");
    expect_ok(engine->move_link(ns(), "p1", *blue));
    expect_ok(engine->add_address(*blue, "p1", interface("10.0.1.1/24")));
    while (engine->work()) {
    }
    for (std::size_t i = 0; i < kMany; ++i) {
        expect_ok(engine->add_route(*blue, numbered(i, true), RouteMode::kAdd));
    }
    const Flush flush = engine->flush_routes(*blue, RouteOwner::kCli);
    const auto ended = engine->delete_netns(*blue);
    ASSERT_TRUE(ended.has_value());
    EXPECT_LT(removed(flush), kMany) << "the rest is the netns's, which goes behind it";
    EXPECT_TRUE(engine->settled(*ended));
    EXPECT_EQ(engine->netns().find("blue"), nullptr);
}

TEST_F(EngineFlush, U_08_LearnedNeighborsGoInSlices) {
    for (std::size_t i = 0; i < kMany; ++i) {
        const std::string v6 = fmt::format("fd00:1::{:x}", i + 16);
        if (i % 3 == 0) {
            expect_ok(engine->add_neighbor(ns(), "p1", ip(v6), kHostMac, now));
        } else {
            learn("p1", v6);
        }
    }
    learn("p0", "10.0.0.9");
    const auto flush = engine->flush_neighbors(ns(), "p1");
    ASSERT_TRUE(flush.has_value());
    EXPECT_LT(*flush->removed, kMany / 2);
    EXPECT_EQ(removed(*flush), kMany - kMany / 3);
    EXPECT_EQ(engine->neighbors().table().count(NeighborState::kPermanent), kMany / 3);
    EXPECT_NE(neighbor("p0", "10.0.0.9"), "none");
    EXPECT_EQ(removed(*engine->flush_neighbors(ns(), "")), 1U);
    EXPECT_EQ(code(engine->flush_neighbors(ns(), "p9")), "not_found");
}

// The request itself re-points every dst, so that no packet follows one; what it costs to take them
// out comes later.
TEST_F(EngineFlush, U_04_U_08_HostsOfARemovedNetdev) {
    std::vector<const fib::Dst*> dsts;
    for (std::size_t i = 0; i < 2500; ++i) {
        const std::string address = fmt::format("fd00:1::{:x}", i + 16);
        expect_ok(engine->add_neighbor(ns(), "p1", ip(address), kHostMac, now));
        dsts.push_back(host("p1", address));
    }
    const std::size_t listed = engine->uncached().size();
    const auto ticket = engine->delete_netdevs(ns(), std::vector<std::string>{"p1"});
    ASSERT_TRUE(ticket.has_value());
    for (const fib::Dst* dst : dsts) {
        ASSERT_NE(dst->state.load() & fib::Dst::kGone, 0U);
    }
    EXPECT_GT(engine->uncached().size(), listed / 8) << "most are listed yet";
    EXPECT_FALSE(engine->settled(*ticket));
    std::size_t slices = 0;
    while (engine->work()) {
        ++slices;
    }
    EXPECT_GT(slices, 1U);
    settle();
    EXPECT_TRUE(engine->settled(*ticket));
    EXPECT_EQ(engine->uncached().size(), 0U);
}

}  // namespace
}  // namespace sluice::control::test
