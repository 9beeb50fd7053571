// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fib/dst_cache.h"
#include "fib/dst_cache_support.h"

namespace sluice::fib::test {
namespace {

/// What a cache is to do, in the plainest words.
template <class Addr>
class Model {
public:
    struct Entry {
        Key<Addr> key;
        std::uint32_t value = 0;
        Stamp stamp = 0;
        std::uint64_t used = 0;
    };
    using Way = std::optional<Entry>;
    using Bucket = std::array<Way, DstCache<Addr>::kWays>;
    using Buckets = std::array<std::size_t, 2>;

    Answer probe(const Generations<Addr>& generations,
                 const std::vector<Key<Addr>>& keys,
                 const DstCache<Addr>& cache) {
        Answer answer;
        const std::size_t count = keys.size();
        answer.values.assign(count, kNoRoute);
        answer.places.assign(count, 0);
        std::vector<std::uint16_t> open;
        for (std::size_t i = 0; i < count; ++i) {
            answer.stamps.push_back(generations.stamp(keys[i].address));
            open.push_back(static_cast<std::uint16_t>(i));
        }
        for (std::size_t turn = 0; turn < 2; ++turn) {
            // A burst that mostly missed is not looked for a second time.
            if (turn == 1 && open.size() > 4 + count - count / 8) {
                break;
            }
            std::vector<std::uint16_t> missed;
            for (const std::uint16_t i : open) {
                const std::size_t at = cache.buckets_of(keys[i].address, keys[i].tail)[turn];
                Way* way = find(at, keys[i]);
                if (way != nullptr && (*way)->stamp != answer.stamps[i]) {
                    way->reset();
                    way = nullptr;
                    ++answer.probed.stale;
                }
                if (way == nullptr) {
                    missed.push_back(i);
                    continue;
                }
                (*way)->used = now_ + i + 1;
                answer.values[i] = (*way)->value;
                answer.places[i] = static_cast<std::uint32_t>(at * DstCache<Addr>::kWays) +
                                   static_cast<std::uint32_t>(way - buckets_[at].data());
            }
            open = missed;
        }
        now_ += count;
        answer.misses = open;
        answer.probed.misses = static_cast<std::uint32_t>(open.size());
        answer.probed.hits = static_cast<std::uint32_t>(count - open.size());
        return answer;
    }

    void insert(const Key<Addr>& key,
                std::uint32_t value,
                Stamp stamp,
                const DstCache<Addr>& cache) {
        ++now_;
        const Buckets mine = cache.buckets_of(key.address, key.tail);
        Way* to = find(mine[0], key);
        to = to == nullptr ? find(mine[1], key) : to;
        to = to == nullptr ? room(mine, cache) : to;
        *to = Entry{key, value, stamp, now_};
    }
    void erase(const Key<Addr>& key, const DstCache<Addr>& cache) {
        for (const std::size_t at : cache.buckets_of(key.address, key.tail)) {
            if (Way* way = find(at, key); way != nullptr) {
                way->reset();
            }
        }
    }
    void clear() { buckets_.clear(); }
    std::size_t size() const {
        std::size_t held = 0;
        for (const auto& [at, bucket] : buckets_) {
            held += static_cast<std::size_t>(
                std::ranges::count_if(bucket, [](const Way& way) { return way.has_value(); }));
        }
        return held;
    }

private:
    Way* find(std::size_t at, const Key<Addr>& key) {
        for (Way& way : buckets_[at]) {
            if (way && way->key == key) {
                return &way;
            }
        }
        return nullptr;
    }
    static bool longer_unused(const Way& a, const Way& b) {
        return b.has_value() && (!a.has_value() || a->used < b->used);
    }
    Way* oldest(const std::vector<std::size_t>& buckets) {
        Way* best = nullptr;
        for (const std::size_t at : buckets) {
            for (Way& way : buckets_[at]) {
                if (best == nullptr || longer_unused(way, *best)) {
                    best = &way;
                }
            }
        }
        return best;
    }
    /// Where a new key goes: one of its own places, after its entry has moved where it may, if what
    /// is given up by that is longer unused.
    Way* room(const Buckets& mine, const DstCache<Addr>& cache) {
        Way* best = oldest({mine[0], mine[1]});
        Way* from = best;
        for (const std::size_t at : mine) {
            for (Way& way : buckets_[at]) {
                if (!way) {
                    continue;
                }
                const Buckets its = cache.buckets_of(way->key.address, way->key.tail);
                const std::size_t other = its[0] == at ? its[1] : its[0];
                Way* there = oldest({other});
                if (other != at && longer_unused(*there, *best)) {
                    best = there;
                    from = &way;
                }
            }
        }
        if (best != from) {
            *best = *from;
        }
        return from;
    }

    std::map<std::size_t, Bucket> buckets_;
    std::uint64_t now_ = 0;
};

template <class Addr>
void expect_same(const Answer& got, const Answer& want) {
    ASSERT_EQ(got.values, want.values);
    ASSERT_EQ(got.stamps, want.stamps);
    ASSERT_EQ(got.misses, want.misses);
    ASSERT_EQ(got.probed.hits, want.probed.hits);
    ASSERT_EQ(got.probed.misses, want.probed.misses);
    ASSERT_EQ(got.probed.stale, want.probed.stale);
    for (std::size_t i = 0; i < got.places.size(); ++i) {
        if (got.values[i] != kNoRoute) {
            ASSERT_EQ(got.places[i], want.places[i]) << i;
        }
    }
}

/// Many prefixes of few blocks, so that bumps meet entries; few keys for the cache's size, and some
/// that differ only in the tail.
template <class Addr>
Key<Addr> random_key(std::mt19937_64& random, std::size_t entries) {
    Addr address = nth_address<Addr>(static_cast<std::uint32_t>(random() % (entries + 3)));
    address.bytes[Generations<Addr>::kBlockPrefix / 8 - 1] =
        static_cast<std::uint8_t>(random() % 3);
    const auto tail = random() % 4 == 0 ? CacheTail::make(8, 1, 1) : CacheTail::make(0, 1, 1);
    return {address, tail};
}

template <class Addr>
std::vector<Key<Addr>> random_burst(std::mt19937_64& random, std::size_t entries) {
    const std::size_t most = random() % 8 == 0 ? 256 : 70;
    const std::size_t count = 1 + random() % most;
    const std::size_t run = random() % 4 == 0 ? 40 : 1 + random() % 2;
    std::vector<Key<Addr>> keys;
    while (keys.size() < count) {
        const auto key = random_key<Addr>(random, entries);
        const std::size_t more = std::min(count - keys.size(), 1 + random() % run);
        keys.insert(keys.end(), more, key);
    }
    return keys;
}

template <class Addr>
void compare_with_model(std::size_t entries, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Model<Addr> model;
    std::vector<std::unique_ptr<DstCache<Addr>>> caches;
    const auto impls = supported_probes();
    for (const CacheProbeImpl* impl : impls) {
        caches.push_back(std::make_unique<DstCache<Addr>>(entries, seed, *impl));
    }
    const auto generations = std::make_unique<Generations<Addr>>();
    GenerationSequence sequence;
    std::uint64_t hits = 0;
    std::uint64_t stale = 0;
    for (int step = 0; step < 3000; ++step) {
        const std::uint64_t kind = random() % 100;
        if (kind < 70) {
            const auto keys = random_burst<Addr>(random, entries);
            const Answer want = model.probe(*generations, keys, *caches[0]);
            const bool places = random() % 2 == 0;
            for (std::size_t i = 0; i < caches.size(); ++i) {
                SCOPED_TRACE(std::string(impls[i]->name) + ", step " + std::to_string(step));
                expect_same<Addr>(test::probe(*caches[i], *generations, keys, places), want);
                if (testing::Test::HasFatalFailure()) {
                    return;
                }
            }
            hits += want.probed.hits;
            stale += want.probed.stale;
            // A budget, as the caller has.
            const std::size_t budget = random() % 3 == 0 ? random() % 8 : want.misses.size();
            for (std::size_t m = 0; m < std::min(budget, want.misses.size()); ++m) {
                const auto& key = keys[want.misses[m]];
                const auto value = static_cast<std::uint32_t>(1 + random() % 0xffffff);
                const Stamp stamp = want.stamps[want.misses[m]];
                model.insert(key, value, stamp, *caches[0]);
                for (auto& cache : caches) {
                    cache->insert(key.address, key.tail, value, stamp);
                }
            }
        } else if (kind < 80) {
            const auto key = random_key<Addr>(random, entries);
            generations->bump(net::Prefix<Addr>::of(key.address, Generations<Addr>::kBlockPrefix),
                              sequence.next());
        } else if (kind < 99) {
            for (std::uint64_t left = 1 + random() % entries; left > 0; --left) {
                const auto key = random_key<Addr>(random, entries);
                model.erase(key, *caches[0]);
                for (auto& cache : caches) {
                    cache->erase(key.address, key.tail);
                }
            }
        } else if (random() % 4 == 0) {
            model.clear();
            for (auto& cache : caches) {
                cache->clear();
            }
        }
        for (const auto& cache : caches) {
            ASSERT_EQ(cache->size(), model.size()) << step;
        }
    }
    // The test means something only if there was something to find and something to drop.
    EXPECT_GT(hits, 1000U);
    EXPECT_GT(stale, 10U);
}

TEST(DstCacheModel, AllWaysToProbeAgreeWithTheModel_ipv4) {
    for (const std::size_t entries : {4U, 16U, 128U, 512U}) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            compare_with_model<net::Ipv4Addr>(entries, seed);
        }
    }
}

TEST(DstCacheModel, AllWaysToProbeAgreeWithTheModel_ipv6) {
    for (const std::size_t entries : {4U, 16U, 128U, 512U}) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            compare_with_model<net::Ipv6Addr>(entries, seed);
        }
    }
}

}  // namespace
}  // namespace sluice::fib::test
