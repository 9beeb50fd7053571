// SPDX-License-Identifier: BSD-3-Clause
#include "base/drop_reason.h"

#include <set>
#include <string_view>

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(DropReason, NamesAreUniqueSnakeCaseAndFoundAgain) {
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < kDropReasons; ++i) {
        const auto reason = static_cast<DropReason>(i);
        const std::string_view name = info(reason).name;
        EXPECT_TRUE(seen.insert(name).second) << name;
        EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), name.npos)
            << name;
        EXPECT_FALSE(info(reason).source.empty()) << name;
        EXPECT_EQ(drop_reason_from_name(name), reason) << name;
    }
    EXPECT_EQ(drop_reason_from_name("(nil)"), DropReason::kNone);
}

}  // namespace
}  // namespace sluice
