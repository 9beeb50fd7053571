// SPDX-License-Identifier: BSD-3-Clause
// Worker::run() on a thread of its own, over a port whose transmitted frames come back to it.
#include "pipeline/worker.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <sched.h>

#include "base/drop_reason.h"
#include "dpdk/mbuf.h"
#include "dpdk/pool.h"
#include "dpdk/port.h"
#include "dpdk/rcu.h"
#include "fib/dst.h"
#include "fib/lpm.h"
#include "fib/netdev_view.h"
#include "fib/shared.h"
#include "pipeline/messages.h"
#include "stats/counters.h"
#include "support/packet.h"

namespace sluice::test {

namespace {

using namespace std::chrono_literals;
using pipeline::RxQueueList;

constexpr NetdevId kLo{1}, kP0{2};
const Mac kOurMac = "02:00:00:00:00:01";

/// False after ten seconds.
template <class Condition>
bool eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

class WorkerTest : public testing::Test {
protected:
    void SetUp() override {
        auto made = dpdk::PktPool::create("worker-test", 2048);
        ASSERT_TRUE(made) << made.error().message;
        pool.emplace(std::move(*made));
        std::array<dpdk::PktPool*, 1> pools{&*pool};
        auto opened = dpdk::Port::open({.device = "net_ring0", .mtu = 1500}, pools);
        ASSERT_TRUE(opened) << opened.error().message;
        port.emplace(std::move(*opened));
        ASSERT_TRUE(port->start());

        fib4 = fib::Ipv4Lpm::create({}, rcu).value();
        fib6 = fib::Ipv6Lpm::create({}, rcu).value();
        lo.id = kLo;
        lo.kind = fib::NetdevKind::kLoopback;
        p0.id = kP0;
        p0.loopback = kLo;
        p0.up = true;
        p0.has_ipv4 = true;
        p0.port = port->id().value;
        p0.mac = kOurMac;
        p0.fib4 = fib4.get();
        p0.generations4 = &generations4;
        p0.generations6 = &generations6;
        p0.fib6 = fib6.get();
        p0.local = std::make_shared<const fib::LocalAddresses>();
        shared.publish(kLo, &lo);
        shared.publish(kP0, &p0);
        route = shared.dsts.allocate().value();
        fib::Dst& dst = shared.dsts.writable(route);
        dst.type = fib::DstType::kUnicast;
        dst.out = kP0;
        dst.port = p0.port;
        dst.mtu = 1500;
        dst.set_gateway(V4("10.0.0.9"));
        const Bytes header = Packet().eth({.src = kOurMac, .type = std::uint16_t{0x0800}}).bytes();
        dst.rewrite_bytes = 14;
        std::copy(header.begin(), header.end(), dst.rewrite.begin());
        fib::resolve(dst, Mac("02:bb:00:00:00:09"));
        ASSERT_TRUE(fib4->set(net::Ipv4Prefix::parse("192.0.2.0/24").value(), route));

        auto created = pipeline::Worker::create({.id = WorkerId{0}}, shared, rcu, *pool);
        ASSERT_TRUE(created) << created.error().message;
        worker = std::move(*created);
    }
    void start() {
        thread = std::jthread([this] {
            // The EAL pinned its thread, and this one took after it.
            cpu_set_t all;
            CPU_ZERO(&all);
            for (int cpu = 0; cpu < 64; ++cpu) {
                CPU_SET(cpu, &all);
            }
            sched_setaffinity(0, sizeof all, &all);
            worker->run();
        });
    }
    void stop() {
        worker->stop();
        thread.join();
    }
    void TearDown() override {
        if (thread.joinable()) {
            stop();
        }
        rcu.drain_blocking();
        std::array<rte_mbuf*, 1> m{};
        while (worker->punted().dequeue(m) == 1) {
            rte_pktmbuf_free(m[0]);
        }
        EXPECT_EQ(stats::imbalance(count(kP0)), 0U);
        EXPECT_EQ(stats::imbalance(count(kLo)), 0U);
        worker.reset();
        port.reset();
        EXPECT_EQ(pool->in_use(), 0U);
        fib4.reset();
        fib6.reset();
        rcu.drain_blocking();
    }

    void poll_the_port() {
        worker->publish_queues(std::make_unique<const RxQueueList>(
            RxQueueList{{.port = port->id().value, .netdev = kP0}}));
    }
    /// Sends `count` frames as the control thread does; the port brings them back.
    void inject(const Packet& packet, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            const Bytes bytes = packet.bytes();
            rte_mbuf* m = rte_pktmbuf_alloc(pool->raw());
            ASSERT_NE(m, nullptr);
            std::copy(bytes.begin(), bytes.end(), rte_pktmbuf_mtod(m, std::uint8_t*));
            m->data_len = static_cast<std::uint16_t>(bytes.size());
            m->pkt_len = m->data_len;
            dpdk::meta(*m) = {.ingress = kP0};
            ASSERT_EQ(worker->inject().enqueue({&m, 1}), 1U);
        }
    }
    stats::NetdevCounters count(NetdevId id) const {
        stats::NetdevCounters sum{};
        stats::accumulate(sum, std::as_const(*worker).block().netdev(id));
        return sum;
    }
    std::uint64_t dropped(NetdevId id, DropReason reason) const {
        return count(id).drops[std::to_underlying(reason)];
    }
    std::uint64_t sleeps() const {
        return stats::read(std::as_const(*worker).block().worker().sleeps);
    }

    dpdk::RcuDomain rcu;
    std::optional<dpdk::PktPool> pool;
    std::optional<dpdk::Port> port;
    fib::Shared shared{1024, 1024, 1, rcu};
    std::unique_ptr<fib::Ipv4Lpm> fib4;
    std::unique_ptr<fib::Ipv6Lpm> fib6;
    fib::Generations<net::Ipv4Addr> generations4;
    fib::Generations<net::Ipv6Addr> generations6;
    fib::NetdevView lo, p0;
    fib::DstIndex route = 0;
    std::unique_ptr<pipeline::Worker> worker;
    std::jthread thread;
};

TEST_F(WorkerTest, receives_forwards_and_stops) {
    poll_the_port();
    start();
    // Each comes back to our MAC, is forwarded to another, comes back again and is not for us.
    inject(Packet().eth().ipv4().udp().payload(18), 300);
    EXPECT_TRUE(eventually([&] { return dropped(kP0, DropReason::kEthOtherHost) == 300; }))
        << dropped(kP0, DropReason::kEthOtherHost);
    EXPECT_EQ(count(kP0).rx_packets, 600U);
    EXPECT_EQ(count(kP0).forwarded, 300U);
    EXPECT_EQ(count(kP0).tx_packets, 600U);
    EXPECT_EQ(count(kLo).rx_packets, 300U);
    EXPECT_EQ(count(kLo).forwarded, 300U);
    inject(Packet().eth({.dst = net::kBroadcastMac}).arp(), 1);
    EXPECT_TRUE(eventually([&] { return worker->punted().count() == 1; }));
    stop();
    const auto& counters = std::as_const(*worker).block().worker();
    EXPECT_EQ(counters.packets, 601U);
    EXPECT_GT(counters.rounds, counters.busy_rounds);
    EXPECT_GT(counters.cycles_busy, 0U);
}

TEST_F(WorkerTest, a_netdev_that_is_gone_or_down_sends_nothing) {
    poll_the_port();
    start();
    shared.publish(kP0, nullptr);
    inject(Packet().eth().arp(), 2);
    EXPECT_TRUE(eventually([&] {
        return stats::read(std::as_const(*worker)
                               .block()
                               .netdev(kBlackholeNetdev)
                               .drops[std::to_underlying(DropReason::kNetdevGone)]) == 2;
    }));
    p0.up = false;
    shared.publish(kP0, &p0);
    inject(Packet().eth().arp(), 3);
    EXPECT_TRUE(eventually([&] { return dropped(kLo, DropReason::kNetdevDown) == 3; }));
    stop();
    p0.up = true;
}

TEST_F(WorkerTest, queues_are_swapped_under_it) {
    start();
    inject(Packet().eth().ipv4().udp(), 4);
    EXPECT_TRUE(eventually([&] { return count(kLo).forwarded == 4; })) << "sends without a queue";
    EXPECT_EQ(count(kP0).rx_packets, 0U);
    for (int i = 0; i < 200; ++i) {
        poll_the_port();
        rcu.poll();
        worker->publish_queues(std::make_unique<const RxQueueList>());
    }
    poll_the_port();
    EXPECT_TRUE(eventually([&] { return count(kP0).rx_packets == 8; }));
    EXPECT_TRUE(eventually([&] {
        rcu.poll();
        return rcu.pending() == 0;
    })) << "the old lists are freed while it runs";
}

TEST_F(WorkerTest, held_packets_go_on_with_the_answer) {
    fib::unresolve(shared.dsts.writable(route));
    poll_the_port();
    start();
    inject(Packet().eth().ipv4().udp(), 3);
    pipeline::WorkerEvent event;
    EXPECT_TRUE(eventually([&] { return worker->next_event(event); }));
    EXPECT_EQ(event.kind, pipeline::WorkerEvent::Kind::kResolve);
    EXPECT_EQ(event.key, fib::NeighborKeyWords::of(kP0, V4("10.0.0.9")));
    EXPECT_TRUE(eventually([&] { return count(kP0).held == 3; }));
    fib::resolve(shared.dsts.writable(route), Mac("02:bb:00:00:00:09"));
    EXPECT_TRUE(worker->send({.kind = pipeline::WorkerCommand::Kind::kReady, .key = event.key}));
    EXPECT_TRUE(eventually([&] { return count(kP0).forwarded == 3; }));
    EXPECT_EQ(count(kP0).held, 0U);
}

TEST_F(WorkerTest, what_is_held_is_dropped_when_it_stops) {
    fib::unresolve(shared.dsts.writable(route));
    poll_the_port();
    start();
    inject(Packet().eth().ipv4().udp(), 3);
    EXPECT_TRUE(eventually([&] { return count(kP0).held == 3; }));
    stop();
    EXPECT_EQ(dropped(kP0, DropReason::kStopped), 3U);
}

TEST_F(WorkerTest, sleeps_when_idle_also_one_that_never_worked_and_wakes) {
    poll_the_port();
    start();
    // Not one of the short first sleeps, but those of the full length.
    EXPECT_TRUE(eventually([&] { return sleeps() >= 100; }));
    const auto& counters = std::as_const(*worker).block().worker();
    EXPECT_GE(stats::read(counters.sleep_ns) / stats::read(counters.sleeps),
              pipeline::kIdleSleepMaxUs * 1000U / 2);
    inject(Packet().eth().ipv4().udp(), 1);
    EXPECT_TRUE(eventually([&] { return count(kP0).forwarded == 1; }));
}

TEST_F(WorkerTest, polls_on_when_told_to) {
    shared.idle_sleep = false;
    poll_the_port();
    start();
    const auto& counters = std::as_const(*worker).block().worker();
    EXPECT_TRUE(eventually([&] { return stats::read(counters.rounds) > 20'000; }));
    EXPECT_EQ(sleeps(), 0U);
    shared.idle_sleep = true;
    EXPECT_TRUE(eventually([&] { return sleeps() > 0; }));
}

}  // namespace

}  // namespace sluice::test
