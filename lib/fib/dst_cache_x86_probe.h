// SPDX-License-Identifier: BSD-3-Clause
// No #pragma once: the vector probes' common part, compiled once for each set of instructions,
// since a function for one set cannot take in a template for another. Whoever includes it, inside
// its own namespace, has defined SLUICE_CACHE_TARGET, Stale, any(), probe_one(), zeros() and
// list().

namespace {

/// Packet `lane` and the three behind it. `places`: of the chunk.
template <bool kPlaces, class Addr>
SLUICE_CACHE_TARGET inline __m128i probe_four(const CacheView<Addr>& cache,
                                              const CacheChunk<Addr>& chunk,
                                              std::size_t lane,
                                              Stale& stale,
                                              std::uint32_t* places) noexcept {
    // In this order: the last use of a key is the one to be noted.
    const __m128i a = probe_one<kPlaces>(cache, chunk, lane, stale, places);
    const __m128i b = probe_one<kPlaces>(cache, chunk, lane + 1, stale, places);
    const __m128i c = probe_one<kPlaces>(cache, chunk, lane + 2, stale, places);
    const __m128i d = probe_one<kPlaces>(cache, chunk, lane + 3, stale, places);
    return one_of_each(a, b, c, d);
}

template <bool kPlaces, class Addr>
SLUICE_CACHE_TARGET inline SLUICE_CACHE_PROBE(probe, Addr) {
    const std::size_t count = addresses.size();
    if (count < kCacheChunk) {
        return probe_scalar(cache, generations, addresses, tails, values, stamps, misses, places);
    }
    const CacheView<Addr> view = cache;  // a copy, which nothing that is stored can alias
    CacheProbed probed;
    Stale stale{};
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
            std::uint32_t* const its = kPlaces ? places + last : nullptr;
            const __m128i one = probe_one<kPlaces>(view, chunk, kCacheChunk - 1, stale, its);
            value = _mm256_broadcastd_epi32(one_of_each(one, one, one, one));
            if constexpr (kPlaces) {
                std::fill_n(places + first, run, its[kCacheChunk - 1]);
            }
        } else {
            std::uint32_t* const its = kPlaces ? places + first : nullptr;
            const __m128i low = probe_four<kPlaces>(view, chunk, 0, stale, its);
            const __m128i high = probe_four<kPlaces>(view, chunk, 4, stale, its);
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
    if (any(stale)) [[unlikely]] {
        probed.stale = drop_stale(cache, addresses, tails, stamps, {misses, probed.misses});
    }
    return probed;
}

}  // namespace

SLUICE_CACHE_TARGET SLUICE_CACHE_PROBE(probe4, net::Ipv4Addr) {
    return places == nullptr
               ? probe<false, net::Ipv4Addr>(
                     cache, generations, addresses, tails, values, stamps, misses, nullptr)
               : probe<true, net::Ipv4Addr>(
                     cache, generations, addresses, tails, values, stamps, misses, places);
}
SLUICE_CACHE_TARGET SLUICE_CACHE_PROBE(probe6, net::Ipv6Addr) {
    return places == nullptr
               ? probe<false, net::Ipv6Addr>(
                     cache, generations, addresses, tails, values, stamps, misses, nullptr)
               : probe<true, net::Ipv6Addr>(
                     cache, generations, addresses, tails, values, stamps, misses, places);
}
