// SPDX-License-Identifier: BSD-3-Clause
// M-03: a port is moved under full traffic, on a real engine and a real packet path in a thread of
// its own; only devices are fake. What leaves by the port after the move has settled is counted.
// The same file is compiled once more with G-04 switched off, to see that it can count.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rte_mbuf.h>

#include "base/check.h"
#include "dpdk/pool.h"
#include "dpdk/ring.h"
#include "engine_fixture.h"
#include "pipeline/burst.h"
#include "pipeline/context.h"
#include "pipeline/messages.h"
#include "pipeline/stage_timer.h"
#include "pipeline/stages.h"
#include "stats/counters.h"

namespace sluice::control::test {
namespace {

using sluice::test::Packet;

enum Way : std::uint8_t { kPlain, kObject, kGroup, kHost, kException, kWays };
constexpr std::array<const char*, kWays> kWayNames{
    "plain route", "next-hop object", "group", "host of the link", "exception"};
constexpr std::size_t kClasses = 2 * kWays;  // IPv4, IPv6
constexpr std::size_t kFlows = 8;            // of each class

/// What the device of p1 was given. Transmitter::Send has no argument of its own.
struct Wire {
    std::atomic<int> port{-1};
    std::atomic<bool> settled{false};
    std::array<std::atomic<std::uint64_t>, kClasses> sent{};
    std::array<std::atomic<std::uint64_t>, kClasses> late{};
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
Wire g_wire;

/// By the destination, see frames().
std::size_t class_of(const std::uint8_t* frame) {
    if (frame[12] == 0x08) {
        return frame[30] == 10 ? std::size_t{kHost} : frame[32];
    }
    return kWays + (frame[38] == 0xfd ? std::size_t{kHost} : frame[43]);
}

std::uint16_t send(std::uint16_t port,
                   std::uint16_t /*queue*/,
                   rte_mbuf** packets,
                   std::uint16_t count) {
    const bool late = g_wire.settled.load(std::memory_order_acquire);
    for (std::uint16_t i = 0; i < count; ++i) {
        if (port == g_wire.port.load(std::memory_order_relaxed)) {
            const std::size_t which = class_of(rte_pktmbuf_mtod(packets[i], const std::uint8_t*));
            ++(late ? g_wire.late : g_wire.sent).at(which);
        }
        rte_pktmbuf_free(packets[i]);
    }
    return count;
}

std::vector<Bytes> frames() {
    std::vector<Bytes> all;
    for (std::uint8_t flow = 0; flow < kFlows; ++flow) {
        for (std::uint8_t way = 0; way < kWays; ++way) {
            const auto port = static_cast<std::uint16_t>(1000 + flow);
            const auto host = flow + 1;
            const std::string to4 =
                way == kHost ? "10.0.1.50" : fmt::format("198.18.{}.{}", way, host);
            const std::string to6 =
                way == kHost ? "fd00:1::50" : fmt::format("2001:db8:{:x}::{:x}", way, host);
            all.push_back(
                Packet().eth().ipv4({.dst = to4.c_str()}).udp({.sport = port}).payload(18).bytes());
            all.push_back(
                Packet().eth().ipv6({.dst = to6.c_str()}).udp({.sport = port}).payload(18).bytes());
        }
    }
    return all;
}

/// Receives on p0 without a pause.
class TrafficThread {
public:
    TrafficThread(fib::Shared& shared, dpdk::RcuDomain& rcu, NetdevId p0)
        : shared_(shared),
          pool_(std::move(*dpdk::PktPool::create("move-test", 1023))),
          punted_(std::move(*dpdk::MbufRing::create("move-test", 64))),
          context_{.shared = shared,
                   .stats = block_,
                   .pool = pool_.raw(),
                   .transmit = pipeline::Transmitter(0, block_, &send),
                   .holds = pipeline::HoldTable(1),
                   .icmp_limit = {},
                   .events = events_,
                   .punted = punted_,
                   .caches = pipeline::Caches(512, 0x2545f4914f6cdd1dU),
                   .redirects = {},
                   .now_ns = 1'000'000'000'000},
          frames_(frames()),
          thread_([this, &rcu, p0] { run(rcu, p0); }) {}
    ~TrafficThread() {
        stop_ = true;
        thread_.join();
    }
    TrafficThread(const TrafficThread&) = delete;
    TrafficThread& operator=(const TrafficThread&) = delete;
    TrafficThread(TrafficThread&&) = delete;
    TrafficThread& operator=(TrafficThread&&) = delete;

    /// What the control thread has to say; its thread.
    void tell(std::vector<pipeline::WorkerCommand>& commands) {
        for (const pipeline::WorkerCommand& command : commands) {
            SLUICE_CHECK(commands_.push(command));
        }
        commands.clear();
    }
    /// Waits until so many more bursts have begun and ended.
    void pass(std::uint64_t bursts) const {
        const std::uint64_t until = bursts_ + bursts + 1;
        while (bursts_ < until) {
            std::this_thread::yield();
        }
    }

private:
    void run(dpdk::RcuDomain& rcu, NetdevId p0) {
        dpdk::RcuReader reader(rcu, WorkerId{0});
        std::array<rte_mbuf*, 32> burst{};
        std::size_t next = 0;
        while (!stop_) {
            for (rte_mbuf*& m : burst) {
                m = rte_pktmbuf_alloc(pool_.raw());
                SLUICE_CHECK(m != nullptr);
                const Bytes& frame = frames_[next++ % frames_.size()];
                std::memcpy(rte_pktmbuf_append(m, static_cast<std::uint16_t>(frame.size())),
                            frame.data(),
                            frame.size());
            }
            context_.now_ns += 1000;
            pipeline::StageTimer timer(block_.worker(), false);
            pipeline::process_burst(context_, storage_, *shared_.netdev(p0), burst, timer);
            pipeline::WorkerCommand command;
            while (commands_.pop(command)) {
                release_held(context_, command);
            }
            context_.transmit.flush();
            reader.quiescent();
            ++bursts_;
        }
        drop_all_held(context_);
    }

    fib::Shared& shared_;
    dpdk::PktPool pool_;
    stats::Block block_;
    pipeline::EventQueue events_;
    pipeline::CommandQueue commands_;
    dpdk::MbufRing punted_;
    pipeline::Context context_;
    pipeline::BurstStorage storage_;
    std::vector<Bytes> frames_;
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> bursts_{0};
    std::thread thread_;
};

class MoveTest : public EngineTest {
protected:
    MoveTest() {
        add_port("p0", "02:00:00:00:00:01");
        add_port("p1", "02:00:00:00:00:02");
        add_port("p2", "02:00:00:00:00:03");
        give_addresses("p0", "10.0.0.1/24", "fd00::1/64");
        give_addresses("p2", "10.0.2.1/24", "fd00:2::1/64");
        add_neighbor("p2", "10.0.2.2");
        add_neighbor("p2", "fd00:2::2");
        expect_ok(engine->add_netns("blue"));
        shared.cache_mode = fib::CacheMode::kOn;
        g_wire.port = view("p1")->port;
        // What stays: the other member of each group.
        add_hop(2, "10.0.2.2", "p2");
        add_hop(12, "fd00:2::2", "p2");
        settle();
    }
    ~MoveTest() override {
        traffic.reset();
        settle();
    }

    void give_addresses(const std::string& dev, std::string_view v4, std::string_view v6) {
        expect_ok(engine->add_address(ns(), dev, interface(v4)));
        expect_ok(engine->add_address(ns(), dev, interface(v6)));
    }
    void add_neighbor(const std::string& dev, std::string_view address) {
        expect_ok(engine->add_neighbor(ns(), dev, ip(address), kGatewayMac, now));
    }
    void add_hop(std::uint32_t id, std::string_view gateway, const std::string& dev) {
        config::NextHop hop;
        hop.via = ip(gateway);
        hop.dev = dev;
        expect_ok(engine->add_nexthop(ns(), id, hop, RouteOwner::kCli, false));
    }
    void put_group(std::uint32_t id, std::uint32_t one, std::uint32_t other) {
        config::NextHop group;
        group.group = {{one, 1}, {other, 1}};
        expect_ok(engine->add_nexthop(ns(), id, group, RouteOwner::kCli, true));
    }
    void replace_route(RouteRequest route) {
        expect_ok(engine->add_route(ns(), route, RouteMode::kReplace));
    }
    static RouteRequest over(std::string_view to, std::uint32_t id) {
        RouteRequest route;
        route.prefix = prefix(to);
        route.nexthop = id;
        return route;
    }

    /// Everything that leads out of p1, in one family.
    void lead_to_p1(const std::string& gateway,
                    const std::string& host,
                    const std::string& format,
                    std::uint32_t first_id) {
        add_neighbor("p1", gateway);
        add_neighbor("p1", host);
        add_hop(first_id + 1, gateway, "p1");
        add_hop(first_id + 3, gateway, "p1");
        put_group(first_id + 4, first_id + 1, first_id + 2);
        const auto to = [&](Way way) { return fmt::format(fmt::runtime(format), +way); };
        replace_route(via(to(kPlain), gateway));
        replace_route(over(to(kObject), first_id + 3));
        replace_route(over(to(kGroup), first_id + 4));
        replace_route(via(to(kException), gateway));
    }
    void learn(std::string_view destination) {
        engine->handle(0,
                       {.kind = pipeline::WorkerEvent::Kind::kPathMtu,
                        .mtu = 1400,
                        .ingress = netdev("p0").id,
                        .key = fib::NeighborKeyWords::of(view("p0")->domain, ip(destination))},
                       now);
    }
    void set_up_p1() {
        g_wire.settled = false;
        give_addresses("p1", "10.0.1.1/24", "fd00:1::1/64");
        lead_to_p1("10.0.1.2", "10.0.1.50", "198.18.{}.0/24", 0);
        lead_to_p1("fd00:1::2", "fd00:1::50", "2001:db8:{:x}::/48", 10);
        learn("198.18.4.1");
        learn("2001:db8:4::1");
    }

    /// Until everything goes out of p1 that can.
    void wait_for_traffic() {
        for (auto& sent : g_wire.sent) {
            sent = 0;
        }
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        const auto all_flow = [] {
            return std::ranges::all_of(g_wire.sent, [](const auto& sent) { return sent > 1; });
        };
        while (!all_flow() && std::chrono::steady_clock::now() < deadline) {
            traffic->tell(plane.commands[0]);
            std::this_thread::yield();
        }
        for (std::size_t i = 0; i < kClasses; ++i) {
            ASSERT_GT(g_wire.sent[i], 0U) << kWayNames[i % kWays] << (i < kWays ? " v4" : " v6");
        }
    }
    void move(Netns& from, Netns& to) {
        const auto ticket = engine->move_link(from, "p1", to);
        ASSERT_TRUE(ticket.has_value()) << ticket.error().message;
        while (!engine->settled(*ticket)) {
            engine->work();
            traffic->tell(plane.commands[0]);
        }
        g_wire.settled.store(true, std::memory_order_release);
    }
    static std::uint64_t late(Way way) { return g_wire.late[way] + g_wire.late[kWays + way]; }

    std::unique_ptr<TrafficThread> traffic;
};

#ifndef SLUICE_TEST_WITHOUT_G04

TEST_F(MoveTest, M_03_NothingOfTheOldNetnsLeavesByThePortOnceAMoveHasSettled) {
    constexpr unsigned kMoves = 1000;
    traffic = std::make_unique<TrafficThread>(shared, rcu, netdev("p0").id);
    for (unsigned i = 0; i < kMoves && !HasFatalFailure(); ++i) {
        set_up_p1();
        wait_for_traffic();
        move(ns(), ns("blue"));
        traffic->pass(20);
        for (std::size_t way = 0; way < kWays; ++way) {
            ASSERT_EQ(late(static_cast<Way>(way)), 0U) << "move " << i << ", " << kWayNames[way];
        }
        move(ns("blue"), ns());
    }
}

#else

TEST_F(MoveTest, G_04_WithoutItPacketsOfGroupsGoOnLeaving) {
    traffic = std::make_unique<TrafficThread>(shared, rcu, netdev("p0").id);
    set_up_p1();
    wait_for_traffic();
    move(ns(), ns("blue"));
    traffic->pass(100);
    EXPECT_EQ(late(kPlain), 0U);
    EXPECT_EQ(late(kHost), 0U);
    EXPECT_GT(late(kObject), 0U);
    EXPECT_GT(late(kGroup), 0U);
    fmt::print(
        "left late: {} over next-hop objects, {} over groups\n", late(kObject), late(kGroup));
    std::fflush(stdout);
    traffic.reset();
    std::_Exit(HasFailure() ? 1 : 0);  // groups that lead nowhere cannot be given back
}

#endif

}  // namespace
}  // namespace sluice::control::test
