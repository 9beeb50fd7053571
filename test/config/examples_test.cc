// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "config/read_parts.h"
#include "config_testing.h"

namespace sluice::config {
namespace {

const std::filesystem::path kConf = std::filesystem::path{SLUICE_SOURCE_ROOT} / "conf";

std::string content(const std::filesystem::path& path) {
    std::ifstream in{path};
    return {std::istreambuf_iterator<char>{in}, {}};
}

TEST(Examples, AllLoadAndNameTheirSchema) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator{kConf}) {
        if (entry.path().extension() != ".yaml") {
            continue;
        }
        ++files;
        const std::string text = content(entry.path());
        const auto config = load(text, entry.path().string());
        ASSERT_TRUE(config.has_value()) << all_of(config.error());
        EXPECT_EQ(config->instance, entry.path().stem());
        EXPECT_NE(text.find("# yaml-language-server: $schema=./sluice.schema.json\n"),
                  std::string::npos)
            << entry.path();
        const auto again = load(emit(*config), "t.yaml");
        ASSERT_TRUE(again.has_value()) << all_of(again.error());
        EXPECT_EQ(*again, *config);
    }
    EXPECT_GE(files, 5);
}

TEST(Examples, TheDemoIsWhatTheScriptsCountOn) {
    const auto config = load(content(kConf / "demo.yaml"), "demo.yaml");
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(config->default_netns.ports.at("p0").device, "net_tap0,iface=sluice0");
    EXPECT_EQ(config->default_netns.ports.at("p1").device, "net_tap1,iface=sluice1");
    EXPECT_FALSE(config->dpdk.hugepages);
    ASSERT_EQ(config->default_netns.routes.size(), 2U);
    EXPECT_EQ(config->default_netns.routes[0].dev, "p1");
    EXPECT_EQ(config->default_netns.routes[1].dev, "p1");
}

TEST(Schema, ListsExactlyTheKeysThatTheReaderKnows) {
    const auto schema = nlohmann::json::parse(content(kConf / "sluice.schema.json"));
    std::set<std::string> defined{"config"};
    for (const auto& [name, definition] : schema.at("$defs").items()) {
        defined.insert(name);
    }
    std::set<std::string> read;
    for (const auto& [name, keys] : key_tables()) {
        read.insert(std::string{name});
        const auto& mapping = name == "config" ? schema : schema.at("$defs").at(std::string{name});
        EXPECT_EQ(mapping.at("additionalProperties"), false) << name;
        std::set<std::string> properties;
        for (const auto& [key, property] : mapping.at("properties").items()) {
            properties.insert(key);
        }
        EXPECT_EQ(properties, (std::set<std::string>{keys.begin(), keys.end()})) << name;
    }
    EXPECT_EQ(read, defined);
}

TEST(Schema, DefaultsAreTheModels) {
    const auto schema = nlohmann::json::parse(content(kConf / "sluice.schema.json"));
    const auto& defs = schema.at("$defs");
    const auto of = [&](const char* map, const char* key) {
        return defs.at(map).at("properties").at(key).at("default");
    };
    EXPECT_EQ(of("dpdk", "memory-mb"), Dpdk{}.memory_mb);
    EXPECT_EQ(of("dpdk", "hugepages"), Dpdk{}.hugepages);
    EXPECT_EQ(of("workers", "burst"), Workers{}.burst);
    EXPECT_EQ(of("limits", "ipv4-routes"), Limits{}.ipv4_routes);
    EXPECT_EQ(of("limits", "ipv6-routes"), Limits{}.ipv6_routes);
    EXPECT_EQ(of("limits", "neighbors"), Limits{}.neighbors);
    EXPECT_EQ(of("limits", "uncached-lists"), Limits{}.uncached_lists);
    EXPECT_EQ(of("icmp", "error-rate"), Icmp{}.error_rate);
    EXPECT_EQ(of("icmp", "error-burst"), Icmp{}.error_burst);
    EXPECT_EQ(of("port", "forwarding"), NetdevSettings{}.forwarding);
    EXPECT_EQ(of("port", "up"), NetdevSettings{}.up);
    EXPECT_EQ(of("port", "mark"), NetdevSettings{}.mark);
    EXPECT_EQ(of("workers", "cache"), "auto");
    EXPECT_EQ(Workers{}.cache, CacheMode::kAuto);
    EXPECT_EQ(of("workers", "cache-entries"), Workers{}.cache_entries);
    EXPECT_EQ(of("resilient", "buckets"), ResilientGroup{}.buckets);
    EXPECT_EQ(of("hash", "policy"), "l4");
    EXPECT_EQ(MultipathHash{}.policy, HashPolicy::kL4);
}

}  // namespace
}  // namespace sluice::config
