// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <span>

namespace sluice {

/// Of several ways to do one thing, best first, the first that this machine can: each says so by
/// `supported()`, and the last one always does.
template <class Impl>
const Impl& first_supported(std::span<const Impl> impls) noexcept {
    return *std::ranges::find_if(impls, [](const Impl& impl) { return impl.supported(); });
}

}  // namespace sluice
