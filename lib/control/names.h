// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "base/result.h"

namespace sluice::control {

/// Whether a netdev or netns may be called so: kInvalid.
Result<void> check_name(const std::string& name);
/// The device that devargs name: without the arguments.
std::string device_of(const std::string& devargs);

}  // namespace sluice::control
