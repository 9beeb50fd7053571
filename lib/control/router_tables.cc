// SPDX-License-Identifier: BSD-3-Clause
// Routes, next hops, rules and neighbors of a netns.
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "config/netns.h"
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

Result<Flush> Router::flush_routes(const std::string& netns, const RouteFilter& filter) {
    return in(netns, [&](Netns& of) { return engine_.flush_routes(of, filter); });
}

Result<RouteLookup> Router::lookup_route(const std::string& netns, const RouteQuery& query) const {
    return in(netns, [&](Netns& of) { return engine_.lookup_route(of, query); });
}

Result<void> Router::add_nexthop(const std::string& netns,
                                 std::uint32_t id,
                                 const config::NextHop& hop,
                                 bool replace,
                                 std::uint8_t protocol) {
    return in(netns, [&](Netns& of) -> Result<void> {
        if (auto ok = engine_.add_nexthop(of, id, hop, RouteOwner::kCli, replace, protocol); !ok) {
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

Result<std::size_t> Router::flush_nexthops(const std::string& netns, const RouteFilter& filter) {
    return in(netns, [&](Netns& of) -> Result<std::size_t> {
        const std::size_t removed = engine_.flush_nexthops(of, filter);
        forget_nexthops(of);
        return removed;
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

Result<Flush> Router::flush_exceptions(const std::string& netns) {
    return in(netns, [&](Netns& of) { return engine_.flush_exceptions(of); });
}

Result<void> Router::add_neighbor(const std::string& netns,
                                  const std::string& dev,
                                  const net::IpAddr& address,
                                  const net::MacAddr& lladdr) {
    return in(netns, [&](Netns& of) {
        return engine_.add_neighbor(of, dev, address, lladdr, steady_now());
    });
}

Result<void> Router::delete_neighbor(const std::string& netns,
                                     const std::string& dev,
                                     const net::IpAddr& address) {
    return in(netns, [&](Netns& of) { return engine_.delete_neighbor(of, dev, address); });
}

void Router::take_neighbors() const {
    std::map<std::string_view, std::map<std::pair<std::string_view, net::IpAddr>, net::MacAddr>>
        there;
    engine_.neighbors().table().for_each([&](const Neighbor& neighbor) {
        const Netdev* netdev = engine_.netdevs().find(neighbor.key.netdev);
        if (netdev != nullptr && neighbor.state == NeighborState::kPermanent) {
            there[netdev->netns->name].insert(
                {{netdev->name, neighbor.key.address}, *neighbor.mac});
        }
    });
    config::for_each_netns(running_, [&](std::string_view name, config::Netns& netns) {
        auto& hosts = there[name];
        std::erase_if(netns.neighbors, [&](config::Neighbor& neighbor) {
            const auto at = hosts.find({neighbor.dev, neighbor.to});
            if (at == hosts.end()) {
                return true;
            }
            neighbor.lladdr = at->second;
            hosts.erase(at);
            return false;
        });
        for (const auto& [host, lladdr] : hosts) {
            netns.neighbors.push_back(
                {.to = host.second, .dev = std::string(host.first), .lladdr = lladdr, .at = {}});
        }
    });
}

Result<Flush> Router::flush_neighbors(const std::string& netns, const std::string& dev) {
    return in(netns, [&](Netns& of) { return engine_.flush_neighbors(of, dev); });
}

}  // namespace sluice::control
