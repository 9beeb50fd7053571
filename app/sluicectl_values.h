// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

/// Inside of sluicectl_words: values whose form is iproute2's and not the protocol's.
namespace sluicectl {

using Json = nlohmann::ordered_json;

/// Decimal, or hexadecimal after 0x as iproute2 prints marks.
std::optional<std::uint64_t> number(std::string_view word) noexcept;
/// "1,1/2,3": next hops 1 and 2 with weights 1 and 3.
std::expected<Json, std::string> members(std::string_view word);
std::expected<Json, std::string> ports(std::string_view keyword, std::string_view word);
std::expected<Json, std::string> milliseconds(std::string_view keyword, std::string_view word);
/// RFC 2474: the DSCP is the upper six bits of the old TOS byte.
std::expected<Json, std::string> dscp_of_tos(std::string_view keyword, std::string_view word);
/// `choices`: "a|b".
bool is_one_of(std::string_view word, std::string_view choices) noexcept;

}  // namespace sluicectl
