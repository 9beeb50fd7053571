// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "config_testing.h"
#include "diff_testing.h"

namespace sluice::config {
namespace {

struct Case {
    std::string_view name;
    std::string from;
    std::string to;
    std::vector<std::string> want;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.name;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
    return std::string{info.param.name};
}

class DiffOverNetns : public testing::TestWithParam<Case> {};

TEST_P(DiffOverNetns, GivesTheSteps) {
    EXPECT_EQ(steps(loaded(GetParam().from), loaded(GetParam().to)), GetParam().want);
}

const std::string kNone = "version: 1\n";

INSTANTIATE_TEST_SUITE_P(
    Netns,
    DiffOverNetns,
    testing::Values(
        Case{"added_empty", kNone, kNone + "netns: {a: {}}\n", {"a: add netns"}},
        Case{"removed_empty", kNone + "netns: {a: {}}\n", kNone, {"a: remove netns"}},
        Case{
            "removed_with_all_in_it",
            kNone +
                "netns:\n  a:\n    ports: {p: {device: x, addresses: [10.0.0.1/24]}}\n    vlans: "
                "{v: {link: p, id: 1}}\n    vrfs: {blue: {table: 7, interfaces: [v]}}\n    "
                "nexthops: {1: {via: 10.0.0.2}, 2: {group: {1: 1}}}\n    routes: [{to: 1.0.0.0/8, "
                "nexthop: 2}]\n    routing-policy: [{priority: 1, table: 7}]\n    neighbors: [{to: "
                "10.0.0.2, dev: p, lladdr: 02:00:00:00:00:08}]\n",
            kNone,
            {"a: remove rule 1 table 7",
             "a: remove route 1.0.0.0/8 - 0",
             "a: remove nexthop 2",
             "a: remove nexthop 1",
             "a: remove neighbor 10.0.0.2",
             "a: remove 10.0.0.1/24 on p",
             "a: v leaves its vrf",
             "a: remove vrf blue",
             "a: remove vlan v",
             "a: remove port p",
             "a: remove netns"}},
        Case{"removed_with_a_hash",
             kNone + "netns: {a: {multipath-hash: {ipv6: {policy: l3}}}}\n",
             kNone,
             {"a: remove netns"}},
        Case{"renamed",
             kNone + "netns: {a: {routes: [{to: 1.0.0.0/8, type: blackhole}]}}\n",
             kNone + "netns: {b: {routes: [{to: 1.0.0.0/8, type: blackhole}]}}\n",
             {"a: remove route 1.0.0.0/8 - 0",
              "b: add netns",
              "a: remove netns",
              "b: add route 1.0.0.0/8 - 0"}},
        Case{"M_01_port_moves_without_what_is_on_it",
             kNone +
                 "ports: {p: {device: x, addresses: [10.0.0.1/24]}, q: {device: y, addresses: "
                 "[10.1.0.1/24]}}\nvlans: {v: {link: p, id: 1}}\nnexthops: {1: {via: 10.0.0.2}, 2: "
                 "{via: 10.1.0.2}, 3: {group: {1: 1, 2: 1}}}\nroutes: [{to: 1.0.0.0/8, nexthop: "
                 "3}, {to: 2.0.0.0/8, via: 10.0.0.2}]\n",
             kNone +
                 "ports: {q: {device: y, addresses: [10.1.0.1/24]}}\nnexthops: {2: {via: "
                 "10.1.0.2}, 3: {group: {2: 1}}}\nroutes: [{to: 1.0.0.0/8, nexthop: 3}]\nnetns:\n  "
                 "a:\n    ports: {p: {device: x, mtu: 1400, addresses: [10.0.0.1/24]}}\n    vlans: "
                 "{v: {link: p, id: 1}}\n",
             {"remove route 2.0.0.0/8 10.0.0.2 0",
              "replace nexthop 3 1x1 2x1 by 2x1",
              "remove nexthop 1",
              "remove 10.0.0.1/24 on p",
              "remove vlan v",
              "a: add netns",
              "move p to a",
              "a: change p",
              "a: add vlan v",
              "a: add 10.0.0.1/24 on p"}},
        Case{"port_moves_out_of_a_netns_that_goes",
             kNone + "netns: {a: {ports: {p: {device: x}}}}\n",
             kNone + "ports: {p: {device: x}}\n",
             {"a: move p to default", "a: remove netns"}},
        Case{"another_device_does_not_move",
             kNone + "ports: {p: {device: x}}\nnetns: {a: {}}\n",
             kNone + "netns: {a: {ports: {p: {device: y}}}}\n",
             {"remove port p", "a: add port p"}},
        Case{"ports_move_up",
             kNone + "ports: {p: {device: x}}\nnetns: {a: {ports: {p: {device: y}}}, b: {}}\n",
             kNone + "netns: {a: {ports: {p: {device: x}}}, b: {ports: {p: {device: y}}}}\n",
             {"a: move p to b", "move p to a"}},
        Case{"ports_change_places",
             kNone + "ports: {p: {device: x}}\nnetns: {a: {ports: {p: {device: y}}}}\n",
             kNone + "ports: {p: {device: y}}\nnetns: {a: {ports: {p: {device: x}}}}\n",
             {"a: remove port p", "move p to a", "add port p"}},
        Case{"vlan_moves_alone",
             kNone + "ports: {p: {device: x}}\nvlans: {v: {link: p, id: 1}}\nnetns: {a: {}}\n",
             kNone +
                 "ports: {p: {device: x}}\nnetns: {a: {vlans: {v: {link: p, link-netns: default, "
                 "id: 1}}}}\n",
             {"remove vlan v", "a: add vlan v"}},
        Case{"vlan_elsewhere_goes_with_its_port",
             kNone +
                 "ports: {p: {device: x}}\nnetns: {a: {vlans: {v: {link: p, link-netns: default, "
                 "id: 1}}}}\n",
             kNone +
                 "ports: {p: {device: y}}\nnetns: {a: {vlans: {v: {link: p, link-netns: default, "
                 "id: 1}}}}\n",
             {"a: remove vlan v", "remove port p", "add port p", "a: add vlan v"}},
        Case{"hash",
             kNone + "netns: {a: {}}\n",
             kNone + "multipath-hash: {ipv6: {policy: l3}}\nnetns: {a: {multipath-hash: {ipv4: "
                     "{policy: l3}}}}\n",
             {"a: hash ipv4", "hash ipv6"}}),
    case_name);

std::string vrfs(std::string_view text) {
    return with_ports("vrfs: " + std::string{text} + "\n");
}

INSTANTIATE_TEST_SUITE_P(
    Vrfs,
    DiffOverNetns,
    testing::Values(
        Case{"order_of_members",
             vrfs("{blue: {table: 7, interfaces: [p0, p1]}}"),
             vrfs("{blue: {table: 7, interfaces: [p1, p0]}}"),
             {}},
        Case{"member_enters_with_its_addresses",
             vrfs("{blue: {table: 7}}"),
             vrfs("{blue: {table: 7, interfaces: [p1]}}"),
             {"remove 10.0.1.1/24 on p1",
              "remove fd00:1::1/64 on p1",
              "p1 enters blue",
              "add 10.0.1.1/24 on p1",
              "add fd00:1::1/64 on p1"}},
        Case{"Check_139_member_changes_vrfs_and_its_neighbors_come_again",
             "version: 1\nports: {p: {device: x}}\nvrfs: {blue: {table: 7, interfaces: [p]}, red: "
             "{table: 8}}\nneighbors: [{to: 10.0.0.2, dev: p, lladdr: 02:00:00:00:00:08}]\n",
             "version: 1\nports: {p: {device: x}}\nvrfs: {blue: {table: 7}, red: {table: 8, "
             "interfaces: [p]}}\nneighbors: [{to: 10.0.0.2, dev: p, lladdr: 02:00:00:00:00:08}]\n",
             {"remove neighbor 10.0.0.2",
              "p enters red",
              "set neighbor 10.0.0.2 02:00:00:00:00:08"}},
        Case{"Check_103_vrf_goes_and_its_member_stays",
             "version: 1\nports: {p: {device: x}}\nvrfs: {blue: {table: 7, interfaces: [p]}}\n",
             "version: 1\nports: {p: {device: x}}\n",
             {"p leaves its vrf", "remove vrf blue"}},
        Case{"another_table",
             "version: 1\nports: {p: {device: x}}\nvrfs: {blue: {table: 7, interfaces: "
             "[p]}}\nroutes: [{to: 1.0.0.0/8, vrf: blue}, {to: 2.0.0.0/8, dev: p, table: 7}]\n",
             "version: 1\nports: {p: {device: x}}\nvrfs: {blue: {table: 8, interfaces: "
             "[p]}}\nroutes: [{to: 1.0.0.0/8, vrf: blue}, {to: 2.0.0.0/8, dev: p, table: 7}]\n",
             {"remove route 1.0.0.0/8 - 0",
              "p leaves its vrf",
              "remove vrf blue",
              "add vrf blue 8",
              "p enters blue",
              "add route 1.0.0.0/8 - 0"}}),
    case_name);

std::string hops(std::string_view text, std::string_view routes) {
    return with_ports("nexthops: " + std::string{text} + "\nroutes: [" + std::string{routes} +
                      "]\n");
}
constexpr std::string_view kOver10 = "{to: 1.0.0.0/8, nexthop: 10}";

INSTANTIATE_TEST_SUITE_P(
    NextHops,
    DiffOverNetns,
    testing::Values(
        Case{"Check_33_blackhole_to_gateway_in_place",
             hops("{10: {type: blackhole}}", kOver10),
             hops("{10: {via: 10.0.0.2}}", kOver10),
             {"replace nexthop 10 blackhole by 10.0.0.2 p0"}},
        Case{"Check_33_gateway_to_blackhole_in_place",
             hops("{10: {via: 10.0.0.2}}", kOver10),
             hops("{10: {type: blackhole}}", kOver10),
             {"replace nexthop 10 10.0.0.2 p0 by blackhole"}},
        Case{"Check_24_weights",
             hops("{1: {via: 10.0.0.2}, 2: {via: 10.0.1.2}, 10: {group: {1: 1, 2: 1}}}", kOver10),
             hops("{1: {via: 10.0.0.2}, 2: {via: 10.0.1.2}, 10: {group: {1: 1, 2: 3}}}", kOver10),
             {"replace nexthop 10 1x1 2x1 by 1x1 2x3"}},
        Case{"Check_36_member_gone_leaves_the_group_first",
             hops("{1: {via: 10.0.0.2}, 2: {via: 10.0.1.2}, 10: {group: {1: 1, 2: 1}}}", kOver10),
             hops("{2: {via: 10.0.1.2}, 10: {group: {2: 1}}}", kOver10),
             {"replace nexthop 10 1x1 2x1 by 2x1", "remove nexthop 1"}},
        Case{"only_member_changes_over_without_a_gap",
             hops("{1: {via: 10.0.0.2}, 10: {group: {1: 1}}}", kOver10),
             hops("{2: {via: 10.0.1.2}, 10: {group: {2: 1}}}", kOver10),
             {"add nexthop 2 10.0.1.2 p1", "replace nexthop 10 1x1 by 2x1", "remove nexthop 1"}},
        Case{"route_changes_over_without_a_gap",
             hops("{1: {via: 10.0.0.2}, 10: {group: {1: 1}}}", kOver10),
             hops("{2: {via: 10.0.1.2}}", "{to: 1.0.0.0/8, nexthop: 2}"),
             {"add nexthop 2 10.0.1.2 p1",
              "replace route 1.0.0.0/8 - 0 by 1.0.0.0/8 - 0",
              "remove nexthop 10",
              "remove nexthop 1"}},
        Case{"Check_40_next_hop_to_group_takes_its_routes_out",
             hops("{1: {via: 10.0.0.2}, 10: {via: 10.0.1.2}}", kOver10),
             hops("{1: {via: 10.0.0.2}, 10: {group: {1: 1}}}", kOver10),
             {"remove route 1.0.0.0/8 - 0",
              "remove nexthop 10",
              "add nexthop 10 1x1",
              "add route 1.0.0.0/8 - 0"}},
        Case{"Check_57_another_number_of_buckets_takes_its_routes_out",
             hops("{1: {dev: p0}, 10: {group: {1: 1}, resilient: {buckets: 64}}}", kOver10),
             hops("{1: {dev: p0}, 10: {group: {1: 1}, resilient: {buckets: 32}}}", kOver10),
             {"remove route 1.0.0.0/8 - 0",
              "remove nexthop 10",
              "add nexthop 10 1x1",
              "add route 1.0.0.0/8 - 0"}},
        Case{"another_timer_in_place",
             hops("{1: {dev: p0}, 10: {group: {1: 1}, resilient: {idle-timer: 5s}}}", kOver10),
             hops("{1: {dev: p0}, 10: {group: {1: 1}, resilient: {idle-timer: 0s}}}", kOver10),
             {"replace nexthop 10 1x1 by 1x1"}},
        Case{"Check_35_group_shrinks_before_its_member_turns_blackhole",
             hops("{1: {via: 10.0.0.2}, 2: {via: 10.0.1.2}, 10: {group: {1: 1, 2: 1}}}", kOver10),
             hops("{1: {type: blackhole}, 2: {via: 10.0.1.2}, 10: {group: {1: 1}}}", kOver10),
             {"replace nexthop 10 1x1 2x1 by 1x1", "replace nexthop 1 10.0.0.2 p0 by blackhole"}},
        Case{"Check_35_group_grows_after_its_blackhole_is_a_gateway",
             hops("{1: {type: blackhole}, 2: {via: 10.0.1.2}, 10: {group: {1: 1}}}", kOver10),
             hops("{1: {via: 10.0.0.2}, 2: {via: 10.0.1.2}, 10: {group: {1: 1, 2: 1}}}", kOver10),
             {"replace nexthop 1 blackhole by 10.0.0.2 p0", "replace nexthop 10 1x1 by 1x1 2x1"}},
        Case{"Check_43_ipv6_route_leaves_before_the_gateway_is_ipv4",
             hops("{1: {via: \"fd00::2\"}, 2: {via: \"fd00::3\"}}",
                  "{to: \"2001:db8::/32\", nexthop: 1}"),
             hops("{1: {via: 10.0.0.2}, 2: {via: \"fd00::3\"}}",
                  "{to: \"2001:db8::/32\", nexthop: 2}"),
             {"remove route 2001:db8::/32 - 0",
              "replace nexthop 1 fd00::2 p0 by 10.0.0.2 p0",
              "add route 2001:db8::/32 - 0"}},
        Case{"Check_43_group_of_an_ipv6_route_shrinks_before_its_member_is_ipv4",
             hops("{1: {via: \"fd00::2\"}, 2: {via: \"fd00::3\"}, 10: {group: {1: 1, 2: 1}}}",
                  "{to: \"2001:db8::/32\", nexthop: 10}"),
             hops("{1: {via: 10.0.0.2}, 2: {via: \"fd00::3\"}, 10: {group: {2: 1}}}",
                  "{to: \"2001:db8::/32\", nexthop: 10}"),
             {"replace nexthop 10 1x1 2x1 by 2x1", "replace nexthop 1 fd00::2 p0 by 10.0.0.2 p0"}},
        Case{"another_device_under_a_member",
             "version: 1\nports: {p: {device: x, addresses: [10.0.0.1/24]}, q: {device: y, "
             "addresses: [10.1.0.1/24]}}\nnexthops: {1: {via: 10.0.0.2}, 2: {via: 10.1.0.2}, 10: "
             "{group: {1: 1, 2: 1}}, 11: {group: {1: 1}}}\nroutes: [{to: 1.0.0.0/8, nexthop: 10}, "
             "{to: 2.0.0.0/8, nexthop: 11}]\n",
             "version: 1\nports: {p: {device: z, addresses: [10.0.0.1/24]}, q: {device: y, "
             "addresses: [10.1.0.1/24]}}\nnexthops: {1: {via: 10.0.0.2}, 2: {via: 10.1.0.2}, 10: "
             "{group: {1: 1, 2: 1}}, 11: {group: {1: 1}}}\nroutes: [{to: 1.0.0.0/8, nexthop: 10}, "
             "{to: 2.0.0.0/8, nexthop: 11}]\n",
             {"remove route 2.0.0.0/8 - 0",
              "replace nexthop 10 1x1 2x1 by 2x1",
              "remove nexthop 11",
              "remove nexthop 1",
              "remove 10.0.0.1/24 on p",
              "remove port p",
              "add port p",
              "add 10.0.0.1/24 on p",
              "add nexthop 1 10.0.0.2 p",
              "replace nexthop 10 2x1 by 1x1 2x1",
              "add nexthop 11 1x1",
              "add route 2.0.0.0/8 - 0"}}),
    case_name);

std::string rules(std::string_view text) {
    return kNone + "routing-policy: [" + std::string{text} + "]\n";
}

INSTANTIATE_TEST_SUITE_P(
    Rules,
    DiffOverNetns,
    testing::Values(
        Case{"changed",
             rules("{priority: 1, table: 7}, {priority: 2, table: 8}"),
             rules("{priority: 1, table: 7}, {priority: 2, table: 9}"),
             {"remove rule 2 table 8", "add rule 2 table 9"}},
        Case{"order_of_other_priorities",
             rules("{priority: 1, table: 7}, {priority: 2, table: 8}"),
             rules("{priority: 2, table: 8}, {priority: 1, table: 7}"),
             {}},
        Case{"order_of_one_priority",
             rules("{priority: 1, table: 7}, {priority: 1, table: 8}, {priority: 1, table: 9}"),
             rules("{priority: 1, table: 8}, {priority: 1, table: 7}, {priority: 1, table: 9}"),
             {"remove rule 1 table 7",
              "remove rule 1 table 9",
              "add rule 1 table 7",
              "add rule 1 table 9"}},
        Case{"last_of_one_priority_goes_others_stay",
             rules("{priority: 1, table: 7}, {priority: 1, table: 8}"),
             rules("{priority: 1, table: 7}"),
             {"remove rule 1 table 8"}},
        Case{"order_of_two_families_of_one_priority",
             rules("{priority: 1, table: 7}, {priority: 1, family: ipv6, table: 8}"),
             rules("{priority: 1, family: ipv6, table: 8}, {priority: 1, table: 7}"),
             {}}),
    case_name);

}  // namespace
}  // namespace sluice::config
