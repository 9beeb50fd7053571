// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/straight_x86.h"

#if defined(__x86_64__)

#include <bit>
#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#define SLUICE_AVX2 [[gnu::target("avx2")]]

/// Eight frames side by side: a lane of a vector is a frame, a vector one 32-bit word of each, as
/// it lies in memory.
namespace sluice::pipeline::straight_avx2 {

namespace {

using Vec = __m256i;
constexpr std::size_t kLanes = 8;

SLUICE_AVX2 inline Vec all(std::uint32_t word) noexcept {
    return _mm256_set1_epi32(static_cast<int>(word));
}
SLUICE_AVX2 inline Vec high16(Vec v) noexcept {
    return _mm256_srli_epi32(v, 16);
}
SLUICE_AVX2 inline Vec low16(Vec v) noexcept {
    return _mm256_blend_epi16(v, _mm256_setzero_si256(), 0xaa);
}
SLUICE_AVX2 inline Vec low8(Vec v) noexcept {
    return _mm256_and_si256(v, all(0xff));
}
/// The low 16 bits of each lane from network order.
SLUICE_AVX2 inline Vec swap_low16(Vec v) noexcept {
    return _mm256_shuffle_epi8(v,
                               _mm256_setr_epi8(1,
                                                0,
                                                -1,
                                                -1,
                                                5,
                                                4,
                                                -1,
                                                -1,
                                                9,
                                                8,
                                                -1,
                                                -1,
                                                13,
                                                12,
                                                -1,
                                                -1,
                                                1,
                                                0,
                                                -1,
                                                -1,
                                                5,
                                                4,
                                                -1,
                                                -1,
                                                9,
                                                8,
                                                -1,
                                                -1,
                                                13,
                                                12,
                                                -1,
                                                -1));
}

/// Four words from `offset` on of each frame.
struct Words {
    Vec w[4];
};
SLUICE_AVX2 inline Vec two(const std::uint8_t* low, const std::uint8_t* high) noexcept {
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)),
        1);
}
SLUICE_AVX2 inline Words words_at(const std::uint8_t* const* frames, std::size_t offset) noexcept {
    const Vec p0 = two(frames[0] + offset, frames[4] + offset);
    const Vec p1 = two(frames[1] + offset, frames[5] + offset);
    const Vec p2 = two(frames[2] + offset, frames[6] + offset);
    const Vec p3 = two(frames[3] + offset, frames[7] + offset);
    const Vec a = _mm256_unpacklo_epi32(p0, p1), b = _mm256_unpacklo_epi32(p2, p3);
    const Vec c = _mm256_unpackhi_epi32(p0, p1), d = _mm256_unpackhi_epi32(p2, p3);
    return {{_mm256_unpacklo_epi64(a, b),
             _mm256_unpackhi_epi64(a, b),
             _mm256_unpacklo_epi64(c, d),
             _mm256_unpackhi_epi64(c, d)}};
}

/// The word at `offset` of each frame.
SLUICE_AVX2 inline Vec word_at(const std::uint8_t* const* frames, std::size_t offset) noexcept {
    return _mm256_setr_epi32(load<int>(frames[0] + offset),
                             load<int>(frames[1] + offset),
                             load<int>(frames[2] + offset),
                             load<int>(frames[3] + offset),
                             load<int>(frames[4] + offset),
                             load<int>(frames[5] + offset),
                             load<int>(frames[6] + offset),
                             load<int>(frames[7] + offset));
}

/// Zero in each lane whose MAC addresses are as they should be, of the frame's words 0 and 1.
SLUICE_AVX2 inline Vec other_mac(const StraightIngress& in, Vec w0, Vec w1) noexcept {
    const auto mask = static_cast<std::uint32_t>(StraightIngress::kMacBits >> 32U);
    const Vec low = _mm256_xor_si256(w0, all(static_cast<std::uint32_t>(in.mac)));
    const Vec high = _mm256_xor_si256(_mm256_and_si256(w1, all(mask)),
                                      all(static_cast<std::uint32_t>(in.mac >> 32U)));
    return _mm256_or_si256(low, high);
}

/// Zero in each lane of a frame with `in`'s MAC, tag and type.
template <std::uint32_t kL2>
SLUICE_AVX2 inline Vec other_link(const StraightIngress& in,
                                  Vec type,
                                  std::uint32_t type_bits,
                                  std::uint32_t wanted_type,
                                  const Words& eth) noexcept {
    Vec bad = other_mac(in, eth.w[0], eth.w[1]);
    bad = _mm256_or_si256(
        bad, _mm256_xor_si256(_mm256_and_si256(type, all(type_bits)), all(wanted_type)));
    if constexpr (kL2 == StraightIngress::kTagged) {
        bad = _mm256_or_si256(
            bad,
            _mm256_xor_si256(_mm256_and_si256(eth.w[3], all(StraightIngress::kBitsTag)),
                             all(in.tag)));
    }
    return bad;
}
/// EtherType, and what is behind it.
template <std::uint32_t kL2>
SLUICE_AVX2 inline Vec type_of(const std::uint8_t* const* frames, const Words& eth) noexcept {
    if constexpr (kL2 == StraightIngress::kTagged) {
        return word_at(frames, kL2 - 2);
    } else {
        return eth.w[3];
    }
}

/// Ones in each lane whose packet of `length` bytes fills its `room`, or leaves what a frame of the
/// least length has behind it.
template <std::uint32_t kL2>
SLUICE_AVX2 inline Vec fits(Vec length, Vec room) noexcept {
    const Vec padded = _mm256_and_si256(_mm256_cmpgt_epi32(all(kMinFrame + 1 - kL2), room),
                                        _mm256_cmpgt_epi32(room, length));
    return _mm256_or_si256(_mm256_cmpeq_epi32(length, room), padded);
}

/// Not zero in each lane where the filter has bit `hash`.
SLUICE_AVX2 inline Vec in_filter(const fib::LocalAddresses& local, Vec hash) noexcept {
    const Vec words = _mm256_i32gather_epi32(
        reinterpret_cast<const int*>(local.filter()), _mm256_srli_epi32(hash, 5), 4);
    return _mm256_and_si256(_mm256_srlv_epi32(words, _mm256_and_si256(hash, all(31))), all(1));
}

/// Ones in each lane that is zero.
SLUICE_AVX2 inline Vec is_zero(Vec v) noexcept {
    return _mm256_cmpeq_epi32(v, _mm256_setzero_si256());
}

SLUICE_AVX2 inline unsigned bits(Vec lanes) noexcept {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}

template <std::uint32_t kL2>
SLUICE_AVX2 inline unsigned look4(const StraightIngress& in,
                                  StraightBurst& burst,
                                  std::size_t first,
                                  net::Ipv4Addr* destinations) noexcept {
    const std::uint8_t* const* frames = &burst.frames[first];
    const Words eth = words_at(frames, 0);
    const Vec type = type_of<kL2>(frames, eth);
    const Words ip = words_at(frames, kL2 + 2);  // length and id to the destination's first half
    const Vec destination = word_at(frames, kL2 + 16);
    const Vec source = _mm256_or_si256(high16(ip.w[2]), _mm256_slli_epi32(ip.w[3], 16));
    const Vec bytes = _mm256_loadu_si256(reinterpret_cast<const Vec*>(&burst.bytes[first]));
    const Vec room = _mm256_sub_epi32(bytes, all(kL2));
    const Vec length = swap_low16(ip.w[0]);
    _mm256_storeu_si256(reinterpret_cast<Vec*>(&burst.lengths[first]), length);
    _mm256_storeu_si256(reinterpret_cast<Vec*>(&destinations[first]), destination);

    Vec bad = other_link<kL2>(in, type, StraightIngress::kBits4, in.type4, eth);
    bad = _mm256_or_si256(bad, _mm256_and_si256(ip.w[1], all(0xff3f)));  // MF, offset
    bad = _mm256_or_si256(
        bad,
        in_filter(*in.local,
                  _mm256_srli_epi32(_mm256_mullo_epi32(source, all(fib::LocalAddresses::kFactor4)),
                                    32 - fib::LocalAddresses::kFilterBits)));

    // The sum of all halves of words; the first half of the first is the EtherType, and that of the
    // last stands in the word before, too.
    Vec sum = _mm256_add_epi32(high16(type), high16(destination));
    for (const Vec& w : ip.w) {
        sum = _mm256_add_epi32(sum, _mm256_add_epi32(low16(w), high16(w)));
    }
    sum = _mm256_add_epi32(low16(sum), high16(sum));
    sum = _mm256_add_epi32(low16(sum), high16(sum));

    // Hosts: 1 to 223, but 127.
    const Vec s = low8(source), d = low8(destination);
    const Vec unhosted = _mm256_or_si256(
        _mm256_or_si256(
            _mm256_or_si256(is_zero(s), is_zero(d)),
            _mm256_or_si256(_mm256_cmpeq_epi32(s, all(127)), _mm256_cmpeq_epi32(d, all(127)))),
        _mm256_cmpgt_epi32(_mm256_max_epu32(s, d), all(223)));
    const Vec ttl = low8(high16(ip.w[1]));

    Vec fine = _mm256_and_si256(is_zero(bad), _mm256_cmpeq_epi32(sum, all(0xffff)));
    fine = _mm256_and_si256(fine, fits<kL2>(length, room));
    fine = _mm256_and_si256(fine, _mm256_cmpgt_epi32(length, all(sizeof(net::Ipv4Header) - 1)));
    fine = _mm256_and_si256(fine, _mm256_cmpgt_epi32(ttl, all(1)));
    return bits(_mm256_andnot_si256(unhosted, fine));
}

template <std::uint32_t kL2>
SLUICE_AVX2 inline unsigned look6(const StraightIngress& in,
                                  StraightBurst& burst,
                                  std::size_t first) noexcept {
    const std::uint8_t* const* frames = &burst.frames[first];
    const Words eth = words_at(frames, 0);
    const Words source = words_at(frames, kL2 + 8);
    const Vec head = word_at(frames, kL2 + 4);  // payload length, next header, hop limit
    const Vec destination = word_at(frames, kL2 + 24);
    const Vec bytes = _mm256_loadu_si256(reinterpret_cast<const Vec*>(&burst.bytes[first]));
    const Vec room = _mm256_sub_epi32(bytes, all(kL2));
    const Vec length = _mm256_add_epi32(swap_low16(head), all(sizeof(net::Ipv6Header)));
    _mm256_storeu_si256(reinterpret_cast<Vec*>(&burst.lengths[first]), length);

    Vec bad =
        other_link<kL2>(in, type_of<kL2>(frames, eth), StraightIngress::kBits6, in.type6, eth);
    Vec hash = _mm256_setzero_si256();
    for (std::size_t i = 0; i < 4; ++i) {
        hash = _mm256_add_epi32(
            hash, _mm256_mullo_epi32(source.w[i], all(fib::LocalAddresses::kFactors6[i])));
    }
    bad = _mm256_or_si256(
        bad, in_filter(*in.local, _mm256_srli_epi32(hash, 32 - fib::LocalAddresses::kFilterBits)));

    // What begins with 0, 0xfe or 0xff is of a scope, unspecified, mapped or a group.
    const Vec s = low8(source.w[0]), d = low8(destination);
    const Vec unhosted = _mm256_or_si256(_mm256_or_si256(is_zero(s), is_zero(d)),
                                         _mm256_cmpgt_epi32(_mm256_max_epu32(s, d), all(0xfd)));

    Vec fine = _mm256_and_si256(is_zero(bad), fits<kL2>(length, room));
    fine = _mm256_and_si256(fine, _mm256_cmpgt_epi32(all(0x10000), length));
    fine = _mm256_and_si256(fine, _mm256_cmpgt_epi32(_mm256_srli_epi32(head, 24), all(1)));
    return bits(_mm256_andnot_si256(unhosted, fine));
}

}  // namespace

bool supported() noexcept {
    return __builtin_cpu_supports("avx2") != 0;
}

namespace {

template <std::uint32_t kL2>
SLUICE_AVX2 std::size_t find4(const StraightIngress& in,
                              StraightBurst& burst,
                              std::size_t groups,
                              net::Ipv4Addr* destinations) noexcept {
    std::size_t found = 0;
    for (std::size_t g = 0; g < groups; ++g) {
        const std::size_t first = g * StraightBurst::kGroup;
        const unsigned is = look4<kL2>(in, burst, first, destinations) |
                            (look4<kL2>(in, burst, first + kLanes, destinations) << kLanes);
        burst.ip4[g] = static_cast<std::uint16_t>(is);
        found += static_cast<std::size_t>(std::popcount(is));
    }
    return found;
}

template <std::uint32_t kL2>
SLUICE_AVX2 std::size_t find6(const StraightIngress& in,
                              StraightBurst& burst,
                              std::size_t groups) noexcept {
    std::size_t found = 0;
    for (std::size_t g = 0; g < groups; ++g) {
        const std::size_t first = g * StraightBurst::kGroup;
        const unsigned is =
            look6<kL2>(in, burst, first) | (look6<kL2>(in, burst, first + kLanes) << kLanes);
        burst.ip6[g] = static_cast<std::uint16_t>(is);
        found += static_cast<std::size_t>(std::popcount(is));
    }
    return found;
}

}  // namespace

std::size_t ip4(const StraightIngress& in,
                StraightBurst& burst,
                std::size_t groups,
                net::Ipv4Addr* destinations) noexcept {
    return in.model.l2_bytes == StraightIngress::kUntagged
               ? find4<StraightIngress::kUntagged>(in, burst, groups, destinations)
               : find4<StraightIngress::kTagged>(in, burst, groups, destinations);
}

std::size_t ip6(const StraightIngress& in, StraightBurst& burst, std::size_t groups) noexcept {
    return in.model.l2_bytes == StraightIngress::kUntagged
               ? find6<StraightIngress::kUntagged>(in, burst, groups)
               : find6<StraightIngress::kTagged>(in, burst, groups);
}

}  // namespace sluice::pipeline::straight_avx2

#endif
