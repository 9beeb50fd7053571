// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "config_testing.h"

namespace sluice::config {
namespace {

class NotBuilt : public testing::TestWithParam<Refusal> {};

TEST_P(NotBuilt, IsRefusedByName) {
    expect_refused(GetParam().text, GetParam().wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Features,
    NotBuilt,
    testing::Values(
        Refusal{"netns",
                with_ports("netns: {a: {}}\n"),
                {{5, 1, "netns: not built yet in this release"}}},
        Refusal{"vrfs",
                with_ports("vrfs: {blue: {table: 100, interfaces: [p0]}}\n"),
                {{5, 1, "vrfs: not built yet in this release"}}},
        Refusal{
            "nexthops",
            with_ports("nexthops:\n  1: {via: 10.0.1.2, dev: p1}\n  10: {group: {1: 3}, resilient: "
                       "{buckets: 64, idle-timer: 120s}}\n  11: {type: blackhole}\n"),
            {{5, 1, "nexthops: not built yet"}}},
        Refusal{"routing_policy",
                with_ports("routing-policy:\n  - {priority: 100, from: 10.0.0.0/8, iif: p0, dscp: "
                           "8, mark: 0, table: 100}\n"),
                {{5, 1, "routing-policy: not built yet"}}},
        Refusal{"route_nexthop",
                with_ports("nexthops: {1: {via: 10.0.1.2}}\nroutes:\n  - {to: default, nexthop: 1, "
                           "metric: 20}\n"),
                {{5, 1, "nexthops: not built"}, {7, 19, "nexthop: not built yet"}}},
        Refusal{"route_table",
                with_ports("routes:\n  - {to: default, via: 10.0.0.2, table: 100}\n"),
                {{6, 34, "table: '100' is not built yet in this release: write main"}}},
        Refusal{"metrics",
                "version: 1\ncontrol: {metrics: 127.0.0.1:9110}\n",
                {{2, 11, "metrics: not built yet"}}},
        Refusal{
            "fpm", "version: 1\ncontrol: {fpm: \"[::1]:2620\"}\n", {{2, 11, "fpm: not built yet"}}},
        Refusal{"cache_auto",
                "version: 1\nworkers: {cache: auto}\n",
                {{2, 11, "cache: 'auto' is not built yet in this release: write off"}}},
        Refusal{"cache_on",
                "version: 1\nworkers: {cache: on}\n",
                {{2, 11, "cache: 'on' is not built yet"}}},
        Refusal{"cache_entries",
                "version: 1\nworkers: {cache-entries: 1024}\n",
                {{2, 11, "cache-entries: '1024' is not built yet"}}},
        Refusal{
            "source_validation",
            "version: 1\nports:\n  p: {device: x, source-validation: strict}\n",
            {{3, 18, "source-validation: 'strict' is not built yet in this release: write off"}}},
        Refusal{"send_redirects",
                "version: 1\nports:\n  p: {device: x, send-redirects: true}\n",
                {{3, 18, "send-redirects: 'true' is not built yet"}}},
        Refusal{"accept_ra_of_vlan",
                with_ports("vlans:\n  v: {link: p0, id: 1, accept-ra: true}\n"),
                {{6, 24, "accept-ra: 'true' is not built yet"}}}),
    refusal_name);

// What is not built is read and checked all the same.
INSTANTIATE_TEST_SUITE_P(
    Syntax,
    NotBuilt,
    testing::Values(
        Refusal{"netns_key",
                with_ports("netns: {a: {prots: {}}}\n"),
                {{5, 1, "not built"}, {5, 13, "unknown key 'prots': did you mean 'ports'?"}}},
        Refusal{"netns_routes",
                with_ports("netns:\n  a:\n    routes:\n      - {to: 10.0.0.1/24, via: 1.2.3.4}\n"),
                {{5, 1, "not built"}, {8, 14, "to: '10.0.0.1/24'"}}},
        Refusal{"netns_default",
                with_ports("netns: {default: {}}\n"),
                {{5, 1, "not built"}, {5, 9, "'default' is the netns of the top level"}}},
        Refusal{"vrf_interface",
                with_ports("vrfs: {blue: {table: 254, interfaces: [p9]}}\n"),
                {{5, 1, "not built"},
                 {5, 8, "table 254 is the table of the netns itself"},
                 {5, 8, "'p9' is no port or vlan here: did you mean"}}},
        Refusal{
            "nexthop_kinds",
            with_ports("nexthops: {1: {via: 10.0.1.2, type: blackhole}}\n"),
            {{5, 1, "not built"}, {5, 12, "either via and dev, or a group, or type: blackhole"}}},
        Refusal{"nexthop_member",
                with_ports("nexthops: {1: {group: {7: 1}}}\n"),
                {{5, 1, "not built"}, {5, 12, "there is no next hop 7"}}},
        Refusal{
            "nexthop_group_in_group",
            with_ports("nexthops: {1: {via: 10.0.1.2}, 2: {group: {1: 1}}, 3: {group: {2: 1}}}\n"),
            {{5, 1, "not built"}, {5, 52, "2 is a group itself"}}},
        Refusal{"nexthop_and_via",
                with_ports("nexthops: {1: {via: 10.0.1.2}}\nroutes: [{to: 1.0.0.0/8, nexthop: 1, "
                           "via: 10.0.0.2}]\n"),
                {{5, 1, "not built"},
                 {6, 10, "nexthop says all about the way"},
                 {6, 26, "nexthop: not built"}}},
        Refusal{"nexthop_id",
                with_ports("nexthops: {a: {via: 10.0.1.2}}\n"),
                {{5, 1, "not built"}, {5, 12, "'a' is not a number"}}},
        Refusal{"nexthop_timer",
                with_ports("nexthops: {1: {via: 10.0.1.2}, 2: {group: {1: 1}, resilient: "
                           "{idle-timer: 2h}}}\n"),
                {{5, 1, "not built"}, {5, 75, "'2h' is not a time"}}},
        Refusal{
            "rule_families",
            with_ports(
                "routing-policy: [{priority: 1, table: 7, from: 10.0.0.0/8, to: \"fd00::/8\"}]\n"),
            {{5, 1, "not built"}, {5, 18, "one family a rule"}}},
        Refusal{"rule_iif",
                with_ports("routing-policy: [{priority: 1, table: 7, iif: q}]\n"),
                {{5, 1, "not built"}, {5, 18, "iif 'q' is no port or vlan here"}}},
        Refusal{"rule_dscp",
                with_ports("routing-policy: [{priority: 1, table: 7, dscp: 64}]\n"),
                {{5, 1, "not built"}, {5, 48, "64 is out of range: 0 to 63"}}},
        Refusal{"endpoint",
                "version: 1\ncontrol: {metrics: 9110}\n",
                {{2, 11, "not built"}, {2, 20, "'9110' is not an address and port"}}}),
    refusal_name);

TEST(NotBuiltYet, DefaultsWrittenOutAreFine) {
    EXPECT_EQ(loaded(with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2, table: main}\n")),
              loaded(with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2, table: 254}\n")));
}

}  // namespace
}  // namespace sluice::config
