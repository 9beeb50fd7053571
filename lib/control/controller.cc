// SPDX-License-Identifier: BSD-3-Clause
#include "control/controller.h"

#include <string_view>

namespace sluice::control {

std::string_view to_string(RouteOwner owner) noexcept {
    switch (owner) {
        case RouteOwner::kConnected:
            return "connected";
        case RouteOwner::kFile:
            return "file";
        case RouteOwner::kCli:
            return "cli";
        case RouteOwner::kFpm:
            return "fpm";
    }
    return "cli";
}

}  // namespace sluice::control
