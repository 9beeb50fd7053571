// SPDX-License-Identifier: BSD-3-Clause
#include "base/result.h"

#include <string_view>

namespace sluice {

std::string_view to_string(ErrorCode code) noexcept {
    switch (code) {
        case ErrorCode::kInvalid:
            return "invalid";
        case ErrorCode::kNotFound:
            return "not_found";
        case ErrorCode::kExists:
            return "exists";
        case ErrorCode::kBusy:
            return "busy";
        case ErrorCode::kLimit:
            return "limit";
        case ErrorCode::kUnsupported:
            return "unsupported";
        case ErrorCode::kPermission:
            return "permission";
        case ErrorCode::kDevice:
            return "device";
        case ErrorCode::kInternal:
            return "internal";
    }
    return "internal";
}

}  // namespace sluice
