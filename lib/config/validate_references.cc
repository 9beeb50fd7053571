// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <string>

#include "config/validate.h"

namespace sluice::config {
namespace {

void check_vrfs(const Netns& netns, const NetdevIndex& index, Findings& findings) {
    std::map<std::string_view, std::string_view> masters;
    std::map<std::uint32_t, std::string_view> tables{{kMainTable, "the netns itself"}};
    for (const auto& [name, vrf] : netns.vrfs) {
        if (const auto [owner, is_new] = tables.try_emplace(vrf.table, name); !is_new) {
            findings.add(vrf.at,
                         "{}: table {} is the table of {}: choose another",
                         name,
                         vrf.table,
                         owner->second);
        }
        for (const auto& netdev : vrf.interfaces) {
            if (index.find(netdev) == nullptr) {
                findings.add(vrf.at, "{}: {}", name, no_netdev(netdev, index));
            } else if (const auto [owner, is_new] = masters.try_emplace(netdev, name); !is_new) {
                findings.add(vrf.at,
                             "{}: {} is in {} already: one vrf a netdev",
                             name,
                             netdev,
                             owner->second);
            }
        }
    }
}

void check_nexthops(const Netns& netns, const NetdevIndex& index, Findings& findings) {
    for (const auto& [id, hop] : netns.nexthops) {
        if (!hop.dev.empty() && index.find(hop.dev) == nullptr) {
            findings.add(hop.at, "{}: dev {}", id, no_netdev(hop.dev, index));
        }
        for (const auto& [member, weight] : hop.group) {
            const auto found = netns.nexthops.find(member);
            if (found == netns.nexthops.end()) {
                findings.add(hop.at,
                             "{}: there is no next hop {}: add it, or take it out of the group",
                             id,
                             member);
            } else if (!found->second.group.empty()) {
                findings.add(hop.at, "{}: {} is a group itself: name its members", id, member);
            } else if (found->second.blackhole && hop.group.size() > 1) {
                findings.add(
                    hop.at, "{}: the blackhole {} can only be alone in a group", id, member);
            }
        }
    }
    for (const Route& route : netns.routes) {
        if (route.nexthop && !netns.nexthops.contains(*route.nexthop)) {
            findings.add(
                route.at, "there is no next hop {}: add it under nexthops", *route.nexthop);
        }
    }
}

}  // namespace

void check_references(const Netns& netns, Findings& findings) {
    const NetdevIndex index{netns};
    check_vrfs(netns, index, findings);
    check_nexthops(netns, index, findings);
    for (const Rule& rule : netns.routing_policy) {
        if (!rule.iif.empty() && index.find(rule.iif) == nullptr) {
            findings.add(rule.at, "iif {}", no_netdev(rule.iif, index));
        }
    }
}

}  // namespace sluice::config
