// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/diff.h"
#include "config/nexthops.h"

namespace sluice::config {

struct NextHopDiff {
    std::vector<Action> early;  // with the removals: what cannot stay until the routes have changed
    std::vector<Action> added;  // new or different ones, groups after their members
    std::vector<Action> late;   // what is not wanted any more, groups before their members

    /// A route over one of these goes with it, though it may come back.
    std::set<std::uint32_t> uprooted;
    /// Those that will have IPv4 gateways, by which no IPv6 route can go (nor stay meanwhile).
    std::map<std::uint32_t, net::IpAddr> ipv4_only;
};

/// `goes` tells of a netdev that it is removed or moves.
[[nodiscard]] NextHopDiff diff_nexthops(const NextHops& from,
                                        const NextHops& to,
                                        const std::function<bool(const std::string& dev)>& goes);

}  // namespace sluice::config
