// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "config_testing.h"

namespace sluice::config {
namespace {

class NetnsRefused : public testing::TestWithParam<Refusal> {};

TEST_P(NetnsRefused, WithPosition) {
    expect_refused(GetParam().text, GetParam().wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Netns,
    NetnsRefused,
    testing::Values(
        Refusal{"key",
                with_ports("netns: {a: {prots: {}}}\n"),
                {{5, 13, "unknown key 'prots': did you mean 'ports'?"}}},
        Refusal{"instance_wide_key",
                with_ports("netns: {a: {limits: {}}}\n"),
                {{5, 13, "unknown key 'limits'"}}},
        Refusal{"netns_in_netns",
                with_ports("netns: {a: {netns: {}}}\n"),
                {{5, 13, "unknown key 'netns'"}}},
        Refusal{"called_default",
                with_ports("netns: {default: {}}\n"),
                {{5, 9, "'default' is the netns of the top level"}}},
        Refusal{"name", with_ports("netns: {a/b: {}}\n"), {{5, 9, "'a/b' is not a name"}}},
        Refusal{"twice",
                with_ports("netns:\n  a: {}\n  a: {}\n"),
                {{7, 3, "'a' is here twice, first at line 6 column 3"}}},
        Refusal{"value_in_a_route",
                with_ports("netns:\n  a:\n    routes:\n      - {to: 10.0.0.1/24, via: 1.2.3.4}\n"),
                {{8, 14, "to: '10.0.0.1/24'"}}},
        Refusal{"dev_of_default",
                with_ports("netns:\n  a:\n    routes:\n      - {to: 1.0.0.0/8, dev: p0}\n"),
                {{8, 9, "dev 'p0' is no port or vlan here: there is none"}}},
        Refusal{"gateway_of_default",
                with_ports("netns:\n  a:\n    routes:\n      - {to: 1.0.0.0/8, via: 10.0.0.2}\n"),
                {{8, 9, "the gateway 10.0.0.2 is in no netdev's subnet"}}},
        Refusal{"nexthop_of_default",
                with_ports("nexthops: {1: {via: 10.0.0.2}}\nnetns:\n  a:\n    routes:\n      - "
                           "{to: 1.0.0.0/8, nexthop: 1}\n"),
                {{9, 9, "there is no next hop 1"}}},
        Refusal{"nexthop_of_netns_in_default",
                with_ports("netns: {a: {nexthops: {1: {type: blackhole}}}}\nroutes:\n  - {to: "
                           "1.0.0.0/8, nexthop: 1}\n"),
                {{7, 5, "there is no next hop 1"}}},
        Refusal{"link_of_default",
                with_ports("netns:\n  a:\n    vlans:\n      v: {link: p0, id: 5}\n"),
                {{8, 7, "v: link 'p0' is no port here"}}},
        Refusal{"link_netns_unknown",
                with_ports("netns:\n  a:\n    vlans:\n      v: {link: p0, link-netns: b, id: 5}\n"),
                {{8, 7, "v: link-netns 'b' is no netns here: write default, or one under netns"}}},
        Refusal{"link_in_link_netns",
                with_ports("netns:\n  a:\n    vlans:\n      v: {link: p9, link-netns: default, id: "
                           "5}\n"),
                {{8, 7, "v: link 'p9' is no port of default: did you mean 'p0'?"}}},
        Refusal{"vlan_id_in_two_netns",
                with_ports("vlans:\n  v: {link: p0, id: 5}\nnetns:\n  a:\n    vlans:\n      w: "
                           "{link: p0, link-netns: default, id: 5}\n"),
                {{10, 7, "w: p0 has vlan 5 already, at line 6 column 3"}}},
        Refusal{"vlan_mtu_above_its_port_elsewhere",
                with_ports("netns:\n  a:\n    vlans:\n      w: {link: p0, link-netns: default, id: "
                           "5, mtu: 9000}\n"),
                {{8, 7, "w: mtu 9000 is more than its port p0 has: at most 1500"}}},
        Refusal{"device_in_two_netns",
                with_ports("netns:\n  a:\n    ports:\n      p0: {device: net_null0}\n"),
                {{8, 7, "p0: the device net_null0 is a port already, at line 3 column 3"}}},
        Refusal{"mac_in_two_netns",
                "version: 1\nports:\n  p0: {device: x, mac: 02:00:00:00:00:01}\nnetns:\n  a:\n    "
                "ports:\n      p0: {device: y, mac: 02:00:00:00:00:01}\n",
                {{7, 7, "the mac 02:00:00:00:00:01 is another port's, at line 3 column 3"}}},
        Refusal{
            "route_limit_over_all",
            with_ports("limits: {ipv4-routes: 1}\nroutes: [{to: 1.0.0.0/8, via: "
                       "10.0.0.2}]\nnetns: {a: {routes: [{to: 1.0.0.0/8, type: blackhole}]}}\n"),
            {{5, 9, "2 ipv4-routes are in this file, the limit is 1"}}},
        Refusal{
            "errors_of_all",
            with_ports("routes:\n  - {to: 1.0.0.0/8, dev: q}\nnetns:\n  a:\n    nexthops:\n      "
                       "1: {via: 10.0.0.2}\n  b:\n    routing-policy: [{priority: 1, table: 7, "
                       "dscp: 64}]\n"),
            {{6, 5, "dev 'q'"}, {10, 7, "1: the gateway"}, {12, 52, "64 is out of range"}}}),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    Vrfs,
    NetnsRefused,
    testing::Values(
        Refusal{"no_table",
                with_ports("vrfs:\n  blue: {interfaces: [p0]}\n"),
                {{6, 3, "blue: 'table' is missing"}}},
        Refusal{"table_0",
                with_ports("vrfs:\n  blue: {table: 0}\n"),
                {{6, 17, "0 is out of range: 1 to"}}},
        Refusal{"table_main",
                with_ports("vrfs:\n  blue: {table: main}\n"),
                {{6, 3, "blue: table 254 is not a vrf's to have"}}},
        Refusal{"table_253",
                with_ports("vrfs:\n  blue: {table: 253}\n"),
                {{6, 3, "blue: table 253 is not a vrf's to have"}}},
        Refusal{"table_255",
                with_ports("vrfs:\n  blue: {table: 255}\n"),
                {{6, 17, "table 255 holds this router's addresses alone"}}},
        Refusal{"table_twice",
                with_ports("vrfs:\n  blue: {table: 100}\n  red: {table: 100}\n"),
                {{7, 3, "red: table 100 is the table of blue: choose another"}}},
        Refusal{"member_unknown",
                with_ports("vrfs:\n  blue: {table: 100, interfaces: [p9]}\n"),
                {{6, 3, "blue: 'p9' is no port or vlan here: did you mean 'p0'?"}}},
        Refusal{"member_twice",
                with_ports("vrfs:\n  blue: {table: 100, interfaces: [p0, p0]}\n"),
                {{6, 3, "blue: p0 is in blue already: one vrf a netdev"}}},
        Refusal{"member_of_two",
                with_ports("vrfs:\n  blue: {table: 100, interfaces: [p0]}\n  red: {table: 101, "
                           "interfaces: [p0]}\n"),
                {{7, 3, "red: p0 is in blue already: one vrf a netdev"}}},
        Refusal{
            "vrf_in_vrf",
            with_ports("vrfs:\n  blue: {table: 100}\n  red: {table: 101, interfaces: [blue]}\n"),
            {{7, 3, "red: blue is a vrf itself: name ports and vlans"}}},
        Refusal{"name_of_a_port",
                with_ports("vrfs:\n  p0: {table: 100}\n"),
                {{6, 3, "the name 'p0' is taken at line 3 column 3"}}},
        Refusal{"address_twice_in_one_vrf",
                "version: 1\nports:\n  a: {device: x, addresses: [10.0.0.1/24]}\n  b: {device: y, "
                "addresses: [10.0.0.1/24]}\nvrfs: {blue: {table: 100, interfaces: [a, b]}}\n",
                {{4, 30, "10.0.0.1 is on a already, at line 3 column 30"}}},
        Refusal{"route_vrf_unknown",
                with_ports("vrfs: {blue: {table: 100}}\nroutes:\n  - {to: 1.0.0.0/8, vrf: blu}\n"),
                {{7, 5, "dev 'blu' is no port, vlan or vrf here: did you mean 'blue'?"}}},
        Refusal{"route_vrf_is_a_port",
                with_ports("vrfs: {blue: {table: 100}}\nroutes:\n  - {to: 1.0.0.0/8, vrf: p0}\n"),
                {{7, 26, "'p0' is a port or vlan: write dev: p0, or the name of a vrf"}}},
        Refusal{"route_vrf_and_dev",
                with_ports("vrfs: {blue: {table: 100}}\nroutes:\n  - {to: 1.0.0.0/8, vrf: blue, "
                           "dev: p0}\n"),
                {{7, 26, "vrf is the dev of a route into a vrf: leave one of them out"}}},
        Refusal{"route_vrf_and_via",
                with_ports("vrfs: {blue: {table: 100}}\nroutes:\n  - {to: 1.0.0.0/8, vrf: blue, "
                           "via: 10.0.0.2}\n"),
                {{7, 5, "blue is a vrf, whose table says the rest of the way: leave via"}}},
        Refusal{"route_vrf_and_mtu",
                with_ports("vrfs: {blue: {table: 100}}\nroutes:\n  - {to: 1.0.0.0/8, dev: blue, "
                           "mtu: 1400}\n"),
                {{7, 5, "blue is a vrf, whose table says the rest"}}},
        Refusal{"Check_118_route_back_into_its_own_vrf",
                with_ports("vrfs: {blue: {table: 100}}\nroutes:\n  - {to: 1.0.0.0/8, dev: blue, "
                           "table: 100}\n"),
                {{7, 5, "table 100 is the table of blue itself: the lookup would never end"}}},
        Refusal{"local_route_in_a_vrf_dev",
                with_ports("vrfs: {blue: {table: 100}}\nroutes:\n  - {to: 1.0.0.1/32, dev: blue, "
                           "type: local}\n"),
                {{7, 5, "a local route's dev is a port or vlan"}}},
        Refusal{"Check_73_own_address_of_the_same_vrf",
                with_ports("vrfs: {blue: {table: 100, interfaces: [p0, p1]}}\nroutes:\n  - {to: "
                           "1.0.0.0/8, via: 10.0.1.1, dev: p0, on-link: true}\n"),
                {{7, 5, "the gateway 10.0.1.1 is an address of this router"}}},
        Refusal{"gateway_in_a_vrf_from_main",
                with_ports("vrfs: {blue: {table: 100, interfaces: [p0]}}\nroutes:\n  - {to: "
                           "1.0.0.0/8, via: 10.0.0.2}\n"),
                {{7, 5, "the gateway 10.0.0.2 is in no netdev's subnet"}}},
        Refusal{"gateway_in_main_from_a_vrf",
                with_ports("vrfs: {blue: {table: 100, interfaces: [p0]}}\nroutes:\n  - {to: "
                           "1.0.0.0/8, via: 10.0.1.2, table: 100}\n"),
                {{7, 5, "the gateway 10.0.1.2 is in no netdev's subnet of its vrf"}}},
        Refusal{"neighbor_on_a_vrf",
                with_ports("vrfs: {blue: {table: 100}}\nneighbors:\n  - {to: 10.0.0.2, dev: blue, "
                           "lladdr: 02:00:00:00:00:09}\n"),
                {{7, 5, "dev 'blue' is no port or vlan here"}}},
        Refusal{"route_twice_in_a_table",
                with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2, table: 7}\n  - {to: "
                           "1.0.0.0/8, via: 10.0.0.3, table: 7}\n"),
                {{7, 5, "1.0.0.0/8 with metric 0 in table 7 is here twice"}}}),
    refusal_name);

TEST(Netns, NamesAddressesAndIdsAreItsOwn) {
    const Config config = loaded(
        with_ports("nexthops: {1: {via: 10.0.0.2}}\nvrfs: {blue: {table: 100, interfaces: [p1]}}\n"
                   "routes: [{to: 1.0.0.0/8, nexthop: 1}]\n"
                   "netns:\n  a:\n    ports:\n      p0: {device: net_null2, addresses: "
                   "[10.0.0.1/24]}\n    vrfs: {blue: {table: 100, interfaces: [p0]}}\n    "
                   "nexthops: {1: {type: blackhole}}\n    routes: [{to: 1.0.0.0/8, nexthop: 1}, "
                   "{to: 2.0.0.0/8, via: 10.0.0.2, table: 100}]\n    neighbors: [{to: 10.0.0.2, "
                   "dev: p0, lladdr: 02:00:00:00:00:09}]\n  b: {}\n"));
    ASSERT_EQ(config.netns.size(), 2U);
    EXPECT_EQ(config.netns.at("b"), Netns{});
    const Netns& a = config.netns.at("a");
    EXPECT_EQ(a.ports.at("p0").device, "net_null2");
    ASSERT_EQ(a.routes.size(), 2U);
    EXPECT_EQ(a.routes[1].dev, "p0");
    EXPECT_EQ(a.neighbors.size(), 1U);
    EXPECT_EQ(config.default_netns.routes.size(), 1U);
    EXPECT_EQ(loaded(emit(config)), config) << emit(config);
}

TEST(Netns, AVlanMayHaveItsPortElsewhere) {
    const Config config = loaded(
        "version: 1\nports: {p: {device: x, mtu: 9000}}\nvlans: {w: {link: q, link-netns: a, id: "
        "1}}\nnetns:\n  a:\n    ports: {q: {device: y, mtu: 1400}}\n    vlans:\n      v: {link: p, "
        "link-netns: default, id: 1}\n      u: {link: q, link-netns: a, id: 2}\n");
    EXPECT_EQ(config.netns.at("a").vlans.at("v").settings.mtu, 9000);
    EXPECT_EQ(config.netns.at("a").vlans.at("v").link_netns, "default");
    EXPECT_EQ(config.netns.at("a").vlans.at("u").link_netns, "");
    EXPECT_EQ(config.default_netns.vlans.at("w").settings.mtu, 1400);
    EXPECT_EQ(loaded(emit(config)), config) << emit(config);
}

TEST(Vrfs, Check_73_AnAddressMayBeInTwoVrfsAndBeTheGatewayOfAnother) {
    const Config config = loaded(
        "version: 1\nports:\n  a: {device: x, addresses: [10.0.0.1/24]}\n  b: {device: y, "
        "addresses: [10.0.0.1/24]}\n  c: {device: z, addresses: [10.0.0.2/24]}\n"
        "vrfs: {blue: {table: 100, interfaces: [a]}, red: {table: 101, interfaces: [b]}}\nroutes:\n"
        "  - {to: 1.0.0.0/8, via: 10.0.0.2, table: 100}\n  - {to: 2.0.0.0/8, via: 10.0.0.1, dev: "
        "c}\n  - {to: 3.0.0.0/8, via: 10.0.0.1}\n");
    EXPECT_EQ(config.default_netns.routes.at(0).dev, "a");
    EXPECT_EQ(config.default_netns.routes.at(2).dev, "c");
}

TEST(Vrfs, Check_95_RoutesLeakByDevOrVrf) {
    const Config config = loaded(
        with_ports("vrfs: {blue: {table: 100, interfaces: [p0]}, red: {table: 101, interfaces: "
                   "[p1]}}\nroutes:\n  - {to: 10.0.1.0/24, vrf: red, table: 100}\n  - {to: "
                   "10.0.0.0/24, dev: blue, table: 101}\n"));
    EXPECT_EQ(config.default_netns.routes.at(0).dev, "red");
    EXPECT_EQ(config.default_netns.routes.at(1).dev, "blue");
    EXPECT_EQ(loaded(emit(config)), config) << emit(config);
}

TEST(Tables, MainWrittenOutIsTheDefault) {
    const Config config = loaded(
        with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2, table: main}\n  - {to: 1.0.0.0/8, "
                   "via: 10.0.0.2, table: 4294967295}\n"));
    EXPECT_EQ(config.default_netns.routes.at(0).table, kMainTable);
    EXPECT_EQ(config.default_netns.routes.at(1).table, 4294967295);
    EXPECT_EQ(loaded(emit(config)), config) << emit(config);
}

}  // namespace
}  // namespace sluice::config
