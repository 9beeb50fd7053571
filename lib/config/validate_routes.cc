// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include <fmt/ranges.h>

#include "config/spelling.h"
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

/// Why nobody can be at `address`, given what `facts` says of the link; empty when somebody can.
std::string_view never_a_host(const net::IpAddr& address, const NetdevFacts& facts) {
    for (const auto& own : facts.addresses) {
        if (!own.network().contains(address) || !own.address.is_v4()) {
            continue;
        }
        if (own.broadcast() == address.v4()) {
            return "the broadcast address";
        }
        if (own.length < 31 && own.network().v4().address == address.v4()) {
            return "the network's own address";
        }
    }
    return {};
}

void check_gateway(const Route& route,
                   const NetdevIndex& index,
                   const NetdevFacts& facts,
                   Findings& findings) {
    const auto& via = *route.via;
    const auto reaches = [&](const net::InterfaceAddr& a) { return a.network().contains(via); };
    if (!route.on_link && !is_link_local(via) &&
        std::none_of(facts.addresses.begin(), facts.addresses.end(), reaches)) {
        std::vector<std::string> subnets;
        for (const auto& address : facts.addresses) {
            subnets.push_back(address.network().to_string());
        }
        findings.add(
            route.at,
            "the gateway {} is in no subnet of {} ({}): correct it, or add on-link: true",
            via.to_string(),
            route.dev,
            subnets.empty() ? "it has no address" : fmt::format("{}", fmt::join(subnets, ", ")));
    } else if (const auto wrong = never_a_host(via, facts); !wrong.empty()) {
        findings.add(route.at,
                     "the gateway {} is {} on {}: write a host's",
                     via.to_string(),
                     wrong,
                     route.dev);
    }
    if (index.owns(via)) {
        findings.add(route.at,
                     "the gateway {} is an address of this router: write the next router's",
                     via.to_string());
    }
}

void check_route(const Route& route, const NetdevIndex& index, Findings& findings) {
    if (route.dev.empty()) {
        if (route.via && index.owns(*route.via)) {
            findings.add(route.at,
                         "the gateway {} is an address of this router: write the next router's",
                         route.via->to_string());
        } else if (route.via && !route.on_link && !is_link_local(*route.via)) {
            findings.add(route.at,
                         "the gateway {} is in no netdev's subnet: add dev and on-link: true, or "
                         "an address there",
                         route.via->to_string());
        }
        return;
    }
    const NetdevFacts* facts = index.find(route.dev);
    if (facts == nullptr) {
        findings.add(route.at, "dev {}", no_netdev(route.dev, index));
        return;
    }
    if (route.via) {
        check_gateway(route, index, *facts, findings);
    }
    if (route.mtu > facts->mtu) {
        findings.add(route.at,
                     "the route's mtu {} is more than {} has: at most {}",
                     route.mtu,
                     route.dev,
                     facts->mtu);
    }
}

std::string key_text(const Route& route) {
    return fmt::format("{} with metric {}", route.to.to_string(), route.metric);
}

void check_neighbors(const Netns& netns, const NetdevIndex& index, Findings& findings) {
    std::map<std::pair<std::string_view, net::IpAddr>, Position> seen;
    for (const Neighbor& neighbor : netns.neighbors) {
        const NetdevFacts* facts = index.find(neighbor.dev);
        if (facts == nullptr) {
            findings.add(neighbor.at, "dev {}", no_netdev(neighbor.dev, index));
            continue;
        }
        const auto text = neighbor.to.to_string();
        if (index.owns(neighbor.to)) {
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

NetdevIndex::NetdevIndex(const Netns& netns) {
    const auto add = [&](const std::string& name,
                         const NetdevSettings& settings,
                         const std::vector<Address>& addresses) {
        NetdevFacts facts{.addresses = {}, .mtu = settings.mtu};
        for (const Address& address : addresses) {
            facts.addresses.push_back(address.value);
            subnets_.emplace_back(address.value.network(), name);
            own_.insert(address.value.address);
        }
        netdevs_.emplace(name, std::move(facts));
    };
    for (const auto& [name, port] : netns.ports) {
        add(name, port.settings, port.addresses);
    }
    for (const auto& [name, vlan] : netns.vlans) {
        add(name, vlan.settings, vlan.addresses);
    }
    std::sort(subnets_.begin(), subnets_.end(), [](const auto& a, const auto& b) {
        return a.first.length() != b.first.length() ? a.first.length() > b.first.length()
                                                    : a.second < b.second;
    });
}

const NetdevFacts* NetdevIndex::find(const std::string& name) const {
    const auto it = netdevs_.find(name);
    return it == netdevs_.end() ? nullptr : &it->second;
}

std::string_view NetdevIndex::on_link(const net::IpAddr& address) const {
    const auto it = std::find_if(subnets_.begin(), subnets_.end(), [&](const auto& subnet) {
        return subnet.first.contains(address);
    });
    return it == subnets_.end() ? std::string_view{} : std::string_view{it->second};
}

std::vector<std::string_view> NetdevIndex::names() const {
    std::vector<std::string_view> names;
    for (const auto& [name, facts] : netdevs_) {
        names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string no_netdev(std::string_view name, const NetdevIndex& index) {
    const auto names = index.names();
    if (const auto close = nearest(name, names); !close.empty()) {
        return fmt::format("'{}' is no port or vlan here: did you mean '{}'?", name, close);
    }
    return fmt::format("'{}' is no port or vlan here: there is {}",
                       name,
                       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

void resolve_gateways(Config& config) {
    const auto resolve = [](Netns& netns) {
        const NetdevIndex index{netns};
        std::unordered_map<net::IpAddr, std::string_view> known;  // many routes, few gateways
        for (Route& route : netns.routes) {
            const bool wanted = route.via && route.dev.empty() && !index.owns(*route.via);
            if (wanted && !is_link_local(*route.via)) {
                const auto [entry, is_new] = known.try_emplace(*route.via);
                if (is_new) {
                    entry->second = index.on_link(*route.via);
                }
                route.dev = entry->second;
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
    std::unordered_set<const Route*, RouteKeyHash, RouteKeyEqual> seen;
    seen.reserve(netns.routes.size());
    for (const Route& route : netns.routes) {
        check_route(route, index, findings);
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
