// SPDX-License-Identifier: BSD-3-Clause
#include <ctime>
#include <random>
#include <string>

#include <sys/resource.h>

#include "config_testing.h"

namespace sluice::config {
namespace {

std::string times(std::string_view piece, std::size_t count) {
    std::string text;
    text.reserve(piece.size() * count);
    for (std::size_t i = 0; i < count; ++i) {
        text += piece;
    }
    return text;
}

std::string numbered(std::string_view before, std::string_view after, std::size_t count) {
    std::string text = "version: 1\n";
    for (std::size_t i = 0; i < count; ++i) {
        text += fmt::format("{}{}{}\n", before, i, after);
    }
    return text;
}

std::string junk(std::size_t bytes, bool printable) {
    std::mt19937 engine{7};
    std::string text;
    for (std::size_t i = 0; i < bytes; ++i) {
        text += static_cast<char>(printable ? ' ' + engine() % 95 : engine() % 256);
    }
    return text;
}

struct Case {
    std::string_view name;
    std::string (*make)();
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.name;
}

class Hostile : public testing::TestWithParam<Case> {};

double cpu_seconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}
long peak_megabytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

// A second of the clock on a quiet machine; here it is CPU time, as others may use the machine too.
TEST_P(Hostile, IsRefusedInASecondAndAHundredMegabytes) {
    const std::string text = GetParam().make();
    [[maybe_unused]] const auto before = peak_megabytes();
    const auto start = cpu_seconds();
    const auto result = load(text, "t.yaml");
    [[maybe_unused]] const auto seconds = cpu_seconds() - start;
    EXPECT_FALSE(result.has_value());
#ifndef __SANITIZE_ADDRESS__
    EXPECT_LT(seconds, 1.0);
    EXPECT_LT(peak_megabytes() - before, 100);
#endif
}

INSTANTIATE_TEST_SUITE_P(
    Files,
    Hostile,
    testing::Values(
        Case{"deep_lists", [] { return times("[", 1'000'000); }},
        Case{"deep_maps", [] { return times("{a: ", 1'000'000); }},
        Case{"deep_block_lists", [] { return times("- ", 1'000'000); }},
        Case{"deep_complex_keys", [] { return times("? ", 1'000'000); }},
        Case{"deep_indents",
             [] {
                 std::string text = "a:\n";
                 for (std::size_t i = 1; i < 3000; ++i) {
                     text += std::string(i, ' ') + "a:\n";
                 }
                 return text;
             }},
        Case{"huge_key", [] { return times("a", 5'000'000) + ": 1\n"; }},
        Case{"huge_quoted", [] { return fmt::format("a: \"{}\"\n", times("x", 5'000'000)); }},
        Case{"huge_quoted_open", [] { return fmt::format("a: '{}", times("x\n ", 2'000'000)); }},
        Case{"huge_plain_lines", [] { return fmt::format("a:\n{}", times("  foo\n", 1'000'000)); }},
        Case{"huge_block_scalar",
             [] { return fmt::format("a: |\n{}", times("  foo\n", 1'000'000)); }},
        Case{"huge_tag", [] { return fmt::format("a: {}", times("!", 5'000'000)); }},
        Case{"commas", [] { return fmt::format("[{}", times("a,", 1'000'000)); }},
        Case{"colons", [] { return times("a:", 1'000'000); }},
        Case{"pairs", [] { return fmt::format("a: [{}", times("a: b, ", 1'000'000)); }},
        Case{"many_anchors", [] { return numbered("k", ": &a 1", 300'000); }},
        Case{"aliases_of_aliases",
             [] {
                 std::string text = "a0: &a0 [x]\n";
                 for (int i = 1; i < 1000; ++i) {
                     text += fmt::format("a{}: &a{} [*a{}, *a{}]\n", i, i, i - 1, i - 1);
                 }
                 return text;
             }},
        Case{"unknown_keys", [] { return numbered("key", ": 1", 1'000'000); }},
        Case{"equal_keys", [] { return times("ports: {}\n", 1'000'000); }},
        Case{"misspelled_routes",
             [] {
                 return fmt::format("route:\n{}",
                                    times("  - {to: 1.0.0.0/8, via: 10.0.0.2}\n", 1'000'000));
             }},
        Case{"wrong_routes",
             [] {
                 return fmt::format("routes:\n{}",
                                    times("  - {to: 1.0.0.0/33, via: 10.0.0.2}\n", 1'000'000));
             }},
        Case{"netns_routes_wrong",
             [] {
                 return fmt::format("version: 1\nnetns:\n  a:\n    routes:\n{}",
                                    times("      - {to: 1.0.0.0/33, via: 10.0.0.2}\n", 1'000'000));
             }},
        Case{"netns_by_the_thousand",
             [] {
                 return "version: 1\nnetns:\n" +
                        numbered("  n", ": {routes: [{to: 1.0.0.0/8, dev: x}]}", 30'000).substr(11);
             }},
        Case{"vlans_of_no_port",
             [] {
                 return with_ports("vlans:\n") +
                        numbered("  v", ": {link: zzzzzz, id: 1}", 15'000).substr(11);
             }},
        Case{"routes_of_no_netdev",
             [] {
                 return numbered("  v", ": {link: p0, id: 1}", 15'000).insert(11, "vlans:\n") +
                        fmt::format("ports: {{p0: {{device: x}}}}\nroutes:\n{}",
                                    times("  - {to: 1.0.0.0/8, dev: vvvvv}\n", 100'000));
             }},
        Case{"rules_alike",
             [] {
                 return "version: 1\nrouting-policy:\n" +
                        times("  - {priority: 1, table: 7}\n", 15'000);
             }},
        Case{"comments", [] { return times("# a comment\n", 3'000'000); }},
        Case{"newlines", [] { return times("\n", 10'000'000); }},
        Case{"blanks", [] { return times(" ", 10'000'000); }},
        Case{"documents", [] { return times("---\n", 1'000'000); }},
        Case{"binary", [] { return junk(5'000'000, false); }},
        Case{"printable", [] { return junk(1'000'000, true); }},
        Case{"nul", [] { return std::string(1000, '\0'); }},
        Case{"utf16",
             [] {
                 return std::string(
                     "\xff\xfe"
                     "v\0e\0",
                     6);
             }}),
    [](const auto& row) { return std::string{row.param.name}; });

TEST(HostileBytes, EveryTruncationAndFlipOfAFileIsAnswered) {
    const std::string text = with_ports(
        "vlans: {v: {link: p0, id: 5}}\nroutes:\n  - {to: \"1.0.0.0/8\", via: 10.0.0.2}  # x\n  - "
        "to: default\n    via: 'fd00::2'\n"
        "neighbors: [{to: 10.0.0.2, dev: p0, lladdr: 02:00:00:00:00:09}]\n");
    ASSERT_TRUE(load(text, "t.yaml").has_value());
    std::mt19937 engine{1};
    for (std::size_t i = 0; i < text.size(); ++i) {
        for (const std::string& broken :
             {text.substr(0, i),
              text.substr(0, i) + text.substr(i + 1),
              text.substr(0, i) + static_cast<char>(engine() % 128) + text.substr(i + 1)}) {
            const auto result = load(broken, "t.yaml");
            if (result) {
                EXPECT_EQ(loaded(emit(*result)), *result) << broken;
            } else {
                EXPECT_FALSE(result.error().empty());
            }
        }
    }
}

}  // namespace
}  // namespace sluice::config
