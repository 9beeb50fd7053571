// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/rcu.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace sluice::dpdk {
namespace {

TEST(Rcu, NothingRunsBeforeTheReaderIsQuiescent) {
    RcuDomain domain;
    RcuReader reader(domain, WorkerId{3});
    bool freed = false;
    domain.defer([&] { freed = true; });
    EXPECT_EQ(domain.poll(), 0U);
    EXPECT_FALSE(freed);
    EXPECT_EQ(domain.pending(), 1U);
    reader.quiescent();
    EXPECT_FALSE(freed) << "callbacks run on the control thread, in poll()";
    EXPECT_EQ(domain.poll(), 1U);
    EXPECT_TRUE(freed);
    EXPECT_EQ(domain.pending(), 0U);
}

TEST(Rcu, EveryReaderCounts) {
    RcuDomain domain;
    RcuReader first(domain, WorkerId{0});
    RcuReader last(domain, WorkerId{kMaxWorkers - 1});
    bool freed = false;
    domain.defer([&] { freed = true; });
    first.quiescent();
    first.quiescent();
    domain.poll();
    EXPECT_FALSE(freed);
    last.quiescent();
    domain.poll();
    EXPECT_TRUE(freed);
}

TEST(Rcu, AQuiescentStateBeforeTheDeferDoesNotCount) {
    RcuDomain domain;
    RcuReader reader(domain, WorkerId{0});
    reader.quiescent();
    bool freed = false;
    domain.defer([&] { freed = true; });
    domain.poll();
    EXPECT_FALSE(freed);
    reader.quiescent();
    domain.poll();
    EXPECT_TRUE(freed);
}

TEST(Rcu, AnOfflineReaderHoldsNothingUp) {
    RcuDomain domain;
    RcuReader reader(domain, WorkerId{0});
    reader.offline();
    bool freed = false;
    domain.defer([&] { freed = true; });
    EXPECT_EQ(domain.poll(), 1U);
    EXPECT_TRUE(freed);

    reader.online();
    freed = false;
    domain.defer([&] { freed = true; });
    EXPECT_EQ(domain.poll(), 0U);
    EXPECT_FALSE(freed);
    reader.offline();
    EXPECT_EQ(domain.poll(), 1U);
}

TEST(Rcu, AReaderThatIsGoneHoldsNothingUpAndItsPlaceIsFree) {
    RcuDomain domain;
    auto reader = std::make_unique<RcuReader>(domain, WorkerId{0});
    bool freed = false;
    domain.defer([&] { freed = true; });
    domain.poll();
    EXPECT_FALSE(freed);
    reader.reset();
    domain.poll();
    EXPECT_TRUE(freed);
    reader = std::make_unique<RcuReader>(domain, WorkerId{0});
    freed = false;
    domain.defer([&] { freed = true; });
    domain.poll();
    EXPECT_FALSE(freed);
    reader.reset();
}

TEST(Rcu, CallbacksRunInCallOrderAndMayDefer) {
    RcuDomain domain;
    std::vector<int> order;
    domain.defer([&] {
        order.push_back(1);
        domain.defer([&] { order.push_back(3); });
    });
    domain.defer([&] { order.push_back(2); });
    EXPECT_EQ(domain.poll(), 2U);
    EXPECT_EQ(order, (std::vector{1, 2}));
    EXPECT_EQ(domain.poll(), 1U);
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(Rcu, TokensGrowAndElapseTogether) {
    RcuDomain domain;
    RcuReader reader(domain, WorkerId{0});
    const auto first = domain.start();
    const auto second = domain.start();
    EXPECT_LT(first, second);
    EXPECT_FALSE(domain.elapsed(first));
    reader.quiescent();
    EXPECT_TRUE(domain.elapsed(second));
    EXPECT_TRUE(domain.elapsed(first));
    EXPECT_FALSE(domain.elapsed(domain.start()));
}

TEST(Rcu, TheDestructorRunsWhatIsPending) {
    bool freed = false;
    {
        RcuDomain domain;
        domain.defer([&] { freed = true; });
    }
    EXPECT_TRUE(freed);
}

// Freed objects are poisoned rather than given back, so a read too late is seen without ASan.
TEST(Rcu, AReadingThreadNeverSeesAFreedObject) {
    struct Object {
        std::atomic<int> alive{1};
    };
    constexpr int kRounds = 20000;
    RcuDomain domain;
    std::vector<Object> objects(kRounds + 1);
    std::atomic<Object*> published{objects.data()};
    std::atomic<bool> running{false};
    std::atomic<bool> done{false};
    std::atomic<int> dead_reads{0};
    std::thread worker([&] {
        RcuReader reader(domain, WorkerId{1});
        running = true;
        for (int round = 0; !done; ++round) {
            const Object* object = published.load(std::memory_order_acquire);
            for (int i = 0; i < 8; ++i) {
                dead_reads += object->alive.load(std::memory_order_relaxed) == 0;
            }
            if (round % 64 == 0) {
                reader.offline();
                std::this_thread::yield();
                reader.online();
            } else {
                reader.quiescent();
            }
        }
    });
    while (!running) {
        std::this_thread::yield();
    }
    for (int i = 0; i < kRounds; ++i) {
        Object* old = published.exchange(&objects[static_cast<std::size_t>(i) + 1]);
        domain.defer([old] { old->alive = 0; });
        domain.poll();
    }
    domain.drain_blocking();
    EXPECT_EQ(domain.pending(), 0U);
    done = true;
    worker.join();
    EXPECT_EQ(dead_reads, 0);
    EXPECT_EQ(objects[kRounds - 1].alive, 0) << "everything replaced was freed";
    EXPECT_EQ(objects[kRounds].alive, 1);
}

}  // namespace
}  // namespace sluice::dpdk
