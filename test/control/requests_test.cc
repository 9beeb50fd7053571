// SPDX-License-Identifier: BSD-3-Clause
#include "control/requests.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "control/server.h"
#include "requests_fixture.h"
#include "test_client.h"

namespace sluice::control {
namespace {

TEST_F(RequestsTest, IdComesBackAsItWas) {
    EXPECT_CALL(controller_, flush_routes("default", RouteFilter(RouteOwner::kCli)))
        .WillRepeatedly(Return(flushed(3)));
    for (const std::string_view id : {"1", "-7", "18446744073709551615", "\"a\\u0000b\"", "null"}) {
        const std::string answer =
            raw(fmt::format(R"({{"id":{},"object":"route","command":"flush"}})", id));
        EXPECT_EQ(answer, fmt::format(R"({{"id":{},"ok":true,"result":{{"removed":3}}}})", id));
    }
    EXPECT_EQ(ask(R"({"id":5,"object":"nothing","command":"show"})")["id"], 5);
}

TEST_F(RequestsTest, IfOkSkipsAfterAFailure) {
    EXPECT_CALL(controller_, flush_routes(_, _)).Times(2).WillRepeatedly(Return(flushed(0)));
    const std::string line = R"({"if_ok":true,"object":"route","command":"flush"})";
    EXPECT_EQ(TestJson::parse(raw(line, false))["ok"], true);
    EXPECT_EQ(TestJson::parse(raw(R"({"object":"route","command":"flush"})", true))["ok"], true);
    Reply skipped = requests_.handle(line, true);
    EXPECT_TRUE(skipped.failed) << "what follows is skipped, too";
    EXPECT_NE(skipped.text.find("skipped"), std::string::npos);
}

TEST_F(RequestsTest, TheControllersErrorIsTheAnswer) {
    EXPECT_CALL(controller_, delete_neighbor("default", "p0", ip("10.0.0.2")))
        .WillOnce(Return(fail(ErrorCode::kNotFound, "no neighbor \"x\"\xff")));
    const TestJson answer = ask(request("neigh", "del", R"({"address":"10.0.0.2","dev":"p0"})"));
    EXPECT_EQ(answer["error"]["code"], "not_found");
    EXPECT_EQ(answer["error"]["message"], "no neighbor \"x\"\xef\xbf\xbd");
}

TEST_F(RequestsTest, AThrowingControllerIsAnInternalError) {
    EXPECT_CALL(controller_, flush_routes(_, _)).WillOnce(testing::Throw(std::bad_alloc()));
    EXPECT_EQ(ask(request("route", "flush", "{}"))["error"]["code"], "internal");
}

TEST_F(RequestsTest, LinkChanges) {
    EXPECT_CALL(controller_,
                change_link("default",
                            "p0",
                            AllOf(Field(&LinkChange::up, std::optional(false)),
                                  Field(&LinkChange::mtu, std::optional<std::uint16_t>(9000)),
                                  Field(&LinkChange::mac, std::optional(mac("02:00:00:00:00:09"))),
                                  Field(&LinkChange::promiscuous, std::optional<bool>()))))
        .WillOnce(Return(Result<void>{}));
    EXPECT_EQ(
        result(
            "link",
            "set",
            R"({"name":"p0","up":false,"mtu":9000,"mac":"02:00:00:00:00:09","promiscuous":null})"),
        nullptr);

    config::Port port;
    port.device = "net_tap3,iface=x";
    port.rx_queues = 2;
    port.settings.mtu = 1400;
    EXPECT_CALL(controller_, add_port("default", "p3", port)).WillOnce(Return(Result<void>{}));
    result("link", "add", R"({"name":"p3","device":"net_tap3,iface=x","rx_queues":2,"mtu":1400})");

    controller_.links_ = {link(1, "p0", "port")};
    controller_.links_[0].mtu = 9000;
    config::Vlan vlan;
    vlan.link = "p0";
    vlan.id = 100;
    vlan.settings.mtu = 9000;  // its parent's
    EXPECT_CALL(controller_, add_vlan("default", "p0.100", vlan)).WillOnce(Return(Result<void>{}));
    result("link", "add", R"({"name":"p0.100","link":"p0","vlan_id":100})");

    EXPECT_CALL(controller_, delete_netdevs("default", testing::ElementsAre("a", "b")))
        .WillOnce(Return(Result<Ticket>(1)));
    result("link", "del", R"({"names":["a","b"]})");
}

TEST_F(RequestsTest, AddressAndNeighborChanges) {
    EXPECT_CALL(controller_, add_address("default", "p0", with_length("fd00::1/64")))
        .WillOnce(Return(Result<void>{}));
    result("addr", "add", R"({"address":"fd00::1/64","dev":"p0"})");
    EXPECT_CALL(controller_, delete_address("default", "p0", with_length("10.0.0.1/24")))
        .WillOnce(Return(Result<void>{}));
    result("addr", "del", R"({"address":"10.0.0.1/24","dev":"p0"})");
    EXPECT_CALL(controller_,
                add_neighbor("default", "p0", ip("10.0.0.2"), mac("02:00:00:00:00:02")))
        .WillOnce(Return(Result<void>{}));
    result("neigh", "add", R"({"address":"10.0.0.2","dev":"p0","lladdr":"02:00:00:00:00:02"})");
    EXPECT_CALL(controller_, flush_neighbors("default", "")).WillOnce(Return(flushed(4)));
    EXPECT_EQ(result("neigh", "flush"), TestJson::parse(R"({"removed":4})"));
}

TEST_F(RequestsTest, RouteChanges) {
    const auto wants = [](std::string_view to, std::string_view type) {
        return AllOf(Field(&RouteRequest::prefix, prefix(to)),
                     Field(&RouteRequest::type, std::string(type)),
                     Field(&RouteRequest::owner, RouteOwner::kCli));
    };
    EXPECT_CALL(
        controller_,
        add_route("default",
                  AllOf(wants("10.0.0.0/8", "unicast"),
                        Field(&RouteRequest::via, std::optional(ip("10.0.1.2"))),
                        Field(&RouteRequest::dev, "p1"),
                        Field(&RouteRequest::metric, std::optional<std::uint32_t>(4294967295)),
                        Field(&RouteRequest::mtu, 1400),
                        Field(&RouteRequest::on_link, true)),
                  RouteMode::kAdd))
        .WillOnce(Return(Result<void>{}));
    result("route",
           "add",
           R"({"prefix":"10.0.0.0/8","via":"10.0.1.2","dev":"p1","metric":4294967295,"mtu":1400,)"
           R"("on_link":true,"table":"main"})");
    EXPECT_CALL(controller_,
                add_route("default", wants("10.0.0.0/8", "blackhole"), RouteMode::kReplace))
        .WillOnce(Return(Result<void>{}));
    result("route", "replace", R"({"prefix":"10.0.0.0/8","type":"blackhole","table":254})");
    EXPECT_CALL(controller_,
                delete_route("default",
                             AllOf(wants("10.0.0.0/8", "unicast"),
                                   Field(&RouteRequest::metric, std::optional<std::uint32_t>()))))
        .WillOnce(Return(Result<void>{}));
    result("route", "del", R"({"prefix":"10.0.0.0/8"})");
}

TEST_F(RequestsTest, TheFamilyOfTheDefaultRoute) {
    struct Case {
        const char* name;
        const char* args;
        const char* want;
    };
    for (const Case& row :
         std::vector<Case>{{"family", R"({"prefix":"default","family":"ipv6","dev":"p0"})", "::/0"},
                           {"via", R"({"prefix":"default","via":"fe80::1","dev":"p0"})", "::/0"},
                           {"neither", R"({"prefix":"default","dev":"p0"})", "0.0.0.0/0"}}) {
        EXPECT_CALL(controller_,
                    add_route("default", Field(&RouteRequest::prefix, prefix(row.want)), _))
            .WillOnce(Return(Result<void>{}));
        result("route", "add", row.args);
        testing::Mock::VerifyAndClearExpectations(&controller_);
    }
}

TEST_F(RequestsTest, LinkShowHasEveryKeyOfEveryKind) {
    controller_.links_ = {link(1, "lo", "loopback"),
                          link(2, "p0", "port"),
                          link(3, "p0.7", "vlan"),
                          link(4, "blue", "vrf"),
                          link(5, "p0", "port", "empty")};
    controller_.links_[3].table = 100;
    controller_.links_[1].mac = mac("02:00:00:00:00:01");
    controller_.links_[1].device = "net_tap0";
    controller_.links_[1].driver = "net_tap";
    controller_.links_[1].rx_queues = 2;
    controller_.links_[1].vrf = "blue";
    controller_.links_[1].dsts = 12;
    controller_.links_[1].settings.mark = 7;
    controller_.links_[1].settings.send_redirects = true;
    controller_.links_[1].settings.source_validation = config::SourceValidation::kStrict;
    controller_.links_[1].addresses = {with_length("10.0.0.1/24"), with_length("fd00::1/64")};
    controller_.links_[2].link = "p0";
    controller_.links_[2].vlan_id = 7;
    controller_.counters_[{2, 0}].rx_packets = 5;
    const TestJson rows = result("link", "show");
    ASSERT_EQ(rows.size(), 4U);
    EXPECT_EQ(rows[1].dump(),
              R"({"name":"p0","id":2,"kind":"port","netns":"default","mac":"02:00:00:00:00:01",)"
              R"("mtu":1500,"up":true,"running":false,"forwarding":false,"device":"net_tap0",)"
              R"("driver":"net_tap","rx_queues":2,"speed_mbps":null,"link":null,"vlan_id":null,)"
              R"("vrf":"blue","table":null,"promiscuous":false,"send_redirects":true,)"
              R"("source_validation":"strict","route_localnet":false,"bc_forwarding":false,)"
              R"("mark":7,"dsts":12,"addresses":["10.0.0.1/24","fd00::1/64"],)"
              R"("counters":{"rx_packets":5,"rx_bytes":0,"tx_packets":0,"tx_bytes":0}})");
    for (const TestJson& row : rows) {
        ASSERT_EQ(row.size(), rows[1].size());
        for (const auto& item : row.items()) {
            EXPECT_TRUE(rows[1].contains(item.key())) << item.key();
        }
    }
    EXPECT_EQ(rows[2]["vlan_id"], 7);
    EXPECT_EQ(rows[2]["device"], nullptr);
    EXPECT_EQ(rows[3]["table"], 100);
    EXPECT_EQ(result("link", "show", R"({"all":true})").size(), 5U);
    EXPECT_EQ(in_netns("empty", "link", "show")[0]["id"], 5);
    EXPECT_EQ(in_netns("empty", "link", "show", R"({"name":"p0"})")[0]["id"], 5);
    EXPECT_EQ(result("link", "show", R"({"name":"p0.7"})"), TestJson::array({rows[2]}));
}

TEST_F(RequestsTest, AddressAndNeighborShow) {
    controller_.links_ = {link(1, "p0", "port"), link(2, "p1", "port")};
    controller_.addresses_ = {{"p0", with_length("10.0.0.1/24"), false},
                              {"p0", with_length("fe80::1/64"), true},
                              {"p1", with_length("10.0.1.1/24"), false}};
    EXPECT_EQ(result("addr", "show", R"({"dev":"p0"})").dump(),
              R"([{"dev":"p0","address":"10.0.0.1/24","family":"ipv4","scope":"global"},)"
              R"({"dev":"p0","address":"fe80::1/64","family":"ipv6","scope":"link"}])");
    EXPECT_EQ(result("addr", "show", R"({"family":"ipv4"})").size(), 2U);
    controller_.neighbors_ = {{ip("10.0.0.2"), "p0", mac("02:00:00:00:00:02"), "reachable"},
                              {ip("fd00::2"), "p1", std::nullopt, "incomplete"}};
    EXPECT_EQ(result("neigh", "show", R"({"family":"ipv6"})").dump(),
              R"([{"address":"fd00::2","family":"ipv6","dev":"p1","lladdr":null,)"
              R"("state":"incomplete"}])");
    EXPECT_EQ(result("neigh", "show", R"({"dev":"p0"})")[0]["lladdr"], "02:00:00:00:00:02");
}

TEST_F(RequestsTest, RouteShowAndItsTables) {
    for (const auto& [to, type] :
         std::vector<std::pair<const char*, const char*>>{{"10.0.0.0/24", "unicast"},
                                                          {"10.0.0.1/32", "local"},
                                                          {"10.0.0.255/32", "broadcast"},
                                                          {"192.0.2.0/24", "blackhole"},
                                                          {"fd00::/64", "unicast"}}) {
        controller_.routes_[config::kMainTable][prefix(to)] = {
            .prefix = prefix(to), .type = type, .via = {}, .dev = ""};
    }
    controller_.routes_[config::kMainTable][prefix("10.0.0.0/24")].owner = RouteOwner::kConnected;
    controller_.routes_[config::kMainTable][prefix("10.0.0.0/24")].dev = "p0";
    EXPECT_EQ(result("route", "show").size(), 3U);
    EXPECT_EQ(result("route", "show", R"({"table":"local"})").size(), 2U);
    EXPECT_EQ(result("route", "show", R"({"table":"all"})").size(), 5U);
    EXPECT_EQ(result("route", "show", R"({"table":"all","family":"ipv6"})").size(), 1U);
    EXPECT_EQ(result("route", "show")[0].dump(),
              R"({"prefix":"10.0.0.0/24","family":"ipv4","type":"unicast","via":null,"dev":"p0",)"
              R"("metric":0,"mtu":null,"owner":"connected","on_link":false,"active":false,)"
              R"("table":254,"nexthop":null,"nexthops":null,"protocol":"kernel"})");
    controller_.routes_[config::kMainTable][prefix("192.0.2.0/24")].protocol = 186;
    for (const char* bgp : {R"({"protocol":"bgp"})", R"({"protocol":186})"}) {
        const TestJson rows = result("route", "show", bgp);
        ASSERT_EQ(rows.size(), 1U);
        EXPECT_EQ(rows[0]["protocol"], "bgp");
    }
}

TEST_F(RequestsTest, RouteShowOfManyRoutesHasEachOnceInOrder) {
    constexpr std::uint32_t kRoutes = 10'000;
    for (std::uint32_t i = 0; i < kRoutes; ++i) {
        const net::IpPrefix to = net::Ipv4Prefix::of(net::Ipv4Addr::from_host(i << 8U), 24);
        controller_.routes_[config::kMainTable][to] = {
            .prefix = to, .type = "unicast", .via = {}, .dev = "p0"};
    }
    const TestJson rows = result("route", "show");
    ASSERT_EQ(rows.size(), kRoutes);
    for (std::uint32_t i = 0; i < kRoutes; ++i) {
        ASSERT_EQ(rows[i]["prefix"],
                  net::Ipv4Prefix::of(net::Ipv4Addr::from_host(i << 8U), 24).to_string());
    }
}

TEST_F(RequestsTest, RouteGet) {
    EXPECT_CALL(controller_,
                lookup_route("default",
                             AllOf(Field(&RouteQuery::destination, ip("192.0.2.9")),
                                   Field(&RouteQuery::from, std::optional(ip("10.0.0.9"))),
                                   Field(&RouteQuery::iif, "p0"),
                                   Field(&RouteQuery::dscp, 46),
                                   Field(&RouteQuery::protocol, 17),
                                   Field(&RouteQuery::source_port, 5),
                                   Field(&RouteQuery::destination_port, 53))))
        .WillOnce(Return(RouteLookup{.type = "unicast",
                                     .prefix = prefix("192.0.2.0/24"),
                                     .via = ip("10.0.1.2"),
                                     .dev = "p1",
                                     .nexthop = 7,
                                     .member = 2,
                                     .table = 100,
                                     .source = ip("10.0.1.1"),
                                     .mtu = 1500}));
    EXPECT_EQ(result("route",
                     "get",
                     R"({"address":"192.0.2.9","from":"10.0.0.9","iif":"p0","dscp":46,)"
                     R"("protocol":"udp","source_port":5,"destination_port":53})")
                  .dump(),
              R"({"address":"192.0.2.9","type":"unicast","prefix":"192.0.2.0/24","via":"10.0.1.2",)"
              R"("dev":"p1","source":"10.0.1.1","mtu":1500,"nexthop":7,"member":2,)"
              R"("table":100})");
    EXPECT_CALL(controller_, lookup_route("empty", Field(&RouteQuery::destination, ip("fd00::9"))))
        .WillOnce(
            Return(RouteLookup{.type = "none", .prefix = {}, .via = {}, .dev = "", .source = {}}));
    EXPECT_EQ(in_netns("empty", "route", "get", R"({"address":"fd00::9"})").dump(),
              R"({"address":"fd00::9","type":"none","prefix":null,"via":null,"dev":null,)"
              R"("source":null,"mtu":null,"nexthop":null,"member":null,"table":null})");
}

TEST_F(RequestsTest, StatsShowBalancesAndNamesDrops) {
    controller_.links_ = {link(1, "lo", "loopback"), link(2, "p0", "port")};
    controller_.workers_.resize(1);
    controller_.pools_ = {{"mbufs", 8192, 512}};
    auto& worker = controller_.counters_[{2, 0}];
    worker.rx_packets = 10;
    worker.forwarded = 5;
    worker.held = 2;
    worker.drops[std::to_underlying(DropReason::kNoRoute)] = 3;
    auto& control = controller_.counters_[{2, 1}];
    control.held = std::uint64_t{0} - 2;  // the control thread took them off
    control.drops[std::to_underlying(DropReason::kNeighborFailed)] = 1;
    const TestJson stats = result("stats", "show");
    ASSERT_EQ(stats["netdevs"].size(), 2U);
    EXPECT_EQ(
        stats["netdevs"][1].dump(),
        R"({"name":"p0","id":2,"netns":"default","rx_packets":10,"rx_bytes":0,"tx_packets":0,"tx_bytes":0,)"
        R"("forwarded":5,"delivered":0,"held":0,"dropped":4,)"
        R"("drops":{"no_route":3,"neighbor_failed":1},)"
        R"("icmp_errors_sent":0,"icmp_errors_suppressed":0,"imbalance":1})");
    EXPECT_EQ(stats["total"]["dropped"], 4);
    EXPECT_EQ(stats["pools"].dump(), R"([{"name":"mbufs","size":8192,"in_use":512}])");
    control.forwarded = 2;
    EXPECT_EQ(result("stats", "show")["total"]["imbalance"], -1);
}

TEST_F(RequestsTest, StatsDropsPerNetdevAndWriter) {
    controller_.links_ = {link(1, "lo", "loopback", "empty"), link(2, "p0", "port")};
    controller_.workers_.resize(2);
    controller_.counters_[{2, 1}].drops[std::to_underlying(DropReason::kTtlExpired)] = 7;
    controller_.counters_[{1, 2}].drops[std::to_underlying(DropReason::kNoBuffer)] = 1;
    EXPECT_EQ(result("stats", "drops").dump(),
              R"([{"netdev":"lo","worker":"control","reason":"no_buffer",)"
              R"("source":"no mbuf for a reply","packets":1,"netns":"empty"},)"
              R"({"netdev":"p0","worker":"1","reason":"ttl_expired",)"
              R"("source":"RFC 1812 5.3.1, RFC 4443 3.3","packets":7,"netns":"default"}])");
    const TestJson one = in_netns("default", "stats", "drops");
    ASSERT_EQ(one.size(), 1U) << "of a netns that is named, else of all";
    EXPECT_EQ(one[0]["netdev"], "p0");
    EXPECT_EQ(in_netns("empty", "stats", "show")["netdevs"].size(), 1U);
    EXPECT_EQ(result("stats", "drops", R"({"dev":"lo"})").size(), 1U);
    EXPECT_EQ(result("stats", "drops", R"({"all":true})").size(), 2 * 3 * (kDropReasons - 1));
}

TEST_F(RequestsTest, StatsWorkers) {
    controller_.workers_.resize(2);
    WorkerInfo& worker = controller_.workers_[1];
    worker.id = WorkerId{1};
    worker.lcore = 3;
    worker.tsc_hz = 1e9;
    worker.counters.packets = 3;
    worker.counters.cycles_busy = 250'000'000;
    worker.counters.cycles_idle = 250'000'000;
    worker.counters.sleep_ns = 500'000'000;
    worker.counters.longest_round = 7'500;
    worker.counters.sampled_packets = 8;
    worker.counters.stage_cycles[std::to_underlying(stats::Stage::kInput)] = 100;
    const TestJson rows = result("stats", "workers");
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0]["cycles_per_packet"], nullptr) << "nothing was measured";
    EXPECT_EQ(rows[0]["stages"]["lookup"], nullptr);
    EXPECT_EQ(rows[1]["worker"], 1);
    EXPECT_EQ(rows[1]["lcore"], 3);
    EXPECT_EQ(rows[1]["busy_percent"], 25.0);
    EXPECT_EQ(rows[1]["cycles_per_packet"], 83333333.33);
    EXPECT_EQ(rows[1]["stages"]["input"], 12.5);
    EXPECT_EQ(rows[1]["sleep_seconds"], 0.5);
    EXPECT_EQ(rows[1]["longest_round_us"], 7.5);
    EXPECT_CALL(controller_, restart_longest_rounds());
    EXPECT_EQ(result("stats", "workers", R"({"reset":true})").size(), 2U);
}

TEST_F(RequestsTest, ConfigAndVersion) {
    EXPECT_CALL(controller_, effective_config()).WillOnce(Return("version: 1\n"));
    EXPECT_EQ(result("config", "show").dump(), R"({"yaml":"version: 1\n"})");
    EXPECT_CALL(controller_, reload(std::optional<std::string>("/etc/a.yaml")))
        .WillOnce(Return(Result<void>{}));
    result("config", "reload", R"({"file":"/etc/a.yaml"})");
    EXPECT_CALL(controller_, reload(std::optional<std::string>()))
        .WillOnce(Return(fail(ErrorCode::kInvalid, "a.yaml:1:1: x\na.yaml:2:1: y")));
    EXPECT_EQ(ask(request("config", "reload", "{}"))["error"]["message"],
              "a.yaml:1:1: x\na.yaml:2:1: y");
    const TestJson version = result("version", "show");
    EXPECT_EQ(version["instance"], "demo");
    EXPECT_EQ(version["version"], "1.2.3");
    EXPECT_EQ(version["protocol"], 1);
}

TEST_F(RequestsTest, Check_159_SixtyFourPipelinedRequestsAreAnsweredInOrder) {
    for (std::uint32_t i = 0; i < 1000; ++i) {
        const net::IpPrefix to = net::Ipv4Prefix::of(net::Ipv4Addr::from_host(i << 8U), 24);
        controller_.routes_[config::kMainTable][to] = {
            .prefix = to, .type = "unicast", .via = {}, .dev = "p0"};
    }
    EXPECT_CALL(controller_, flush_routes(_, _)).WillRepeatedly(Return(flushed(0)));
    const SocketPlace place;
    auto server = Server::listen(
        place.path(),
        [this](std::string_view line, bool after) { return requests_.handle(line, after); },
        Requests::refusal);
    ASSERT_TRUE(server) << server.error().message;
    TestClient client(place.path());
    std::string lines;
    for (int id = 0; id < 64; ++id) {
        // Short answers, errors and long ones that come in slices.
        lines += id % 3 == 0 ? fmt::format(R"({{"id":{},"object":"route","command":"show"}})", id)
                 : id % 3 == 1
                     ? fmt::format(R"({{"id":{},"object":"route","command":"flush"}})", id)
                     : fmt::format(R"({{"id":{},"object":"road","command":"show"}})", id);
        lines += '\n';
    }
    ASSERT_EQ(client.send(lines), lines.size());
    std::string got;
    for (int round = 0; round < 100'000 && std::ranges::count(got, '\n') < 64; ++round) {
        (*server)->run_once();
        got += client.receive();
    }
    std::size_t at = 0;
    for (int id = 0; id < 64; ++id) {
        const std::size_t end = got.find('\n', at);
        ASSERT_NE(end, std::string::npos) << "only " << id << " answers";
        const TestJson answer = TestJson::parse(got.substr(at, end - at));
        EXPECT_EQ(answer["id"], id);
        EXPECT_EQ(answer["ok"], id % 3 != 2);
        at = end + 1;
    }
    EXPECT_EQ(at, got.size());
}

}  // namespace
}  // namespace sluice::control
