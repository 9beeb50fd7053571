// SPDX-License-Identifier: BSD-3-Clause
#include "fib/dst_cache_x86.h"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12's own immintrin.h makes its "undefined" registers by initializing them with themselves.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// For gathers and memory order see lpm_lookup_avx512.cc.
namespace sluice::fib::cache_avx512 {
namespace {

constexpr std::size_t kLanes = 16;
constexpr __mmask16 kAllLanes = 0xffff;

constexpr __mmask16 first_lanes(std::size_t count) noexcept {
    return static_cast<__mmask16>((1U << count) - 1);
}
constexpr __mmask16 join(__mmask8 low, __mmask8 high) noexcept {
    return static_cast<__mmask16>(low | high << 8U);
}
SLUICE_CACHE_AVX512 inline __m512i join(__m256i low, __m256i high) noexcept {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
SLUICE_CACHE_AVX512 inline __m512i all(std::uint64_t word) noexcept {
    return _mm512_set1_epi64(static_cast<long long>(word));
}

/// cache_hash_last() of eight words, and its highest bits.
template <class Addr>
SLUICE_CACHE_AVX512 inline __m256i buckets_of(const CacheView<Addr>& cache, __m512i word) noexcept {
    const __m512i hash = _mm512_mullo_epi64(_mm512_xor_si512(word, _mm512_srli_epi64(word, 32)),
                                            all(cache.hash_keys.last_odd));
    const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(64 - cache.bucket_bits));
    return _mm512_cvtepi64_epi32(_mm512_srl_epi64(hash, shift));
}

/// Reads the stamps of 16 addresses whose first kBlockPrefix bits are `tops`.
template <class Addr>
SLUICE_CACHE_AVX512 inline __m512i stamps_of(const Generations<Addr>& generations,
                                             __m512i tops,
                                             __mmask16 lanes) noexcept {
    using G = Generations<Addr>;
    static_assert(sizeof(std::atomic<Stamp>) == sizeof(Stamp));
    const __m512i blocks = _mm512_srli_epi32(
        _mm512_mullo_epi32(tops, _mm512_set1_epi32(static_cast<int>(G::kBlockFactor))),
        32 - G::kBlockBits);
    return _mm512_mask_i32gather_epi32(
        _mm512_setzero_si512(), lanes, blocks, generations.blocks(), 4);
}

/// Up to 16 packets, ready to be looked for.
template <class Addr>
struct Chunk;
template <>
struct Chunk<net::Ipv4Addr> {
    alignas(64) std::array<std::uint64_t, kLanes> keys;
    alignas(64) std::array<std::uint32_t, kLanes> buckets;

    CacheKey<net::Ipv4Addr> key(std::size_t lane) const noexcept { return {keys[lane]}; }
};
template <>
struct Chunk<net::Ipv6Addr> {
    alignas(64) std::array<std::uint32_t, kLanes> buckets;
    const net::Ipv6Addr* addresses;
    const std::uint32_t* tails;

    CacheKey<net::Ipv6Addr> key(std::size_t lane) const noexcept {
        return CacheKey<net::Ipv6Addr>::of(addresses[lane], tails[lane]);
    }
};

/// Fills `chunk` and `stamps`; whether all keys are one.
SLUICE_CACHE_AVX512 inline bool prepare(const CacheView<net::Ipv4Addr>& cache,
                                        const Generations<net::Ipv4Addr>& generations,
                                        const net::Ipv4Addr* addresses,
                                        const std::uint32_t* tails,
                                        __mmask16 lanes,
                                        Chunk<net::Ipv4Addr>& chunk,
                                        Stamp* stamps) noexcept {
    const __m512i address = _mm512_maskz_loadu_epi32(lanes, addresses);
    const __m512i tail = _mm512_maskz_loadu_epi32(lanes, tails);
    const __m512i low_pairs =
        _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i low = _mm512_permutex2var_epi32(address, low_pairs, tail);
    const __m512i high =
        _mm512_permutex2var_epi32(address, _mm512_add_epi32(low_pairs, _mm512_set1_epi32(8)), tail);
    _mm512_store_si512(chunk.keys.data(), low);
    _mm512_store_si512(chunk.keys.data() + 8, high);
    const __m512i odd = all(cache.hash_keys.first_odd);
    _mm512_store_si512(chunk.buckets.data(),
                       join(buckets_of(cache, _mm512_mullo_epi64(low, odd)),
                            buckets_of(cache, _mm512_mullo_epi64(high, odd))));
    // The first two bytes, swapped.
    const __m512i swap = _mm512_set4_epi32(static_cast<int>(0x80800c0dU),
                                           static_cast<int>(0x80800809U),
                                           static_cast<int>(0x80800405U),
                                           static_cast<int>(0x80800001U));
    _mm512_mask_storeu_epi32(
        stamps, lanes, stamps_of(generations, _mm512_shuffle_epi8(address, swap), lanes));
    const __m512i first = _mm512_broadcastq_epi64(_mm512_castsi512_si128(low));
    const __mmask16 same =
        join(_mm512_cmpeq_epi64_mask(low, first), _mm512_cmpeq_epi64_mask(high, first));
    return static_cast<__mmask16>(same | ~lanes) == kAllLanes;
}

/// The first step of cache_hash().
SLUICE_CACHE_AVX512 inline __m512i hash(const CacheView<net::Ipv6Addr>& cache,
                                        __m512i high,
                                        __m512i low,
                                        __m256i tail) noexcept {
    const auto& k = cache.hash_keys.words;
    const __m512i word = all(0xffffffffU);
    const __m512i a = _mm512_mullo_epi64(_mm512_add_epi64(all(k[0]), _mm512_and_si512(high, word)),
                                         _mm512_add_epi64(all(k[1]), _mm512_srli_epi64(high, 32)));
    const __m512i b = _mm512_mullo_epi64(_mm512_add_epi64(all(k[2]), _mm512_and_si512(low, word)),
                                         _mm512_add_epi64(all(k[3]), _mm512_srli_epi64(low, 32)));
    const __m512i c = _mm512_mullo_epi64(all(k[4]), _mm512_cvtepu32_epi64(tail));
    return _mm512_add_epi64(_mm512_add_epi64(a, b), c);
}

SLUICE_CACHE_AVX512 inline bool prepare(const CacheView<net::Ipv6Addr>& cache,
                                        const Generations<net::Ipv6Addr>& generations,
                                        const net::Ipv6Addr* addresses,
                                        const std::uint32_t* tails,
                                        __mmask16 lanes,
                                        Chunk<net::Ipv6Addr>& chunk,
                                        Stamp* stamps) noexcept {
    chunk.addresses = addresses;
    chunk.tails = tails;
    const auto count = static_cast<std::size_t>(std::popcount(lanes));
    __m512i raw[4];  // NOLINT: std::array drops the attributes of a vector type
    for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t here = std::clamp<std::size_t>(count, 4 * i, 4 * i + 4) - 4 * i;
        raw[i] = _mm512_maskz_loadu_epi64(static_cast<__mmask8>((1U << (2 * here)) - 1),
                                          addresses + 4 * i);
    }
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    const __m512i high_a = _mm512_permutex2var_epi64(raw[0], even, raw[1]);
    const __m512i high_b = _mm512_permutex2var_epi64(raw[2], even, raw[3]);
    const __m512i low_a = _mm512_permutex2var_epi64(raw[0], odd, raw[1]);
    const __m512i low_b = _mm512_permutex2var_epi64(raw[2], odd, raw[3]);
    const __m512i tail = _mm512_maskz_loadu_epi32(lanes, tails);
    const __m512i hash_a = hash(cache, high_a, low_a, _mm512_castsi512_si256(tail));
    const __m512i hash_b = hash(cache, high_b, low_b, _mm512_extracti64x4_epi64(tail, 1));
    _mm512_store_si512(chunk.buckets.data(),
                       join(buckets_of(cache, hash_a), buckets_of(cache, hash_b)));
    const __m512i swap = _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);
    const __m512i tops = _mm512_shuffle_epi8(
        join(_mm512_cvtepi64_epi32(high_a), _mm512_cvtepi64_epi32(high_b)), swap);
    _mm512_mask_storeu_epi32(stamps, lanes, stamps_of(generations, tops, lanes));
    const __m512i first_high = _mm512_broadcastq_epi64(_mm512_castsi512_si128(high_a));
    const __m512i first_low = _mm512_broadcastq_epi64(_mm512_castsi512_si128(low_a));
    const __m512i first_tail = _mm512_broadcastd_epi32(_mm512_castsi512_si128(tail));
    const __mmask16 same = join(
        _mm512_mask_cmpeq_epi64_mask(_mm512_cmpeq_epi64_mask(high_a, first_high), low_a, first_low),
        _mm512_mask_cmpeq_epi64_mask(
            _mm512_cmpeq_epi64_mask(high_b, first_high), low_b, first_low));
    return static_cast<__mmask16>(_mm512_mask_cmpeq_epi32_mask(same, tail, first_tail) | ~lanes) ==
           kAllLanes;
}

/// Where values are kNoRoute.
SLUICE_CACHE_AVX512 inline std::uint32_t collect_misses(const std::uint32_t* values,
                                                        std::size_t count,
                                                        std::uint16_t* misses) noexcept {
    std::uint32_t found = 0;
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (std::size_t i = 0; i < count; i += kLanes) {
        const __mmask16 lanes = first_lanes(std::min(count - i, kLanes));
        const __m512i value = _mm512_maskz_loadu_epi32(lanes, values + i);
        const __mmask16 missed = _mm512_mask_testn_epi32_mask(lanes, value, value);
        if (missed != 0) {
            const __m512i at = _mm512_add_epi32(lane, _mm512_set1_epi32(static_cast<int>(i)));
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(misses + found),
                                _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(missed, at)));
            found += static_cast<std::uint32_t>(std::popcount(missed));
        }
    }
    return found;
}

template <class Addr>
SLUICE_CACHE_AVX512 inline SLUICE_CACHE_PROBE(probe, Addr) {
    const std::size_t count = addresses.size();
    std::uint32_t stale = 0;
    Chunk<Addr> chunk;
    for (std::size_t i = 0; i < count; i += kLanes) {
        const std::size_t here = std::min(count - i, kLanes);
        const __mmask16 lanes = first_lanes(here);
        const auto now = cache.now + static_cast<std::uint32_t>(i) + 1;
        if (prepare(
                cache, generations, addresses.data() + i, tails + i, lanes, chunk, stamps + i)) {
            const std::size_t last = here - 1;
            const std::uint32_t value = probe_one(cache,
                                                  chunk.buckets[0],
                                                  chunk.key(0),
                                                  stamps[i],
                                                  now + static_cast<std::uint32_t>(last),
                                                  stale);
            _mm512_mask_storeu_epi32(values + i, lanes, _mm512_set1_epi32(static_cast<int>(value)));
            continue;
        }
        for (std::size_t lane = 0; lane < here; ++lane) {
            values[i + lane] = probe_one(cache,
                                         chunk.buckets[lane],
                                         chunk.key(lane),
                                         stamps[i + lane],
                                         now + static_cast<std::uint32_t>(lane),
                                         stale);
        }
    }
    cache.now += static_cast<std::uint32_t>(count);
    CacheProbed probed;
    probed.misses = collect_misses(values, count, misses);
    probed.hits = static_cast<std::uint32_t>(count) - probed.misses;
    if (stale != 0) [[unlikely]] {
        probed.stale = drop_stale(cache, addresses, tails, stamps, {misses, probed.misses});
    }
    return probed;
}

}  // namespace

bool supported() noexcept {
    return kGathersVisible && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

SLUICE_CACHE_AVX512 SLUICE_CACHE_PROBE(probe4, net::Ipv4Addr) {
    return probe<net::Ipv4Addr>(cache, generations, addresses, tails, values, stamps, misses);
}
SLUICE_CACHE_AVX512 SLUICE_CACHE_PROBE(probe6, net::Ipv6Addr) {
    return probe<net::Ipv6Addr>(cache, generations, addresses, tails, values, stamps, misses);
}

}  // namespace sluice::fib::cache_avx512

#endif
