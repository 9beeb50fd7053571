// SPDX-License-Identifier: BSD-3-Clause
#include "fib/dst_cache.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "base/first_supported.h"
#include "base/pages.h"
#include "fib/dst_cache_bucket.h"
#include "fib/dst_cache_x86.h"

namespace sluice::fib {
namespace {

constexpr CacheProbeImpl kScalar{
    .name = "scalar",
    .supported = []() noexcept { return true; },
    .probe4 = probe_scalar<net::Ipv4Addr>,
    .probe6 = probe_scalar<net::Ipv6Addr>,
};
#if defined(__x86_64__)
constexpr CacheProbeImpl kAvx512{
    .name = "avx512",
    .supported = cache_avx512::supported,
    .probe4 = cache_avx512::probe4,
    .probe6 = cache_avx512::probe6,
};
constexpr CacheProbeImpl kAvx2{
    .name = "avx2",
    .supported = cache_avx2::supported,
    .probe4 = cache_avx2::probe4,
    .probe6 = cache_avx2::probe6,
};
constexpr std::array kImpls{kAvx512, kAvx2, kScalar};
#else
constexpr std::array kImpls{kScalar};
#endif

template <class Addr>
CacheProbeFn<Addr> probe_of(const CacheProbeImpl& impl) noexcept {
    if constexpr (sizeof(Addr) == 4) {
        return impl.probe4;
    } else {
        return impl.probe6;
    }
}

}  // namespace

std::span<const CacheProbeImpl> cache_probe_impls() noexcept {
    return kImpls;
}

const CacheProbeImpl& best_cache_probe() noexcept {
    static const CacheProbeImpl& best = first_supported(cache_probe_impls());
    return best;
}

CacheHashKeys::CacheHashKeys(std::uint64_t secret) noexcept {
    // One secret after another by a finalizer, so that close secrets have nothing in common.
    const auto draw = [&secret] {
        secret += 0x9e3779b97f4a7c15U;
        std::uint64_t word = secret;
        word = (word ^ word >> 30U) * 0xbf58476d1ce4e5b9U;
        word = (word ^ word >> 27U) * 0x94d049bb133111ebU;
        return word ^ word >> 31U;
    };
    for (std::uint32_t& word : address) {
        word = static_cast<std::uint32_t>(draw());
    }
    tail = static_cast<std::uint32_t>(draw());
    tail_factor = static_cast<std::uint32_t>(draw());
    odd = draw() | 1U;
}

template <class Addr>
struct DstCache<Addr>::Store {
    Store(std::size_t entries, std::uint64_t secret, const CacheProbeImpl& impl)
        : buckets(entries / kWays),
          used(sizeof(Addr) == 4 ? entries : 1),
          view{.buckets = buckets.data(),
               .used = used.data(),
               .bucket_bits = static_cast<unsigned>(std::countr_zero(entries / kWays)),
               .now = 0,
               .hash_keys = CacheHashKeys(secret)},
          probe(probe_of<Addr>(impl)) {}

    PageArray<CacheBucket<Addr>> buckets;
    PageArray<std::uint32_t> used;
    CacheView<Addr> view;
    CacheProbeFn<Addr> probe;
};

template <class Addr>
DstCache<Addr>::DstCache(std::size_t entries, std::uint64_t secret, const CacheProbeImpl& impl) {
    static_assert(kWays == kCacheWays);
    SLUICE_CHECK(std::has_single_bit(entries) && entries >= kWays && entries <= kMaxEntries);
    store_ = std::make_unique<Store>(entries, secret, impl);
}

template <class Addr>
DstCache<Addr>::~DstCache() = default;

/// Looks for what the first buckets did not have in the second ones; the misses that remain close
/// up. Not for a burst that mostly missed: a flood pays for one look.
template <class Addr>
void probe_others(CacheView<Addr>& cache,
                  std::span<const Addr> addresses,
                  const std::uint32_t* tails,
                  std::uint32_t* values,
                  const Stamp* stamps,
                  std::uint16_t* misses,
                  std::uint32_t* places,
                  CacheProbed& probed) noexcept {
    const auto count = static_cast<std::uint32_t>(addresses.size());
    if (probed.misses > 4 + count - count / 8) {
        return;
    }
    // Whether the second bucket has a key nobody can guess: without a branch on it.
    std::uint32_t left = 0;
    std::uint32_t unused = 0;
    for (std::uint32_t k = 0; k < probed.misses; ++k) {
        const std::uint16_t i = misses[k];
        const auto key = CacheKey<Addr>::of(addresses[i], tails[i]);
        const std::uint32_t at = cache.other_bucket_of(key);
        CacheBucket<Addr>& bucket = cache.buckets[at];
        unsigned has = 0;
        for (std::size_t way = 0; way < kCacheWays; ++way) {
            const bool here = (bucket.key(way) == key) & (bucket.values[way] != kNoRoute);
            has |= static_cast<unsigned>(here) << way;
        }
        const std::size_t way = first_way(has);
        const bool stale = (has != 0) & (bucket.stamps[way] != stamps[i]);
        if (stale) [[unlikely]] {
            bucket.values[way] = kNoRoute;
            ++probed.stale;
            has = 0;
        }
        const std::uint32_t hit = has != 0 ? 1 : 0;
        values[i] = bucket.values[way] & (0U - hit);
        if (places != nullptr) {
            places[i] = cache.place(at, way);
        }
        std::array<std::uint32_t*, 2> const used{&unused, &cache.last_used(at, way)};
        *used[hit] = cache.now - count + i + 1;
        misses[left] = i;
        left += 1 - hit;
        probed.hits += hit;
    }
    probed.misses = left;
}

template <class Addr>
CacheProbed DstCache<Addr>::probe(const Generations<Addr>& generations,
                                  std::span<const Addr> addresses,
                                  const std::uint32_t* tails,
                                  std::uint32_t* values,
                                  Stamp* stamps,
                                  std::uint16_t* misses,
                                  std::uint32_t* places) noexcept {
    CacheView<Addr>& cache = store_->view;
    CacheProbed probed =
        store_->probe(cache, generations, addresses, tails, values, stamps, misses, places);
    if (probed.misses != 0) {
        probe_others(cache, addresses, tails, values, stamps, misses, places, probed);
    }
    return probed;
}

struct CachePlace {
    std::uint32_t bucket;
    std::size_t way;
    std::uint64_t age;  // an empty one's above all others
};

/// The place in some buckets that was longest not used, the first one of several empty ones.
template <class Addr, std::size_t kBuckets>
CachePlace oldest(const CacheView<Addr>& cache,
                  const std::array<std::uint32_t, kBuckets>& buckets) noexcept {
    // Age and number in one word, so that finding the highest takes no branch, which the processor
    // would have to guess.
    constexpr std::uint64_t kOlderThanAll = std::uint64_t{1} << 32U;
    constexpr std::size_t kPlaces = kBuckets * kCacheWays;
    std::uint64_t first = 0;
    for (std::size_t place = 0; place < kPlaces; ++place) {
        const std::uint32_t in = buckets[place / kCacheWays];
        const std::size_t way = place % kCacheWays;
        const std::uint64_t age = cache.buckets[in].values[way] == kNoRoute
                                      ? kOlderThanAll
                                      : cache.now - cache.last_used(in, way);
        first = std::max(first, age * kPlaces + (kPlaces - 1 - place));
    }
    const std::size_t place = kPlaces - 1 - first % kPlaces;
    return {buckets[place / kCacheWays], place % kCacheWays, first / kPlaces};
}

/// A place for a key of these two buckets: the longest unused of both, or that of an entry whose
/// own other bucket has one unused for longer still, which takes it in. So a cache that is nearly
/// full of live entries still finds those that are not.
template <class Addr>
CachePlace make_room(CacheView<Addr>& cache, const std::array<std::uint32_t, 2>& either) noexcept {
    CachePlace best = oldest(cache, either);
    CachePlace from = best;
    for (const std::uint32_t in : either) {
        for (std::size_t way = 0; way < kCacheWays; ++way) {
            if (cache.buckets[in].values[way] == kNoRoute) {
                continue;
            }
            const auto key = cache.buckets[in].key(way);
            const std::uint32_t first = cache.bucket_of(key);
            const std::uint32_t other = first == in ? cache.other_bucket_of(key) : first;
            const CachePlace there = oldest(cache, std::array{other});
            if (other != in && there.age > best.age) {
                best = there;
                from = {in, way, 0};
            }
        }
    }
    if (best.bucket != from.bucket || best.way != from.way) {
        CacheBucket<Addr>& to = cache.buckets[best.bucket];
        const CacheBucket<Addr>& old = cache.buckets[from.bucket];
        to.set_key(best.way, old.key(from.way));
        to.values[best.way] = old.values[from.way];
        to.stamps[best.way] = old.stamps[from.way];
        cache.last_used(best.bucket, best.way) = cache.last_used(from.bucket, from.way);
    }
    return from;
}

template <class Addr>
void DstCache<Addr>::insert(const Addr& address,
                            std::uint32_t tail,
                            std::uint32_t value,
                            Stamp stamp) noexcept {
    CacheView<Addr>& cache = store_->view;
    const auto key = CacheKey<Addr>::of(address, tail);
    const std::array<std::uint32_t, 2> either{cache.bucket_of(key), cache.other_bucket_of(key)};
    ++cache.now;
    std::uint32_t at = either[0];
    std::size_t way = cache.find(at, key);
    if (way == kWays) {
        at = either[1];
        way = cache.find(at, key);
    }
    if (way == kWays) {
        const CachePlace place = make_room(cache, either);
        at = place.bucket;
        way = place.way;
        cache.buckets[at].set_key(way, key);
    }
    CacheBucket<Addr>& bucket = cache.buckets[at];
    bucket.values[way] = value;
    bucket.stamps[way] = stamp;
    cache.last_used(at, way) = cache.now;
}

template <class Addr>
void DstCache<Addr>::erase(const Addr& address, std::uint32_t tail) noexcept {
    CacheView<Addr>& cache = store_->view;
    const auto key = CacheKey<Addr>::of(address, tail);
    for (const std::uint32_t at : {cache.bucket_of(key), cache.other_bucket_of(key)}) {
        if (const std::size_t way = cache.find(at, key); way != kWays) {
            cache.buckets[at].values[way] = kNoRoute;
        }
    }
}

template <class Addr>
void DstCache<Addr>::clear() noexcept {
    for (std::size_t i = 0; i < store_->buckets.size(); ++i) {
        store_->buckets[i].values.fill(kNoRoute);
    }
}

template <class Addr>
std::size_t DstCache<Addr>::entries() const noexcept {
    return store_->buckets.size() * kWays;
}

template <class Addr>
std::size_t DstCache<Addr>::size() const noexcept {
    std::size_t held = 0;
    for (std::size_t i = 0; i < store_->buckets.size(); ++i) {
        held += kWays -
                static_cast<std::size_t>(std::ranges::count(store_->buckets[i].values, kNoRoute));
    }
    return held;
}

template <class Addr>
std::array<std::size_t, 2> DstCache<Addr>::buckets_of(const Addr& address,
                                                      std::uint32_t tail) const noexcept {
    const auto key = CacheKey<Addr>::of(address, tail);
    return {store_->view.bucket_of(key), store_->view.other_bucket_of(key)};
}

template class DstCache<net::Ipv4Addr>;
template class DstCache<net::Ipv6Addr>;

}  // namespace sluice::fib
