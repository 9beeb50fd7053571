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

template <class Addr, class Look>
std::size_t look_at_all(const StraightBurst& burst,
                        std::uint32_t l2_bytes,
                        std::size_t destination_at,
                        std::uint32_t* lengths,
                        Addr* destinations,
                        std::uint16_t* found,
                        Look look) noexcept {
    std::size_t count = 0;
    std::fill_n(found, burst.groups, std::uint16_t{0});
    for (std::size_t i = 0; i < burst.groups * StraightBurst::kGroup; ++i) {
        const std::uint8_t* l3 = burst.packets[i].l3;
        lengths[i] = look(l3 - l2_bytes, burst.bytes[i]);
        std::memcpy(&destinations[i], l3 + destination_at, sizeof(Addr));
        if (lengths[i] != 0) {
            found[i / StraightBurst::kGroup] = static_cast<std::uint16_t>(
                found[i / StraightBurst::kGroup] | 1U << i % StraightBurst::kGroup);
            ++count;
        }
    }
    return count;
}

std::size_t scalar_ip4(const StraightIngress& in,
                       const StraightBurst& burst,
                       std::uint32_t* lengths,
                       net::Ipv4Addr* destinations,
                       std::uint16_t* found) noexcept {
    return look_at_all(burst,
                       in.model.l2_bytes,
                       offsetof(net::Ipv4Header, destination),
                       lengths,
                       destinations,
                       found,
                       [&](const std::uint8_t* frame, std::uint32_t bytes) {
                           return straight_frame4(in, frame, bytes);
                       });
}

std::size_t scalar_ip6(const StraightIngress& in,
                       const StraightBurst& burst,
                       std::uint32_t* lengths,
                       net::Ipv6Addr* destinations,
                       std::uint16_t* found) noexcept {
    return look_at_all(burst,
                       in.model.l2_bytes,
                       offsetof(net::Ipv6Header, destination),
                       lengths,
                       destinations,
                       found,
                       [&](const std::uint8_t* frame, std::uint32_t bytes) {
                           return straight_frame6(in, frame, bytes);
                       });
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
constexpr StraightImpl kAvx512{.name = "avx512",
                               .supported = straight_avx512::supported,
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
    return *std::ranges::find_if(kImpls, [](const StraightImpl& impl) { return impl.supported(); });
}

}  // namespace sluice::pipeline
