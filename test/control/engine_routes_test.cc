// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine_fixture.h"

namespace sluice::control::test {
namespace {

class EngineRoutes : public EngineTest {
protected:
    EngineRoutes() { add_bench(); }

    static RouteRequest owned(RouteRequest route, RouteOwner owner, std::uint32_t metric = 0) {
        route.owner = owner;
        route.metric = metric;
        return route;
    }
    static RouteRequest over(RouteRequest route, std::string dev) {
        route.dev = std::move(dev);
        return route;
    }
    static RouteRequest on_link(RouteRequest route) {
        route.on_link = true;
        return route;
    }
};

TEST_F(EngineRoutes, Check_59_AddressesBringConnectedLocalAndBroadcastRoutes) {
    EXPECT_EQ(route("10.0.0.1"), "local dev p0");
    EXPECT_EQ(route("10.0.0.77"), "unicast dev p0");
    EXPECT_EQ(dst("10.0.0.77").type, fib::DstType::kConnected);
    EXPECT_EQ(route("10.0.0.255"), "broadcast dev p0");
    EXPECT_TRUE(resolved(dst("10.0.0.255")));
    EXPECT_EQ(mac_in(dst("10.0.0.255"), 0), net::kBroadcastMac);
    EXPECT_EQ(route("fd00:1::1"), "local dev p1");
    EXPECT_EQ(route("fd00:1::7"), "unicast dev p1");
    EXPECT_EQ(route("203.0.113.9"), "none");
}

TEST_F(EngineRoutes, Case_106_SlashThirtyOneHasNoBroadcast) {
    expect_ok(engine->add_address(ns(), "p0", interface("10.9.9.0/31")));
    EXPECT_EQ(route("10.9.9.0"), "local dev p0");
    EXPECT_EQ(route("10.9.9.1"), "unicast dev p0");
    expect_ok(engine->add_address(ns(), "p0", interface("10.8.8.8/32")));
    EXPECT_EQ(route("10.8.8.8"), "local dev p0");
    expect_ok(engine->add_address(ns(), "p0", interface("fd00:9::/127")));
    EXPECT_EQ(route("fd00:9::"), "local dev p0");
    EXPECT_EQ(route("fd00:9::1"), "unicast dev p0");
}

TEST_F(EngineRoutes, Case_79_DefaultRouteInBothFamilies) {
    add(via("0.0.0.0/0", "10.0.1.2"));
    add(via("::/0", "fd00:1::2"));
    EXPECT_EQ(route("203.0.113.9"), "unicast via 10.0.1.2 dev p1");
    EXPECT_EQ(route("2001:db8::1"), "unicast via fd00:1::2 dev p1");
    expect_ok(engine->delete_route(ns(), via("0.0.0.0/0", "10.0.1.2")));
    EXPECT_EQ(route("203.0.113.9"), "none");
}

TEST_F(EngineRoutes, Check_119_TwoAddressesInOneSubnet) {
    expect_ok(engine->add_address(ns(), "p0", interface("10.0.0.5/24")));
    expect_ok(engine->delete_address(ns(), "p0", interface("10.0.0.1/24")));
    EXPECT_EQ(route("10.0.0.77"), "unicast dev p0");
    EXPECT_EQ(route("10.0.0.1"), "unicast dev p0");
    EXPECT_EQ(route("10.0.0.5"), "local dev p0");
    expect_ok(engine->delete_address(ns(), "p0", interface("10.0.0.5/24")));
    EXPECT_EQ(route("10.0.0.77"), "none");
}

TEST_F(EngineRoutes, Check_120_AddressOnADownNetdev) {
    set_up("p1", false);
    expect_ok(engine->add_address(ns(), "p1", interface("10.5.0.1/24")));
    EXPECT_EQ(route("10.5.0.9"), "none");
    set_up("p1", true);
    EXPECT_EQ(route("10.5.0.9"), "unicast dev p1");
    set_up("p1", false);
    EXPECT_EQ(route("10.5.0.9"), "none");
}

TEST_F(EngineRoutes, Case_73_FlapMakesRoutesInactiveAndActive) {
    add(via("192.0.2.0/24", "10.0.1.2"));
    RouteRequest backup = via("192.0.2.0/24", "10.0.0.2");
    backup.metric = 10;
    add(backup);
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.1.2 dev p1");
    set_up("p1", false);
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.0.2 dev p0");
    set_up("p0", false);
    EXPECT_EQ(route("192.0.2.9"), "none");
    set_up("p1", true);
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.1.2 dev p1");
}

TEST_F(EngineRoutes, Case_84_RouteWaitsWhileItsSubnetIsGone) {
    add(via("192.0.2.0/24", "10.0.1.2"));
    expect_ok(engine->delete_address(ns(), "p1", interface("10.0.1.1/24")));
    EXPECT_EQ(route("192.0.2.9"), "none");
    expect_ok(engine->add_address(ns(), "p1", interface("10.0.1.1/24")));
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.1.2 dev p1");
}

TEST_F(EngineRoutes, Check_44_Ipv4OverAnIpv6Gateway) {
    add(over(via("192.0.2.0/24", "fe80::9"), "p1"));
    const fib::Dst& d = dst("192.0.2.9");
    EXPECT_EQ(d.gateway6(), ip("fe80::9").v6());
    EXPECT_EQ(d.gateway_is_v6, 1);
    // The frame says what is in it, not who takes it.
    EXPECT_EQ(d.rewrite[12] << 8 | d.rewrite[13], net::kEtherTypeIpv4);
}

TEST_F(EngineRoutes, Check_71_RouteMtuIsTheSmaller) {
    RouteRequest small = via("192.0.2.0/24", "10.0.1.2");
    small.mtu = 1300;
    add(small);
    EXPECT_EQ(dst("192.0.2.9").mtu, 1300);
    config::NetdevSettings settings = netdev("p1").settings;
    settings.mtu = 1280;
    expect_ok(engine->change_netdev(ns(), "p1", settings));
    EXPECT_EQ(dst("192.0.2.9").mtu, 1280);
    settings.mtu = 1500;
    expect_ok(engine->change_netdev(ns(), "p1", settings));
    EXPECT_EQ(dst("192.0.2.9").mtu, 1300);
    EXPECT_EQ(dst("10.0.1.9").mtu, 1500);
}

TEST_F(EngineRoutes, Check_116_MoreSpecificThenGone) {
    add(via("192.0.2.0/24", "10.0.1.2"));
    add(typed("192.0.2.9/32", "blackhole"));
    EXPECT_EQ(route("192.0.2.9"), "blackhole");
    expect_ok(engine->delete_route(ns(), typed("192.0.2.9/32", "blackhole")));
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.1.2 dev p1");
}

// interface.md section 1: file > CLI > FPM at equal metric; the lower metric before that.
TEST_F(EngineRoutes, Case_87_PreferenceOfOwners) {
    struct Case {
        std::string name;
        std::vector<std::pair<RouteOwner, std::uint32_t>> routes;
        std::size_t best;
    };
    const std::vector<Case> cases{
        {"file before cli", {{RouteOwner::kCli, 0}, {RouteOwner::kFile, 0}}, 1},
        {"cli before fpm", {{RouteOwner::kFpm, 0}, {RouteOwner::kCli, 0}}, 1},
        {"lower metric of fpm", {{RouteOwner::kFile, 20}, {RouteOwner::kFpm, 10}}, 1},
        {"check 68: lower metric", {{RouteOwner::kCli, 5}, {RouteOwner::kCli, 6}}, 0},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const std::string before = dump();
        std::vector<RouteRequest> requests;
        for (std::size_t i = 0; i < c.routes.size(); ++i) {
            requests.push_back(owned(via("192.0.2.0/24", fmt::format("10.0.1.{}", i + 2)),
                                     c.routes[i].first,
                                     c.routes[i].second));
            add(requests.back());
        }
        const auto gateway = [](std::size_t i) {
            return fmt::format("unicast via 10.0.1.{} dev p1", i + 2);
        };
        EXPECT_EQ(route("192.0.2.9"), gateway(c.best));
        expect_ok(engine->delete_route(ns(), requests[c.best]));
        EXPECT_EQ(route("192.0.2.9"), gateway(1 - c.best)) << "the other one is back";
        expect_ok(engine->delete_route(ns(), requests[1 - c.best]));
        settle();
        EXPECT_EQ(dump(), before);
    }
}

TEST_F(EngineRoutes, Check_69_ReplaceLeavesExactlyTheNewOne) {
    add(via("192.0.2.0/24", "10.0.1.2"));
    expect_ok(engine->add_route(ns(), via("192.0.2.0/24", "10.0.0.2"), RouteMode::kReplace));
    EXPECT_EQ(route("192.0.2.9"), "unicast via 10.0.0.2 dev p0");
    expect_ok(engine->add_route(ns(), typed("192.0.2.0/24", "unreachable"), RouteMode::kReplace));
    EXPECT_EQ(route("192.0.2.9"), "unreachable");
    const std::string before = dump();
    EXPECT_EQ(code(engine->add_route(ns(), via("192.0.2.0/24", "10.7.7.7"), RouteMode::kReplace)),
              "invalid");
    EXPECT_EQ(dump(), before);
    expect_ok(engine->delete_route(ns(), typed("192.0.2.0/24", "unreachable")));
    EXPECT_EQ(route("192.0.2.9"), "none");
}

TEST_F(EngineRoutes, Case_67_Check_148_RefusalsChangeNothing) {
    add(via("192.0.2.0/24", "10.0.1.2"));
    RouteRequest small6 = via("2001:db8::/32", "fd00:1::2");
    small6.mtu = 1000;
    struct Case {
        std::string name;
        RouteRequest request;
        std::string want;
    };
    const std::vector<Case> cases{
        {"check 66: duplicate", via("192.0.2.0/24", "10.0.0.2"), "exists"},
        {"check 66: duplicate of another type", typed("192.0.2.0/24", "unreachable"), "exists"},
        {"check 43: IPv6 over IPv4", via("2001:db8::/32", "10.0.1.2"), "invalid"},
        {"check 73: own address", via("203.0.113.0/24", "10.0.0.1"), "invalid"},
        {"check 73: own link-local",
         over(via("2001:db8::/32", "fe80::ff:fe00:2"), "p1"),
         "invalid"},
        {"check 73: link-local without dev", via("2001:db8::/32", "fe80::9"), "invalid"},
        {"gateway in no subnet", via("203.0.113.0/24", "10.7.7.7"), "invalid"},
        {"gateway in another's subnet", over(via("203.0.113.0/24", "10.0.0.2"), "p1"), "invalid"},
        {"check 76: on-link without dev", on_link(via("203.0.113.0/24", "10.7.7.7")), "invalid"},
        {"check 76: on-link, multicast",
         on_link(over(via("203.0.113.0/24", "224.0.0.5"), "p1")),
         "invalid"},
        {"gateway is the broadcast address", via("203.0.113.0/24", "10.0.1.255"), "invalid"},
        {"gateway is the network's own address", via("203.0.113.0/24", "10.0.1.0"), "invalid"},
        {"gateway is the broadcast address, on-link",
         on_link(over(via("203.0.113.0/24", "10.0.1.255"), "p1")),
         "invalid"},
        {"no such dev", over(via("203.0.113.0/24", "10.0.1.2"), "p9"), "not_found"},
        {"dev that leads nowhere", over(via("203.0.113.0/24", "10.0.1.2"), "lo"), "invalid"},
        {"neither via nor dev", typed("203.0.113.0/24", "unicast"), "invalid"},
        {"no such type", typed("203.0.113.0/24", "teleport"), "invalid"},
        {"blackhole with dev", over(typed("203.0.113.0/24", "blackhole"), "p1"), "invalid"},
        {"multicast", via("224.1.0.0/16", "10.0.1.2"), "invalid"},
        {"loopback", via("127.0.0.0/8", "10.0.1.2"), "invalid"},
        {"limited broadcast", via("255.255.255.255/32", "10.0.1.2"), "invalid"},
        {"link-local prefix", via("fe80::/10", "fd00:1::2"), "invalid"},
        {"MTU below IPv6's", small6, "invalid"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const std::string before = dump();
        const auto result = engine->add_route(ns(), c.request, RouteMode::kAdd);
        EXPECT_EQ(code(result), c.want) << (result ? "" : result.error().message);
        settle();
        EXPECT_EQ(dump(), before);
    }
}

TEST_F(EngineRoutes, Check_148_DeletingWhatIsAbsent) {
    add(owned(via("192.0.2.0/24", "10.0.1.2"), RouteOwner::kFile));
    const std::string before = dump();
    EXPECT_EQ(code(engine->delete_route(ns(), via("192.0.2.0/24", "10.0.1.2"))), "not_found");
    EXPECT_EQ(code(engine->delete_route(ns(), via("198.51.100.0/24", "10.0.1.2"))), "not_found");
    EXPECT_EQ(code(engine->delete_address(ns(), "p0", interface("10.0.0.9/24"))), "not_found");
    EXPECT_EQ(code(engine->delete_neighbor(ns(), "p0", ip("10.0.0.9"))), "not_found");
    EXPECT_EQ(dump(), before);
}

TEST_F(EngineRoutes, Check_75_OnLinkGatewayInNoSubnet) {
    add(on_link(over(via("203.0.113.0/24", "192.0.2.77"), "p1")));
    EXPECT_EQ(route("203.0.113.9"), "unicast via 192.0.2.77 dev p1");
    resolve("p1", "192.0.2.77");
    ASSERT_EQ(plane.sent.size(), 1U);  // asked for, though in no subnet
}

TEST_F(EngineRoutes, Case_124_OneNextHopSharedByManyRoutes) {
    const std::size_t before = shared.dsts.in_use();
    for (unsigned i = 0; i < 100; ++i) {
        add(via(fmt::format("100.64.{}.0/24", i), "10.0.1.2"));
    }
    EXPECT_EQ(shared.dsts.in_use(), before + 1);
    EXPECT_EQ(removed(engine->flush_routes(ns(), RouteOwner::kCli)), 100U);
    settle();
    EXPECT_EQ(shared.dsts.in_use(), before);
}

TEST_F(EngineRoutes, RoutesAfterGivesEveryRouteOnce) {
    for (unsigned i = 0; i < 7; ++i) {
        add(via(fmt::format("100.64.{}.0/24", i), "10.0.1.2"));
    }
    std::vector<std::string> all;
    engine->for_each_route(
        ns(), config::kMainTable, [&](const RouteInfo& r) { all.push_back(r.prefix.to_string()); });
    std::vector<std::string> sliced;
    std::optional<net::IpPrefix> last;
    do {
        last = engine->routes_after(ns(), config::kMainTable, last, 3, [&](const RouteInfo& r) {
            sliced.push_back(r.prefix.to_string());
        });
    } while (last);
    EXPECT_EQ(sliced, all);
    EXPECT_EQ(all.size(), 7U + 10U);
}

class EngineLimits : public EngineTest {
protected:
    EngineLimits() : EngineTest(1, {.ipv4_routes = 3, .ipv6_routes = 1, .neighbors = {}}) {
        add_bench();
    }
};

TEST_F(EngineLimits, ARouteTooMuchNamesTheKey) {
    for (const char* to : {"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"}) {
        add(via(to, "10.0.1.2"));
    }
    const std::string before = dump();
    const auto result = engine->add_route(ns(), via("100.64.0.0/10", "10.0.1.2"), RouteMode::kAdd);
    EXPECT_EQ(code(result), "limit");
    EXPECT_NE(result.error().message.find("limits.ipv4-routes"), std::string::npos);
    EXPECT_EQ(dump(), before);
    expect_ok(engine->delete_route(ns(), via("192.0.2.0/24", "10.0.1.2")));
    add(via("100.64.0.0/10", "10.0.1.2"));
}

}  // namespace
}  // namespace sluice::control::test
