// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "config_testing.h"

namespace sluice::config {
namespace {

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, WithPosition) {
    expect_refused(GetParam().text, GetParam().wanted);
}

Refusal route(std::string_view name,
              std::string_view keys,
              std::string_view what,
              std::uint32_t column = 5) {
    return {name, with_ports("routes:\n  - {" + std::string{keys} + "}\n"), {{6, column, what}}};
}

INSTANTIATE_TEST_SUITE_P(
    Netdevs,
    Refused,
    testing::Values(
        Refusal{"link_close",
                with_ports("vlans: {v: {link: p00, id: 5}}\n"),
                {{5, 9, "v: link 'p00' is no port here: did you mean 'p0'?"}}},
        Refusal{"link_is_a_vlan",
                with_ports("vlans: {v: {link: p0, id: 5}, www: {link: v, id: 6}}\n"),
                {{5, 31, "www: link 'v' is no port here"}}},
        Refusal{"vlan_id_twice",
                with_ports("vlans:\n  a: {link: p0, id: 5}\n  b: {link: p0, id: 5}\n"),
                {{7, 3, "b: p0 has vlan 5 already, at line 6 column 3"}}},
        Refusal{"vlan_mtu",
                with_ports("vlans: {v: {link: p0, id: 5, mtu: 1501}}\n"),
                {{5, 9, "v: mtu 1501 is more than its port p0 has: at most 1500"}}},
        Refusal{
            "Case_37_vlan_v6_below_1280",
            with_ports("vlans: {v: {link: p0, id: 5, mtu: 1200, addresses: [\"fd02::1/64\"]}}\n"),
            {{5, 9, "at least 1280 (RFC 8200 5)"}}},
        Refusal{"same_device",
                "version: 1\nports:\n  a: {device: \"net_tap0,iface=x\"}\n  b: {device: "
                "\"net_tap0,iface=y\"}\n",
                {{4, 3, "b: the device net_tap0 is a port already, at line 3 column 3"}}},
        Refusal{"same_pci_device",
                "version: 1\nports:\n  a: {device: 0000:03:00.0}\n  b: {device: 03:00.0}\n",
                {{4, 3, "b: the device 0000:03:00.0 is a port already"}}},
        Refusal{"same_mac",
                "version: 1\nports:\n  a: {device: x, mac: 02:00:00:00:00:01}\n  b: {device: y, "
                "mac: 02:00:00:00:00:01}\n",
                {{4, 3, "b: the mac 02:00:00:00:00:01 is another port's, at line 3 column 3"}}},
        Refusal{"rx_queues",
                "version: 1\nports:\n  a: {device: x, rx-queues: 2}\n",
                {{3, 3, "a: rx-queues 2 for 1 worker(s)"}}},
        Refusal{
            "v4_limit",
            with_ports("limits: {ipv4-routes: 1}\nroutes: [{to: 1.0.0.0/8, via: 10.0.0.2}, {to: "
                       "2.0.0.0/8, via: 10.0.0.2}]\n"),
            {{5, 9, "2 ipv4-routes are in this file, the limit is 1: raise limits.ipv4-routes"}}},
        Refusal{"broken_netdevs_bring_no_follow_ups",
                "version: 1\nports:\n  p0: {device: x, addresses: [10.0.0.1]}\nroutes:\n  - {to: "
                "1.0.0.0/8, via: 10.0.0.2}\n",
                {{3, 31, "'10.0.0.1'"}}}),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    Routes,
    Refused,
    testing::Values(
        route("Check_148_host_bits", "to: 10.5.0.1/24, via: 10.0.0.2", "to: '10.5.0.1/24'", 10),
        route("to_address", "to: 10.5.0.1, via: 10.0.0.2", "to: '10.5.0.1'", 10),
        route("default_of_no_family",
              "to: default, dev: p0",
              "default of which family? Add family: ipv4",
              10),
        route("family_contradicts",
              "to: 1.0.0.0/8, family: ipv6, via: 10.0.0.2",
              "1.0.0.0/8 is an ipv4 prefix",
              29),
        route("leads_nowhere", "to: 1.0.0.0/8", "leads nowhere: add via or dev"),
        route("v6_via_v4", "to: \"2001:db8::/32\", via: 10.0.0.2", "via the IPv4 gateway 10.0.0.2"),
        route("via_off_link", "to: 1.0.0.0/8, via: 10.7.0.2", "10.7.0.2 is in no netdev's subnet"),
        route("via_not_on_dev",
              "to: 1.0.0.0/8, via: 10.1.0.2, dev: p1",
              "10.1.0.2 is in no subnet of p1 (10.0.1.0/24, fd00:1::/64)"),
        route("via_on_the_other_dev",
              "to: 1.0.0.0/8, via: 10.0.0.2, dev: p1",
              "in no subnet of p1"),
        route("via_own_address",
              "to: 1.0.0.0/8, via: 10.0.0.1",
              "10.0.0.1 is an address of this router"),
        route("via_own_address_with_dev",
              "to: 1.0.0.0/8, via: 10.0.0.1, dev: p0",
              "10.0.0.1 is an address of this router"),
        route("via_own_address_on_link",
              "to: 1.0.0.0/8, via: 10.0.0.1, dev: p1, on-link: true",
              "10.0.0.1 is an address of this router"),
        route("via_broadcast",
              "to: 1.0.0.0/8, via: 10.0.0.255",
              "10.0.0.255 is the broadcast address on p0"),
        route("via_network",
              "to: 1.0.0.0/8, via: 10.0.0.0",
              "10.0.0.0 is the network's own address on p0"),
        route("via_multicast",
              "to: 1.0.0.0/8, via: 224.0.0.1",
              "224.0.0.1 is not a unicast address",
              26),
        route("via_unspecified",
              "to: \"2001:db8::/32\", via: \"::\"",
              ":: is not a unicast address",
              32),
        route("link_local_without_dev",
              "to: default, via: \"fe80::1\"",
              "can be on any netdev: add dev"),
        route("on_link_without_dev",
              "to: 1.0.0.0/8, via: 10.7.0.2, on-link: true",
              "add both, or leave it out"),
        route("no_such_dev",
              "to: 1.0.0.0/8, via: 10.0.0.2, dev: p2",
              "dev 'p2' is no port or vlan here: did you mean 'p0'?"),
        route("blackhole_with_via",
              "to: 1.0.0.0/8, via: 10.0.0.2, type: blackhole",
              "a blackhole route has no via"),
        route("prohibit_with_dev",
              "to: 1.0.0.0/8, dev: p0, type: prohibit",
              "a prohibit route has no via"),
        route("local_with_via",
              "to: 1.0.0.1/32, via: 10.0.0.2, type: local",
              "a local route has no via"),
        route("unreachable_with_mtu", "to: 1.0.0.0/8, type: unreachable, mtu: 1400", "has no mtu"),
        route("type_misspelled",
              "to: 1.0.0.0/8, via: 10.0.0.2, type: unicas",
              "did you mean unicast?",
              42),
        route("mtu_above_the_netdevs",
              "to: 1.0.0.0/8, via: 10.0.0.2, mtu: 9000",
              "the route's mtu 9000 is more than p0 has: at most 1500"),
        route("Case_37_v6_mtu",
              "to: \"2001:db8::/32\", via: \"fd00::2\", mtu: 1200",
              "at least 1280"),
        route("to_loopback", "to: 127.0.0.0/8, via: 10.0.0.2", "127.0.0.0/8 is loopback", 10),
        route("to_multicast", "to: 224.1.0.0/16, via: 10.0.0.2", "is multicast", 10),
        route("to_zero", "to: 0.0.0.0/32, via: 10.0.0.2", "is in 0.0.0.0/8", 10),
        route("Case_104_to_limited_broadcast",
              "to: 255.255.255.255/32, via: 10.0.0.2",
              "is limited broadcast",
              10),
        route("to_v6_multicast", "to: \"ff00::/8\", via: \"fd00::2\"", "is multicast", 10),
        route("to_link_local", "to: \"fe80::/64\", dev: p0", "is link-local", 10)),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    Neighbors,
    Refused,
    testing::Values(
        Refusal{"no_such_dev",
                with_ports("neighbors:\n  - {to: 10.0.0.2, dev: px, lladdr: 02:00:00:00:00:09}\n"),
                {{6, 5, "dev 'px' is no port or vlan here"}}},
        Refusal{"Check_148_multicast_mac",
                with_ports("neighbors:\n  - {to: 10.0.0.2, dev: p0, lladdr: 01:00:5e:00:00:01}\n"),
                {{6, 37, "lladdr: 01:00:5e:00:00:01 is a group address"}}},
        Refusal{"own_address",
                with_ports("neighbors:\n  - {to: 10.0.0.1, dev: p0, lladdr: 02:00:00:00:00:09}\n"),
                {{6, 5, "10.0.0.1 is an address of this router"}}},
        Refusal{
            "broadcast",
            with_ports("neighbors:\n  - {to: 10.0.0.255, dev: p0, lladdr: 02:00:00:00:00:09}\n"),
            {{6, 5, "10.0.0.255 is the broadcast address on p0"}}},
        Refusal{"no_lladdr",
                with_ports("neighbors:\n  - {to: 10.0.0.2, dev: p0}\n"),
                {{6, 5, "'lladdr' is missing"}}},
        Refusal{
            "prefix",
            with_ports("neighbors:\n  - {to: 10.0.0.0/24, dev: p0, lladdr: 02:00:00:00:00:09}\n"),
            {{6, 10, "to: '10.0.0.0/24'"}}}),
    refusal_name);

struct Accepted {
    std::string_view name;
    std::string_view keys;
    std::string_view to;
    std::string_view dev;
};

std::ostream& operator<<(std::ostream& out, const Accepted& row) {
    return out << row.name;
}

class RouteAccepted : public testing::TestWithParam<Accepted> {};

TEST_P(RouteAccepted, WithDestinationAndNetdev) {
    const Config config =
        loaded(with_ports("routes:\n  - {" + std::string{GetParam().keys} + "}\n"));
    ASSERT_EQ(config.default_netns.routes.size(), 1U);
    EXPECT_EQ(config.default_netns.routes[0].to.to_string(), GetParam().to);
    EXPECT_EQ(config.default_netns.routes[0].dev, GetParam().dev);
}

INSTANTIATE_TEST_SUITE_P(
    Routes,
    RouteAccepted,
    testing::Values(
        Accepted{"via", "to: 192.0.2.0/24, via: 10.0.1.2", "192.0.2.0/24", "p1"},
        Accepted{"v6_via", "to: \"2001:db8::/32\", via: \"fd00:1::2\"", "2001:db8::/32", "p1"},
        Accepted{"v6_unquoted", "to: 2001:db8::/32, via: fd00:1::2", "2001:db8::/32", "p1"},
        Accepted{"default_by_via", "to: default, via: 10.0.0.2", "0.0.0.0/0", "p0"},
        Accepted{"default_by_v6_via", "to: default, via: fe80::2, dev: p1", "::/0", "p1"},
        Accepted{"default_by_family", "to: default, family: ipv6, type: prohibit", "::/0", ""},
        Accepted{"v4_default_via_v6", "to: default, family: ipv4, via: fd00::2", "0.0.0.0/0", "p0"},
        Accepted{"v4_via_v6", "to: 10.9.0.0/16, via: fe80::2, dev: p0", "10.9.0.0/16", "p0"},
        Accepted{"dev_only", "to: 10.9.0.0/16, dev: p0", "10.9.0.0/16", "p0"},
        Accepted{"on_link",
                 "to: 203.0.113.0/24, via: 192.0.2.77, dev: p1, on-link: true",
                 "203.0.113.0/24",
                 "p1"},
        Accepted{"blackhole", "to: 198.51.100.0/24, type: blackhole", "198.51.100.0/24", ""},
        Accepted{"blackhole_for_multicast", "to: 224.0.0.0/4, type: blackhole", "224.0.0.0/4", ""},
        Accepted{"local", "to: 10.69.0.1/32, type: local", "10.69.0.1/32", ""},
        Accepted{"Case_104_class_e", "to: 240.0.0.0/4, via: 10.0.0.2", "240.0.0.0/4", "p0"},
        Accepted{"v4_link_local", "to: 169.254.1.0/24, dev: p0", "169.254.1.0/24", "p0"},
        Accepted{"host_route",
                 "to: 192.0.2.1/32, via: 10.0.0.2, mtu: 1400, metric: 4294967295",
                 "192.0.2.1/32",
                 "p0"}),
    [](const auto& row) { return std::string{row.param.name}; });

TEST(Validate, LongestSubnetHasTheGateway) {
    const Config config = loaded(
        "version: 1\nports:\n  a: {device: x, addresses: [10.0.0.1/8]}\n  b: {device: y, "
        "addresses: [10.1.0.1/16]}\n"
        "routes: [{to: 1.0.0.0/8, via: 10.1.0.2}, {to: 2.0.0.0/8, via: 10.2.0.2}]\n");
    EXPECT_EQ(config.default_netns.routes.at(0).dev, "b");
    EXPECT_EQ(config.default_netns.routes.at(1).dev, "a");
}

TEST(Validate, Case_106_GatewayAtTheOtherEndOfAPointToPointSubnet) {
    const Config config = loaded(
        "version: 1\nports: {a: {device: x, addresses: [10.9.9.1/31, \"fd00:9::1/127\"]}}\n"
        "routes: [{to: default, via: 10.9.9.0}, {to: default, via: \"fd00:9::\"}]\n");
    EXPECT_EQ(config.default_netns.routes.size(), 2U);
}

TEST(Validate, AMtuLeftOutFollowsThePort) {
    const Config config = loaded(
        "version: 1\nports: {a: {device: x, mtu: 9000}}\nvlans: {v: {link: a, id: 1}, w: {link: a, "
        "id: 2, mtu: 1400}}\n");
    EXPECT_EQ(config.default_netns.vlans.at("v").settings.mtu, 9000);
    EXPECT_EQ(config.default_netns.vlans.at("w").settings.mtu, 1400);
}

}  // namespace
}  // namespace sluice::config
