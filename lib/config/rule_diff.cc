// SPDX-License-Identifier: BSD-3-Clause
#include "config/rule_diff.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace sluice::config {
namespace {

struct Peers {
    std::vector<const Rule*> from;
    std::vector<const Rule*> to;
};

/// Keeps the longest beginning of `to` that `from` has in this order: the rest can only be put
/// behind it.
void diff_peers(const Peers& peers, RuleDiff& out) {
    auto next = peers.from.begin();
    auto wanted = peers.to.begin();
    for (; wanted != peers.to.end(); ++wanted) {
        const auto found = std::find_if(
            next, peers.from.end(), [&](const Rule* rule) { return *rule == **wanted; });
        if (found == peers.from.end()) {
            break;
        }
        out.removed.insert(out.removed.end(), next, found);
        next = found + 1;
    }
    out.removed.insert(out.removed.end(), next, peers.from.end());
    out.added.insert(out.added.end(), wanted, peers.to.end());
}

}  // namespace

RuleDiff diff_rules(const std::vector<Rule>& from, const std::vector<Rule>& to) {
    std::map<std::pair<net::Family, std::uint32_t>, Peers> by_priority;
    for (const Rule& rule : from) {
        by_priority[{rule.family, rule.priority}].from.push_back(&rule);
    }
    for (const Rule& rule : to) {
        by_priority[{rule.family, rule.priority}].to.push_back(&rule);
    }
    RuleDiff diff;
    for (const auto& [priority, peers] : by_priority) {
        diff_peers(peers, diff);
    }
    return diff;
}

}  // namespace sluice::config
