// SPDX-License-Identifier: BSD-3-Clause
#include <numeric>
#include <string>
#include <vector>

#include "config_testing.h"

namespace sluice::config {
namespace {

class ReaderRefuses : public testing::TestWithParam<Refusal> {};

TEST_P(ReaderRefuses, WithPosition) {
    expect_refused(GetParam().text, GetParam().wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Structure,
    ReaderRefuses,
    testing::Values(
        Refusal{"empty_file", "", {{0, 0, "'version' is missing"}}},
        Refusal{"only_a_comment", "# nothing\n", {{0, 0, "'version' is missing"}}},
        Refusal{"a_list",
                "- version: 1\n",
                {{1, 1, "a list where a mapping is wanted"}, {1, 1, "'version' is missing"}}},
        Refusal{"a_word",
                "version\n",
                {{1, 1, "a single value where a mapping"}, {1, 1, "'version' is missing"}}},
        Refusal{"version_2", "version: 2\n", {{1, 10, "version: 2 is out of range: 1 to 1"}}},
        Refusal{"unknown_key_close",
                "version: 1\nprots: {}\n",
                {{2, 1, "unknown key 'prots': did you mean 'ports'?"}}},
        Refusal{
            "unknown_key_swapped", with_ports("routse: []\n"), {{5, 1, "did you mean 'routes'?"}}},
        Refusal{"unknown_key_underscore",
                "version: 1\nlimits: {ipv4_routes: 1}\n",
                {{2, 10, "limits: unknown key 'ipv4_routes': did you mean 'ipv4-routes'?"}}},
        Refusal{"unknown_key_far",
                "version: 1\nicmp: {zzzzzzz: 1}\n",
                {{2, 8, "unknown key 'zzzzzzz': here go error-rate, error-burst"}}},
        Refusal{"unknown_key_of_port",
                "version: 1\nports:\n  p0: {device: net_null0, adresses: []}\n",
                {{3, 27, "p0: unknown key 'adresses': did you mean 'addresses'?"}}},
        Refusal{"missing_device",
                "version: 1\nports:\n  p0: {mtu: 1500}\n",
                {{3, 3, "p0: 'device' is missing"}}},
        Refusal{"missing_device_of_nothing",
                "version: 1\nports:\n  p0:\n",
                {{3, 3, "p0: 'device' is missing"}}},
        Refusal{"missing_to",
                with_ports("routes:\n  - {via: 10.0.0.2}\n"),
                {{6, 5, "'to' is missing"}}},
        Refusal{"list_for_mapping",
                "version: 1\nports: [p0]\n",
                {{2, 8, "ports: a list where a mapping is wanted"}}},
        Refusal{"mapping_for_list",
                "version: 1\nroutes: {to: default}\n",
                {{2, 9, "routes: a mapping where a list is wanted"}}},
        Refusal{"word_for_list",
                "version: 1\nroutes: none\n",
                {{2, 9, "routes: a single value where a list is wanted"}}},
        Refusal{"list_for_value",
                "version: 1\ninstance: [a]\n",
                {{2, 11, "instance: a list where one value is wanted"}}},
        Refusal{"no_value", "version: 1\nworkers: {burst: }\n", {{2, 18, "burst: has no value"}}},
        Refusal{"anchor",
                "version: 1\ninstance: &a demo\n",
                {{2, 11, "anchors (&name) are not used here"}}},
        Refusal{"alias",
                "version: &v 1\nlimits: {neighbors: *v}\n",
                {{1, 10, "anchors"}, {2, 21, "aliases (*name) are not used here"}}},
        Refusal{"tag",
                "version: 1\ninstance: !!str demo\n",
                {{2, 11, "tags (tag:yaml.org,2002:str) are not used here"}}},
        Refusal{"merge_key",
                "version: 1\nlimits: {<<: {neighbors: 1}}\n",
                {{2, 10, "unknown key '<<'"}}},
        Refusal{"second_document", "version: 1\n---\nversion: 1\n", {{2, 1, "a second document"}}},
        Refusal{"directive", "%YAML 1.2\n---\nversion: 1\n", {{1, 1, "directives"}}},
        Refusal{"block_scalar", "version: 1\ninstance: |\n  demo\n", {{2, 11, "block scalars"}}},
        Refusal{"list_as_key", "version: 1\n? [a]\n: 1\n", {{2, 3, "a list or mapping as a key"}}},
        Refusal{"not_yaml", "version: 1\nports: {p0: \n", {{3, 1, "not YAML"}}},
        Refusal{"not_yaml_but_before_it_an_error",
                "version: 1\nbogus: 1\na: b: c\n",
                {{2, 1, "unknown key 'bogus'"},
                 {3, 1, "unknown key 'a'"},
                 {3, 5, "not YAML: illegal map value"}}},
        Refusal{"all_errors_at_once",
                "version: 1\ninstance: no/name\ndpdk: {lcores: [0], hugepages: yes}\nworkers: "
                "{burst: 0}\nports:\n  p0: {device: 'a b', mtu: 50}\n",
                {{2, 11, "instance: 'no/name' is not a name"},
                 {3, 16, "lcores: at least two"},
                 {3, 32, "hugepages: 'yes' is not a boolean here"},
                 {4, 18, "burst: 0 is out of range: 1 to 256"},
                 {6, 16, "device: 'a b' is no device"},
                 {6, 28, "mtu: 50 is out of range: 68 to 9702"}}}),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    Case_129_Duplicates,
    ReaderRefuses,
    testing::Values(
        Refusal{"two_ports_blocks",
                "version: 1\nports:\n  p0: {device: a}\nports:\n  p1: {device: b}\n",
                {{4, 1, "'ports' is here twice, first at line 2 column 1"}}},
        Refusal{"two_routes_blocks",
                with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2}\nroutes:\n  - {to: "
                           "2.0.0.0/8, via: 10.0.0.2}\n"),
                {{7, 1, "'routes' is here twice, first at line 5 column 1"}}},
        Refusal{"two_equal_names",
                "version: 1\nports:\n  p0: {device: a}\n  p0: {device: b}\n",
                {{4, 3, "'p0' is here twice, first at line 3 column 3"}}},
        Refusal{"quoted_and_plain",
                "version: 1\nports:\n  p0: {device: a}\n  \"p0\": {device: b}\n",
                {{4, 3, "'p0' is here twice, first at line 3 column 3"}}},
        Refusal{"key_of_a_route",
                with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2, via: 10.0.0.3}\n"),
                {{6, 36, "'via' is here twice, first at line 6 column 21"}}},
        Refusal{"same_route_twice",
                with_ports("routes:\n  - {to: 1.0.0.0/8, via: 10.0.0.2}\n  - {to: 1.0.0.0/8, via: "
                           "10.0.0.3}\n"),
                {{7, 5, "1.0.0.0/8 with metric 0 is here twice, first at line 6 column 5"}}},
        Refusal{"same_default_twice",
                with_ports("routes:\n  - {to: default, via: 10.0.0.2}\n  - {to: 0.0.0.0/0, via: "
                           "10.0.0.3, metric: 0}\n"),
                {{7, 5, "is here twice, first at line 6 column 5"}}},
        Refusal{"plain_and_unusual_form",
                with_ports("routes:\n  - {\"to\": 1.0.0.0/8, via: 10.0.0.2}\n  - {to: 1.0.0.0/8, "
                           "via: 10.0.0.3}\n"),
                {{7, 5, "is here twice, first at line 6 column 5"}}},
        Refusal{"same_address_on_two",
                "version: 1\nports:\n  p0: {device: a, addresses: [10.0.0.1/24]}\n  p1: {device: "
                "b, addresses: [10.0.0.1/16]}\n",
                {{4, 31, "10.0.0.1 is on p0 already, at line 3 column 31"}}},
        Refusal{"port_and_vlan",
                with_ports("vlans:\n  p0: {link: p1, id: 5}\n"),
                {{6, 3, "the name 'p0' is taken at line 3 column 3"}}},
        Refusal{"neighbor",
                with_ports("neighbors:\n  - {to: 10.0.0.2, dev: p0, lladdr: 02:00:00:00:00:09}\n  "
                           "- {to: 10.0.0.2, dev: p0, lladdr: 02:00:00:00:00:08}\n"),
                {{7, 5, "the neighbor 10.0.0.2 on p0 is here twice, first at line 6 column 5"}}},
        Refusal{"lcore",
                "version: 1\ndpdk: {lcores: [0, 1, 1]}\n",
                {{2, 23, "lcore 1 is here twice"}}}),
    refusal_name);

TEST(Reader, MoreWorkersThanThereCanBeAreRefused) {
    std::vector<unsigned> lcores(66);
    std::iota(lcores.begin(), lcores.end(), 0U);
    expect_refused(fmt::format("version: 1\ndpdk: {{lcores: [{}]}}\n", fmt::join(lcores, ", ")),
                   {{2, 16, "more than 64 lcores for workers"}});
}

TEST(Reader, Case_130_DuplicatesAreRefusedEveryTime) {
    const std::string text = "version: 1\nports:\n  p0: {device: a, mtu: 1400, mtu: 1500}\n";
    for (int run = 0; run < 100; ++run) {
        expect_refused(text, {{3, 30, "'mtu' is here twice, first at line 3 column 19"}});
    }
}

TEST(Reader, CountsErrorsUpToALimit) {
    std::string text = "version: 1\n";
    for (int i = 0; i < 3000; ++i) {
        text += "key" + std::to_string(i) + "x: 1\n";
    }
    const auto result = load(text, "t.yaml");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().size(), 1001U);
    EXPECT_NE(all_of(result.error()).find("more than 1000 errors"), std::string::npos);
}

TEST(Reader, ErrorsSayFileLineAndColumn) {
    const auto result = load("version: 1\nbogus: 1\n", "etc/demo.yaml");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().front().to_string().substr(0, 34),
              "etc/demo.yaml:2:1: unknown key 'bo");
}

TEST(Reader, TakesJson) {
    const Config config = loaded(R"({"version": 1, "ports": {"p0": {"device": "net_null0",
        "mac": "02:00:00:00:00:01", "addresses": ["10.0.0.1/24"]}},
        "routes": [{"to": "192.0.2.0/24", "via": "10.0.0.2", "metric": 5}]})");
    EXPECT_EQ(config.default_netns.ports.at("p0").device, "net_null0");
    ASSERT_EQ(config.default_netns.routes.size(), 1U);
    EXPECT_EQ(config.default_netns.routes[0].metric, 5U);
}

TEST(Reader, TakesCarriageReturnsAndByteOrderMark) {
    const Config config = loaded(
        "\xef\xbb\xbfversion: 1\r\nports:\r\n  p0: {device: net_null0, addresses: "
        "[10.0.0.1/24]}\r\n"
        "routes:\r\n  - {to: 1.0.0.0/8, via: 10.0.0.2}\r\n  - to: 2.0.0.0/8\r\n    via: "
        "10.0.0.3\r\n");
    EXPECT_EQ(config.default_netns.routes.size(), 2U);
}

TEST(Reader, EmptySectionsSayNothing) {
    EXPECT_EQ(
        loaded("version: 1\nports:\nvlans:\nvrfs:\nroutes:\nneighbors:\nnetns:\ndpdk:\nlimits: "
               "{}\nrouting-policy: []\n"),
        loaded("version: 1\n"));
}

TEST(Reader, InstanceAndSocketComeFromTheFileName) {
    const auto config = load("version: 1\n", "/etc/sluice/edge-1.yaml");
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(config->instance, "edge-1");
    EXPECT_EQ(config->control.socket, "/run/sluice/edge-1.sock");
    const auto nameless = load("version: 1\n", "/etc/sluice/my file.yaml");
    ASSERT_FALSE(nameless.has_value());
    expect_errors(nameless.error(), {{0, 0, "add instance: NAME"}});
    EXPECT_TRUE(load("version: 1\ninstance: x\n", "my file.yaml").has_value());
}

TEST(Reader, Case_134_ForwardReferencesGiveEachObjectOnce) {
    const Config config = loaded(
        "version: 1\n"
        "routes:\n  - {to: 192.0.2.0/24, via: 10.1.0.2}\n"
        "neighbors:\n  - {to: 10.1.0.2, dev: v, lladdr: 02:00:00:00:00:09}\n"
        "vlans:\n  v: {link: p0, id: 7, addresses: [10.1.0.1/24]}\n"
        "ports:\n  p0: {device: net_null0, mtu: 1400}\n");
    const Netns& netns = config.default_netns;
    EXPECT_EQ(netns.ports.size(), 1U);
    ASSERT_EQ(netns.vlans.size(), 1U);
    EXPECT_EQ(netns.vlans.at("v").settings.mtu, 1400);
    ASSERT_EQ(netns.routes.size(), 1U);
    EXPECT_EQ(netns.routes[0].dev, "v");
    EXPECT_EQ(netns.neighbors.size(), 1U);
}

}  // namespace
}  // namespace sluice::config
