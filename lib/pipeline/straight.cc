// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/straight.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "pipeline/straight_x86.h"

namespace sluice::pipeline {

namespace {

template <
    std::uint16_t (&Look)(const StraightIngress&, const std::uint8_t*, std::uint32_t) noexcept>
std::uint16_t look_at_group(const StraightIngress& in,
                            StraightBurst& burst,
                            std::size_t first) noexcept {
    unsigned found = 0;
    for (std::size_t k = 0; k < StraightBurst::kGroup; ++k) {
        const std::uint16_t length = Look(in, burst.frames[first + k], burst.bytes[first + k]);
        if (length != 0) {
            burst.lengths[first + k] = length;
            found |= 1U << k;
        }
    }
    return static_cast<std::uint16_t>(found);
}

std::size_t scalar_ip4(const StraightIngress& in,
                       StraightBurst& burst,
                       std::size_t groups,
                       net::Ipv4Addr* destinations) noexcept {
    std::size_t found = 0;
    for (std::size_t g = 0; g < groups; ++g) {
        const std::size_t first = g * StraightBurst::kGroup;
        burst.ip4[g] = look_at_group<straight_frame4>(in, burst, first);
        found += static_cast<std::size_t>(std::popcount(burst.ip4[g]));
        for (std::size_t i = first; i < first + StraightBurst::kGroup; ++i) {
            std::memcpy(
                &destinations[i],
                burst.frames[i] + in.model.l2_bytes + offsetof(net::Ipv4Header, destination),
                sizeof(net::Ipv4Addr));
        }
    }
    return found;
}

std::size_t scalar_ip6(const StraightIngress& in,
                       StraightBurst& burst,
                       std::size_t groups) noexcept {
    std::size_t found = 0;
    for (std::size_t g = 0; g < groups; ++g) {
        burst.ip6[g] = look_at_group<straight_frame6>(in, burst, g * StraightBurst::kGroup);
        found += static_cast<std::size_t>(std::popcount(burst.ip6[g]));
    }
    return found;
}

constexpr StraightImpl kScalar{.name = "scalar",
                               .supported = []() noexcept { return true; },
                               .ip4 = scalar_ip4,
                               .ip6 = scalar_ip6};
#if defined(__x86_64__)
constexpr StraightImpl kAvx2{.name = "avx2",
                             .supported = straight_avx2::supported,
                             .ip4 = straight_avx2::ip4,
                             .ip6 = straight_avx2::ip6};
constexpr std::array kImpls{kAvx2, kScalar};
#else
constexpr std::array kImpls{kScalar};
#endif

}  // namespace

std::span<const StraightImpl> straight_impls() noexcept {
    return kImpls;
}

const StraightImpl& best_straight() noexcept {
    return *std::ranges::find_if(kImpls, [](const StraightImpl& impl) { return impl.supported(); });
}

}  // namespace sluice::pipeline
