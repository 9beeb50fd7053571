// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace sluice::config {

/// Two ports with subnets in both families, for texts that need something to refer to. 4 lines.
inline constexpr std::string_view kPorts =
    "version: 1\n"
    "ports:\n"
    "  p0: {device: net_null0, addresses: [10.0.0.1/24, \"fd00::1/64\"]}\n"
    "  p1: {device: net_null1, addresses: [10.0.1.1/24, \"fd00:1::1/64\"]}\n";

inline std::string with_ports(std::string_view text) {
    return std::string{kPorts} + std::string{text};
}

struct Wanted {
    std::uint32_t line;
    std::uint32_t column;
    std::string_view what;  // part of the message
};

inline std::string all_of(const std::vector<ConfigError>& errors) {
    std::string text;
    for (const auto& error : errors) {
        text += error.to_string() + "\n";
    }
    return text;
}

inline void expect_errors(const std::vector<ConfigError>& errors,
                          const std::vector<Wanted>& wanted) {
    ASSERT_EQ(errors.size(), wanted.size()) << all_of(errors);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_EQ(errors[i].line, wanted[i].line) << errors[i].to_string();
        EXPECT_EQ(errors[i].column, wanted[i].column) << errors[i].to_string();
        EXPECT_NE(errors[i].what.find(wanted[i].what), std::string::npos)
            << errors[i].to_string() << "\nhas no: " << wanted[i].what;
    }
}

inline void expect_refused(const std::string& text, const std::vector<Wanted>& wanted) {
    const auto result = load(text, "t.yaml");
    ASSERT_FALSE(result.has_value()) << text;
    expect_errors(result.error(), wanted);
}

/// The model of a text that must be right; fails the test if it is not.
inline Config loaded(const std::string& text) {
    auto result = load(text, "t.yaml");
    if (!result) {
        ADD_FAILURE() << all_of(result.error()) << text;
        return {};
    }
    return *std::move(result);
}

/// A text and what is said about it.
struct Refusal {
    std::string_view name;
    std::string text;
    std::vector<Wanted> wanted;
};

inline std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
    return out << refusal.name;
}

inline std::string refusal_name(const testing::TestParamInfo<Refusal>& info) {
    return std::string{info.param.name};
}

}  // namespace sluice::config
