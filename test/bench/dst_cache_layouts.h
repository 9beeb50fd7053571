// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fib/dst_cache_bucket.h"
#include "fib/dst_cache_x86.h"
#include "fib/generation.h"

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12's own immintrin.h makes its "undefined" registers by initializing them with themselves.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// Layouts of the IPv4 cache that lost against that of DstCache; hits only, no time of use kept.
namespace sluice::fib::layouts {

/// Four structures in a row, compared one after another.
class Structures {
public:
    explicit Structures(std::size_t entries)
        : ways_(entries), bits_(static_cast<unsigned>(std::countr_zero(entries / kCacheWays))) {}

    void insert(const net::Ipv4Addr& address,
                std::uint32_t tail,
                std::uint32_t value,
                Stamp stamp) {
        const auto key = CacheKey<net::Ipv4Addr>::of(address, tail);
        Way* way = &ways_[bucket_of(key)];
        for (std::size_t i = 0; i < kCacheWays; ++i, ++way) {
            if (way->value == kNoRoute || way->key == key.word) {
                *way = {.key = key.word, .value = value, .stamp = stamp, .unused = {}};
                return;
            }
        }
    }
    std::uint32_t probe(const Generations<net::Ipv4Addr>& generations,
                        const net::Ipv4Addr* addresses,
                        const std::uint32_t* tails,
                        std::uint32_t* values,
                        std::size_t count) const noexcept {
        std::uint32_t hits = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const auto key = CacheKey<net::Ipv4Addr>::of(addresses[i], tails[i]);
            const Stamp stamp = generations.stamp(addresses[i]);
            const Way* way = &ways_[bucket_of(key)];
            values[i] = kNoRoute;
            for (std::size_t w = 0; w < kCacheWays; ++w, ++way) {
                if (way->key == key.word && way->stamp == stamp) {
                    values[i] = way->value;
                    ++hits;
                    break;
                }
            }
        }
        return hits;
    }

private:
    struct Way {
        std::uint64_t key;
        std::uint32_t value;
        Stamp stamp;
        std::array<std::uint64_t, 2> unused;  // the time of use and what else an entry holds
    };
    std::size_t bucket_of(const CacheKey<net::Ipv4Addr>& key) const noexcept {
        return (cache_hash(keys_, key) >> 1U >> (63 - bits_)) * kCacheWays;
    }
    std::vector<Way> ways_;
    unsigned bits_;
    CacheHashKeys keys_{1};
};

#if defined(__x86_64__)
/// A word for each way (16 bits of the stamp, 24 of a signature, the value), of which those of
/// eight packets are gathered at once; then the keys of those that were found.
class Gathered {
public:
    explicit Gathered(std::size_t entries)
        : words_(entries),
          keys_of_(entries),
          bits_(static_cast<unsigned>(std::countr_zero(entries / kCacheWays))) {}

    void insert(const net::Ipv4Addr& address,
                std::uint32_t tail,
                std::uint32_t value,
                Stamp stamp) {
        const auto key = CacheKey<net::Ipv4Addr>::of(address, tail);
        const std::uint64_t hash = cache_hash(keys_, key);
        const std::size_t bucket = (hash >> 1U >> (63 - bits_)) * kCacheWays;
        for (std::size_t at = bucket; at < bucket + kCacheWays; ++at) {
            if (words_[at] == 0 || keys_of_[at] == key.word) {
                words_[at] = std::uint64_t{stamp} << 48U | (hash & kSignature) | value;
                keys_of_[at] = key.word;
                return;
            }
        }
    }
    /// `count` a multiple of eight.
    SLUICE_CACHE_AVX512 std::uint32_t probe(const Generations<net::Ipv4Addr>& generations,
                                            const net::Ipv4Addr* addresses,
                                            const std::uint32_t* tails,
                                            std::uint32_t* values,
                                            std::size_t count) const noexcept {
        std::uint32_t hits = 0;
        const __m512i odd = _mm512_set1_epi64(static_cast<long long>(keys_.odd));
        const __m512i secrets = _mm512_set1_epi64(
            static_cast<long long>(std::uint64_t{keys_.address[1]} << 32U | keys_.address[0]));
        const __m512i signature = _mm512_set1_epi64(static_cast<long long>(kSignature));
        const __m512i value_bits = _mm512_set1_epi64(0xffffff);
        const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(64 - bits_));
        for (std::size_t i = 0; i < count; i += 8) {
            const __m256i address = load8(addresses + i);
            const __m512i key =
                _mm512_or_si512(_mm512_cvtepu32_epi64(address),
                                _mm512_slli_epi64(_mm512_cvtepu32_epi64(load8(tails + i)), 32));
            const __m512i sum = _mm512_add_epi32(key, secrets);
            const __m512i product = _mm512_mul_epu32(sum, _mm512_srli_epi64(sum, 32));
            const __m512i hash =
                _mm512_mullo_epi64(_mm512_xor_si512(product, _mm512_srli_epi64(product, 32)), odd);
            const __m512i bucket = _mm512_slli_epi64(_mm512_srl_epi64(hash, shift), 2);
            const __m256i swap = _mm256_broadcastsi128_si256(
                _mm_setr_epi8(1, 0, -1, -1, 5, 4, -1, -1, 9, 8, -1, -1, 13, 12, -1, -1));
            const __m512i stamp =
                _mm512_cvtepu32_epi64(stamps_of(generations, _mm256_shuffle_epi8(address, swap)));
            const __m512i wanted =
                _mm512_or_si512(_mm512_slli_epi64(stamp, 48), _mm512_and_si512(hash, signature));
            __m512i word = _mm512_setzero_si512();
            __m512i at = bucket;
            for (std::size_t way = 0; way < kCacheWays; ++way) {
                const __m512i here = _mm512_i64gather_epi64(bucket, words_.data() + way, 8);
                const __mmask8 match =
                    _mm512_cmpeq_epi64_mask(_mm512_andnot_si512(value_bits, here), wanted);
                word = _mm512_mask_mov_epi64(word, match, here);
                at = _mm512_mask_add_epi64(
                    at, match, bucket, _mm512_set1_epi64(static_cast<long long>(way)));
            }
            const __m512i found = _mm512_i64gather_epi64(at, keys_of_.data(), 8);
            const __mmask8 same = _mm512_cmpeq_epi64_mask(found, key);
            const __m512i value = _mm512_maskz_and_epi64(same, word, value_bits);
            store8(values + i, _mm512_cvtepi64_epi32(value));
            hits += static_cast<std::uint32_t>(
                std::popcount(static_cast<unsigned>(_mm512_test_epi64_mask(value, value))));
        }
        return hits;
    }

private:
    static constexpr std::uint64_t kSignature = 0xffffff000000U;

    std::vector<std::uint64_t> words_;
    std::vector<std::uint64_t> keys_of_;
    unsigned bits_;
    CacheHashKeys keys_{1};
};
#endif

}  // namespace sluice::fib::layouts
