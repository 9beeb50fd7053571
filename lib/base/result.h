// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace sluice {

/// Why a control operation was refused. The text form (to_string) is part of the control protocol.
enum class ErrorCode : std::uint8_t {
    kInvalid,      // the request itself is wrong
    kNotFound,     // names something that is not there
    kExists,       // already there
    kBusy,         // in use by something else
    kLimit,        // a configured or structural limit is reached; the message names it
    kUnsupported,  // this device or this build cannot do it
    kPermission,   // the operating system said no
    kDevice,       // a device or hugepages are missing or failed
    kInternal,     // a bug of ours or the system out of memory
};

std::string_view to_string(ErrorCode code) noexcept;

struct Error {
    ErrorCode code = ErrorCode::kInternal;
    std::string message;  // one line, says what and where and, if known, what mends it
};

/// Control-plane result. The packet path has verdicts instead (base/drop_reason.h).
template <class T = void>
using Result = std::expected<T, Error>;

template <class... Args>
[[nodiscard]] std::unexpected<Error> fail(ErrorCode code,
                                          fmt::format_string<Args...> format,
                                          Args&&... args) {
    return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace sluice
