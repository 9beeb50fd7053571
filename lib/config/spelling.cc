// SPDX-License-Identifier: BSD-3-Clause
#include "config/spelling.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "config/reader.h"

namespace sluice::config {
namespace {

constexpr std::size_t kMaxGuessedBytes = 64;

/// Insertions, deletions, substitutions and swaps of neighbors (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            const std::size_t differ = a[i - 1] == b[j - 1] ? 0 : 1;
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + differ});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[a.size()][b.size()];
}

constexpr bool is_alphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string lower(std::string_view word) {
    std::string result{word};
    for (char& c : result) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return result;
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
    if (word.size() > kMaxGuessedBytes) {
        return {};
    }
    auto meant = lower(word);
    std::replace(meant.begin(), meant.end(), '_', '-');
    std::string_view best;
    std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
    for (const auto candidate : known) {
        if (const auto d = distance(meant, candidate); d < best_distance) {
            best = candidate;
            best_distance = d;
        }
    }
    return best;
}

std::optional<std::string_view> boolean_of_other_yaml(std::string_view word) {
    static constexpr std::array<std::string_view, 5> kTrue{"yes", "y", "on", "true", "enabled"};
    static constexpr std::array<std::string_view, 5> kFalse{"no", "n", "off", "false", "disabled"};
    const auto spelling = lower(word);
    if (std::find(kTrue.begin(), kTrue.end(), spelling) != kTrue.end()) {
        return "true";
    }
    if (std::find(kFalse.begin(), kFalse.end(), spelling) != kFalse.end()) {
        return "false";
    }
    return std::nullopt;
}

bool is_name(std::string_view word) {
    return !word.empty() && word.size() <= kMaxNameBytes &&
           (is_alphanumeric(word.front()) || word.front() == '_') &&
           std::all_of(word.begin(), word.end(), [](char c) {
               return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
           });
}

}  // namespace sluice::config
