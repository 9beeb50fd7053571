// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>

#include "config/model.h"

namespace sluice::config {

using NextHops = std::map<std::uint32_t, NextHop>;

inline bool is_group(const NextHop& hop) {
    return !hop.group.empty();
}
inline bool has_ipv4_gateway(const NextHop& hop) {
    return hop.via && hop.via->is_v4();
}

/// The next hops by which no IPv6 route can go, and a gateway of each that is why.
[[nodiscard]] inline std::map<std::uint32_t, net::IpAddr> ipv4_gateways(const NextHops& hops) {
    std::map<std::uint32_t, net::IpAddr> result;
    for (const auto& [id, hop] : hops) {
        if (has_ipv4_gateway(hop)) {
            result.emplace(id, *hop.via);
        }
        for (const auto& [member, weight] : hop.group) {
            const auto found = hops.find(member);
            if (found != hops.end() && has_ipv4_gateway(found->second)) {
                result.emplace(id, *found->second.via);
            }
        }
    }
    return result;
}

}  // namespace sluice::config
