// SPDX-License-Identifier: BSD-3-Clause
// `cache: auto` (dst.md C-50): what it decides from what it measures. Costs are given, no clock is
// read.
#include "pipeline/cache_meter.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace sluice::pipeline {

namespace {

constexpr std::uint32_t kBurst = 32;

struct Costs {
    std::uint64_t on;  // cycles per packet
    std::uint64_t off;
    std::uint32_t misses = 0;  // per burst, while on
};

/// Runs `packets`; returns how many of them asked the cache.
std::uint64_t run(CacheMeter& meter, const Costs& costs, std::uint64_t packets) {
    std::uint64_t asked = 0;
    for (std::uint64_t done = 0; done < packets; done += kBurst) {
        const bool on = meter.use();
        const std::uint64_t cycles = meter.timing() ? kBurst * (on ? costs.on : costs.off) : 0;
        asked += on ? kBurst : 0;
        meter.done(kBurst, on ? costs.misses : 0, cycles);
    }
    return asked;
}

constexpr std::uint64_t kTrial = std::uint64_t{CacheMeter::kWindows} * CacheMeter::kWindowPackets;

TEST(CacheMeter, C_50_keeps_the_cheaper) {
    CacheMeter meter;
    run(meter, {.on = 30, .off = 50}, kTrial);
    EXPECT_EQ(run(meter, {.on = 30, .off = 50}, 100'000), 100'000U);
    CacheMeter other;
    run(other, {.on = 50, .off = 30}, kTrial);
    EXPECT_EQ(run(other, {.on = 50, .off = 30}, 100'000), 0U);
}

TEST(CacheMeter, C_50_equal_costs_are_off) {
    CacheMeter meter;
    run(meter, {.on = 40, .off = 40}, kTrial);
    EXPECT_FALSE(meter.use());
}

// Seen on a shared core: the windows without the cache were preempted, and a cache without hits was
// kept.
TEST(CacheMeter, C_50_hardly_any_hits_are_off_whatever_the_clock_says) {
    CacheMeter meter;
    run(meter, {.on = 40, .off = 400, .misses = kBurst * 7 / 8}, kTrial);
    EXPECT_FALSE(meter.use());
    CacheMeter other;
    run(other, {.on = 40, .off = 400, .misses = kBurst * 5 / 8}, kTrial);
    EXPECT_TRUE(other.use());
}

// Once it is clear, the trial ends: what it costs is the windows with the cache.
TEST(CacheMeter, C_50_a_trial_that_is_lost_ends_early) {
    CacheMeter flood;
    EXPECT_EQ(run(flood, {.on = 60, .off = 40, .misses = kBurst}, kTrial),
              2 * CacheMeter::kWindowPackets);
    EXPECT_FALSE(flood.use());
    CacheMeter dear;
    EXPECT_EQ(run(dear, {.on = 65, .off = 40, .misses = kBurst / 3}, kTrial),
              2 * CacheMeter::kWindowPackets);
    EXPECT_FALSE(dear.use());
    // With hits alone it is more likely that somebody else had the core for a while.
    CacheMeter hits;
    run(hits, {.on = 65, .off = 40}, CacheMeter::kWindowPackets * 4);
    run(hits, {.on = 30, .off = 40}, kTrial);
    EXPECT_TRUE(hits.use());
    CacheMeter close;  // the clock could be wrong by that
    EXPECT_EQ(run(close, {.on = 45, .off = 40, .misses = kBurst / 3}, kTrial),
              6 * CacheMeter::kWindowPackets);
    EXPECT_FALSE(close.use());
}

// What a flood costs: the trials alone, ever rarer.
TEST(CacheMeter, C_51_trials_cost_less_than_a_percent) {
    CacheMeter meter;
    const Costs flood{.on = 100, .off = 40, .misses = kBurst};
    // The trial that begins it apart: within the first second the others cost a percent.
    run(meter, flood, kTrial);
    EXPECT_LT(run(meter, flood, 10'000'000) * 60, 10'000'000U * 40 / 100);
    const std::uint64_t asked = run(meter, flood, 400'000'000);
    EXPECT_LT(asked, 400'000'000U / 1000);
    EXPECT_GT(asked, 0U);
}

TEST(CacheMeter, C_50_probes_again_later) {
    CacheMeter meter;
    run(meter, {.on = 60, .off = 40}, kTrial);
    EXPECT_FALSE(meter.use());
    run(meter, {.on = 20, .off = 40}, CacheMeter::kShortestKeep + kTrial);
    EXPECT_TRUE(meter.use());
}

TEST(CacheMeter, other_traffic_is_noticed_while_on) {
    CacheMeter meter;
    run(meter, {.on = 20, .off = 40}, kTrial);
    ASSERT_TRUE(meter.use());
    // It could be kept for a million packets; a flood ends it within two windows and a trial.
    run(meter, {.on = 60, .off = 40, .misses = kBurst}, 2 * CacheMeter::kWindowPackets + kTrial);
    EXPECT_FALSE(meter.use());
}

TEST(CacheMeter, misses_that_were_there_when_it_paid_are_no_news) {
    CacheMeter meter;
    const Costs paying{.on = 30, .off = 50, .misses = kBurst / 2};
    run(meter, paying, kTrial);
    ASSERT_TRUE(meter.use());
    EXPECT_EQ(run(meter, paying, CacheMeter::kShortestKeep / 2), CacheMeter::kShortestKeep / 2);
}

TEST(CacheMeter, reads_no_clock_while_keeping) {
    CacheMeter meter;
    run(meter, {.on = 30, .off = 50}, kTrial);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_FALSE(meter.timing());
        meter.done(kBurst, 0, 0);
    }
}

}  // namespace

}  // namespace sluice::pipeline
