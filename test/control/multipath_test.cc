// SPDX-License-Identifier: BSD-3-Clause
// What a route says itself: several next hops, a protocol, a scope (checks.md 47, 53, 60, 69).
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "control/route_labels.h"
#include "nexthop_fixture.h"

namespace sluice::control::test {
namespace {

class MultipathRoutes : public NextHopTest {
protected:
    static RouteRequest over_legs(std::string_view to, std::vector<RouteLeg> legs) {
        RouteRequest route;
        route.prefix = prefix(to);
        route.legs = std::move(legs);
        return route;
    }
    static RouteLeg leg(std::string_view gateway, std::uint32_t weight = 1) {
        return {.via = ip(gateway), .dev = "", .weight = weight};
    }
    /// "via 10.0.0.2 dev p0 weight 1, ..." of the one route to `to`.
    std::string shown(std::string_view to) {
        std::string text;
        engine->for_each_route(ns(), config::kMainTable, [&](const RouteInfo& route) {
            if (route.prefix != prefix(to)) {
                return;
            }
            text += route.via ? fmt::format("via {} ", route.via->to_string()) : "";
            for (const RouteLeg& one : route.legs) {
                text += fmt::format("{}via {} dev {} weight {}{}",
                                    text.empty() ? "" : ", ",
                                    one.via ? one.via->to_string() : "-",
                                    one.dev,
                                    one.weight,
                                    one.active ? "" : " dead");
            }
            text += route.active ? "" : " inactive";
        });
        return text;
    }
    /// How many of 400 flows take each netdev.
    std::map<std::string, unsigned> split(std::string_view to) {
        std::map<std::string, unsigned> flows;
        for (std::uint16_t port = 0; port < 400; ++port) {
            const auto found = engine->lookup_route(ns(),
                                                    {.destination = ip(to),
                                                     .protocol = 17,
                                                     .source_port = port,
                                                     .destination_port = 53});
            EXPECT_FALSE(found->nexthop || found->member) << "it has no name";
            ++flows[found->dev];
        }
        return flows;
    }
};

TEST_F(MultipathRoutes, Check_60_LegsOfARoute) {
    add(over_legs("192.0.2.0/24", {leg("10.0.0.2"), leg("10.0.1.2", 3)}));
    add(over_legs("2001:db8::/32", {leg("fd00::2"), leg("fd00:1::2")}));
    EXPECT_EQ(shown("192.0.2.0/24"), "via 10.0.0.2 dev p0 weight 1, via 10.0.1.2 dev p1 weight 3");
    auto flows = split("192.0.2.9");
    EXPECT_NEAR(flows["p1"], 300, 45);
    EXPECT_NEAR(flows["p0"], 100, 45);
    flows = split("2001:db8::9");
    EXPECT_NEAR(flows["p1"], 200, 45);
    EXPECT_EQ(engine->nexthops(ns()).size(), 0U) << "none of these is the user's";
}

TEST_F(MultipathRoutes, Check_60_ADownOrRemovedNetdevLeavesTheOtherLegs) {
    const std::vector<RouteLeg> legs{leg("10.0.0.2"), leg("10.0.1.2")};
    add(over_legs("192.0.2.0/24", legs));
    set_up("p1", false);
    EXPECT_EQ(shown("192.0.2.0/24"),
              "via 10.0.0.2 dev p0 weight 1, via 10.0.1.2 dev p1 weight 1 dead");
    EXPECT_EQ(split("192.0.2.9"), (std::map<std::string, unsigned>{{"p0", 400}}));
    set_up("p0", false);
    EXPECT_EQ(engine->lookup_route(ns(), {.destination = ip("192.0.2.9")})->type, "none");
    set_up("p0", true);
    set_up("p1", true);
    EXPECT_EQ(split("192.0.2.9").size(), 2U);
    expect_ok(engine->delete_netdevs(ns(), std::vector<std::string>{"p1"}));
    settle();
    EXPECT_EQ(shown("192.0.2.0/24"), "via 10.0.0.2 dev p0 weight 1");
    // Of the same legs once more: the shrunken one is another group.
    add_port("p1", "02:00:00:00:00:02");
    expect_ok(engine->add_address(ns(), "p1", interface("10.0.1.1/24")));
    add(over_legs("198.51.100.0/24", legs));
    EXPECT_EQ(shown("192.0.2.0/24"), "via 10.0.0.2 dev p0 weight 1");
    EXPECT_EQ(split("198.51.100.9").size(), 2U);
    expect_ok(engine->delete_netdevs(ns(), std::vector<std::string>{"p0"}));
    settle();
    EXPECT_EQ(shown("192.0.2.0/24"), "") << "gone with the last";
    EXPECT_EQ(shown("198.51.100.0/24"), "via 10.0.1.2 dev p1 weight 1");
}

TEST_F(MultipathRoutes, NothingIsLeftOfThem) {
    const std::size_t dsts = shared.dsts.in_use();
    const std::size_t groups = shared.groups.in_use();
    const auto request = over_legs("192.0.2.0/24", {leg("10.0.0.2"), leg("10.0.1.2")});
    auto second = request;
    second.prefix = prefix("198.51.100.0/24");
    auto third = over_legs("203.0.113.0/24", {leg("10.0.0.2"), leg("10.0.1.3")});
    add(request);
    add(second);
    EXPECT_EQ(shared.groups.in_use(), groups + 1) << "shared by those with the same legs";
    add(third);
    EXPECT_EQ(shared.groups.in_use(), groups + 2);
    EXPECT_EQ(shared.dsts.in_use(), dsts + 3) << "as are the legs";
    expect_ok(engine->delete_route(ns(), second));
    expect_ok(engine->delete_route(ns(), third));
    expect_ok(engine->add_route(ns(), via("192.0.2.0/24", "10.0.1.9"), RouteMode::kReplace));
    EXPECT_EQ(shown("192.0.2.0/24"), "via 10.0.1.9 ");
    settle();
    EXPECT_EQ(shared.groups.in_use(), groups);
    EXPECT_EQ(shared.dsts.in_use(), dsts + 1);
    expect_ok(engine->add_route(ns(), request, RouteMode::kReplace));
    expect_ok(engine->delete_route(ns(), request));
    settle();
    EXPECT_EQ(shared.groups.in_use(), groups);
    EXPECT_EQ(shared.dsts.in_use(), dsts);
}

TEST_F(MultipathRoutes, Check_69_RefusedOnesLeaveEverything) {
    add(over_legs("192.0.2.0/24", {leg("10.0.0.2"), leg("10.0.1.2")}));
    expect_ok(engine->add_vrf(ns(), "red", 100));
    struct Case {
        std::string name;
        RouteRequest request;
        RouteMode mode;
        std::string want;
    };
    auto with_via = over_legs("198.51.100.0/24", {leg("10.0.0.2"), leg("10.0.1.2")});
    with_via.via = ip("10.0.0.3");
    auto with_type = over_legs("198.51.100.0/24", {leg("10.0.0.2"), leg("10.0.1.2")});
    with_type.type = "blackhole";
    const std::vector<Case> cases{
        {"twice",
         over_legs("192.0.2.0/24", {leg("10.0.0.2"), leg("10.0.1.3")}),
         RouteMode::kAdd,
         "exists"},
        {"first leg wrong",
         over_legs("192.0.2.0/24", {leg("10.9.0.2"), leg("10.0.1.2")}),
         RouteMode::kReplace,
         "invalid"},
        {"second leg wrong",
         over_legs("192.0.2.0/24", {leg("10.0.0.2"), leg("10.0.1.1")}),
         RouteMode::kReplace,
         "invalid"},
        {"one leg twice",
         over_legs("198.51.100.0/24", {leg("10.0.0.2"), leg("10.0.0.2", 2)}),
         RouteMode::kAdd,
         "invalid"},
        {"a VRF",
         over_legs("198.51.100.0/24", {leg("10.0.0.2"), {.via = {}, .dev = "red"}}),
         RouteMode::kAdd,
         "invalid"},
        {"IPv4 gateway of IPv6",
         over_legs("2001:db8::/32", {leg("fd00::2"), leg("10.0.0.2")}),
         RouteMode::kAdd,
         "invalid"},
        {"via beside", with_via, RouteMode::kAdd, "invalid"},
        {"type beside", with_type, RouteMode::kAdd, "invalid"},
    };
    const std::string before = dump_all();
    const std::size_t groups = shared.groups.in_use();
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        EXPECT_EQ(code(engine->add_route(ns(), c.request, c.mode)), c.want);
        settle();
        EXPECT_EQ(dump_all(), before);
        EXPECT_EQ(shared.groups.in_use(), groups);
    }
}

TEST_F(MultipathRoutes, Check_72_WhatADeleteNames) {
    const auto request = over_legs("192.0.2.0/24", {leg("10.0.0.2"), leg("10.0.1.2", 3)});
    struct Case {
        std::string name;
        RouteRequest request;
        std::string want;
    };
    auto by_via = via("192.0.2.0/24", "10.0.0.2");
    RouteRequest any;
    any.prefix = prefix("192.0.2.0/24");
    const std::vector<Case> cases{
        {"another weight",
         over_legs("192.0.2.0/24", {leg("10.0.0.2"), leg("10.0.1.2")}),
         "not_found"},
        {"one of them", over_legs("192.0.2.0/24", {leg("10.0.0.2")}), "not_found"},
        {"a gateway", by_via, "not_found"},
        {"a next-hop object", over_object("192.0.2.0/24", 1), "not_found"},
        {"in another order",
         over_legs("192.0.2.0/24", {leg("10.0.1.2", 3), leg("10.0.0.2")}),
         "fine"},
        {"as it is", request, "fine"},
        {"the prefix alone", any, "fine"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        expect_ok(engine->add_route(ns(), request, RouteMode::kReplace));
        EXPECT_EQ(code(engine->delete_route(ns(), c.request)), c.want);
    }
}

TEST_F(MultipathRoutes, Check_47_AScopeIsWiderThanThatOfTheNextHop) {
    nexthop(1, over("10.0.0.2"));
    nexthop(2, dev("p1"));
    nexthop(10, group({{1, 1}, {2, 1}}));
    auto on_dev = typed("192.0.2.0/24", "unicast");
    on_dev.dev = "p1";
    struct Case {
        std::string name;
        RouteRequest request;
        std::string global, link, host;
    };
    const std::vector<Case> cases{
        {"gateway", via("192.0.2.0/24", "10.0.1.2"), "fine", "invalid", "invalid"},
        {"netdev", on_dev, "fine", "fine", "invalid"},
        {"local", typed("192.0.2.0/24", "local"), "fine", "fine", "fine"},
        {"blackhole", typed("192.0.2.0/24", "blackhole"), "fine", "fine", "fine"},
        {"object over a gateway", over_object("192.0.2.0/24", 1), "fine", "invalid", "invalid"},
        {"object over a netdev", over_object("192.0.2.0/24", 2), "fine", "fine", "invalid"},
        {"group", over_object("192.0.2.0/24", 10), "fine", "invalid", "invalid"},
        {"legs",
         over_legs("192.0.2.0/24", {leg("10.0.0.2"), leg("10.0.1.2")}),
         "fine",
         "invalid",
         "invalid"},
        {"IPv6", via("2001:db8::/32", "fd00::2"), "fine", "fine", "fine"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        for (const auto& [scope, want] : {std::pair{RouteScope::kGlobal, c.global},
                                          {RouteScope::kLink, c.link},
                                          {RouteScope::kHost, c.host}}) {
            auto request = c.request;
            request.scope = scope;
            EXPECT_EQ(code(engine->add_route(ns(), request, RouteMode::kReplace)), want);
        }
    }
}

TEST_F(MultipathRoutes, Check_53_ProtocolsAreShownAndFlushed) {
    const auto with = [&](std::string_view to, std::uint8_t protocol) {
        auto route = via(to, "10.0.1.2");
        route.protocol = protocol;
        return route;
    };
    add(with("192.0.2.0/24", 0));
    add(with("198.51.100.0/24", 186));
    add(with("203.0.113.0/24", 186));
    const auto of = [&](std::string_view to) {
        std::string name = "none";
        engine->for_each_route(ns(), config::kMainTable, [&](const RouteInfo& route) {
            name = route.prefix == prefix(to) ? protocol_name(route.protocol) : name;
        });
        return name;
    };
    EXPECT_EQ(of("192.0.2.0/24"), "boot");
    EXPECT_EQ(of("198.51.100.0/24"), "bgp");
    EXPECT_EQ(of("10.0.0.0/24"), "kernel");
    EXPECT_EQ(code(engine->delete_route(ns(), with("192.0.2.0/24", 186))), "not_found");
    expect_ok(engine->add_route(ns(), with("203.0.113.0/24", 77), RouteMode::kReplace));
    EXPECT_EQ(of("203.0.113.0/24"), "77") << "over the same next hop as before";
    EXPECT_EQ(removed(engine->flush_routes(ns(), {RouteOwner::kCli, 186})), 1U);
    EXPECT_EQ(of("198.51.100.0/24"), "none");
    EXPECT_EQ(removed(engine->flush_routes(ns(), RouteOwner::kCli)), 2U);
}

}  // namespace
}  // namespace sluice::control::test
