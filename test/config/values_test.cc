// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "config_testing.h"

namespace sluice::config {
namespace {

std::string port(std::string_view settings) {
    return "version: 1\nports:\n  p0: {device: net_null0, " + std::string{settings} + "}\n";
}
constexpr std::uint32_t kColumn = 27;  // where `settings` begins, on line 3

class ValueRefused : public testing::TestWithParam<Refusal> {};

TEST_P(ValueRefused, WithPosition) {
    expect_refused(GetParam().text, GetParam().wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Case_128_Macs,
    ValueRefused,
    testing::Values(
        Refusal{
            "base_60_integer", port("mac: 41135085296"), {{3, kColumn + 5, "mac: '41135085296'"}}},
        Refusal{"group",
                port("mac: 01:00:5e:00:00:01"),
                {{3, kColumn + 5, "01:00:5e:00:00:01 is a group address"}}},
        Refusal{
            "broadcast", port("mac: ff:ff:ff:ff:ff:ff"), {{3, kColumn + 5, "is a group address"}}},
        Refusal{"zero", port("mac: 00:00:00:00:00:00"), {{3, kColumn + 5, "is all zero"}}},
        Refusal{"five_bytes",
                port("mac: 02:00:00:00:01"),
                {{3, kColumn + 5, "write it like 02:00:00:00:00:01"}}}),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    Case_132_Booleans,
    ValueRefused,
    testing::Values(
        Refusal{"no",
                port("up: no"),
                {{3,
                  kColumn + 4,
                  "up: 'no' is not a boolean here (no yes, no, on, off, True): write false"}}},
        Refusal{"off", port("up: off"), {{3, kColumn + 4, "write false"}}},
        Refusal{"yes", port("up: yes"), {{3, kColumn + 4, "write true"}}},
        Refusal{"on", port("up: on"), {{3, kColumn + 4, "write true"}}},
        Refusal{"n", port("up: n"), {{3, kColumn + 4, "write false"}}},
        Refusal{"False", port("up: False"), {{3, kColumn + 4, "write false"}}},
        Refusal{"TRUE", port("up: TRUE"), {{3, kColumn + 4, "write true"}}},
        Refusal{"quoted_no", port("up: \"no\""), {{3, kColumn + 4, "write false"}}},
        Refusal{"quoted_true",
                port("up: \"true\""),
                {{3, kColumn + 4, "in quotes is a string: write true without"}}},
        Refusal{
            "one", port("up: 1"), {{3, kColumn + 4, "'1' is not a boolean: write true or false"}}},
        Refusal{"null", port("up: null"), {{3, kColumn + 4, "'null' is not a boolean"}}}),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    Integers,
    ValueRefused,
    testing::Values(
        Refusal{"octal",
                port("mtu: 01500"),
                {{3, kColumn + 5, "'01500' is not a number: write decimal digits only"}}},
        Refusal{"hex", port("mtu: 0x5dc"), {{3, kColumn + 5, "decimal digits only"}}},
        Refusal{"underscore", port("mtu: 1_500"), {{3, kColumn + 5, "decimal digits only"}}},
        Refusal{"exponent", port("mtu: 1e3"), {{3, kColumn + 5, "decimal digits only"}}},
        Refusal{"fraction", port("mtu: 1500.0"), {{3, kColumn + 5, "decimal digits only"}}},
        Refusal{"sign", port("mtu: +1500"), {{3, kColumn + 5, "decimal digits only"}}},
        Refusal{"negative", port("mtu: -1"), {{3, kColumn + 5, "decimal digits only"}}},
        Refusal{"quoted", port("mtu: \"1500\""), {{3, kColumn + 5, "in quotes is a string"}}},
        Refusal{"beyond_64_bits",
                port("mtu: 99999999999999999999999"),
                {{3, kColumn + 5, "is out of range: 68 to 9702"}}},
        Refusal{"sexagesimal", port("mtu: 1:30"), {{3, kColumn + 5, "decimal digits only"}}},
        Refusal{"Check_148_mtu_50",
                port("mtu: 50"),
                {{3, kColumn + 5, "50 is out of range: 68 to 9702"}}},
        Refusal{"mtu_9703", port("mtu: 9703"), {{3, kColumn + 5, "9703 is out of range"}}},
        Refusal{"learn_3", port("arp-accept: 3"), {{3, kColumn + 12, "3 is out of range: 0 to 2"}}},
        Refusal{"limit_0",
                "version: 1\nlimits: {neighbors: 0}\n",
                {{2, 21, "0 is out of range: 1 to"}}},
        Refusal{"uncached_lists",
                "version: 1\nlimits: {uncached-lists: 100}\n",
                {{2, 26, "100 is not a power of two"}}},
        Refusal{"cache_entries",
                "version: 1\nworkers: {cache-entries: 500}\n",
                {{2, 26, "500 is not a power of two"}}}),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    Addresses,
    ValueRefused,
    testing::Values(
        Refusal{"no_length",
                port("addresses: [10.0.0.1]"),
                {{3, kColumn + 12, "addresses: '10.0.0.1'"}}},
        Refusal{"length_0",
                port("addresses: [10.0.0.1/0]"),
                {{3, kColumn + 12, "a prefix length of 0"}}},
        Refusal{"length_33",
                port("addresses: [10.0.0.1/33]"),
                {{3, kColumn + 12, "write it like 10.0.0.1/24"}}},
        Refusal{"network",
                port("addresses: [10.0.0.0/24]"),
                {{3, kColumn + 12, "10.0.0.0/24 is the network's own address"}}},
        Refusal{"broadcast",
                port("addresses: [10.0.0.255/24]"),
                {{3, kColumn + 12, "is the broadcast address"}}},
        Refusal{"limited_broadcast",
                port("addresses: [255.255.255.255/32]"),
                {{3, kColumn + 12, "is the broadcast address"}}},
        Refusal{"multicast",
                port("addresses: [224.0.0.1/24]"),
                {{3, kColumn + 12, "is a multicast address"}}},
        Refusal{"loopback",
                port("addresses: [127.0.0.1/8]"),
                {{3, kColumn + 12, "is a loopback address"}}},
        Refusal{"zero", port("addresses: [0.0.0.0/32]"), {{3, kColumn + 12, "is in 0.0.0.0/8"}}},
        Refusal{"v6_multicast",
                port("addresses: [\"ff02::1/64\"]"),
                {{3, kColumn + 12, "is a multicast address"}}},
        Refusal{"v6_loopback",
                port("addresses: [\"::1/128\"]"),
                {{3, kColumn + 12, "is the loopback address"}}},
        Refusal{"v6_unspecified",
                port("addresses: [\"::/64\"]"),
                {{3, kColumn + 12, "is the unspecified address"}}},
        Refusal{"Case_37_v6_below_1280",
                port("mtu: 1279, addresses: [\"fd00::1/64\"]"),
                {{3, 3, "p0: mtu 1279 with an IPv6 address: at least 1280"}}}),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    Others,
    ValueRefused,
    testing::Values(
        Refusal{
            "choice_close",
            "version: 1\nworkers: {idle: adaptiv}\n",
            {{2,
              17,
              "idle: 'adaptiv' is not known: did you mean adaptive? It can be poll, adaptive"}}},
        Refusal{"choice_far",
                "version: 1\nworkers: {idle: sometimes}\n",
                {{2, 17, "it can be poll, adaptive"}}},
        Refusal{"name_with_slash",
                "version: 1\nports:\n  a/b: {device: x}\n",
                {{3, 3, "'a/b' is not a name"}}},
        Refusal{"name_with_space",
                "version: 1\nports:\n  a b: {device: x}\n",
                {{3, 3, "'a b' is not a name"}}},
        Refusal{"name_too_long",
                "version: 1\nports:\n  abcdefghijklmnopqrstuvwxyzabcdef: {device: x}\n",
                {{3, 3, "1 to 31 letters"}}},
        Refusal{"name_reserved",
                "version: 1\nports:\n  lo: {device: x}\n",
                {{3, 3, "'lo' is a netdev that every netns has"}}},
        Refusal{"socket_relative",
                "version: 1\ncontrol: {socket: run/x.sock}\n",
                {{2, 19, "write an absolute path"}}},
        Refusal{"socket_too_long",
                "version: 1\ncontrol: {socket: /" + std::string(107, 'x') + "}\n",
                {{2, 19, "at most 107 bytes"}}},
        Refusal{"vlan_id_0",
                with_ports("vlans: {v: {link: p0, id: 0}}\n"),
                {{5, 27, "id: 0 is out of range: 1 to 4094"}}},
        Refusal{"vlan_id_4095",
                with_ports("vlans: {v: {link: p0, id: 4095}}\n"),
                {{5, 27, "1 to 4094"}}}),
    refusal_name);

TEST(Values, Case_128_UnquotedMacIsThatMac) {
    const net::MacAddr digits = *net::MacAddr::parse("12:40:37:27:57:41");
    const net::MacAddr mixed = *net::MacAddr::parse("52:54:00:12:34:56");
    EXPECT_EQ(loaded(port("mac: 12:40:37:27:57:41")).default_netns.ports.at("p0").settings.mac,
              digits);
    EXPECT_EQ(loaded(port("mac: \"12:40:37:27:57:41\"")).default_netns.ports.at("p0").settings.mac,
              digits);
    EXPECT_EQ(loaded(port("mac: 52:54:00:12:34:56")).default_netns.ports.at("p0").settings.mac,
              mixed);
    EXPECT_EQ(loaded(port("mac: '52:54:00:12:34:56'")).default_netns.ports.at("p0").settings.mac,
              mixed);
    EXPECT_NE(emit(loaded(port("mac: 52:54:00:12:34:56"))).find("mac: \"52:54:00:12:34:56\""),
              std::string::npos);
}

TEST(Values, Case_132_NamesStayStrings) {
    for (const std::string name :
         {"no", "on", "off", "y", "null", "Null", "NULL", "1e0", "010", "0x1f", "123", "true"}) {
        const Config config = loaded(
            "version: 1\nports:\n  " + name + ": {device: net_null0}\nvlans:\n  v: {link: " + name +
            ", id: 1, addresses: [10.0.0.1/24]}\nneighbors:\n  - dev: " + name +
            "\n    to: 10.0.0.2\n    lladdr: 02:00:00:00:00:09\n");
        EXPECT_TRUE(config.default_netns.ports.contains(name)) << name;
        EXPECT_EQ(config.default_netns.vlans.at("v").link, name);
        EXPECT_EQ(config.default_netns.neighbors.at(0).dev, name);
        EXPECT_EQ(loaded(emit(config)), config) << name;
    }
}

TEST(Values, NothingBeforeAKeyCalledNullIsNothing) {
    const Config config =
        loaded("version: 1\nvlans:\nports:\n  null: {device: net_null0, addresses: }\n");
    EXPECT_TRUE(config.default_netns.ports.contains("null"));
    expect_refused("version: 1\ninstance:\nnull: 1\n",
                   {{3, 1, "instance: has no value"}, {3, 1, "unknown key 'null'"}});
}

TEST(Values, EverySwitchArrives) {
    const Config config = loaded(port(
        "mtu: 9000, mac: 02:00:00:00:00:07, up: false, forwarding: false, route-localnet: true, "
        "bc-forwarding: true, arp-accept: 1, accept-untracked-na: 2, drop-unsolicited-na: true, "
        "promiscuous: true, rx-queues: 1, send-redirects: true, source-validation: strict, "
        "accept-ra: false, mark: 4294967295"));
    const NetdevSettings wanted{.mtu = 9000,
                                .mac = *net::MacAddr::parse("02:00:00:00:00:07"),
                                .up = false,
                                .forwarding = false,
                                .send_redirects = true,
                                .source_validation = SourceValidation::kStrict,
                                .route_localnet = true,
                                .bc_forwarding = true,
                                .arp_accept = LearnUnsolicited::kAlways,
                                .accept_untracked_na = LearnUnsolicited::kSameSubnet,
                                .drop_unsolicited_na = true,
                                .promiscuous = true,
                                .mark = 4294967295};
    EXPECT_EQ(config.default_netns.ports.at("p0").settings, wanted);
    EXPECT_EQ(config.default_netns.ports.at("p0").rx_queues, 1);
}

TEST(Values, InstanceWideSettingsArrive) {
    const Config config = loaded(
        "version: 1\ninstance: x\ndpdk: {lcores: [3, 2, 5], hugepages: false, memory-mb: 128, "
        "extra-args: [--log-level, \"lib.eal:8\"]}\n"
        "workers: {idle: poll, burst: 64, cache: off, cache-entries: 4096}\ncontrol: {socket: "
        "/tmp/x.sock}\n"
        "limits: {ipv4-routes: 1, ipv6-routes: 2, neighbors: 3, uncached-lists: 64}\nicmp: "
        "{error-rate: 7, "
        "error-burst: 8}\nforward-class-e: false\n");
    EXPECT_EQ(config.dpdk.lcores, (std::vector<std::uint16_t>{3, 2, 5}));
    EXPECT_FALSE(config.dpdk.hugepages);
    EXPECT_EQ(config.dpdk.memory_mb, 128U);
    EXPECT_EQ(config.dpdk.extra_args, (std::vector<std::string>{"--log-level", "lib.eal:8"}));
    EXPECT_EQ(config.workers.idle, IdleMode::kPoll);
    EXPECT_EQ(config.workers.burst, 64);
    EXPECT_EQ(config.workers.cache, CacheMode::kOff);
    EXPECT_EQ(config.workers.cache_entries, 4096);
    EXPECT_EQ(config.control.socket, "/tmp/x.sock");
    EXPECT_EQ(config.limits.ipv4_routes, 1U);
    EXPECT_EQ(config.limits.ipv6_routes, 2U);
    EXPECT_EQ(config.limits.neighbors, 3U);
    EXPECT_EQ(config.limits.uncached_lists, 64U);
    EXPECT_EQ(config.icmp.error_rate, 7U);
    EXPECT_EQ(config.icmp.error_burst, 8U);
    EXPECT_FALSE(config.forward_class_e);
}

TEST(Values, ADefaultWrittenOutIsTheSameAsLeftOut) {
    EXPECT_EQ(
        loaded("version: 1\nports:\n  p0: {device: net_null0}\nvlans:\n  v: {link: p0, id: 1}\n"),
        loaded("version: 1\ninstance: t\ndpdk: {lcores: [0, 1], hugepages: true, memory-mb: 512, "
               "extra-args: []}\n"
               "workers: {idle: adaptive, burst: 32, cache: auto, cache-entries: 512}\ncontrol: "
               "{socket: /run/sluice/t.sock}\n"
               "limits: {ipv4-routes: 1000000, ipv6-routes: 250000, neighbors: 65536}\nicmp: "
               "{error-rate: 100, error-burst: 50}\n"
               "forward-class-e: true\nports:\n  p0: {device: net_null0, mtu: 1500, up: true, "
               "addresses: [], forwarding: true,\n"
               "    send-redirects: false, source-validation: off, route-localnet: false, "
               "bc-forwarding: false, accept-ra: false,\n"
               "    arp-accept: 0, accept-untracked-na: 0, drop-unsolicited-na: false, "
               "promiscuous: false, mark: 0}\n"
               "vlans:\n  v: {link: p0, link-netns: default, id: 1, mtu: 1500}\nvrfs: "
               "{}\nnexthops: {}\n"
               "routes: []\nrouting-policy: []\nneighbors: []\nnetns: {}\n"
               "multipath-hash: {ipv4: {policy: l4}, ipv6: {policy: l4, fields: []}}\n"));
}

TEST(Values, Case_106_BothEndsOfPointToPointSubnetsAreAddresses) {
    const Config config =
        loaded(port("addresses: [10.9.9.0/31, 10.9.8.1/31, 10.9.7.255/32, \"fd00:9::/127\", "
                    "\"fd00:8::1/127\"]"));
    EXPECT_EQ(config.default_netns.ports.at("p0").addresses.size(), 5U);
}

}  // namespace
}  // namespace sluice::config
