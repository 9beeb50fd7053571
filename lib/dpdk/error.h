// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "base/result.h"

namespace sluice::dpdk {

/// For negative DPDK return values.
std::string reason(int result);
ErrorCode code_of(int result) noexcept;

}  // namespace sluice::dpdk
