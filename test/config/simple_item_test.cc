// SPDX-License-Identifier: BSD-3-Clause
#include "config/simple_item.h"

#include <set>
#include <string>

#include "config_testing.h"

namespace sluice::config {
namespace {

/// What read_tree says of the items of a list: at top level simple items are cut out, in a netns
/// all go through yaml-cpp.
std::multiset<std::string> seen(std::string_view items, bool in_netns) {
    std::string text = in_netns ? "netns:\n x:\n  routes:\n" : "\n\nroutes:\n";
    text += items;
    std::multiset<std::string> result;  // simple items come first, so the order may differ
    const TreeEvents events{
        .on_item =
            [&](std::string_view /*netns*/, std::string_view /*list*/, const Node& item) {
                std::string line;
                line += fmt::format("item {}:{}", item.at.line, item.at.column);
                for (const Node& node : item.items) {
                    line += fmt::format(" {}:{} {}{}",
                                        node.at.line,
                                        node.at.column,
                                        node.text,
                                        node.quoted ? "(quoted)" : "");
                }
                result.insert(line);
                return true;
            },
        .on_error =
            [&](Position at, std::string what) {
                result.insert(fmt::format("error {}:{} {}", at.line, at.column, what));
                return true;
            },
    };
    (void)read_tree(text, events);
    return result;
}

struct Case {
    std::string_view name;
    std::string_view text;
    bool simple;  // the first item is read without yaml-cpp
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.name;
}

class SimpleItemOrNot : public testing::TestWithParam<Case> {};

TEST_P(SimpleItemOrNot, ReadsAsYamlCppDoes) {
    EXPECT_EQ(parse_simple_item(GetParam().text, 0, 1).has_value(), GetParam().simple);
    EXPECT_EQ(seen(GetParam().text, false), seen(GetParam().text, true));
}

INSTANTIATE_TEST_SUITE_P(
    Items,
    SimpleItemOrNot,
    testing::Values(
        Case{"flow", "   - {to: 1.0.0.0/8, via: 10.0.0.2}\n", true},
        Case{"flow_spaced", "   -   {  to: 1.0.0.0/8 ,  via:   10.0.0.2  }   \n", true},
        Case{"flow_remark", "   - {to: 1.0.0.0/8} # remark: {a}\n", true},
        Case{"flow_quotes",
             "   - {to: \"2001:db8::/32\", via: 'fe80::1', dev: \"a, {b}: # c\"}\n",
             true},
        Case{"flow_v6_plain", "   - {to: 2001:db8::/32, via: fd00::1}\n", true},
        Case{"flow_no_newline", "   - {to: 1.0.0.0/8}", true},
        Case{"flow_crlf", "   - {to: 1.0.0.0/8}\r\n", true},
        Case{"flow_words", "   - {to: null, via: true, metric: 010}\n", true},
        Case{"block", "   - to: 1.0.0.0/8\n     via: 10.0.0.2\n", true},
        Case{"block_remarks",
             "   - to: 1.0.0.0/8  # a\n\n   # b\n     # c\n     via: \"10.0.0.2\"\n   # d\n",
             true},
        Case{"block_no_newline", "   - to: 1.0.0.0/8\n     via: 10.0.0.2", true},
        Case{"block_crlf", "   - to: 1.0.0.0/8\r\n     via: 10.0.0.2\r\n", true},
        Case{"two", "   - {to: 1.0.0.0/8}\n   - to: 2.0.0.0/8\n", true},
        Case{"odd_between_simple", "   - \"x\"\n   - {to: 2.0.0.0/8}\n", false},
        Case{"colon_at_end", "   - {to: fe80::, via: a}\n", false},
        Case{"quoted_key", "   - {\"to\": 1.0.0.0/8}\n", false},
        Case{"escape", "   - {to: \"1\\x2e0.0.0/8\"}\n", false},
        Case{"doubled_quote", "   - {to: 'it''s'}\n", false},
        Case{"words", "   - {to: a b}\n", false},
        Case{"continued", "   - to: a\n       b\n", false},
        Case{"continued_behind_remark", "   - to: a # x\n       b: c\n", false},
        Case{"flow_lines", "   - {to: 1.0.0.0/8,\n      via: 10.0.0.2}\n", false},
        Case{"empty_map", "   - {}\n", false},
        Case{"empty_value", "   - {to: , via: a}\n", false},
        Case{"trailing_comma", "   - {to: a,}\n", false},
        Case{"nested", "   - {to: [a]}\n", false},
        Case{"duplicate", "   - {to: a, to: b}\n", false},
        Case{"anchor", "   - &x {to: a}\n", false},
        Case{"tag", "   - {to: !t a}\n", false},
        Case{"tab", "   - {to:\ta}\n", false},
        Case{"hash_in_word", "   - {to: a#b}\n", false},
        Case{"negative", "   - {metric: -1}\n", false},
        Case{"plain_item", "   - to\n", false},
        Case{"block_value_below", "   - to:\n       a\n", false}),
    [](const auto& row) { return std::string{row.param.name}; });

TEST(SimpleItems, KeepTheFilesOrderAmongOthers) {
    const Config config =
        loaded(with_ports("routes:\n- {\"to\": 1.0.0.0/8, via: 10.0.0.2}\n- {to: 2.0.0.0/8, via: "
                          "10.0.0.2}\n- {\"to\": 3.0.0.0/8, via: 10.0.0.2}\n"));
    ASSERT_EQ(config.default_netns.routes.size(), 3U);
    EXPECT_EQ(config.default_netns.routes[0].to.to_string(), "1.0.0.0/8");
    EXPECT_EQ(config.default_netns.routes[1].to.to_string(), "2.0.0.0/8");
    EXPECT_EQ(config.default_netns.routes[2].to.to_string(), "3.0.0.0/8");
}

TEST(SimpleItems, OnlyInAListAtTheTopLevel) {
    // Text that looks like a list of routes inside a quoted value is that value.
    expect_refused("version: 1\ninstance: \"a\n\nroutes:\n- {to: 1.0.0.0/8, via: 10.0.0.2}\n\"\n",
                   {{2, 11, "instance: 'a"}});
}

TEST(SimpleItems, AMillionRoutesLoad) {
    std::string text = with_ports("limits: {ipv4-routes: 1000000}\nroutes:\n");
    for (unsigned i = 0; i < 1'000'000; ++i) {
        text += fmt::format("  - {{to: {}.{}.{}.0/24, via: 10.0.0.{}}}\n",
                            11 + i / 65536,
                            i / 256 % 256,
                            i % 256,
                            2 + i % 200);
    }
    const Config config = loaded(text);
    EXPECT_EQ(config.default_netns.routes.size(), 1'000'000U);
    Config changed = config;
    changed.default_netns.routes[500'000].metric = 1;
    const auto actions = diff(config, changed);
    ASSERT_TRUE(actions.has_value());
    EXPECT_EQ(actions->size(), 1U);
}

}  // namespace
}  // namespace sluice::config
