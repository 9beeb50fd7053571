// SPDX-License-Identifier: BSD-3-Clause
#include "fib/dst_cache.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
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
    static const CacheProbeImpl& best =
        *std::ranges::find_if(kImpls, [](const CacheProbeImpl& impl) { return impl.supported(); });
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

template <class Addr>
CacheProbed DstCache<Addr>::probe(const Generations<Addr>& generations,
                                  std::span<const Addr> addresses,
                                  const std::uint32_t* tails,
                                  std::uint32_t* values,
                                  Stamp* stamps,
                                  std::uint16_t* misses) noexcept {
    return store_->probe(store_->view, generations, addresses, tails, values, stamps, misses);
}

template <class Addr>
void DstCache<Addr>::insert(const Addr& address,
                            std::uint32_t tail,
                            std::uint32_t value,
                            Stamp stamp) noexcept {
    CacheView<Addr>& cache = store_->view;
    const auto key = CacheKey<Addr>::of(address, tail);
    const std::uint32_t at = cache.bucket_of(key);
    CacheBucket<Addr>& bucket = cache.buckets[at];
    ++cache.now;
    std::size_t way = cache.find(at, key);
    if (way == kWays) {
        // By age, an empty way's above all others, then by number: one word, so that finding the
        // highest takes no branch, which the processor would have to guess.
        constexpr std::uint64_t kOlderThanAll = std::uint64_t{1} << 32U;
        std::uint64_t first = 0;
        for (std::size_t other = 0; other < kWays; ++other) {
            const std::uint64_t age = bucket.values[other] == kNoRoute
                                          ? kOlderThanAll
                                          : cache.now - cache.last_used(at, other);
            first = std::max(first, age * kWays + (kWays - 1 - other));
        }
        way = kWays - 1 - first % kWays;
        bucket.set_key(way, key);
    }
    bucket.values[way] = value;
    bucket.stamps[way] = stamp;
    cache.last_used(at, way) = cache.now;
}

template <class Addr>
void DstCache<Addr>::erase(const Addr& address, std::uint32_t tail) noexcept {
    CacheView<Addr>& cache = store_->view;
    const auto key = CacheKey<Addr>::of(address, tail);
    const std::uint32_t at = cache.bucket_of(key);
    if (const std::size_t way = cache.find(at, key); way != kWays) {
        cache.buckets[at].values[way] = kNoRoute;
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
std::size_t DstCache<Addr>::bucket_of(const Addr& address, std::uint32_t tail) const noexcept {
    return store_->view.bucket_of(CacheKey<Addr>::of(address, tail));
}

template class DstCache<net::Ipv4Addr>;
template class DstCache<net::Ipv6Addr>;

}  // namespace sluice::fib
