// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/straight_x86.h"

#if defined(__x86_64__)

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12's own immintrin.h makes its "undefined" registers by initializing them with themselves.
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define SLUICE_LANES [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]

namespace sluice::pipeline::straight_avx512 {

namespace {

using Vec = __m512i;
using Mask = __mmask16;
constexpr std::size_t kLanes = 16;

SLUICE_LANES inline Vec all(std::uint32_t word) noexcept {
    return _mm512_set1_epi32(static_cast<int>(word));
}
SLUICE_LANES inline Vec load_words(const void* from) noexcept {
    return _mm512_loadu_si512(from);
}
SLUICE_LANES inline void store_words(void* to, Vec v) noexcept {
    _mm512_storeu_si512(to, v);
}
SLUICE_LANES inline Vec and_(Vec a, Vec b) noexcept {
    return _mm512_and_si512(a, b);
}
SLUICE_LANES inline Vec or_(Vec a, Vec b) noexcept {
    return _mm512_or_si512(a, b);
}
SLUICE_LANES inline Vec xor_(Vec a, Vec b) noexcept {
    return _mm512_xor_si512(a, b);
}
SLUICE_LANES inline Vec add(Vec a, Vec b) noexcept {
    return _mm512_add_epi32(a, b);
}
SLUICE_LANES inline Vec sub(Vec a, Vec b) noexcept {
    return _mm512_sub_epi32(a, b);
}
SLUICE_LANES inline Vec times(Vec a, Vec b) noexcept {
    return _mm512_mullo_epi32(a, b);
}
SLUICE_LANES inline Vec greatest(Vec a, Vec b) noexcept {
    return _mm512_max_epu32(a, b);
}
SLUICE_LANES inline Vec high8(Vec v) noexcept {
    return _mm512_srli_epi32(v, 24);
}
SLUICE_LANES inline Vec high16(Vec v) noexcept {
    return _mm512_srli_epi32(v, 16);
}
SLUICE_LANES inline Vec low16(Vec v) noexcept {
    return _mm512_and_si512(v, all(0xffff));
}
/// The low 16 bits of each lane from network order.
SLUICE_LANES inline Vec swap_low16(Vec v) noexcept {
    return _mm512_or_si512(_mm512_and_si512(_mm512_slli_epi32(v, 8), all(0xff00)),
                           _mm512_and_si512(_mm512_srli_epi32(v, 8), all(0x00ff)));
}
SLUICE_LANES inline Mask equal(Vec a, Vec b) noexcept {
    return _mm512_cmpeq_epi32_mask(a, b);
}
SLUICE_LANES inline Mask greater(Vec a, Vec b) noexcept {
    return _mm512_cmpgt_epi32_mask(a, b);
}
SLUICE_LANES inline Mask greater_unsigned(Vec a, Vec b) noexcept {
    return _mm512_cmpgt_epu32_mask(a, b);
}
SLUICE_LANES inline Mask both(Mask a, Mask b) noexcept {
    return static_cast<Mask>(a & b);
}
SLUICE_LANES inline Mask either(Mask a, Mask b) noexcept {
    return static_cast<Mask>(a | b);
}
SLUICE_LANES inline Mask but_not(Mask a, Mask b) noexcept {
    return static_cast<Mask>(a & ~b);
}
SLUICE_LANES inline unsigned bits_of(Mask lanes) noexcept {
    return lanes;
}

/// Not zero in each lane where the filter has the bit that `product`'s high bits name.
SLUICE_LANES inline Vec in_filter(const fib::LocalAddresses& local, Vec product) noexcept {
    const Vec hash = _mm512_srli_epi32(product, 32 - fib::LocalAddresses::kFilterBits);
    const Vec words = _mm512_i32gather_epi32(_mm512_srli_epi32(hash, 5), local.filter(), 4);
    return and_(_mm512_srlv_epi32(words, and_(hash, all(31))), all(1));
}

SLUICE_LANES inline __m128i four(const Packet& packet, std::ptrdiff_t offset) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(packet.l3 + offset));
}
SLUICE_LANES inline Vec sixteen(const Packet* packets, std::ptrdiff_t offset) noexcept {
    Vec v = _mm512_castsi128_si512(four(packets[0], offset));
    v = _mm512_inserti32x4(v, four(packets[4], offset), 1);
    v = _mm512_inserti32x4(v, four(packets[8], offset), 2);
    return _mm512_inserti32x4(v, four(packets[12], offset), 3);
}

/// Four words from `offset` behind l3 on of each packet.
struct Words {
    Vec w[4];
};
SLUICE_LANES inline Words words_at(const Packet* packets, std::ptrdiff_t offset) noexcept {
    const Vec p0 = sixteen(packets, offset), p1 = sixteen(packets + 1, offset);
    const Vec p2 = sixteen(packets + 2, offset), p3 = sixteen(packets + 3, offset);
    const Vec a = _mm512_unpacklo_epi32(p0, p1), b = _mm512_unpacklo_epi32(p2, p3);
    const Vec c = _mm512_unpackhi_epi32(p0, p1), d = _mm512_unpackhi_epi32(p2, p3);
    return {{_mm512_unpacklo_epi64(a, b),
             _mm512_unpackhi_epi64(a, b),
             _mm512_unpacklo_epi64(c, d),
             _mm512_unpackhi_epi64(c, d)}};
}

#include "pipeline/straight_lanes.h"

}  // namespace sluice::pipeline::straight_avx512

#endif
