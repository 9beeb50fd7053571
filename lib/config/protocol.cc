// SPDX-License-Identifier: BSD-3-Clause
#include "config/protocol.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace sluice::config {
namespace {

constexpr std::array<std::string_view, 11> kNames{
    "icmp", "igmp", "tcp", "udp", "dccp", "gre", "esp", "ah", "icmpv6", "ospf", "sctp"};
constexpr std::array<std::uint8_t, kNames.size()> kNumbers{
    1, 2, 6, 17, 33, 47, 50, 51, kProtocolIcmpv6, 89, 132};

}  // namespace

std::optional<std::uint8_t> protocol_number(std::string_view name) {
    const auto it = std::find(kNames.begin(), kNames.end(), name);
    return it == kNames.end()
               ? std::nullopt
               : std::optional{kNumbers[static_cast<std::size_t>(it - kNames.begin())]};
}

std::span<const std::string_view> protocol_names() {
    return kNames;
}

std::string protocol_text(std::uint8_t number) {
    const auto it = std::find(kNumbers.begin(), kNumbers.end(), number);
    return it == kNumbers.end()
               ? std::to_string(number)
               : std::string{kNames[static_cast<std::size_t>(it - kNumbers.begin())]};
}

}  // namespace sluice::config
