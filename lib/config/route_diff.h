// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "config/model.h"

namespace sluice::config {

/// Pointers into the two lists.
struct RouteDiff {
    std::vector<const Route*> removed;
    std::vector<std::pair<const Route*, const Route*>> replaced;
    std::vector<const Route*> added;
};

/// Compares by (to, table, metric). Where one route of a prefix takes the place of one, that is a
/// replacement, also under another metric. `uprooted` tells that a route's old netdev goes away:
/// such a route is removed first and added later even if it stays the same.
[[nodiscard]] RouteDiff diff_routes(const std::vector<Route>& from,
                                    const std::vector<Route>& to,
                                    const std::function<bool(const Route&)>& uprooted);

}  // namespace sluice::config
