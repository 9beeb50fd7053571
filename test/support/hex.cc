// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "support/packet.h"

namespace sluice::test {

Bytes from_hex(std::string_view text) {
    std::string digits;
    std::ranges::copy_if(
        text, std::back_inserter(digits), [](unsigned char c) { return std::isspace(c) == 0; });
    if (digits.size() % 2 != 0 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
        fmt::print(stderr, "test packet: not hexadecimal: {}\n", text);
        std::abort();
    }
    Bytes bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
        bytes.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
    constexpr std::size_t kPerLine = 32;
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        text += fmt::format("{:02x}", bytes[i]);
        if ((i + 1) % kPerLine == 0) {
            text += '\n';
        }
    }
    return text;
}

std::string difference(std::span<const std::uint8_t> want, std::span<const std::uint8_t> got) {
    if (std::ranges::equal(want, got)) {
        return {};
    }
    const auto at = std::ranges::mismatch(want, got).in1 - want.begin();
    return fmt::format("differ at byte {}: want {} bytes\n{}\ngot {} bytes\n{}",
                       at,
                       want.size(),
                       to_hex(want),
                       got.size(),
                       to_hex(got));
}

}  // namespace sluice::test
