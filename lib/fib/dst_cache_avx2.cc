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
/// noted; `stale` becomes other than zero when the key is there under another stamp.
template <class Addr>
SLUICE_CACHE_AVX2 inline __m128i probe_one(const CacheView<Addr>& cache,
                                           const CacheChunk<Addr>& chunk,
                                           std::size_t lane,
                                           __m128i& stale) noexcept {
    const std::size_t at = chunk.buckets[lane];
    const CacheBucket<Addr>& bucket = cache.buckets[at];
    const __m128i found = ways_with_key(bucket, chunk, lane);
    const __m128i valid = _mm_and_si128(
        found, _mm_cmpeq_epi32(load4(bucket.stamps.data()), set4(chunk.stamps[lane])));
    stale = _mm_or_si128(stale, _mm_xor_si128(valid, found));
    auto* used = reinterpret_cast<__m128i*>(&cache.last_used(at, 0));
    _mm_store_si128(used, _mm_blendv_epi8(_mm_load_si128(used), set4(chunk.now[lane]), valid));
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

template <class Addr>
SLUICE_CACHE_AVX2 inline __m128i probe_four(const CacheView<Addr>& cache,
                                            const CacheChunk<Addr>& chunk,
                                            std::size_t lane,
                                            __m128i& stale) noexcept {
    // In this order: the last use of a key is the one to be noted.
    const __m128i a = probe_one(cache, chunk, lane, stale);
    const __m128i b = probe_one(cache, chunk, lane + 1, stale);
    const __m128i c = probe_one(cache, chunk, lane + 2, stale);
    const __m128i d = probe_one(cache, chunk, lane + 3, stale);
    return one_of_each(a, b, c, d);
}

template <class Addr>
SLUICE_CACHE_AVX2 inline SLUICE_CACHE_PROBE(probe, Addr) {
    const std::size_t count = addresses.size();
    if (count < kCacheChunk) {
        return probe_scalar(cache, generations, addresses, tails, values, stamps, misses);
    }
    const CacheView<Addr> view = cache;  // a copy, which nothing that is stored can alias
    CacheProbed probed;
    __m128i stale = _mm_setzero_si128();
    for (std::size_t next = 0; next < count;) {
        const std::size_t first = std::min(next, count - kCacheChunk);
        // A run of one key is looked for once, at its end.
        const std::size_t run = run_length(addresses.subspan(first), tails + first);
        const std::size_t last = run == 0 ? first : first + run - kCacheChunk;
        CacheChunk<Addr> chunk(view, generations, addresses.data() + last, tails + last);
        set_now(chunk.now, view.now + static_cast<std::uint32_t>(last));
        forget_registers(chunk);
        __m256i value;
        if (run != 0) {
            const __m128i one = probe_one(view, chunk, kCacheChunk - 1, stale);
            value = _mm256_broadcastd_epi32(one_of_each(one, one, one, one));
        } else {
            const __m128i low = probe_four(view, chunk, 0, stale);
            const __m128i high = probe_four(view, chunk, 4, stale);
            value = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
        }
        const std::uint32_t missed = zeros(value);
        for (std::size_t i = first; i <= last; i += kCacheChunk) {
            store8(values + i, value);
            store8(stamps + i, load8(chunk.stamps.data()));
            if (missed != 0) {  // what an overlapping chunk has listed is not listed again
                probed.misses += list(missed >> (next - i), next, misses + probed.misses);
            }
            next = i + kCacheChunk;
        }
    }
    cache.now += static_cast<std::uint32_t>(count);
    probed.hits = static_cast<std::uint32_t>(count) - probed.misses;
    if (_mm_testz_si128(stale, stale) == 0) [[unlikely]] {
        probed.stale = drop_stale(cache, addresses, tails, stamps, {misses, probed.misses});
    }
    return probed;
}

}  // namespace

bool supported() noexcept {
    return kGathersVisible && __builtin_cpu_supports("avx2");
}

SLUICE_CACHE_AVX2 SLUICE_CACHE_PROBE(probe4, net::Ipv4Addr) {
    return probe<net::Ipv4Addr>(cache, generations, addresses, tails, values, stamps, misses);
}
SLUICE_CACHE_AVX2 SLUICE_CACHE_PROBE(probe6, net::Ipv6Addr) {
    return probe<net::Ipv6Addr>(cache, generations, addresses, tails, values, stamps, misses);
}

}  // namespace sluice::fib::cache_avx2

#endif
