// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "config_testing.h"

namespace sluice::config {
namespace {

class PolicyRefused : public testing::TestWithParam<Refusal> {};

TEST_P(PolicyRefused, WithPosition) {
    expect_refused(GetParam().text, GetParam().wanted);
}

/// The keys begin in column 21, behind the priority.
Refusal rule(std::string_view name,
             std::string_view keys,
             std::string_view what,
             std::uint32_t column = 5) {
    return {name,
            with_ports("routing-policy:\n  - {priority: 100, " + std::string{keys} + "}\n"),
            {{6, column, what}}};
}

INSTANTIATE_TEST_SUITE_P(
    Rules,
    PolicyRefused,
    testing::Values(
        Refusal{"no_priority",
                with_ports("routing-policy:\n  - {table: 100}\n"),
                {{6, 5, "'priority' is missing"}}},
        rule("no_action", "from: 10.0.0.0/8", "a rule does one thing: write table, type"),
        rule("two_actions", "table: 7, type: blackhole", "a rule does one thing"),
        rule("table_and_set_mark", "table: 7, set-mark: 1", "a rule does one thing"),
        rule("type_unicast",
             "type: unicast",
             "'unicast' is not known: it can be blackhole, unreachable, prohibit",
             27),
        rule("table_0", "table: 0", "0 is out of range: 1 to", 28),
        rule("table_local", "table: local", "the local table holds this router's addresses", 28),
        rule("two_families",
             "table: 7, from: 10.0.0.0/8, to: \"fd00::/8\"",
             "fd00::/8 is ipv6, another place of this rule says ipv4: one family a rule"),
        rule("family_against_from",
             "table: 7, from: 10.0.0.0/8, family: ipv6",
             "10.0.0.0/8 is ipv4, another place of this rule says ipv6"),
        rule("host_bits", "table: 7, from: 10.0.0.1/8", "'10.0.0.1/8'", 37),
        rule("dscp_64", "table: 7, dscp: 64", "64 is out of range: 0 to 63", 37),
        rule("mark_33_bits", "table: 7, mark: 4294967296", "is out of range: 0 to 4294967295", 37),
        rule("protocol_word",
             "table: 7, protocol: tpc",
             "'tpc' is not known: did you mean tcp?",
             41),
        rule("protocol_256", "table: 7, protocol: 256", "256 is out of range: 0 to 255", 41),
        rule("ports_of_icmp",
             "table: 7, protocol: icmp, dport: 80",
             "icmp has no ports: leave sport and dport out, or write protocol: tcp"),
        rule("ports_of_47",
             "table: 7, protocol: 47, sport: 80",
             "gre has no ports: leave sport and dport out"),
        rule("ports_backwards",
             "table: 7, dport: 90-80",
             "'90-80' is no port or range of ports",
             38),
        rule("port_65536", "table: 7, dport: 65536", "'65536' is no port", 38),
        rule("port_octal", "table: 7, dport: 080", "'080' is no port", 38),
        rule("port_open", "table: 7, dport: 80-", "'80-' is no port", 38),
        rule("suppress_without_table",
             "type: blackhole, suppress-prefixlength: 0",
             "suppress-prefixlength is about a table's routes"),
        rule("suppress_33", "table: main, suppress-prefixlength: 33", "at most 32"),
        rule("suppress_129",
             "table: main, family: ipv6, suppress-prefixlength: 129",
             "129 is out of range: 0 to 128",
             71),
        Refusal{"same_rule_twice",
                with_ports("routing-policy:\n  - {priority: 1, from: 10.0.0.0/8, table: 7}\n  - "
                           "{priority: 2, table: 7}\n  - {priority: 1, table: 7, from: 10.0.0.0/8, "
                           "family: ipv4}\n"),
                {{8, 5, "this rule of priority 1 is here twice, first at line 6 column 5"}}}),
    refusal_name);

TEST(Rules, MoreThanTheWorkersTakeAreRefused) {
    std::string text = "version: 1\nrouting-policy:\n";
    for (std::size_t i = 0; i <= kMaxRules; ++i) {
        text += fmt::format(
            "  - {{priority: {}, table: 7}}\n  - {{priority: {}, table: 7, family: "
            "ipv6}}\n",
            i,
            i);
    }
    expect_refused(text, {{513, 5, "more than 255 ipv4 rules in one netns"}});
}

TEST(Rules, AnIifThatIsNotThereIsWaitedFor) {
    const Config config =
        loaded(with_ports("routing-policy: [{priority: 1, iif: p9, table: 7}]\n"));
    EXPECT_EQ(config.default_netns.routing_policy.at(0).iif, "p9");
}

TEST(Rules, EverythingArrives) {
    const Config config = loaded(with_ports(
        "vrfs: {blue: {table: 100}}\nrouting-policy:\n"
        "  - {priority: 4294967295, from: 10.0.0.0/8, to: 0.0.0.0/0, iif: blue, dscp: 0, mark: 0, "
        "protocol: tcp, sport: 1-65535, dport: 80, table: main, suppress-prefixlength: 0}\n"
        "  - {priority: 2, protocol: 132, type: prohibit}\n"
        "  - {priority: 3, protocol: icmpv6, set-mark: 7}\n"
        "  - {priority: 0, family: ipv6, iif: p0, dport: 53, type: unreachable}\n"));
    Rule first{.priority = 4294967295,
               .from = *net::IpPrefix::parse("10.0.0.0/8"),
               .to = net::IpPrefix::default_route(net::Family::kIpv4),
               .iif = "blue",
               .dscp = 0,
               .mark = 0,
               .protocol = 6,
               .source_ports = PortRange{1, 65535},
               .destination_ports = PortRange{80, 80},
               .action = RuleAction::kTable,
               .table = kMainTable,
               .suppress_prefixlength = 0,
               .set_mark = 0,
               .at = {}};
    const auto& rules = config.default_netns.routing_policy;
    ASSERT_EQ(rules.size(), 4U);
    EXPECT_EQ(rules[0], first);
    EXPECT_EQ(rules[1].protocol, 132);
    EXPECT_EQ(rules[1].action, RuleAction::kProhibit);
    EXPECT_EQ(rules[1].family, net::Family::kIpv4);
    EXPECT_EQ(rules[2].family, net::Family::kIpv6);
    EXPECT_EQ(rules[2].action, RuleAction::kSetMark);
    EXPECT_EQ(rules[2].set_mark, 7U);
    EXPECT_EQ(rules[3].family, net::Family::kIpv6);
    EXPECT_EQ(rules[3].destination_ports, (PortRange{53, 53}));
    EXPECT_EQ(loaded(emit(config)), config) << emit(config);
}

INSTANTIATE_TEST_SUITE_P(
    Hashes,
    PolicyRefused,
    testing::Values(
        Refusal{"policy",
                "version: 1\nmultipath-hash: {ipv4: {policy: l5}}\n",
                {{2, 33, "'l5' is not known: did you mean l3?"}}},
        Refusal{"custom_without_fields",
                "version: 1\nmultipath-hash: {ipv4: {policy: custom}}\n",
                {{2, 24, "policy: custom and fields go together"}}},
        Refusal{"fields_without_custom",
                "version: 1\nmultipath-hash: {ipv6: {fields: [source]}}\n",
                {{2, 24, "policy: custom and fields go together"}}},
        Refusal{"field",
                "version: 1\nmultipath-hash: {ipv6: {policy: custom, fields: [src]}}\n",
                {{2, 50, "'src' is not known"}}},
        Refusal{"field_twice",
                "version: 1\nmultipath-hash: {ipv6: {policy: custom, fields: [source, source]}}\n",
                {{2, 58, "'source' is here twice"}}},
        Refusal{"flow_label_of_ipv4",
                "version: 1\nmultipath-hash: {ipv4: {policy: custom, fields: [flow-label]}}\n",
                {{2, 24, "IPv4 has no flow-label"}}},
        Refusal{"family",
                "version: 1\nmultipath-hash: {ipv5: {}}\n",
                {{2, 18, "unknown key 'ipv5': did you mean 'ipv4'?"}}}),
    refusal_name);

TEST(Hashes, Check_25_FieldsArrive) {
    const Config config = loaded(
        "version: 1\nmultipath-hash:\n  ipv4: {policy: custom, fields: [source-port, "
        "protocol]}\n  ipv6: {policy: l3}\nnetns: {a: {multipath-hash: {ipv6: {policy: custom, "
        "fields: [flow-label]}}}}\n");
    EXPECT_EQ(config.default_netns.multipath_hash4,
              (MultipathHash{HashPolicy::kCustom, {.protocol = true, .source_port = true}}));
    EXPECT_EQ(config.default_netns.multipath_hash6, (MultipathHash{HashPolicy::kL3, {}}));
    EXPECT_EQ(config.netns.at("a").multipath_hash6,
              (MultipathHash{HashPolicy::kCustom, {.flow_label = true}}));
    EXPECT_EQ(config.netns.at("a").multipath_hash4, MultipathHash{});
    EXPECT_EQ(loaded(emit(config)), config) << emit(config);
}

}  // namespace
}  // namespace sluice::config
