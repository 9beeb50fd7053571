// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/reclaimer.h"
#include "base/result.h"
#include "fib/lpm.h"
#include "fib/policy.h"
#include "net/address.h"

// Every field that rules read splits its values into classes: two values are in one class when the
// same rules accept them. A class is represented by the set of the rules that accept it, and a
// packet meets the rules in the intersection of its fields' sets. The fields are the source, the
// protocol and the ports (joined into the rule class), the destination and the DSCP; no rule can
// depend on anything else, since decide() is given nothing else.

namespace sluice::fib {

inline constexpr std::size_t kMaxRules = Ipv4Policy::kMaxRules;
static_assert(kMaxRules == Ipv6Policy::kMaxRules);
inline constexpr std::size_t kWords = kMaxRules / 64;
using RuleSet = std::array<std::uint64_t, kWords>;

inline void add(RuleSet& set, std::size_t rule) noexcept {
    set[rule / 64] |= std::uint64_t{1} << rule % 64;
}
inline RuleSet operator&(const RuleSet& a, const RuleSet& b) noexcept {
    RuleSet both{};
    for (std::size_t i = 0; i < kWords; ++i) {
        both[i] = a[i] & b[i];
    }
    return both;
}

/// The different sets among those given, numbered.
struct Classes {
    std::vector<RuleSet> sets;

    std::uint16_t number_of(const RuleSet& set) {
        const auto [it, is_new] =
            numbers_.try_emplace(set, static_cast<std::uint16_t>(sets.size()));
        if (is_new) {
            sets.push_back(set);
        }
        return it->second;
    }

private:
    std::map<RuleSet, std::uint16_t> numbers_;
};

/// The rules for which `accepts` holds.
template <class Rules, class Accepts>
RuleSet select(const Rules& rules, Accepts&& accepts) {
    RuleSet set{};
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (accepts(*rules[i])) {
            add(set, i);
        }
    }
    return set;
}

/// Addresses by the longest of the rules' prefixes that holds them, and so by all that do.
template <class Addr>
struct AddressClasses {
    std::unique_ptr<LpmTable<Addr>> longest;  // null: no rule reads it
    std::vector<RuleSet> sets;

    template <class Rules, class Field>
    Result<void> build(const Rules& rules, Field field, Reclaimer& reclaimer) {
        std::vector<net::Prefix<Addr>> prefixes;
        for (const auto* rule : rules) {
            if (rule->*field) {
                prefixes.push_back(*(rule->*field));
            }
        }
        std::ranges::sort(prefixes);
        prefixes.erase(std::ranges::unique(prefixes).begin(), prefixes.end());
        sets.push_back(select(rules, [&](const auto& rule) { return !(rule.*field); }));
        if (prefixes.empty()) {
            return {};
        }
        auto table = LpmTable<Addr>::create({.max_routes = kMaxRules}, reclaimer);
        if (!table) {
            return std::unexpected(table.error());
        }
        longest = *std::move(table);
        for (const auto& prefix : prefixes) {
            const auto set = longest->set(prefix, static_cast<std::uint32_t>(sets.size()));
            if (!set) {
                return set;
            }
            sets.push_back(select(rules, [&](const auto& rule) {
                return !(rule.*field) || (rule.*field)->contains(prefix);
            }));
        }
        return {};
    }
    void classify(const Addr* addresses, std::uint32_t* classes, std::size_t count) const noexcept {
        if (longest != nullptr) {
            longest->lookup({addresses, count}, classes);
        } else {
            std::fill_n(classes, count, 0U);
        }
    }
};

// Fields of the transport header hold of each class its part of the number of a combination: see
// Compiled::combination().

/// Ports by the interval between the ends of the rules' ranges that they are in.
struct PortClasses {
    std::vector<std::uint32_t> starts;  // of the intervals but the first
    std::vector<std::uint32_t> parts;   // by interval
    std::uint32_t without_ports = 0;
    std::vector<RuleSet> sets;

    /// `factor` times the class is its part.
    template <class Rules, class Field>
    void build(const Rules& rules, Field field, std::uint32_t factor) {
        for (const auto* rule : rules) {
            if (rule->*field) {
                starts.push_back((rule->*field)->first);
                starts.push_back((rule->*field)->last + 1U);
            }
        }
        std::ranges::sort(starts);
        starts.erase(std::ranges::unique(starts).begin(), starts.end());
        Classes found;
        without_ports = factor * found.number_of(select(
                                     rules, [&](const auto& rule) { return !(rule.*field); }));
        parts.push_back(without_ports);  // below the first start
        for (const std::uint32_t start : starts) {
            parts.push_back(factor * found.number_of(select(rules, [&](const auto& rule) {
                return !(rule.*field) ||
                       ((rule.*field)->first <= start && start <= (rule.*field)->last);
            })));
        }
        sets = std::move(found.sets);
    }
    std::uint32_t part(bool has_ports, std::uint16_t port) const noexcept {
        if (starts.empty()) {
            return without_ports;
        }
        // Ports of real traffic are hard to guess for a branch.
        const std::uint32_t* at = starts.data();
        for (std::size_t n = starts.size(); n > 1; n -= n / 2) {
            at = at[n / 2 - 1] <= port ? at + n / 2 : at;
        }
        const std::uint32_t its =
            parts[static_cast<std::size_t>(at - starts.data()) + (*at <= port ? 1U : 0U)];
        return has_ports ? its : without_ports;
    }
};

struct ProtocolClasses {
    std::array<std::uint32_t, 256> parts{};
    std::vector<RuleSet> sets;

    template <class Rules>
    void build(const Rules& rules, std::uint32_t factor) {
        Classes found;
        for (std::size_t protocol = 0; protocol < parts.size(); ++protocol) {
            parts[protocol] = factor * found.number_of(select(rules, [&](const auto& rule) {
                return !rule.protocol || *rule.protocol == protocol;
            }));
        }
        sets = std::move(found.sets);
    }
};

}  // namespace sluice::fib
