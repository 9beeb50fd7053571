// SPDX-License-Identifier: BSD-3-Clause
#include "fib/dst_cache.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fib/dst_cache_support.h"

namespace sluice::fib::test {
namespace {

using net::Ipv4Addr;
using net::Ipv6Addr;

/// Each test runs for both families under every way to probe that this machine has.
template <class A>
class DstCacheTest : public testing::Test {
protected:
    using Addr = A;
    using Keys = std::vector<Key<Addr>>;

    struct Rig {
        std::unique_ptr<Generations<Addr>> generations = std::make_unique<Generations<Addr>>();
        std::unique_ptr<DstCache<Addr>> cache{};

        Answer ask(const Keys& keys) { return probe(*cache, *generations, keys); }
        /// The value of one key.
        std::uint32_t ask(const Key<Addr>& key) { return ask(Keys{key}).values[0]; }
        void insert(const Key<Addr>& key, std::uint32_t value) {
            cache->insert(key.address, key.tail, value, generations->stamp(key.address));
        }
        void erase(const Key<Addr>& key) { cache->erase(key.address, key.tail); }
    };
    static void for_each_probe(std::size_t entries, const std::function<void(Rig&)>& test) {
        for (const CacheProbeImpl* impl : supported_probes()) {
            SCOPED_TRACE(std::string(impl->name));
            Rig rig;
            rig.cache = std::make_unique<DstCache<Addr>>(entries, kSecret, *impl);
            test(rig);
        }
    }
    static constexpr std::uint64_t kSecret = 0x5eed;
    static constexpr std::size_t kEntries = DstCache<Addr>::kDefaultEntries;
};

using Families = testing::Types<Ipv4Addr, Ipv6Addr>;
struct FamilyName {
    template <class Addr>
    static std::string GetName(int) {
        return sizeof(Addr) == 4 ? "ipv4" : "ipv6";
    }
};
TYPED_TEST_SUITE(DstCacheTest, Families, FamilyName);

TYPED_TEST(DstCacheTest, Case_C02_FourWaysInEveryBucket) {
    EXPECT_EQ(DstCache<TypeParam>::kDefaultEntries, 512U);
    for (const std::size_t entries : {4U, 8U, 512U, 4096U, 16384U}) {
        this->for_each_probe(entries, [&](auto& rig) {
            EXPECT_EQ(rig.cache->entries(), entries);
            EXPECT_EQ(rig.cache->size(), 0U);
            for (std::uint32_t i = 0; i < 4 * entries; ++i) {
                const Key<TypeParam> key{nth_address<TypeParam>(i), i % 64};
                for (const std::size_t bucket : rig.cache->buckets_of(key.address, key.tail)) {
                    ASSERT_LT(bucket, entries / 4);
                }
                rig.insert(key, i + 1);
            }
            EXPECT_EQ(rig.cache->size(), entries);
            rig.cache->clear();
            EXPECT_EQ(rig.cache->size(), 0U);
            EXPECT_EQ(rig.ask({nth_address<TypeParam>(0), 0}), kNoRoute);
        });
    }
}

TYPED_TEST(DstCacheTest, Case_C03_EveryBitOfTheKeyCounts) {
    // One bucket, so that only the comparison keeps keys apart.
    this->for_each_probe(4, [&](auto& rig) {
        const Key<TypeParam> key{nth_address<TypeParam>(0x00345678), CacheTail::make(10, 77, 99)};
        rig.insert(key, 5);
        typename DstCacheTest<TypeParam>::Keys others;
        for (unsigned bit = 0; bit < 8 * sizeof(TypeParam); ++bit) {
            Key<TypeParam> other = key;
            other.address.bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
            others.push_back(other);
        }
        for (unsigned bit = 0; bit < 32; ++bit) {
            Key<TypeParam> other = key;
            other.tail ^= 1U << bit;
            others.push_back(other);
        }
        const Answer answer = rig.ask(others);
        EXPECT_EQ(answer.probed.misses, others.size());
        EXPECT_EQ(answer.probed.stale, 0U);
        EXPECT_EQ(rig.ask(key), 5U);
    });
}

TEST(CacheTail, Case_C03_FieldsDoNotOverlap) {
    EXPECT_EQ(CacheTail::make(63, 0, 0), 0x3fU);
    EXPECT_EQ(CacheTail::make(0, CacheTail::kMaxIngressClass, 0), 0xfffc0U);
    EXPECT_EQ(CacheTail::make(0, 0, 4095), 0xfff00000U);
}

TYPED_TEST(DstCacheTest, Case_C03_AnAllZeroKeyIsAKeyLikeOthers) {
    this->for_each_probe(4, [&](auto& rig) {
        const Key<TypeParam> zero{};
        EXPECT_EQ(rig.ask(zero), kNoRoute);  // nothing is there, though empty ways are all zero
        rig.insert({nth_address<TypeParam>(1), 0}, 1);
        rig.insert(zero, 2);
        EXPECT_EQ(rig.ask(zero), 2U);
        rig.erase(zero);
        EXPECT_EQ(rig.ask(zero), kNoRoute);
        EXPECT_EQ(rig.cache->size(), 1U);
    });
}

TYPED_TEST(DstCacheTest, Case_C04_KeysThatCollideUnderOneSecretSpreadUnderOthers) {
    constexpr std::size_t kCrafted = 48;
    const DstCache<TypeParam> known(512, 1);
    const auto crafted = colliding(known, kCrafted);
    std::size_t most = 0;
    double distinct = 0;
    constexpr std::uint64_t kSecrets = 200;
    for (std::uint64_t secret = 2; secret < 2 + kSecrets; ++secret) {
        const DstCache<TypeParam> other(512, secret);
        std::map<std::size_t, std::size_t> held;
        for (const auto& key : crafted) {
            most = std::max(most, ++held[other.buckets_of(key.address, key.tail)[0]]);
        }
        distinct += static_cast<double>(held.size()) / kSecrets;
    }
    // Thrown at random, 48 keys hit 40 of 128 buckets.
    EXPECT_GT(distinct, 30.0);
    EXPECT_LE(most, 12U);
}

/// Keys that differ only in a few bits, chosen to cancel out in hashes that multiply words of 64
/// bits, add the products and keep the top: no choice of secret may make them collide more often
/// than others.
template <class Addr>
std::vector<std::vector<Key<Addr>>> structured() {
    std::vector<std::vector<Key<Addr>>> out;
    const auto with_bits = [](const std::vector<unsigned>& bits) {
        std::vector<Key<Addr>> keys;
        for (std::uint32_t set = 0; set < 1U << bits.size(); ++set) {
            Key<Addr> key{nth_address<Addr>(0), 0};
            for (std::size_t i = 0; i < bits.size(); ++i) {
                const std::uint32_t on = set >> i & 1U;
                if (bits[i] < 8 * sizeof(Addr)) {
                    key.address.bytes[bits[i] / 8] ^= static_cast<std::uint8_t>(on << bits[i] % 8);
                } else {
                    key.tail ^= on << (bits[i] - 8 * sizeof(Addr));
                }
            }
            keys.push_back(key);
        }
        return keys;
    };
    constexpr unsigned kBits = 8 * sizeof(Addr) + 32;
    // The top bits of every 32-bit word, the bottom ones, and each byte of the address and tail.
    for (const unsigned from : {0U, 24U, 29U}) {
        std::vector<unsigned> bits;
        for (unsigned word = 0; word < kBits / 32; ++word) {
            for (unsigned i = 0; i < 3 && bits.size() < 6; ++i) {
                bits.push_back(32 * word + from + i);
            }
        }
        out.push_back(with_bits(bits));
    }
    for (unsigned word = 0; word + 64 <= kBits; word += 32) {
        out.push_back(
            with_bits({word + 29, word + 30, word + 31, word + 61, word + 62, word + 63}));
    }
    if constexpr (sizeof(Addr) == 16) {
        out.push_back(with_bits({61, 62, 63, 125, 126, 127}));
        out.push_back(with_bits({0, 1, 2, 64, 65, 66}));
    }
    for (unsigned byte = 0; byte < kBits / 8; ++byte) {
        out.push_back(with_bits(
            {8 * byte, 8 * byte + 1, 8 * byte + 2, 8 * byte + 3, 8 * byte + 4, 8 * byte + 5}));
    }
    return out;
}

TYPED_TEST(DstCacheTest, Case_C04_NoSetOfBitsCollidesUnderEverySecret) {
    constexpr std::uint64_t kSecrets = 100;
    std::size_t number = 0;
    for (const auto& keys : structured<TypeParam>()) {
        // Pairs in one bucket, against what chance makes: C(64, 2) / 128.
        double pairs = 0;
        for (std::uint64_t secret = 0; secret < kSecrets; ++secret) {
            const DstCache<TypeParam> cache(512, secret);
            std::map<std::size_t, std::size_t> held;
            for (const auto& key : keys) {
                pairs += static_cast<double>(held[cache.buckets_of(key.address, key.tail)[0]]++);
            }
        }
        const auto n = static_cast<double>(keys.size());
        EXPECT_LT(pairs / kSecrets, 2.0 * n * (n - 1) / 2 / 128 + 1) << "set " << number;
        ++number;
    }
}

TYPED_TEST(DstCacheTest, Case_C10_MissesAreListedInOrderAndLeaveStampsForInserts) {
    this->for_each_probe(4096, [&](auto& rig) {
        for (const std::size_t count : {1U, 7U, 8U, 15U, 16U, 17U, 64U, 100U, 255U, 256U}) {
            rig.cache->clear();
            rig.generations->bump_all(static_cast<Stamp>(count));
            typename DstCacheTest<TypeParam>::Keys keys;
            std::vector<std::uint16_t> want;
            for (std::uint32_t i = 0; i < count; ++i) {
                keys.push_back({nth_address<TypeParam>(i), 0});
                if (i % 3 == 0) {
                    rig.insert(keys.back(), i + 1);
                } else {
                    want.push_back(static_cast<std::uint16_t>(i));
                }
            }
            const Answer answer = rig.ask(keys);
            EXPECT_EQ(answer.misses, want);
            for (std::uint32_t i = 0; i < count; ++i) {
                EXPECT_EQ(answer.values[i], i % 3 == 0 ? i + 1 : kNoRoute);
                EXPECT_EQ(answer.stamps[i], count);
            }
        }
        const Answer none = rig.ask(typename DstCacheTest<TypeParam>::Keys{});
        EXPECT_EQ(none.probed.misses, 0U);
    });
}

TYPED_TEST(DstCacheTest, Case_C10_RunsOfOneKey) {
    this->for_each_probe(this->kEntries, [&](auto& rig) {
        const Key<TypeParam> a{nth_address<TypeParam>(1), 3};
        const Key<TypeParam> b{nth_address<TypeParam>(2), 3};
        rig.insert(a, 11);
        for (const std::size_t count : {1U, 5U, 16U, 64U, 77U}) {
            const typename DstCacheTest<TypeParam>::Keys all_a(count, a);
            EXPECT_EQ(rig.ask(all_a).values, std::vector<std::uint32_t>(count, 11));
            const typename DstCacheTest<TypeParam>::Keys all_b(count, b);
            EXPECT_EQ(rig.ask(all_b).misses.size(), count);
            for (std::size_t other = 0; other < count; ++other) {  // one differs
                auto keys = all_a;
                keys[other] = b;
                std::vector<std::uint32_t> want(count, 11);
                want[other] = kNoRoute;
                ASSERT_EQ(rig.ask(keys).values, want) << other << " of " << count;
                keys[other] = {a.address, a.tail + 1};
                ASSERT_EQ(rig.ask(keys).values, want) << other << " of " << count;
            }
        }
    });
}

TYPED_TEST(DstCacheTest, Case_C11_ValidOnlyUnderTheSameStampWhateverTheOrder) {
    this->for_each_probe(this->kEntries, [&](auto& rig) {
        const Key<TypeParam> key{nth_address<TypeParam>(1), 0};
        for (const Stamp now : {1U, 6U, 8U, 0x7fffffffU, 0x80000007U, 0xffffffffU}) {
            rig.generations->bump_all(7);
            rig.insert(key, 11);
            EXPECT_EQ(rig.ask(key), 11U);
            rig.generations->bump_all(now);
            EXPECT_EQ(rig.ask(key), kNoRoute) << now;
        }
    });
}

TYPED_TEST(DstCacheTest, Case_C11_OnlyTheBlocksOfABumpBecomeStale) {
    this->for_each_probe(4096, [&](auto& rig) {
        constexpr unsigned kLength = Generations<TypeParam>::kBlockPrefix;
        typename DstCacheTest<TypeParam>::Keys keys;
        for (unsigned i = 0; i < 200; ++i) {
            TypeParam address = nth_address<TypeParam>(i);
            address.bytes[kLength / 8 - 1] = static_cast<std::uint8_t>(i);
            keys.push_back({address, 0});
            rig.insert(keys.back(), i + 1);
        }
        rig.generations->bump(net::Prefix<TypeParam>::of(keys[123].address, kLength), 9);
        const Answer answer = rig.ask(keys);
        EXPECT_EQ(answer.misses, std::vector<std::uint16_t>{123});
        EXPECT_EQ(answer.probed.stale, 1U);
        EXPECT_EQ(answer.stamps[123], 9U);
    });
}

TYPED_TEST(DstCacheTest, Case_C11_AStampReadBeforeTheLookupVouches) {
    this->for_each_probe(this->kEntries, [&](auto& rig) {
        const typename DstCacheTest<TypeParam>::Keys keys{{nth_address<TypeParam>(1), 0}};
        rig.generations->bump_all(7);
        const Answer answer = rig.ask(keys);
        // The route changes between the probe and the insertion of what was looked up.
        rig.generations->bump_all(8);
        rig.cache->insert(keys[0].address, 0, 11, answer.stamps[0]);
        EXPECT_EQ(rig.ask(keys[0]), kNoRoute);
    });
}

TYPED_TEST(DstCacheTest, Case_C12_AStaleEntryIsEmptiedOnTheSpot) {
    this->for_each_probe(this->kEntries, [&](auto& rig) {
        const Key<TypeParam> stale{nth_address<TypeParam>(1), 0};
        const Key<TypeParam> other{nth_address<TypeParam>(2), 0};
        rig.generations->bump_all(7);
        rig.insert(stale, 11);
        rig.insert(other, 12);
        rig.generations->bump_all(8);
        EXPECT_EQ(rig.cache->size(), 2U);  // lazily
        const Answer answer = rig.ask(typename DstCacheTest<TypeParam>::Keys(20, stale));
        EXPECT_EQ(answer.probed.stale, 1U);  // there was one
        EXPECT_EQ(answer.probed.misses, 20U);
        EXPECT_EQ(rig.cache->size(), 1U);
        rig.generations->bump_all(7);
        EXPECT_EQ(rig.ask(stale), kNoRoute);  // it is gone, not only hidden
        EXPECT_EQ(rig.ask(other), 12U);
    });
}

// As many keys as the destinations that real links have fit nearly all, wherever they fall: what is
// live moves over for them.
TYPED_TEST(DstCacheTest, Case_C02_FiveHundredOf512Stay) {
    this->for_each_probe(512, [&](auto& rig) {
        constexpr std::uint32_t kKeys = 500;
        std::mt19937_64 random(7);
        for (std::uint32_t use = 0; use < 40 * kKeys; ++use) {
            const auto i = static_cast<std::uint32_t>(random() % kKeys);
            const Key<TypeParam> key{nth_address<TypeParam>(i), 0};
            if (rig.ask(key) == kNoRoute) {
                rig.insert(key, i + 1);
            }
        }
        std::size_t held = 0;
        for (std::uint32_t i = 0; i < kKeys; ++i) {
            held += rig.ask({nth_address<TypeParam>(i), 0}) == i + 1 ? 1U : 0U;
        }
        EXPECT_GE(held, kKeys - 15);  // 4 ways alone hold 410
    });
}

constexpr std::size_t kPlaces = 2 * DstCache<net::Ipv4Addr>::kWays;

/// Probing `uses` in bursts of `burst` and then inserting one key more displaces the one of two
/// full buckets whose last use is the longest ago.
template <class Addr, class Rig>
void expect_lru_victim(Rig& rig, std::size_t burst) {
    const auto keys = colliding(*rig.cache, kPlaces + 1);
    std::mt19937_64 random(burst);
    for (int round = 0; round < 200; ++round) {
        rig.cache->clear();
        std::array<std::uint32_t, kPlaces> last{};
        std::vector<std::size_t> order(kPlaces);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::shuffle(order, random);
        std::uint32_t now = 0;
        for (const std::size_t i : order) {
            rig.insert(keys[i], static_cast<std::uint32_t>(i + 1));
            last[i] = ++now;
        }
        const std::size_t uses = random() % 40;
        std::vector<Key<Addr>> asked;
        for (std::size_t use = 0; use < uses; ++use) {
            const std::size_t i = random() % kPlaces;
            asked.push_back(keys[i]);
            last[i] = ++now;
            if (asked.size() == burst || use + 1 == uses) {
                ASSERT_EQ(rig.ask(asked).probed.misses, 0U);
                asked.clear();
            }
        }
        const auto victim = static_cast<std::size_t>(std::ranges::min_element(last) - last.begin());
        rig.insert(keys[kPlaces], kPlaces + 1);
        for (std::size_t i = 0; i <= kPlaces; ++i) {
            ASSERT_EQ(rig.ask(keys[i]), i == victim ? kNoRoute : i + 1) << "round " << round;
        }
    }
}

TYPED_TEST(DstCacheTest, Case_C13_TheLongestUnusedIsDisplaced) {
    this->for_each_probe(this->kEntries, [](auto& rig) { expect_lru_victim<TypeParam>(rig, 1); });
}
TYPED_TEST(DstCacheTest, Case_C13_UsesOfOneBurstDoNotTie) {
    this->for_each_probe(this->kEntries, [](auto& rig) { expect_lru_victim<TypeParam>(rig, 40); });
}

TYPED_TEST(DstCacheTest, Case_C31_AnEmptyWayIsTakenFirst) {
    this->for_each_probe(this->kEntries, [&](auto& rig) {
        const auto keys = colliding(*rig.cache, kPlaces + 1);
        for (std::size_t emptied = 0; emptied < kPlaces; ++emptied) {
            for (const bool by_erase : {true, false}) {
                rig.cache->clear();
                rig.generations->bump_all(1);
                for (std::size_t i = 0; i < kPlaces; ++i) {
                    rig.insert(keys[i], static_cast<std::uint32_t>(i + 1));
                }
                if (by_erase) {
                    rig.erase(keys[emptied]);
                } else {  // stale, and found to be so
                    rig.cache->insert(keys[emptied].address, 0, 99, 77);
                    ASSERT_EQ(rig.ask(keys[emptied]), kNoRoute);
                }
                rig.insert(keys[kPlaces], kPlaces + 1);
                for (std::size_t i = 0; i <= kPlaces; ++i) {
                    EXPECT_EQ(rig.ask(keys[i]), i == emptied ? kNoRoute : i + 1);
                }
            }
        }
    });
}

TYPED_TEST(DstCacheTest, Case_C32_OneBucketNeverHoldsAKeyTwice) {
    this->for_each_probe(4, [&](auto& rig) {
        const Key<TypeParam> key{nth_address<TypeParam>(1), 5};
        // A burst that misses one key often, and inserts it for each of them.
        const Answer answer = rig.ask(typename DstCacheTest<TypeParam>::Keys(9, key));
        for (std::uint32_t i = 0; i < answer.probed.misses; ++i) {
            rig.cache->insert(key.address, key.tail, 10 + i, answer.stamps[answer.misses[i]]);
        }
        EXPECT_EQ(rig.cache->size(), 1U);
        EXPECT_EQ(rig.ask(key), 18U);
        rig.erase(key);
        EXPECT_EQ(rig.cache->size(), 0U);
        EXPECT_EQ(rig.ask(key), kNoRoute);
    });
}

TYPED_TEST(DstCacheTest, Case_C32_AKeyMovesToAnotherWayAndBack) {
    this->for_each_probe(4, [&](auto& rig) {
        const auto key = [](std::uint32_t i) {
            return Key<TypeParam>{nth_address<TypeParam>(i), 0};
        };
        for (std::uint32_t i = 0; i < 4; ++i) {
            rig.insert(key(i), i + 1);
        }
        rig.erase(key(2));  // its key stays behind in way 2
        rig.erase(key(0));
        rig.insert(key(2), 30);  // way 0
        EXPECT_EQ(rig.ask(key(2)), 30U);
        rig.erase(key(2));
        rig.insert(key(7), 70);  // way 0
        rig.insert(key(2), 31);  // way 2
        EXPECT_EQ(rig.ask(key(2)), 31U);
        EXPECT_EQ(rig.cache->size(), 4U);
    });
}

TYPED_TEST(DstCacheTest, Case_C32_AKeyIsNotHiddenByWhatItLeftBehind) {
    this->for_each_probe(4, [&](auto& rig) {
        const auto key = [](std::uint32_t i) {
            return Key<TypeParam>{nth_address<TypeParam>(i), 0};
        };
        for (std::uint32_t i = 0; i < 4; ++i) {
            rig.insert(key(i), i + 1);
        }
        EXPECT_EQ(rig.ask(key(0)), 1U);  // so that the way of key 1 is the longer unused
        rig.erase(key(0));
        rig.erase(key(1));
        rig.insert(key(0), 10);
        const typename DstCacheTest<TypeParam>::Keys eight(8, key(0));  // enough for vectors
        EXPECT_EQ(rig.ask(eight).values, std::vector<std::uint32_t>(8, 10));
    });
}

}  // namespace
}  // namespace sluice::fib::test
