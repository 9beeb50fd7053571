// SPDX-License-Identifier: BSD-3-Clause
#include "stats/counters.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/drop_reason.h"
#include "base/id.h"

namespace sluice::stats {

namespace {

// The structure is nothing but counters, so a new one cannot be left out of the sum unseen.
TEST(NetdevCounters, accumulate_adds_every_field) {
    constexpr std::size_t kFields = sizeof(NetdevCounters) / sizeof(std::uint64_t);
    std::vector<std::uint64_t> words(kFields);
    for (std::size_t i = 0; i < kFields; ++i) {
        words[i] = i + 1;
    }
    NetdevCounters one{};
    std::memcpy(&one, words.data(), sizeof one);
    NetdevCounters sum = one;
    accumulate(sum, one);
    accumulate(sum, one);
    std::memcpy(words.data(), &sum, sizeof sum);
    for (std::size_t i = 0; i < kFields; ++i) {
        EXPECT_EQ(words[i], 3 * (i + 1)) << "field " << i;
    }
}

TEST(NetdevCounters, imbalance_is_what_the_books_miss) {
    NetdevCounters sum{};
    EXPECT_EQ(imbalance(sum), 0U);
    sum.rx_packets = 10;
    sum.forwarded = 3;
    sum.delivered = 2;
    sum.held = 1;
    sum.drops[std::to_underlying(DropReason::kNoRoute)] = 3;
    EXPECT_EQ(imbalance(sum), 1U);
    sum.drops.back() = 1;
    EXPECT_EQ(imbalance(sum), 0U);
    // What is not a packet's end.
    sum.tx_packets = sum.rx_bytes = sum.icmp_errors_sent = sum.fragments_lost = 99;
    EXPECT_EQ(imbalance(sum), 0U);
}

// One thread holds, another takes it off in its own block: the sum is right modulo 2^64.
TEST(NetdevCounters, held_is_a_sum_over_writers) {
    Block worker;
    Block control;
    const NetdevId netdev{5};
    bump(worker.netdev(netdev).rx_packets, 3);
    bump(worker.netdev(netdev).held, 3);
    bump(control.netdev(netdev).held, ~std::uint64_t{0});
    bump(control.netdev(netdev).delivered);
    NetdevCounters sum{};
    accumulate(sum, worker.netdev(netdev));
    accumulate(sum, control.netdev(netdev));
    EXPECT_EQ(sum.held, 2U);
    EXPECT_EQ(imbalance(sum), 0U);
}

TEST(Block, drops_are_booked_by_netdev_and_by_family) {
    Block block;
    block.drop(NetdevId{1}, DropReason::kNoRoute, 1);
    block.drop(NetdevId{2}, DropReason::kNoRoute, 2);
    block.drop(NetdevId{static_cast<std::uint16_t>(kMaxNetdevs - 1)}, DropReason::kEthTooShort, 0);
    const auto reason = std::to_underlying(DropReason::kNoRoute);
    EXPECT_EQ(block.netdev(NetdevId{1}).drops[reason], 1U);
    EXPECT_EQ(block.netdev(NetdevId{2}).drops[reason], 1U);
    EXPECT_EQ(block.netdev(NetdevId{3}).drops[reason], 0U);
    EXPECT_EQ(block.worker().drops_by_family[1][reason], 1U);
    EXPECT_EQ(block.worker().drops_by_family[2][reason], 1U);
    EXPECT_EQ(block.worker().drops_by_family[0][std::to_underlying(DropReason::kEthTooShort)], 1U);
}

// A reader on another thread sees the count grow and never anything else.
TEST(Block, readers_see_whole_values) {
    Block block;
    std::uint64_t& counter = block.netdev(NetdevId{1}).rx_bytes;
    constexpr std::uint64_t kStep = 0x1'0000'0001;
    std::atomic<bool> stop = false;
    std::thread writer([&] {
        while (!stop.load(std::memory_order_relaxed)) {
            bump(counter, kStep);
        }
    });
    std::uint64_t last = 0;
    for (int i = 0; i < 1'000'000 || last == 0; ++i) {
        const std::uint64_t now = read(counter);
        ASSERT_GE(now, last);
        ASSERT_EQ(now % kStep, 0U);
        last = now;
    }
    stop = true;
    writer.join();
}

}  // namespace

}  // namespace sluice::stats
