// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#if defined(__x86_64__)

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include <immintrin.h>

#include "fib/dst_cache_bucket.h"
#include "fib/lpm_lookup_x86.h"

#define SLUICE_CACHE_AVX2 [[gnu::target("avx2,bmi")]]
#define SLUICE_CACHE_AVX512 [[gnu::target("avx2,bmi,avx512f,avx512bw,avx512dq,avx512vl")]]

/// Vector twins of probe_scalar() in dst_cache.cc, and what they have in common: the four ways of a
/// bucket are compared at once, one packet after another without a branch, so that the processor
/// overlaps the packets by itself (every cache lies in its L2).
namespace sluice::fib {

#define SLUICE_CACHE_PROBE(name, Addr)                     \
    CacheProbed name(CacheView<Addr>& cache,               \
                     const Generations<Addr>& generations, \
                     std::span<const Addr> addresses,      \
                     const std::uint32_t* tails,           \
                     std::uint32_t* values,                \
                     Stamp* stamps,                        \
                     std::uint16_t* misses) noexcept

namespace cache_avx512 {
bool supported() noexcept;
SLUICE_CACHE_PROBE(probe4, net::Ipv4Addr);
SLUICE_CACHE_PROBE(probe6, net::Ipv6Addr);
}  // namespace cache_avx512

namespace cache_avx2 {
bool supported() noexcept;
SLUICE_CACHE_PROBE(probe4, net::Ipv4Addr);
SLUICE_CACHE_PROBE(probe6, net::Ipv6Addr);
}  // namespace cache_avx2

/// A bit for each way that has the key, with a value or without.
SLUICE_CACHE_AVX2 inline unsigned ways_with(const CacheBucket<net::Ipv4Addr>& bucket,
                                            const CacheKey<net::Ipv4Addr>& key) noexcept {
    const __m256i keys = _mm256_load_si256(reinterpret_cast<const __m256i*>(bucket.keys.data()));
    const __m256i wanted = _mm256_set1_epi64x(static_cast<long long>(key.word));
    return static_cast<unsigned>(
        _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(keys, wanted))));
}
SLUICE_CACHE_AVX2 inline unsigned ways_with(const CacheBucket<net::Ipv6Addr>& bucket,
                                            const CacheKey<net::Ipv6Addr>& key) noexcept {
    const __m256i high =
        _mm256_cmpeq_epi64(_mm256_load_si256(reinterpret_cast<const __m256i*>(bucket.highs.data())),
                           _mm256_set1_epi64x(static_cast<long long>(key.high)));
    const __m256i low =
        _mm256_cmpeq_epi64(_mm256_load_si256(reinterpret_cast<const __m256i*>(bucket.lows.data())),
                           _mm256_set1_epi64x(static_cast<long long>(key.low)));
    const __m128i tail =
        _mm_cmpeq_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(bucket.tails.data())),
                        _mm_set1_epi32(static_cast<int>(key.tail)));
    return static_cast<unsigned>(
        _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_and_si256(high, low))) &
        _mm_movemask_ps(_mm_castsi128_ps(tail)));
}

/// The value for a packet, kNoRoute for a miss; `stale` becomes other than zero when the key was
/// there under another stamp. `now` is noted as the time of a hit.
template <class Addr>
SLUICE_CACHE_AVX2 inline std::uint32_t probe_one(const CacheView<Addr>& cache,
                                                 std::uint32_t at,
                                                 const CacheKey<Addr>& key,
                                                 Stamp stamp,
                                                 std::uint32_t now,
                                                 std::uint32_t& stale) noexcept {
    const CacheBucket<Addr>& bucket = cache.buckets[at];
    const unsigned ways = ways_with(bucket, key);
    const auto way = static_cast<unsigned>(std::countr_zero(ways)) % kCacheWays;  // none: any
    const std::uint32_t value = ways != 0 ? bucket.values[way] : kNoRoute;
    const std::uint32_t valid = bucket.stamps[way] == stamp ? value : kNoRoute;
    stale |= value ^ valid;
    std::uint32_t nobody = 0;
    std::uint32_t& used = valid != kNoRoute ? cache.last_used(at, way) : nobody;
    used = now;
    return valid;
}

/// What is left to do for the misses of a burst when any of them was stale.
template <class Addr>
std::uint32_t drop_stale(const CacheView<Addr>& cache,
                         std::span<const Addr> addresses,
                         const std::uint32_t* tails,
                         const Stamp* stamps,
                         std::span<const std::uint16_t> misses) noexcept {
    std::uint32_t dropped = 0;
    for (const std::uint16_t i : misses) {
        const auto key = CacheKey<Addr>::of(addresses[i], tails[i]);
        dropped += cache.drop_stale(cache.bucket_of(key), key, stamps[i]) ? 1 : 0;
    }
    return dropped;
}

}  // namespace sluice::fib

#endif
