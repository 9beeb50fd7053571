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

#define SLUICE_CACHE_AVX2 [[gnu::target("avx2")]]
#define SLUICE_CACHE_AVX512 [[gnu::target("avx2,avx512f,avx512bw,avx512dq,avx512vl")]]

/// Vector twins of the scalar probe. Four ways of a bucket are compared at once, one packet after
/// another and without a branch: packets do not wait for each other, so that the processor overlaps
/// them by itself. All vectors are of 32 bytes: longer ones would keep a port of the processor from
/// all the others.
namespace sluice::fib {

/// DstCache::probe().
#define SLUICE_CACHE_PROBE(name, Addr)                     \
    CacheProbed name(CacheView<Addr>& cache,               \
                     const Generations<Addr>& generations, \
                     std::span<const Addr> addresses,      \
                     const std::uint32_t* tails,           \
                     std::uint32_t* values,                \
                     Stamp* stamps,                        \
                     std::uint16_t* misses,                \
                     std::uint32_t* places) noexcept

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

/// Packets that are looked for together. A burst that is no multiple of it ends with a chunk that
/// overlaps the one before: the same answers once more. Shorter ones are left to the scalar probe.
inline constexpr std::size_t kCacheChunk = 8;

SLUICE_CACHE_AVX2 inline __m256i load8(const void* from) noexcept {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
SLUICE_CACHE_AVX2 inline void store8(void* to, __m256i words) noexcept {
    _mm256_storeu_si256(static_cast<__m256i*>(to), words);
}
SLUICE_CACHE_AVX2 inline __m128i load4(const void* from) noexcept {
    return _mm_load_si128(static_cast<const __m128i*>(from));
}
SLUICE_CACHE_AVX2 inline __m128i set4(std::uint32_t word) noexcept {
    return _mm_set1_epi32(static_cast<int>(word));
}
SLUICE_CACHE_AVX2 inline __m256i set8(std::uint32_t word) noexcept {
    return _mm256_set1_epi32(static_cast<int>(word));
}
SLUICE_CACHE_AVX2 inline __m256i set64(std::uint64_t word) noexcept {
    return _mm256_set1_epi64x(static_cast<long long>(word));
}

/// Whether all keys of a chunk are this one.
SLUICE_CACHE_AVX2 inline bool all_like(const net::Ipv4Addr& address,
                                       std::uint32_t tail,
                                       const net::Ipv4Addr* addresses,
                                       const std::uint32_t* tails) noexcept {
    const __m256i other = _mm256_or_si256(
        _mm256_xor_si256(load8(addresses), set8(std::bit_cast<std::uint32_t>(address))),
        _mm256_xor_si256(load8(tails), set8(tail)));
    return _mm256_testz_si256(other, other) != 0;
}
SLUICE_CACHE_AVX2 inline bool all_like(const net::Ipv6Addr& address,
                                       std::uint32_t tail,
                                       const net::Ipv6Addr* addresses,
                                       const std::uint32_t* tails) noexcept {
    const __m256i first = _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(address.bytes.data())));
    __m256i other = _mm256_xor_si256(load8(tails), set8(tail));
    for (std::size_t i = 0; i < kCacheChunk; i += 2) {
        other = _mm256_or_si256(other, _mm256_xor_si256(load8(addresses + i), first));
    }
    return _mm256_testz_si256(other, other) != 0;
}
/// How many of the packets have the key of the first one, by whole chunks.
template <class Addr>
SLUICE_CACHE_AVX2 inline std::size_t run_length(std::span<const Addr> addresses,
                                                const std::uint32_t* tails) noexcept {
    std::size_t length = 0;
    while (length + kCacheChunk <= addresses.size() &&
           all_like(addresses[0], tails[0], addresses.data() + length, tails + length)) {
        length += kCacheChunk;
    }
    return length;
}

/// The products of cache_hash_pair(); `secrets` as the pairs lie.
SLUICE_CACHE_AVX2 inline __m256i hash_pairs(__m256i pairs, __m256i secrets) noexcept {
    const __m256i words = _mm256_add_epi32(pairs, secrets);
    return _mm256_mul_epu32(words, _mm256_srli_epi64(words, 32));
}
/// The buckets of four keys, from the sums of their products.
template <class Addr>
SLUICE_CACHE_AVX2 inline __m256i buckets_of(const CacheView<Addr>& cache, __m256i sums) noexcept {
    const __m256i word = _mm256_xor_si256(sums, _mm256_srli_epi64(sums, 32));
    const __m256i odd = set64(cache.hash_keys.odd);
    // A product of 64 bits from those of 32.
    const __m256i crossed =
        _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(word, 32), odd),
                         _mm256_mul_epu32(word, set64(cache.hash_keys.odd >> 32U)));
    const __m256i hash =
        _mm256_add_epi64(_mm256_mul_epu32(word, odd), _mm256_slli_epi64(crossed, 32));
    return _mm256_srl_epi64(hash, _mm_cvtsi32_si128(static_cast<int>(64 - cache.bucket_bits)));
}
/// The low words of eight of 64 bits.
SLUICE_CACHE_AVX2 inline __m256i narrow(__m256i a, __m256i b) noexcept {
    const __m256 mixed = _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88);
    return _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xd8);
}
/// Reads the stamps of addresses whose first kBlockPrefix bits are `tops`.
template <class Addr>
SLUICE_CACHE_AVX2 inline __m256i stamps_of(const Generations<Addr>& generations,
                                           __m256i tops) noexcept {
    using G = Generations<Addr>;
    static_assert(sizeof(*generations.blocks()) == sizeof(Stamp));
    const __m256i blocks =
        _mm256_srli_epi32(_mm256_mullo_epi32(tops, set8(G::kBlockFactor)), 32 - G::kBlockBits);
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(generations.blocks()), blocks, 4);
}

/// Of each address, as a number.
SLUICE_CACHE_AVX2 inline __m256i first_two_bytes(__m256i addresses) noexcept {
    const __m256i swap = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(1, 0, -1, -1, 5, 4, -1, -1, 9, 8, -1, -1, 13, 12, -1, -1));
    return _mm256_shuffle_epi8(addresses, swap);
}

/// A chunk of packets, ready to be looked for. Lookups read its words from memory, one by one: that
/// is cheaper than to take them out of registers, of which one port does all.
template <class Addr>
struct CacheChunk;

template <>
struct CacheChunk<net::Ipv4Addr> {
    alignas(32) std::array<std::uint64_t, kCacheChunk> keys;
    alignas(32) std::array<std::uint32_t, kCacheChunk> buckets;
    alignas(32) std::array<Stamp, kCacheChunk> stamps;
    alignas(32) std::array<std::uint32_t, kCacheChunk> now;

    SLUICE_CACHE_AVX2 CacheChunk(const CacheView<net::Ipv4Addr>& cache,
                                 const Generations<net::Ipv4Addr>& generations,
                                 const net::Ipv4Addr* addresses,
                                 const std::uint32_t* tails) noexcept {
        const __m256i address = load8(addresses);
        const __m256i tail = load8(tails);
        const __m256i even = _mm256_unpacklo_epi32(address, tail);
        const __m256i odd = _mm256_unpackhi_epi32(address, tail);
        const __m256i a = _mm256_permute2x128_si256(even, odd, 0x20);
        const __m256i b = _mm256_permute2x128_si256(even, odd, 0x31);
        store8(keys.data(), a);
        store8(keys.data() + 4, b);
        const __m256i secrets =
            set64(std::uint64_t{cache.hash_keys.address[1]} << 32U | cache.hash_keys.address[0]);
        store8(buckets.data(),
               narrow(buckets_of(cache, hash_pairs(a, secrets)),
                      buckets_of(cache, hash_pairs(b, secrets))));
        store8(stamps.data(), stamps_of(generations, first_two_bytes(address)));
    }
};

template <>
struct CacheChunk<net::Ipv6Addr> {
    const net::Ipv6Addr* addresses;
    const std::uint32_t* tails;
    alignas(32) std::array<std::uint32_t, kCacheChunk> buckets;
    alignas(32) std::array<Stamp, kCacheChunk> stamps;
    alignas(32) std::array<std::uint32_t, kCacheChunk> now;

    /// The sums of four keys, whose addresses are in `a` and `b`.
    SLUICE_CACHE_AVX2 static __m256i sums(const CacheHashKeys& keys,
                                          __m256i a,
                                          __m256i b,
                                          __m128i tail) noexcept {
        const __m256i secrets = _mm256_broadcastsi128_si256(load4(keys.address.data()));
        const __m256i product_a = hash_pairs(a, secrets);
        const __m256i product_b = hash_pairs(b, secrets);
        const __m256i halves = _mm256_add_epi64(_mm256_unpacklo_epi64(product_a, product_b),
                                                _mm256_unpackhi_epi64(product_a, product_b));
        const __m256i last = _mm256_mul_epu32(
            _mm256_cvtepu32_epi64(_mm_add_epi32(tail, set4(keys.tail))), set64(keys.tail_factor));
        return _mm256_add_epi64(_mm256_permute4x64_epi64(halves, 0xd8), last);
    }

    SLUICE_CACHE_AVX2 CacheChunk(const CacheView<net::Ipv6Addr>& cache,
                                 const Generations<net::Ipv6Addr>& generations,
                                 const net::Ipv6Addr* first_address,
                                 const std::uint32_t* first_tail) noexcept
        : addresses(first_address), tails(first_tail) {
        const __m256i a = load8(addresses);
        const __m256i b = load8(addresses + 2);
        const __m256i c = load8(addresses + 4);
        const __m256i d = load8(addresses + 6);
        const __m256i tail = load8(tails);
        const __m256i sums_ab = sums(cache.hash_keys, a, b, _mm256_castsi256_si128(tail));
        const __m256i sums_cd = sums(cache.hash_keys, c, d, _mm256_extracti128_si256(tail, 1));
        store8(buckets.data(), narrow(buckets_of(cache, sums_ab), buckets_of(cache, sums_cd)));
        const __m256i words =
            _mm256_unpacklo_epi64(_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
        const __m256i in_order =
            _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        const __m256i swap = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
        store8(stamps.data(), stamps_of(generations, _mm256_shuffle_epi8(in_order, swap)));
    }
};

/// When each packet of a chunk uses its entry, if the one before was at `before`.
SLUICE_CACHE_AVX2 inline void set_now(std::array<std::uint32_t, kCacheChunk>& now,
                                      std::uint32_t before) noexcept {
    store8(now.data(), _mm256_add_epi32(set8(before), _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8)));
}
/// Makes the compiler forget in which registers it has words of the chunk: see there.
template <class Addr>
inline void forget_registers(const CacheChunk<Addr>& chunk) noexcept {
    asm volatile("" : : "r"(&chunk) : "memory");
}

/// One word of each, of which all but one or all are zero.
SLUICE_CACHE_AVX2 inline __m128i one_of_each(__m128i a, __m128i b, __m128i c, __m128i d) noexcept {
    const __m128i ab = _mm_or_si128(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    const __m128i cd = _mm_or_si128(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
    return _mm_or_si128(_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
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
