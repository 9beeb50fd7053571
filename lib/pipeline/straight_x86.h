// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#if defined(__x86_64__)

#include <cstddef>

#include "pipeline/straight.h"

/// Vector twins of straight_frame4 and straight_frame6.
namespace sluice::pipeline::straight_avx2 {

bool supported() noexcept;
std::size_t ip4(const StraightIngress& in,
                StraightBurst& burst,
                std::size_t groups,
                net::Ipv4Addr* destinations) noexcept;
std::size_t ip6(const StraightIngress& in, StraightBurst& burst, std::size_t groups) noexcept;

}  // namespace sluice::pipeline::straight_avx2

#endif
