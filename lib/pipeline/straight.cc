// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/straight.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/first_supported.h"
#include "pipeline/straight_x86.h"

namespace sluice::pipeline {

namespace {

template <class Addr>
std::size_t look_one_by_one(const StraightIngress& in,
                            const StraightBurst& burst,
                            std::uint32_t* lengths,
                            Addr* destinations,
                            std::uint16_t* found) noexcept {
    std::size_t count = 0;
    std::fill_n(found, burst.groups, std::uint16_t{0});
    for (std::size_t i = 0; i < burst.groups * StraightBurst::kGroup; ++i) {
        const std::uint8_t* l3 = burst.packets[i].l3;
        lengths[i] = straight_length<Addr>(in, l3, burst.bytes[i]);
        std::memcpy(&destinations[i], l3 + StraightFamily<Addr>::kDestination, sizeof(Addr));
        if (lengths[i] != 0) {
            found[i / StraightBurst::kGroup] = static_cast<std::uint16_t>(
                found[i / StraightBurst::kGroup] | 1U << i % StraightBurst::kGroup);
            ++count;
        }
    }
    return count;
}

constexpr StraightImpl kScalar{.name = "scalar",
                               .supported = []() noexcept { return true; },
                               .ip4 = look_one_by_one<net::Ipv4Addr>,
                               .ip6 = look_one_by_one<net::Ipv6Addr>};
#if defined(__x86_64__)
constexpr StraightImpl kAvx2{.name = "avx2",
                             .supported = fib::avx2::supported,
                             .ip4 = straight_avx2::ip4,
                             .ip6 = straight_avx2::ip6};
constexpr StraightImpl kAvx512{.name = "avx512",
                               .supported = fib::avx512::supported,
                               .ip4 = straight_avx512::ip4,
                               .ip6 = straight_avx512::ip6};
constexpr std::array kImpls{kAvx512, kAvx2, kScalar};
#else
constexpr std::array kImpls{kScalar};
#endif

}  // namespace

std::span<const StraightImpl> straight_impls() noexcept {
    return kImpls;
}

const StraightImpl& best_straight() noexcept {
    return first_supported(straight_impls());
}

}  // namespace sluice::pipeline
