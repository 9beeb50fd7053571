// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "config/diff.h"
#include "config/error.h"
#include "config/model.h"

/// YAML text → model → validation → difference → YAML text. Pure functions; no file, socket or
/// device is touched.
namespace sluice::config {

template <class T>
using Checked = std::expected<T, std::vector<ConfigError>>;  // errors sorted by position

/// parse() and validate(). Resolves what the file leaves to other parts of itself: instance and
/// socket from `file_name`, a vlan's MTU from its port, a route's dev from the subnet its gateway
/// is in.
[[nodiscard]] Checked<Config> load(std::string_view text, std::string_view file_name);

/// Structure, spelling and single values: everything that can be said about one place alone.
[[nodiscard]] Checked<Config> parse(std::string_view text, std::string_view file_name);

/// What must hold between places, and what this release has not built. Sorted by position.
[[nodiscard]] std::vector<ConfigError> validate(const Config& config);

/// The effective configuration, defaults written out; load() of it gives an equal model.
[[nodiscard]] std::string emit(const Config& config);

}  // namespace sluice::config
