// SPDX-License-Identifier: BSD-3-Clause
// dst.md X-03 for a bounded time, with another seed each time; SLUICE_SEED replays one.
#include "fuzz/differential.h"

#include <chrono>
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fuzz/environment.h"

namespace sluice::test::fuzz {
namespace {

constexpr auto kLeast = std::chrono::seconds(20);
/// The seldom things may take longer to come by; on a slow machine or under a sanitizer some may
/// not come by at all, and are named.
constexpr auto kMost = std::chrono::seconds(60);

TEST(Differential, X_03_CachedAndUncachedAgree) {
    const Environment environment("test_differential");
    const char* given = std::getenv("SLUICE_SEED");
    std::uint64_t seed =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    fmt::print("SLUICE_SEED={} replays the first run\n", seed);
    Reach reach;
    const auto start = std::chrono::steady_clock::now();
    const auto spent = [&] { return std::chrono::steady_clock::now() - start; };
    while (spent() < kLeast || (!missing(reach).empty() && spent() < kMost)) {
        const Plan plan{.seed = seed, .until = start + kMost};
        if (const auto failure = run(plan, environment.pool(), reach)) {
            FAIL() << "SLUICE_SEED=" << seed << "\n" << describe(plan, *failure);
        }
        ASSERT_EQ(environment.in_use(), 0U) << "mbufs leaked, SLUICE_SEED=" << seed;
        ++seed;
    }
    for (const char* what :
         {"hits4", "hits6", "stale4", "stale6", "source hits4", "source hits6"}) {
        EXPECT_NE(reach[what], 0U) << what;
    }
    fmt::print("{}not met: {}\n", to_string(reach), missing(reach));
}

}  // namespace
}  // namespace sluice::test::fuzz
