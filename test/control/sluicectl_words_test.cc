// SPDX-License-Identifier: BSD-3-Clause
#include "sluicectl_words.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace sluicectl {
namespace {

struct Said {
    const char* name;
    const char* words;
    const char* line;  // the request, or "error: " and what the message must hold
};

class Words : public testing::TestWithParam<Said> {};

TEST_P(Words, BecomeTheRequest) {
    const auto words = split_words(GetParam().words);
    ASSERT_TRUE(words);
    const auto request =
        parse_words(*words, {.netns = "", .family = "", .working_directory = "/home/me"});
    const std::string_view want = GetParam().line;
    if (want.starts_with("error: ")) {
        ASSERT_FALSE(request) << request->to_line(false);
        EXPECT_NE(request.error().find(want.substr(7)), std::string::npos) << request.error();
        EXPECT_EQ(request.error().find('\n'), std::string::npos);
        return;
    }
    ASSERT_TRUE(request) << request.error();
    EXPECT_EQ(request->to_line(false), std::string(want) + "\n");
}

// clang-format off
INSTANTIATE_TEST_SUITE_P(Good, Words, testing::ValuesIn(std::vector<Said>{
    Said{"route_show", "route show", R"({"object":"route","command":"show","args":{}})"},
    Said{"show_is_default", "route", R"({"object":"route","command":"show","args":{}})"},
    Said{"r_s", "r s", R"({"object":"route","command":"show","args":{}})"},
    Said{"r_list", "ro ls", R"({"object":"route","command":"show","args":{}})"},
    Said{"r_li", "ro li", R"({"object":"route","command":"show","args":{}})"},
    Said{"n_s", "n s", R"({"object":"neigh","command":"show","args":{}})"},
    Said{"neighbour", "neighbour show dev p0", R"({"object":"neigh","command":"show","args":{"dev":"p0"}})"},
    Said{"a", "a", R"({"object":"addr","command":"show","args":{}})"},
    Said{"a_s_dev", "a s dev p0", R"({"object":"addr","command":"show","args":{"dev":"p0"}})"},
    Said{"a_add", "a add 10.0.0.1/24 dev p0", R"({"object":"addr","command":"add","args":{"address":"10.0.0.1/24","dev":"p0"}})"},
    Said{"address_delete", "address delete 10.0.0.1/24 dev p0", R"({"object":"addr","command":"del","args":{"address":"10.0.0.1/24","dev":"p0"}})"},
    Said{"l_show", "l sh p0", R"({"object":"link","command":"show","args":{"name":"p0"}})"},
    Said{"l_set_down", "l set p0 down", R"({"object":"link","command":"set","args":{"name":"p0","up":false}})"},
    Said{"l_set_dev", "l s dev up up mtu 9000 address 02:00:00:00:00:01 promisc on", R"({"object":"link","command":"set","args":{"name":"up","up":true,"mtu":9000,"mac":"02:00:00:00:00:01","promiscuous":true}})"},
    Said{"l_set_vrf", "link set p0 vrf blue", R"({"object":"link","command":"set","args":{"name":"p0","vrf":"blue"}})"},
    Said{"l_add_port", "link add p3 device net_tap3,iface=x rx-queues 2", R"({"object":"link","command":"add","args":{"name":"p3","device":"net_tap3,iface=x","rx_queues":2}})"},
    Said{"l_add_vlan", "link add p0.7 link p0 vlan 7", R"({"object":"link","command":"add","args":{"name":"p0.7","link":"p0","vlan_id":7}})"},
    Said{"l_add_vlan_iproute2", "link add link p0 name p0.7 type vlan id 7", R"({"object":"link","command":"add","args":{"link":"p0","name":"p0.7","vlan_id":7}})"},
    Said{"l_del_many", "link del a b c", R"({"object":"link","command":"del","args":{"names":["a","b","c"]}})"},
    Said{"route_add", "route add 10.0.0.0/8 via 10.0.1.2 dev p1 metric 20 mtu 1400 onlink", R"({"object":"route","command":"add","args":{"prefix":"10.0.0.0/8","via":"10.0.1.2","dev":"p1","metric":20,"mtu":1400,"on_link":true}})"},
    Said{"route_blackhole", "r a blackhole 10.0.0.0/8", R"({"object":"route","command":"add","args":{"type":"blackhole","prefix":"10.0.0.0/8"}})"},
    Said{"route_type", "r r 10.0.0.0/8 type prohibit", R"({"object":"route","command":"replace","args":{"prefix":"10.0.0.0/8","type":"prohibit"}})"},
    Said{"route_del", "r d default", R"({"object":"route","command":"del","args":{"prefix":"default"}})"},
    Said{"route_table", "r s table 100", R"({"object":"route","command":"show","args":{"table":100}})"},
    Said{"route_table_name", "r s table all", R"({"object":"route","command":"show","args":{"table":"all"}})"},
    Said{"route_nexthop", "r a 10.0.0.0/8 nhid 7", R"({"object":"route","command":"add","args":{"prefix":"10.0.0.0/8","nexthop":7}})"},
    Said{"route_get", "r g 10.0.0.1 from 10.0.0.2", R"({"object":"route","command":"get","args":{"address":"10.0.0.1","from":"10.0.0.2"}})"},
    Said{"route_flush", "r f", R"({"object":"route","command":"flush","args":{}})"},
    Said{"neigh_add", "neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev p0 nud permanent", R"({"object":"neigh","command":"add","args":{"address":"10.0.0.2","lladdr":"02:00:00:00:00:02","dev":"p0"}})"},
    Said{"neigh_flush", "neigh flush dev p0", R"({"object":"neigh","command":"flush","args":{"dev":"p0"}})"},
    Said{"drops", "s d all dev p0", R"({"object":"stats","command":"drops","args":{"all":true,"dev":"p0"}})"},
    Said{"workers", "stats w", R"({"object":"stats","command":"workers","args":{}})"},
    Said{"workers_reset", "stats w reset", R"({"object":"stats","command":"workers","args":{"reset":true}})"},
    Said{"reload_relative", "config reload b.yaml", R"({"object":"config","command":"reload","args":{"file":"/home/me/b.yaml"}})"},
    Said{"reload_absolute", "co r /etc/b.yaml", R"({"object":"config","command":"reload","args":{"file":"/etc/b.yaml"}})"},
    Said{"later_release", "trace add 5", R"({"object":"trace","command":"add","args":{}})"},
    Said{"l_show_all", "l sh all", R"({"object":"link","command":"show","args":{"all":true}})"},
    Said{"l_set_netns", "link set p0 netns red", R"({"object":"link","command":"set","args":{"name":"p0","netns":"red"}})"},
    Said{"l_set_novrf", "link set p0 novrf", R"({"object":"link","command":"set","args":{"name":"p0","vrf":""}})"},
    Said{"l_set_master", "l set dev p0 master blue", R"({"object":"link","command":"set","args":{"name":"p0","vrf":"blue"}})"},
    Said{"l_set_settings", "link set p0 forwarding off send-redirects on source-validation strict route-localnet on bc-forwarding on mark 0x10", R"({"object":"link","command":"set","args":{"name":"p0","forwarding":false,"send_redirects":true,"source_validation":"strict","route_localnet":true,"bc_forwarding":true,"mark":16}})"},
    Said{"l_add_vrf", "link add blue vrf table 100", R"({"object":"link","command":"add","args":{"name":"blue","table":100}})"},
    Said{"l_add_vrf_iproute2", "l a blue type vrf table 100", R"({"object":"link","command":"add","args":{"name":"blue","table":100}})"},
    Said{"route_vrf", "r a 10.0.0.0/8 via 10.0.1.2 vrf blue", R"({"object":"route","command":"add","args":{"prefix":"10.0.0.0/8","via":"10.0.1.2","vrf":"blue"}})"},
    Said{"route_via_inet6", "r a 10.0.0.0/8 via inet6 fe80::1 dev p0", R"({"object":"route","command":"add","args":{"prefix":"10.0.0.0/8","via":"fe80::1","dev":"p0"}})"},
    Said{"route_show_vrf", "r s vrf blue", R"({"object":"route","command":"show","args":{"vrf":"blue"}})"},
    Said{"route_show_cache", "route show cache", R"({"object":"route","command":"exceptions","args":{}})"},
    Said{"route_legs", "r a 10.0.0.0/8 metric 5 nexthop via 10.0.0.1 dev p0 weight 2 nexthop via inet6 fe80::1 dev p1 onlink", R"({"object":"route","command":"add","args":{"prefix":"10.0.0.0/8","metric":5,"nexthops":[{"via":"10.0.0.1","dev":"p0","weight":2},{"via":"fe80::1","dev":"p1","on_link":true}]}})"},
    Said{"route_nexthop_id", "r a 10.0.0.0/8 nexthop 7 proto bgp scope link", R"({"object":"route","command":"add","args":{"prefix":"10.0.0.0/8","nexthop":7,"protocol":"bgp","scope":"link"}})"},
    Said{"route_leg_wrong", "r a 10.0.0.0/8 nexthop via 10.0.0.1 metric 5", "error: \"metric\" is not understood here; usage: sluicectl route add ... nexthop via"},
    Said{"route_show_proto", "r s proto 77", R"({"object":"route","command":"show","args":{"protocol":77}})"},
    Said{"route_flush_proto", "r f proto zebra", R"({"object":"route","command":"flush","args":{"protocol":"zebra"}})"},
    Said{"nexthop_proto", "nexthop add 5 blackhole proto bgp", R"({"object":"nexthop","command":"add","args":{"id":5,"blackhole":true,"protocol":"bgp"}})"},
    Said{"nexthop_flush_proto", "nexthop f proto bgp", R"({"object":"nexthop","command":"flush","args":{"protocol":"bgp"}})"},
    Said{"route_flush_cache", "r f cache", R"({"object":"route","command":"flush_exceptions","args":{}})"},
    Said{"route_get_all", "r g 10.0.0.1 from 10.0.0.2 iif p0 tos 0xb8 ipproto udp sport 5 dport 53", R"({"object":"route","command":"get","args":{"address":"10.0.0.1","from":"10.0.0.2","iif":"p0","dscp":46,"protocol":"udp","source_port":5,"destination_port":53}})"},
    Said{"nexthop_add", "nexthop add 1 via 10.0.0.1 dev p0 onlink", R"({"object":"nexthop","command":"add","args":{"id":1,"via":"10.0.0.1","dev":"p0","on_link":true}})"},
    Said{"nexthop_add_id", "nexthop add id 1 dev p0", R"({"object":"nexthop","command":"add","args":{"id":1,"dev":"p0"}})"},
    Said{"nexthop_blackhole", "nexthop replace 1 blackhole", R"({"object":"nexthop","command":"replace","args":{"id":1,"blackhole":true}})"},
    Said{"nexthop_group", "nexthop add 10 group 1,1/2,3/4", R"({"object":"nexthop","command":"add","args":{"id":10,"group":[{"id":1,"weight":1},{"id":2,"weight":3},{"id":4,"weight":1}]}})"},
    Said{"nexthop_resilient", "nexthop add 10 group 1 type resilient buckets 32 idle_timer 60", R"({"object":"nexthop","command":"add","args":{"id":10,"group":[{"id":1,"weight":1}],"resilient":true,"buckets":32,"idle_timer_ms":60000}})"},
    Said{"nexthop_mpath", "nexthop add 10 group 1 type mpath", R"({"object":"nexthop","command":"add","args":{"id":10,"group":[{"id":1,"weight":1}]}})"},
    Said{"nexthop_idle_ms", "nexthop add 10 group 1 type resilient idle_timer 500ms", R"({"object":"nexthop","command":"add","args":{"id":10,"group":[{"id":1,"weight":1}],"resilient":true,"idle_timer_ms":500}})"},
    Said{"nexthop_show", "nex s 10", R"({"object":"nexthop","command":"show","args":{"id":10}})"},
    Said{"nexthop_del", "nexthop del id 10", R"({"object":"nexthop","command":"del","args":{"id":10}})"},
    Said{"rule_show", "ru s", R"({"object":"rule","command":"show","args":{}})"},
    Said{"rule_add", "rule add pref 100 from 10.0.0.0/8 to all iif p0 tos 32 fwmark 0x10 ipproto tcp sport 1-9 dport 53 lookup 100 suppress_prefixlength 0", R"({"object":"rule","command":"add","args":{"priority":100,"from":"10.0.0.0/8","iif":"p0","dscp":8,"mark":16,"protocol":"tcp","source_ports":[1,9],"destination_ports":[53,53],"table":100,"suppress_prefixlength":0}})"},
    Said{"rule_prohibit", "rule add order 5 from all prohibit", R"({"object":"rule","command":"add","args":{"priority":5,"action":"prohibit"}})"},
    Said{"rule_set_mark", "rule add priority 5 dscp 46 set-mark 7", R"({"object":"rule","command":"add","args":{"priority":5,"dscp":46,"set_mark":7}})"},
    Said{"rule_del", "rule del priority 5", R"({"object":"rule","command":"del","args":{"priority":5}})"},
    Said{"netns_list", "netns list", R"({"object":"netns","command":"show","args":{}})"},
    Said{"netns_add", "netns add red", R"({"object":"netns","command":"add","args":{"name":"red"}})"},
    Said{"netns_delete", "netns delete red", R"({"object":"netns","command":"del","args":{"name":"red"}})"},
    Said{"vrf", "vrf", R"({"object":"vrf","command":"show","args":{}})"},
    Said{"cache_set", "cache set off", R"({"object":"cache","command":"set","args":{"mode":"off"}})"},
    Said{"cache_show", "cac s", R"({"object":"cache","command":"show","args":{}})"},
    Said{"cache_flush", "cache flush", R"({"object":"cache","command":"flush","args":{}})"},
    Said{"uncached", "u", R"({"object":"uncached","command":"show","args":{}})"},
    Said{"quotes", "link show \"a b\"'c' # comment", R"({"object":"link","command":"show","args":{"name":"a bc"}})"}
}), [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(Bad, Words, testing::ValuesIn(std::vector<Said>{
    Said{"nothing", "", "error: no command given"},
    Said{"object", "rout3 show", "error: unknown object \"rout3\"; there are link, addr, route, neigh"},
    Said{"too_long", "linkx", "error: unknown object \"linkx\""},
    Said{"command", "route ad3", "error: route has no command \"ad3\"; it has show, add, replace"},
    Said{"word", "route show foo", "error: \"foo\" is not understood here; usage: sluicectl route show"},
    Said{"second_positional", "link show p0 p1", "error: \"p1\" is not understood here"},
    Said{"value_missing", "route add 10.0.0.0/8 via", "error: via needs a value"},
    Said{"number", "link set p0 mtu many", "error: mtu \"many\": must be a number"},
    Said{"negative", "link set p0 mtu -1", "error: mtu \"-1\": must be a number"},
    Said{"trailing", "link set p0 mtu 1500b", "error: mtu \"1500b\": must be a number"},
    Said{"on_off", "link set p0 promisc yes", "error: promisc \"yes\": must be on or off"},
    Said{"literal", "link add link p0 name x type bridge", "error: type \"bridge\": must be vlan|vrf"},
    Said{"twice", "route add 10.0.0.0/8 via 10.0.0.1 via 10.0.0.2", "error: via is given twice"},
    Said{"up_and_down", "link set p0 up down", "error: down is given twice"},
    Said{"missing", "addr add 10.0.0.1/24", "error: dev is missing; usage: sluicectl addr add"},
    Said{"tos_ecn", "rule add pref 1 tos 0x11 table 1", "error: tos \"0x11\": the lower two bits are ECN, which routing never looks at; with them cleared it is 16"},
    Said{"tos_range", "route get 10.0.0.1 tos 256", "error: must be a number from 0 to 255"},
    Said{"group", "nexthop add 1 group 1,x", "error: group \"1,x\": must be like 1,1/2,3"},
    Said{"group_end", "nexthop add 1 group 1,1/", "error: group \"\": must be like"},
    Said{"nexthop_word", "nexthop add one blackhole", "error: id \"one\": must be a number"},
    Said{"nexthop_no_id", "nexthop add blackhole", "error: id is missing"},
    Said{"idle_timer", "nexthop add 1 group 1 type resilient idle_timer soon", "error: must be a time in seconds"},
    Said{"nexthop_type", "nexthop add 1 group 1 type random", "error: must be mpath|resilient"},
    Said{"ports", "rule add pref 1 sport 1- table 1", "error: sport \"1-\": must be a port or a range"},
    Said{"rule_no_priority", "rule add table 1", "error: priority is missing"},
    Said{"missing_names", "link del", "error: names is missing"}
}), [](const auto& row) { return row.param.name; });
// clang-format on

TEST(WordsDefaults, NetnsAndFamilyGoWhereTheyBelong) {
    const Defaults defaults{.netns = "red", .family = "ipv6", .working_directory = "/"};
    const auto line = [&](std::string_view words) {
        return parse_words(split_words(words).value(), defaults)->to_line(true);
    };
    EXPECT_EQ(line("r s"),
              R"({"object":"route","command":"show","netns":"red","if_ok":true,)"
              R"("args":{"family":"ipv6"}})"
              "\n");
    EXPECT_EQ(line("r a default dev p0"),
              R"({"object":"route","command":"add","netns":"red","if_ok":true,)"
              R"("args":{"prefix":"default","dev":"p0","family":"ipv6"}})"
              "\n");
    EXPECT_EQ(line("rule"),
              R"({"object":"rule","command":"show","netns":"red","if_ok":true,)"
              R"("args":{"family":"ipv6"}})"
              "\n");
    EXPECT_EQ(line("l sh"),
              R"({"object":"link","command":"show","netns":"red","if_ok":true,"args":{}})"
              "\n");
}

TEST(WordsSplit, QuotesAndComments) {
    EXPECT_TRUE(split_words("  # all of it")->empty());
    EXPECT_EQ(split_words("a\t b\r")->size(), 2U);
    EXPECT_EQ(*split_words("a#b"), std::vector<std::string>{"a#b"});
    EXPECT_EQ(split_words("''")->size(), 1U);
    EXPECT_FALSE(split_words("a \"b"));
}

TEST(WordsHelp, OfOneObject) {
    const std::string rule = command_summary("ru");
    EXPECT_NE(rule.find("rule add priority N"), std::string::npos);
    EXPECT_EQ(rule.find("nexthop"), std::string::npos);
    EXPECT_EQ(command_summary("nonsense"), "");
}

TEST(WordsHelp, NamesEveryCommand) {
    for (const char* command : {"link set NAME",
                                "route replace",
                                "stats workers",
                                "config check",
                                "nexthop replace",
                                "rule add",
                                "netns del",
                                "vrf show",
                                "cache set",
                                "uncached show"}) {
        EXPECT_NE(command_summary().find(command), std::string::npos) << command;
    }
}

}  // namespace
}  // namespace sluicectl
