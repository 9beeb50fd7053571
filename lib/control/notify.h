// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace sluice::control {

/// Tells the service manager that started us, if one did (sd_notify(3): a datagram to
/// $NOTIFY_SOCKET). "READY=1", "STOPPING=1".
void notify(std::string_view state) noexcept;
/// RELOADING=1 with the time that the protocol asks for.
void notify_reloading() noexcept;

}  // namespace sluice::control
