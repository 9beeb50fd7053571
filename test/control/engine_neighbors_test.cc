// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine_fixture.h"
#include "support/frame.h"

namespace sluice::control::test {
namespace {

using config::LearnUnsolicited;
using pipeline::WorkerCommand;
using sluice::test::Advertisement;
using sluice::test::Arp;
using sluice::test::Packet;
using sluice::test::Solicitation;
using Kind = WorkerCommand::Kind;

class EngineNeighbors : public EngineTest {
protected:
    explicit EngineNeighbors(std::size_t workers = 1) : EngineTest(workers) { add_bench(); }

    std::vector<Kind> told(std::size_t worker = 0) {
        std::vector<Kind> kinds;
        for (const auto& command : plane.commands[worker]) {
            kinds.push_back(command.kind);
        }
        plane.commands[worker].clear();
        return kinds;
    }
    void change(const std::string& dev, auto fn) {
        config::NetdevSettings settings = netdev(dev).settings;
        fn(settings);
        expect_ok(engine->change_netdev(ns(), dev, settings));
        plane.sent.clear();
    }
    static Bytes arp(Arp layer, sluice::test::Eth eth = {}) {
        eth.src = eth.src == sluice::test::Eth{}.src ? layer.sender_mac : eth.src;
        return Packet().eth(eth).arp(layer).pad_to(60).bytes();
    }
    static Bytes arp_reply(std::string_view sender, const net::MacAddr& from) {
        return arp({.operation = net::ArpHeader::kReply,
                    .sender_mac = from,
                    .sender_ip = ip(sender).v4()});
    }
    void tick(std::chrono::milliseconds step, int times) {
        for (int i = 0; i < times; ++i) {
            now += step;
            engine->neighbors().table().tick(now);
        }
    }
};

// --- resolving ---------------------------------------------------------------------------------

TEST_F(EngineNeighbors, Check_133_OneBroadcastRequestThenEveryDstGetsTheMac) {
    add(via("192.0.2.0/24", "10.0.1.2"));
    for (int i = 0; i < 257; ++i) {
        resolve("p1", "10.0.1.2");
    }
    ASSERT_EQ(plane.sent.size(), 1U);
    const auto frame = sluice::test::parse_frame(plane.sent[0].second);
    ASSERT_TRUE(frame.arp);
    EXPECT_EQ(frame.eth->destination, net::kBroadcastMac);
    EXPECT_EQ(frame.arp->sender_ip, ip("10.0.1.1").v4());
    EXPECT_EQ(frame.arp->target_ip, ip("10.0.1.2").v4());
    EXPECT_FALSE(resolved(dst("192.0.2.9")));

    EXPECT_EQ(punt("p1",
                   arp({.operation = net::ArpHeader::kReply,
                        .sender_mac = kGatewayMac,
                        .sender_ip = "10.0.1.2",
                        .target_ip = "10.0.1.1"})),
              DropReason::kNone);
    EXPECT_TRUE(resolved(dst("192.0.2.9")));
    EXPECT_EQ(mac_in(dst("192.0.2.9"), 0), kGatewayMac);
    EXPECT_EQ(mac_in(dst("192.0.2.9"), 6), netdev("p1").mac);
    ASSERT_NE(host("p1", "10.0.1.2"), nullptr);
    EXPECT_TRUE(resolved(*host("p1", "10.0.1.2")));
    EXPECT_EQ(told(), std::vector{Kind::kReady});
}

TEST_F(EngineNeighbors, Case_47_RouteFirstOrArpFirst) {
    // ARP first: a known gateway is good for the route at once.
    EXPECT_EQ(
        punt("p1",
             arp({.sender_mac = kGatewayMac, .sender_ip = "10.0.1.2", .target_ip = "10.0.1.1"})),
        DropReason::kNone);
    add(via("192.0.2.0/24", "10.0.1.2"));
    EXPECT_TRUE(resolved(dst("192.0.2.9")));
    EXPECT_TRUE((dst("192.0.2.9").state.load() & fib::Dst::kReportUse) != 0) << "it is stale";
    EXPECT_EQ(engine->neighbors().table().size(), 1U);
    // Route first.
    add(via("2001:db8:2::/48", "fd00:1::2"));
    EXPECT_FALSE(resolved(dst("2001:db8:2::9")));
    EXPECT_EQ(punt("p1",
                   Packet()
                       .eth({.src = kGatewayMac})
                       .ipv6({.src = "fd00:1::2", .dst = "fd00:1::1", .hop_limit = 255})
                       .ndp_ns({.target = "fd00:1::1", .source_link = kGatewayMac})
                       .bytes()),
              DropReason::kNone);
    EXPECT_TRUE(resolved(dst("2001:db8:2::9")));
}

TEST_F(EngineNeighbors, Case_48_NoAnswerFailsTheNeighborAndLeavesTheRoutes) {
    add(via("192.0.2.0/24", "10.0.1.2"));
    resolve("p1", "10.0.1.2");
    tick(std::chrono::milliseconds(100), 50);
    EXPECT_EQ(plane.sent.size(), 3U);
    EXPECT_EQ(told(), std::vector{Kind::kFailed});
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.1.2 dev p1");
    resolve("p1", "10.0.1.2");
    punt("p1",
         arp({.operation = net::ArpHeader::kReply,
              .sender_mac = kGatewayMac,
              .sender_ip = "10.0.1.2",
              .target_ip = "10.0.1.1"}));
    EXPECT_TRUE(resolved(dst("192.0.2.9")));
}

TEST_F(EngineNeighbors, WhomNobodyMayAskFor) {
    struct Case {
        std::string name;
        std::string dev;
        std::string address;
        Kind want;
    };
    const std::vector<Case> cases{
        {"own address", "p0", "10.0.0.1", Kind::kFailed},
        {"own link-local", "p0", "fe80::ff:fe00:1", Kind::kFailed},
        {"in no subnet", "p0", "203.0.113.9", Kind::kFailed},
        {"in another netdev's subnet", "p0", "10.0.1.9", Kind::kFailed},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        resolve(c.dev, c.address);
        EXPECT_EQ(told(), std::vector{c.want});
    }
    EXPECT_TRUE(plane.sent.empty());
    const auto key = fib::NeighborKeyWords::of(netdev("p0").id, ip("10.0.0.9"));
    set_up("p0", false);
    static_cast<void>(told());
    engine->neighbors().handle(0, {.kind = pipeline::WorkerEvent::Kind::kResolve, .key = key}, now);
    EXPECT_EQ(told(), std::vector{Kind::kGone});
    resolve("p1", "fe80::9");  // a link-local one is on every link
    EXPECT_EQ(plane.sent.size(), 1U);
}

TEST_F(EngineNeighbors, Check_52_RouteWithANetdevOnlyAsksForTheHost) {
    RouteRequest request;
    request.prefix = prefix("172.16.0.5/32");
    request.dev = "p1";
    add(request);
    EXPECT_EQ(dst("172.16.0.5").type, fib::DstType::kConnected);
    resolve("p1", "172.16.0.5");
    ASSERT_EQ(plane.sent.size(), 1U);
    EXPECT_EQ(punt("p1",
                   arp({.operation = net::ArpHeader::kReply,
                        .sender_mac = kHostMac,
                        .sender_ip = "172.16.0.5",
                        .target_ip = "10.0.1.1"})),
              DropReason::kNone);
    ASSERT_NE(host("p1", "172.16.0.5"), nullptr);
    EXPECT_TRUE(resolved(*host("p1", "172.16.0.5")));
}

TEST_F(EngineNeighbors, Check_138_ArpSourceMatchesTheTargetsSubnet) {
    expect_ok(engine->add_address(ns(), "p0", interface("10.7.0.1/24")));
    plane.sent.clear();
    resolve("p0", "10.7.0.9");
    EXPECT_EQ(sluice::test::parse_frame(plane.sent.back().second).arp->sender_ip,
              ip("10.7.0.1").v4());
    expect_ok(engine->delete_address(ns(), "p0", interface("10.0.0.1/24")));
    resolve("p0", "10.7.0.8");
    EXPECT_EQ(sluice::test::parse_frame(plane.sent.back().second).arp->sender_ip,
              ip("10.7.0.1").v4());
}

TEST_F(EngineNeighbors, Check_136_StaticEntryTakesOverAndOutlivesAFlap) {
    resolve("p0", "10.0.0.2");
    punt("p0", arp_reply("10.0.0.2", kHostMac));
    resolve("p0", "10.0.0.3");
    punt("p0", arp_reply("10.0.0.3", kGatewayMac));
    expect_ok(engine->add_neighbor(ns(), "p0", ip("10.0.0.2"), mac("02:bb:00:00:00:02"), now));
    EXPECT_EQ(mac_in(*host("p0", "10.0.0.2"), 0), mac("02:bb:00:00:00:02"));
    set_up("p0", false);
    set_up("p0", true);
    EXPECT_EQ(neighbor("p0", "10.0.0.2"), "permanent 02:bb:00:00:00:02");
    EXPECT_EQ(neighbor("p0", "10.0.0.3"), "none");
    EXPECT_EQ(host("p0", "10.0.0.3"), nullptr);
}

TEST_F(EngineNeighbors, Case_56_SameLinkLocalOnTwoPortsAreTwoNeighbors) {
    for (const auto& [dev, from] : {std::pair{"p0", kHostMac}, {"p1", kGatewayMac}}) {
        resolve(dev, "fe80::9");
        EXPECT_EQ(punt(dev,
                       Packet()
                           .eth({.src = from})
                           .ipv6({.src = "fe80::9", .dst = view(dev)->link_local, .hop_limit = 255})
                           .ndp_na({.target = "fe80::9",
                                    .solicited = true,
                                    .override = true,
                                    .target_link = from})
                           .bytes()),
                  DropReason::kNone);
    }
    EXPECT_EQ(mac_in(*host("p0", "fe80::9"), 0), kHostMac);
    EXPECT_EQ(mac_in(*host("p1", "fe80::9"), 0), kGatewayMac);
}

class EngineNeighborsTwoWorkers : public EngineNeighbors {
protected:
    EngineNeighborsTwoWorkers() : EngineNeighbors(2) {}
};

TEST_F(EngineNeighborsTwoWorkers, Case_55_EveryWorkerIsToldInOrderEvenWhenItsQueueIsFull) {
    resolve("p0", "10.0.0.2", 1);
    plane.command_room = 0;
    punt("p0", arp_reply("10.0.0.2", kHostMac));
    set_up("p0", false);
    EXPECT_FALSE(engine->neighbors().flush_backlog());
    plane.command_room = 1000;
    EXPECT_TRUE(engine->neighbors().flush_backlog());
    for (std::size_t worker = 0; worker < 2; ++worker) {
        EXPECT_EQ(told(worker), (std::vector{Kind::kReady, Kind::kGone}));
    }
}

TEST_F(EngineNeighbors, Case_48_ARemovedEntryTellsWhatItsPacketsWaitedFor) {
    struct Case {
        std::string name;
        bool answered = false;
        bool takes_down = false;
        std::vector<Kind> want;
    };
    const std::vector<Case> cases{
        {.name = "asked for, no answer yet", .want = {Kind::kFailed}},
        {.name = "known: nothing waits", .answered = true, .want = {}},
        {.name = "asked for, netdev down", .takes_down = true, .want = {Kind::kGone}},
        {.name = "known, netdev down", .answered = true, .takes_down = true, .want = {Kind::kGone}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        resolve("p0", "10.0.0.2");
        if (c.answered) {
            punt("p0", arp_reply("10.0.0.2", kHostMac));
        }
        static_cast<void>(told());
        if (c.takes_down) {
            set_up("p0", false);
            set_up("p0", true);
        } else {
            expect_ok(engine->delete_neighbor(ns(), "p0", ip("10.0.0.2")));
        }
        EXPECT_EQ(told(), c.want);
        EXPECT_EQ(host("p0", "10.0.0.2"), nullptr);
    }
}

TEST_F(EngineNeighbors, Check_137_AnEntryThatGoesDuringAMacChangeLeavesNothingWaiting) {
    resolve("p0", "10.0.0.2");
    punt("p0", arp_reply("10.0.0.2", kHostMac));
    change("p0", [](auto& s) { s.mac = mac("02:00:00:00:00:77"); });
    static_cast<void>(told());
    resolve("p0", "10.0.0.2");
    EXPECT_EQ(told(), std::vector<Kind>{}) << "the old source MAC may be in use";
    expect_ok(engine->delete_neighbor(ns(), "p0", ip("10.0.0.2")));
    EXPECT_EQ(told(), std::vector{Kind::kReady});
    settle();
}

TEST_F(EngineNeighbors, ANeighborWithoutRoomForItsDstIsATableFull) {
    RouteRequest request = via("192.0.2.0/24", "10.0.0.3");
    add(request);
    resolve("p0", "10.0.0.2");
    std::vector<fib::DstIndex> taken;
    for (auto dst = shared.dsts.allocate(); dst; dst = shared.dsts.allocate()) {
        taken.push_back(*dst);
    }
    punt("p0", arp_reply("10.0.0.2", kHostMac));
    EXPECT_EQ(host("p0", "10.0.0.2"), nullptr);
    EXPECT_EQ(told(), std::vector{Kind::kTableFull});
    // What is left of a route over a gateway there needs no dst of the host's.
    resolve("p0", "10.0.0.3");
    punt("p0", arp_reply("10.0.0.3", kGatewayMac));
    EXPECT_TRUE(resolved(dst("192.0.2.9")));
    EXPECT_EQ(told(), std::vector{Kind::kTableFull});
    for (const fib::DstIndex dst : taken) {
        shared.dsts.release(dst);
    }
    settle();
    resolve("p0", "10.0.0.2");
    EXPECT_NE(host("p0", "10.0.0.2"), nullptr);
    EXPECT_EQ(told(), std::vector{Kind::kReady});
}

// --- who is believed, who is answered -----------------------------------------------------------

struct ArpCase {
    std::string name;
    Arp arp;
    DropReason want;
    bool answered = false;
    std::string learned = "none";  // of the sender
    LearnUnsolicited accept = LearnUnsolicited::kNever;
    bool known = false;  // beforehand, with another MAC
    sluice::test::Eth eth = {};
};

TEST_F(EngineNeighbors, Check_105_135_Case_51_ArpPolicy) {
    const std::string stale = "stale 02:aa:00:00:00:02";
    const std::string old = "reachable 02:cc:00:00:00:01";
    const auto gratuitous = [](const char* address) {
        return Arp{.sender_ip = address, .target_ip = address};
    };
    const std::vector<ArpCase> cases{
        {.name = "request for us",
         .arp = {},
         .want = DropReason::kNone,
         .answered = true,
         .learned = stale},
        {.name = "case 51: for another host",
         .arp = {.target_ip = "10.0.0.77"},
         .want = DropReason::kArpNotForUs},
        {.name = "case 51: for our other netdev",
         .arp = {.target_ip = "10.0.1.1"},
         .want = DropReason::kArpNotForUs},
        {.name = "for another host, sender known",
         .arp = {.target_ip = "10.0.0.77"},
         .want = DropReason::kArpNotForUs,
         .learned = stale,
         .known = true},
        {.name = "sender off-subnet",
         .arp = {.sender_ip = "10.9.0.2"},
         .want = DropReason::kArpBadSender},
        {.name = "own address as sender",
         .arp = {.sender_ip = "10.0.0.1"},
         .want = DropReason::kArpBadSender},
        {.name = "Ethernet source is another",
         .arp = {},
         .want = DropReason::kArpBadSender,
         .eth = {.src = "02:dd:00:00:00:01"}},
        {.name = "group MAC as sender",
         .arp = {.sender_mac = "03:aa:00:00:00:02"},
         .want = DropReason::kArpMalformed},
        {.name = "RFC 5227 probe",
         .arp = {.sender_ip = "0.0.0.0"},
         .want = DropReason::kNone,
         .answered = true},
        {.name = "RFC 5227 probe for another",
         .arp = {.sender_ip = "0.0.0.0", .target_ip = "10.0.0.77"},
         .want = DropReason::kArpNotForUs},
        {.name = "check 105: gratuitous, unknown, 0",
         .arp = gratuitous("10.0.0.2"),
         .want = DropReason::kArpUnknownSender},
        {.name = "check 105: gratuitous, unknown, 1",
         .arp = gratuitous("10.0.0.2"),
         .want = DropReason::kNone,
         .learned = stale,
         .accept = LearnUnsolicited::kAlways},
        {.name = "check 105: gratuitous, off-subnet, 1",
         .arp = gratuitous("10.9.0.2"),
         .want = DropReason::kNone,
         .learned = stale,
         .accept = LearnUnsolicited::kAlways},
        {.name = "check 105: gratuitous, unknown, 2",
         .arp = gratuitous("10.0.0.2"),
         .want = DropReason::kNone,
         .learned = stale,
         .accept = LearnUnsolicited::kSameSubnet},
        {.name = "check 105: gratuitous, off-subnet, 2",
         .arp = gratuitous("10.9.0.2"),
         .want = DropReason::kArpBadSender,
         .accept = LearnUnsolicited::kSameSubnet},
        {.name = "check 135: gratuitous, off-subnet, 0",
         .arp = gratuitous("10.9.0.2"),
         .want = DropReason::kArpBadSender},
        {.name = "gratuitous, known",
         .arp = gratuitous("10.0.0.2"),
         .want = DropReason::kNone,
         .learned = stale,
         .known = true},
        {.name = "reply that nobody asked for",
         .arp = {.operation = net::ArpHeader::kReply},
         .want = DropReason::kArpUnknownSender},
        {.name = "reply with a new MAC",
         .arp = {.operation = net::ArpHeader::kReply},
         .want = DropReason::kNone,
         .learned = "reachable 02:aa:00:00:00:02",
         .known = true},
        {.name = "off-subnet sender, known MAC untouched",
         .arp = {.sender_ip = "10.9.0.2"},
         .want = DropReason::kArpBadSender},
    };
    for (const ArpCase& c : cases) {
        SCOPED_TRACE(c.name);
        static_cast<void>(engine->flush_neighbors(ns(), ""));
        change("p0", [&](auto& s) { s.arp_accept = c.accept; });
        const std::string sender = c.arp.sender_ip.to_string();
        if (c.known) {
            resolve("p0", sender);
            ASSERT_EQ(punt("p0", arp_reply(sender, mac("02:cc:00:00:00:01"))), DropReason::kNone);
            ASSERT_EQ(neighbor("p0", sender), old);
            plane.sent.clear();
        }
        EXPECT_EQ(punt("p0", arp(c.arp, c.eth)), c.want) << info(c.want).name;
        EXPECT_EQ(neighbor("p0", sender), c.learned);
        EXPECT_EQ(plane.sent.size(), c.answered ? 1U : 0U);
        if (c.answered && !plane.sent.empty()) {
            const auto reply = sluice::test::parse_frame(plane.sent[0].second);
            EXPECT_EQ(reply.arp->operation.host(), net::ArpHeader::kReply);
            EXPECT_EQ(reply.arp->sender_mac, netdev("p0").mac);
            EXPECT_EQ(reply.arp->sender_ip, c.arp.target_ip);
            EXPECT_EQ(reply.eth->destination, c.arp.sender_mac);
        }
    }
}

// On-link gateways and hosts of a route with a netdev only: in no subnet, but on the link.
TEST_F(EngineNeighbors, Check_75_135_WhoBelongsThoughInNoSubnet) {
    for (const char* text : {"172.16.0.0/24", "2001:db8:5::/64"}) {
        RouteRequest request;
        request.prefix = prefix(text);
        request.dev = "p0";
        add(request);
    }
    for (const auto& [to, gateway] :
         {std::pair{"203.0.113.0/24", "192.0.2.77"}, {"2001:db8:9::/48", "2001:db8:77::1"}}) {
        RouteRequest request = via(to, gateway);
        request.dev = "p0";
        request.on_link = true;
        add(request);
    }
    plane.sent.clear();
    struct Case {
        std::string name;
        std::string dev;
        std::string sender;
        bool belongs = false;
    };
    const std::vector<Case> cases{
        {"on-link gateway", "p0", "192.0.2.77", true},
        {"host of a dev-only route", "p0", "172.16.0.5", true},
        {"check 135: behind the gateway", "p0", "203.0.113.9"},
        {"check 135: gateway, on another netdev", "p1", "192.0.2.77"},
        {"check 135: host, on another netdev", "p1", "172.16.0.5"},
        {"IPv6: on-link gateway", "p0", "2001:db8:77::1", true},
        {"IPv6: host of a dev-only route", "p0", "2001:db8:5::5", true},
        {"check 135, IPv6: behind the gateway", "p0", "2001:db8:9::9"},
        {"check 135, IPv6: gateway, on another netdev", "p1", "2001:db8:77::1"},
        {"check 135, IPv6: host, on another netdev", "p1", "2001:db8:5::5"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const bool p0 = c.dev == "p0";
        const bool v4 = ip(c.sender).is_v4();
        const sluice::test::Mac host_mac = kHostMac;
        const Bytes frame =
            v4 ? arp({.sender_ip = c.sender.c_str(), .target_ip = p0 ? "10.0.0.1" : "10.0.1.1"})
               : Packet()
                     .eth()
                     .ipv6({.src = c.sender.c_str(),
                            .dst = p0 ? "fd00::1" : "fd00:1::1",
                            .hop_limit = 255})
                     .ndp_ns({.target = p0 ? "fd00::1" : "fd00:1::1", .source_link = host_mac})
                     .bytes();
        EXPECT_EQ(punt(c.dev, frame),
                  c.belongs ? DropReason::kNone
                  : v4      ? DropReason::kArpBadSender
                            : DropReason::kNdpBadSender);
        EXPECT_EQ(neighbor(c.dev, c.sender), c.belongs ? "stale 02:aa:00:00:00:02" : "none");
        EXPECT_EQ(plane.sent.size(), c.belongs ? 1U : 0U);
        plane.sent.clear();
    }
}

// 0.0.0.0 is nobody, though 0.0.0.0/0 is on the link.
TEST_F(EngineNeighbors, Check_135_DefaultRouteWithANetdevOnly) {
    RouteRequest request;
    request.prefix = prefix("0.0.0.0/0");
    request.dev = "p0";
    add(request);
    EXPECT_EQ(punt("p0", arp({.operation = net::ArpHeader::kReply, .sender_ip = "0.0.0.0"})),
              DropReason::kArpBadSender);
    EXPECT_EQ(punt("p0", arp({.sender_ip = "0.0.0.0"})), DropReason::kNone);
    EXPECT_EQ(neighbor("p0", "0.0.0.0"), "none");
    EXPECT_EQ(punt("p0", arp({.sender_ip = "198.51.100.7"})), DropReason::kNone);
}

TEST_F(EngineNeighbors, Case_52_AskingOnOneVlanForTheOthersAddress) {
    add_vlan("p0.101", "p0", 101);
    add_vlan("p0.102", "p0", 102);
    expect_ok(engine->add_address(ns(), "p0.101", interface("10.101.0.1/24")));
    expect_ok(engine->add_address(ns(), "p0.102", interface("10.102.0.1/24")));
    plane.sent.clear();
    EXPECT_EQ(punt("p0.101", arp({.sender_ip = "10.101.0.2", .target_ip = "10.102.0.1"})),
              DropReason::kArpNotForUs);
    EXPECT_TRUE(plane.sent.empty());
}

Bytes solicit(sluice::test::Ipv6 ip6, Solicitation message) {
    ip6.hop_limit = ip6.hop_limit == 64 ? 255 : ip6.hop_limit;
    return Packet().eth().ipv6(ip6).ndp_ns(message).bytes();
}

TEST_F(EngineNeighbors, Case_57_59_SolicitationPolicy) {
    struct Case {
        std::string name;
        sluice::test::Ipv6 ip6;
        Solicitation message;
        DropReason want;
        bool answered = false;
        bool learned = false;
    };
    const sluice::test::Mac host_mac = kHostMac;
    const std::vector<Case> cases{
        {.name = "for us",
         .ip6 = {.dst = "ff02::1:ff00:1"},
         .message = {.source_link = host_mac},
         .want = DropReason::kNone,
         .answered = true,
         .learned = true},
        {.name = "case 61: from link-local for our link-local",
         .ip6 = {.src = "fe80::2", .dst = "ff02::1:ff00:1"},
         .message = {.target = "fe80::ff:fe00:1", .source_link = host_mac},
         .want = DropReason::kNone,
         .answered = true,
         .learned = true},
        {.name = "unicast without link option",
         .ip6 = {.dst = "fd00::1"},
         .message = {},
         .want = DropReason::kNone,
         .answered = true},
        {.name = "case 59: DAD of our address",
         .ip6 = {.src = "::", .dst = "ff02::1:ff00:1"},
         .message = {},
         .want = DropReason::kNone,
         .answered = true},
        {.name = "case 57: foreign target",
         .ip6 = {.dst = "ff02::1:ff00:77"},
         .message = {.target = "fd00::77", .source_link = host_mac},
         .want = DropReason::kNdpNotForUs},
        {.name = "our other netdev's",
         .ip6 = {.dst = "ff02::1:ff00:1"},
         .message = {.target = "fd00:1::1", .source_link = host_mac},
         .want = DropReason::kNdpNotForUs},
        {.name = "check 135: off-link source",
         .ip6 = {.src = "2001:db8::5", .dst = "ff02::1:ff00:1"},
         .message = {.source_link = host_mac},
         .want = DropReason::kNdpBadSender},
        {.name = "check 135: own source",
         .ip6 = {.src = "fd00::1", .dst = "ff02::1:ff00:1"},
         .message = {.source_link = host_mac},
         .want = DropReason::kNdpBadSender},
        {.name = "hop limit 254",
         .ip6 = {.dst = "ff02::1:ff00:1", .hop_limit = 254},
         .message = {.source_link = host_mac},
         .want = DropReason::kNdpMalformed},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        static_cast<void>(engine->flush_neighbors(ns(), ""));
        plane.sent.clear();
        EXPECT_EQ(punt("p0", solicit(c.ip6, c.message)), c.want);
        EXPECT_EQ(neighbor("p0", c.ip6.src.to_string()),
                  c.learned ? "stale 02:aa:00:00:00:02" : "none");
        ASSERT_EQ(plane.sent.size(), c.answered ? 1U : 0U);
        if (!c.answered) {
            continue;
        }
        const auto reply = sluice::test::parse_frame(plane.sent[0].second);
        ASSERT_TRUE(reply.icmp);
        EXPECT_EQ(reply.icmp->type, net::icmp6::kNeighborAdvertisement);
        EXPECT_EQ(sluice::test::verify_checksums(plane.sent[0].second), "");
        const bool dad = c.ip6.src.is_unspecified();
        EXPECT_EQ(reply.ipv6->destination, dad ? net::kAllNodes : c.ip6.src);
        EXPECT_EQ(reply.ipv6->source, c.message.target);
        EXPECT_EQ(reply.eth->destination, dad ? net::multicast_mac(net::kAllNodes) : kHostMac);
        // Router, solicited unless to everybody, override.
        EXPECT_EQ(reply.icmp->rest.host() >> 29U, dad ? 0b101U : 0b111U);
    }
}

TEST_F(EngineNeighbors, Check_106_107_AdvertisementPolicy) {
    struct Case {
        std::string name;
        LearnUnsolicited accept;
        bool drop;
        bool forwarding;
        std::string target;
        DropReason want;
        bool created;
    };
    using enum LearnUnsolicited;
    const auto kFine = DropReason::kNone;
    const auto kUnknown = DropReason::kNdpUnknownSender;
    const std::vector<Case> cases{
        {"0", kNever, false, true, "fd00::2", kUnknown, false},
        {"1", kAlways, false, true, "fd00::2", kFine, true},
        {"1, elsewhere", kAlways, false, true, "2001:db8::7", kFine, true},
        {"2", kSameSubnet, false, true, "fd00::2", kFine, true},
        {"2, elsewhere", kSameSubnet, false, true, "2001:db8::7", kUnknown, false},
        {"dropped", kAlways, true, true, "fd00::2", kUnknown, false},
        {"not forwarding", kAlways, false, false, "fd00::2", kUnknown, false},
        {"not forwarding, 0", kNever, false, false, "fd00::2", kUnknown, false},
        {"not forwarding, dropped", kAlways, true, false, "fd00::2", kUnknown, false},
        {"our own address", kAlways, false, true, "fd00::1", DropReason::kNdpBadSender, false},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        static_cast<void>(engine->flush_neighbors(ns(), ""));
        change("p0", [&](auto& s) {
            s.accept_untracked_na = c.accept;
            s.drop_unsolicited_na = c.drop;
            s.forwarding = c.forwarding;
        });
        EXPECT_EQ(
            punt("p0",
                 Packet()
                     .eth({.dst = "33:33:00:00:00:01"})
                     .ipv6({.src = "fe80::2", .dst = "ff02::1", .hop_limit = 255})
                     .ndp_na(
                         {.target = ip(c.target).v6(), .override = true, .target_link = kHostMac})
                     .bytes()),
            c.want);
        EXPECT_EQ(neighbor("p0", c.target), c.created ? "stale 02:aa:00:00:00:02" : "none");
        EXPECT_TRUE(plane.sent.empty());
    }
}

TEST_F(EngineNeighbors, Case_29_MalformedDiscoveryIsDroppedAndCounted) {
    const Bytes good = solicit({.dst = "ff02::1:ff00:1"}, {.source_link = kHostMac});
    for (std::size_t length = 0; length < good.size(); ++length) {
        SCOPED_TRACE(length);
        EXPECT_NE(punt("p0", Bytes(good.begin(), good.begin() + static_cast<long>(length))),
                  DropReason::kNone);
    }
    Bytes zero_option = good;
    zero_option[14 + 40 + 24 + 1] = 0;
    EXPECT_NE(punt("p0", zero_option), DropReason::kNone);
    EXPECT_EQ(engine->neighbors().table().size(), 0U);
}

TEST_F(EngineNeighbors, Case_66_RouterMessagesAreIgnoredForNow) {
    EXPECT_EQ(punt("p0",
                   Packet()
                       .eth()
                       .ipv6({.src = "fe80::2", .dst = "ff02::2", .hop_limit = 255})
                       .icmp6(net::icmp6::kRouterSolicitation)
                       .bytes()),
              DropReason::kNdpIgnored);
}

TEST_F(EngineNeighbors, OwnAddressesAreAnnounced) {
    expect_ok(engine->add_address(ns(), "p0", interface("10.7.0.1/24")));
    ASSERT_EQ(plane.sent.size(), 1U);
    const auto arp_frame = sluice::test::parse_frame(plane.sent[0].second);
    EXPECT_EQ(arp_frame.arp->sender_ip, ip("10.7.0.1").v4());
    EXPECT_EQ(arp_frame.arp->target_ip, ip("10.7.0.1").v4());
    plane.sent.clear();
    set_up("p1", false);
    EXPECT_TRUE(plane.sent.empty());
    set_up("p1", true);
    EXPECT_EQ(plane.sent.size(), 3U);  // IPv4, IPv6, link-local
}

TEST_F(EngineNeighbors, AnAddressThatBecomesOursIsNoNeighborAnyMore) {
    resolve("p0", "10.0.0.2");
    punt("p0", arp_reply("10.0.0.2", kHostMac));
    expect_ok(engine->add_address(ns(), "p0", interface("10.0.0.2/24")));
    EXPECT_EQ(neighbor("p0", "10.0.0.2"), "none");
    EXPECT_EQ(route("10.0.0.2"), "local dev p0");
}

TEST_F(EngineNeighbors, Check_136_AStaticNeighborIsNotLostToAnOwnAddress) {
    expect_ok(engine->add_neighbor(ns(), "p0", ip("10.0.0.2"), kHostMac, now));
    expect_ok(engine->add_neighbor(ns(), "p0", ip("fe80::9"), kHostMac, now));
    const std::string before = dump();
    for (const auto& [dev, address] :
         {std::pair{"p0", "10.0.0.2/24"}, {"p1", "10.0.0.2/32"}, {"p0", "fe80::9/64"}}) {
        SCOPED_TRACE(fmt::format("{} {}", dev, address));
        const auto result = engine->add_address(ns(), dev, interface(address));
        ASSERT_EQ(code(result), "exists");
        EXPECT_NE(result.error().message.find("static neighbor on p0"), std::string::npos)
            << result.error().message;
        EXPECT_EQ(dump(), before);
    }
    expect_ok(engine->add_address(ns(), "p1", interface("fe80::9/64")));  // another link's
    expect_ok(engine->delete_neighbor(ns(), "p0", ip("10.0.0.2")));
    expect_ok(engine->add_address(ns(), "p0", interface("10.0.0.2/24")));
}

TEST_F(EngineNeighbors, Case_67_NoStaticNeighborWhereNobodyCanBe) {
    expect_ok(engine->add_address(ns(), "p0", interface("10.8.0.1/31")));
    for (const char* address : {"10.0.0.255", "10.0.0.0"}) {
        SCOPED_TRACE(address);
        EXPECT_EQ(code(engine->add_neighbor(ns(), "p0", ip(address), kHostMac, now)), "invalid");
        EXPECT_EQ(neighbor("p0", address), "none");
        // A host like any other where the subnet is not.
        expect_ok(engine->add_neighbor(ns(), "p1", ip(address), kHostMac, now));
    }
    expect_ok(engine->add_neighbor(ns(), "p0", ip("10.8.0.0"), kHostMac, now));  // RFC 3021
}

}  // namespace
}  // namespace sluice::control::test
