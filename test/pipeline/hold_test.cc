// SPDX-License-Identifier: BSD-3-Clause
// Packets that wait for a neighbour, and what the control thread is told.
#include "pipeline/hold.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/drop_reason.h"
#include "fib/neighbor_map.h"
#include "net/wire.h"
#include "pipeline/messages.h"
#include "pipeline/stages.h"
#include "support/frame.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {

namespace {

using fib::NeighborKeyWords;
using pipeline::HoldTable;
using pipeline::WorkerCommand;
using pipeline::WorkerEvent;
constexpr NetdevId kP0 = StageBench::kP0;
constexpr NetdevId kP1 = StageBench::kP1;

Packet from_h0() {
    return Packet().eth();
}
Bytes to_77(std::uint16_t id) {
    return from_h0().ipv4({.dst = "10.0.1.77", .id = id}).udp().bytes();
}
const Mac kMac77 = "02:bb:00:00:00:77";

class Hold : public StageRows {
public:
    NeighborKeyWords key77() const { return NeighborKeyWords::of(kP1, V4("10.0.1.77")); }
    void answer(WorkerCommand::Kind kind, const NeighborKeyWords& key, unsigned number = 0) {
        pipeline::release_held(worker(number).context, {.kind = kind, .key = key});
        worker(number).context.transmit.flush();
    }
    std::vector<std::uint16_t> sent_ids() {
        std::vector<std::uint16_t> ids;
        for (const Sent& sent : take_sent()) {
            ids.push_back(parse_frame(sent.bytes).ipv4->id.host());
        }
        return ids;
    }
};

TEST_F(Hold, Check_133_first_packets_are_delivered_once_it_resolves) {
    for (std::uint16_t id = 1; id <= 3; ++id) {
        receive(kP0, std::vector<Bytes>{to_77(id)});
    }
    EXPECT_EQ(counters(kP0).held, 3U);
    const auto told = events();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].kind, WorkerEvent::Kind::kResolve);
    EXPECT_EQ(told[0].key, key77());
    EXPECT_EQ(told[0].key.address(), net::IpAddr(V4("10.0.1.77")));
    EXPECT_EQ(told[0].key.netdev(), kP1);

    add_neighbor(kP1, V4("10.0.1.77"));
    resolve(kP1, V4("10.0.1.77"), kMac77);
    answer(WorkerCommand::Kind::kReady, key77());
    const auto sent = take_sent();
    ASSERT_EQ(sent.size(), 3U);
    for (std::uint16_t i = 0; i < 3; ++i) {
        EXPECT_EQ(
            difference(
                Packet()
                    .eth({.dst = kMac77, .src = kP1Mac})
                    .ipv4({.dst = "10.0.1.77", .ttl = 63, .id = static_cast<std::uint16_t>(i + 1)})
                    .udp()
                    .bytes(),
                sent[i].bytes),
            "");
    }
    EXPECT_EQ(counters(kP0).held, 0U);
    EXPECT_EQ(counters(kP0).forwarded, 3U);
}

TEST_F(Hold, Check_133_many_packets_one_request_newest_kept) {
    std::vector<Bytes> burst;
    for (std::uint16_t id = 1; id <= 200; ++id) {
        burst.push_back(to_77(id));
    }
    receive(kP0, burst);
    EXPECT_EQ(events().size(), 1U);
    EXPECT_EQ(counters(kP0).held, HoldTable::kPacketsPerNeighbor);
    EXPECT_EQ(drops(kP0, DropReason::kHoldQueueFull), 200 - HoldTable::kPacketsPerNeighbor);
    add_neighbor(kP1, V4("10.0.1.77"));
    resolve(kP1, V4("10.0.1.77"), kMac77);
    answer(WorkerCommand::Kind::kReady, key77());
    EXPECT_EQ(sent_ids(), (std::vector<std::uint16_t>{193, 194, 195, 196, 197, 198, 199, 200}));
}

// Case D47: the route was there first; the gateway's dst waits, and its key names the gateway.
TEST_F(Hold, Case_D47_unresolved_gateway) {
    unresolve(kP1, V4("10.0.1.2"));
    receive(kP0,
            std::vector<Bytes>{from_h0().ipv4().udp().bytes(),
                               from_h0().ipv4({.dst = "10.0.1.2"}).udp().bytes()});
    const auto told = events();
    ASSERT_EQ(told.size(), 1U) << "one neighbour, by route and by host";
    EXPECT_EQ(told[0].key.address(), net::IpAddr(V4("10.0.1.2")));
    resolve(kP1, V4("10.0.1.2"), kH1Mac);
    answer(WorkerCommand::Kind::kReady, told[0].key);
    EXPECT_EQ(take_sent().size(), 2U);
}

TEST_F(Hold, Check_134_neighbours_that_differ_in_the_low_bits) {
    std::vector<Bytes> burst;
    for (unsigned i = 0; i < 1000; ++i) {
        burst.push_back(from_h0()
                            .ipv6({.dst = V6(fmt::format("fd00:1::{:x}", 0x100 + i).c_str())})
                            .udp()
                            .bytes());
        if (burst.size() == 100) {
            receive(kP0, burst);
            burst.clear();
        }
    }
    const auto told = events();
    EXPECT_EQ(told.size(), 1000U);
    EXPECT_EQ(counters(kP0).held, 1000U);
}

TEST_F(Hold, failed_gets_host_unreachable) {
    const Packet in4 = from_h0().ipv4({.dst = "10.0.1.77"}).udp().payload(10);
    const Packet in6 = from_h0().ipv6({.dst = "fd00:1::77"}).udp().payload(10);
    receive(kP0, std::vector<Bytes>{in4.bytes(), in6.bytes()});
    worker().context.ipv4_id = 1;
    answer(WorkerCommand::Kind::kFailed, key77());
    auto sent = take_sent();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(
        difference(error4(in4, net::icmp::kUnreachable, net::icmp::kHost).bytes(), sent[0].bytes),
        "");
    answer(WorkerCommand::Kind::kFailed, NeighborKeyWords::of(kP1, V6("fd00:1::77")));
    sent = take_sent();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(difference(error6(in6, net::icmp6::kUnreachable, net::icmp6::kAddress).bytes(),
                         sent[0].bytes),
              "");
    EXPECT_EQ(drops(kP0, DropReason::kNeighborFailed), 2U);
}

TEST_F(Hold, other_answers_drop_in_silence) {
    struct Row {
        WorkerCommand::Kind kind;
        DropReason reason;
    };
    for (const Row& row : {Row{WorkerCommand::Kind::kTableFull, DropReason::kNeighborTableFull},
                           Row{WorkerCommand::Kind::kGone, DropReason::kNetdevGone}}) {
        receive(kP0, std::vector<Bytes>{to_77(1), to_77(2)});
        answer(row.kind, key77());
        EXPECT_EQ(drops(kP0, row.reason), 2U);
        EXPECT_EQ(take_sent().size(), 0U);
    }
    // The next packet asks again, each time.
    EXPECT_EQ(events().size(), 2U);
}

TEST_F(Hold, answer_for_nobody) {
    answer(WorkerCommand::Kind::kReady, key77());
    answer(WorkerCommand::Kind::kFailed, key77());
    EXPECT_EQ(take_sent().size(), 0U);
}

// Ready, but the packets' way has changed meanwhile: it is looked up again.
TEST_F(Hold, route_changed_while_held) {
    receive(kP0, std::vector<Bytes>{to_77(1)});
    add_route("10.0.1.77/32", {.via = "10.0.1.2", .dev = kP1});
    answer(WorkerCommand::Kind::kReady, key77());
    const auto sent = take_sent();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(parse_frame(sent[0].bytes).eth->destination, kH1Mac);
}

TEST_F(Hold, still_unresolved_when_ready_asks_again) {
    receive(kP0, std::vector<Bytes>{to_77(1)});
    EXPECT_EQ(events().size(), 1U);
    answer(WorkerCommand::Kind::kReady, key77());
    EXPECT_EQ(events().size(), 1U);
    EXPECT_EQ(counters(kP0).held, 1U);
}

TEST_F(Hold, ingress_gone_while_held) {
    for (const auto kind :
         {WorkerCommand::Kind::kReady, WorkerCommand::Kind::kFailed, WorkerCommand::Kind::kGone}) {
        receive(kP0,
                std::vector<Bytes>{to_77(1), from_h0().ipv6({.dst = "fd00:1::77"}).udp().bytes()});
        unpublish(kP0);
        answer(kind, key77());
        answer(kind, NeighborKeyWords::of(kP1, V6("fd00:1::77")));
        publish(kP0);
    }
    EXPECT_EQ(drops(kP0, DropReason::kNetdevGone), 4U);
    EXPECT_EQ(drops(kP0, DropReason::kNeighborFailed), 2U);
    EXPECT_EQ(take_sent().size(), 0U);
}

TEST_F(Hold, own_answers_wait_too) {
    unresolve(kP0, V4("10.0.0.2"));
    unresolve(kP0, V6("fd00::2"));
    receive(kP0,
            std::vector<Bytes>{from_h0().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kEcho).bytes(),
                               from_h0().ipv6({.dst = "fd00::1"}).icmp6(net::icmp6::kEcho).bytes(),
                               from_h0()
                                   .ipv6({.src = "fe80::99", .dst = "fd00::1"})
                                   .icmp6(net::icmp6::kEcho)
                                   .bytes()});
    EXPECT_EQ(counters(kP0).delivered, 3U);
    EXPECT_EQ(counters(kLo).held, 3U);
    const auto told = events();
    ASSERT_EQ(told.size(), 3U);
    EXPECT_EQ(told[2].key, NeighborKeyWords::of(kP0, V6("fe80::99")));
    resolve(kP0, V4("10.0.0.2"), kH0Mac);
    resolve(kP0, V6("fd00::2"), kH0Mac);
    add_neighbor(kP0, V6("fe80::99"));
    resolve(kP0, V6("fe80::99"), kH0Mac);
    for (const auto& event : told) {
        answer(WorkerCommand::Kind::kReady, event.key);
    }
    EXPECT_EQ(take_sent().size(), 3U);
    EXPECT_EQ(counters(kLo).forwarded, 3U);
    // Nobody is told of what failed for our own.
    unresolve(kP0, V4("10.0.0.2"));
    receive(kP0,
            std::vector<Bytes>{from_h0().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kEcho).bytes()});
    answer(WorkerCommand::Kind::kFailed, told[0].key);
    EXPECT_EQ(drops(kLo, DropReason::kNeighborFailed), 1U);
    EXPECT_EQ(take_sent().size(), 0U);
}

TEST_F(Hold, fragments_wait_as_the_whole) {
    add_route("198.51.100.0/24", {.via = "10.0.1.77", .dev = kP1, .mtu = 576});
    receive(
        kP0,
        std::vector<Bytes>{from_h0().ipv4({.dst = "198.51.100.1"}).udp().payload(1000).bytes()});
    EXPECT_EQ(counters(kP0).held, 1U);
    resolve(kP1, V4("10.0.1.77"), kMac77);
    answer(WorkerCommand::Kind::kReady, key77());
    EXPECT_EQ(take_sent().size(), 2U);
    EXPECT_EQ(counters(kP0).forwarded, 1U);
}

TEST_F(Hold, overdue_ones_are_dropped) {
    receive(kP0, std::vector<Bytes>{to_77(1)});
    advance_ns(9'000'000'000);
    pipeline::drop_overdue(worker().context);
    EXPECT_EQ(counters(kP0).held, 1U);
    receive(kP0, std::vector<Bytes>{from_h0().ipv4({.dst = "10.0.1.78"}).udp().bytes()});
    advance_ns(1'000'000'001);
    pipeline::drop_overdue(worker().context);
    EXPECT_EQ(counters(kP0).held, 1U);
    EXPECT_EQ(drops(kP0, DropReason::kNeighborFailed), 1U);
    advance_ns(9'000'000'000);
    pipeline::drop_overdue(worker().context);
    EXPECT_EQ(counters(kP0).held, 0U);
}

TEST_F(Hold, control_thread_too_far_behind_to_be_asked) {
    auto& queue = worker().events;
    while (queue.push({})) {
    }
    receive(kP0, std::vector<Bytes>{to_77(1)});
    EXPECT_EQ(drops(kP0, DropReason::kHoldTableFull), 1U);
    EXPECT_EQ(worker().context.holds.neighbors(), 0U);
    WorkerEvent event;
    queue.pop(event);
    receive(kP0, std::vector<Bytes>{to_77(2)});
    EXPECT_EQ(counters(kP0).held, 1U);
    events();
}

TEST_F(Hold, Case_D54_flood_to_unresolvable_hosts_leaves_the_good_flow_alone) {
    const Bytes good = from_h0().ipv4().udp().bytes();
    std::vector<Bytes> unresolvable;
    for (unsigned i = 100; i < 200; ++i) {
        unresolvable.push_back(
            from_h0().ipv4({.dst = V4(fmt::format("10.0.1.{}", i).c_str())}).udp().bytes());
    }
    std::size_t requests = 0;
    for (unsigned round = 0; round < 50; ++round) {
        std::vector<Bytes> burst = unresolvable;
        burst.push_back(good);
        receive(kP0, burst);
        EXPECT_EQ(take_sent().size(), 1U);
        requests += events().size();
    }
    EXPECT_EQ(requests, 100U);
    EXPECT_EQ(counters(kP0).held, 100 * HoldTable::kPacketsPerNeighbor);
    EXPECT_LE(mbufs_in_use(), 100 * HoldTable::kPacketsPerNeighbor);
}

// Several workers of one router: each holds its own, a MAC change reaches all with one store.
TEST_F(Hold, Case_D55_all_workers_use_the_new_mac) {
    const Bytes frame = from_h0().ipv4().udp().bytes();
    for (unsigned number = 0; number < 4; ++number) {
        receive(kP0, std::vector<Bytes>{frame}, number);
    }
    EXPECT_EQ(take_sent().size(), 4U);
    resolve(kP1, V4("10.0.1.2"), "02:bb:00:00:00:99");
    for (unsigned number = 0; number < 4; ++number) {
        receive(kP0, std::vector<Bytes>(16, frame), number);
    }
    const auto sent = take_sent();
    ASSERT_EQ(sent.size(), 64U);
    for (const Sent& s : sent) {
        EXPECT_EQ(parse_frame(s.bytes).eth->destination, Mac("02:bb:00:00:00:99"));
    }
}

TEST_F(Hold, Case_D60_each_worker_holds_and_is_answered) {
    for (unsigned number = 0; number < 4; ++number) {
        receive(kP0, std::vector<Bytes>{to_77(static_cast<std::uint16_t>(number + 1))}, number);
    }
    for (unsigned number = 0; number < 4; ++number) {
        EXPECT_EQ(events(number).size(), 1U);
    }
    add_neighbor(kP1, V4("10.0.1.77"));
    resolve(kP1, V4("10.0.1.77"), kMac77);
    for (unsigned number = 0; number < 4; ++number) {
        answer(WorkerCommand::Kind::kReady, key77(), number);
    }
    EXPECT_EQ(sent_ids(), (std::vector<std::uint16_t>{1, 2, 3, 4}));
}

TEST_F(Hold, Case_D56_one_gateway_address_on_two_links) {
    const NetdevId p2 =
        add_netdev({.port = 2, .mac = "02:00:00:00:00:03", .addresses = {"fd00:2::1/64"}});
    for (const auto& [dev, mac] :
         {std::pair{kP1, "02:bb:00:00:00:01"}, {p2, "02:cc:00:00:00:01"}}) {
        add_neighbor(dev, V6("fe80::1"));
        resolve(dev, V6("fe80::1"), mac);
    }
    add_route("2001:db8:a::/48", {.via = "fe80::1", .dev = kP1});
    add_route("2001:db8:b::/48", {.via = "fe80::1", .dev = p2});
    receive(kP0,
            std::vector<Bytes>{from_h0().ipv6({.dst = "2001:db8:a::1"}).udp().bytes(),
                               from_h0().ipv6({.dst = "2001:db8:b::1"}).udp().bytes()});
    const auto sent = take_sent();
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(parse_frame(sent[0].bytes).eth->destination, Mac("02:bb:00:00:00:01"));
    EXPECT_EQ(parse_frame(sent[1].bytes).eth->destination, Mac("02:cc:00:00:00:01"));
}

TEST_F(Hold, use_is_reported_once_and_sent_all_the_same) {
    report_use(kP1, V4("10.0.1.2"));
    report_use(kP1, V6("fd00:1::2"));
    const std::vector<Bytes> burst{from_h0().ipv4().udp().bytes(),
                                   from_h0().ipv4({.dst = "10.0.1.2"}).udp().bytes(),
                                   from_h0().ipv6().udp().bytes()};
    receive(kP0, burst);
    receive(kP0, burst);
    EXPECT_EQ(take_sent().size(), 6U);
    const auto told = events();
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[0].kind, WorkerEvent::Kind::kUsed);
    EXPECT_EQ(told[0].key, NeighborKeyWords::of(kP1, V4("10.0.1.2")));
    EXPECT_EQ(told[1].key, NeighborKeyWords::of(kP1, V6("fd00:1::2")));
    worker().context.reported = {};
    receive(kP0, burst);
    EXPECT_EQ(events().size(), 2U);
    EXPECT_EQ(take_sent().size(), 3U);
}

TEST_F(Hold, stopping_drops_what_is_held) {
    receive(kP0, std::vector<Bytes>{to_77(1), to_77(2)});
    pipeline::drop_all_held(worker().context);
    EXPECT_EQ(drops(kP0, DropReason::kStopped), 2U);
    EXPECT_EQ(counters(kP0).held, 0U);
}

TEST_F(Hold, device_full) {
    device_room = 2;
    receive(kP0, std::vector<Bytes>(5, from_h0().ipv4().udp().bytes()));
    EXPECT_EQ(counters(kP0).forwarded, 2U);
    EXPECT_EQ(drops(kP0, DropReason::kTxFull), 3U);
    EXPECT_EQ(counters(kP1).tx_packets, 2U);
}

TEST_F(Hold, Check_161_many_held_packets_leave_room_for_the_answer) {
    HoldTable& table = worker().context.holds;
    for (unsigned i = 0; i < 700; ++i) {
        receive(kP0,
                std::vector<Bytes>{
                    from_h0()
                        .ipv6({.dst = V6(fmt::format("fd00:1::{:x}", 0x100 + i).c_str())})
                        .udp()
                        .bytes()});
    }
    EXPECT_EQ(table.neighbors(), 700U);
    // The answer still gets in, and the good flow on.
    receive(kP0,
            std::vector<Bytes>{from_h0().arp({.operation = 2}).bytes(),
                               from_h0().ipv4().udp().bytes()});
    EXPECT_EQ(worker().punted.count(), 1U);
    EXPECT_EQ(take_sent().size(), 1U);
}

}  // namespace

}  // namespace sluice::test
