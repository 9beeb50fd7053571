// SPDX-License-Identifier: BSD-3-Clause
#include "fib/lpm_lookup_x86.h"

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#define SLUICE_AVX2 [[gnu::target("avx2")]]

// What does not fill a register goes through the scalar search. For gathers and memory order see
// lpm_lookup_avx512.cc.
namespace sluice::fib::avx2 {
namespace {

constexpr std::size_t kLanes = 8;

template <class View, class Addr>
void lookup_rest(const View& view,
                 std::span<const Addr> addresses,
                 std::size_t from,
                 std::uint32_t* out) noexcept {
    for (std::size_t i = from; i < addresses.size(); ++i) {
        out[i] = search(view, addresses[i]);
    }
}

const int* ints(const std::uint32_t* words) noexcept {
    return reinterpret_cast<const int*>(words);
}

SLUICE_AVX2 inline __m256i load4(const net::Ipv4Addr* addresses) noexcept {
    const __m256i swap = _mm256_setr_epi8(3,
                                          2,
                                          1,
                                          0,
                                          7,
                                          6,
                                          5,
                                          4,
                                          11,
                                          10,
                                          9,
                                          8,
                                          15,
                                          14,
                                          13,
                                          12,
                                          3,
                                          2,
                                          1,
                                          0,
                                          7,
                                          6,
                                          5,
                                          4,
                                          11,
                                          10,
                                          9,
                                          8,
                                          15,
                                          14,
                                          13,
                                          12);
    return _mm256_shuffle_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(addresses)),
                               swap);
}

SLUICE_AVX2 inline void store_values(std::uint32_t* out, __m256i words) noexcept {
    const __m256i payload = _mm256_set1_epi32(static_cast<int>(kPayloadMask));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_and_si256(words, payload));
}

/// All ones in the lanes whose word has this tag.
SLUICE_AVX2 inline __m256i has_tag(__m256i words, std::uint32_t tag) noexcept {
    return _mm256_cmpeq_epi32(_mm256_srli_epi32(words, kPayloadBits),
                              _mm256_set1_epi32(static_cast<int>(tag)));
}

SLUICE_AVX2 inline __m256i step(const std::uint32_t* base,
                                __m256i words,
                                __m256i byte,
                                __m256i deeper) noexcept {
    const __m256i at = _mm256_or_si256(_mm256_slli_epi32(words, 8), byte);
    return _mm256_mask_i32gather_epi32(words, ints(base), at, deeper, 4);
}

/// The high halves of four addresses, in the order 0, 2, 1, 3.
SLUICE_AVX2 inline __m256i high_halves(const net::Ipv6Addr* addresses) noexcept {
    const auto* raw = reinterpret_cast<const __m256i*>(addresses);
    const __m256i swap = _mm256_setr_epi8(7,
                                          6,
                                          5,
                                          4,
                                          3,
                                          2,
                                          1,
                                          0,
                                          15,
                                          14,
                                          13,
                                          12,
                                          11,
                                          10,
                                          9,
                                          8,
                                          7,
                                          6,
                                          5,
                                          4,
                                          3,
                                          2,
                                          1,
                                          0,
                                          15,
                                          14,
                                          13,
                                          12,
                                          11,
                                          10,
                                          9,
                                          8);
    return _mm256_shuffle_epi8(
        _mm256_unpacklo_epi64(_mm256_loadu_si256(raw), _mm256_loadu_si256(raw + 1)), swap);
}

/// The low 32 bits of each of a and b, in the order of the addresses.
SLUICE_AVX2 inline __m256i narrow(__m256i a, __m256i b) noexcept {
    const __m256i joined = _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
    return _mm256_permutevar8x32_epi32(joined, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

SLUICE_AVX2 inline __m256i positions6(const Intervals<std::uint64_t>& in, __m256i key) noexcept {
    // AVX2 compares signed: with the top bit turned over the order is the unsigned one.
    const __m256i turn = _mm256_set1_epi64x(INT64_MIN);
    const __m256i turned = _mm256_xor_si256(key, turn);
    __m256i at = _mm256_setzero_si256();
    for (std::uint32_t left = in.count; left > 1;) {
        const std::uint32_t half = left / 2;
        const __m256i probe = _mm256_add_epi64(at, _mm256_set1_epi64x(half));
        const __m256i start = _mm256_xor_si256(
            turn, _mm256_i64gather_epi64(reinterpret_cast<const long long*>(in.starts), probe, 8));
        at = _mm256_blendv_epi8(probe, at, _mm256_cmpgt_epi64(start, turned));
        left -= half;
    }
    return at;
}

}  // namespace

bool supported() noexcept {
    return kGathersVisible && __builtin_cpu_supports("avx2");
}

SLUICE_AVX2 void intervals4(const IntervalView<net::Ipv4Addr>& view,
                            std::span<const net::Ipv4Addr> addresses,
                            std::uint32_t* out) noexcept {
    const Intervals<std::uint32_t>& in = view.first;
    std::size_t i = 0;
    for (; i + kLanes <= addresses.size(); i += kLanes) {
        const __m256i key = load4(addresses.data() + i);
        __m256i at = _mm256_setzero_si256();
        for (std::uint32_t left = in.count; left > 1;) {
            const std::uint32_t half = left / 2;
            const __m256i probe = _mm256_add_epi32(at, _mm256_set1_epi32(static_cast<int>(half)));
            const __m256i start = _mm256_i32gather_epi32(ints(in.starts), probe, 4);
            const __m256i reached = _mm256_cmpeq_epi32(_mm256_max_epu32(start, key), key);
            at = _mm256_blendv_epi8(at, probe, reached);
            left -= half;
        }
        store_values(out + i, _mm256_i32gather_epi32(ints(in.words), at, 4));
    }
    lookup_rest(view, addresses, i, out);
}

SLUICE_AVX2 void trie4(const TrieView<net::Ipv4Addr>& view,
                       std::span<const net::Ipv4Addr> addresses,
                       std::uint32_t* out) noexcept {
    std::size_t i = 0;
    for (; i + kLanes <= addresses.size(); i += kLanes) {
        const __m256i address = load4(addresses.data() + i);
        __m256i words = _mm256_i32gather_epi32(ints(view.words), _mm256_srli_epi32(address, 8), 4);
        const __m256i deeper = has_tag(words, kGroupTag);
        if (_mm256_testz_si256(deeper, deeper) == 0) {
            const __m256i byte = _mm256_and_si256(address, _mm256_set1_epi32(0xff));
            words = step(view.words, words, byte, deeper);
        }
        store_values(out + i, words);
    }
    lookup_rest(view, addresses, i, out);
}

SLUICE_AVX2 void intervals6(const IntervalView<net::Ipv6Addr>& view,
                            std::span<const net::Ipv6Addr> addresses,
                            std::uint32_t* out) noexcept {
    std::size_t i = 0;
    for (; i + kLanes <= addresses.size(); i += kLanes) {
        const __m256i at = narrow(positions6(view.first, high_halves(addresses.data() + i)),
                                  positions6(view.first, high_halves(addresses.data() + i + 4)));
        const __m256i words = _mm256_i32gather_epi32(ints(view.first.words), at, 4);
        store_values(out + i, words);
        auto nested = static_cast<unsigned>(
            _mm256_movemask_ps(_mm256_castsi256_ps(has_tag(words, kTailTag))));
        for (; nested != 0; nested &= nested - 1) {
            const auto lane = i + static_cast<unsigned>(__builtin_ctz(nested));
            out[lane] = view.nested[out[lane]].find(key_of(addresses[lane]).low);
        }
    }
    lookup_rest(view, addresses, i, out);
}

SLUICE_AVX2 void trie6(const TrieView<net::Ipv6Addr>& view,
                       std::span<const net::Ipv6Addr> addresses,
                       std::uint32_t* out) noexcept {
    std::size_t i = 0;
    for (; i + kLanes <= addresses.size(); i += kLanes) {
        const __m256i a = high_halves(addresses.data() + i);
        const __m256i b = high_halves(addresses.data() + i + 4);
        int bit = 64 - static_cast<int>(kRootBits<net::Ipv6Addr>);
        const __m256i root = narrow(_mm256_srli_epi64(a, bit), _mm256_srli_epi64(b, bit));
        __m256i words = _mm256_i32gather_epi32(ints(view.words), root, 4);
        __m256i deeper = has_tag(words, kGroupTag);
        while (_mm256_testz_si256(deeper, deeper) == 0 && bit > 0) {
            bit -= 8;
            const __m256i byte =
                _mm256_and_si256(narrow(_mm256_srli_epi64(a, bit), _mm256_srli_epi64(b, bit)),
                                 _mm256_set1_epi32(0xff));
            words = step(view.words, words, byte, deeper);
            deeper = has_tag(words, kGroupTag);
        }
        // Tails, and groups past the high half, which start at byte 8.
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), words);
        for (std::size_t lane = i; lane < i + kLanes; ++lane) {
            out[lane] = search_from(view, out[lane], 8, addresses[lane]);
        }
    }
    lookup_rest(view, addresses, i, out);
}

}  // namespace sluice::fib::avx2

#endif
