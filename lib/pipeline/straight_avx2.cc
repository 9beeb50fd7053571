// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/straight_x86.h"

#if defined(__x86_64__)

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#define SLUICE_LANES [[gnu::target("avx2")]]

namespace sluice::pipeline::straight_avx2 {

namespace {

using Vec = __m256i;
using Mask = __m256i;  // ones in the lanes that are in
constexpr std::size_t kLanes = 8;

SLUICE_LANES inline Vec all(std::uint32_t word) noexcept {
    return _mm256_set1_epi32(static_cast<int>(word));
}
SLUICE_LANES inline Vec load_words(const void* from) noexcept {
    return _mm256_loadu_si256(static_cast<const Vec*>(from));
}
SLUICE_LANES inline void store_words(void* to, Vec v) noexcept {
    _mm256_storeu_si256(static_cast<Vec*>(to), v);
}
SLUICE_LANES inline Vec and_(Vec a, Vec b) noexcept {
    return _mm256_and_si256(a, b);
}
SLUICE_LANES inline Vec or_(Vec a, Vec b) noexcept {
    return _mm256_or_si256(a, b);
}
SLUICE_LANES inline Vec xor_(Vec a, Vec b) noexcept {
    return _mm256_xor_si256(a, b);
}
SLUICE_LANES inline Vec add(Vec a, Vec b) noexcept {
    return _mm256_add_epi32(a, b);
}
SLUICE_LANES inline Vec sub(Vec a, Vec b) noexcept {
    return _mm256_sub_epi32(a, b);
}
SLUICE_LANES inline Vec times(Vec a, Vec b) noexcept {
    return _mm256_mullo_epi32(a, b);
}
SLUICE_LANES inline Vec greatest(Vec a, Vec b) noexcept {
    return _mm256_max_epu32(a, b);
}
SLUICE_LANES inline Vec high8(Vec v) noexcept {
    return _mm256_srli_epi32(v, 24);
}
SLUICE_LANES inline Vec high16(Vec v) noexcept {
    return _mm256_srli_epi32(v, 16);
}
SLUICE_LANES inline Vec low16(Vec v) noexcept {
    return _mm256_blend_epi16(v, _mm256_setzero_si256(), 0xaa);
}
/// The low 16 bits of each lane from network order.
SLUICE_LANES inline Vec swap_low16(Vec v) noexcept {
    constexpr long long kSwap = 0x8080'0405'8080'0001;  // two lanes
    return _mm256_shuffle_epi8(
        v,
        _mm256_add_epi64(_mm256_set1_epi64x(kSwap),
                         _mm256_setr_epi64x(0, 0x0808'0000'0808, 0, 0x0808'0000'0808)));
}
SLUICE_LANES inline Mask equal(Vec a, Vec b) noexcept {
    return _mm256_cmpeq_epi32(a, b);
}
SLUICE_LANES inline Mask greater(Vec a, Vec b) noexcept {
    return _mm256_cmpgt_epi32(a, b);
}
SLUICE_LANES inline Mask greater_unsigned(Vec a, Vec b) noexcept {
    // The greater of both is not b.
    return _mm256_xor_si256(_mm256_cmpeq_epi32(_mm256_max_epu32(a, b), b), all(~0U));
}
SLUICE_LANES inline Mask both(Mask a, Mask b) noexcept {
    return _mm256_and_si256(a, b);
}
SLUICE_LANES inline Mask either(Mask a, Mask b) noexcept {
    return _mm256_or_si256(a, b);
}
SLUICE_LANES inline Mask but_not(Mask a, Mask b) noexcept {
    return _mm256_andnot_si256(b, a);
}
SLUICE_LANES inline unsigned bits_of(Mask lanes) noexcept {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}

/// Not zero in each lane where the filter has the bit that `product`'s high bits name.
SLUICE_LANES inline Vec in_filter(const fib::LocalAddresses& local, Vec product) noexcept {
    const Vec hash = _mm256_srli_epi32(product, 32 - fib::LocalAddresses::kFilterBits);
    const Vec words = _mm256_i32gather_epi32(
        reinterpret_cast<const int*>(local.filter()), _mm256_srli_epi32(hash, 5), 4);
    return and_(_mm256_srlv_epi32(words, and_(hash, all(31))), all(1));
}

SLUICE_LANES inline Vec two(const std::uint8_t* low, const std::uint8_t* high) noexcept {
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)),
        1);
}

/// Four words from `offset` behind l3 on of each packet.
struct Words {
    Vec w[4];
};
SLUICE_LANES inline Words words_at(const Packet* packets, std::ptrdiff_t offset) noexcept {
    const Vec p0 = two(packets[0].l3 + offset, packets[4].l3 + offset);
    const Vec p1 = two(packets[1].l3 + offset, packets[5].l3 + offset);
    const Vec p2 = two(packets[2].l3 + offset, packets[6].l3 + offset);
    const Vec p3 = two(packets[3].l3 + offset, packets[7].l3 + offset);
    const Vec a = _mm256_unpacklo_epi32(p0, p1), b = _mm256_unpacklo_epi32(p2, p3);
    const Vec c = _mm256_unpackhi_epi32(p0, p1), d = _mm256_unpackhi_epi32(p2, p3);
    return {{_mm256_unpacklo_epi64(a, b),
             _mm256_unpackhi_epi64(a, b),
             _mm256_unpacklo_epi64(c, d),
             _mm256_unpackhi_epi64(c, d)}};
}

#include "pipeline/straight_lanes.h"

}  // namespace sluice::pipeline::straight_avx2

#endif
