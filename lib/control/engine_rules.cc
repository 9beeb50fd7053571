// SPDX-License-Identifier: BSD-3-Clause
// Policy rules.
#include "control/engine.h"
#include "control/policies.h"

namespace sluice::control {

Result<void> Engine::add_rule(Netns& netns, const config::Rule& rule, RouteOwner owner) {
    const Changes::Scope scope(changes_);
    if (auto ok = netns.policies->add(rule, owner, *netdevs_.find(kBlackholeNetdev)); !ok) {
        return ok;
    }
    netdevs_.publish_all(netns);
    changes_.all(netns);
    netns.policies->collect();
    return {};
}

Result<void> Engine::delete_rule(Netns& netns, const config::Rule& rule) {
    const Changes::Scope scope(changes_);
    if (auto ok = netns.policies->remove(rule); !ok) {
        return ok;
    }
    netdevs_.publish_all(netns);
    changes_.all(netns);
    netns.policies->collect();
    return {};
}

std::vector<RuleInfo> Engine::rules(const Netns& netns) const {
    return netns.policies->infos();
}

}  // namespace sluice::control
