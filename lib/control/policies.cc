// SPDX-License-Identifier: BSD-3-Clause
#include "control/policies.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "net/wire.h"

namespace sluice::control {

using fib::DstType;

namespace {

template <class Addr>
constexpr net::Family kFamilyOf =
    std::is_same_v<Addr, net::Ipv4Addr> ? net::Family::kIpv4 : net::Family::kIpv6;

template <class Addr>
std::optional<net::Prefix<Addr>> prefix_of(const std::optional<net::IpPrefix>& prefix) {
    if (!prefix) {
        return std::nullopt;
    }
    if constexpr (std::is_same_v<Addr, net::Ipv4Addr>) {
        return prefix->v4();
    } else {
        return prefix->v6();
    }
}

std::optional<fib::PolicyPorts> ports_of(const std::optional<config::PortRange>& range) {
    return range ? std::optional(fib::PolicyPorts{range->first, range->last}) : std::nullopt;
}

}  // namespace

DstType answer_type(config::RuleAction action) noexcept {
    return action == config::RuleAction::kBlackhole     ? DstType::kBlackhole
           : action == config::RuleAction::kUnreachable ? DstType::kUnreachable
                                                        : DstType::kProhibit;
}

Policies::~Policies() = default;

void Policies::clear() {
    for (const auto& entry : rules_) {
        unbind(*entry);
    }
    rules_.clear();
    for (auto& free : std::exchange(garbage_, {})) {
        free();
    }
}

Result<void> Policies::check(const config::Rule& rule) {
    const auto refuse = [&](std::string_view why) {
        return fail(ErrorCode::kInvalid, "rule {}: {}", rule.priority, why);
    };
    for (const auto* prefix : {&rule.from, &rule.to}) {
        if (*prefix && (*prefix)->family() != rule.family) {
            return fail(ErrorCode::kInvalid,
                        "rule {}: {} is not of family {}",
                        rule.priority,
                        (*prefix)->to_string(),
                        net::to_string(rule.family));
        }
    }
    if (rule.dscp && *rule.dscp > 63) {
        return refuse("a DSCP is 0 to 63");
    }
    for (const auto* ports : {&rule.source_ports, &rule.destination_ports}) {
        if (*ports && (*ports)->first > (*ports)->last) {
            return refuse("the range of ports ends before it begins");
        }
        if (*ports && rule.protocol && !net::has_ports(net::IpProtocol{*rule.protocol})) {
            return refuse("only TCP, UDP, SCTP and DCCP have ports");
        }
    }
    if (rule.action == config::RuleAction::kTable && (rule.table == 0 || rule.table == 255)) {
        return fail(ErrorCode::kInvalid, "no rule can name table {}", rule.table);
    }
    if (rule.suppress_prefixlength) {
        if (rule.action != config::RuleAction::kTable) {
            return refuse("suppress-prefixlength needs a table");
        }
        if (*rule.suppress_prefixlength > (rule.family == net::Family::kIpv4 ? 32 : 128)) {
            return refuse("no prefix is that long");
        }
    }
    return {};
}

// --- what a rule leads to -----------------------------------------------------------------------

Result<void> Policies::bind(Entry& entry, const Netdev& blackhole) {
    const config::Rule& rule = entry.rule;
    if (rule.action == config::RuleAction::kSetMark) {
        return {};
    }
    if (rule.action != config::RuleAction::kTable) {
        const auto hop = hops_.get(
            {.netdev = kBlackholeNetdev, .type = answer_type(rule.action), .family = rule.family},
            blackhole);
        if (!hop) {
            return std::unexpected(hop.error());
        }
        entry.answer = *hop;
        ++entry.answer->users;
        return {};
    }
    const auto table = tables_.table(netns_, rule.table);
    if (!table) {
        return std::unexpected(table.error());
    }
    const auto look_in = [&](auto& rib, auto& lpm) -> Result<void> {
        lpm = &rib.lpm();
        if (rule.suppress_prefixlength) {
            const auto longer = rib.suppressed(*rule.suppress_prefixlength, reclaimer_);
            if (!longer) {
                return std::unexpected(longer.error());
            }
            lpm = *longer;
        }
        return {};
    };
    auto ok = rule.family == net::Family::kIpv4 ? look_in((*table)->v4, entry.lpm4)
                                                : look_in((*table)->v6, entry.lpm6);
    if (ok) {
        entry.table = *table;
    }
    return ok;
}

void Policies::unbind(Entry& entry) {
    if (entry.answer != nullptr) {
        // It stays a user until then: others that are given up with it may have the same answer.
        garbage_.emplace_back([this, hop = std::exchange(entry.answer, nullptr)] {
            --hop->users;
            hops_.drop_if_unused(*hop);
        });
    }
    if (entry.table != nullptr && entry.rule.suppress_prefixlength) {
        const auto drop = [&](auto& rib) {
            auto lpm = rib.drop_suppressed(*entry.rule.suppress_prefixlength);
            if (lpm != nullptr) {
                garbage_.emplace_back([this, lpm = std::move(lpm)]() mutable {
                    reclaimer_.defer([lpm = std::move(lpm)]() mutable { lpm.reset(); });
                });
            }
        };
        if (entry.rule.family == net::Family::kIpv4) {
            drop(entry.table->v4);
        } else {
            drop(entry.table->v6);
        }
    }
    entry.table = nullptr;
}

// --- compiling ----------------------------------------------------------------------------------

bool Policies::applies(const Entry& entry, const Netdev& ingress) {
    const config::Rule& rule = entry.rule;
    const bool in_vrf = &ingress.domain() != ingress.netns->lo;
    if (in_vrf && rule.priority >= kVrfPriority) {
        return false;
    }
    return rule.iif.empty() || rule.iif == ingress.name ||
           (in_vrf && rule.iif == ingress.domain().name);
}

template <class Addr>
fib::PolicyRule<Addr> Policies::rule_of(const Entry& entry) {
    const config::Rule& rule = entry.rule;
    fib::PolicyRule<Addr> out;
    out.from = prefix_of<Addr>(rule.from);
    out.to = prefix_of<Addr>(rule.to);
    out.dscp = rule.dscp;
    out.mark = rule.mark;
    out.protocol = rule.protocol;
    out.source_ports = ports_of(rule.source_ports);
    out.destination_ports = ports_of(rule.destination_ports);
    if (rule.action == config::RuleAction::kSetMark) {
        out.set_mark = rule.set_mark;
    } else if (entry.answer != nullptr) {
        out.answer = entry.answer->value;
    } else if constexpr (std::is_same_v<Addr, net::Ipv4Addr>) {
        out.table = entry.lpm4;
    } else {
        out.table = entry.lpm6;
    }
    return out;
}

/// All rules at once compile, so the fewer that a netdev meets do: no view is ever without.
template <class Addr>
Result<void> Policies::check_size() const {
    std::vector<fib::PolicyRule<Addr>> rules;
    for (const auto& entry : rules_) {
        if (entry->rule.family == kFamilyOf<Addr>) {
            rules.push_back(rule_of<Addr>(*entry));
        }
    }
    const auto policy = fib::Policy<Addr>::compile(rules, 0, reclaimer_);
    return policy ? Result<void>{} : std::unexpected(policy.error());
}

template <class Addr>
Result<const fib::Policy<Addr>*> Policies::policy(const Netdev& ingress, Compiled<Addr>& compiled) {
    Key key;
    std::vector<const Entry*> entries;
    for (const auto& entry : rules_) {
        if (entry->rule.family == kFamilyOf<Addr> && applies(*entry, ingress)) {
            key.rules.push_back(entry->serial);
            entries.push_back(entry.get());
        }
    }
    if (entries.empty()) {
        return nullptr;
    }
    const Table& last = ingress.routing_table();
    key.mark = ingress.settings.mark;
    key.table = &last;
    if (const auto it = compiled.find(key); it != compiled.end()) {
        return it->second.get();
    }
    std::vector<fib::PolicyRule<Addr>> rules;
    for (const Entry* entry : entries) {
        rules.push_back(rule_of<Addr>(*entry));
    }
    auto& last_rule = rules.emplace_back();
    if constexpr (std::is_same_v<Addr, net::Ipv4Addr>) {
        last_rule.table = &last.v4.lpm();
    } else {
        last_rule.table = &last.v6.lpm();
    }
    auto policy = fib::Policy<Addr>::compile(rules, key.mark, reclaimer_);
    if (!policy) {
        return std::unexpected(policy.error());
    }
    return compiled.emplace(std::move(key), std::move(*policy)).first->second.get();
}

const fib::Ipv4Policy* Policies::policy4(const Netdev& ingress) {
    const auto found = policy(ingress, compiled4_);
    SLUICE_CHECK(found.has_value());
    return *found;
}

const fib::Ipv6Policy* Policies::policy6(const Netdev& ingress) {
    const auto found = policy(ingress, compiled6_);
    SLUICE_CHECK(found.has_value());
    return *found;
}

template <class Addr>
void Policies::collect(Compiled<Addr>& compiled) {
    std::set<const fib::Policy<Addr>*> used;
    for (const auto& [name, netdev] : netns_.netdevs) {
        used.insert(*policy(*netdev, compiled));
    }
    for (auto it = compiled.begin(); it != compiled.end();) {
        if (used.contains(it->second.get())) {
            ++it;
            continue;
        }
        reclaimer_.defer([policy = std::move(it->second)]() mutable { policy.reset(); });
        it = compiled.erase(it);
    }
}

void Policies::collect() {
    collect(compiled4_);
    collect(compiled6_);
    for (auto& free : std::exchange(garbage_, {})) {
        free();
    }
}

// --- changes ------------------------------------------------------------------------------------

Result<void> Policies::add(const config::Rule& rule, RouteOwner owner, const Netdev& blackhole) {
    if (auto ok = check(rule); !ok) {
        return ok;
    }
    std::size_t count = 0;
    for (const auto& entry : rules_) {
        if (entry->rule == rule) {
            return fail(ErrorCode::kExists, "rule {}: an equal one is there", rule.priority);
        }
        count += entry->rule.family == rule.family ? 1 : 0;
    }
    if (count == kMaxRules) {
        return fail(ErrorCode::kLimit,
                    "all {} {} rules are in use",
                    kMaxRules,
                    net::to_string(rule.family));
    }
    auto entry = std::make_unique<Entry>();
    entry->rule = rule;
    entry->owner = owner;
    entry->serial = next_serial_++;
    if (auto ok = bind(*entry, blackhole); !ok) {
        return ok;
    }
    const auto at = std::ranges::upper_bound(
        rules_, rule.priority, {}, [](const auto& there) { return there->rule.priority; });
    const auto added = rules_.insert(at, std::move(entry));
    if (auto ok = rule.family == net::Family::kIpv4 ? check_size<net::Ipv4Addr>()
                                                    : check_size<net::Ipv6Addr>();
        !ok) {
        unbind(**added);
        rules_.erase(added);
        collect();
        return ok;
    }
    return {};
}

Result<void> Policies::remove(const config::Rule& rule) {
    auto found =
        std::ranges::find_if(rules_, [&](const auto& entry) { return entry->rule == rule; });
    config::Rule priority_alone;
    priority_alone.priority = rule.priority;
    priority_alone.family = rule.family;
    if (found == rules_.end() && rule == priority_alone) {
        found = std::ranges::find_if(rules_, [&](const auto& entry) {
            return entry->rule.priority == rule.priority && entry->rule.family == rule.family;
        });
    }
    if (found == rules_.end()) {
        return fail(ErrorCode::kNotFound, "no such rule {}", rule.priority);
    }
    unbind(**found);
    rules_.erase(found);
    return {};
}

// --- show ---------------------------------------------------------------------------------------

void Policies::walk(const Netdev& ingress,
                    net::Family family,
                    const std::function<bool(const Step&)>& fn) const {
    for (const auto& entry : rules_) {
        if (entry->rule.family == family && applies(*entry, ingress) &&
            !fn({&entry->rule, entry->table})) {
            return;
        }
    }
    fn({nullptr, &ingress.routing_table()});
}

std::vector<RuleInfo> Policies::infos() const {
    std::vector<RuleInfo> infos;
    for (const auto& entry : rules_) {
        infos.push_back({entry->rule, entry->owner});
    }
    return infos;
}

bool Policies::bypasses_cache() const {
    const auto bypasses = [](const auto& entry) { return !entry.second->cacheable(); };
    return std::ranges::any_of(compiled4_, bypasses) || std::ranges::any_of(compiled6_, bypasses);
}

}  // namespace sluice::control
