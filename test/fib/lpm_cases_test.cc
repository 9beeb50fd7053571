// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fib/lpm.h"
#include "fib/lpm_support.h"
#include "fib/lpm_trie.h"

namespace sluice::fib::test {
namespace {

/// `count` /24 or /48 far away from what the tests look at: more than 512 make a table use its
/// trie.
std::vector<net::Ipv4Prefix> filler4(std::uint32_t count) {
    std::vector<net::Ipv4Prefix> out;
    for (std::uint32_t i = 0; i < count; ++i) {
        out.push_back({net::Ipv4Addr::from_host(0x64000000U + (i << 8U)), 24});
    }
    return out;
}
std::vector<net::Ipv6Prefix> filler6(std::uint32_t count) {
    std::vector<net::Ipv6Prefix> out;
    for (std::uint32_t i = 0; i < count; ++i) {
        net::Ipv6Addr address{{0x3f, 0xfe, 0, 0}};
        address.bytes[4] = static_cast<std::uint8_t>(i >> 8U);
        address.bytes[5] = static_cast<std::uint8_t>(i);
        out.push_back({address, 48});
    }
    return out;
}
constexpr std::uint32_t kSmall = 0;
constexpr std::uint32_t kBig = 600;

class LpmCases : public testing::TestWithParam<std::uint32_t> {
protected:
    LpmCases() {
        for (const auto& prefix : filler4(GetParam())) {
            v4.set(prefix, 1);
        }
        for (const auto& prefix : filler6(GetParam())) {
            v6.set(prefix, 1);
        }
    }
    ManualReclaimer reclaimer;
    Tables<net::Ipv4Addr> v4{reclaimer};
    Tables<net::Ipv6Addr> v6{reclaimer};
};

INSTANTIATE_TEST_SUITE_P(Forms, LpmCases, testing::Values(kSmall, kBig), [](const auto& row) {
    return row.param == kSmall ? "small" : "big";
});

// OpenFastPath #104: a second /32 changed the answer of the first.
TEST_P(LpmCases, Case_77_TwoHostRoutesAreIndependent) {
    const std::vector addresses{a4("200.0.0.1"), a4("200.0.1.1"), a4("200.0.0.2"), a4("200.0.0.0")};
    v4.set(p4("200.0.0.1/32"), 10);
    v4.set(p4("200.0.1.1/32"), 11);  // the same /16
    v4.set(p4("200.0.0.2/32"), 12);  // the same /24
    EXPECT_EQ(v4.first().lookup_one(a4("200.0.0.1")), 10U);
    EXPECT_EQ(v4.first().lookup_one(a4("200.0.1.1")), 11U);
    EXPECT_EQ(v4.first().lookup_one(a4("200.0.0.2")), 12U);
    EXPECT_EQ(v4.first().lookup_one(a4("200.0.0.3")), kNoRoute);
    v4.check(addresses);
    v4.erase(p4("200.0.1.1/32"));
    v4.check(addresses);
    v4.erase(p4("200.0.0.1/32"));
    v4.check(addresses);
    EXPECT_EQ(v4.first().lookup_one(a4("200.0.0.2")), 12U);

    v6.set(p6("2001:db8::1/128"), 10);
    v6.set(p6("2001:db8::2/128"), 11);
    v6.set(p6("2001:db8:0:1::1/128"), 12);
    EXPECT_EQ(v6.first().lookup_one(a6("2001:db8::1")), 10U);
    EXPECT_EQ(v6.first().lookup_one(a6("2001:db8::2")), 11U);
    EXPECT_EQ(v6.first().lookup_one(a6("2001:db8:0:1::1")), 12U);
    EXPECT_EQ(v6.first().lookup_one(a6("2001:db8::3")), kNoRoute);
}

// Gatekeeper #525: next hops cut to 8 bits. Ours have 24.
TEST_P(LpmCases, Case_78_ValuesBeyond255) {
    for (std::uint32_t i = 1; i <= 300; ++i) {
        v4.set({net::Ipv4Addr::from_host(0x0a000000U + (i << 8U)), 24}, i);
    }
    v4.set(p4("11.0.0.0/8"), kMaxLpmValue);
    v4.set(p4("12.0.0.1/32"), 65'536);
    for (const std::uint32_t i : {255U, 256U, 257U, 300U}) {
        EXPECT_EQ(v4.first().lookup_one(net::Ipv4Addr::from_host(0x0a000007U + (i << 8U))), i);
    }
    EXPECT_EQ(v4.first().lookup_one(a4("11.1.2.3")), kMaxLpmValue);
    EXPECT_EQ(v4.first().lookup_one(a4("12.0.0.1")), 65'536U);
    v4.check_edges_of_all();
    v6.set(p6("2001:db8::/32"), kMaxLpmValue);
    v6.set(p6("2001:db8::1/128"), 257);
    EXPECT_EQ(v6.first().lookup_one(a6("2001:db8::2")), kMaxLpmValue);
    EXPECT_EQ(v6.first().lookup_one(a6("2001:db8::1")), 257U);
    v6.check_edges_of_all();
}

// rte_lpm refuses /0; GoBGP #1301, py-radix #9: loops that stop at length 1 miss it (case 82).
TEST_P(LpmCases, Case_79_82_DefaultRoute) {
    const std::vector far4{a4("0.0.0.0"), a4("9.9.9.9"), a4("128.0.0.0"), a4("255.255.255.255")};
    const std::vector far6{a6("::"), a6("8000::"), a6("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")};
    v4.set(p4("0.0.0.0/0"), 7);
    v4.set(p4("9.0.0.0/8"), 8);
    v6.set(p6("::/0"), 7);
    EXPECT_EQ(v4.first().lookup_one(a4("255.255.255.255")), 7U);
    EXPECT_EQ(v4.first().lookup_one(a4("9.9.9.9")), 8U);
    EXPECT_EQ(v6.first().lookup_one(a6("8000::")), 7U);
    v4.check(far4);
    v6.check(far6);
    EXPECT_EQ(v4.first().get(p4("0.0.0.0/0")), 7U);
    EXPECT_EQ(v4.first().size(), GetParam() + 2);
    v4.erase(p4("9.0.0.0/8"));
    EXPECT_EQ(v4.first().lookup_one(a4("9.9.9.9")), 7U);  // the last step down to length 0
    v4.set(p4("0.0.0.0/0"), 9);
    EXPECT_EQ(v4.first().lookup_one(a4("0.0.0.0")), 9U);
    v4.erase(p4("0.0.0.0/0"));
    v6.erase(p6("::/0"));
    EXPECT_EQ(v4.first().lookup_one(a4("9.9.9.9")), kNoRoute);
    EXPECT_EQ(v6.first().lookup_one(a6("8000::")), kNoRoute);
    v4.check(far4);
    v6.check(far6);
}

TEST_P(LpmCases, MoreSpecificRestoredAndReplaced) {
    v6.set(p6("2001:db8::/32"), 2);
    v6.set(p6("2001:db8:0:1::/64"), 3);
    v6.set(p6("2001:db8:0:1::1/128"), 4);
    v6.set(p6("2001:db8:0:1:8000::/65"), 5);
    v6.check_edges_of_all();
    v6.set(p6("2001:db8:0:1::/64"), 6);
    EXPECT_EQ(v6.first().lookup_one(a6("2001:db8:0:1::2")), 6U);
    v6.erase(p6("2001:db8:0:1::/64"));
    EXPECT_EQ(v6.first().lookup_one(a6("2001:db8:0:1::2")), 2U);
    EXPECT_EQ(v6.first().lookup_one(a6("2001:db8:0:1::1")), 4U);
    EXPECT_EQ(v6.first().lookup_one(a6("2001:db8:0:1:8000::")), 5U);
    v6.check_edges_of_all();
    v6.erase(p6("2001:db8::/32"));
    EXPECT_EQ(v6.first().lookup_one(a6("2001:db8:0:1::2")), kNoRoute);
    v6.check_edges_of_all();
}

// Two halves that say the same must stay two: erasing one gives its addresses back to the /24.
TEST_P(LpmCases, EqualHalvesStaySeparate) {
    v4.set(p4("10.0.0.0/24"), 2);
    v4.set(p4("10.0.0.0/25"), 3);
    v4.set(p4("10.0.0.128/25"), 3);
    v4.set(p4("10.0.0.7/32"), 4);
    v4.erase(p4("10.0.0.7/32"));
    EXPECT_EQ(v4.first().lookup_one(a4("10.0.0.7")), 3U);
    v4.erase(p4("10.0.0.0/25"));
    EXPECT_EQ(v4.first().lookup_one(a4("10.0.0.7")), 2U);
    EXPECT_EQ(v4.first().lookup_one(a4("10.0.0.200")), 3U);
    v4.check_edges_of_all();
}

TEST_P(LpmCases, RefusesWhatCannotBe) {
    auto& table = v4.first();
    const auto before = dump(table);
    EXPECT_EQ(table.set(p4("10.0.0.0/8"), kNoRoute).error().code, ErrorCode::kInvalid);
    EXPECT_EQ(table.set(p4("10.0.0.0/8"), kMaxLpmValue + 1).error().code, ErrorCode::kInvalid);
    EXPECT_EQ(table.set({a4("10.0.0.1"), 8}, 1).error().code, ErrorCode::kInvalid);
    EXPECT_EQ(table.set({a4("10.0.0.1"), 33}, 1).error().code, ErrorCode::kInvalid);
    EXPECT_EQ(table.erase(p4("10.0.0.0/8")).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(table.get(p4("10.0.0.0/8")), std::nullopt);
    EXPECT_EQ(dump(table), before);
}

TEST(LpmLimits, OptionsOutOfRange) {
    ManualReclaimer reclaimer;
    const auto table = Ipv4Lpm::create({.max_groups = std::size_t{1} << 23U}, reclaimer);
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().code, ErrorCode::kInvalid);
}

TEST(LpmLimits, MaxRoutesIsNamedAndNothingChanges) {
    for (const std::uint32_t most : {3U, kBig}) {
        ManualReclaimer reclaimer;
        auto table = Ipv4Lpm::create({.max_routes = most}, reclaimer).value();
        for (const auto& prefix : filler4(most)) {
            ASSERT_TRUE(table->set(prefix, 5));
        }
        const auto before = dump(*table);
        const auto refused = table->set(p4("10.0.0.0/8"), 1);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
        EXPECT_NE(refused.error().message.find("max_routes"), std::string::npos);
        EXPECT_EQ(dump(*table), before);
        EXPECT_EQ(table->lookup_one(a4("10.0.0.1")), kNoRoute);
        EXPECT_TRUE(table->set(filler4(1)[0], 6)) << "replacing needs no room";
        EXPECT_TRUE(table->erase(filler4(1)[0]));
        EXPECT_TRUE(table->set(p4("10.0.0.0/8"), 1));
        EXPECT_EQ(table->lookup_one(a4("10.0.0.1")), 1U);
    }
}

TEST(LpmLimits, MaxGroupsIsNamedWhenTheTrieIsFull) {
    ManualReclaimer reclaimer;
    auto table = Ipv4Lpm::create({.max_groups = 2}, reclaimer).value();
    for (const auto& prefix : filler4(kBig)) {
        ASSERT_TRUE(table->set(prefix, 5));
    }
    ASSERT_TRUE(table->set(p4("10.0.0.1/32"), 1));
    ASSERT_TRUE(table->set(p4("10.0.1.1/32"), 2));
    ASSERT_TRUE(table->set(p4("10.0.1.2/32"), 3)) << "shares a group";
    const auto before = dump(*table);
    const auto refused = table->set(p4("10.0.2.1/32"), 4);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
    EXPECT_NE(refused.error().message.find("max_groups"), std::string::npos);
    EXPECT_EQ(dump(*table), before);
    EXPECT_EQ(table->lookup_one(a4("10.0.2.1")), kNoRoute);
    EXPECT_EQ(table->lookup_one(a4("10.0.1.1")), 2U);
    // A group freed is room only after its grace period.
    ASSERT_TRUE(table->erase(p4("10.0.0.1/32")));
    EXPECT_FALSE(table->set(p4("10.0.2.1/32"), 4));
    reclaimer.finish();
    EXPECT_TRUE(table->set(p4("10.0.2.1/32"), 4));
    EXPECT_EQ(table->lookup_one(a4("10.0.2.1")), 4U);
}

TEST(LpmLimits, MaxGroupsIsNamedWhenGrowingFails) {
    ManualReclaimer reclaimer;
    auto table = Ipv4Lpm::create({.max_groups = 2}, reclaimer).value();
    for (const char* host : {"10.0.0.1/32", "10.0.1.1/32", "10.0.2.1/32"}) {
        ASSERT_TRUE(table->set(p4(host), 9)) << "intervals need no groups";
    }
    const auto all = filler4(kBig);
    std::size_t next = 0;
    Result<void> done;
    while (done && next < all.size()) {
        done = table->set(all[next++], 5);
    }
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kLimit);
    EXPECT_NE(done.error().message.find("max_groups"), std::string::npos);
    EXPECT_EQ(table->size(), 3 + next - 1);
    EXPECT_EQ(table->get(all[next - 1]), std::nullopt);
    EXPECT_EQ(table->lookup_one(all[next - 1].address), kNoRoute);
    EXPECT_EQ(table->lookup_one(all[next - 2].address), 5U);
    EXPECT_EQ(table->lookup_one(a4("10.0.2.1")), 9U);
}

// A refusal leaves every word of the trie as it was.
TEST(LpmLimits, RefusalLeavesTheTrieBitIdentical) {
    ManualReclaimer reclaimer;
    constexpr std::size_t kGroups = 9;
    constexpr std::size_t kBytes = ((1U << 16U) + kGroups * kGroupWords) * sizeof(std::uint32_t);
    auto trie = Trie<net::Ipv6Addr>::create(100, kGroups, reclaimer);
    ASSERT_TRUE(trie->set(p6("2001:db8::/32"), 1));
    ASSERT_TRUE(trie->set(p6("2001:db8:1:1::1/128"), 2));
    EXPECT_EQ(trie->groups_in_use(), 2U) << "bytes 2 and 3; then a tail";
    std::vector<std::uint32_t> before(kBytes / sizeof(std::uint32_t));
    std::memcpy(before.data(), trie->view().words, kBytes);
    const std::vector<Tail> tails(trie->view().tails, trie->view().tails + 8);
    // The two part in the last byte only: a group for each of bytes 4 to 15, of which 7 are left.
    const auto refused = trie->set(p6("2001:db8:1:1::2/128"), 3);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
    EXPECT_NE(refused.error().message.find("max_groups"), std::string::npos);
    EXPECT_EQ(std::memcmp(before.data(), trie->view().words, kBytes), 0);
    EXPECT_EQ(std::memcmp(tails.data(), trie->view().tails, 8 * sizeof(Tail)), 0);
    EXPECT_EQ(trie->groups_in_use(), 2U);
    EXPECT_TRUE(trie->set(p6("2001:db8:1:2::1/128"), 4)) << "bytes 4 to 7: that fits";
    EXPECT_EQ(trie->groups_in_use(), 6U);
    trie->erase(p6("2001:db8:1:2::1/128"), make_word(32, 1));
    EXPECT_EQ(trie->groups_in_use(), 2U) << "back to the one tail";
}

// Hundreds of tables with a dozen routes each.
TEST(LpmMemory, SmallTablesCostAtMost64Kilobytes) {
    ManualReclaimer reclaimer;
    auto v4 = Ipv4Lpm::create({}, reclaimer).value();
    auto v6 = Ipv6Lpm::create({}, reclaimer).value();
    for (std::uint8_t i = 0; i < 12; ++i) {
        ASSERT_TRUE(v4->set({{{static_cast<std::uint8_t>(10 + 16 * i), 1, i, 0}}, 24}, 1));
        ASSERT_TRUE(v4->set({{{static_cast<std::uint8_t>(10 + 16 * i), 1, i, 1}}, 32}, 2));
        net::Ipv6Addr address{{0x20, i, i, i, i, i, i, i}};
        ASSERT_TRUE(v6->set({address, 64}, 1));
        address.bytes[15] = 1;
        ASSERT_TRUE(v6->set({address, 128}, 2));
    }
    EXPECT_LT(v4->memory_bytes(), 2U << 10U);
    EXPECT_LT(v6->memory_bytes(), 6U << 10U);
    for (const auto& prefix : filler4(488)) {
        ASSERT_TRUE(v4->set(prefix, 1));
    }
    for (const auto& prefix : filler6(232)) {
        ASSERT_TRUE(v6->set(prefix, 1));
    }
    EXPECT_LT(v4->memory_bytes(), 64U << 10U) << "the most that the small form holds";
    EXPECT_LT(v6->memory_bytes(), 64U << 10U);
}

}  // namespace
}  // namespace sluice::fib::test
