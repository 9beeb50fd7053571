// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fib/dst_cache.h"
#include "fib/lpm.h"
#include "net/address.h"

namespace sluice::fib {

// What a DstCache consists of, shared by its implementations.
//
// A way is empty when its value is kNoRoute; its key stays. At most one way of a bucket holds a key
// with a value. Vector probes or the values of all ways that have the key: empty ones add nothing.

inline constexpr std::size_t kCacheWays = 4;

/// The first way that has its bit in `ways`, the last one if none has.
inline std::size_t first_way(unsigned ways) noexcept {
    return static_cast<std::size_t>(std::countr_zero(ways | 1U << (kCacheWays - 1)));
}

template <class Addr>
struct CacheKey;
template <class Addr>
struct CacheBucket;

template <>
struct CacheKey<net::Ipv4Addr> {
    std::uint64_t word;

    static CacheKey of(const net::Ipv4Addr& address, std::uint32_t tail) noexcept {
        return {std::uint64_t{tail} << 32U | std::bit_cast<std::uint32_t>(address)};
    }
    friend bool operator==(const CacheKey&, const CacheKey&) = default;
};

/// One line holds all that a probe needs.
template <>
struct alignas(64) CacheBucket<net::Ipv4Addr> {
    std::array<std::uint64_t, kCacheWays> keys;
    std::array<std::uint32_t, kCacheWays> values;
    std::array<Stamp, kCacheWays> stamps;

    CacheKey<net::Ipv4Addr> key(std::size_t way) const noexcept { return {keys[way]}; }
    void set_key(std::size_t way, const CacheKey<net::Ipv4Addr>& key) noexcept {
        keys[way] = key.word;
    }
};
static_assert(sizeof(CacheBucket<net::Ipv4Addr>) == 64);

template <>
struct CacheKey<net::Ipv6Addr> {
    std::uint64_t high;  // halves in memory order
    std::uint64_t low;
    std::uint32_t tail;

    static CacheKey of(const net::Ipv6Addr& address, std::uint32_t tail) noexcept {
        const auto words = address.words();
        return {words[0], words[1], tail};
    }
    friend bool operator==(const CacheKey&, const CacheKey&) = default;
};

template <>
struct alignas(64) CacheBucket<net::Ipv6Addr> {
    std::array<std::uint64_t, kCacheWays> highs;
    std::array<std::uint64_t, kCacheWays> lows;
    std::array<std::uint32_t, kCacheWays> tails;
    std::array<std::uint32_t, kCacheWays> values;
    std::array<Stamp, kCacheWays> stamps;
    std::array<std::uint32_t, kCacheWays> used;

    CacheKey<net::Ipv6Addr> key(std::size_t way) const noexcept {
        return {highs[way], lows[way], tails[way]};
    }
    void set_key(std::size_t way, const CacheKey<net::Ipv6Addr>& key) noexcept {
        highs[way] = key.high;
        lows[way] = key.low;
        tails[way] = key.tail;
    }
};
static_assert(sizeof(CacheBucket<net::Ipv6Addr>) == 128);

/// The secret numbers of the hash, drawn from one.
struct CacheHashKeys {
    alignas(16) std::array<std::uint32_t, 4> address;
    std::uint32_t tail;
    std::uint32_t tail_factor;
    std::uint64_t odd;

    explicit CacheHashKeys(std::uint64_t secret) noexcept;
};

// The hash yields 64 bits; a bucket is named by the highest of them.
//
// The first step is NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC): the sum of products of
// two words each, to all of which secrets have been added. Different keys get different sums under
// all but one in 2^32 secrets, whatever they are. (To multiply each half of an IPv6 address by an
// odd number and to add up would not do: keys that differ in the highest bit of both halves would
// collide under every secret.) The last is Dietzfelbinger's multiply-shift: different sums share
// one of 2^n buckets under at most 2 of 2^n secrets. The shift in between keeps hosts side by side
// from being an arithmetic series, which a multiplication alone turns into another one, which
// under an unlucky secret misses most buckets.
inline std::uint64_t cache_hash_last(const CacheHashKeys& keys, std::uint64_t sum) noexcept {
    return (sum ^ sum >> 32U) * keys.odd;
}
/// The product of the two words of `pair` and the secrets `low` and `high`.
inline std::uint64_t cache_hash_pair(std::uint64_t pair,
                                     std::uint32_t low,
                                     std::uint32_t high) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(pair) + low} *
           (static_cast<std::uint32_t>(pair >> 32U) + high);
}
inline std::uint64_t cache_hash(const CacheHashKeys& keys,
                                const CacheKey<net::Ipv4Addr>& key) noexcept {
    return cache_hash_last(keys, cache_hash_pair(key.word, keys.address[0], keys.address[1]));
}
inline std::uint64_t cache_hash(const CacheHashKeys& keys,
                                const CacheKey<net::Ipv6Addr>& key) noexcept {
    return cache_hash_last(keys,
                           cache_hash_pair(key.high, keys.address[0], keys.address[1]) +
                               cache_hash_pair(key.low, keys.address[2], keys.address[3]) +
                               std::uint64_t{key.tail + keys.tail} * keys.tail_factor);
}

/// A cache as its implementations see it.
template <class Addr>
struct CacheView {
    CacheBucket<Addr>* buckets;
    std::uint32_t* used;  // of IPv4: by entry, apart from the line that a probe needs
    unsigned bucket_bits;
    /// Counts packets, so that no two entries are last used at the same time (C-13). It wraps:
    /// only an entry that 2^32 packets did not use can seem younger than it is.
    std::uint32_t now;
    CacheHashKeys hash_keys;

    std::uint32_t bucket_of(const CacheKey<Addr>& key) const noexcept {
        // In two steps, as one bucket has no bits at all.
        return static_cast<std::uint32_t>(cache_hash(hash_keys, key) >> 1U >> (63 - bucket_bits));
    }
    /// The second bucket that may hold the key, for when the first one has no room.
    std::uint32_t other_bucket_of(const CacheKey<Addr>& key) const noexcept {
        const std::uint64_t hash = cache_hash(hash_keys, key);
        return static_cast<std::uint32_t>((hash * kOtherFactor) >> 1U >> (63 - bucket_bits));
    }
    static constexpr std::uint64_t kOtherFactor = 0x9e3779b97f4a7c15;

    std::uint32_t& last_used(std::size_t bucket, std::size_t way) const noexcept {
        if constexpr (sizeof(Addr) == 4) {
            return used[bucket * kCacheWays + way];
        } else {
            return buckets[bucket].used[way];
        }
    }
    /// The number of an entry.
    static std::uint32_t place(std::size_t bucket, std::size_t way) noexcept {
        return static_cast<std::uint32_t>(bucket * kCacheWays + way);
    }
    /// The way that holds the key, kCacheWays if none does.
    std::size_t find(std::size_t bucket, const CacheKey<Addr>& key) const noexcept {
        for (std::size_t way = 0; way < kCacheWays; ++way) {
            if (buckets[bucket].values[way] != kNoRoute && buckets[bucket].key(way) == key) {
                return way;
            }
        }
        return kCacheWays;
    }
    /// Empties the entry of the key unless it is valid under `stamp`; whether it did.
    bool drop_stale(std::size_t bucket, const CacheKey<Addr>& key, Stamp stamp) const noexcept {
        const std::size_t way = find(bucket, key);
        if (way == kCacheWays || buckets[bucket].stamps[way] == stamp) {
            return false;
        }
        buckets[bucket].values[way] = kNoRoute;
        return true;
    }
};

/// DstCache::probe(), the oracle of the others.
template <class Addr>
CacheProbed probe_scalar(CacheView<Addr>& cache,
                         const Generations<Addr>& generations,
                         std::span<const Addr> addresses,
                         const std::uint32_t* tails,
                         std::uint32_t* values,
                         Stamp* stamps,
                         std::uint16_t* misses,
                         std::uint32_t* places) noexcept {
    CacheProbed probed;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        ++cache.now;
        const auto key = CacheKey<Addr>::of(addresses[i], tails[i]);
        const std::uint32_t bucket = cache.bucket_of(key);
        stamps[i] = generations.stamp(addresses[i]);
        probed.stale += cache.drop_stale(bucket, key, stamps[i]) ? 1 : 0;
        const std::size_t way = cache.find(bucket, key);
        if (places != nullptr) {
            places[i] = cache.place(bucket, way % kCacheWays);
        }
        if (way == kCacheWays) {
            values[i] = kNoRoute;
            misses[probed.misses++] = static_cast<std::uint16_t>(i);
        } else {
            values[i] = cache.buckets[bucket].values[way];
            cache.last_used(bucket, way) = cache.now;
            ++probed.hits;
        }
    }
    return probed;
}

}  // namespace sluice::fib
