// SPDX-License-Identifier: BSD-3-Clause
#include "control/requests.h"

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
#include "mock_controller.h"
#include "test_client.h"

namespace sluice::control {
namespace {

using testing::_;
using testing::AllOf;
using testing::Field;
using testing::Return;
using testing::StrictMock;
using Json = nlohmann::ordered_json;

net::IpAddr ip(std::string_view text) {
    return net::IpAddr::parse(text).value();
}
net::IpPrefix prefix(std::string_view text) {
    return net::IpPrefix::parse(text).value();
}
net::InterfaceAddr with_length(std::string_view text) {
    return net::InterfaceAddr::parse(text).value();
}
net::MacAddr mac(std::string_view text) {
    return net::MacAddr::parse(text).value();
}
LinkInfo link(std::uint16_t id, std::string name, std::string kind) {
    LinkInfo info;
    info.id = NetdevId{id};
    info.name = std::move(name);
    info.kind = std::move(kind);
    info.netns = "default";
    info.mtu = 1500;
    info.up = true;
    return info;
}

class RequestsTest : public testing::Test {
protected:
    std::string raw(std::string_view line, bool after_failure = false) {
        Reply reply = requests_.handle(line, after_failure);
        while (reply.more && reply.more(reply.text)) {
        }
        EXPECT_EQ(reply.text.find('\n'), std::string::npos) << "an answer is one line";
        return reply.text;
    }
    Json ask(std::string_view line) { return Json::parse(raw(line)); }
    /// The result of `object command`, which must be fine.
    Json result(std::string_view object, std::string_view command, std::string_view args = "{}") {
        const Json answer = ask(
            fmt::format(R"({{"object":"{}","command":"{}","args":{}}})", object, command, args));
        EXPECT_EQ(answer["ok"], true) << answer;
        return answer["result"];
    }

    StrictMock<MockController> controller_;
    Requests requests_{controller_, {.instance = "demo", .version = "1.2.3"}};
};

struct Refused {
    const char* name;
    std::string line;
    const char* code;
    const char* words;  // in the message
};

class RequestsRefuse : public RequestsTest, public testing::WithParamInterface<Refused> {};

TEST_P(RequestsRefuse, WithOneClearErrorAndNoCall) {
    const Json answer = ask(GetParam().line);
    ASSERT_EQ(answer["ok"], false);
    EXPECT_EQ(answer["error"]["code"], GetParam().code) << answer;
    const std::string message = answer["error"]["message"];
    EXPECT_NE(message.find(GetParam().words), std::string::npos) << message;
    EXPECT_LT(message.size(), 500U);
    EXPECT_FALSE(answer.contains("result"));
}

std::string request(std::string_view object, std::string_view command, std::string_view args) {
    return fmt::format(R"({{"object":"{}","command":"{}","args":{}}})", object, command, args);
}

std::string nested(std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
}

std::string many_keys(int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) {
        text += fmt::format(R"({}"k{}":0)", i == 0 ? "" : ",", i);
    }
    return text + "}";
}

// clang-format off
INSTANTIATE_TEST_SUITE_P(Envelope, RequestsRefuse, testing::Values(
    Refused{"empty", "", "invalid", "not JSON"},
    Refused{"no_json", "route show", "invalid", "not JSON: byte 1"},
    Refused{"cut_off", R"({"object":"route")", "invalid", "not JSON"},
    Refused{"trailing", R"({"object":"route","command":"show"} x)", "invalid", "not JSON"},
    Refused{"no_utf8", "{\"object\":\"\xff\"}", "invalid", "not JSON"},
    Refused{"array", "[]", "invalid", "a request is {"},
    Refused{"number", "7", "invalid", "a request is {"},
    Refused{"deep", nested(100'000), "invalid", "nested deeper than 4"},
    Refused{"deep_args", request("link", "del", R"({"names":[[[1]]]})"), "invalid", "nested deeper than 4"},
    Refused{"deep_in_limit", request("link", "del", R"({"names":[[1]]})"), "invalid", "must be a string"},
    Refused{"many_keys", many_keys(40), "invalid", "more than 32 keys"},
    Refused{"double_key", R"({"object":"route","object":"link","command":"show"})", "invalid", "\"object\" stands there twice"},
    Refused{"double_arg", request("route", "add", R"({"via":"10.0.0.1","via":"10.0.0.2"})"), "invalid", "\"via\" stands there twice"},
    Refused{"unknown_key", R"({"object":"route","command":"show","arg":{}})", "invalid", "unknown key \"arg\""},
    Refused{"no_object", R"({"command":"show"})", "invalid", "object is missing"},
    Refused{"no_command", R"({"object":"route"})", "invalid", "command is missing"},
    Refused{"object_type", R"({"object":1,"command":"show"})", "invalid", "object must be a string"},
    Refused{"args_type", R"({"object":"route","command":"show","args":[]})", "invalid", "args must be an object"},
    Refused{"id_type", R"({"id":[1],"object":"route","command":"show"})", "invalid", "id must be"},
    Refused{"if_ok_type", R"({"if_ok":1,"object":"route","command":"show"})", "invalid", "if_ok must be"},
    Refused{"object", request("rout", "show", "{}"), "invalid", "unknown object \"rout\"; there are link, addr, neigh, route, stats"},
    Refused{"command", request("route", "ad", "{}"), "invalid", "route has no command \"ad\"; it has show, add, replace"},
    Refused{"argument", request("route", "get", R"({"adress":"10.0.0.1"})"), "invalid", "no argument \"adress\"; it has address"},
    Refused{"long_words", request(std::string(10'000, 'x'), "show", "{}"), "invalid", "unknown object"}
), [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(NotBuiltYet, RequestsRefuse, testing::Values(
    Refused{"nexthop", request("nexthop", "show", "{}"), "unsupported", "not built yet: nexthop"},
    Refused{"capture", request("capture", "start", R"({"file":"x"})"), "unsupported", "not built yet: capture"},
    Refused{"netns_of_request", R"({"object":"link","command":"show","netns":"red"})", "unsupported", "not built yet: netns \"red\""},
    Refused{"vrf", request("link", "set", R"({"name":"p0","vrf":"blue"})"), "unsupported", "not built yet: vrf of link set"},
    Refused{"route_nexthop", request("route", "add", R"({"prefix":"10.0.0.0/8","nexthop":1})"), "unsupported", "not built yet: nexthop of route add"},
    Refused{"table", request("route", "show", R"({"table":100})"), "unsupported", "not built yet: table 100"},
    Refused{"get_from", request("route", "get", R"({"address":"10.0.0.1","from":"10.0.0.2"})"), "unsupported", "not built yet: from"},
    Refused{"config_check", request("config", "check", "{}"), "unsupported", "sluice --check FILE"}
), [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(Check_148_ImpossibleInput, RequestsRefuse, testing::Values(
    Refused{"host_bits", request("route", "add", R"({"prefix":"10.0.0.1/8","via":"10.0.0.2"})"), "invalid", "prefix \"10.0.0.1/8\": host bits set; did you mean 10.0.0.0/8?"},
    Refused{"mtu_50", request("link", "set", R"({"name":"p0","mtu":50})"), "invalid", "mtu 50: must be an integer from 68 to 9702"},
    Refused{"mtu_too_big", request("link", "set", R"({"name":"p0","mtu":65536})"), "invalid", "from 68 to 9702"},
    Refused{"mtu_wraps", request("link", "set", R"({"name":"p0","mtu":67036})"), "invalid", "from 68 to 9702"},
    Refused{"mtu_negative", request("link", "set", R"({"name":"p0","mtu":-1500})"), "invalid", "from 68 to 9702"},
    Refused{"mtu_fraction", request("link", "set", R"({"name":"p0","mtu":1500.5})"), "invalid", "must be an integer"},
    Refused{"mtu_huge", request("link", "set", R"({"name":"p0","mtu":184467440737095516150})"), "invalid", "must be an integer"},
    Refused{"mtu_text", request("link", "set", R"({"name":"p0","mtu":"1500"})"), "invalid", "must be an integer"},
    Refused{"multicast_mac", request("link", "set", R"({"name":"p0","mac":"01:00:5e:00:00:01"})"), "invalid", "a multicast address"},
    Refused{"zero_mac", request("link", "set", R"({"name":"p0","mac":"00:00:00:00:00:00"})"), "invalid", "no station's address"},
    Refused{"neighbor_mac", request("neigh", "add", R"({"address":"10.0.0.2","dev":"p0","lladdr":"ff:ff:ff:ff:ff:ff"})"), "invalid", "lladdr \"ff:ff:ff:ff:ff:ff\": a multicast address"},
    Refused{"neighbor_multicast", request("neigh", "add", R"({"address":"224.0.0.1","dev":"p0","lladdr":"02:00:00:00:00:01"})"), "invalid", "a multicast address"},
    Refused{"nothing_to_set", request("link", "set", R"({"name":"p0"})"), "invalid", "nothing to set"},
    Refused{"no_name", request("link", "set", R"({"up":true})"), "invalid", "\"name\" is missing"},
    Refused{"empty_name", request("link", "set", R"({"name":"","up":true})"), "invalid", "must not be empty"},
    Refused{"up_text", request("link", "set", R"({"name":"p0","up":"yes"})"), "invalid", "must be true or false"},
    Refused{"port_and_vlan", request("link", "add", R"({"name":"x","device":"net_null0","link":"p0"})"), "invalid", "takes either device"},
    Refused{"half_a_vlan", request("link", "add", R"({"name":"x","link":"p0"})"), "invalid", "takes either device"},
    Refused{"vlan_4095", request("link", "add", R"({"name":"x","link":"p0","vlan_id":4095})"), "invalid", "vlan_id 4095: must be an integer from 1 to 4094"},
    Refused{"bad_name", request("link", "add", R"({"name":"a b/c","device":"net_null0"})"), "invalid", "name \"a b/c\""},
    Refused{"no_names", request("link", "del", R"({"names":[]})"), "invalid", "names []: must be an array of 1 to 4096 strings"},
    Refused{"name_type", request("link", "del", R"({"names":["a",1]})"), "invalid", "names 1: must be a string"},
    Refused{"no_length", request("addr", "add", R"({"address":"10.0.0.1","dev":"p0"})"), "invalid", "no prefix length"},
    Refused{"multicast_address", request("addr", "add", R"({"address":"ff02::1/64","dev":"p0"})"), "invalid", "a multicast address"},
    Refused{"broadcast_address", request("addr", "add", R"({"address":"255.255.255.255/8","dev":"p0"})"), "invalid", "the broadcast address"},
    Refused{"zero_address", request("addr", "add", R"({"address":"::/64","dev":"p0"})"), "invalid", "no host's address"},
    Refused{"no_dev", request("addr", "add", R"({"address":"10.0.0.1/24"})"), "invalid", "\"dev\" is missing"},
    Refused{"route_without_goal", request("route", "add", R"({"prefix":"10.0.0.0/8"})"), "invalid", "give a gateway (via)"},
    Refused{"route_family", request("route", "add", R"({"prefix":"10.0.0.0/8","via":"fd00::1"})"), "invalid", "of the other family"},
    Refused{"route_type", request("route", "add", R"({"prefix":"10.0.0.0/8","type":"anycast"})"), "invalid", "must be one of unicast, blackhole"},
    Refused{"blackhole_via", request("route", "add", R"({"prefix":"10.0.0.0/8","type":"blackhole","via":"10.0.0.1"})"), "invalid", "has no gateway"},
    Refused{"on_link_alone", request("route", "add", R"({"prefix":"10.0.0.0/8","via":"10.0.0.1","on_link":true})"), "invalid", "on_link is said of a gateway"},
    Refused{"via_multicast", request("route", "add", R"({"prefix":"10.0.0.0/8","via":"224.0.0.1"})"), "invalid", "via \"224.0.0.1\": a multicast address"},
    Refused{"metric_range", request("route", "add", R"({"prefix":"10.0.0.0/8","via":"10.0.0.1","metric":4294967296})"), "invalid", "from 0 to 4294967295"},
    Refused{"family_word", request("route", "show", R"({"family":"inet"})"), "invalid", "must be \"ipv4\" or \"ipv6\""},
    Refused{"family_prefix", request("route", "add", R"({"prefix":"10.0.0.0/8","family":"ipv6","via":"10.0.0.1"})"), "invalid", "not of family ipv6"},
    Refused{"table_word", request("route", "show", R"({"table":"mane"})"), "invalid", "must be main, local or all"},
    Refused{"get_garbage", request("route", "get", R"({"address":"10.0.0.256"})"), "invalid", "not an IPv4 address"},
    Refused{"show_absent", request("link", "show", R"({"name":"p9"})"), "not_found", "link p9 does not exist"},
    Refused{"addr_absent", request("addr", "show", R"({"dev":"p9"})"), "not_found", "link p9 does not exist"},
    Refused{"neigh_absent", request("neigh", "show", R"({"dev":"p9"})"), "not_found", "link p9 does not exist"},
    Refused{"drops_absent", request("stats", "drops", R"({"dev":"p9"})"), "not_found", "link p9 does not exist"},
    Refused{"relative_file", request("config", "reload", R"({"file":"a.yaml"})"), "invalid", "must be an absolute path"}
), [](const auto& row) { return row.param.name; });
// clang-format on

TEST_F(RequestsTest, IdComesBackAsItWas) {
    EXPECT_CALL(controller_, flush_routes(RouteOwner::kCli)).WillRepeatedly(Return(3));
    for (const std::string_view id : {"1", "-7", "18446744073709551615", "\"a\\u0000b\"", "null"}) {
        const std::string answer =
            raw(fmt::format(R"({{"id":{},"object":"route","command":"flush"}})", id));
        EXPECT_EQ(answer, fmt::format(R"({{"id":{},"ok":true,"result":{{"removed":3}}}})", id));
    }
    EXPECT_EQ(ask(R"({"id":5,"object":"nothing","command":"show"})")["id"], 5);
}

TEST_F(RequestsTest, IfOkSkipsAfterAFailure) {
    EXPECT_CALL(controller_, flush_routes(_)).Times(2).WillRepeatedly(Return(0));
    const std::string line = R"({"if_ok":true,"object":"route","command":"flush"})";
    EXPECT_EQ(Json::parse(raw(line, false))["ok"], true);
    EXPECT_EQ(Json::parse(raw(R"({"object":"route","command":"flush"})", true))["ok"], true);
    Reply skipped = requests_.handle(line, true);
    EXPECT_TRUE(skipped.failed) << "what follows is skipped, too";
    EXPECT_NE(skipped.text.find("skipped"), std::string::npos);
}

TEST_F(RequestsTest, TheControllersErrorIsTheAnswer) {
    EXPECT_CALL(controller_, delete_neighbor("p0", ip("10.0.0.2")))
        .WillOnce(Return(fail(ErrorCode::kNotFound, "no neighbor \"x\"\xff")));
    const Json answer = ask(request("neigh", "del", R"({"address":"10.0.0.2","dev":"p0"})"));
    EXPECT_EQ(answer["error"]["code"], "not_found");
    EXPECT_EQ(answer["error"]["message"], "no neighbor \"x\"\xef\xbf\xbd");
}

TEST_F(RequestsTest, AThrowingControllerIsAnInternalError) {
    EXPECT_CALL(controller_, flush_routes(_)).WillOnce(testing::Throw(std::bad_alloc()));
    EXPECT_EQ(ask(request("route", "flush", "{}"))["error"]["code"], "internal");
}

TEST_F(RequestsTest, LinkChanges) {
    EXPECT_CALL(controller_,
                change_link("p0",
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
    EXPECT_CALL(controller_, add_port("p3", port)).WillOnce(Return(Result<void>{}));
    result("link", "add", R"({"name":"p3","device":"net_tap3,iface=x","rx_queues":2,"mtu":1400})");

    controller_.links_ = {link(1, "p0", "port")};
    controller_.links_[0].mtu = 9000;
    config::Vlan vlan;
    vlan.link = "p0";
    vlan.id = 100;
    vlan.settings.mtu = 9000;  // its parent's
    EXPECT_CALL(controller_, add_vlan("p0.100", vlan)).WillOnce(Return(Result<void>{}));
    result("link", "add", R"({"name":"p0.100","link":"p0","vlan_id":100})");

    EXPECT_CALL(controller_, delete_netdevs(testing::ElementsAre("a", "b")))
        .WillOnce(Return(Result<void>{}));
    result("link", "del", R"({"names":["a","b"]})");
}

TEST_F(RequestsTest, AddressAndNeighborChanges) {
    EXPECT_CALL(controller_, add_address("p0", with_length("fd00::1/64")))
        .WillOnce(Return(Result<void>{}));
    result("addr", "add", R"({"address":"fd00::1/64","dev":"p0"})");
    EXPECT_CALL(controller_, delete_address("p0", with_length("10.0.0.1/24")))
        .WillOnce(Return(Result<void>{}));
    result("addr", "del", R"({"address":"10.0.0.1/24","dev":"p0"})");
    EXPECT_CALL(controller_, add_neighbor("p0", ip("10.0.0.2"), mac("02:00:00:00:00:02")))
        .WillOnce(Return(Result<void>{}));
    result("neigh", "add", R"({"address":"10.0.0.2","dev":"p0","lladdr":"02:00:00:00:00:02"})");
    EXPECT_CALL(controller_, flush_neighbors("")).WillOnce(Return(Result<std::size_t>(4)));
    EXPECT_EQ(result("neigh", "flush"), Json::parse(R"({"removed":4})"));
}

TEST_F(RequestsTest, RouteChanges) {
    const auto wants = [](std::string_view to, std::string_view type) {
        return AllOf(Field(&RouteRequest::prefix, prefix(to)),
                     Field(&RouteRequest::type, std::string(type)),
                     Field(&RouteRequest::owner, RouteOwner::kCli));
    };
    EXPECT_CALL(
        controller_,
        add_route(AllOf(wants("10.0.0.0/8", "unicast"),
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
    EXPECT_CALL(controller_, add_route(wants("10.0.0.0/8", "blackhole"), RouteMode::kReplace))
        .WillOnce(Return(Result<void>{}));
    result("route", "replace", R"({"prefix":"10.0.0.0/8","type":"blackhole","table":254})");
    EXPECT_CALL(controller_,
                delete_route(AllOf(wants("10.0.0.0/8", "unicast"),
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
        EXPECT_CALL(controller_, add_route(Field(&RouteRequest::prefix, prefix(row.want)), _))
            .WillOnce(Return(Result<void>{}));
        result("route", "add", row.args);
        testing::Mock::VerifyAndClearExpectations(&controller_);
    }
}

TEST_F(RequestsTest, LinkShowHasEveryKeyOfEveryKind) {
    controller_.links_ = {
        link(1, "lo", "loopback"), link(2, "p0", "port"), link(3, "p0.7", "vlan")};
    controller_.links_[1].mac = mac("02:00:00:00:00:01");
    controller_.links_[1].device = "net_tap0";
    controller_.links_[1].driver = "net_tap";
    controller_.links_[1].rx_queues = 2;
    controller_.links_[1].addresses = {with_length("10.0.0.1/24"), with_length("fd00::1/64")};
    controller_.links_[2].link = "p0";
    controller_.links_[2].vlan_id = 7;
    controller_.counters_[{2, 0}].rx_packets = 5;
    const Json rows = result("link", "show");
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows[1].dump(),
              R"({"name":"p0","id":2,"kind":"port","netns":"default","mac":"02:00:00:00:00:01",)"
              R"("mtu":1500,"up":true,"running":false,"forwarding":false,"device":"net_tap0",)"
              R"("driver":"net_tap","rx_queues":2,"speed_mbps":null,"link":null,"vlan_id":null,)"
              R"("addresses":["10.0.0.1/24","fd00::1/64"],)"
              R"("counters":{"rx_packets":5,"rx_bytes":0,"tx_packets":0,"tx_bytes":0}})");
    for (const Json& row : rows) {
        ASSERT_EQ(row.size(), rows[1].size());
        for (const auto& item : row.items()) {
            EXPECT_TRUE(rows[1].contains(item.key())) << item.key();
        }
    }
    EXPECT_EQ(rows[2]["vlan_id"], 7);
    EXPECT_EQ(rows[2]["device"], nullptr);
    EXPECT_EQ(result("link", "show", R"({"name":"p0.7"})"), Json::array({rows[2]}));
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
        controller_.routes_[prefix(to)] = {
            .prefix = prefix(to), .type = type, .via = {}, .dev = ""};
    }
    controller_.routes_[prefix("10.0.0.0/24")].owner = RouteOwner::kConnected;
    controller_.routes_[prefix("10.0.0.0/24")].dev = "p0";
    EXPECT_EQ(result("route", "show").size(), 3U);
    EXPECT_EQ(result("route", "show", R"({"table":"local"})").size(), 2U);
    EXPECT_EQ(result("route", "show", R"({"table":"all"})").size(), 5U);
    EXPECT_EQ(result("route", "show", R"({"table":"all","family":"ipv6"})").size(), 1U);
    EXPECT_EQ(result("route", "show")[0].dump(),
              R"({"prefix":"10.0.0.0/24","family":"ipv4","type":"unicast","via":null,"dev":"p0",)"
              R"("metric":0,"mtu":null,"owner":"connected","on_link":false,"active":false})");
}

TEST_F(RequestsTest, RouteShowOfManyRoutesHasEachOnceInOrder) {
    constexpr std::uint32_t kRoutes = 10'000;
    for (std::uint32_t i = 0; i < kRoutes; ++i) {
        const net::IpPrefix to = net::Ipv4Prefix::of(net::Ipv4Addr::from_host(i << 8U), 24);
        controller_.routes_[to] = {.prefix = to, .type = "unicast", .via = {}, .dev = "p0"};
    }
    const Json rows = result("route", "show");
    ASSERT_EQ(rows.size(), kRoutes);
    for (std::uint32_t i = 0; i < kRoutes; ++i) {
        ASSERT_EQ(rows[i]["prefix"],
                  net::Ipv4Prefix::of(net::Ipv4Addr::from_host(i << 8U), 24).to_string());
    }
}

TEST_F(RequestsTest, RouteGet) {
    EXPECT_CALL(controller_, lookup_route(ip("192.0.2.9")))
        .WillOnce(Return(RouteLookup{.type = "unicast",
                                     .prefix = prefix("192.0.2.0/24"),
                                     .via = ip("10.0.1.2"),
                                     .dev = "p1",
                                     .source = ip("10.0.1.1"),
                                     .mtu = 1500}));
    EXPECT_EQ(result("route", "get", R"({"address":"192.0.2.9"})").dump(),
              R"({"address":"192.0.2.9","type":"unicast","prefix":"192.0.2.0/24","via":"10.0.1.2",)"
              R"("dev":"p1","source":"10.0.1.1","mtu":1500})");
    EXPECT_CALL(controller_, lookup_route(ip("fd00::9")))
        .WillOnce(
            Return(RouteLookup{.type = "none", .prefix = {}, .via = {}, .dev = "", .source = {}}));
    EXPECT_EQ(result("route", "get", R"({"address":"fd00::9"})").dump(),
              R"({"address":"fd00::9","type":"none","prefix":null,"via":null,"dev":null,)"
              R"("source":null,"mtu":null})");
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
    const Json stats = result("stats", "show");
    ASSERT_EQ(stats["netdevs"].size(), 2U);
    EXPECT_EQ(stats["netdevs"][1].dump(),
              R"({"name":"p0","id":2,"rx_packets":10,"rx_bytes":0,"tx_packets":0,"tx_bytes":0,)"
              R"("forwarded":5,"delivered":0,"held":0,"dropped":4,)"
              R"("drops":{"no_route":3,"neighbor_failed":1},)"
              R"("icmp_errors_sent":0,"icmp_errors_suppressed":0,"imbalance":1})");
    EXPECT_EQ(stats["total"]["dropped"], 4);
    EXPECT_EQ(stats["pools"].dump(), R"([{"name":"mbufs","size":8192,"in_use":512}])");
    control.forwarded = 2;
    EXPECT_EQ(result("stats", "show")["total"]["imbalance"], -1);
}

TEST_F(RequestsTest, StatsDropsPerNetdevAndWriter) {
    controller_.links_ = {link(1, "lo", "loopback"), link(2, "p0", "port")};
    controller_.workers_.resize(2);
    controller_.counters_[{2, 1}].drops[std::to_underlying(DropReason::kTtlExpired)] = 7;
    controller_.counters_[{1, 2}].drops[std::to_underlying(DropReason::kNoBuffer)] = 1;
    EXPECT_EQ(result("stats", "drops").dump(),
              R"([{"netdev":"lo","worker":"control","reason":"no_buffer",)"
              R"("source":"no mbuf for a reply","packets":1},)"
              R"({"netdev":"p0","worker":"1","reason":"ttl_expired",)"
              R"("source":"RFC 1812 5.3.1, RFC 4443 3.3","packets":7}])");
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
    worker.counters.sampled_packets = 8;
    worker.counters.stage_cycles[2] = 100;
    const Json rows = result("stats", "workers");
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0]["cycles_per_packet"], nullptr) << "nothing was measured";
    EXPECT_EQ(rows[0]["stages"]["lookup"], nullptr);
    EXPECT_EQ(rows[1]["worker"], 1);
    EXPECT_EQ(rows[1]["lcore"], 3);
    EXPECT_EQ(rows[1]["busy_percent"], 25.0);
    EXPECT_EQ(rows[1]["cycles_per_packet"], 83333333.33);
    EXPECT_EQ(rows[1]["stages"]["input"], 12.5);
    EXPECT_EQ(rows[1]["sleep_seconds"], 0.5);
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
    const Json version = result("version", "show");
    EXPECT_EQ(version["instance"], "demo");
    EXPECT_EQ(version["version"], "1.2.3");
    EXPECT_EQ(version["protocol"], 1);
}

TEST_F(RequestsTest, Check_159_SixtyFourPipelinedRequestsAreAnsweredInOrder) {
    for (std::uint32_t i = 0; i < 1000; ++i) {
        const net::IpPrefix to = net::Ipv4Prefix::of(net::Ipv4Addr::from_host(i << 8U), 24);
        controller_.routes_[to] = {.prefix = to, .type = "unicast", .via = {}, .dev = "p0"};
    }
    EXPECT_CALL(controller_, flush_routes(_)).WillRepeatedly(Return(0));
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
        const Json answer = Json::parse(got.substr(at, end - at));
        EXPECT_EQ(answer["id"], id);
        EXPECT_EQ(answer["ok"], id % 3 != 2);
        at = end + 1;
    }
    EXPECT_EQ(at, got.size());
}

}  // namespace
}  // namespace sluice::control
