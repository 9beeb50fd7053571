// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "requests_fixture.h"

namespace sluice::control {
namespace {

struct Refused {
    const char* name;
    std::string line;
    const char* code;
    const char* words;  // in the message
};

class RequestsRefuse : public RequestsTest, public testing::WithParamInterface<Refused> {};

TEST_P(RequestsRefuse, WithOneClearErrorAndNoCall) {
    const TestJson answer = ask(GetParam().line);
    ASSERT_EQ(answer["ok"], false);
    EXPECT_EQ(answer["error"]["code"], GetParam().code) << answer;
    const std::string message = answer["error"]["message"];
    EXPECT_NE(message.find(GetParam().words), std::string::npos) << message;
    EXPECT_LT(message.size(), 500U);
    EXPECT_FALSE(answer.contains("result"));
}

std::string in_red(std::string_view object,
                   std::string_view command,
                   std::string_view args = "{}") {
    return fmt::format(
        R"({{"netns":"red","object":"{}","command":"{}","args":{}}})", object, command, args);
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
INSTANTIATE_TEST_SUITE_P(Envelope, RequestsRefuse, testing::ValuesIn(std::vector<Refused>{
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
    Refused{"object", request("rout", "show", "{}"), "invalid", "unknown object \"rout\"; there are link, addr, neigh, route, nexthop, rule, netns, vrf, cache, uncached, stats"},
    Refused{"command", request("route", "ad", "{}"), "invalid", "route has no command \"ad\"; it has show, add, replace"},
    Refused{"argument", request("route", "get", R"({"adress":"10.0.0.1"})"), "invalid", "no argument \"adress\"; it has address"},
    Refused{"long_words", request(std::string(10'000, 'x'), "show", "{}"), "invalid", "unknown object"}
}), [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(NotBuiltYet, RequestsRefuse, testing::ValuesIn(std::vector<Refused>{
    Refused{"trace", request("trace", "show", "{}"), "unsupported", "not built yet: trace"},
    Refused{"capture", request("capture", "start", R"({"file":"x"})"), "unsupported", "not built yet: capture"},
    Refused{"config_check", request("config", "check", "{}"), "unsupported", "sluice --check FILE"}
}), [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(NoSuchNetns, RequestsRefuse, testing::ValuesIn(std::vector<Refused>{
    Refused{"links", in_red("link", "show"), "not_found", "netns red does not exist"},
    Refused{"link", in_red("link", "show", R"({"name":"p0"})"), "not_found", "netns red does not exist"},
    Refused{"addresses", in_red("addr", "show"), "not_found", "netns red does not exist"},
    Refused{"addresses_of", in_red("addr", "show", R"({"dev":"p0"})"), "not_found", "netns red does not exist"},
    Refused{"routes", in_red("route", "show"), "not_found", "netns red does not exist"},
    Refused{"all_routes", in_red("route", "show", R"({"table":"all"})"), "not_found", "netns red does not exist"},
    Refused{"vrf_routes", in_red("route", "show", R"({"vrf":"blue"})"), "not_found", "netns red does not exist"},
    Refused{"exceptions", in_red("route", "exceptions"), "not_found", "netns red does not exist"},
    Refused{"nexthops", in_red("nexthop", "show"), "not_found", "netns red does not exist"},
    Refused{"rules", in_red("rule", "show"), "not_found", "netns red does not exist"},
    Refused{"vrfs", in_red("vrf", "show"), "not_found", "netns red does not exist"},
    Refused{"neighbors", in_red("neigh", "show"), "not_found", "netns red does not exist"},
    Refused{"stats", in_red("stats", "show"), "not_found", "netns red does not exist"},
    Refused{"drops", in_red("stats", "drops"), "not_found", "netns red does not exist"},
    Refused{"add_vlan", in_red("link", "add", R"({"name":"x","link":"p0","vlan_id":1})"), "not_found", "netns red does not exist"},
    Refused{"empty_name", R"({"netns":"","object":"link","command":"show"})", "invalid", "netns must not be empty"}
}), [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(Check_148_ImpossibleInput, RequestsRefuse, testing::ValuesIn(std::vector<Refused>{
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
    Refused{"Check_43_route_family", request("route", "add", R"({"prefix":"fd00::/8","via":"10.0.0.1"})"), "invalid", "an IPv6 route has an IPv6 gateway"},
    Refused{"route_type", request("route", "add", R"({"prefix":"10.0.0.0/8","type":"anycast"})"), "invalid", "must be one of unicast, blackhole"},
    Refused{"blackhole_via", request("route", "add", R"({"prefix":"10.0.0.0/8","type":"blackhole","via":"10.0.0.1"})"), "invalid", "has no gateway"},
    Refused{"on_link_alone", request("route", "add", R"({"prefix":"10.0.0.0/8","via":"10.0.0.1","on_link":true})"), "invalid", "on_link is said of a gateway"},
    Refused{"via_multicast", request("route", "add", R"({"prefix":"10.0.0.0/8","via":"224.0.0.1"})"), "invalid", "via \"224.0.0.1\": a multicast address"},
    Refused{"metric_range", request("route", "add", R"({"prefix":"10.0.0.0/8","via":"10.0.0.1","metric":4294967296})"), "invalid", "from 0 to 4294967295"},
    Refused{"family_word", request("route", "show", R"({"family":"inet"})"), "invalid", "must be \"ipv4\" or \"ipv6\""},
    Refused{"family_prefix", request("route", "add", R"({"prefix":"10.0.0.0/8","family":"ipv6","via":"10.0.0.1"})"), "invalid", "not of family ipv6"},
    Refused{"table_word", request("route", "show", R"({"table":"mane"})"), "invalid", "table \"mane\": must be a number from 1"},
    Refused{"table_zero", request("route", "add", R"({"prefix":"10.0.0.0/8","dev":"p0","table":0})"), "invalid", "table 0: must be an integer from 1"},
    Refused{"table_all", request("route", "add", R"({"prefix":"10.0.0.0/8","dev":"p0","table":"all"})"), "invalid", "must be a number from 1"},
    Refused{"table_and_vrf", request("route", "show", R"({"table":7,"vrf":"blue"})"), "invalid", "either table or vrf"},
    Refused{"vrf_absent", request("route", "show", R"({"vrf":"blue"})"), "not_found", "vrf blue does not exist"},
    Refused{"nexthop_zero", request("route", "add", R"({"prefix":"10.0.0.0/8","nexthop":0})"), "invalid", "nexthop 0: must be an integer from 1"},
    Refused{"nexthop_and_via", request("route", "add", R"({"prefix":"10.0.0.0/8","nexthop":1,"via":"10.0.0.1"})"), "invalid", "nexthop stands in place of"},
    Refused{"nexthop_and_type", request("route", "add", R"({"prefix":"10.0.0.0/8","nexthop":1,"type":"blackhole"})"), "invalid", "nexthop stands in place of"},
    Refused{"nexthop_and_mtu", request("route", "add", R"({"prefix":"10.0.0.0/8","nexthop":1,"mtu":1400})"), "invalid", "nexthop stands in place of"},
    Refused{"get_from_family", request("route", "get", R"({"address":"10.0.0.1","from":"fd00::1"})"), "invalid", "from fd00::1 is of the other family"},
    Refused{"get_dscp", request("route", "get", R"({"address":"10.0.0.1","dscp":64})"), "invalid", "dscp 64: must be an integer from 0 to 63"},
    Refused{"vrf_with_mtu", request("link", "add", R"({"name":"blue","table":100,"mtu":1500})"), "invalid", "or table (a VRF)"},
    Refused{"vrf_and_device", request("link", "add", R"({"name":"blue","table":100,"device":"net_null0"})"), "invalid", "takes either device"},
    Refused{"move_and_set", request("link", "set", R"({"name":"p0","netns":"empty","up":true})"), "invalid", "netns goes alone"},
    Refused{"validation_word", request("link", "set", R"({"name":"p0","source_validation":"on"})"), "invalid", "must be one of off, loose, strict"},
    Refused{"name_and_all", request("link", "show", R"({"name":"p0","all":true})"), "invalid", "either name or all"},
    Refused{"netns_name", request("netns", "add", R"({"name":"a/b"})"), "invalid", "name \"a/b\""},
    Refused{"nexthop_nothing", request("nexthop", "add", R"({"id":1})"), "invalid", "either via or dev"},
    Refused{"nexthop_id", request("nexthop", "add", R"({"id":0,"blackhole":true})"), "invalid", "id 0: must be an integer from 1"},
    Refused{"nexthop_two_kinds", request("nexthop", "add", R"({"id":1,"blackhole":true,"dev":"p0"})"), "invalid", "either via or dev"},
    Refused{"Check_39_group_with_gateway", request("nexthop", "add", R"({"id":1,"group":[{"id":2}],"via":"10.0.0.1"})"), "invalid", "either via or dev"},
    Refused{"Check_39_member_twice", request("nexthop", "add", R"({"id":1,"group":[{"id":2},{"id":2}]})"), "invalid", "nexthop 2 stands there twice"},
    Refused{"group_empty", request("nexthop", "add", R"({"id":1,"group":[]})"), "invalid", "group []: must be an array of objects"},
    Refused{"group_of_numbers", request("nexthop", "add", R"({"id":1,"group":[2]})"), "invalid", "group 2: must be an object"},
    Refused{"group_keys", request("nexthop", "add", R"({"id":1,"group":[{"id":2,"wait":1}]})"), "invalid", "has keys other than id, weight"},
    Refused{"group_weight", request("nexthop", "add", R"({"id":1,"group":[{"id":2,"weight":0}]})"), "invalid", "group: weight 0: must be an integer from 1 to 256"},
    Refused{"resilient_alone", request("nexthop", "add", R"({"id":1,"dev":"p0","resilient":true})"), "invalid", "resilient is said of a group"},
    Refused{"buckets_alone", request("nexthop", "add", R"({"id":1,"group":[{"id":2}],"buckets":8})"), "invalid", "of a resilient group"},
    Refused{"legs_empty", request("route", "add", R"({"prefix":"10.0.0.0/8","nexthops":[]})"), "invalid", "array of objects, and not empty"},
    Refused{"legs_and_via", request("route", "add", R"({"prefix":"10.0.0.0/8","via":"10.0.0.1","nexthops":[{"via":"10.0.0.2"},{"via":"10.0.0.3"}]})"), "invalid", "nexthops stand in place of"},
    Refused{"leg_of_nothing", request("route", "add", R"({"prefix":"10.0.0.0/8","nexthops":[{"via":"10.0.0.2"},{"weight":2}]})"), "invalid", "nexthops: give a gateway (via)"},
    Refused{"leg_weight", request("route", "add", R"({"prefix":"10.0.0.0/8","nexthops":[{"via":"10.0.0.2","weight":0}]})"), "invalid", "nexthops: weight 0: must be an integer from 1 to 256"},
    Refused{"leg_key", request("route", "add", R"({"prefix":"10.0.0.0/8","nexthops":[{"gw":"10.0.0.2"}]})"), "invalid", "keys other than via"},
    Refused{"scope", request("route", "add", R"({"prefix":"10.0.0.0/8","dev":"p0","scope":"site"})"), "invalid", "scope \"site\": must be one of global, link, host"},
    Refused{"route_protocol", request("route", "add", R"({"prefix":"10.0.0.0/8","dev":"p0","protocol":"bgp4"})"), "invalid", "protocol \"bgp4\": must be a number from 1 to 255 or a name"},
    Refused{"route_protocol_number", request("route", "flush", R"({"protocol":256})"), "invalid", "protocol 256: must be an integer from 1 to 255"},
    Refused{"nexthop_onlink", request("nexthop", "add", R"({"id":1,"via":"10.0.0.1","on_link":true})"), "invalid", "on_link is said of"},
    Refused{"nexthop_absent", request("nexthop", "show", R"({"id":9})"), "not_found", "nexthop 9 does not exist"},
    Refused{"rule_priority", request("rule", "add", R"({"table":100})"), "invalid", "\"priority\" is missing"},
    Refused{"rule_nothing_to_do", request("rule", "add", R"({"priority":1})"), "invalid", "a rule says what to do"},
    Refused{"rule_families", request("rule", "add", R"({"priority":1,"table":1,"from":"10.0.0.0/8","to":"fd00::/8"})"), "invalid", "fd00::/8 is not of family ipv4: one family a rule"},
    Refused{"rule_host_bits", request("rule", "add", R"({"priority":1,"table":1,"from":"10.0.0.1/8"})"), "invalid", "host bits set"},
    Refused{"rule_ports", request("rule", "add", R"({"priority":1,"table":1,"source_ports":[9,8]})"), "invalid", "source_ports [9,8]: must be a port, or [first, last]"},
    Refused{"rule_port_range", request("rule", "add", R"({"priority":1,"table":1,"source_ports":65536})"), "invalid", "source_ports 65536: must be a port"},
    Refused{"rule_protocol", request("rule", "add", R"({"priority":1,"table":1,"protocol":"tcpp"})"), "invalid", "protocol \"tcpp\": must be one of tcp, udp"},
    Refused{"rule_table_and_action", request("rule", "add", R"({"priority":1,"table":1,"action":"prohibit"})"), "invalid", "go with the action table"},
    Refused{"rule_mark_without", request("rule", "add", R"({"priority":1,"action":"set-mark"})"), "invalid", "set_mark goes with"},
    Refused{"rule_suppress", request("rule", "add", R"({"priority":1,"table":1,"suppress_prefixlength":33})"), "invalid", "from 0 to 32"},
    Refused{"cache_mode", request("cache", "set", R"({"mode":"never"})"), "invalid", "must be one of auto, on, off"},
    Refused{"get_garbage", request("route", "get", R"({"address":"10.0.0.256"})"), "invalid", "not an IPv4 address"},
    Refused{"show_absent", request("link", "show", R"({"name":"p9"})"), "not_found", "link p9 does not exist"},
    Refused{"addr_absent", request("addr", "show", R"({"dev":"p9"})"), "not_found", "link p9 does not exist"},
    Refused{"neigh_absent", request("neigh", "show", R"({"dev":"p9"})"), "not_found", "link p9 does not exist"},
    Refused{"drops_absent", request("stats", "drops", R"({"dev":"p9"})"), "not_found", "link p9 does not exist"},
    Refused{"relative_file", request("config", "reload", R"({"file":"a.yaml"})"), "invalid", "must be an absolute path"}
}), [](const auto& row) { return row.param.name; });
// clang-format on

}  // namespace
}  // namespace sluice::control
