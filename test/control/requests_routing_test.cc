// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "requests_fixture.h"

namespace sluice::control {
namespace {

TEST_F(RequestsTest, RoutesOfOtherTables) {
    const net::IpPrefix to = prefix("10.0.0.1/32");
    controller_.vrfs_ = {{"blue", 100, {}}};
    controller_.routes_[7][to] = {
        .prefix = to, .type = "local", .via = {}, .dev = "blue", .table = 7};
    controller_.routes_[100][to] = {
        .prefix = to, .type = "unicast", .via = {}, .dev = "", .nexthop = 3, .table = 100};
    controller_.routes_[config::kMainTable][to] = {
        .prefix = to, .type = "local", .via = {}, .dev = "p0"};
    EXPECT_EQ(result("route", "show", R"({"table":7})").size(), 1U) << "local ones, too";
    EXPECT_EQ(result("route", "show", R"({"vrf":"blue"})"),
              result("route", "show", R"({"table":100})"));
    EXPECT_EQ(result("route", "show", R"({"table":100})")[0]["nexthop"], 3);
    const TestJson all = result("route", "show", R"({"table":"all"})");
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0]["table"], 7);
    EXPECT_EQ(all[1]["table"], 100);
    EXPECT_EQ(result("route", "show", R"({"table":9})"), TestJson::array());
    EXPECT_EQ(in_netns("empty", "route", "show", R"({"table":"all"})"), TestJson::array());

    EXPECT_CALL(controller_,
                add_route("default",
                          AllOf(Field(&RouteRequest::table, 100U),
                                Field(&RouteRequest::nexthop, std::optional(3U))),
                          RouteMode::kAdd))
        .WillOnce(Return(Result<void>{}));
    result("route", "add", R"({"prefix":"10.9.0.0/16","nexthop":3,"vrf":"blue"})");
    EXPECT_CALL(controller_, delete_route("default", Field(&RouteRequest::table, 7U)))
        .WillOnce(Return(Result<void>{}));
    result("route", "del", R"({"prefix":"10.9.0.0/16","table":7})");
}

TEST_F(RequestsTest, Check_60_SeveralNextHopsOfARoute) {
    const auto legs = [](std::vector<std::string> want) {
        return testing::ResultOf(
            [](const RouteRequest& route) {
                std::vector<std::string> all;
                for (const RouteLeg& leg : route.legs) {
                    all.push_back(fmt::format("{} {} {} {}",
                                              leg.via ? leg.via->to_string() : "-",
                                              leg.dev,
                                              leg.weight,
                                              leg.on_link));
                }
                return all;
            },
            testing::ContainerEq(std::move(want)));
    };
    EXPECT_CALL(controller_,
                add_route("default",
                          AllOf(legs({"10.0.0.2  1 false", "10.0.1.2 p1 3 true", "- p1 1 false"}),
                                Field(&RouteRequest::mtu, 1400)),
                          RouteMode::kAdd))
        .WillOnce(Return(Result<void>{}));
    result("route",
           "add",
           R"({"prefix":"10.0.0.0/8","mtu":1400,"nexthops":[{"via":"10.0.0.2"},)"
           R"({"via":"10.0.1.2","dev":"p1","weight":3,"on_link":true},{"dev":"p1"}]})");
    // One of several is a next hop like any other.
    EXPECT_CALL(
        controller_,
        delete_route("default",
                     AllOf(legs({}), Field(&RouteRequest::via, std::optional(ip("10.0.0.2"))))))
        .WillOnce(Return(Result<void>{}));
    result("route", "del", R"({"prefix":"10.0.0.0/8","nexthops":[{"via":"10.0.0.2","weight":9}]})");
    controller_.routes_[config::kMainTable][prefix("10.0.0.0/8")] = {
        .prefix = prefix("10.0.0.0/8"),
        .type = "unicast",
        .via = {},
        .dev = "",
        .legs = {{.via = ip("10.0.0.2"), .dev = "p0", .active = true},
                 {.via = {}, .dev = "p1", .weight = 3}}};
    EXPECT_EQ(result("route", "show")[0]["nexthops"].dump(),
              R"([{"via":"10.0.0.2","dev":"p0","weight":1,"on_link":false,"active":true},)"
              R"({"via":null,"dev":"p1","weight":3,"on_link":false,"active":false}])");
}

TEST_F(RequestsTest, Check_47_53_ScopeAndProtocolOfARoute) {
    EXPECT_CALL(controller_,
                add_route("default",
                          AllOf(Field(&RouteRequest::scope, std::optional(RouteScope::kLink)),
                                Field(&RouteRequest::protocol, 186)),
                          _))
        .WillOnce(Return(Result<void>{}));
    result("route", "add", R"({"prefix":"10.0.0.0/8","dev":"p0","scope":"link","protocol":"bgp"})");
    EXPECT_CALL(controller_, flush_routes("default", RouteFilter(RouteOwner::kCli, 77)))
        .WillOnce(Return(flushed(5)));
    EXPECT_EQ(result("route", "flush", R"({"protocol":77})").dump(), R"({"removed":5})");
}

TEST_F(RequestsTest, AFlushIsAnsweredWhenItIsDone) {
    auto gone = std::make_shared<std::size_t>(1);
    EXPECT_CALL(controller_, flush_routes(_, _)).WillOnce(Return(Flush{9, gone}));
    controller_.unsettled_ = {9};
    Reply reply = requests_.handle(R"({"object":"route","command":"flush"})", false);
    ASSERT_TRUE(reply.ready);
    EXPECT_FALSE(reply.ready());
    *gone = 200'000;
    controller_.unsettled_.clear();
    EXPECT_TRUE(reply.ready());
    while (reply.more && reply.more(reply.text)) {
    }
    EXPECT_EQ(reply.text, R"({"id":null,"ok":true,"result":{"removed":200000}})");
}

TEST_F(RequestsTest, Check_72_AnIpv4RouteMayHaveAnIpv6Gateway) {
    EXPECT_CALL(controller_,
                add_route("default", Field(&RouteRequest::via, std::optional(ip("fe80::1"))), _))
        .WillOnce(Return(Result<void>{}));
    result("route", "add", R"({"prefix":"10.0.0.0/8","via":"fe80::1","dev":"p0"})");
}

TEST_F(RequestsTest, Check_91_ExceptionsAreListedAndFlushed) {
    controller_.exceptions_ = {{.destination = ip("192.0.2.9"),
                                .domain = "",
                                .dev = "p1",
                                .via = std::nullopt,
                                .mtu = 1300,
                                .expires_s = 599},
                               {.destination = ip("fd00::9"),
                                .domain = "blue",
                                .dev = "p1",
                                .via = ip("fe80::2"),
                                .mtu = 0,
                                .expires_s = 1}};
    EXPECT_EQ(result("route", "exceptions").dump(),
              R"([{"destination":"192.0.2.9","family":"ipv4","vrf":null,"dev":"p1","via":null,)"
              R"("mtu":1300,"expires_s":599},)"
              R"({"destination":"fd00::9","family":"ipv6","vrf":"blue","dev":"p1",)"
              R"("via":"fe80::2","mtu":null,"expires_s":1}])");
    EXPECT_EQ(result("route", "exceptions", R"({"family":"ipv6"})").size(), 1U);
    EXPECT_CALL(controller_, flush_exceptions("empty")).WillOnce(Return(flushed(2)));
    EXPECT_EQ(in_netns("empty", "route", "flush_exceptions").dump(), R"({"removed":2})");
}

TEST_F(RequestsTest, EveryChangeGoesToItsNetns) {
    const std::string red = "red";
    EXPECT_CALL(controller_, change_link(red, "p0", _)).WillOnce(Return(Result<void>{}));
    in_netns(red, "link", "set", R"({"name":"p0","up":true})");
    EXPECT_CALL(controller_, add_port(red, "p1", _)).WillOnce(Return(Result<void>{}));
    in_netns(red, "link", "add", R"({"name":"p1","device":"net_null0"})");
    EXPECT_CALL(controller_, add_vlan(red, "v", _)).WillOnce(Return(Result<void>{}));
    in_netns(red, "link", "add", R"({"name":"v","link":"p1","vlan_id":1,"mtu":1500})");
    EXPECT_CALL(controller_, add_vrf(red, "blue", 100)).WillOnce(Return(Result<void>{}));
    in_netns(red, "link", "add", R"({"name":"blue","table":100})");
    EXPECT_CALL(controller_, delete_netdevs(red, _)).WillOnce(Return(Result<Ticket>(1)));
    in_netns(red, "link", "del", R"({"names":["p1"]})");
    EXPECT_CALL(controller_, move_link(red, "p0", "default")).WillOnce(Return(Result<Ticket>(1)));
    in_netns(red, "link", "set", R"({"name":"p0","netns":"default"})");
    EXPECT_CALL(controller_, add_address(red, "p0", _)).WillOnce(Return(Result<void>{}));
    in_netns(red, "addr", "add", R"({"dev":"p0","address":"10.0.0.1/24"})");
    EXPECT_CALL(controller_, delete_address(red, "p0", _)).WillOnce(Return(Result<void>{}));
    in_netns(red, "addr", "del", R"({"dev":"p0","address":"10.0.0.1/24"})");
    EXPECT_CALL(controller_, add_route(red, _, RouteMode::kReplace))
        .WillOnce(Return(Result<void>{}));
    in_netns(red, "route", "replace", R"({"prefix":"default","dev":"p0"})");
    EXPECT_CALL(controller_, delete_route(red, _)).WillOnce(Return(Result<void>{}));
    in_netns(red, "route", "del", R"({"prefix":"default"})");
    EXPECT_CALL(controller_, flush_routes(red, RouteFilter(RouteOwner::kCli)))
        .WillOnce(Return(flushed(0)));
    in_netns(red, "route", "flush");
    EXPECT_CALL(controller_, delete_nexthop(red, 4)).WillOnce(Return(Result<void>{}));
    in_netns(red, "nexthop", "del", R"({"id":4})");
    EXPECT_CALL(controller_, delete_rule(red, _)).WillOnce(Return(Result<void>{}));
    in_netns(red, "rule", "del", R"({"priority":4})");
    EXPECT_CALL(controller_, add_neighbor(red, "p0", _, _)).WillOnce(Return(Result<void>{}));
    in_netns(
        red, "neigh", "add", R"({"dev":"p0","address":"10.0.0.2","lladdr":"02:00:00:00:00:02"})");
    EXPECT_CALL(controller_, delete_neighbor(red, "p0", _)).WillOnce(Return(Result<void>{}));
    in_netns(red, "neigh", "del", R"({"dev":"p0","address":"10.0.0.2"})");
    EXPECT_CALL(controller_, flush_neighbors(red, "")).WillOnce(Return(flushed(0)));
    in_netns(red, "neigh", "flush");
}

TEST_F(RequestsTest, LinkSettings) {
    EXPECT_CALL(controller_,
                change_link("default",
                            "p0",
                            AllOf(Field(&LinkChange::vrf, std::optional<std::string>("")),
                                  Field(&LinkChange::forwarding, std::optional(false)),
                                  Field(&LinkChange::send_redirects, std::optional(true)),
                                  Field(&LinkChange::source_validation,
                                        std::optional(config::SourceValidation::kLoose)),
                                  Field(&LinkChange::route_localnet, std::optional(true)),
                                  Field(&LinkChange::bc_forwarding, std::optional(true)),
                                  Field(&LinkChange::mark, std::optional<std::uint32_t>(16)))))
        .WillOnce(Return(Result<void>{}));
    result("link",
           "set",
           R"({"name":"p0","vrf":"","forwarding":false,"send_redirects":true,)"
           R"("source_validation":"loose","route_localnet":true,"bc_forwarding":true,"mark":16})");
}

TEST_F(RequestsTest, NetnsAndVrfs) {
    EXPECT_CALL(controller_, add_netns("red")).WillOnce(Return(Result<void>{}));
    result("netns", "add", R"({"name":"red"})");
    EXPECT_CALL(controller_, delete_netns("red")).WillOnce(Return(Result<Ticket>(1)));
    EXPECT_EQ(result("netns", "del", R"({"name":"red"})"), nullptr);
    controller_.netns_ = {{.name = "default",
                           .netdevs = 3,
                           .routes4 = 4,
                           .routes6 = 5,
                           .generation4 = 6,
                           .generation6 = 18446744073709551615U}};
    EXPECT_EQ(result("netns", "show").dump(),
              R"([{"name":"default","netdevs":3,"ipv4_routes":4,"ipv6_routes":5,)"
              R"("ipv4_generation":6,"ipv6_generation":18446744073709551615}])");
    controller_.vrfs_ = {{"blue", 100, {"p0", "p1"}}};
    EXPECT_EQ(result("vrf", "show").dump(),
              R"([{"name":"blue","table":100,"interfaces":["p0","p1"]}])");
}

TEST_F(RequestsTest, NextHopChanges) {
    struct Case {
        const char* name;
        const char* args;
        config::NextHop want;
    };
    const auto hop = [](auto set) {
        config::NextHop made;
        set(made);
        return made;
    };
    const std::vector<Case> cases{
        {"gateway",
         R"({"id":5,"via":"10.0.1.2","dev":"p1","on_link":true})",
         hop([](config::NextHop& h) {
             h.via = ip("10.0.1.2");
             h.dev = "p1";
             h.on_link = true;
         })},
        {"gateway alone", R"({"id":5,"via":"fe80::1"})", hop([](config::NextHop& h) {
             h.via = ip("fe80::1");
         })},
        {"device", R"({"id":5,"dev":"p1"})", hop([](config::NextHop& h) { h.dev = "p1"; })},
        {"blackhole", R"({"id":5,"blackhole":true})", hop([](config::NextHop& h) {
             h.blackhole = true;
         })},
        {"group", R"({"id":5,"group":[{"id":1},{"id":2,"weight":3}]})", hop([](config::NextHop& h) {
             h.group = {{1, 1}, {2, 3}};
         })},
        {"resilient",
         R"({"id":5,"group":[{"id":1}],"resilient":true,"buckets":32,"idle_timer_ms":0})",
         hop([](config::NextHop& h) {
             h.group = {{1, 1}};
             h.resilient.emplace().buckets = 32;
             h.resilient->idle_timer = std::chrono::milliseconds(0);
         })},
        {"resilient as usual",
         R"({"id":5,"group":[{"id":1}],"resilient":true})",
         hop([](config::NextHop& h) {
             h.group = {{1, 1}};
             h.resilient.emplace();
         })},
    };
    for (const Case& row : cases) {
        for (const bool replace : {false, true}) {
            EXPECT_CALL(controller_, add_nexthop("default", 5, row.want, replace, 0))
                .WillOnce(Return(Result<void>{}));
            result("nexthop", replace ? "replace" : "add", row.args);
            EXPECT_TRUE(testing::Mock::VerifyAndClearExpectations(&controller_)) << row.name;
        }
    }
}

TEST_F(RequestsTest, Check_53_NextHopsHaveAProtocolToBeFlushedBy) {
    config::NextHop blackhole;
    blackhole.blackhole = true;
    EXPECT_CALL(controller_, add_nexthop("default", 5, blackhole, false, 186))
        .WillOnce(Return(Result<void>{}));
    result("nexthop", "add", R"({"id":5,"blackhole":true,"protocol":"bgp"})");
    EXPECT_CALL(controller_, flush_nexthops("default", RouteFilter(RouteOwner::kCli, 186)))
        .WillOnce(Return(Result<std::size_t>(3)));
    EXPECT_EQ(result("nexthop", "flush", R"({"protocol":"bgp"})").dump(), R"({"removed":3})");
    EXPECT_CALL(controller_, flush_nexthops("default", RouteFilter(RouteOwner::kCli)))
        .WillOnce(Return(Result<std::size_t>(0)));
    result("nexthop", "flush");
    NextHopInfo info;
    info.id = 5;
    info.protocol = 186;
    controller_.nexthops_ = {info};
    EXPECT_EQ(result("nexthop", "show", R"({"protocol":"bgp"})")[0]["protocol"], "bgp");
    EXPECT_TRUE(result("nexthop", "show", R"({"protocol":"boot"})").empty());
}

TEST_F(RequestsTest, Check_58_NextHopShowHasItsCounters) {
    NextHopInfo gateway;
    gateway.id = 1;
    gateway.hop.via = ip("10.0.1.2");
    gateway.hop.dev = "p1";
    gateway.active = true;
    gateway.routes = 2;
    gateway.packets = 30;
    NextHopInfo group;
    group.id = 10;
    group.owner = RouteOwner::kFile;
    group.hop.group = {{1, 3}};
    group.hop.resilient = config::ResilientGroup{};
    group.members = {{.id = 1, .weight = 3, .active = true, .buckets = 128, .packets = 20}};
    controller_.nexthops_ = {gateway, group};
    EXPECT_EQ(result("nexthop", "show").dump(),
              R"([{"id":1,"type":"gateway","via":"10.0.1.2","dev":"p1","on_link":false,)"
              R"("group":null,"resilient":false,"buckets":null,"idle_timer_ms":null,)"
              R"("owner":"cli","protocol":"boot","active":true,"routes":2,"packets":30},)"
              R"({"id":10,"type":"group","via":null,"dev":null,"on_link":false,)"
              R"("group":[{"id":1,"weight":3,"active":true,"buckets":128,"packets":20}],)"
              R"("resilient":true,"buckets":128,"idle_timer_ms":120000,)"
              R"("owner":"file","protocol":"static","active":false,"routes":0,"packets":0}])");
    EXPECT_EQ(result("nexthop", "show", R"({"id":10})")[0]["id"], 10);
}

TEST_F(RequestsTest, Check_77_RuleChanges) {
    struct Case {
        const char* name;
        const char* args;
        config::Rule want;
    };
    using config::RuleAction;
    const auto rule = [](auto set) {
        config::Rule made;
        made.priority = 100;
        set(made);
        return made;
    };
    const std::vector<Case> cases{
        {"everything",
         R"({"priority":100,"from":"10.0.0.0/8","to":"192.0.2.1","iif":"p0","dscp":8,"mark":16,)"
         R"("protocol":"udp","source_ports":[1000,2000],"destination_ports":53,"table":100,)"
         R"("suppress_prefixlength":0})",
         rule([](config::Rule& r) {
             r.from = prefix("10.0.0.0/8");
             r.to = prefix("192.0.2.1/32");
             r.iif = "p0";
             r.dscp = 8;
             r.mark = 16;
             r.protocol = 17;
             r.source_ports = {1000, 2000};
             r.destination_ports = {53, 53};
             r.table = 100;
             r.suppress_prefixlength = 0;
         })},
        {"family of the prefix",
         R"({"priority":100,"from":"fd00::/8","action":"prohibit"})",
         rule([](config::Rule& r) {
             r.family = net::Family::kIpv6;
             r.from = prefix("fd00::/8");
             r.action = RuleAction::kProhibit;
         })},
        {"family said",
         R"({"priority":100,"family":"ipv6","protocol":58,"from":"all","table":"main"})",
         rule([](config::Rule& r) {
             r.family = net::Family::kIpv6;
             r.protocol = 58;
         })},
        {"mark", R"({"priority":100,"set_mark":5})", rule([](config::Rule& r) {
             r.action = RuleAction::kSetMark;
             r.set_mark = 5;
         })},
        {"vrf", R"({"priority":100,"vrf":"blue"})", rule([](config::Rule& r) { r.table = 100; })},
    };
    controller_.vrfs_ = {{"blue", 100, {}}};
    for (const Case& row : cases) {
        EXPECT_CALL(controller_, add_rule("default", row.want)).WillOnce(Return(Result<void>{}));
        result("rule", "add", row.args);
        EXPECT_CALL(controller_, delete_rule("default", row.want)).WillOnce(Return(Result<void>{}));
        result("rule", "del", row.args);
        EXPECT_TRUE(testing::Mock::VerifyAndClearExpectations(&controller_)) << row.name;
    }
    config::Rule bare;
    bare.priority = 7;
    EXPECT_CALL(controller_, delete_rule("default", bare)).WillOnce(Return(Result<void>{}));
    result("rule", "del", R"({"priority":7})");
}

TEST_F(RequestsTest, RuleShow) {
    config::Rule rule;
    rule.priority = 100;
    rule.from = prefix("10.0.0.0/8");
    rule.source_ports = {1000, 2000};
    rule.table = 100;
    config::Rule mark;
    mark.family = net::Family::kIpv6;
    mark.action = config::RuleAction::kSetMark;
    mark.set_mark = 5;
    controller_.rules_ = {{.rule = rule, .owner = RouteOwner::kFile}, {.rule = mark}};
    EXPECT_EQ(result("rule", "show").dump(),
              R"([{"priority":100,"family":"ipv4","from":"10.0.0.0/8","to":null,"iif":null,)"
              R"("dscp":null,"mark":null,"protocol":null,"source_ports":[1000,2000],)"
              R"("destination_ports":null,"action":"table","table":100,)"
              R"("suppress_prefixlength":null,"set_mark":null,"owner":"file"},)"
              R"({"priority":0,"family":"ipv6","from":null,"to":null,"iif":null,"dscp":null,)"
              R"("mark":null,"protocol":null,"source_ports":null,"destination_ports":null,)"
              R"("action":"set-mark","table":null,"suppress_prefixlength":null,"set_mark":5,)"
              R"("owner":"cli"}])");
    EXPECT_EQ(result("rule", "show", R"({"family":"ipv6"})").size(), 1U);
}

TEST_F(RequestsTest, C_50_CacheModesAndFlush) {
    for (const auto& [word, mode] :
         std::vector<std::pair<const char*, config::CacheMode>>{{"auto", config::CacheMode::kAuto},
                                                                {"on", config::CacheMode::kOn},
                                                                {"off", config::CacheMode::kOff}}) {
        EXPECT_CALL(controller_, set_cache_mode(mode));
        result("cache", "set", fmt::format(R"({{"mode":"{}"}})", word));
        controller_.cache_.mode = mode;
        EXPECT_EQ(result("cache", "show")["mode"], word);
    }
    EXPECT_CALL(controller_, flush_cache());
    EXPECT_EQ(result("cache", "flush"), nullptr);
}

TEST_F(RequestsTest, C_40_CacheShowHasCountersPerWorkerAndFamilyAndWhatBypasses) {
    controller_.cache_ = {.entries = 512, .bypassing = {"red"}};
    controller_.workers_.resize(1);
    controller_.workers_[0].counters.caches[1] = {.hits = 2,
                                                  .misses = 1,
                                                  .stale = 1,
                                                  .inserts = 3,
                                                  .bypassed = 4,
                                                  .source_hits = 5,
                                                  .source_misses = 6};
    EXPECT_EQ(result("cache", "show").dump(),
              R"({"mode":"auto","entries":512,"bypassing":["red"],"workers":[)"
              R"({"worker":0,"family":"ipv4","hits":0,"misses":0,"stale":0,"inserts":0,)"
              R"("bypassed":0,"hit_rate":null,"source_hits":0,"source_misses":0},)"
              R"({"worker":0,"family":"ipv6","hits":2,"misses":1,"stale":1,"inserts":3,)"
              R"("bypassed":4,"hit_rate":0.6667,"source_hits":5,"source_misses":6}]})");
}

TEST_F(RequestsTest, U_09_UncachedShowSaysWhatDrains) {
    controller_.uncached_ = {{.worker = 1,
                              .netns = "red",
                              .netdev = "p0",
                              .family = net::Family::kIpv6,
                              .dsts = 80'000}};
    controller_.draining_ = {
        {.id = NetdevId{9}, .name = "p0.9", .dsts = 3, .held = 1, .since_ms = 250}};
    EXPECT_EQ(result("uncached", "show").dump(),
              R"({"draining":[{"netdev":"p0.9","id":9,"dsts":3,"held":1,"since_ms":250}],)"
              R"("netdevs":[{"worker":1,"netns":"red","netdev":"p0","family":"ipv6",)"
              R"("dsts":80000}]})");
}

struct Waiting {
    const char* name;
    std::string line;
};

class RequestsWait : public RequestsTest, public testing::WithParamInterface<Waiting> {};

TEST_P(RequestsWait, M_03_TheAnswerComesWhenNothingIsUnderWay) {
    constexpr Ticket kTicket = 77;
    ON_CALL(controller_, delete_netdevs(_, _)).WillByDefault(Return(Result<Ticket>(kTicket)));
    ON_CALL(controller_, move_link(_, _, _)).WillByDefault(Return(Result<Ticket>(kTicket)));
    ON_CALL(controller_, delete_netns(_)).WillByDefault(Return(Result<Ticket>(kTicket)));
    controller_.unsettled_ = {kTicket};
    EXPECT_CALL(controller_, delete_netdevs(_, _)).Times(testing::AtMost(1));
    EXPECT_CALL(controller_, move_link(_, _, _)).Times(testing::AtMost(1));
    EXPECT_CALL(controller_, delete_netns(_)).Times(testing::AtMost(1));
    Reply reply = requests_.handle(GetParam().line, false);
    ASSERT_TRUE(reply.ready);
    EXPECT_FALSE(reply.ready());
    controller_.unsettled_.clear();
    EXPECT_TRUE(reply.ready());
    EXPECT_EQ(reply.text, R"({"id":null,"ok":true,"result":null})");
}

INSTANTIATE_TEST_SUITE_P(Tickets,
                         RequestsWait,
                         testing::ValuesIn(std::vector<Waiting>{
                             Waiting{"link_del", request("link", "del", R"({"names":["a"]})")},
                             Waiting{"link_move",
                                     request("link", "set", R"({"name":"a","netns":"b"})")},
                             Waiting{"netns_del", request("netns", "del", R"({"name":"b"})")}}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace sluice::control
