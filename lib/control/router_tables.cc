// SPDX-License-Identifier: BSD-3-Clause
// Routes, next hops, rules and neighbors of a netns.
#include <algorithm>
#include <utility>

#include "control/nexthop_objects.h"
#include "control/router.h"

namespace sluice::control {

Result<void> Router::add_route(const std::string& netns,
                               const RouteRequest& route,
                               RouteMode mode) {
    return in(netns, [&](Netns& of) { return engine_.add_route(of, route, mode); });
}

Result<void> Router::delete_route(const std::string& netns, const RouteRequest& route) {
    return in(netns, [&](Netns& of) { return engine_.delete_route(of, route); });
}

Result<std::size_t> Router::flush_routes(const std::string& netns, RouteOwner owner) {
    return in(netns, [&](Netns& of) { return engine_.flush_routes(of, owner); });
}

Result<RouteLookup> Router::lookup_route(const std::string& netns, const RouteQuery& query) const {
    return in(netns, [&](Netns& of) { return engine_.lookup_route(of, query); });
}

Result<void> Router::add_nexthop(const std::string& netns,
                                 std::uint32_t id,
                                 const config::NextHop& hop,
                                 bool replace) {
    return in(netns, [&](Netns& of) -> Result<void> {
        if (auto ok = engine_.add_nexthop(of, id, hop, RouteOwner::kCli, replace); !ok) {
            return ok;
        }
        // With the netdev that the gateway was found on.
        config_of(of).nexthops[id] = std::as_const(*of.nexthops).find(id)->config;
        return {};
    });
}

Result<void> Router::delete_nexthop(const std::string& netns, std::uint32_t id) {
    return in(netns, [&](Netns& of) -> Result<void> {
        if (auto ok = engine_.delete_nexthop(of, id); !ok) {
            return ok;
        }
        forget_nexthops(of);
        return {};
    });
}

Result<std::vector<NextHopInfo>> Router::nexthops(const std::string& netns) const {
    return in(netns, [&](Netns& of) { return engine_.nexthops(of); });
}

Result<void> Router::add_rule(const std::string& netns, const config::Rule& rule) {
    return in(netns, [&](Netns& of) -> Result<void> {
        if (auto ok = engine_.add_rule(of, rule, RouteOwner::kCli); !ok) {
            return ok;
        }
        take_rules(of);
        return {};
    });
}

Result<void> Router::delete_rule(const std::string& netns, const config::Rule& rule) {
    return in(netns, [&](Netns& of) -> Result<void> {
        if (auto ok = engine_.delete_rule(of, rule); !ok) {
            return ok;
        }
        take_rules(of);
        return {};
    });
}

void Router::take_rules(const Netns& netns) {
    auto& rules = config_of(netns).routing_policy;
    rules.clear();
    for (RuleInfo& info : engine_.rules(netns)) {
        rules.push_back(std::move(info.rule));
    }
}

Result<std::vector<RuleInfo>> Router::rules(const std::string& netns) const {
    return in(netns, [&](Netns& of) { return engine_.rules(of); });
}

Result<std::vector<ExceptionInfo>> Router::exceptions(const std::string& netns) const {
    return in(netns, [&](Netns& of) { return engine_.exceptions(of); });
}

Result<std::size_t> Router::flush_exceptions(const std::string& netns) {
    return in(netns, [&](Netns& of) { return engine_.flush_exceptions(of); });
}

Result<void> Router::add_neighbor(const std::string& netns,
                                  const std::string& dev,
                                  const net::IpAddr& address,
                                  const net::MacAddr& lladdr) {
    return in(netns, [&](Netns& of) -> Result<void> {
        const Netdev* netdev = of.find(dev);
        const Neighbor* before =
            netdev == nullptr ? nullptr : engine_.neighbors().table().find({netdev->id, address});
        const bool replaces = before != nullptr && before->state == NeighborState::kPermanent;
        if (auto ok = engine_.add_neighbor(of, dev, address, lladdr, steady_now()); !ok) {
            return ok;
        }
        auto& neighbors = config_of(of).neighbors;
        if (replaces) {  // a look at all of them for each would make many of them slow
            std::erase_if(neighbors,
                          [&](const auto& n) { return n.dev == dev && n.to == address; });
        }
        neighbors.push_back({.to = address, .dev = dev, .lladdr = lladdr, .at = {}});
        return {};
    });
}

Result<void> Router::delete_neighbor(const std::string& netns,
                                     const std::string& dev,
                                     const net::IpAddr& address) {
    return in(netns, [&](Netns& of) -> Result<void> {
        if (auto ok = engine_.delete_neighbor(of, dev, address); !ok) {
            return ok;
        }
        std::erase_if(config_of(of).neighbors,
                      [&](const auto& n) { return n.dev == dev && n.to == address; });
        return {};
    });
}

Result<std::size_t> Router::flush_neighbors(const std::string& netns, const std::string& dev) {
    return in(netns, [&](Netns& of) { return engine_.flush_neighbors(of, dev); });
}

}  // namespace sluice::control
