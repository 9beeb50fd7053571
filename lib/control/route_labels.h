// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/controller.h"

/// Who made a route, in the numbers and words of rtnetlink and iproute2 (rt_protos): a label that
/// changes nothing about the route.
namespace sluice::control {

/// "kernel" of connected routes, "static" of the file's, "boot" of the command line's, "zebra" of
/// those over the FPM.
std::uint8_t usual_protocol(RouteOwner owner) noexcept;
inline std::uint8_t protocol_of(std::uint8_t label, RouteOwner owner) noexcept {
    return label != 0 ? label : usual_protocol(owner);
}
/// The name, or the number where it has none.
std::string protocol_name(std::uint8_t protocol);
std::optional<std::uint8_t> protocol_by_name(std::string_view name) noexcept;

}  // namespace sluice::control
