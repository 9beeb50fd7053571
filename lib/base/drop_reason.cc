// SPDX-License-Identifier: BSD-3-Clause
#include "base/drop_reason.h"

#include <cstddef>
#include <string_view>

namespace sluice {

DropReason drop_reason_from_name(std::string_view name) noexcept {
    for (std::size_t i = 0; i < kDropReasons; ++i) {
        if (kDropInfo[i].name == name) {
            return static_cast<DropReason>(i);
        }
    }
    return DropReason::kNone;
}

}  // namespace sluice
