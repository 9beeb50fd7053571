// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "control/controller.h"
#include "fib/netdev_view.h"

namespace sluice::control {

/// The flow hash that a worker computes for the first packet of such a flow; without `from`, of one
/// that comes from the unspecified address.
std::uint32_t flow_hash(std::uint64_t seed,
                        const fib::FlowHashFields& fields,
                        const RouteQuery& query) noexcept;

}  // namespace sluice::control
