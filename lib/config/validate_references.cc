// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <string>
#include <utility>

#include "config/nexthops.h"
#include "config/validate.h"

namespace sluice::config {
namespace {

constexpr std::uint32_t kDefaultTable = 253;  // as Linux reserves them: default, main, local

void check_vrfs(const Netns& netns, const NetdevIndex& index, Findings& findings) {
    std::map<std::string_view, std::string_view> masters;
    std::map<std::uint32_t, std::string_view> tables;
    for (const auto& [name, vrf] : netns.vrfs) {
        if (vrf.table >= kDefaultTable && vrf.table <= kLocalTable) {
            findings.add(vrf.at,
                         "{}: table {} is not a vrf's to have ({} to {} are the netns's own): "
                         "choose another",
                         name,
                         vrf.table,
                         kDefaultTable,
                         kLocalTable);
        } else if (const auto [owner, is_new] = tables.try_emplace(vrf.table, name); !is_new) {
            findings.add(vrf.at,
                         "{}: table {} is the table of {}: choose another",
                         name,
                         vrf.table,
                         owner->second);
        }
        for (const auto& netdev : vrf.interfaces) {
            if (index.find_vrf(netdev) != nullptr) {
                findings.add(vrf.at, "{}: {} is a vrf itself: name ports and vlans", name, netdev);
            } else if (index.find(netdev) == nullptr) {
                findings.add(vrf.at, "{}: {}", name, index.no_netdev(netdev));
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

void check_members(std::uint32_t id,
                   const NextHop& hop,
                   const NextHops& nexthops,
                   Findings& findings) {
    for (const auto& [member, weight] : hop.group) {
        const auto found = nexthops.find(member);
        if (found == nexthops.end()) {
            findings.add(hop.at,
                         "{}: there is no next hop {}: add it, or take it out of the group",
                         id,
                         member);
        } else if (is_group(found->second)) {
            findings.add(hop.at, "{}: {} is a group itself: name its members", id, member);
        } else if (found->second.blackhole && hop.group.size() > 1) {
            findings.add(hop.at, "{}: the blackhole {} can only be alone in a group", id, member);
        }
    }
    if (hop.resilient && hop.resilient->buckets < hop.group.size()) {
        findings.add(hop.at,
                     "{}: {} buckets for {} members: at least one a member",
                     id,
                     hop.resilient->buckets,
                     hop.group.size());
    }
}

void check_nexthops(const Netns& netns, const NetdevIndex& index, Findings& findings) {
    for (const auto& [id, hop] : netns.nexthops) {
        check_members(id, hop, netns.nexthops, findings);
        if (index.find_vrf(hop.dev) != nullptr) {
            findings.add(
                hop.at, "{}: {} is a vrf: write routes with vrf: {} instead", id, hop.dev, hop.dev);
        } else if (!hop.dev.empty() && index.find(hop.dev) == nullptr) {
            findings.add(hop.at, "{}: dev {}", id, index.no_netdev(hop.dev));
        } else {
            check_way({.at = hop.at,
                       .prefix = fmt::format("{}: ", id),
                       .via = hop.via,
                       .dev = hop.dev,
                       .on_link = hop.on_link},
                      index,
                      findings);
        }
    }
}

}  // namespace

// An iif that is not there is no mistake: the rule waits for it, as it does when its netdev leaves.
void check_rules(const Netns& netns, Findings& findings) {
    std::map<std::pair<net::Family, std::uint32_t>, std::vector<const Rule*>> by_priority;
    std::map<net::Family, std::size_t> counts;
    for (const Rule& rule : netns.routing_policy) {
        if (++counts[rule.family] > kMaxRules) {
            findings.add(rule.at,
                         "more than {} {} rules in one netns: leave some out",
                         kMaxRules,
                         net::to_string(rule.family));
            return;
        }
        auto& peers = by_priority[{rule.family, rule.priority}];
        for (const Rule* other : peers) {
            if (*other == rule) {
                findings.add(rule.at,
                             "this rule of priority {} is here twice, first at line {} column {}: "
                             "keep one",
                             rule.priority,
                             other->at.line,
                             other->at.column);
                break;
            }
        }
        peers.push_back(&rule);
    }
}

void check_references(const Netns& netns, Findings& findings) {
    const NetdevIndex index{netns};
    check_vrfs(netns, index, findings);
    check_nexthops(netns, index, findings);
    check_rules(netns, findings);
}

}  // namespace sluice::config
