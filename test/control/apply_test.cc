// SPDX-License-Identifier: BSD-3-Clause
#include "control/apply.h"

#include <array>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "config/config.h"
#include "config/netns.h"
#include "control/router.h"
#include "engine_fixture.h"

namespace sluice::control::test {
namespace {

const std::string kBench = R"(version: 1
instance: bench
ports:
  p0:
    device: dev-p0
    mac: 02:00:00:00:00:01
    addresses: [10.0.0.1/24, "fd00::1/64"]
  p1:
    device: dev-p1
    mac: 02:00:00:00:00:02
    addresses: [10.0.1.1/24, "fd00:1::1/64"]
vlans:
  p0.100: {link: p0, id: 100, addresses: [10.0.100.1/24]}
routes:
  - {to: 192.0.2.0/24, via: 10.0.1.2}
  - {to: "2001:db8:2::/48", via: "fd00:1::2"}
  - {to: 198.51.100.0/24, type: blackhole}
neighbors:
  - {to: 10.0.1.2, dev: p1, lladdr: "02:aa:00:00:01:02"}
)";

class Apply : public EngineTest {
protected:
    static config::Config parse(const std::string& text) {
        auto config = config::load(text, "bench.yaml");
        if (!config) {
            ADD_FAILURE() << config.error().front().to_string();
            std::abort();
        }
        return *config;
    }
    static std::string with(std::string text, std::string_view from, std::string_view to) {
        const std::size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos);
        return text.replace(at, from.size(), to);
    }
    std::string settled_dump() {
        settle();
        return dump(Ids::kHidden);  // a VLAN that comes back may have another
    }
};

TEST_F(Apply, StartBringsUpTheWholeFile) {
    const auto config = parse(kBench);
    Router router(*engine, config::starting_point(config));
    expect_ok(router.apply(config));
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.1.2 dev p1");
    EXPECT_TRUE(resolved(dst("192.0.2.9"))) << "static neighbor";
    EXPECT_EQ(route("2001:db8:2::9"), "unicast via fd00:1::2 dev p1");
    EXPECT_EQ(route("198.51.100.9"), "blackhole");
    EXPECT_EQ(route("10.0.100.9"), "unicast dev p0.100");
    // Effective configuration fed back: nothing to do.
    const auto again = parse(router.effective_config());
    const auto actions = config::diff(config, again);
    ASSERT_TRUE(actions.has_value());
    EXPECT_TRUE(actions->empty());
}

TEST_F(Apply, Case_137_ReloadTouchesOnlyWhatDiffers) {
    const auto config = parse(kBench);
    Router router(*engine, config::starting_point(config));
    expect_ok(router.apply(config));
    const fib::Dst* gateway = &dst("2001:db8:2::9");
    plane.hardware.log.clear();
    expect_ok(router.apply(parse(with(kBench, "via: 10.0.1.2}", "via: 10.0.1.2, metric: 7}"))));
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.1.2 dev p1");
    EXPECT_EQ(&dst("2001:db8:2::9"), gateway);
    EXPECT_TRUE(plane.hardware.log.empty());
}

TEST_F(Apply, FailureAtAnyPlaceIsUndoneAndNamesTheLine) {
    const auto config = parse(kBench);
    Router router(*engine, config::starting_point(config));
    expect_ok(router.apply(config));
    // Routes that come over the socket stay whatever the file does.
    add(via("203.0.113.0/24", "10.0.0.2"));
    const std::string before = settled_dump();

    std::string text = with(kBench, "via: 10.0.1.2}", "via: 10.0.1.3}");
    text = with(text, "id: 100, addresses: [10.0.100.1/24]", "id: 200, mtu: 1400");
    text = with(text, "02:aa:00:00:01:02", "02:aa:00:00:01:03");
    text = with(text, "vlans:", "  p2:\n    device: broken\nvlans:");
    const auto result = router.apply(parse(text));
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kDevice);
    EXPECT_TRUE(result.error().message.starts_with("bench.yaml:12:")) << result.error().message;
    EXPECT_EQ(settled_dump(), before);
    EXPECT_EQ(router.effective_config(), config::emit(config));
}

TEST_F(Apply, Check_119_UndoneAddressesAreInTheirOrderAgain) {
    const std::string text = with(with(kBench,
                                       R"([10.0.0.1/24, "fd00::1/64"])",
                                       R"([10.0.0.1/24, 10.0.0.7/24, "fd00::1/64", 10.0.0.3/24])"),
                                  "[10.0.100.1/24]",
                                  "[10.0.100.1/24, 10.0.100.2/24]");
    const auto config = parse(text);
    Router router(*engine, config::starting_point(config));
    expect_ok(router.apply(config));
    const std::string before = settled_dump();
    ASSERT_EQ(*view("p0")->source_for(ip("10.0.0.9").v4()), ip("10.0.0.1").v4());

    // Two of p0's go, one comes; the VLAN is made anew; then a port fails.
    std::string other = with(text, "10.0.0.1/24, 10.0.0.7/24,", "10.0.0.9/24,");
    other = with(other, "id: 100", "id: 200");
    other = with(other, "vlans:", "  p2:\n    device: dev-p2\nvlans:");
    other = with(other, "via: 10.0.1.2}", "via: 10.0.0.66, dev: p0}");
    plane.hardware.open.insert("dev-p2");  // somebody else has it
    const auto result = router.apply(parse(other));
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(settled_dump(), before);
    EXPECT_EQ(*view("p0")->source_for(ip("10.0.0.9").v4()), ip("10.0.0.1").v4());
    EXPECT_EQ(*view("p0.100")->source_for(ip("10.0.100.9").v4()), ip("10.0.100.1").v4());
}

TEST_F(Apply, ChangesOverTheSocketAreUndoneByReload) {
    const auto config = parse(kBench);
    Router router(*engine, config::starting_point(config));
    expect_ok(router.apply(config));
    const std::string before = settled_dump();
    LinkChange smaller;
    smaller.mtu = 1400;
    expect_ok(router.change_link("default", "p1", smaller));
    expect_ok(router.add_address("default", "p1", interface("10.5.0.1/24")));
    expect_ok(router.delete_address("default", "p0", interface("fd00::1/64")));
    expect_ok(router.delete_neighbor("default", "p1", ip("10.0.1.2")));
    const auto effective = parse(router.effective_config());
    EXPECT_EQ(effective.default_netns.ports.at("p1").settings.mtu, 1400);
    expect_ok(router.apply(config));
    EXPECT_EQ(settled_dump(), before);
}

TEST_F(Apply, DeletedPortLeavesTheRunningConfiguration) {
    const auto config = parse(kBench);
    Router router(*engine, config::starting_point(config));
    expect_ok(router.apply(config));
    expect_ok(router.delete_netdevs("default", std::array<std::string, 1>{"p1"}));
    const auto effective = parse(router.effective_config());
    EXPECT_FALSE(effective.default_netns.ports.contains("p1"));
    EXPECT_EQ(effective.default_netns.routes.size(), 1U);  // the blackhole
    expect_ok(router.apply(config));
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.1.2 dev p1");
}

const std::string kTenants = R"(version: 1
instance: tenants
workers: {cache: "on"}
ports:
  p0:
    device: dev-p0
    addresses: [10.0.0.1/24]
vlans:
  p0.100: {link: p0, id: 100, addresses: [10.0.0.1/24]}
vrfs:
  blue: {table: 100, interfaces: [p0.100]}
nexthops:
  1: {via: 10.0.0.2}
  2: {via: 10.0.0.3}
  10: {group: {1: 1, 2: 3}}
routes:
  - {to: default, nexthop: 10}
  - {to: 198.51.100.0/24, via: 10.0.0.2, table: 100, dev: p0.100}
routing-policy:
  - {priority: 10, from: 10.0.0.0/8, table: 100}
netns:
  tenant:
    ports:
      p1:
        device: dev-p1
        addresses: [10.0.0.1/24]
    routes:
      - {to: default, via: 10.0.0.2}
)";

TEST_F(Apply, NetnsVrfsNextHopsAndRulesComeAndGo) {
    const auto bench = parse(kBench);
    Router router(*engine, config::starting_point(bench));
    expect_ok(router.apply(bench));
    const std::string before = settled_dump();
    auto tenants = parse(kTenants);
    tenants.instance = bench.instance;
    tenants.control = bench.control;
    expect_ok(router.apply(tenants));
    EXPECT_EQ(shared.cache_mode.load(), fib::CacheMode::kOn);
    EXPECT_EQ(netdev("p0.100").master, &netdev("blue"));
    EXPECT_EQ(router.lookup_route("default", {.destination = ip("192.0.2.1")})->nexthop, 10U);
    EXPECT_EQ(router.lookup_route("tenant", {.destination = ip("192.0.2.1")})->dev, "p1");
    EXPECT_EQ(router.rules("default")->size(), 1U);
    const auto again = config::diff(tenants, parse(router.effective_config()));
    ASSERT_TRUE(again.has_value());
    EXPECT_TRUE(again->empty());
    expect_ok(router.apply(bench));
    EXPECT_EQ(settled_dump(), before);
}

TEST_F(Apply, M_01_AMovedPortIsMovedInTheFileToo) {
    const auto bench = parse(kBench);
    Router router(*engine, config::starting_point(bench));
    expect_ok(router.apply(bench));
    const std::string before = settled_dump();
    plane.hardware.log.clear();
    auto other = bench;
    auto& tenant = other.netns["tenant"];
    auto port = other.default_netns.ports.extract("p1");
    std::erase_if(other.default_netns.routes, [](const auto& r) { return r.dev == "p1"; });
    std::erase_if(other.default_netns.neighbors, [](const auto& n) { return n.dev == "p1"; });
    tenant.ports.insert(std::move(port));
    expect_ok(router.apply(other));
    EXPECT_TRUE(plane.hardware.log.empty()) << "the device goes on";
    EXPECT_EQ(netdev("p1", "tenant").addresses.size(), 2U);
    expect_ok(router.apply(bench));
    EXPECT_EQ(settled_dump(), before);
}

TEST_F(Apply, WhatMovesOverTheSocketMovesInTheConfiguration) {
    const auto config = parse(kBench);
    Router router(*engine, config::starting_point(config));
    expect_ok(router.apply(config));
    const std::string before = settled_dump();
    expect_ok(router.add_netns("a"));
    expect_ok(router.move_link("default", "p0.100", "a"));
    expect_ok(router.add_address("a", "p0.100", interface("10.0.0.1/24")));
    expect_ok(router.move_link("default", "p1", "a"));
    expect_ok(router.add_address("a", "p1", interface("10.0.1.1/24")));
    expect_ok(router.add_vrf("a", "blue", 100));
    LinkChange change;
    change.vrf = "blue";
    expect_ok(router.change_link("a", "p1", change));
    auto now_is = parse(router.effective_config());
    EXPECT_EQ(now_is.netns["a"].vlans.count("p0.100"), 1U);
    EXPECT_EQ(now_is.netns["a"].ports.count("p1"), 1U);
    EXPECT_EQ(now_is.netns["a"].vrfs["blue"].interfaces, std::vector<std::string>{"p1"});
    EXPECT_EQ(now_is.default_netns.ports.count("p1"), 0U);
    EXPECT_EQ(now_is.default_netns.routes.size(), 1U);
    expect_ok(router.move_link("a", "p1", "default"));
    now_is = parse(router.effective_config());
    EXPECT_TRUE(now_is.netns["a"].vrfs["blue"].interfaces.empty());
    EXPECT_TRUE(now_is.default_netns.ports.at("p1").addresses.empty());
    expect_ok(router.delete_netns("a"));
    expect_ok(router.apply(config));
    EXPECT_EQ(settled_dump(), before);
}

// A vlan that a client had made with its own netns spelled out stayed behind in the configuration
// when its port moved, and the next change to it went through a null pointer.
TEST_F(Apply, M_01_VlanLeftBehindByItsPortsMove) {
    struct Case {
        std::string name;
        std::string port_in;  // when the vlan is made, and where it moves from
        std::string vlan_in;
        std::string link_netns;  // as the client says it
        bool follows;
    };
    const std::vector<Case> cases{{"netns left out", "a", "a", "", true},
                                  {"own netns spelled out", "a", "a", "a", true},
                                  {"default spelled out", "default", "default", "default", true},
                                  {"in another netns", "a", "b", "a", false}};
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const auto config = parse(kBench);
        Router router(*engine, config::starting_point(config));
        expect_ok(router.apply(config));
        for (const char* netns : {"a", "b", "c"}) {
            expect_ok(router.add_netns(netns));
        }
        if (c.port_in != "default") {
            expect_ok(router.move_link("default", "p1", c.port_in));
        }
        config::Vlan vlan;
        vlan.link = "p1";
        vlan.link_netns = c.link_netns;
        vlan.id = 7;
        expect_ok(router.add_vlan(c.vlan_in, "v", vlan));
        expect_ok(router.move_link(c.port_in, "p1", "c"));

        const std::string now_in = c.follows ? "c" : c.vlan_in;
        LinkChange mtu;
        mtu.mtu = 1400;
        expect_ok(router.change_link(now_in, "v", mtu));
        const auto now_is = parse(router.effective_config());
        config::for_each_netns(now_is, [&](std::string_view where, const config::Netns& netns) {
            EXPECT_EQ(netns.vlans.count("v"), where == now_in ? 1U : 0U) << where;
            if (where == now_in) {
                EXPECT_EQ(netns.vlans.at("v").link_netns, c.follows ? "" : "c");
                EXPECT_EQ(netns.vlans.at("v").settings.mtu, 1400);
            }
        });
        expect_ok(router.delete_netdevs(now_in, std::array<std::string, 1>{"v"}));
        expect_ok(router.move_link("c", "p1", "default"));
        for (const char* netns : {"a", "b", "c"}) {
            expect_ok(router.delete_netns(netns));
        }
        expect_ok(router.apply(config::starting_point(config)));
        settle();
    }
}

TEST_F(Apply, NeighborsOfTheConfigurationAreTheEngines) {
    const auto config = parse(kBench);
    Router router(*engine, config::starting_point(config));
    expect_ok(router.apply(config));
    const auto hosts = [&] {
        std::string text;
        for (const auto& host : parse(router.effective_config()).default_netns.neighbors) {
            text +=
                fmt::format("{} {} {}, ", host.to.to_string(), host.dev, host.lladdr.to_string());
        }
        return text;
    };
    const std::string file = hosts();
    expect_ok(router.add_neighbor("default", "p1", ip("fd00:1::9"), kHostMac));
    expect_ok(router.add_neighbor("default", "p0", ip("10.0.0.9"), kHostMac));
    EXPECT_EQ(hosts(), file + "10.0.0.9 p0 02:aa:00:00:00:02, fd00:1::9 p1 02:aa:00:00:00:02, ");
    expect_ok(router.add_neighbor("default", "p1", ip("fd00:1::9"), kGatewayMac));
    expect_ok(router.delete_neighbor("default", "p0", ip("10.0.0.9")));
    EXPECT_EQ(hosts(), file + "fd00:1::9 p1 02:aa:00:00:01:02, ");
    expect_ok(router.delete_neighbor("default", "p1", ip("10.0.1.2")));
    EXPECT_EQ(hosts(), "fd00:1::9 p1 02:aa:00:00:01:02, ");
    EXPECT_EQ(code(router.delete_neighbor("default", "p1", ip("10.0.1.2"))), "not_found");
    expect_ok(router.apply(config));
    EXPECT_EQ(hosts(), file);
    EXPECT_EQ(neighbor("p1", "fd00:1::9"), "none");
    expect_ok(router.delete_netdevs("default", std::array<std::string, 1>{"p1"}));
    EXPECT_EQ(hosts(), "");
}

// "Bad input": the configuration before and after, word by word.
TEST_F(Apply, RefusedChangesLeaveTheConfigurationAsItWas) {
    auto config = parse(kTenants);
    Router router(*engine, config::starting_point(config));
    expect_ok(router.apply(config));
    LinkChange vrf;
    vrf.vrf = "nowhere";
    vrf.mtu = 1400;
    LinkChange out_of_vrf;
    out_of_vrf.vrf = "";
    config::Vlan vlan;
    vlan.link = "p1";
    vlan.id = 9;
    vlan.addresses = {{.value = interface("10.8.0.1/24"), .at = {}},
                      {.value = interface("10.0.0.1/24"), .at = {}}};
    config::NextHop nested;
    nested.group = {{10, 1}};
    config::NextHop missing;
    missing.group = {{99, 1}};
    config::Rule rule;
    rule.priority = 10;
    rule.from = prefix("10.0.0.0/8");
    rule.table = 100;
    RouteRequest over;
    over.prefix = prefix("192.0.2.0/24");
    over.nexthop = 99;
    struct Case {
        std::string name;
        std::function<std::string()> change;
        std::string want;
    };
    const std::vector<Case> cases{
        {"netns twice", [&] { return code(router.add_netns("tenant")); }, "exists"},
        {"netns unknown", [&] { return code(router.delete_netns("nobody")); }, "not_found"},
        {"netns default", [&] { return code(router.delete_netns("default")); }, "invalid"},
        {"move, name clash",
         [&] {
             expect_ok(router.add_netns("other"));
             config::Vlan p1;
             p1.link = "p0";
             p1.id = 5;
             expect_ok(router.add_vlan("default", "p1", p1));
             const auto refused = code(router.move_link("tenant", "p1", "default"));
             expect_ok(router.delete_netdevs("default", std::array<std::string, 1>{"p1"}));
             expect_ok(router.delete_netns("other"));
             return refused;
         },
         "exists"},
        {"move of nothing",
         [&] { return code(router.move_link("tenant", "p9", "default")); },
         "not_found"},
        {"vrf unknown",
         [&] { return code(router.change_link("default", "p0.100", vrf)); },
         "not_found"},
        {"address taken outside the vrf",
         [&] { return code(router.change_link("default", "p0.100", out_of_vrf)); },
         "exists"},
        {"vrf with its member's address taken outside",
         [&] { return code(router.delete_netdevs("default", std::array<std::string, 1>{"blue"})); },
         "exists"},
        {"port with a vlan",
         [&] { return code(router.delete_netdevs("default", std::array<std::string, 1>{"p0"})); },
         "busy"},
        {"second address of a new vlan",
         [&] { return code(router.add_vlan("tenant", "v", vlan)); },
         "exists"},
        {"group in a group",
         [&] { return code(router.add_nexthop("default", 11, nested, false, 0)); },
         "invalid"},
        {"group of nothing",
         [&] { return code(router.add_nexthop("default", 10, missing, true, 0)); },
         "not_found"},
        {"next hop twice",
         [&] {
             return code(
                 router.add_nexthop("default", 1, config.default_netns.nexthops[1], false, 0));
         },
         "exists"},
        {"next hop unknown",
         [&] { return code(router.delete_nexthop("default", 99)); },
         "not_found"},
        {"route over no next hop",
         [&] { return code(router.add_route("default", over, RouteMode::kAdd)); },
         "not_found"},
        {"rule twice", [&] { return code(router.add_rule("default", rule)); }, "exists"},
        {"netns nowhere", [&] { return code(router.add_rule("nobody", rule)); }, "not_found"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const std::string file = router.effective_config();
        const std::string before = settled_dump();
        EXPECT_EQ(c.change(), c.want);
        EXPECT_EQ(router.effective_config(), file);
        EXPECT_EQ(settled_dump(), before);
    }
}

TEST_F(Apply, ReloadOfAMissingFileSaysSo) {
    const auto config = parse(kBench);
    Router router(*engine, config::starting_point(config));
    const auto result = router.reload("/nonexistent/sluice.yaml");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace sluice::control::test
