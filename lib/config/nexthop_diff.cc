// SPDX-License-Identifier: BSD-3-Clause
#include "config/nexthop_diff.h"

#include <algorithm>
#include <utility>

namespace sluice::config {
namespace {

/// What a replacement in place can do (checks 33, 40 and 57).
bool replaceable(const NextHop& from, const NextHop& to) {
    const auto buckets = [](const NextHop& hop) {
        return hop.resilient ? hop.resilient->buckets : 0;
    };
    return is_group(from) == is_group(to) &&
           from.resilient.has_value() == to.resilient.has_value() && buckets(from) == buckets(to);
}

class Differ {
public:
    Differ(const NextHops& from,
           const NextHops& to,
           const std::function<bool(const std::string& dev)>& goes)
        : from_(from), to_(to), running_(from) {
        for (const auto& [id, hop] : from_) {
            const NextHop* next = find(to_, id);
            if ((!hop.dev.empty() && goes(hop.dev)) ||
                (next != nullptr && !replaceable(hop, *next))) {
                diff_.uprooted.insert(id);
            }
        }
    }

    NextHopDiff run() {
        diff_.ipv4_only = ipv4_gateways(to_);
        shrink_groups();
        for (const bool groups : {true, false}) {
            remove(groups);
        }
        for (const bool groups : {false, true}) {
            add(groups);
        }
        return std::move(diff_);
    }

private:
    static const NextHop* find(const NextHops& hops, std::uint32_t id) {
        const auto it = hops.find(id);
        return it == hops.end() ? nullptr : &it->second;
    }

    /// It is removed, or turns into what its group may refuse (checks 35 and 43).
    bool troubles_its_group(std::uint32_t member) const {
        const NextHop& before = from_.at(member);
        const NextHop* after = find(to_, member);
        return diff_.uprooted.contains(member) ||
               (after != nullptr && ((after->blackhole && !before.blackhole) ||
                                     (has_ipv4_gateway(*after) && !has_ipv4_gateway(before))));
    }

    /// Members that must go before the group has its new ones leave it by name, so that it keeps
    /// the others and what it is used for; a group that would be empty meanwhile is uprooted.
    void shrink_groups() {
        for (auto& [id, hop] : running_) {
            const auto troubles = [&](const auto& member) {
                return troubles_its_group(member.first);
            };
            if (!is_group(hop) || diff_.uprooted.contains(id) ||
                std::none_of(hop.group.begin(), hop.group.end(), troubles)) {
                continue;
            }
            const NextHop* next = find(to_, id);
            NextHop shrunk = hop;
            shrunk.group.clear();
            for (const auto& [member, weight] : hop.group) {
                if (next == nullptr && !troubles_its_group(member)) {
                    shrunk.group.emplace(member, weight);
                } else if (next != nullptr && next->group.contains(member) &&
                           !diff_.uprooted.contains(member)) {
                    shrunk.group.emplace(member, next->group.at(member));
                }
            }
            if (shrunk.group.empty()) {
                diff_.uprooted.insert(id);
            } else if (shrunk.group.size() != hop.group.size()) {
                diff_.early.emplace_back(ReplaceNextHop{id, hop, shrunk});
                hop = std::move(shrunk);
            }
        }
    }

    void remove(bool groups) {
        for (const auto& [id, hop] : from_) {
            if (is_group(hop) != groups) {
                continue;
            }
            if (diff_.uprooted.contains(id)) {
                diff_.early.emplace_back(RemoveNextHop{id});
            } else if (find(to_, id) == nullptr) {
                diff_.late.emplace_back(RemoveNextHop{id});
            }
        }
    }

    void add(bool groups) {
        for (const auto& [id, hop] : to_) {
            if (is_group(hop) != groups) {
                continue;
            }
            const NextHop* had = find(running_, id);
            if (had == nullptr || diff_.uprooted.contains(id)) {
                diff_.added.emplace_back(AddNextHop{id, hop});
            } else if (*had != hop) {
                diff_.added.emplace_back(ReplaceNextHop{id, *had, hop});
            }
        }
    }

    const NextHops& from_;
    const NextHops& to_;
    NextHops running_;  // from_, with groups as they are meanwhile
    NextHopDiff diff_;
};

}  // namespace

NextHopDiff diff_nexthops(const NextHops& from,
                          const NextHops& to,
                          const std::function<bool(const std::string& dev)>& goes) {
    return Differ{from, to, goes}.run();
}

}  // namespace sluice::config
