// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "config/model.h"

namespace sluice::config {

/// Pointers into the two lists.
struct RuleDiff {
    std::vector<const Rule*> removed;
    std::vector<const Rule*> added;
};

/// Rules of one family and priority are looked at in the order they were added, so where the two
/// lists order them differently, some go and come back.
[[nodiscard]] RuleDiff diff_rules(const std::vector<Rule>& from, const std::vector<Rule>& to);

}  // namespace sluice::config
