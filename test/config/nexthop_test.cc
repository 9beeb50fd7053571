// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "config_testing.h"

namespace sluice::config {
namespace {

class NextHopRefused : public testing::TestWithParam<Refusal> {};

TEST_P(NextHopRefused, WithPosition) {
    expect_refused(GetParam().text, GetParam().wanted);
}

/// `lines` begin on line 6, ids in column 3.
Refusal hops(std::string_view name,
             std::string_view lines,
             std::uint32_t line,
             std::string_view what,
             std::uint32_t column = 3) {
    return {name, with_ports("nexthops:\n" + std::string{lines}), {{line, column, what}}};
}

constexpr std::string_view kTwo = "  1: {via: 10.0.0.2}\n  2: {via: 10.0.1.2, dev: p1}\n";

std::string after_two(std::string_view lines) {
    return std::string{kTwo} + std::string{lines};
}

INSTANTIATE_TEST_SUITE_P(
    Groups,
    NextHopRefused,
    testing::Values(
        hops("Check_35_blackhole_with_another",
             after_two("  3: {type: blackhole}\n  4: {group: {1: 1, 3: 1}}\n"),
             9,
             "4: the blackhole 3 can only be alone in a group"),
        hops("Check_39_unknown_id",
             after_two("  3: {group: {1: 1, 7: 1}}\n"),
             8,
             "3: there is no next hop 7: add it, or take it out of the group"),
        hops("Check_39_group_in_group",
             after_two("  3: {group: {1: 1}}\n  4: {group: {2: 1, 3: 1}}\n"),
             9,
             "4: 3 is a group itself: name its members"),
        hops("Check_39_group_in_itself",
             after_two("  3: {group: {3: 1}}\n"),
             8,
             "3: 3 is a group itself"),
        hops("Check_39_member_twice",
             after_two("  3: {group: {1: 1, 1: 2}}\n"),
             8,
             "'1' is here twice, first at line 8 column 15",
             21),
        hops("Check_39_group_with_dev",
             after_two("  3: {group: {1: 1}, dev: p0}\n"),
             8,
             "either via and dev, or a group, or type: blackhole"),
        hops("Check_39_group_with_via",
             after_two("  3: {group: {1: 1}, via: 10.0.0.3}\n"),
             8,
             "either via and dev, or a group"),
        hops("group_with_type",
             after_two("  3: {group: {1: 1}, type: blackhole}\n"),
             8,
             "either via and dev, or a group"),
        hops("group_of_nobody", after_two("  3: {group: {}}\n"), 8, "a group of nobody", 14),
        hops("weight_0",
             after_two("  3: {group: {1: 0}}\n"),
             8,
             "0 is out of range: 1 to 65535",
             18),
        hops("weight_65536",
             after_two("  3: {group: {1: 65536}}\n"),
             8,
             "65536 is out of range: 1 to 65535",
             18),
        hops("buckets_not_a_power_of_two",
             after_two("  3: {group: {1: 1}, resilient: {buckets: 100}}\n"),
             8,
             "100 is not a power of two",
             43),
        hops("buckets_beyond_the_limit",
             after_two("  3: {group: {1: 1}, resilient: {buckets: 32768}}\n"),
             8,
             "32768 is out of range: 1 to 16384",
             43),
        hops("fewer_buckets_than_members",
             after_two("  3: {group: {1: 1, 2: 1}, resilient: {buckets: 1}}\n"),
             8,
             "3: 1 buckets for 2 members: at least one a member"),
        hops("timer",
             after_two("  3: {group: {1: 1}, resilient: {idle-timer: 2h}}\n"),
             8,
             "'2h' is not a time",
             46),
        hops("resilient_without_group",
             "  1: {via: 10.0.0.2, resilient: {buckets: 64}}\n",
             6,
             "resilient is for groups: add group, or leave it out")),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    Gateways,
    NextHopRefused,
    testing::Values(
        hops("Check_41_off_link",
             "  1: {via: 10.9.0.2}\n",
             6,
             "1: the gateway 10.9.0.2 is in no netdev's subnet: add dev and on-link: true"),
        hops("Check_41_not_on_its_dev",
             "  1: {via: 10.0.0.2, dev: p1}\n",
             6,
             "1: the gateway 10.0.0.2 is in no subnet of p1 (10.0.1.0/24, fd00:1::/64)"),
        hops("Check_41_id_twice",
             "  1: {via: 10.0.0.2}\n  1: {via: 10.0.0.3}\n",
             7,
             "'1' is here twice, first at line 6 column 3"),
        hops("Check_41_no_such_dev",
             "  1: {via: 10.0.0.2, dev: p9}\n",
             6,
             "1: dev 'p9' is no port or vlan here: did you mean 'p0'?"),
        hops("Check_73_link_local_without_dev",
             "  1: {via: \"fe80::2\"}\n",
             6,
             "the link-local gateway fe80::2 can be on any netdev: add dev"),
        hops("Check_73_own_address",
             "  1: {via: 10.0.0.1}\n",
             6,
             "1: the gateway 10.0.0.1 is an address of this router"),
        hops("Check_73_own_address_of_another_netdev",
             "  1: {via: 10.0.1.1, dev: p0, on-link: true}\n",
             6,
             "1: the gateway 10.0.1.1 is an address of this router"),
        Refusal{"Check_76_own_link_local",
                "version: 1\nports:\n  p0: {device: x, mac: 02:00:00:00:00:01}\nnexthops:\n  1: "
                "{via: \"fe80::ff:fe00:1\", dev: p0, on-link: true}\n",
                {{5, 3, "1: the gateway fe80::ff:fe00:1 is an address of this router"}}},
        hops("Check_76_multicast",
             "  1: {via: 224.0.0.1, dev: p0, on-link: true}\n",
             6,
             "224.0.0.1 is not a unicast address",
             12),
        hops("Check_76_on_link_without_dev",
             "  1: {via: 10.9.0.2, on-link: true}\n",
             6,
             "on-link says that via can be reached through dev: add both"),
        hops("on_link_alone", "  1: {on-link: true}\n", 6, "on-link says that via"),
        hops("broadcast",
             "  1: {via: 10.0.0.255}\n",
             6,
             "1: the gateway 10.0.0.255 is the broadcast address on p0"),
        hops("nothing", "  1: {}\n", 6, "either via and dev, or a group"),
        hops("blackhole_with_via",
             "  1: {via: 10.0.0.2, type: blackhole}\n",
             6,
             "either via and dev, or a group"),
        hops("id_0", "  0: {via: 10.0.0.2}\n", 6, "0 is out of range: 1 to"),
        hops("id_word", "  a: {via: 10.0.0.2}\n", 6, "'a' is not a number"),
        Refusal{"dev_is_a_vrf",
                with_ports("vrfs: {blue: {table: 100}}\nnexthops:\n  1: {dev: blue}\n"),
                {{7, 3, "1: blue is a vrf: write routes with vrf: blue instead"}}}),
    refusal_name);

/// The route is on line 8.
Refusal route(std::string_view name,
              std::string_view keys,
              std::string_view what,
              std::uint32_t column = 5) {
    return {name,
            with_ports("nexthops: {1: {via: 10.0.0.2}, 2: {group: {1: 1, 3: 1}},\n  3: {via: "
                       "\"fd00::2\"}, 4: {dev: p0}}\nroutes:\n  - {" +
                       std::string{keys} + "}\n"),
            {{8, column, what}}};
}

INSTANTIATE_TEST_SUITE_P(
    Routes,
    NextHopRefused,
    testing::Values(
        route("Check_43_ipv6_over_ipv4_gateway",
              "to: \"2001:db8::/32\", nexthop: 1",
              "an IPv6 route over next hop 1, which has the IPv4 gateway 10.0.0.2"),
        route("Check_43_ipv6_over_group_with_ipv4_gateway",
              "to: \"2001:db8::/32\", nexthop: 2",
              "an IPv6 route over next hop 2, which has the IPv4 gateway 10.0.0.2"),
        route("unknown_id", "to: 1.0.0.0/8, nexthop: 9", "there is no next hop 9"),
        route("nexthop_and_via", "to: 1.0.0.0/8, nexthop: 1, via: 10.0.0.2", "leave via, dev, vrf"),
        route("nexthop_and_dev", "to: 1.0.0.0/8, nexthop: 1, dev: p0", "leave via, dev, vrf"),
        route("nexthop_and_mtu", "to: 1.0.0.0/8, nexthop: 1, mtu: 1400", "leave via, dev, vrf"),
        route("nexthop_and_on_link",
              "to: 1.0.0.0/8, nexthop: 1, on-link: true",
              "leave via, dev, vrf"),
        route("default_and_dev", "to: default, nexthop: 1, dev: p0", "leave via, dev, vrf"),
        route("blackhole_over_nexthop",
              "to: 1.0.0.0/8, nexthop: 1, type: blackhole",
              "a blackhole route has no via, dev or nexthop"),
        route("default_of_no_family",
              "to: default, nexthop: 4",
              "default of which family? Next hop 4 has no gateway: add family: ipv4"),
        route("default_ipv6_over_ipv4",
              "to: default, family: ipv6, nexthop: 1",
              "an IPv6 route over next hop 1"),
        route("table_0", "to: 1.0.0.0/8, nexthop: 1, table: 0", "0 is out of range: 1 to", 40),
        route("table_local",
              "to: 1.0.0.0/8, nexthop: 1, table: local",
              "the local table holds this router's addresses alone",
              40),
        route("table_255",
              "to: 1.0.0.0/8, nexthop: 1, table: 255",
              "table 255 holds this router's addresses alone: choose another",
              40),
        route(
            "table_word", "to: 1.0.0.0/8, nexthop: 1, table: blue", "'blue' is not a number", 40)),
    refusal_name);

struct Accepted {
    std::string_view name;
    std::string text;
};

std::ostream& operator<<(std::ostream& out, const Accepted& row) {
    return out << row.name;
}

class NextHopAccepted : public testing::TestWithParam<Accepted> {};

TEST_P(NextHopAccepted, AndComesBackEqual) {
    const Config config = loaded(with_ports(GetParam().text));
    EXPECT_FALSE(config.default_netns.nexthops.empty());
    EXPECT_EQ(loaded(emit(config)), config) << emit(config);
}

std::string members(unsigned count) {
    std::string text = "nexthops:\n  1000: {group: {";
    for (unsigned i = 1; i <= count; ++i) {
        text += fmt::format("{}: {}, ", i, i);
    }
    text.resize(text.size() - 2);
    text += "}}\n";
    for (unsigned i = 1; i <= count; ++i) {
        text += fmt::format("  {}: {{via: 10.0.0.2}}\n", i);
    }
    return text;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    NextHopAccepted,
    testing::Values(
        Accepted{"Check_32_group_of_a_blackhole",
                 "nexthops: {1: {type: blackhole}, 2: {group: {1: 5}}}\nroutes: [{to: 1.0.0.0/8, "
                 "nexthop: 2}, {to: \"2001:db8::/32\", nexthop: 2}]\n"},
        Accepted{"Check_38_one_in_several_groups",
                 "nexthops: {1: {via: 10.0.0.2}, 2: {group: {1: 5}}, 3: {group: {1: 1}}}\n"},
        Accepted{"Check_41_unreachable_but_on_link",
                 "nexthops: {1: {via: 10.9.0.2, dev: p1, on-link: true}}\n"},
        Accepted{"Check_42_device_only_alone_and_mixed",
                 "nexthops: {1: {dev: p1}, 2: {via: 10.0.0.2}, 3: {group: {1: 1, 2: 3}}}\nroutes: "
                 "[{to: \"2001:db8::/32\", nexthop: 1}, {to: 1.0.0.0/8, nexthop: 3}]\n"},
        Accepted{"Check_43_ipv6_over_ipv6_gateways",
                 "nexthops: {1: {via: \"fd00::2\"}, 2: {via: \"fe80::2\", dev: p1}, 3: {group: {1: "
                 "1, 2: 1}}}\nroutes: [{to: \"2001:db8::/32\", nexthop: 3}]\n"},
        Accepted{"Check_44_ipv4_over_ipv6_link_local",
                 "nexthops: {1: {via: \"fe80::2\", dev: p1}}\nroutes: [{to: 1.0.0.0/8, nexthop: "
                 "1}]\n"},
        Accepted{"Check_45_ipv4_over_a_mixed_group",
                 "nexthops: {1: {via: \"fd00::2\"}, 2: {via: 10.0.0.2}, 3: {group: {1: 1, 2: "
                 "1}}}\nroutes: [{to: 1.0.0.0/8, nexthop: 3}]\n"},
        Accepted{"Check_46_ipv4_default_over_ipv6",
                 "nexthops: {1: {via: \"fd00::2\"}}\nroutes: [{to: default, family: ipv4, nexthop: "
                 "1}]\n"},
        Accepted{"Check_50_32_members", members(32)},
        Accepted{"Check_54_resilient",
                 "nexthops: {1: {dev: p1}, 2: {group: {1: 65535}, resilient: {buckets: 16384, "
                 "idle-timer: 0s}}}\n"},
        Accepted{"Check_75_on_link_ipv4_mapped",
                 "nexthops: {1: {via: \"::ffff:1.2.3.4\", dev: p0, on-link: true}}\n"},
        Accepted{"json_like_ids", "nexthops: {\"1\": {via: 10.0.0.2}}\n"}),
    [](const auto& row) { return std::string{row.param.name}; });

TEST(NextHops, AGatewayAloneGetsTheNetdevWhoseSubnetHasIt) {
    const Config config = loaded(with_ports("nexthops: {1: {via: 10.0.1.2}, 2: {via: fd00::2}}\n"));
    EXPECT_EQ(config.default_netns.nexthops.at(1).dev, "p1");
    EXPECT_EQ(config.default_netns.nexthops.at(2).dev, "p0");
}

TEST(NextHops, ADefaultRouteIsOfTheFamilyOfTheGateways) {
    const Config config = loaded(with_ports(
        "routes:\n  - {to: default, nexthop: 1}\n  - {to: default, nexthop: 2}\n  - {to: "
        "default, nexthop: 3, metric: 1}\n  - {to: default, nexthop: 4, metric: 1}\n"
        "nexthops: {1: {via: 10.0.0.2}, 2: {via: fd00::2}, 3: {group: {1: 1, 2: 1}}, 4: "
        "{group: {2: 1}}}\n"));
    std::vector<std::string> found;
    for (const Route& route : config.default_netns.routes) {
        found.push_back(route.to.to_string());
        EXPECT_EQ(route.dev, "");
    }
    EXPECT_EQ(found, (std::vector<std::string>{"0.0.0.0/0", "::/0", "0.0.0.0/0", "::/0"}));
}

}  // namespace
}  // namespace sluice::config
