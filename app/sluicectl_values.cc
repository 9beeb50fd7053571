// SPDX-License-Identifier: BSD-3-Clause
#include "sluicectl_values.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluicectl {
namespace {

template <class... Args>
std::unexpected<std::string> wrong(fmt::format_string<Args...> format, Args&&... args) {
    return std::unexpected(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace

std::optional<std::uint64_t> number(std::string_view word) noexcept {
    constexpr int kDecimal = 10;
    constexpr int kHex = 16;
    const bool hex = word.starts_with("0x");
    word.remove_prefix(hex ? 2 : 0);
    std::uint64_t value = 0;
    const auto [end, failed] =
        std::from_chars(word.data(), word.data() + word.size(), value, hex ? kHex : kDecimal);
    return failed == std::errc{} && end == word.data() + word.size() ? std::optional(value)
                                                                     : std::nullopt;
}

std::expected<Json, std::string> members(std::string_view word) {
    Json group = Json::array();
    while (true) {
        const std::size_t slash = word.find('/');
        const std::string_view member = word.substr(0, slash);
        const std::size_t comma = member.find(',');
        const auto id = number(member.substr(0, comma));
        const auto weight = comma == std::string_view::npos ? std::optional<std::uint64_t>(1)
                                                            : number(member.substr(comma + 1));
        if (!id || !weight) {
            return wrong("group \"{}\": must be like 1,1/2,3 (id,weight)", member);
        }
        group.push_back({{"id", *id}, {"weight", *weight}});
        if (slash == std::string_view::npos) {
            return group;
        }
        word.remove_prefix(slash + 1);
    }
}

std::expected<Json, std::string> ports(std::string_view keyword, std::string_view word) {
    const std::size_t dash = word.find('-');
    const auto first = number(word.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number(word.substr(dash + 1));
    if (!first || !last) {
        return wrong("{} \"{}\": must be a port or a range like 1000-2000", keyword, word);
    }
    return Json::array({*first, *last});
}

std::expected<Json, std::string> milliseconds(std::string_view keyword, std::string_view word) {
    const bool milli = word.ends_with("ms");
    std::string_view digits = word;
    digits.remove_suffix(milli ? 2 : word.ends_with('s') ? 1 : 0);
    constexpr std::uint64_t kMost = 1'000'000'000;
    const auto value = number(digits);
    if (!value || *value > kMost) {
        return wrong("{} \"{}\": must be a time in seconds, or with ms", keyword, word);
    }
    return *value * (milli ? 1 : 1000);
}

std::expected<Json, std::string> dscp_of_tos(std::string_view keyword, std::string_view word) {
    constexpr std::uint64_t kByte = 255;
    const auto value = number(word);
    if (!value || *value > kByte) {
        return wrong("{} \"{}\": must be a number from 0 to 255", keyword, word);
    }
    if ((*value & 3U) != 0) {
        return wrong(
            "{} \"{}\": the lower two bits are ECN, which routing never looks at; with "
            "them cleared it is {}",
            keyword,
            word,
            *value & ~3ULL);
    }
    return *value >> 2U;
}

bool is_one_of(std::string_view word, std::string_view choices) noexcept {
    while (!choices.empty()) {
        const std::size_t bar = choices.find('|');
        if (choices.substr(0, bar) == word) {
            return true;
        }
        choices.remove_prefix(bar == std::string_view::npos ? choices.size() : bar + 1);
    }
    return false;
}

}  // namespace sluicectl
