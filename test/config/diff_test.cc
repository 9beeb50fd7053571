// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <variant>

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

class Diff : public testing::TestWithParam<Case> {};

TEST_P(Diff, GivesTheSteps) {
    EXPECT_EQ(steps(loaded(GetParam().from), loaded(GetParam().to)), GetParam().want);
}

const std::string kThree =
    "routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2}\n  - {to: 2.0.0.0/8, via: 10.0.0.2}\n  - {to: "
    "3.0.0.0/8, via: 10.0.0.2}\n";

INSTANTIATE_TEST_SUITE_P(
    Changes,
    Diff,
    testing::Values(
        Case{"nothing", with_ports(kThree), with_ports(kThree), {}},
        Case{"order_of_routes",
             with_ports(kThree),
             with_ports("routes:\n  - {to: 3.0.0.0/8, via: 10.0.0.2}\n  - {to: 1.0.0.0/8, via: "
                        "10.0.0.2}\n  - {to: 2.0.0.0/8, via: 10.0.0.2}\n"),
             {}},
        Case{"default_written_out",
             with_ports("routes: [{to: 1.0.0.0/8, via: 10.0.0.2}]\n"),
             with_ports("routes: [{to: 1.0.0.0/8, via: 10.0.0.2, dev: p0, metric: 0, type: "
                        "unicast}]\nicmp: {error-rate: 100}\n"),
             {}},
        Case{"Case_137_metric",
             with_ports(kThree),
             with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2}\n  - {to: 2.0.0.0/8, via: "
                        "10.0.0.2, metric: 7}\n  - {to: 3.0.0.0/8, via: 10.0.0.2}\n"),
             {"replace route 2.0.0.0/8 10.0.0.2 0 by 2.0.0.0/8 10.0.0.2 7"}},
        Case{"Case_137_gateway",
             with_ports(kThree),
             with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2}\n  - {to: 2.0.0.0/8, via: "
                        "10.0.0.3}\n  - {to: 3.0.0.0/8, via: 10.0.0.2}\n"),
             {"replace route 2.0.0.0/8 10.0.0.2 0 by 2.0.0.0/8 10.0.0.3 0"}},
        Case{"Case_137_port",
             with_ports(kThree),
             with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2}\n  - {to: 2.0.0.0/8, via: "
                        "10.0.1.2}\n  - {to: 3.0.0.0/8, via: 10.0.0.2}\n"),
             {"replace route 2.0.0.0/8 10.0.0.2 0 by 2.0.0.0/8 10.0.1.2 0"}},
        Case{"second_metric_added",
             with_ports(kThree),
             with_ports(kThree + "  - {to: 2.0.0.0/8, via: 10.0.1.2, metric: 7}\n"),
             {"add route 2.0.0.0/8 10.0.1.2 7"}},
        Case{"route_gone_and_route_new",
             with_ports(kThree),
             with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2}\n  - {to: 3.0.0.0/8, via: "
                        "10.0.0.2}\n  - {to: \"2001:db8::/32\", via: \"fd00::2\"}\n"),
             {"remove route 2.0.0.0/8 10.0.0.2 0", "add route 2001:db8::/32 fd00::2 0"}},
        Case{"two_metrics_swap_to_two_others",
             with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2, metric: 1}\n  - {to: "
                        "1.0.0.0/8, via: 10.0.0.2, metric: 2}\n"),
             with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2, metric: 3}\n  - {to: "
                        "1.0.0.0/8, via: 10.0.0.2, metric: 4}\n"),
             {"remove route 1.0.0.0/8 10.0.0.2 1",
              "remove route 1.0.0.0/8 10.0.0.2 2",
              "add route 1.0.0.0/8 10.0.0.2 3",
              "add route 1.0.0.0/8 10.0.0.2 4"}},
        Case{
            "neighbor_mac",
            with_ports("neighbors: [{to: 10.0.0.2, dev: p0, lladdr: 02:00:00:00:00:08}]\n"),
            with_ports("neighbors: [{to: 10.0.0.2, dev: p0, lladdr: 02:00:00:00:00:09}, {to: "
                       "10.0.0.3, dev: p0, lladdr: 02:00:00:00:00:0a}]\n"),
            {"set neighbor 10.0.0.2 02:00:00:00:00:09", "set neighbor 10.0.0.3 02:00:00:00:00:0a"}},
        Case{"neighbor_gone",
             with_ports("neighbors: [{to: 10.0.0.2, dev: p0, lladdr: 02:00:00:00:00:08}]\n"),
             with_ports(""),
             {"remove neighbor 10.0.0.2"}},
        Case{"instance",
             with_ports(""),
             with_ports("icmp: {error-rate: 10}\nforward-class-e: false\nworkers: {idle: poll}\n"),
             {"change instance"}},
        Case{"cache", with_ports(""), with_ports("workers: {cache: off}\n"), {"change instance"}},
        Case{"settings",
             "version: 1\nports: {p: {device: x}}\n",
             "version: 1\nports: {p: {device: x, up: false}}\n",
             {"change p"}},
        Case{"addresses",
             "version: 1\nports: {p: {device: x, addresses: [10.0.0.1/24, 10.0.1.1/24]}}\n",
             "version: 1\nports: {p: {device: x, addresses: [10.0.1.1/24, 10.0.2.1/24]}}\n",
             {"remove 10.0.0.1/24 on p", "add 10.0.2.1/24 on p"}},
        Case{"address_moves",
             "version: 1\nports: {p: {device: x, addresses: [10.0.0.1/24]}, q: {device: y}}\n",
             "version: 1\nports: {p: {device: x}, q: {device: y, addresses: [10.0.0.1/24]}}\n",
             {"remove 10.0.0.1/24 on p", "add 10.0.0.1/24 on q"}},
        Case{"mtu_lowered_vlan_first",
             "version: 1\nports: {p: {device: x, mtu: 9000}}\nvlans: {v: {link: p, id: 1}}\n",
             "version: 1\nports: {p: {device: x}}\nvlans: {v: {link: p, id: 1}}\n",
             {"change v", "change p"}},
        Case{"mtu_raised_port_first",
             "version: 1\nports: {p: {device: x}}\nvlans: {a: {link: p, id: 1}}\n",
             "version: 1\nports: {p: {device: x, mtu: 9000}}\nvlans: {a: {link: p, id: 1}}\n",
             {"change p", "change a"}},
        Case{"port_renamed",
             "version: 1\nports: {a: {device: x}}\n",
             "version: 1\nports: {b: {device: x}}\n",
             {"remove port a", "add port b"}},
        Case{"vlan_id",
             "version: 1\nports: {p: {device: x}}\nvlans: {v: {link: p, id: 1}}\n",
             "version: 1\nports: {p: {device: x}}\nvlans: {v: {link: p, id: 2}}\n",
             {"remove vlan v", "add vlan v"}},
        Case{"another_device_takes_all_with_it",
             "version: 1\nports: {p: {device: x, addresses: [10.0.0.1/24]}}\nvlans: {v: {link: p, "
             "id: 1, addresses: [10.1.0.1/24]}}\nroutes: [{to: 1.0.0.0/8, via: 10.0.0.2}, {to: "
             "2.0.0.0/8, via: 10.1.0.2}, {to: 3.0.0.0/8, type: blackhole}]\nneighbors: [{to: "
             "10.0.0.2, dev: p, lladdr: 02:00:00:00:00:08}]\n",
             "version: 1\nports: {p: {device: y, addresses: [10.0.0.1/24]}}\nvlans: {v: {link: p, "
             "id: 1, addresses: [10.1.0.1/24]}}\nroutes: [{to: 1.0.0.0/8, via: 10.0.0.2}, {to: "
             "2.0.0.0/8, via: 10.1.0.2}, {to: 3.0.0.0/8, type: blackhole}]\nneighbors: [{to: "
             "10.0.0.2, dev: p, lladdr: 02:00:00:00:00:08}]\n",
             {"remove route 1.0.0.0/8 10.0.0.2 0",
              "remove route 2.0.0.0/8 10.1.0.2 0",
              "remove neighbor 10.0.0.2",
              "remove 10.0.0.1/24 on p",
              "remove 10.1.0.1/24 on v",
              "remove vlan v",
              "remove port p",
              "add port p",
              "add vlan v",
              "add 10.0.0.1/24 on p",
              "add 10.1.0.1/24 on v",
              "set neighbor 10.0.0.2 02:00:00:00:00:08",
              "add route 1.0.0.0/8 10.0.0.2 0",
              "add route 2.0.0.0/8 10.1.0.2 0"}},
        Case{"route_leaves_a_port_that_goes",
             with_ports("routes: [{to: 1.0.0.0/8, via: 10.0.1.2}]\n"),
             "version: 1\nports:\n  p0: {device: net_null0, addresses: [10.0.0.1/24, "
             "\"fd00::1/64\"]}\nroutes: [{to: 1.0.0.0/8, via: 10.0.0.2}]\n",
             {"remove route 1.0.0.0/8 10.0.1.2 0",
              "remove 10.0.1.1/24 on p1",
              "remove fd00:1::1/64 on p1",
              "remove port p1",
              "add route 1.0.0.0/8 10.0.0.2 0"}}),
    [](const auto& row) { return std::string{row.param.name}; });

TEST(DiffFromNothing, BuildsEverythingInOrder) {
    const Config wanted = loaded(
        with_ports("vlans: {v: {link: p0, id: 3}}\nroutes: [{to: 1.0.0.0/8, via: 10.0.0.2}]\n"));
    EXPECT_EQ(steps(starting_point(wanted), wanted),
              (std::vector<std::string>{"add port p0",
                                        "add port p1",
                                        "add vlan v",
                                        "add 10.0.0.1/24 on p0",
                                        "add fd00::1/64 on p0",
                                        "add 10.0.1.1/24 on p1",
                                        "add fd00:1::1/64 on p1",
                                        "add route 1.0.0.0/8 10.0.0.2 0"}));
}

TEST(DiffFromNothing, PortsComeWithoutAddresses) {
    const Config wanted = loaded(with_ports(""));
    const auto found = diff(starting_point(wanted), wanted);
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(std::get<AddPort>(found->front().action).port.addresses.empty());
}

TEST(DiffRefuses, WhatNeedsARestart) {
    const Config running = loaded("version: 1\n");
    const Config wanted = loaded(
        "version: 1\ninstance: other\ndpdk: {lcores: [0, 2], hugepages: false, memory-mb: 128, "
        "extra-args: [-v]}\nworkers: {burst: 8, cache-entries: 1024}\n"
        "control: {socket: /tmp/s}\nlimits: {neighbors: 5}\n");
    const auto actions = diff(running, wanted);
    ASSERT_FALSE(actions.has_value());
    expect_errors(actions.error(),
                  {{2, 11, "instance: a change needs a restart"},
                   {3, 7, "dpdk.lcores"},
                   {3, 7, "dpdk.hugepages"},
                   {3, 7, "dpdk.memory-mb"},
                   {3, 7, "dpdk.extra-args"},
                   {4, 10, "workers.burst"},
                   {4, 10, "workers.cache-entries"},
                   {5, 10, "control.socket"},
                   {6, 9, "limits"}});
}

}  // namespace
}  // namespace sluice::config
