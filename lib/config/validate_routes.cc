// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "config/nexthops.h"
#include "config/validate.h"

namespace sluice::config {
namespace {

struct RouteKeyHash {
    std::size_t operator()(const Route* route) const noexcept {
        const auto prefix = std::hash<net::IpPrefix>{}(route->to);
        return prefix ^ (std::size_t{route->metric} * 0x9e3779b97f4a7c15U) ^
               (std::size_t{route->table} << 32U);
    }
};
struct RouteKeyEqual {
    bool operator()(const Route* a, const Route* b) const noexcept {
        return a->to == b->to && a->metric == b->metric && a->table == b->table;
    }
};

bool is_link_local(const net::IpAddr& address) {
    return address.is_v6() && address.v6().is_link_local();
}

void check_nexthop_route(const Route& route,
                         const Netns& netns,
                         const std::map<std::uint32_t, net::IpAddr>& ipv4_only,
                         Findings& findings) {
    if (!netns.nexthops.contains(*route.nexthop)) {
        findings.add(route.at, "there is no next hop {}: add it under nexthops", *route.nexthop);
        return;
    }
    const auto gateway = ipv4_only.find(*route.nexthop);
    if (!route.to.is_v4() && gateway != ipv4_only.end()) {
        findings.add(route.at,
                     "an IPv6 route over next hop {}, which has the IPv4 gateway {}: name one with "
                     "IPv6 gateways",
                     *route.nexthop,
                     gateway->second.to_string());
    }
}

/// The lookup goes on in the vrf's table.
void check_leak(const Route& route, const Vrf& vrf, Findings& findings) {
    if (route.type == RouteType::kLocal) {
        findings.add(route.at, "a local route's dev is a port or vlan: not the vrf {}", route.dev);
    } else if (route.via || route.mtu != 0) {
        findings.add(route.at,
                     "{} is a vrf, whose table says the rest of the way: leave via, on-link and "
                     "mtu out",
                     route.dev);
    } else if (route.table == vrf.table) {
        findings.add(route.at,
                     "table {} is the table of {} itself: the lookup would never end; name another "
                     "vrf or netdev",
                     route.table,
                     route.dev);
    }
}

void check_route(const Route& route, const NetdevIndex& index, Findings& findings) {
    if (const Vrf* vrf = index.find_vrf(route.dev); vrf != nullptr) {
        check_leak(route, *vrf, findings);
        return;
    }
    const NetdevFacts* facts = index.find(route.dev);
    if (facts == nullptr && !route.dev.empty()) {
        findings.add(route.at, "dev {}", index.no_netdev_or_vrf(route.dev));
        return;
    }
    check_way({.at = route.at,
               .prefix = {},
               .via = route.via,
               .dev = route.dev,
               .on_link = route.on_link,
               .domain = index.domain_of_table(route.table)},
              index,
              findings);
    if (facts != nullptr && route.mtu > facts->mtu) {
        findings.add(route.at,
                     "the route's mtu {} is more than {} has: at most {}",
                     route.mtu,
                     route.dev,
                     facts->mtu);
    }
}

std::string key_text(const Route& route) {
    const auto table = route.table == kMainTable ? "" : fmt::format(" in table {}", route.table);
    return fmt::format("{} with metric {}{}", route.to.to_string(), route.metric, table);
}

void check_neighbors(const Netns& netns, const NetdevIndex& index, Findings& findings) {
    std::map<std::pair<std::string_view, net::IpAddr>, Position> seen;
    for (const Neighbor& neighbor : netns.neighbors) {
        const NetdevFacts* facts = index.find(neighbor.dev);
        if (facts == nullptr) {
            findings.add(neighbor.at, "dev {}", index.no_netdev(neighbor.dev));
            continue;
        }
        const auto text = neighbor.to.to_string();
        if (index.owns(facts->domain, neighbor.to)) {
            findings.add(neighbor.at, "{} is an address of this router: write a neighbor's", text);
        } else if (const auto wrong = never_a_host(neighbor.to, *facts); !wrong.empty()) {
            findings.add(neighbor.at, "{} is {} on {}: write a host's", text, wrong, neighbor.dev);
        }
        const auto [first, is_new] = seen.try_emplace({neighbor.dev, neighbor.to}, neighbor.at);
        if (!is_new) {
            findings.add(
                neighbor.at,
                "the neighbor {} on {} is here twice, first at line {} column {}: keep one",
                text,
                neighbor.dev,
                first->second.line,
                first->second.column);
        }
    }
}

}  // namespace

void resolve_gateways(Config& config) {
    const auto resolve = [](Netns& netns) {
        const NetdevIndex index{netns};
        // Many routes, few gateways.
        std::unordered_map<net::IpAddr, std::map<Domain, std::string_view>> known;
        const auto find = [&](const net::IpAddr& via, Domain domain) {
            if (is_link_local(via) || index.owns(domain, via)) {
                return std::string_view{};
            }
            const auto [entry, is_new] = known[via].try_emplace(domain);
            if (is_new) {
                entry->second = index.on_link(domain, via);
            }
            return entry->second;
        };
        for (Route& route : netns.routes) {
            if (route.via && route.dev.empty()) {
                route.dev = find(*route.via, index.domain_of_table(route.table));
            }
        }
        for (auto& [id, hop] : netns.nexthops) {
            if (hop.via && hop.dev.empty()) {
                hop.dev = find(*hop.via, kDefaultDomain);
            }
        }
    };
    resolve(config.default_netns);
    for (auto& [name, netns] : config.netns) {
        resolve(netns);
    }
}

void check_routes(const Netns& netns, Findings& findings) {
    const NetdevIndex index{netns};
    const auto ipv4_only = ipv4_gateways(netns.nexthops);
    std::unordered_set<const Route*, RouteKeyHash, RouteKeyEqual> seen;
    seen.reserve(netns.routes.size());
    for (const Route& route : netns.routes) {
        if (findings.full()) {
            return;
        }
        if (route.nexthop) {
            check_nexthop_route(route, netns, ipv4_only, findings);
        } else {
            check_route(route, index, findings);
        }
        const auto [first, is_new] = seen.insert(&route);
        if (!is_new) {
            findings.add(route.at,
                         "the route to {} is here twice, first at line {} column {}: keep one, or "
                         "give it another metric",
                         key_text(route),
                         (*first)->at.line,
                         (*first)->at.column);
        }
    }
    check_neighbors(netns, index, findings);
}

}  // namespace sluice::config
