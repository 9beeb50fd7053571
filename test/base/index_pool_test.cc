// SPDX-License-Identifier: BSD-3-Clause
#include "base/index_pool.h"

#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

namespace sluice {

namespace {

TEST(IndexPool, gives_what_came_back_last_before_a_fresh_one) {
    IndexPool pool(4, 7);
    EXPECT_EQ(pool.take(), 4U);
    EXPECT_EQ(pool.take(), 5U);
    pool.give(4);
    EXPECT_EQ(pool.in_use(), 1U);
    EXPECT_EQ(pool.take(), 4U);
    EXPECT_EQ(pool.take(), 6U);
    EXPECT_EQ(pool.take(), std::nullopt);
    EXPECT_EQ(pool.in_use(), 3U);
}

TEST(IndexPool, knows_what_was_ever_taken) {
    IndexPool pool(1, 3);
    EXPECT_FALSE(pool.was_taken(1));
    ASSERT_EQ(pool.take(), 1U);
    EXPECT_TRUE(pool.was_taken(1));
    EXPECT_FALSE(pool.was_taken(0));
    EXPECT_FALSE(pool.was_taken(2));
}

}  // namespace

}  // namespace sluice
