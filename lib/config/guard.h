// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "config/model.h"

namespace sluice::config {

// What a text must keep to before yaml-cpp sees it. yaml-cpp holds every token of a flow collection
// in memory (about 130 bytes each) before it reports the first, and takes 0.1 to 0.3 s a MB.
inline constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20U;  // 1M routes are 45 MB
inline constexpr std::size_t kMaxScalarBytes = 4096;
inline constexpr std::size_t kMaxDepth = 16;
inline constexpr std::size_t kMaxFlowTokens = 100'000;  // of one outermost [...] or {...}
inline constexpr std::size_t kMaxScalarLines = 16;
inline constexpr std::size_t kMaxBlankBytes = std::size_t{1} << 20U;  // comments in one piece

struct Finding {
    Position at;
    std::string what;
};

/// The first place where `text` is not UTF-8 text within the bounds above, or uses YAML that could
/// hide something from this check (block scalars, directives).
[[nodiscard]] std::optional<Finding> find_hostile(std::string_view text);

}  // namespace sluice::config
