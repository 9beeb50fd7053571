// SPDX-License-Identifier: BSD-3-Clause
// The parts of a worker by themselves.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/drop_reason.h"
#include "fib/neighbor_map.h"
#include "net/checksum.h"
#include "pipeline/chain_sum.h"
#include "pipeline/hold.h"
#include "pipeline/idle.h"
#include "pipeline/messages.h"
#include "pipeline/rate_limit.h"
#include "pipeline/worker.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {

namespace {

using fib::NeighborKeyWords;
using pipeline::HoldTable;

/// Mbufs that are only pointed at.
class HoldTableTest : public testing::Test {
public:
    static NeighborKeyWords key(std::uint32_t n) {
        return NeighborKeyWords::of(NetdevId{1}, net::Ipv4Addr::from_host(n));
    }
    rte_mbuf* mbuf() { return &mbufs_[next_++ % mbufs_.size()]; }
    std::vector<rte_mbuf*> take(const NeighborKeyWords& k) {
        HoldTable::Batch batch{};
        const std::size_t count = table.take(k, batch);
        return {batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(count)};
    }
    HoldTable table{42};

private:
    std::vector<rte_mbuf> mbufs_{20'000};
    std::size_t next_ = 0;
};

TEST_F(HoldTableTest, oldest_goes_first_newest_stay) {
    std::vector<rte_mbuf*> all;
    HoldTable::Added added{};
    for (std::size_t i = 0; i < 20; ++i) {
        all.push_back(mbuf());
        ASSERT_TRUE(table.add(key(1), all.back(), 0, added));
        if (i == 0) {
            EXPECT_EQ(added.outcome, HoldTable::Outcome::kFirst);
        } else if (i < HoldTable::kPacketsPerNeighbor) {
            EXPECT_EQ(added.outcome, HoldTable::Outcome::kKept);
        } else {
            EXPECT_EQ(added.outcome, HoldTable::Outcome::kDisplaced);
            EXPECT_EQ(added.displaced, all[i - HoldTable::kPacketsPerNeighbor]);
        }
    }
    EXPECT_EQ(take(key(1)), std::vector<rte_mbuf*>(all.end() - 8, all.end()));
    EXPECT_TRUE(take(key(1)).empty());
    EXPECT_EQ(table.packets(), 0U);
}

TEST_F(HoldTableTest, Check_161_bounded_neighbours) {
    HoldTable::Added added{};
    for (std::uint32_t n = 0; n < HoldTable::kNeighbors; ++n) {
        ASSERT_TRUE(table.add(key(n), mbuf(), 0, added));
    }
    EXPECT_FALSE(table.add(key(999'999), mbuf(), 0, added));
    ASSERT_TRUE(table.add(key(5), mbuf(), 0, added)) << "a known one has room";
    EXPECT_EQ(take(key(7)).size(), 1U);
    EXPECT_TRUE(table.add(key(999'999), mbuf(), 0, added));
    EXPECT_EQ(added.outcome, HoldTable::Outcome::kFirst);
}

TEST_F(HoldTableTest, Check_161_bounded_packets) {
    HoldTable::Added added{};
    for (std::uint32_t n = 0; table.packets() < HoldTable::kPackets; ++n) {
        for (std::size_t i = 0; i < HoldTable::kPacketsPerNeighbor; ++i) {
            ASSERT_TRUE(table.add(key(n), mbuf(), 0, added));
        }
    }
    EXPECT_FALSE(table.add(key(999'999), mbuf(), 0, added));
    EXPECT_EQ(take(key(0)).size(), 8U);
    // Room for eight: the ninth displaces its own kind, though that holds few.
    ASSERT_TRUE(table.add(key(999'999), mbuf(), 0, added));
    for (int i = 0; i < 7; ++i) {
        ASSERT_TRUE(table.add(key(888'888), mbuf(), 0, added));
    }
    ASSERT_TRUE(table.add(key(999'999), mbuf(), 0, added));
    EXPECT_EQ(added.outcome, HoldTable::Outcome::kDisplaced);
    EXPECT_EQ(table.packets(), HoldTable::kPackets);
    EXPECT_EQ(take(key(999'999)).size(), 1U);
}

TEST_F(HoldTableTest, overdue_in_order_of_age) {
    HoldTable::Added added{};
    HoldTable::Batch batch{};
    for (std::uint32_t n = 0; n < 4; ++n) {
        ASSERT_TRUE(table.add(key(n), mbuf(), 100 * n, added));
    }
    ASSERT_TRUE(table.add(key(0), mbuf(), 350, added)) << "keeps its age";
    take(key(1));
    EXPECT_EQ(table.take_overdue(0, batch), 0U);
    EXPECT_EQ(table.take_overdue(200, batch), 2U) << "0 with two packets";
    EXPECT_EQ(table.take_overdue(200, batch), 0U) << "2 is not before 200";
    EXPECT_EQ(table.take_overdue(301, batch), 1U);
    EXPECT_EQ(table.take_overdue(301, batch), 1U);
    EXPECT_EQ(table.take_overdue(std::numeric_limits<std::uint64_t>::max(), batch), 0U);
    EXPECT_EQ(table.neighbors(), 0U);
}

TEST_F(HoldTableTest, against_a_model) {
    std::mt19937 random(1);
    std::map<std::uint32_t, std::deque<rte_mbuf*>> model;
    std::size_t packets = 0;
    for (int i = 0; i < 100'000; ++i) {
        const auto n = static_cast<std::uint32_t>(random() % 600);
        if (random() % 16 != 0) {
            rte_mbuf* m = mbuf();
            HoldTable::Added added{};
            const bool kept = table.add(key(n), m, 0, added);
            auto it = model.find(n);
            if (it == model.end()) {
                ASSERT_EQ(kept, packets < HoldTable::kPackets);
                if (!kept) {
                    continue;
                }
                ASSERT_EQ(added.outcome, HoldTable::Outcome::kFirst);
                it = model.emplace(n, std::deque<rte_mbuf*>{}).first;
                ++packets;
            } else if (it->second.size() < 8 && packets < HoldTable::kPackets) {
                ASSERT_EQ(added.outcome, HoldTable::Outcome::kKept);
                ++packets;
            } else {
                ASSERT_EQ(added.outcome, HoldTable::Outcome::kDisplaced);
                ASSERT_EQ(added.displaced, it->second.front());
                it->second.pop_front();
            }
            it->second.push_back(m);
        } else {
            const auto it = model.find(n);
            const auto got = take(key(n));
            ASSERT_EQ(got.size(), it == model.end() ? 0 : it->second.size());
            if (it != model.end()) {
                ASSERT_TRUE(std::ranges::equal(got, it->second));
                packets -= got.size();
                model.erase(it);
            }
        }
        ASSERT_EQ(table.packets(), packets);
        ASSERT_EQ(table.neighbors(), model.size());
    }
}

TEST(IcmpRateLimiterTest, burst_then_rate) {
    pipeline::IcmpRateLimiter limiter;
    const NetdevId netdev{7};
    const auto allowed = [&](std::uint64_t now, unsigned tries) {
        unsigned count = 0;
        for (unsigned i = 0; i < tries; ++i) {
            count += limiter.allow(netdev, now, 100, 50) ? 1U : 0U;
        }
        return count;
    };
    EXPECT_EQ(allowed(5'000, 100), 50U);
    EXPECT_EQ(allowed(5'000 + 9'999'999, 100), 0U) << "not yet a token";
    EXPECT_EQ(allowed(5'000 + 10'000'000, 100), 1U);
    EXPECT_EQ(allowed(5'000 + 1'010'000'000, 1000), 50U) << "never more than the burst";
    EXPECT_TRUE(limiter.allow(NetdevId{8}, 5'000, 100, 50)) << "one bucket each";
    EXPECT_FALSE(limiter.allow(NetdevId{9}, 5'000, 0, 50));
    EXPECT_FALSE(limiter.allow(NetdevId{9}, 5'000, 100, 0));
}

TEST(IdleSleeperTest, sleeps_after_a_thousand_empty_rounds) {
    pipeline::IdleSleeper sleeper;
    unsigned rounds = 1;
    while (!sleeper.round(false)) {
        ++rounds;
    }
    EXPECT_EQ(rounds, 1000U);
    EXPECT_TRUE(sleeper.began());
    EXPECT_FALSE(sleeper.began()) << "once";
    EXPECT_TRUE(sleeper.round(false));
    EXPECT_FALSE(sleeper.began());
    EXPECT_FALSE(sleeper.round(true));
    EXPECT_FALSE(sleeper.round(false)) << "from the start again";
}

TEST(IdleSleeperTest, sleeps_grow_to_the_bound) {
    pipeline::IdleSleeper sleeper;
    // The first one already: a worker that never worked must not spin.
    EXPECT_GE(sleeper.sleep(), 20'000U);
    for (int i = 0; i < 6; ++i) {
        sleeper.sleep();
    }
    std::uint64_t least = sleeper.sleep();
    EXPECT_GE(least, pipeline::kIdleSleepMaxUs * 1000U);
    // A busy machine may wake it late, not every time.
    for (int i = 0; i < 50; ++i) {
        least = std::min(least, sleeper.sleep());
    }
    EXPECT_LT(least, 10 * pipeline::kIdleSleepMaxUs * 1000U);
    sleeper.round(true);
    for (int i = 0; i < 50; ++i) {
        sleeper.round(true);
        least = std::min(least, sleeper.sleep());
    }
    EXPECT_LT(least, pipeline::kIdleSleepMaxUs * 1000U) << "short again after work";
}

// The device of a queue list that has gone is watched no more, also if the new list happens to lie
// at the same address.
TEST(IdleSleeperTest, watches_the_list_that_it_was_given_last) {
    pipeline::IdleSleeper sleeper;
    const int ready = ::eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    ASSERT_GE(ready, 0);
    pipeline::RxQueueList queues(1);
    queues[0].wakeup.fd = ready;
    sleeper.prepare(&queues);
    for (int i = 0; i < 10; ++i) {
        sleeper.sleep();
    }
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (int i = 0; i < 20; ++i) {
        least = std::min(least, sleeper.sleep());
    }
    EXPECT_LT(least, pipeline::kIdleSleepMaxUs * 1000U) << "a packet wakes it at once";
    queues[0].wakeup.fd = -1;
    sleeper.prepare(&queues);
    EXPECT_GE(sleeper.sleep(), pipeline::kIdleSleepMaxUs * 1000U) << "sleeps its time";
    ::close(ready);
}

class TransmitterTest : public StageBench {
public:
    void enqueue(std::uint16_t port, unsigned count, bool booked = true) {
        for (unsigned i = 0; i < count; ++i) {
            // As if it had come in by p0.
            stats::bump(worker().block.netdev(kP0).rx_packets, booked ? 1 : 0);
            worker().context.transmit.enqueue(
                port, mbuf_of(Packet().eth().ipv4().udp().bytes()), kP0, kP1, 1, booked);
        }
    }
};

TEST_F(TransmitterTest, sends_a_full_buffer_at_once_and_the_rest_when_told) {
    enqueue(3, 63);
    EXPECT_EQ(take_sent().size(), 0U);
    enqueue(3, 1);
    EXPECT_EQ(take_sent().size(), 64U);
    enqueue(3, 5);
    enqueue(4, 5);
    worker().context.transmit.flush();
    const auto sent = take_sent();
    ASSERT_EQ(sent.size(), 10U);
    EXPECT_EQ(std::ranges::count(sent, 3, &Sent::port), 5);
    worker().context.transmit.flush();
    EXPECT_EQ(take_sent().size(), 0U);
    EXPECT_EQ(counters(kP0).forwarded, 74U);
}

TEST_F(TransmitterTest, books_what_the_device_takes_and_drops_the_rest) {
    device_room = 70;
    enqueue(0, 100);
    worker().context.transmit.flush();
    EXPECT_EQ(counters(kP0).forwarded, 70U);
    EXPECT_EQ(counters(kP1).tx_packets, 70U);
    EXPECT_EQ(counters(kP1).tx_bytes, 70U * 42U);
    EXPECT_EQ(drops(kP0, DropReason::kTxFull), 30U);
    EXPECT_EQ(worker().block.worker().drops_by_family[1][std::to_underlying(DropReason::kTxFull)],
              30U);
}

TEST_F(TransmitterTest, later_fragments_are_transmitted_but_not_forwarded) {
    device_room = 3;
    enqueue(0, 2);
    enqueue(0, 3, false);
    worker().context.transmit.flush();
    EXPECT_EQ(counters(kP0).forwarded, 2U);
    EXPECT_EQ(counters(kP1).tx_packets, 3U);
    EXPECT_EQ(counters(kP1).fragments_lost, 2U);
}

class ChainSumTest : public StageBench {};

TEST_F(ChainSumTest, segments_make_no_difference) {
    std::mt19937 random(3);
    for (int i = 0; i < 2000; ++i) {
        Bytes bytes(1 + random() % 300);
        // High bytes, so that carries are many.
        std::ranges::generate(bytes, [&] { return static_cast<std::uint8_t>(0xf0U | random()); });
        std::vector<std::size_t> segments(random() % 8);
        std::ranges::generate(segments, [&] { return random() % 60; });
        rte_mbuf* m = mbuf_of(bytes, segments);
        const std::size_t from = random() % bytes.size();
        const std::size_t length = random() % (bytes.size() - from + 1);
        const auto want = net::internet_checksum(std::span(bytes).subspan(from, length));
        EXPECT_EQ(net::fold_checksum(pipeline::sum_chain(*m, from, length)), want)
            << testing::PrintToString(segments) << ' ' << from << '+' << length;
        rte_pktmbuf_free(m);
    }
}

}  // namespace

}  // namespace sluice::test
