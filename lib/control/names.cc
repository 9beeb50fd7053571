// SPDX-License-Identifier: BSD-3-Clause
#include "control/names.h"

#include <algorithm>
#include <cstddef>

namespace sluice::control {
namespace {

constexpr std::size_t kMaxNameLength = 31;

}  // namespace

Result<void> check_name(const std::string& name) {
    const bool fine = !name.empty() && name.size() <= kMaxNameLength &&
                      std::ranges::none_of(
                          name, [](unsigned char c) { return c <= ' ' || c == '/' || c == 0x7f; });
    if (!fine) {
        return fail(ErrorCode::kInvalid,
                    "'{}' is no name: 1 to {} characters without space and /",
                    name,
                    kMaxNameLength);
    }
    return {};
}

std::string device_of(const std::string& devargs) {
    return devargs.substr(0, devargs.find(','));
}

}  // namespace sluice::control
