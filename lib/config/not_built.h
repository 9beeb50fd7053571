// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include "config/node.h"

namespace sluice::config {

/// True when `map.key` may not have this value yet.
[[nodiscard]] bool is_not_built(std::string_view map, std::string_view key, const Node& value);
[[nodiscard]] std::string not_built_message(std::string_view map,
                                            std::string_view key,
                                            const Node& value);

}  // namespace sluice::config
