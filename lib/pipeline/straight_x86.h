// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>

#include "pipeline/straight.h"

/// Vector twins of straight_frame4 and straight_frame6, as StraightImpl wants them.
namespace sluice::pipeline {

namespace straight_avx2 {
bool supported() noexcept;
std::size_t ip4(const StraightIngress& in,
                const StraightBurst& burst,
                std::uint32_t* lengths,
                net::Ipv4Addr* destinations,
                std::uint16_t* found) noexcept;
std::size_t ip6(const StraightIngress& in,
                const StraightBurst& burst,
                std::uint32_t* lengths,
                net::Ipv6Addr* destinations,
                std::uint16_t* found) noexcept;
}  // namespace straight_avx2

namespace straight_avx512 {
bool supported() noexcept;
std::size_t ip4(const StraightIngress& in,
                const StraightBurst& burst,
                std::uint32_t* lengths,
                net::Ipv4Addr* destinations,
                std::uint16_t* found) noexcept;
std::size_t ip6(const StraightIngress& in,
                const StraightBurst& burst,
                std::uint32_t* lengths,
                net::Ipv6Addr* destinations,
                std::uint16_t* found) noexcept;
}  // namespace straight_avx512

}  // namespace sluice::pipeline

#endif
