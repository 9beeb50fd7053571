// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/result.h"
#include "config/model.h"
#include "control/controller.h"
#include "control/engine.h"

namespace sluice::control {

/// The netns that is always there; Config::default_netns.
inline constexpr const char* kDefaultNetns = "default";

/// Brings `engine` from what `running` says to what `wanted` says. On error, which names the place
/// in the file, everything that was done is undone.
Result<void> apply(Engine& engine,
                   const config::Config& running,
                   const config::Config& wanted,
                   Time now);

RouteRequest to_request(const config::Route& route);

}  // namespace sluice::control
