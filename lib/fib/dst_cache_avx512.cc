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

namespace sluice::fib::cache_avx512 {
namespace {

/// A bit for each way that had a packet's key under another stamp.
using Stale = __mmask8;
inline bool any(Stale stale) noexcept {
    return stale != 0;
}

/// A bit for each way that has the key.
SLUICE_CACHE_AVX512 inline __mmask8 ways_with_key(const CacheBucket<net::Ipv4Addr>& bucket,
                                                  const CacheChunk<net::Ipv4Addr>& chunk,
                                                  std::size_t lane) noexcept {
    return _mm256_cmpeq_epi64_mask(load8(bucket.keys.data()), set64(chunk.keys[lane]));
}
SLUICE_CACHE_AVX512 inline __mmask8 ways_with_key(const CacheBucket<net::Ipv6Addr>& bucket,
                                                  const CacheChunk<net::Ipv6Addr>& chunk,
                                                  std::size_t lane) noexcept {
    const auto words = chunk.addresses[lane].words();
    const __m256i high = _mm256_xor_si256(load8(bucket.highs.data()), set64(words[0]));
    const __m256i low = _mm256_xor_si256(load8(bucket.lows.data()), set64(words[1]));
    const __m256i differ = _mm256_or_si256(high, low);
    return _mm_mask_cmpeq_epi32_mask(_mm256_testn_epi64_mask(differ, differ),
                                     load4(bucket.tails.data()),
                                     set4(chunk.tails[lane]));
}

/// The value for one packet in the way that holds it, zero elsewhere, and the time of the hit
/// noted; `stale` gets a bit when the key is there under another stamp. With kPlaces places[lane]
/// becomes the entry's number.
template <bool kPlaces, class Addr>
SLUICE_CACHE_AVX512 inline __m128i probe_one(const CacheView<Addr>& cache,
                                             const CacheChunk<Addr>& chunk,
                                             std::size_t lane,
                                             Stale& stale,
                                             std::uint32_t* places) noexcept {
    const std::size_t at = chunk.buckets[lane];
    const CacheBucket<Addr>& bucket = cache.buckets[at];
    const __mmask8 found = ways_with_key(bucket, chunk, lane);
    const __mmask8 valid =
        _mm_mask_cmpeq_epi32_mask(found, load4(bucket.stamps.data()), set4(chunk.stamps[lane]));
    stale = _kor_mask8(stale, _kandn_mask8(valid, found));
    _mm_mask_storeu_epi32(&cache.last_used(at, 0), valid, set4(chunk.now[lane]));
    if constexpr (kPlaces) {
        places[lane] = cache.place(at, first_way(valid));
    }
    return _mm_maskz_loadu_epi32(valid, bucket.values.data());
}

SLUICE_CACHE_AVX512 inline std::uint32_t zeros(__m256i values) noexcept {
    return _mm256_testn_epi32_mask(values, values);
}
/// Lists the bits that are set, from `first` on; how many.
SLUICE_CACHE_AVX512 inline std::uint32_t list(std::uint32_t bits,
                                              std::size_t first,
                                              std::uint16_t* out) noexcept {
    const __m256i at = _mm256_add_epi32(set8(static_cast<std::uint32_t>(first)),
                                        _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i listed = _mm256_maskz_compress_epi32(static_cast<__mmask8>(bits), at);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtepi32_epi16(listed));
    return static_cast<std::uint32_t>(std::popcount(bits));
}

}  // namespace

bool supported() noexcept {
    return kGathersVisible && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

#define SLUICE_CACHE_TARGET SLUICE_CACHE_AVX512
#include "fib/dst_cache_x86_probe.h"

}  // namespace sluice::fib::cache_avx512

#endif
