// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "config/node.h"

namespace sluice::config {

struct SimpleItem {
    Node node;
    std::size_t end = 0;      // offset of the line behind it
    std::uint32_t lines = 0;  // that it takes up
};

/// Reads a list item, whose line begins at `offset` and is the file's `line`th, if it has the plain
/// form that files of a million routes have:
///     - {to: 192.0.2.0/24, via: "fd00::1"}    # remark
/// or
///     - to: 192.0.2.0/24
///       via: 'fd00::1'
/// with values that look the same to any YAML reader. Anything else is nothing: yaml-cpp, which
/// takes ten times as long, has the last word on it.
[[nodiscard]] std::optional<SimpleItem> parse_simple_item(std::string_view text,
                                                          std::size_t offset,
                                                          std::uint32_t line);

}  // namespace sluice::config
