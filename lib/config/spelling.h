// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::config {

/// Among more words, guessing takes too long for a file with as many mistakes.
inline constexpr std::size_t kMaxGuessed = 256;
/// The word of `known` that `word` may be a slip of the pen for; empty when none is close.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

/// What YAML 1.1 (or another spelling of case) would take `word` for: "true" or "false".
std::optional<std::string_view> boolean_of_other_yaml(std::string_view word);

/// Names of netdevs, vrfs, netns and instances: they become parts of paths, labels and command
/// lines.
bool is_name(std::string_view word);

}  // namespace sluice::config
