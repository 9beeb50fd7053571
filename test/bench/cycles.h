// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace sluice::test {

/// TSC cycles; 0 where there is no such counter.
inline std::uint64_t cycles_now() {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
}

}  // namespace sluice::test
