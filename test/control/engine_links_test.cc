// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine_fixture.h"

namespace sluice::control::test {
namespace {

class EngineLinks : public EngineTest {
protected:
    EngineLinks() { add_bench(); }
    std::string remove(std::vector<std::string> names) {
        return code(engine->delete_netdevs(ns(), names));
    }
    config::NetdevSettings settings(const std::string& name) { return netdev(name).settings; }
};

TEST_F(EngineLinks, DenseIdsBlackholeFirst) {
    EXPECT_EQ(netdev("blackhole").id, kBlackholeNetdev);
    EXPECT_EQ(netdev("lo").id, NetdevId{1});
    EXPECT_EQ(netdev("p0").id, NetdevId{2});
    EXPECT_EQ(netdev("p1").id, NetdevId{3});
    EXPECT_EQ(view("p0")->loopback, NetdevId{1});
}

TEST_F(EngineLinks, Case_63_LinkLocalFromTheMac) {
    EXPECT_EQ(view("p0")->link_local, ip("fe80::ff:fe00:1").v6());
    expect_ok(engine->delete_address(ns(), "p0", interface("fd00::1/64")));
    EXPECT_FALSE(view("p0")->has_ipv6);  // without an IPv6 address there is no IPv6
    expect_ok(engine->add_address(ns(), "p0", interface("fe80::77/64")));
    EXPECT_EQ(view("p0")->link_local, ip("fe80::77").v6());
    EXPECT_TRUE(view("p0")->local->contains(ip("fe80::77").v6()));
    EXPECT_FALSE(view("p0")->local->contains(ip("fe80::ff:fe00:1").v6()));
}

TEST_F(EngineLinks, Check_145_AnIdIsUsedAgainOnlyAfterItsGracePeriod) {
    const NetdevId old = netdev("p1").id;
    EXPECT_EQ(remove({"p1"}), "fine");
    EXPECT_EQ(shared.netdev(old), nullptr);
    add_port("p2", "02:00:00:00:00:09");
    EXPECT_NE(netdev("p2").id, old);
    now += std::chrono::seconds(15);
    add_port("p3", "02:00:00:00:00:0a");
    EXPECT_NE(netdev("p3").id, old) << "workers may know it";
    settle();
    add_port("p1", "02:00:00:00:00:02");
    EXPECT_EQ(netdev("p1").id, old);
    expect_ok(engine->add_address(ns(), "p1", interface("10.0.1.1/24")));
    add(via("192.0.2.0/24", "10.0.1.2"));
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.1.2 dev p1");
    EXPECT_EQ(dst("192.0.2.9").port, netdev("p1").device->id().value);
}

// A worker books what it held, up to 10 s, off the id where it came in.
TEST_F(EngineLinks, Check_145_149_AnIdWaitsUntilHeldPacketsAreBooked) {
    const NetdevId first = netdev("p1").id;
    const NetdevId second = netdev("p0").id;
    plane.blocks[0].netdev(first).held = 1;
    EXPECT_EQ(remove({"p1"}), "fine");
    now += std::chrono::seconds(2);
    EXPECT_EQ(remove({"p0"}), "fine");
    settle();
    now += std::chrono::milliseconds(12'999);
    add_port("p2", "02:00:00:00:00:09");
    EXPECT_NE(netdev("p2").id, first);
    EXPECT_NE(netdev("p2").id, second);
    plane.blocks[0].netdev(first).held -= 1;
    now += std::chrono::milliseconds(1);
    add_port("p3", "02:00:00:00:00:0a");
    EXPECT_EQ(netdev("p3").id, first) << "free for longest";
    EXPECT_EQ(engine->counters(netdev("p3"), 0).held, 0U);
    add_port("p4", "02:00:00:00:00:0b");
    EXPECT_NE(netdev("p4").id, second) << "2 s younger";
    now += std::chrono::seconds(2);
    add_port("p5", "02:00:00:00:00:0c");
    EXPECT_EQ(netdev("p5").id, second);
}

// A drained id rests while there are new ones, but not for longer.
TEST_F(EngineLinks, DeletedNetdevsCountUntilTheyAreDrained) {
    for (std::uint16_t i = 4; i < kMaxNetdevs; ++i) {
        add_vlan("v", "p0", 7);
        EXPECT_EQ(remove({"v"}), "fine");
    }
    config::Vlan vlan;
    vlan.link = "p0";
    vlan.id = 7;
    EXPECT_EQ(code(engine->add_vlan(ns(), "v", vlan)), "limit");
    EXPECT_EQ(engine->draining().size(), kMaxNetdevs - 4);
    plane.blocks[0].netdev(NetdevId{4}).held = 1;
    settle();
    ASSERT_EQ(engine->draining().size(), 1U);
    EXPECT_EQ(engine->draining().front().held, 1U);
    add_vlan("v", "p0", 7);
    EXPECT_EQ(netdev("v").id, NetdevId{5});
}

TEST_F(EngineLinks, Case_68_DeletedNetdevTakesRoutesAndNeighborsAlong) {
    add(via("192.0.2.0/24", "10.0.1.2"));
    add(via("0.0.0.0/0", "10.0.0.2"));
    expect_ok(engine->add_neighbor(ns(), "p1", ip("10.0.1.9"), kHostMac, now));
    resolve("p1", "10.0.1.2");
    EXPECT_EQ(remove({"p1"}), "fine");
    settle();
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.0.2 dev p0");
    EXPECT_EQ(engine->neighbors().table().size(), 0U);
    EXPECT_EQ(shared.neighbors.size(), 0U);
    EXPECT_FALSE(view("p0")->local->contains(ip("10.0.1.1").v4()));
    EXPECT_EQ(plane.hardware.open.size(), 1U);
    // What workers held for it is let go.
    const auto& last = plane.commands[0].back();
    EXPECT_EQ(last.kind, pipeline::WorkerCommand::Kind::kGone);
}

TEST_F(EngineLinks, Case_75_DownOfOnePortLeavesTheOthersRoutes) {
    add(via("192.0.2.0/24", "10.0.1.2"));
    set_up("p0", false);
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.1.2 dev p1");
}

TEST_F(EngineLinks, Check_63_CarrierLossLeavesRoutes) {
    plane.hardware.link_up = false;
    engine->poll_links();
    EXPECT_FALSE(netdev("p0").carrier());
    EXPECT_EQ(route("10.0.0.77"), "unicast dev p0");
    EXPECT_EQ(route("10.0.0.1"), "local dev p0");
    plane.sent.clear();
    plane.hardware.link_up = true;
    engine->poll_links();
    EXPECT_TRUE(netdev("p0").carrier());
    EXPECT_FALSE(plane.sent.empty()) << "says who it is to the other end";
}

// The worker must have let go of the queues before the device is closed.
TEST_F(EngineLinks, Case_85_HundredTimesDeleteAndCreate) {
    const std::string before = dump(Ids::kHidden);
    for (int i = 0; i < 100; ++i) {
        const std::size_t queues = plane.queues[0].size();
        plane.hardware.log.clear();
        EXPECT_EQ(remove({"p1"}), "fine");
        EXPECT_EQ(plane.queues[0].size(), queues - 1);
        EXPECT_TRUE(plane.hardware.log.empty()) << "closed before the grace period was over";
        add_port("p1", "02:00:00:00:00:02");
        EXPECT_EQ(plane.hardware.log, (std::vector<std::string>{"close dev-p1", "open dev-p1"}));
        settle();
    }
    expect_ok(engine->add_address(ns(), "p1", interface("10.0.1.1/24")));
    expect_ok(engine->add_address(ns(), "p1", interface("fd00:1::1/64")));
    settle();
    EXPECT_EQ(dump(Ids::kHidden), before);
}

TEST_F(EngineLinks, DeleteIsAllOrNone) {
    add_vlan("p0.100", "p0", 100);
    struct Case {
        std::string name;
        std::vector<std::string> names;
        std::string want;
    };
    const std::vector<Case> cases{
        {"unknown", {"p1", "p9"}, "not_found"},
        {"port with a VLAN", {"p1", "p0"}, "busy"},
        {"twice", {"p1", "p1"}, "invalid"},
        {"loopback", {"p1", "lo"}, "invalid"},
        {"blackhole", {"blackhole"}, "invalid"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const std::string before = dump();
        EXPECT_EQ(remove(c.names), c.want);
        EXPECT_EQ(dump(), before);
    }
    EXPECT_EQ(remove({"p0", "p0.100"}), "fine");
}

TEST_F(EngineLinks, Case_100_VlanIsPublishedWithItsParent) {
    add_vlan("p0.100", "p0", 100);
    expect_ok(engine->add_address(ns(), "p0.100", interface("10.0.100.1/24")));
    ASSERT_NE(view("p0")->vlans, nullptr);
    EXPECT_EQ((*view("p0")->vlans)[100], netdev("p0.100").id);
    EXPECT_EQ((*view("p0")->vlans)[99], kBlackholeNetdev);
    EXPECT_EQ(view("p0.100")->mac, view("p0")->mac);
    const fib::Dst& d = dst("10.0.100.255");
    EXPECT_EQ(d.rewrite_bytes, 18);
    EXPECT_EQ(d.rewrite[12] << 8 | d.rewrite[13], net::kEtherTypeVlan);
    EXPECT_EQ(d.rewrite[14] << 8 | d.rewrite[15], 100);
    EXPECT_EQ(d.rewrite[16] << 8 | d.rewrite[17], net::kEtherTypeIpv4);
    set_up("p0", false);
    EXPECT_FALSE(view("p0.100")->up);
    EXPECT_EQ(route("10.0.100.9"), "none");
    set_up("p0", true);
    EXPECT_EQ(route("10.0.100.9"), "unicast dev p0.100");
    EXPECT_EQ(remove({"p0.100"}), "fine");
    EXPECT_EQ(view("p0")->vlans, nullptr);
}

TEST_F(EngineLinks, Case_67_RefusedLinkChangesLeaveEverything) {
    add_vlan("p0.100", "p0", 100);
    config::Vlan twice;
    twice.link = "p0";
    twice.id = 100;
    config::Vlan on_vlan = twice;
    on_vlan.link = "p0.100";
    config::Vlan large = twice;
    large.id = 101;
    large.settings.mtu = 9000;
    config::Port again;
    again.device = "dev-p0";
    config::Port broken;
    broken.device = "broken";
    const auto with = [&](const std::string& name, auto change) {
        config::NetdevSettings to = settings(name);
        change(to);
        return engine->change_netdev(ns(), name, to);
    };
    struct Case {
        std::string name;
        std::function<Result<void>()> call;
        std::string want;
    };
    const std::vector<Case> cases{
        {"name taken", [&] { return engine->add_port(ns(), "p0", broken); }, "exists"},
        {"bad name", [&] { return engine->add_port(ns(), "a b", broken); }, "invalid"},
        {"device taken", [&] { return engine->add_port(ns(), "p2", again); }, "exists"},
        {"no device", [&] { return engine->add_port(ns(), "p2", broken); }, "device"},
        {"VLAN id taken", [&] { return engine->add_vlan(ns(), "v", twice); }, "exists"},
        {"VLAN on a VLAN", [&] { return engine->add_vlan(ns(), "v", on_vlan); }, "unsupported"},
        {"VLAN larger than its port",
         [&] { return engine->add_vlan(ns(), "v", large); },
         "invalid"},
        {"case 42: MTU beyond the device",
         [&] { return with("p0", [](auto& s) { s.mtu = 9001; }); },
         "invalid"},
        {"check 148: MTU 50", [&] { return with("p0", [](auto& s) { s.mtu = 50; }); }, "invalid"},
        {"case 37: below IPv6's",
         [&] { return with("p1", [](auto& s) { s.mtu = 1279; }); },
         "invalid"},
        {"below its VLAN's", [&] { return with("p0", [](auto& s) { s.mtu = 1400; }); }, "invalid"},
        {"VLAN above its port's",
         [&] { return with("p0.100", [](auto& s) { s.mtu = 1501; }); },
         "invalid"},
        {"check 148: multicast MAC",
         [&] { return with("p0", [](auto& s) { s.mac = mac("01:00:5e:00:00:01"); }); },
         "invalid"},
        {"promiscuous VLAN",
         [&] { return with("p0.100", [](auto& s) { s.promiscuous = true; }); },
         "unsupported"},
        {"unknown", [&] { return engine->change_netdev(ns(), "p9", {}); }, "not_found"},
        {"loopback", [&] { return engine->change_netdev(ns(), "lo", {}); }, "unsupported"},
        {"own address twice",
         [&] { return engine->add_address(ns(), "p1", interface("10.0.0.1/24")); },
         "exists"},
        {"address of a network",
         [&] { return engine->add_address(ns(), "p1", interface("10.4.0.0/24")); },
         "invalid"},
        {"broadcast address",
         [&] { return engine->add_address(ns(), "p1", interface("10.4.0.255/24")); },
         "invalid"},
        {"multicast address",
         [&] { return engine->add_address(ns(), "p1", interface("ff02::5/64")); },
         "invalid"},
        {"loopback address",
         [&] { return engine->add_address(ns(), "p1", interface("127.0.0.1/8")); },
         "invalid"},
        {"address of lo",
         [&] { return engine->add_address(ns(), "lo", interface("10.4.0.1/32")); },
         "unsupported"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const std::string before = dump();
        const auto result = c.call();
        EXPECT_EQ(code(result), c.want) << (result ? "" : result.error().message);
        settle();
        EXPECT_EQ(dump(), before);
    }
}

TEST_F(EngineLinks, Case_40_MtuThatNeedsTheDeviceStopped) {
    plane.hardware.mtu_needs_stop = true;
    plane.hardware.log.clear();
    config::NetdevSettings to = settings("p1");
    to.mtu = 9000;
    expect_ok(engine->change_netdev(ns(), "p1", to));
    EXPECT_EQ(plane.hardware.log, (std::vector<std::string>{"stop", "mtu", "start"}));
    EXPECT_EQ(plane.queues[0].size(), 2U) << "polled again";
    EXPECT_EQ(view("p1")->mtu, 9000);
    EXPECT_TRUE(view("p1")->up);
    EXPECT_EQ(route("10.0.1.9"), "unicast dev p1");
}

TEST_F(EngineLinks, Check_137_MacChangeReachesRewritesAndVlans) {
    add_vlan("p1.5", "p1", 5);
    expect_ok(engine->add_address(ns(), "p1.5", interface("10.5.0.1/24")));
    add(via("192.0.2.0/24", "10.0.1.2"));
    expect_ok(engine->add_neighbor(ns(), "p1", ip("10.0.1.2"), kGatewayMac, now));
    expect_ok(engine->add_neighbor(ns(), "p1.5", ip("10.5.0.2"), kHostMac, now));
    ASSERT_TRUE(resolved(dst("192.0.2.9")));

    config::NetdevSettings to = settings("p1");
    to.mac = mac("02:00:00:00:00:99");
    plane.sent.clear();
    expect_ok(engine->change_netdev(ns(), "p1", to));
    // Until no worker reads the old one, nobody may send.
    EXPECT_FALSE(resolved(dst("192.0.2.9")));
    EXPECT_FALSE(resolved(*host("p1.5", "10.5.0.2")));
    resolve("p1", "10.0.1.2");  // a worker that asks meanwhile waits
    EXPECT_FALSE(resolved(dst("192.0.2.9")));
    EXPECT_EQ(mac_in(dst("10.0.1.255"), 6), *to.mac) << "broadcasts at once";
    settle();
    EXPECT_TRUE(resolved(dst("192.0.2.9")));
    EXPECT_EQ(mac_in(dst("192.0.2.9"), 0), kGatewayMac);
    EXPECT_EQ(mac_in(dst("192.0.2.9"), 6), *to.mac);
    EXPECT_TRUE(resolved(*host("p1.5", "10.5.0.2")));
    EXPECT_EQ(mac_in(*host("p1.5", "10.5.0.2"), 6), *to.mac);
    EXPECT_EQ(view("p1")->mac, *to.mac);
    EXPECT_EQ(view("p1.5")->mac, *to.mac);
    EXPECT_EQ(view("p1")->link_local, net::link_local_from_mac(*to.mac));
    EXPECT_EQ(plane.commands[0].back().kind, pipeline::WorkerCommand::Kind::kReady);
    EXPECT_FALSE(plane.sent.empty()) << "gratuitous ARP with the new MAC";
    // Left out again: the device's own.
    to.mac.reset();
    expect_ok(engine->change_netdev(ns(), "p1", to));
    EXPECT_EQ(netdev("p1").mac, netdev("p1").device->own_mac());
}

TEST_F(EngineLinks, Check_149_AReusedIdCountsFromZero) {
    const NetdevId id = netdev("p1").id;
    plane.blocks[0].netdev(id).rx_packets = 7;
    plane.blocks[0].netdev(id).delivered = 7;
    EXPECT_EQ(remove({"p1"}), "fine");
    settle();
    now += std::chrono::seconds(15);
    add_port("p1", "02:00:00:00:00:02");
    ASSERT_EQ(netdev("p1").id, id);
    EXPECT_EQ(engine->counters(netdev("p1"), 0).rx_packets, 0U);
    EXPECT_EQ(engine->counters(netdev("p1"), 0).delivered, 0U);
    plane.blocks[0].netdev(id).rx_packets += 2;
    EXPECT_EQ(engine->counters(netdev("p1"), 0).rx_packets, 2U);
}

class EngineFourWorkers : public EngineTest {
protected:
    EngineFourWorkers() : EngineTest(4) {}
};

TEST_F(EngineFourWorkers, Case_93_QueuesSpreadAndStayWhereTheyAre) {
    plane.hardware.rx_queues = 2;
    add_port("p0", "02:00:00:00:00:01");
    add_port("p1", "02:00:00:00:00:02");
    for (const auto& list : plane.queues) {
        EXPECT_EQ(list.size(), 1U);
    }
    const auto p1 = netdev("p1").polled;
    expect_ok(engine->delete_netdevs(ns(), std::array<std::string, 1>{"p0"}));
    EXPECT_EQ(netdev("p1").polled, p1);
    add_port("p2", "02:00:00:00:00:03");
    for (const auto& list : plane.queues) {
        EXPECT_EQ(list.size(), 1U);
    }
}

}  // namespace
}  // namespace sluice::control::test
