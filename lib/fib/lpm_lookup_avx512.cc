// SPDX-License-Identifier: BSD-3-Clause
#include "fib/lpm_lookup_x86.h"

#if defined(__x86_64__)

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12's own immintrin.h makes its "undefined" registers by initializing them with themselves.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define SLUICE_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]

// Gathers read aligned 32-bit words, each of which x86 loads whole and in program order: as good as
// load_word()'s acquire.
namespace sluice::fib::avx512 {
namespace {

constexpr std::size_t kLanes = 16;
constexpr int kGroupWord = static_cast<int>(make_word(kGroupTag, 0));
constexpr int kTailWord = static_cast<int>(make_word(kTailTag, 0));

constexpr __mmask16 first_lanes(std::size_t count) noexcept {
    return static_cast<__mmask16>((1U << count) - 1);
}
constexpr __mmask8 low_half(__mmask16 mask) noexcept {
    return static_cast<__mmask8>(mask);
}
constexpr __mmask8 high_half(__mmask16 mask) noexcept {
    return static_cast<__mmask8>(mask >> 8U);
}

SLUICE_AVX512 inline __m512i load4(const net::Ipv4Addr* addresses, __mmask16 lanes) noexcept {
    const __m512i swap = _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);
    return _mm512_shuffle_epi8(_mm512_maskz_loadu_epi32(lanes, addresses), swap);
}

SLUICE_AVX512 inline void store_values(std::uint32_t* out,
                                       __mmask16 lanes,
                                       __m512i words) noexcept {
    const __m512i payload = _mm512_set1_epi32(static_cast<int>(kPayloadMask));
    _mm512_mask_storeu_epi32(out, lanes, _mm512_and_si512(words, payload));
}

SLUICE_AVX512 inline __m512i join(__m256i low, __m256i high) noexcept {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// Halves of 16 addresses in host order, eight to a register.
struct Pair {
    __m512i a;
    __m512i b;
};

SLUICE_AVX512 inline Pair pick(const __m512i (&raw)[4], __m512i which) noexcept {
    const __m512i swap = _mm512_set4_epi32(0x08090a0b, 0x0c0d0e0f, 0x00010203, 0x04050607);
    return {_mm512_shuffle_epi8(_mm512_permutex2var_epi64(raw[0], which, raw[1]), swap),
            _mm512_shuffle_epi8(_mm512_permutex2var_epi64(raw[2], which, raw[3]), swap)};
}

SLUICE_AVX512 inline void load6(const net::Ipv6Addr* addresses,
                                std::size_t count,
                                __m512i (&raw)[4]) noexcept {
    for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t here = count > 4 * i ? std::min<std::size_t>(count - 4 * i, 4) : 0;
        const auto lanes = static_cast<__mmask8>((1U << (2 * here)) - 1);
        raw[i] = _mm512_maskz_loadu_epi64(lanes, addresses + 4 * i);
    }
}
SLUICE_AVX512 inline Pair high_halves(const __m512i (&raw)[4]) noexcept {
    return pick(raw, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0));
}
SLUICE_AVX512 inline Pair low_halves(const __m512i (&raw)[4]) noexcept {
    return pick(raw, _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1));
}

/// The low 32 bits of each, shifted right.
SLUICE_AVX512 inline __m512i shifted(const Pair& halves, unsigned bits) noexcept {
    return join(_mm512_cvtepi64_epi32(_mm512_srli_epi64(halves.a, bits)),
                _mm512_cvtepi64_epi32(_mm512_srli_epi64(halves.b, bits)));
}

// Searching intervals: up to 32 starts lie in registers, where a binary search needs no memory. If
// there are more, those are the first starts of nodes, and all of a node is compared with one
// address at once. A binary search by gathers is 5 to 10 times slower: each step waits for the one
// before.

constexpr std::uint32_t kTops = 32;

/// What pads a top is found only for the last address of all.
struct Top4 {
    __m512i starts[2];
    std::uint32_t size;
};

SLUICE_AVX512 inline Top4 load_top(const Intervals<std::uint32_t>& in) noexcept {
    const std::uint32_t nodes = in.nodes();
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const auto step = static_cast<int>(in.node_keys());
    Top4 top{};
    for (std::uint32_t i = 0; i < 2; ++i) {
        const __mmask16 lanes =
            first_lanes(std::clamp<std::uint32_t>(nodes, 16 * i, 16 * i + 16) - 16 * i);
        const __m512i at =
            _mm512_mullo_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(static_cast<int>(16 * i))),
                               _mm512_set1_epi32(step));
        top.starts[i] = _mm512_mask_i32gather_epi32(_mm512_set1_epi32(-1), lanes, at, in.starts, 4);
    }
    top.size = nodes <= kTops / 2 ? kTops / 2 : kTops;
    return top;
}

SLUICE_AVX512 inline __m512i position(const Top4& top, __m512i key) noexcept {
    __m512i at = _mm512_setzero_si512();
    for (std::uint32_t half = top.size / 2; half > 0; half /= 2) {
        const __m512i probe = _mm512_or_si512(at, _mm512_set1_epi32(static_cast<int>(half)));
        const __m512i start = _mm512_permutex2var_epi32(top.starts[0], probe, top.starts[1]);
        at = _mm512_mask_mov_epi32(at, _mm512_cmple_epu32_mask(start, key), probe);
    }
    return at;
}

struct Top6 {
    __m512i starts[4];
    std::uint32_t size;
};

SLUICE_AVX512 inline Top6 load_top(const Intervals<std::uint64_t>& in) noexcept {
    const std::uint32_t nodes = in.nodes();
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const auto step = static_cast<int>(in.node_keys());
    Top6 top{};
    for (std::uint32_t i = 0; i < 4; ++i) {
        const auto lanes = static_cast<__mmask8>(
            first_lanes(std::clamp<std::uint32_t>(nodes, 8 * i, 8 * i + 8) - 8 * i));
        const __m256i at =
            _mm256_mullo_epi32(_mm256_add_epi32(lane, _mm256_set1_epi32(static_cast<int>(8 * i))),
                               _mm256_set1_epi32(step));
        top.starts[i] = _mm512_mask_i32gather_epi64(_mm512_set1_epi64(-1), lanes, at, in.starts, 8);
    }
    top.size = nodes <= kTops / 2 ? kTops / 2 : kTops;
    return top;
}

SLUICE_AVX512 inline __m512i position(const Top6& top, __m512i key) noexcept {
    __m512i at = _mm512_setzero_si512();
    __mmask8 upper =
        0;  // in the second sixteen, whose registers a permutation cannot reach as well
    if (top.size == kTops) {
        const __m512i middle = _mm512_broadcastq_epi64(_mm512_castsi512_si128(top.starts[2]));
        upper = _mm512_cmple_epu64_mask(middle, key);
    }
    for (std::uint32_t half = kTops / 4; half > 0; half /= 2) {
        const __m512i probe = _mm512_or_si512(at, _mm512_set1_epi64(half));
        __m512i start = _mm512_permutex2var_epi64(top.starts[0], probe, top.starts[1]);
        if (top.size == kTops) {
            start = _mm512_mask_mov_epi64(
                start, upper, _mm512_permutex2var_epi64(top.starts[2], probe, top.starts[3]));
        }
        at = _mm512_mask_mov_epi64(at, _mm512_cmple_epu64_mask(start, key), probe);
    }
    return _mm512_mask_or_epi64(at, upper, at, _mm512_set1_epi64(kTops / 2));
}

SLUICE_AVX512 inline __m512i position(const Top6& top, const Pair& keys) noexcept {
    return join(_mm512_cvtepi64_epi32(position(top, keys.a)),
                _mm512_cvtepi64_epi32(position(top, keys.b)));
}

SLUICE_AVX512 inline std::uint32_t find_in_node(const Intervals<std::uint32_t>& in,
                                                std::uint32_t keys,
                                                std::uint32_t node,
                                                std::uint32_t key) noexcept {
    const std::uint32_t* starts = in.starts + node * keys;
    const __m512i wanted = _mm512_set1_epi32(static_cast<int>(key));
    int reached = 0;
    for (std::uint32_t i = 0; i < keys; i += 16) {
        reached += std::popcount(_mm512_cmple_epu32_mask(_mm512_loadu_si512(starts + i), wanted));
    }
    return in.words[node * keys + static_cast<std::uint32_t>(reached) - 1];
}

SLUICE_AVX512 inline std::uint32_t find_in_node(const Intervals<std::uint64_t>& in,
                                                std::uint32_t keys,
                                                std::uint32_t node,
                                                std::uint64_t key) noexcept {
    const std::uint64_t* starts = in.starts + node * keys;
    const __m512i wanted = _mm512_set1_epi64(static_cast<long long>(key));
    int reached = 0;
    for (std::uint32_t i = 0; i < keys; i += 8) {
        reached += std::popcount(_mm512_cmple_epu64_mask(_mm512_loadu_si512(starts + i), wanted));
    }
    return in.words[node * keys + static_cast<std::uint32_t>(reached) - 1];
}

/// The words for up to 16 addresses whose places in the top are `at`.
template <class Addr, class Key>
SLUICE_AVX512 inline void find_all(Intervals<Key> in,  // a copy, which `out` cannot alias
                                   __m512i at,
                                   std::span<const Addr> addresses,
                                   std::uint32_t* out) noexcept {
    const std::uint32_t keys = in.node_keys();
    alignas(64) std::uint32_t nodes[kLanes];
    const __m512i last = _mm512_set1_epi32(static_cast<int>(in.nodes() - 1));
    _mm512_store_si512(nodes, _mm512_min_epu32(at, last));
    for (std::size_t lane = 0; lane < addresses.size(); ++lane) {
        out[lane] = find_in_node(in, keys, nodes[lane], first_key(addresses[lane]));
    }
}

/// For eight lanes: which tails hold their address.
SLUICE_AVX512 inline __mmask8 tails_hold(
    const Tail* tails, __m256i numbers, __mmask8 lanes, __m512i high, __m512i low) noexcept {
    static_assert(sizeof(Tail) ==
                  40);  // five 64-bit fields, so the scale is 8 and the index times 5
    const __m256i at = _mm256_mullo_epi32(numbers, _mm256_set1_epi32(5));
    const __m512i zero = _mm512_setzero_si512();
    const auto* fields = reinterpret_cast<const std::int64_t*>(tails);
    const __m512i prefix_high = _mm512_mask_i32gather_epi64(zero, lanes, at, fields, 8);
    const __m512i mask_high = _mm512_mask_i32gather_epi64(zero, lanes, at, fields + 2, 8);
    const __m512i mask_low = _mm512_mask_i32gather_epi64(zero, lanes, at, fields + 3, 8);
    __m512i differ = _mm512_and_si512(_mm512_xor_si512(prefix_high, high), mask_high);
    const __mmask8 long_ones = _mm512_test_epi64_mask(mask_low, mask_low);
    if (long_ones != 0) {
        const __m512i prefix_low = _mm512_mask_i32gather_epi64(zero, long_ones, at, fields + 1, 8);
        differ =
            _mm512_or_si512(differ, _mm512_and_si512(_mm512_xor_si512(prefix_low, low), mask_low));
    }
    return _mm512_mask_testn_epi64_mask(lanes, differ, differ);
}

SLUICE_AVX512 inline __m512i resolve_tails(const Tail* tails,
                                           __m512i words,
                                           __mmask16 lanes,
                                           const Pair& highs,
                                           const Pair& lows) noexcept {
    const __m512i numbers =
        _mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(kPayloadMask)));
    const __mmask8 hit_a =
        tails_hold(tails, _mm512_castsi512_si256(numbers), low_half(lanes), highs.a, lows.a);
    const __mmask8 hit_b =
        tails_hold(tails, _mm512_extracti64x4_epi64(numbers, 1), high_half(lanes), highs.b, lows.b);
    const auto hits = static_cast<__mmask16>(hit_a | hit_b << 8U);
    // hit and miss are the ninth and tenth 32-bit fields of ten.
    __m512i at = _mm512_mullo_epi32(numbers, _mm512_set1_epi32(10));
    at = _mm512_add_epi32(at,
                          _mm512_mask_mov_epi32(_mm512_set1_epi32(9), hits, _mm512_set1_epi32(8)));
    return _mm512_mask_i32gather_epi32(words, lanes, at, tails, 4);
}

}  // namespace

bool supported() noexcept {
    return kGathersVisible && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

SLUICE_AVX512 void intervals4(const IntervalView<net::Ipv4Addr>& view,
                              std::span<const net::Ipv4Addr> addresses,
                              std::uint32_t* out) noexcept {
    const Intervals<std::uint32_t>& in = view.first;
    const Top4 top = load_top(in);
    const bool all_in_top = in.node_keys() == 1;
    for (std::size_t i = 0; i < addresses.size(); i += kLanes) {
        const std::size_t count = std::min(addresses.size() - i, kLanes);
        const __mmask16 lanes = first_lanes(count);
        const __m512i at = position(top, load4(addresses.data() + i, lanes));
        if (all_in_top) {
            const __m512i last = _mm512_set1_epi32(static_cast<int>(in.count - 1));
            store_values(
                out + i, lanes, _mm512_i32gather_epi32(_mm512_min_epu32(at, last), in.words, 4));
        } else {
            find_all(in, at, addresses.subspan(i, count), out + i);
        }
    }
}

SLUICE_AVX512 void trie4(const TrieView<net::Ipv4Addr>& view,
                         std::span<const net::Ipv4Addr> addresses,
                         std::uint32_t* out) noexcept {
    for (std::size_t i = 0; i < addresses.size(); i += kLanes) {
        const __mmask16 lanes = first_lanes(std::min(addresses.size() - i, kLanes));
        const __m512i address = load4(addresses.data() + i, lanes);
        const __m512i root = _mm512_srli_epi32(address, 8);
        __m512i words =
            _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), lanes, root, view.words, 4);
        const __mmask16 deeper = _mm512_cmpge_epu32_mask(words, _mm512_set1_epi32(kGroupWord));
        if (deeper != 0) {
            const __m512i byte = _mm512_and_si512(address, _mm512_set1_epi32(0xff));
            // The shift by the group's size drops the tag.
            const __m512i at = _mm512_or_si512(_mm512_slli_epi32(words, 8), byte);
            words = _mm512_mask_i32gather_epi32(words, deeper, at, view.words, 4);
        }
        store_values(out + i, lanes, words);
    }
}

SLUICE_AVX512 void intervals6(const IntervalView<net::Ipv6Addr>& view,
                              std::span<const net::Ipv6Addr> addresses,
                              std::uint32_t* out) noexcept {
    const Intervals<std::uint64_t>& in = view.first;
    const Top6 top = load_top(in);
    const bool all_in_top = in.node_keys() == 1;
    for (std::size_t i = 0; i < addresses.size(); i += kLanes) {
        const std::size_t count = std::min(addresses.size() - i, kLanes);
        const __mmask16 lanes = first_lanes(count);
        __m512i raw[4];
        load6(addresses.data() + i, count, raw);
        const __m512i at = position(top, high_halves(raw));
        if (all_in_top) {
            const __m512i last = _mm512_set1_epi32(static_cast<int>(in.count - 1));
            _mm512_mask_storeu_epi32(
                out + i, lanes, _mm512_i32gather_epi32(_mm512_min_epu32(at, last), in.words, 4));
        } else {
            find_all(in, at, addresses.subspan(i, count), out + i);
        }
        const __m512i words = _mm512_maskz_loadu_epi32(lanes, out + i);
        unsigned nested = _mm512_cmpge_epu32_mask(words, _mm512_set1_epi32(kTailWord));
        for (; nested != 0; nested &= nested - 1) {
            const auto lane = i + static_cast<unsigned>(std::countr_zero(nested));
            out[lane] = view.nested[payload_of(out[lane])].find(key_of(addresses[lane]).low);
        }
    }
}

SLUICE_AVX512 void trie6(const TrieView<net::Ipv6Addr>& view,
                         std::span<const net::Ipv6Addr> addresses,
                         std::uint32_t* out) noexcept {
    const __m512i group_word = _mm512_set1_epi32(kGroupWord);
    for (std::size_t i = 0; i < addresses.size(); i += kLanes) {
        const std::size_t count = std::min(addresses.size() - i, kLanes);
        const __mmask16 lanes = first_lanes(count);
        __m512i raw[4];
        load6(addresses.data() + i, count, raw);
        const Pair highs = high_halves(raw);
        __m512i words = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(),
                                                    lanes,
                                                    shifted(highs, 64 - kRootBits<net::Ipv6Addr>),
                                                    view.words,
                                                    4);
        __mmask16 deeper = _mm512_cmpge_epu32_mask(words, group_word);
        for (unsigned bit = 64 - kRootBits<net::Ipv6Addr>; deeper != 0 && bit > 0;) {
            bit -= 8;
            const __m512i byte = _mm512_and_si512(shifted(highs, bit), _mm512_set1_epi32(0xff));
            const __m512i at = _mm512_or_si512(_mm512_slli_epi32(words, 8), byte);
            words = _mm512_mask_i32gather_epi32(words, deeper, at, view.words, 4);
            deeper = _mm512_cmpge_epu32_mask(words, group_word);
        }
        const __mmask16 tails = _mm512_mask_cmpge_epu32_mask(
            static_cast<__mmask16>(~deeper), words, _mm512_set1_epi32(kTailWord));
        if (tails != 0) {
            words = resolve_tails(view.tails, words, tails, highs, low_halves(raw));
        }
        if (deeper == 0) [[likely]] {
            store_values(out + i, lanes, words);
            continue;
        }
        // Several prefixes longer than /64 in one /64.
        _mm512_mask_storeu_epi32(out + i, lanes, words);
        for (std::size_t lane = i; lane < i + count; ++lane) {
            out[lane] = search_from(view, out[lane], 8, addresses[lane]);
        }
    }
}

}  // namespace sluice::fib::avx512

#endif
