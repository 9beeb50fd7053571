// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "config/model.h"
#include "config/node.h"

namespace sluice::config {

// What a text must keep to before yaml-cpp sees it. yaml-cpp holds every token of a flow collection
// in memory (about 130 bytes each) before it reports the first, and takes 0.1 to 0.3 s a MB.
inline constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20U;  // 1M routes are 40 to 60 MB
inline constexpr std::size_t kMaxYamlBytes = std::size_t{4} << 20U;    // without simple items
inline constexpr std::size_t kMaxScalarBytes = 4096;
inline constexpr std::size_t kMaxDepth = 16;
inline constexpr std::size_t kMaxFlowTokens = 100'000;  // of one outermost [...] or {...}
inline constexpr std::size_t kMaxScalarLines = 16;

struct Finding {
    Position at;
    std::string what;
};

struct Screened {
    std::optional<Finding> finding;
    std::string rest;  // for yaml-cpp: up to the line of the finding, simple items blanked out
};

/// Cuts the simple items (simple_item.h) out of the top level's lists `routes` and `neighbors` and
/// hands them to `on_item`, which may stop the reading. Finds the first place where `text` is not
/// UTF-8 text within the bounds above, or uses YAML that could hide something from this check
/// (block scalars, directives).
[[nodiscard]] Screened screen(
    std::string_view text,
    const std::function<bool(std::string_view list, const Node& item)>& on_item);

}  // namespace sluice::config
