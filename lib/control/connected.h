// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <span>
#include <vector>

#include "fib/dst.h"
#include "net/address.h"

namespace sluice::control {

struct ConnectedRoute {
    net::IpPrefix prefix;
    fib::DstType type = fib::DstType::kConnected;  // or kLocal, kBroadcast
    friend bool operator==(const ConnectedRoute&, const ConnectedRoute&) = default;
    friend bool operator<(const ConnectedRoute& a, const ConnectedRoute& b) {
        return std::pair(a.prefix, a.type) < std::pair(b.prefix, b.type);
    }
};

/// The routes that a netdev's addresses stand for, each prefix once, sorted: its subnets, the
/// addresses themselves and, where RFC 919 has one, the directed broadcast. Link-local ones have
/// none: they are found by netdev, not by table.
std::vector<ConnectedRoute> connected_routes(std::span<const net::InterfaceAddr> addresses);

}  // namespace sluice::control
