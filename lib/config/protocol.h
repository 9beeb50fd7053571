// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Transport protocols by the names that rules use (IANA's assigned numbers).
namespace sluice::config {

inline constexpr std::uint8_t kProtocolIcmpv6 = 58;

std::optional<std::uint8_t> protocol_number(std::string_view name);
std::span<const std::string_view> protocol_names();
/// The name, or the number where there is none.
std::string protocol_text(std::uint8_t number);

}  // namespace sluice::config
