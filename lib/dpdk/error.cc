// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/error.h"

#include <cerrno>

#include <rte_errno.h>
#include <unistd.h>

namespace sluice::dpdk {

std::string reason(int result) {
    return rte_strerror(-result);
}

ErrorCode code_of(int result) noexcept {
    switch (-result) {
        case ENOMEM:
        case ENOSPC:
            return ErrorCode::kLimit;
        case EINVAL:
            return ErrorCode::kInvalid;
        case ENOTSUP:
            return ErrorCode::kUnsupported;
        case EBUSY:
            return ErrorCode::kBusy;
        case EACCES:
        case EPERM:
            // Drivers also return a bare -1, which reads as EPERM.
            return geteuid() != 0 ? ErrorCode::kPermission : ErrorCode::kDevice;
        default:
            return ErrorCode::kDevice;
    }
}

}  // namespace sluice::dpdk
