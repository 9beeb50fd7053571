// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <cstdlib>

namespace sluice::detail {
[[noreturn]] inline void check_failed(const char* expression, const char* file, int line) noexcept {
    std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, expression);
    std::abort();
}
}  // namespace sluice::detail

/// A bug of ours, not bad input: says where and aborts. Stays in release builds.
#define SLUICE_CHECK(expression)                                             \
    do {                                                                     \
        if (!(expression)) [[unlikely]] {                                    \
            ::sluice::detail::check_failed(#expression, __FILE__, __LINE__); \
        }                                                                    \
    } while (false)
