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

constexpr std::size_t kLanes = 8;

/// Whether the keys of all eight packets are one.
SLUICE_CACHE_AVX2 inline bool one_key(const net::Ipv4Addr* addresses,
                                      const std::uint32_t* tails) noexcept {
    const __m256i address = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(addresses));
    const __m256i tail = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tails));
    const __m256i other = _mm256_or_si256(
        _mm256_xor_si256(address, _mm256_broadcastd_epi32(_mm256_castsi256_si128(address))),
        _mm256_xor_si256(tail, _mm256_broadcastd_epi32(_mm256_castsi256_si128(tail))));
    return _mm256_testz_si256(other, other) != 0;
}
SLUICE_CACHE_AVX2 inline bool one_key(const net::Ipv6Addr* addresses,
                                      const std::uint32_t* tails) noexcept {
    const __m256i tail = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tails));
    __m256i other = _mm256_xor_si256(tail, _mm256_broadcastd_epi32(_mm256_castsi256_si128(tail)));
    const __m256i first =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(addresses)));
    for (std::size_t i = 0; i < kLanes; i += 2) {
        const __m256i pair = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(addresses + i));
        other = _mm256_or_si256(other, _mm256_xor_si256(pair, first));
    }
    return _mm256_testz_si256(other, other) != 0;
}

SLUICE_CACHE_AVX2 inline std::uint32_t collect_misses(const std::uint32_t* values,
                                                      std::size_t count,
                                                      std::uint16_t* misses) noexcept {
    std::uint32_t found = 0;
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        const __m256i value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
        auto missed = static_cast<unsigned>(_mm256_movemask_ps(
            _mm256_castsi256_ps(_mm256_cmpeq_epi32(value, _mm256_setzero_si256()))));
        for (; missed != 0; missed &= missed - 1) {
            misses[found++] =
                static_cast<std::uint16_t>(i + static_cast<std::size_t>(std::countr_zero(missed)));
        }
    }
    for (; i < count; ++i) {
        misses[found] = static_cast<std::uint16_t>(i);
        found += values[i] == kNoRoute ? 1 : 0;
    }
    return found;
}

template <class Addr>
SLUICE_CACHE_AVX2 inline SLUICE_CACHE_PROBE(probe, Addr) {
    const std::size_t count = addresses.size();
    std::uint32_t stale = 0;
    for (std::size_t i = 0; i < count; i += kLanes) {
        const std::size_t here = std::min(count - i, kLanes);
        const bool one = here == kLanes && one_key(addresses.data() + i, tails + i);
        for (std::size_t lane = one ? here - 1 : 0; lane < here; ++lane) {
            const std::size_t at = i + lane;
            const auto key = CacheKey<Addr>::of(addresses[at], tails[at]);
            stamps[at] = generations.stamp(addresses[at]);
            values[at] = probe_one(cache,
                                   cache.bucket_of(key),
                                   key,
                                   stamps[at],
                                   cache.now + static_cast<std::uint32_t>(at) + 1,
                                   stale);
        }
        if (one) {
            std::fill_n(values + i, kLanes - 1, values[i + kLanes - 1]);
            std::fill_n(stamps + i, kLanes - 1, stamps[i + kLanes - 1]);
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
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
}

SLUICE_CACHE_AVX2 SLUICE_CACHE_PROBE(probe4, net::Ipv4Addr) {
    return probe<net::Ipv4Addr>(cache, generations, addresses, tails, values, stamps, misses);
}
SLUICE_CACHE_AVX2 SLUICE_CACHE_PROBE(probe6, net::Ipv6Addr) {
    return probe<net::Ipv6Addr>(cache, generations, addresses, tails, values, stamps, misses);
}

}  // namespace sluice::fib::cache_avx2

#endif
