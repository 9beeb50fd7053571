// SPDX-License-Identifier: BSD-3-Clause
// dst.md X-04, for as many cycles as a test has time for; `leak` runs a million.
#include "fuzz/leak.h"

#include <gtest/gtest.h>

#include "fuzz/environment.h"

namespace sluice::test::fuzz {
namespace {

TEST(Leak, X_04_PoolsAreBackAtTheirLevelAfterManyCycles) {
    const Environment environment("test_leak");
    LeakCycles cycles(environment);
    cycles.run(LeakCycles::kKinds);
    const Levels before = cycles.settled();
    ASSERT_EQ(cycles.failure(), "");
    ASSERT_GT(before.dsts, 0U);
    for (int part = 0; part < 10; ++part) {
        cycles.run(20 * LeakCycles::kKinds);
        ASSERT_EQ(cycles.failure(), "");
        const Levels after = cycles.settled();
        ASSERT_EQ(after, before) << to_string(after) << "\nbefore " << to_string(before);
    }
}

}  // namespace
}  // namespace sluice::test::fuzz
