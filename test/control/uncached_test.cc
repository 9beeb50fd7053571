// SPDX-License-Identifier: BSD-3-Clause
#include "control/uncached.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/id.h"
#include "fib/dst.h"
#include "net/address.h"

namespace sluice::control::test {
namespace {

using net::Family;
using Flushed = std::vector<std::pair<fib::DstIndex, bool>>;

constexpr std::size_t kAll = 1'000'000;

NetdevId id(std::size_t value) {
    return NetdevId{static_cast<std::uint16_t>(value)};
}

Flushed flush(UncachedLists& lists, std::vector<NetdevId> gone, std::size_t limit = kAll) {
    Flushed out;
    const auto each = [&](fib::DstIndex dst, bool still) {
        EXPECT_EQ(lists.listed(dst), still);
        out.emplace_back(dst, still);
    };
    while (lists.flush(gone, limit, each)) {
    }
    std::ranges::sort(out);
    return out;
}

/// With one list, some that netdevs share, and one for each.
class Uncached : public ::testing::TestWithParam<std::size_t> {
protected:
    UncachedLists lists{3, 1000, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(U_02,
                         Uncached,
                         ::testing::Values(1, 4, 64, kMaxNetdevs),
                         [](const auto& row) { return "lists_" + std::to_string(row.param); });

TEST_P(Uncached, U_01_is_on_one_list_of_its_worker_until_removed) {
    EXPECT_FALSE(lists.listed(7));
    lists.add(7, 1, Family::kIpv4, id(5), id(5));
    EXPECT_TRUE(lists.listed(7));
    EXPECT_EQ(lists.size(), 1U);
    EXPECT_EQ(lists.count(1, Family::kIpv4, id(5)), 1U);
    EXPECT_EQ(lists.count(0, Family::kIpv4, id(5)), 0U) << "of another worker";
    EXPECT_EQ(lists.count(1, Family::kIpv6, id(5)), 0U) << "of the other family";
    EXPECT_EQ(lists.count(1, Family::kIpv4, id(6)), 0U) << "of another netdev";
    lists.remove(7);
    EXPECT_FALSE(lists.listed(7));
    EXPECT_EQ(lists.size(), 0U);
    EXPECT_EQ(lists.count(1, Family::kIpv4, id(5)), 0U);
    EXPECT_EQ(flush(lists, {id(5)}), Flushed{});
}

TEST_P(Uncached, U_03_removes_first_middle_and_last_of_a_list) {
    for (const fib::DstIndex removed : {1U, 2U, 3U}) {
        for (const fib::DstIndex dst : {1U, 2U, 3U}) {
            lists.add(dst, 0, Family::kIpv6, id(9), id(9));
        }
        lists.remove(removed);
        Flushed want{{1, false}, {2, false}, {3, false}};
        std::erase(want, std::pair{removed, false});
        EXPECT_EQ(flush(lists, {id(9)}), want);
        EXPECT_EQ(lists.size(), 0U);
    }
}

TEST_P(Uncached, U_04_flush_finds_a_set_of_netdevs_on_every_worker_and_nothing_else) {
    fib::DstIndex dst = 0;
    Flushed want;
    for (std::size_t worker = 0; worker < 3; ++worker) {
        for (const Family family : {Family::kIpv4, Family::kIpv6}) {
            for (const std::size_t netdev : {1U, 2U, 3U, 65U}) {
                lists.add(++dst, worker, family, id(netdev), id(netdev));
                if (netdev == 1 || netdev == 3) {
                    want.emplace_back(dst, false);
                }
            }
        }
    }
    EXPECT_EQ(flush(lists, {id(3), id(1), id(8)}), want);
    EXPECT_EQ(lists.size(), 12U);
    EXPECT_EQ(lists.count(2, Family::kIpv6, id(2)), 1U);
    EXPECT_EQ(lists.count(2, Family::kIpv6, id(65)), 1U);
    EXPECT_EQ(flush(lists, {id(3), id(1), id(8)}), Flushed{}) << "once only";
}

// U-05: the original took it from its only list when the first of the two went, and the second
// never found it.
TEST_P(Uncached, U_05_member_first_then_the_vrf) {
    constexpr auto kVrf = NetdevId{2};
    constexpr auto kMember = NetdevId{3};
    lists.add(7, 0, Family::kIpv6, kVrf, kMember);
    EXPECT_EQ(lists.size(), 1U);
    EXPECT_EQ(flush(lists, {kMember}), (Flushed{{7, true}}));
    EXPECT_EQ(lists.count(0, Family::kIpv6, kVrf), 1U);
    EXPECT_EQ(flush(lists, {kMember}), Flushed{});
    EXPECT_EQ(flush(lists, {kVrf}), (Flushed{{7, false}}));
    EXPECT_EQ(lists.size(), 0U);
}

TEST_P(Uncached, U_05_the_vrf_first_then_the_member) {
    constexpr auto kVrf = NetdevId{2};
    constexpr auto kMember = NetdevId{3};
    lists.add(7, 0, Family::kIpv6, kVrf, kMember);
    EXPECT_EQ(flush(lists, {kVrf}), (Flushed{{7, true}}));
    EXPECT_EQ(lists.count(0, Family::kIpv6, kVrf), 0U);
    EXPECT_TRUE(lists.listed(7)) << "under the member";
    EXPECT_EQ(flush(lists, {kMember}), (Flushed{{7, false}}));
    EXPECT_EQ(lists.size(), 0U);
}

TEST_P(Uncached, U_05_both_at_once_is_once) {
    lists.add(7, 0, Family::kIpv6, id(2), id(3));
    lists.add(8, 0, Family::kIpv6, id(2), id(6));
    lists.add(9, 0, Family::kIpv6, id(6), id(3));
    EXPECT_EQ(flush(lists, {id(2), id(3)}), (Flushed{{7, false}, {8, true}, {9, true}}));
}

TEST_P(Uncached, U_05_is_removed_from_both_lists) {
    lists.add(7, 0, Family::kIpv6, id(2), id(3));
    lists.remove(7);
    EXPECT_EQ(flush(lists, {id(2), id(3)}), Flushed{});
    lists.add(7, 0, Family::kIpv6, id(2), id(3));
    flush(lists, {id(3)});
    lists.remove(7);
    EXPECT_FALSE(lists.listed(7));
    EXPECT_EQ(flush(lists, {id(2)}), Flushed{});
    EXPECT_EQ(lists.size(), 0U);
}

TEST_P(Uncached, U_08_goes_on_where_it_stopped) {
    for (fib::DstIndex dst = 1; dst <= 100; ++dst) {
        lists.add(dst, dst % 3, Family::kIpv4, id(dst % 10), id(dst % 10));
    }
    const std::vector<NetdevId> gone{id(1), id(4)};
    std::size_t calls = 0;
    std::size_t found = 0;
    std::size_t visits = lists.visits();
    bool more = true;
    for (; more; ++calls) {
        more = lists.flush(gone, 3, [&](fib::DstIndex, bool) { ++found; });
        EXPECT_LE(lists.visits() - visits, 3U) << "in one call";
        visits = lists.visits();
        if (more && calls == 1) {
            lists.remove(99);  // of another netdev; may be where it would go on
            lists.remove(98);
        }
    }
    EXPECT_EQ(found, 20U);
    EXPECT_GE(calls, 7U);
    EXPECT_EQ(lists.size(), 78U);
}

TEST_P(Uncached, U_08_each_may_remove_what_comes_next) {
    for (fib::DstIndex dst = 1; dst <= 9; ++dst) {
        lists.add(dst, 0, Family::kIpv4, id(5), id(5));
    }
    std::set<fib::DstIndex> seen;
    while (lists.flush(std::vector{id(5)}, 2, [&](fib::DstIndex dst, bool) {
        seen.insert(dst);
        for (const fib::DstIndex other : {dst - 1, dst + 1}) {
            if (other >= 1 && other <= 9 && lists.listed(other)) {
                lists.remove(other);
            }
        }
    })) {
    }
    EXPECT_EQ(lists.size(), 0U);
    EXPECT_GE(seen.size(), 3U);
    for (const fib::DstIndex dst : seen) {
        EXPECT_EQ(seen.count(dst + 1), 0U) << "visited after it was removed";
    }
}

TEST_P(Uncached, U_08_another_set_begins_anew) {
    for (fib::DstIndex dst = 1; dst <= 10; ++dst) {
        lists.add(dst, 0, Family::kIpv4, id(dst % 2), id(dst % 2));
    }
    EXPECT_TRUE(lists.flush(std::vector{id(1)}, 1, [](fib::DstIndex, bool) {}));
    EXPECT_EQ(flush(lists, {id(0)}).size(), 5U);
    flush(lists, {id(1)});
    EXPECT_EQ(lists.size(), 0U);
}

TEST(UncachedVisits, U_06_removal_visits_what_is_on_the_removed_netdevs_only) {
    UncachedLists lists(2, 10'000);
    UncachedLists shared(2, 10'000, 64);
    for (fib::DstIndex dst = 1; dst < 9'000; ++dst) {
        const NetdevId netdev = id(1 + dst % 256);
        lists.add(dst, dst % 2, Family::kIpv4, netdev, netdev);
        shared.add(dst, dst % 2, Family::kIpv4, netdev, netdev);
    }
    EXPECT_EQ(flush(lists, {id(300), id(301)}), Flushed{});
    EXPECT_EQ(lists.visits(), 0U);
    const std::size_t own = flush(lists, {id(1), id(300)}).size();
    EXPECT_EQ(lists.visits(), own);
    EXPECT_EQ(flush(shared, {id(300)}), Flushed{});
    EXPECT_GT(shared.visits(), 0U) << "the others of its list, as the benchmark compares";
}

// U-07: the lists that the netdevs of a batch share are gone through once.
TEST(UncachedVisits, U_07_a_batch_is_one_pass) {
    UncachedLists lists(1, 10'000, 64);
    for (fib::DstIndex dst = 1; dst < 6'400; ++dst) {
        lists.add(dst, 0, Family::kIpv4, id(1 + dst % 256), id(1 + dst % 256));
    }
    std::vector<NetdevId> others;
    for (std::size_t netdev = 512; netdev < 768; ++netdev) {
        others.push_back(id(netdev));
    }
    flush(lists, others);
    EXPECT_EQ(lists.visits(), lists.size());
    for (const NetdevId netdev : others) {
        flush(lists, {netdev});
    }
    EXPECT_EQ(lists.visits(), lists.size() * 5) << "four netdevs a list, one by one";
}

// Against sets of what should be where.
TEST_P(Uncached, model_of_random_changes) {
    struct Entry {
        std::size_t worker;
        Family family;
        std::set<std::uint16_t> under;
        NetdevId out;
    };
    std::map<fib::DstIndex, Entry> model;
    std::mt19937 random(11);
    const auto pick = [&](std::size_t below) { return random() % below; };
    for (int step = 0; step < 20'000; ++step) {
        const auto dst = static_cast<fib::DstIndex>(1 + pick(199));
        const std::size_t what = pick(100);
        ASSERT_EQ(lists.listed(dst), model.contains(dst));
        if (what < 60 && !model.contains(dst)) {
            const NetdevId out = id(pick(80));
            const NetdevId idev = pick(3) == 0 ? id(pick(80)) : out;
            const std::size_t worker = pick(3);
            const Family family = pick(2) == 0 ? Family::kIpv4 : Family::kIpv6;
            lists.add(dst, worker, family, out, idev);
            model[dst] = {worker, family, {out.value, idev.value}, out};
        } else if (what < 90 && model.contains(dst)) {
            lists.remove(dst);
            model.erase(dst);
        } else if (what >= 95) {
            std::vector<NetdevId> gone;
            for (std::size_t i = 0; i < pick(5); ++i) {
                gone.push_back(id(pick(80)));
            }
            Flushed want;
            for (auto it = model.begin(); it != model.end();) {
                bool hit = false;
                for (const NetdevId netdev : gone) {
                    hit = it->second.under.erase(netdev.value) != 0 || hit;
                }
                const bool still = !it->second.under.empty();
                if (hit) {
                    want.emplace_back(it->first, still);
                }
                it = still ? std::next(it) : model.erase(it);
            }
            ASSERT_EQ(flush(lists, gone, 1 + pick(20)), want);
        }
        ASSERT_EQ(lists.size(), model.size());
        const NetdevId netdev = id(pick(80));
        std::size_t count = 0;
        for (const auto& [index, entry] : model) {
            count += entry.worker == 1 && entry.family == Family::kIpv6 && entry.out == netdev &&
                             entry.under.contains(netdev.value)
                         ? 1U
                         : 0U;
        }
        ASSERT_EQ(lists.count(1, Family::kIpv6, netdev), count);
    }
}

}  // namespace
}  // namespace sluice::control::test
