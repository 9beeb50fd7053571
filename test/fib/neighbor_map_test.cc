// SPDX-License-Identifier: BSD-3-Clause
#include "fib/neighbor_map.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fib/lpm_support.h"
#include "net/address.h"

namespace sluice::fib::test {

namespace {

NeighborKeyWords key(std::uint16_t netdev, std::uint32_t n) {
    return NeighborKeyWords::of(NetdevId{netdev}, net::Ipv4Addr::from_host(n));
}

TEST(NeighborKeyWords, says_what_it_was_made_of) {
    const auto k4 = NeighborKeyWords::of(NetdevId{300}, a4("10.0.0.2"));
    EXPECT_EQ(k4.netdev(), NetdevId{300});
    EXPECT_EQ(k4.address(), net::IpAddr(a4("10.0.0.2")));
    const auto k6 = NeighborKeyWords::of(NetdevId{4095}, net::IpAddr(a6("fe80::1:2")));
    EXPECT_EQ(k6.netdev(), NetdevId{4095});
    EXPECT_EQ(k6.address(), net::IpAddr(a6("fe80::1:2")));
    EXPECT_NE(NeighborKeyWords::of(NetdevId{1}, a4("0.0.0.0")),
              NeighborKeyWords::of(NetdevId{1}, a6("::")))
        << "the family is part of it";
}

// Check 134: what differs in a few low bits must not share a bucket.
TEST(NeighborKeyWords, Check_134_hash_spreads_neighbours_in_a_row) {
    struct Row {
        const char* name;
        std::uint64_t secret;
    };
    for (const Row& row : {Row{"random", 0x9e3779b97f4a7c15U}, Row{"one", 1}}) {
        for (const bool v6 : {false, true}) {
            std::vector<unsigned> buckets(4096);
            for (std::uint32_t n = 0; n < 4096; ++n) {
                const auto k =
                    v6 ? NeighborKeyWords::of(NetdevId{3}, a6(fmt::format("2001:db8::{:x}", n)))
                       : key(3, 0x0a000000U + n);
                ++buckets[k.hash(row.secret) & 4095U];
            }
            EXPECT_LT(*std::ranges::max_element(buckets), 16U) << row.name << " v6 " << v6;
        }
    }
}

TEST(NeighborMap, finds_what_was_inserted) {
    ManualReclaimer reclaimer;
    NeighborMap map(16, 12345, reclaimer);
    EXPECT_EQ(map.find(key(1, 1)), kNoRoute);
    map.insert(key(1, 1), 10);
    map.insert(key(2, 1), 20);
    EXPECT_EQ(map.find(key(1, 1)), 10U);
    EXPECT_EQ(map.find(key(2, 1)), 20U) << "Case D56: one address on two links";
    EXPECT_TRUE(map.erase(key(1, 1)));
    EXPECT_FALSE(map.erase(key(1, 1)));
    EXPECT_EQ(map.find(key(1, 1)), kNoRoute);
    EXPECT_EQ(map.find(key(2, 1)), 20U);
    EXPECT_EQ(map.size(), 1U);
    reclaimer.finish();
}

TEST(NeighborMap, against_a_model_with_long_chains) {
    ManualReclaimer reclaimer;
    NeighborMap map(4, 99, reclaimer);
    std::map<std::uint32_t, DstIndex> model;
    std::mt19937 random(5);
    for (int i = 0; i < 20'000; ++i) {
        const auto n = static_cast<std::uint32_t>(random() % 64);
        if (model.contains(n)) {
            ASSERT_EQ(map.find(key(1, n)), model[n]);
            if (random() % 2 == 0) {
                ASSERT_TRUE(map.erase(key(1, n)));
                model.erase(n);
            }
        } else {
            ASSERT_EQ(map.find(key(1, n)), kNoRoute);
            model[n] = static_cast<DstIndex>(1 + random() % 1000);
            map.insert(key(1, n), model[n]);
        }
        ASSERT_EQ(map.size(), model.size());
        if (i % 100 == 0) {
            reclaimer.finish();
        }
    }
    reclaimer.finish();
}

// A reader that stands on a node that is taken out still finds the rest of its chain.
TEST(NeighborMap, readers_find_what_stays_while_others_come_and_go) {
    ManualReclaimer reclaimer;
    NeighborMap map(2, 7, reclaimer);
    for (std::uint32_t n = 0; n < 16; n += 2) {
        map.insert(key(1, n), n + 1);
    }
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> looked = 0;
    std::uint64_t lost = 0;
    std::thread reader([&] {
        while (!stop.load(std::memory_order_relaxed)) {
            for (std::uint32_t n = 0; n < 16; n += 2) {
                lost += map.find(key(1, n)) == n + 1 ? 0U : 1U;
            }
            ++looked;
        }
    });
    for (int i = 0; i < 20'000 || looked < 10; ++i) {
        const std::uint32_t n = 1 + static_cast<std::uint32_t>(i % 8) * 2;
        if (!map.erase(key(1, n))) {
            map.insert(key(1, n), 500);
        }
    }
    stop = true;
    reader.join();
    EXPECT_EQ(lost, 0U);
    reclaimer.finish();
}

}  // namespace

}  // namespace sluice::fib::test
