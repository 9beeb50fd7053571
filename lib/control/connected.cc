// SPDX-License-Identifier: BSD-3-Clause
#include "control/connected.h"

#include <map>
#include <utility>

namespace sluice::control {

std::vector<ConnectedRoute> connected_routes(std::span<const net::InterfaceAddr> addresses) {
    using fib::DstType;
    // Own addresses win over broadcasts of another address's subnet, and both over subnets (/31,
    // /32).
    const auto rank = [](DstType type) {
        return type == DstType::kLocal ? 2 : type == DstType::kBroadcast ? 1 : 0;
    };
    std::map<net::IpPrefix, DstType> routes;
    const auto add = [&](const net::IpPrefix& prefix, DstType type) {
        const auto [it, fresh] = routes.try_emplace(prefix, type);
        if (!fresh && rank(type) > rank(it->second)) {
            it->second = type;
        }
    };
    for (const auto& own : addresses) {
        if (own.address.is_v6() && own.address.v6().is_link_local()) {
            continue;
        }
        add(own.network(), DstType::kConnected);
        const std::uint8_t bits = own.address.is_v4() ? 32 : 128;
        add(net::IpPrefix::of(own.address, bits), DstType::kLocal);
        if (const auto broadcast = own.broadcast()) {
            add(net::IpPrefix::of(*broadcast, 32), DstType::kBroadcast);
        }
    }
    std::vector<ConnectedRoute> list;
    for (const auto& [prefix, type] : routes) {
        list.push_back({prefix, type});
    }
    return list;
}

}  // namespace sluice::control
