// SPDX-License-Identifier: BSD-3-Clause
#include "fib/dst_cache_x86.h"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace sluice::fib::cache_avx2 {
namespace {

/// Ones where a packet's key was there under another stamp.
using Stale = __m128i;
SLUICE_CACHE_AVX2 inline bool any(Stale stale) noexcept {
    return _mm_testz_si128(stale, stale) == 0;
}

/// The low words of four masks of 64 bits.
SLUICE_CACHE_AVX2 inline __m128i narrow_masks(__m256i masks) noexcept {
    return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(_mm256_castsi256_si128(masks)),
                                           _mm_castsi128_ps(_mm256_extracti128_si256(masks, 1)),
                                           0x88));
}

/// All ones in the ways that have the key.
SLUICE_CACHE_AVX2 inline __m128i ways_with_key(const CacheBucket<net::Ipv4Addr>& bucket,
                                               const CacheChunk<net::Ipv4Addr>& chunk,
                                               std::size_t lane) noexcept {
    return narrow_masks(_mm256_cmpeq_epi64(load8(bucket.keys.data()), set64(chunk.keys[lane])));
}
SLUICE_CACHE_AVX2 inline __m128i ways_with_key(const CacheBucket<net::Ipv6Addr>& bucket,
                                               const CacheChunk<net::Ipv6Addr>& chunk,
                                               std::size_t lane) noexcept {
    const auto words = chunk.addresses[lane].words();
    const __m256i high = _mm256_cmpeq_epi64(load8(bucket.highs.data()), set64(words[0]));
    const __m256i low = _mm256_cmpeq_epi64(load8(bucket.lows.data()), set64(words[1]));
    return _mm_and_si128(narrow_masks(_mm256_and_si256(high, low)),
                         _mm_cmpeq_epi32(load4(bucket.tails.data()), set4(chunk.tails[lane])));
}

/// The value for one packet in the way that holds it, zero elsewhere, and the time of the hit
/// noted; `stale` becomes other than zero when the key is there under another stamp. With kPlaces
/// places[lane] becomes the entry's number.
template <bool kPlaces, class Addr>
SLUICE_CACHE_AVX2 inline __m128i probe_one(const CacheView<Addr>& cache,
                                           const CacheChunk<Addr>& chunk,
                                           std::size_t lane,
                                           Stale& stale,
                                           std::uint32_t* places) noexcept {
    const std::size_t at = chunk.buckets[lane];
    const CacheBucket<Addr>& bucket = cache.buckets[at];
    const __m128i found = ways_with_key(bucket, chunk, lane);
    const __m128i valid = _mm_and_si128(
        found, _mm_cmpeq_epi32(load4(bucket.stamps.data()), set4(chunk.stamps[lane])));
    stale = _mm_or_si128(stale, _mm_xor_si128(valid, found));
    auto* used = reinterpret_cast<__m128i*>(&cache.last_used(at, 0));
    _mm_store_si128(used, _mm_blendv_epi8(_mm_load_si128(used), set4(chunk.now[lane]), valid));
    if constexpr (kPlaces) {
        places[lane] = cache.place(
            at, first_way(static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(valid)))));
    }
    return _mm_and_si128(valid, load4(bucket.values.data()));
}

SLUICE_CACHE_AVX2 inline std::uint32_t zeros(__m256i values) noexcept {
    const __m256i masks = _mm256_cmpeq_epi32(values, _mm256_setzero_si256());
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(masks)));
}
/// Lists the bits that are set, from `first` on; how many.
inline std::uint32_t list(std::uint32_t bits, std::size_t first, std::uint16_t* out) noexcept {
    std::uint32_t listed = 0;
    for (std::size_t at = first; at < first + kCacheChunk; ++at, bits >>= 1U) {
        out[listed] = static_cast<std::uint16_t>(at);
        listed += bits & 1U;
    }
    return listed;
}

}  // namespace

bool supported() noexcept {
    return kGathersVisible && __builtin_cpu_supports("avx2");
}

#define SLUICE_CACHE_TARGET SLUICE_CACHE_AVX2
#include "fib/dst_cache_x86_probe.h"

}  // namespace sluice::fib::cache_avx2

#endif
