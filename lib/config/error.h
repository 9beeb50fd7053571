// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice::config {

/// More of one file are left out.
inline constexpr std::size_t kMaxErrors = 1000;

struct ConfigError {
    std::string file;
    std::uint32_t line = 0;    // 1-based; 0: the file as a whole
    std::uint32_t column = 0;  // 1-based, in bytes
    std::string what;          // what is wrong, and what would be right

    std::string to_string() const;  // "file:line:column: what"
    bool operator==(const ConfigError&) const = default;
};

}  // namespace sluice::config
