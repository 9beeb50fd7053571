// SPDX-License-Identifier: BSD-3-Clause
#include "control/route_labels.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace sluice::control {
namespace {

using Named = std::pair<std::string_view, std::uint8_t>;
constexpr std::array<Named, 23> kProtocols{{
    {"redirect", 1}, {"kernel", 2}, {"boot", 3},    {"static", 4},   {"gated", 8},
    {"ra", 9},       {"mrt", 10},   {"zebra", 11},  {"bird", 12},    {"dnrouted", 13},
    {"xorp", 14},    {"ntk", 15},   {"dhcp", 16},   {"mrouted", 17}, {"keepalived", 18},
    {"babel", 42},   {"ovn", 84},   {"openr", 99},  {"bgp", 186},    {"isis", 187},
    {"ospf", 188},   {"rip", 189},  {"eigrp", 192},
}};

}  // namespace

std::uint8_t usual_protocol(RouteOwner owner) noexcept {
    switch (owner) {
        case RouteOwner::kConnected:
            return 2;
        case RouteOwner::kFile:
            return 4;
        case RouteOwner::kCli:
            return 3;
        case RouteOwner::kFpm:
            break;
    }
    return 11;
}

std::string protocol_name(std::uint8_t protocol) {
    const auto* const at = std::ranges::find(kProtocols, protocol, &Named::second);
    return at == kProtocols.end() ? fmt::format("{}", protocol) : std::string(at->first);
}

std::optional<std::uint8_t> protocol_by_name(std::string_view name) noexcept {
    const auto* const at = std::ranges::find(kProtocols, name, &Named::first);
    return at == kProtocols.end() ? std::nullopt : std::optional(at->second);
}

std::string_view to_string(RouteScope scope) noexcept {
    return scope == RouteScope::kGlobal ? "global" : scope == RouteScope::kLink ? "link" : "host";
}

}  // namespace sluice::control
