// SPDX-License-Identifier: BSD-3-Clause
#include "control/rib.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "control/next_hops.h"
#include "control/resilient.h"
#include "dpdk/rcu.h"

namespace sluice::control::test {
namespace {

using Rib4 = Rib<net::Ipv4Addr>;

net::Ipv4Prefix prefix4(std::string_view text) {
    return *net::Ipv4Prefix::parse(text);
}

class RibTest : public ::testing::Test {
protected:
    RibTest() {
        a.value = 11;
        b.value = 12;
        a.usable = b.usable = true;
    }
    static Rib4 make(std::size_t max_routes, Reclaimer& reclaimer) {
        fib::LpmOptions options;
        options.max_routes = max_routes;
        return Rib4(*fib::Ipv4Lpm::create(options, reclaimer));
    }
    void add(std::string_view text, RouteTarget& target) {
        ASSERT_TRUE(rib.add({prefix4(text), RouteOwner::kCli, 0, 0}, target));
    }
    static std::uint32_t look(const fib::Ipv4Lpm& lpm, std::string_view address) {
        return lpm.lookup_one(*net::Ipv4Addr::parse(address));
    }

    dpdk::RcuDomain rcu;
    RouteTarget a, b;
    Rib4 rib = make(1000, rcu);
};

TEST_F(RibTest, Check_74_SuppressedTableHasTheLongerPrefixesAlone) {
    add("0.0.0.0/0", a);
    add("10.0.0.0/8", a);
    const auto made = rib.suppressed(8, rcu);
    ASSERT_TRUE(made);
    const fib::Ipv4Lpm& lpm = **made;
    EXPECT_EQ(lpm.size(), 0U);
    add("10.1.0.0/16", b);
    add("11.0.0.0/8", b);
    EXPECT_EQ(look(lpm, "10.1.0.1"), 12U);
    EXPECT_EQ(look(lpm, "10.2.0.1"), fib::kNoRoute);
    EXPECT_EQ(look(lpm, "11.0.0.1"), fib::kNoRoute);
    EXPECT_EQ(look(rib.lpm(), "11.0.0.1"), 12U);
    // Kept in step: another target, unusable, gone.
    ASSERT_TRUE(rib.replace(*rib.first(prefix4("10.1.0.0/16")), a));
    EXPECT_EQ(look(lpm, "10.1.0.1"), 11U);
    a.usable = false;
    ASSERT_TRUE(rib.update(prefix4("10.1.0.0/16")));
    EXPECT_EQ(look(lpm, "10.1.0.1"), fib::kNoRoute);
    a.usable = true;
    ASSERT_TRUE(rib.update(prefix4("10.1.0.0/16")));
    EXPECT_EQ(look(lpm, "10.1.0.1"), 11U);
    rib.remove(*rib.first(prefix4("10.1.0.0/16")));
    EXPECT_EQ(lpm.size(), 0U);
    // A longest match that is too short is none, whatever is below it.
    EXPECT_EQ(rib.match(*net::Ipv4Addr::parse("10.1.0.1"), 9), nullptr);
    EXPECT_NE(rib.match(*net::Ipv4Addr::parse("10.1.0.1"), 8), nullptr);
}

TEST_F(RibTest, Check_74_SuppressedTableLivesAsLongAsItsUsers) {
    add("10.1.0.0/16", a);
    const auto first = rib.suppressed(0, rcu);
    const auto second = rib.suppressed(0, rcu);
    const auto other = rib.suppressed(16, rcu);
    ASSERT_TRUE(first && second && other);
    EXPECT_EQ(*first, *second);
    EXPECT_NE(*first, *other);
    EXPECT_EQ(rib.drop_suppressed(0), nullptr);
    const auto dropped = rib.drop_suppressed(0);
    EXPECT_EQ(dropped.get(), *first);
    EXPECT_EQ(look(*dropped, "10.1.0.1"), 11U);
    add("10.2.0.0/16", a);
    EXPECT_EQ(dropped->size(), 1U) << "out of step";
}

TEST_F(RibTest, FullTableChangesNeither) {
    Rib4 small = make(2, rcu);
    const auto suppressed = small.suppressed(0, rcu);
    ASSERT_TRUE(suppressed);
    ASSERT_TRUE(small.add({prefix4("10.1.0.0/16"), RouteOwner::kCli, 0, 0}, a));
    ASSERT_TRUE(small.add({prefix4("10.2.0.0/16"), RouteOwner::kCli, 0, 0}, a));
    const auto full = small.add({prefix4("10.3.0.0/16"), RouteOwner::kCli, 0, 0}, a);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, ErrorCode::kLimit);
    EXPECT_EQ(small.lpm().size(), 2U);
    EXPECT_EQ((*suppressed)->size(), 2U);
    EXPECT_EQ(small.size(), 2U);
}

// --- buckets of resilient groups ----------------------------------------------------------------

TEST(Resilient, SharesAreRightToWithinOneAndAddUp) {
    struct Case {
        std::string name;
        std::vector<std::uint32_t> weights;
        std::size_t buckets;
        std::vector<std::size_t> want;
    };
    const std::vector<Case> cases{
        {"check 54: equal", {1, 1}, 128, {64, 64}},
        {"check 55: 2:1", {2, 1}, 128, {85, 43}},
        {"check 20: 11:45", {11, 45}, 128, {25, 103}},
        {"one", {7}, 16, {16}},
        {"more members than buckets", {1, 1, 1}, 2, {1, 0, 1}},
        {"very unequal", {1, 65535}, 4, {0, 4}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        EXPECT_EQ(bucket_shares(c.weights, c.buckets), c.want);
    }
}

TEST(Resilient, Check_57_OnlyTheBucketsOfWhoIsGoneMove) {
    std::vector<std::uint32_t> owners{0, 1, kNobody, 0, 1, kNobody};
    const std::vector<std::uint32_t> before = owners;
    EXPECT_TRUE(assign_buckets(
        owners, std::vector<std::uint32_t>{1, 1}, [](std::size_t) { return false; }));
    for (std::size_t i = 0; i < owners.size(); ++i) {
        EXPECT_EQ(owners[i], before[i] == kNobody ? (i == 2 ? 0U : 1U) : before[i]);
    }
}

TEST(Resilient, Check_55_BucketsInUseStay) {
    std::vector<std::uint32_t> owners{0, 0, 0, 0};
    const std::vector<std::uint32_t> even{1, 1};
    EXPECT_FALSE(assign_buckets(owners, even, [](std::size_t) { return false; }));
    EXPECT_EQ(owners, (std::vector<std::uint32_t>{0, 0, 0, 0}));
    EXPECT_FALSE(assign_buckets(owners, even, [](std::size_t bucket) { return bucket == 2; }));
    EXPECT_EQ(owners, (std::vector<std::uint32_t>{0, 0, 1, 0}));
    EXPECT_TRUE(assign_buckets(owners, even, [](std::size_t) { return true; }));
    EXPECT_EQ(owners, (std::vector<std::uint32_t>{1, 0, 1, 0}));
    EXPECT_TRUE(assign_buckets(owners, even, [](std::size_t) { return false; }));
}

TEST(Resilient, IdleMeansMoreThanTheTimer) {
    using std::chrono::milliseconds;
    EXPECT_FALSE(bucket_idle(100, 105, milliseconds(5000))) << "4.1 s are 5 by full seconds";
    EXPECT_TRUE(bucket_idle(100, 106, milliseconds(5000)));
    EXPECT_FALSE(bucket_idle(100, 101, milliseconds(1)));
    EXPECT_TRUE(bucket_idle(100, 100, milliseconds(0)));
    EXPECT_FALSE(bucket_idle(101, 100, milliseconds(1))) << "a worker's clock ahead of ours";
}

}  // namespace
}  // namespace sluice::control::test
