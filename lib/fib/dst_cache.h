// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "fib/dst_cache_probe.h"
#include "fib/generation.h"
#include "net/address.h"

namespace sluice::fib {

/// What of a cache key is not the address: one word, so that an IPv4 key is 64 bits.
///   bits 0-5 DSCP, 6-19 ingress class, 20-31 rule class
struct CacheTail {
    static constexpr std::uint32_t make(std::uint8_t dscp,
                                        std::uint16_t ingress_class,
                                        std::uint32_t rule_class) noexcept {
        return dscp | std::uint32_t{ingress_class} << 6U | rule_class << 20U;
    }
    static constexpr std::uint16_t kMaxIngressClass = (1U << 14U) - 1;
};

/// One worker's exact-match cache of decisions about one family's addresses (dst.md section 1):
/// buckets of four ways, two of which a key may be in; one worker reads and writes it, nobody else.
/// Nothing is allocated after construction.
template <class Addr>
class DstCache {
public:
    static constexpr std::size_t kWays = 4;
    static constexpr std::size_t kDefaultEntries = 512;
    static constexpr std::size_t kMaxEntries = 16384;

    /// `entries` a power of two from kWays to kMaxEntries; `secret` drawn at start: an outsider
    /// cannot choose addresses that share a bucket (C-04). Tests and benchmarks force an `impl`.
    DstCache(std::size_t entries,
             std::uint64_t secret,
             const CacheProbeImpl& impl = best_cache_probe());
    ~DstCache();
    DstCache(const DstCache&) = delete;
    DstCache& operator=(const DstCache&) = delete;
    DstCache(DstCache&&) = delete;
    DstCache& operator=(DstCache&&) = delete;

    static constexpr std::size_t kMaxBurst = 256;
    using Probed = CacheProbed;

    /// For a burst: values[i] becomes the cached value for (addresses[i], tails[i]), or kNoRoute
    /// for a miss; stamps[i] what insert() is to be given: the generation of the address before
    /// anything was looked up. misses[0..Probed::misses) become the positions of the misses,
    /// ascending. At most kMaxBurst addresses; arrays of `addresses.size()`, but `misses` rounded
    /// up to 16. Runs of one key are looked for once (C-10's hint). places[i], unless null, becomes
    /// the number of the entry that was hit; some number below entries() for a miss.
    Probed probe(const Generations<Addr>& generations,
                 std::span<const Addr> addresses,
                 const std::uint32_t* tails,
                 std::uint32_t* values,
                 Stamp* stamps,
                 std::uint16_t* misses,
                 std::uint32_t* places = nullptr) noexcept;

    /// Puts a decision in: in the place of the same key if it is there, else into the first empty
    /// way of its two buckets, else in that of the longest unused of both (C-31, C-32). An entry
    /// that a bump made stale is empty once it has been probed; before that its age decides, for
    /// whether it is stale only its own netns's generations can say. `value` not kNoRoute, below
    /// 2^24.
    void insert(const Addr& address, std::uint32_t tail, std::uint32_t value, Stamp stamp) noexcept;
    /// Empties the entry, if it is there: its value turned out not to be usable.
    void erase(const Addr& address, std::uint32_t tail) noexcept;
    void clear() noexcept;

    std::size_t entries() const noexcept;
    /// How many hold something, stale ones included; walks them all.
    std::size_t size() const noexcept;
    /// Which buckets a key may be in; for tests of the hash.
    std::array<std::size_t, 2> buckets_of(const Addr& address, std::uint32_t tail) const noexcept;

private:
    struct Store;
    std::unique_ptr<Store> store_;
};

using Ipv4DstCache = DstCache<net::Ipv4Addr>;
using Ipv6DstCache = DstCache<net::Ipv6Addr>;

}  // namespace sluice::fib
