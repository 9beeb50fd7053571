// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/result.h"
#include "net/address.h"

namespace sluice::control {

/// Scopes and groups that no interface address can be of: kInvalid.
Result<void> check_own_address(const net::InterfaceAddr& own);

}  // namespace sluice::control
