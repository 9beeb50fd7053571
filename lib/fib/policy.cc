// SPDX-License-Identifier: BSD-3-Clause
#include "fib/policy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/reclaimer.h"
#include "base/result.h"
#include "fib/dst.h"
#include "fib/lpm.h"
#include "fib/policy_classes.h"
#include "net/address.h"

namespace sluice::fib {
namespace {

constexpr std::size_t kBurst = 64;
constexpr std::size_t kNoRule = std::numeric_limits<std::size_t>::max();
/// Combinations of classes up to which the joint ones are numbered at compile time; a few ms.
constexpr std::uint64_t kMaxNumbered = 16384;
/// Steps of all walks together, likewise; and fewer than 2^16.
constexpr std::size_t kMaxLength = 60'000;

/// What a rule does once the sets say that it matches.
struct Act {
    enum class Kind : std::uint8_t { kTable, kAnswer, kSetMark };
    Kind kind = Kind::kAnswer;
    bool reads_mark = false;
    std::uint32_t mark = 0;
    std::uint32_t value = 0;  // index of the table, the answer, or the mark
};

/// Where a walk through the rules is: at a table, and further on when that has no route, or at its
/// end. All walks that go on in the same way share it.
struct Step {
    bool ends = true;
    std::uint16_t next = 0;
    std::uint32_t value = kNoRoute;  // index of the table, or what the rules say
    friend auto operator<=>(const Step&, const Step&) = default;
};
Step step_of(const Act& act) noexcept {
    return {.ends = act.kind == Act::Kind::kAnswer, .next = 0, .value = act.value};
}

}  // namespace

template <class Addr>
struct Policy<Addr>::Compiled {
    std::vector<Act> acts;
    std::size_t words = 0;  // of a set that rules are in
    std::uint32_t mark = 0;
    std::vector<const LpmTable<Addr>*> tables;

    AddressClasses<Addr> sources, destinations;
    ProtocolClasses protocols;
    PortClasses source_ports, destination_ports;
    std::array<std::uint16_t, 64> dscp_class{};
    std::vector<RuleSet> dscps;

    /// By combination of classes: the rule class, and by that the rules. Empty: there are too many,
    /// and the combination is the class.
    std::vector<std::uint16_t> numbers;
    std::vector<RuleSet> sets;

    /// Every walk that there is, by its first step for class, destination's class and DSCP's class.
    /// Empty: there are too many, and each packet walks by itself.
    std::vector<std::uint16_t> walks;
    std::vector<Step> steps;

    /// Combinations of one source's class.
    std::uint32_t of_transports = 1;

    std::uint64_t combinations() const noexcept {
        return std::uint64_t{sources.sets.size()} * of_transports;
    }
    /// The number that the classes of the four fields are the digits of.
    std::uint32_t combination(std::uint32_t source, const Transport& transport) const noexcept {
        return source * of_transports + protocols.parts[transport.protocol] +
               source_ports.part(transport.has_ports, transport.source_port) +
               destination_ports.part(transport.has_ports, transport.destination_port);
    }
    RuleSet rules_of_combination(std::uint64_t n) const noexcept {
        RuleSet set = destination_ports.sets[n % destination_ports.sets.size()];
        n /= destination_ports.sets.size();
        set = set & source_ports.sets[n % source_ports.sets.size()];
        n /= source_ports.sets.size();
        set = set & protocols.sets[n % protocols.sets.size()];
        return set & sources.sets[n / protocols.sets.size()];
    }

    struct Packet {
        std::uint16_t next;  // step, or rule of a packet that walks by itself
        std::uint32_t mark;
    };
    std::size_t next_match(const RuleSet& of_class,
                           const RuleSet& of_destination,
                           const RuleSet& of_dscp,
                           std::size_t from) const noexcept {
        std::uint64_t wanted = ~std::uint64_t{0} << from % 64;
        for (std::size_t word = from / 64; word < words; ++word, wanted = ~std::uint64_t{0}) {
            const std::uint64_t rules =
                of_class[word] & of_destination[word] & of_dscp[word] & wanted;
            if (rules != 0) {
                return word * 64 + static_cast<std::size_t>(std::countr_zero(rules));
            }
        }
        return kNoRule;
    }
    /// The next rule that ends the walk or names a table; kNoRule: there is none.
    std::size_t advance(Packet& packet,
                        std::uint32_t rule_class,
                        const RuleSet& of_destination,
                        const RuleSet& of_dscp) const noexcept {
        RuleSet joined;
        const RuleSet* of_class = nullptr;
        if (!sets.empty()) {
            of_class = &sets[rule_class];
        } else {
            joined = rules_of_combination(rule_class);
            of_class = &joined;
        }
        std::size_t from = packet.next;
        for (;;) {
            const std::size_t rule = next_match(*of_class, of_destination, of_dscp, from);
            if (rule == kNoRule) {
                return kNoRule;
            }
            from = rule + 1;
            const Act& act = acts[rule];
            if (act.reads_mark && act.mark != packet.mark) {
                continue;
            }
            if (act.kind != Act::Kind::kSetMark) {
                packet.next = static_cast<std::uint16_t>(from);
                return rule;
            }
            packet.mark = act.value;
        }
    }

    std::size_t walk_of(std::uint32_t rule_class,
                        std::uint32_t destination,
                        std::uint8_t dscp) const noexcept {
        return (std::size_t{rule_class} * destinations.sets.size() + destination) * dscps.size() +
               dscp_class[dscp % dscp_class.size()];
    }
    /// What the packet does next.
    Step step(Packet& packet,
              std::uint32_t rule_class,
              std::uint32_t destination,
              std::uint8_t dscp) const noexcept {
        if (!walks.empty()) {
            const Step& at = steps[packet.next];
            packet.next = at.next;
            return at;
        }
        const std::size_t rule = advance(packet,
                                         rule_class,
                                         destinations.sets[destination],
                                         dscps[dscp_class[dscp % dscp_class.size()]]);
        return rule == kNoRule ? Step{} : step_of(acts[rule]);
    }
    void number_walks();

    void decide(const Addr* addresses,
                const std::uint8_t* dscp_of,
                const std::uint32_t* classes,
                std::uint32_t* values,
                std::size_t count) const noexcept;
};

template <class Addr>
void Policy<Addr>::Compiled::number_walks() {
    const std::size_t count = sets.size() * destinations.sets.size() * dscps.size();
    if (count == 0 || count > kMaxNumbered) {
        return;
    }
    std::map<Step, std::uint16_t> numbers_of_steps;
    std::vector<std::uint16_t> found;
    std::vector<Step> walk;
    std::size_t length = 0;  // of all walks together
    for (std::size_t n = 0; n < count; ++n) {
        const auto rule_class =
            static_cast<std::uint32_t>(n / dscps.size() / destinations.sets.size());
        const RuleSet& of_destination =
            destinations.sets[n / dscps.size() % destinations.sets.size()];
        const RuleSet& of_dscp = dscps[n % dscps.size()];
        Packet packet{0, mark};
        walk.clear();
        do {
            const std::size_t rule = advance(packet, rule_class, of_destination, of_dscp);
            walk.push_back(rule == kNoRule ? Step{} : step_of(acts[rule]));
        } while (!walk.back().ends);
        length += walk.size();
        std::uint16_t next = 0;
        for (; !walk.empty(); walk.pop_back()) {
            walk.back().next = next;
            const auto [it, is_new] =
                numbers_of_steps.try_emplace(walk.back(), static_cast<std::uint16_t>(steps.size()));
            if (is_new) {
                steps.push_back(walk.back());
            }
            next = it->second;
        }
        found.push_back(next);
        if (length > kMaxLength) {
            steps.clear();
            return;
        }
    }
    walks = std::move(found);
}

/// In rounds: each packet goes on to its next table, the packets of one table are looked up
/// together, and those that it has no route for are in the next round.
template <class Addr>
void Policy<Addr>::Compiled::decide(const Addr* addresses,
                                    const std::uint8_t* dscp_of,
                                    const std::uint32_t* classes,
                                    std::uint32_t* values,
                                    std::size_t count) const noexcept {
    static constexpr std::uint16_t kEnd = kBurst;
    std::array<std::uint32_t, kBurst> destination_class;
    std::array<Packet, kBurst> packets;
    std::array<std::uint16_t, kBurst> open;      // packets without an answer
    std::array<std::uint16_t, kMaxRules> first;  // by table: its packets of this round
    std::array<std::uint16_t, kBurst> next;      // by packet: another one
    std::array<std::uint16_t, kBurst> gathered;  // packets of one table
    std::array<Addr, kBurst> gathered_addresses;
    std::array<std::uint32_t, kBurst> found;

    destinations.classify(addresses, destination_class.data(), count);
    for (std::size_t i = 0; i < count; ++i) {
        open[i] = static_cast<std::uint16_t>(i);
        packets[i].mark = mark;
        packets[i].next = walks.empty()
                              ? std::uint16_t{0}
                              : walks[walk_of(classes[i], destination_class[i], dscp_of[i])];
    }
    std::fill_n(first.begin(), tables.size(), kEnd);
    std::size_t left = count;
    while (left != 0) {
        std::size_t used = 0;  // tables of this round, the same one counted once
        std::array<std::uint16_t, kMaxRules> round;
        std::size_t waiting = 0;
        for (std::size_t k = 0; k < left; ++k) {
            const std::uint16_t i = open[k];
            const Step at = step(packets[i], classes[i], destination_class[i], dscp_of[i]);
            if (at.ends) {
                values[i] = at.value;
            } else {
                if (first[at.value] == kEnd) {
                    round[used++] = static_cast<std::uint16_t>(at.value);
                }
                next[i] = std::exchange(first[at.value], i);
                ++waiting;
            }
        }
        const bool all_in_one = used == 1 && waiting == count;
        left = 0;
        for (std::size_t t = 0; t < used; ++t) {
            const LpmTable<Addr>& table = *tables[round[t]];
            std::uint16_t i = std::exchange(first[round[t]], kEnd);
            if (all_in_one) {
                table.lookup({addresses, count}, values);
                for (std::size_t k = 0; k < count; ++k) {
                    open[left] = static_cast<std::uint16_t>(k);
                    left += values[k] == kNoRoute ? 1U : 0U;
                }
                break;
            }
            std::size_t n = 0;
            for (; i != kEnd; i = next[i]) {
                gathered[n] = i;
                gathered_addresses[n] = addresses[i];
                ++n;
            }
            table.lookup({gathered_addresses.data(), n}, found.data());
            for (std::size_t k = 0; k < n; ++k) {
                values[gathered[k]] = found[k];
                open[left] = gathered[k];
                left += found[k] == kNoRoute ? 1U : 0U;
            }
        }
    }
}

template <class Addr>
Policy<Addr>::~Policy() = default;

template <class Addr>
Result<std::unique_ptr<const Policy<Addr>>> Policy<Addr>::compile(
    std::span<const PolicyRule<Addr>> rules, std::uint32_t mark, Reclaimer& reclaimer) {
    if (rules.size() > kMaxRules) {
        return fail(ErrorCode::kLimit, "{} rules, more than {}", rules.size(), kMaxRules);
    }
    auto compiled = std::make_unique<Compiled>();
    compiled->mark = mark;

    // Up to the first rule that sets another mark it is known who matches the ingress's.
    std::vector<const PolicyRule<Addr>*> kept;
    bool mark_known = true;
    for (const PolicyRule<Addr>& rule : rules) {
        if (mark_known && rule.mark && *rule.mark != mark) {
            continue;
        }
        Act act{.reads_mark = !mark_known && rule.mark.has_value(), .mark = rule.mark.value_or(0)};
        if (rule.set_mark) {
            act.kind = Act::Kind::kSetMark;
            act.value = *rule.set_mark;
            mark_known = false;
        } else if (rule.table != nullptr) {
            act.kind = Act::Kind::kTable;
            const auto it = std::ranges::find(compiled->tables, rule.table);
            act.value = static_cast<std::uint32_t>(it - compiled->tables.begin());
            if (it == compiled->tables.end()) {
                compiled->tables.push_back(rule.table);
            }
        } else if (rule.answer != kNoRoute) {
            act.value = rule.answer;
        } else {
            return fail(ErrorCode::kInvalid, "a rule does nothing");
        }
        kept.push_back(&rule);
        compiled->acts.push_back(act);
    }
    compiled->words = (kept.size() + 63) / 64;

    using Rule = PolicyRule<Addr>;
    if (auto done = compiled->sources.build(kept, &Rule::from, reclaimer); !done) {
        return std::unexpected(done.error());
    }
    if (auto done = compiled->destinations.build(kept, &Rule::to, reclaimer); !done) {
        return std::unexpected(done.error());
    }
    // 513 intervals of ports twice and 256 protocols at most: their product is below 2^32.
    const auto times = [&](const std::vector<RuleSet>& sets) {
        compiled->of_transports *= static_cast<std::uint32_t>(sets.size());
    };
    compiled->destination_ports.build(kept, &Rule::destination_ports, compiled->of_transports);
    times(compiled->destination_ports.sets);
    compiled->source_ports.build(kept, &Rule::source_ports, compiled->of_transports);
    times(compiled->source_ports.sets);
    compiled->protocols.build(kept, compiled->of_transports);
    times(compiled->protocols.sets);
    Classes dscps;
    for (std::size_t dscp = 0; dscp < compiled->dscp_class.size(); ++dscp) {
        compiled->dscp_class[dscp] = dscps.number_of(
            select(kept, [&](const Rule& rule) { return !rule.dscp || *rule.dscp == dscp; }));
    }
    compiled->dscps = std::move(dscps.sets);

    const std::uint64_t combinations = compiled->combinations();
    if (combinations > std::numeric_limits<std::uint32_t>::max()) {
        return fail(ErrorCode::kLimit,
                    "the rules tell apart too many combinations of source, protocol and ports");
    }
    if (combinations <= kMaxNumbered) {
        Classes found;
        for (std::uint64_t n = 0; n < combinations; ++n) {
            compiled->numbers.push_back(found.number_of(compiled->rules_of_combination(n)));
        }
        compiled->sets = std::move(found.sets);
        compiled->number_walks();
    }

    std::unique_ptr<Policy> policy(new Policy);
    policy->reads_source_ = compiled->sources.longest != nullptr;
    policy->reads_transport_ = compiled->protocols.sets.size() > 1 ||
                               !compiled->source_ports.starts.empty() ||
                               !compiled->destination_ports.starts.empty();
    policy->cacheable_ = !compiled->sets.empty() && compiled->sets.size() <= 1U << kClassBits;
    policy->compiled_ = std::move(compiled);
    constexpr Addr kNoSource{};
    constexpr Transport kNoTransport{};
    policy->classify(&kNoSource, &kNoTransport, &policy->unknown_class_, 1);
    return policy;
}

template <class Addr>
void Policy<Addr>::classify(const Addr* sources,
                            const Transport* transports,
                            std::uint32_t* classes,
                            std::size_t count) const noexcept {
    const Compiled& c = *compiled_;
    c.sources.classify(sources, classes, count);
    if (!reads_transport_) {
        return;  // the other fields have one class each, and no two sources' classes the same rules
    }
    const std::uint16_t* const numbers = c.numbers.empty() ? nullptr : c.numbers.data();
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t n = c.combination(classes[i], transports[i]);
        classes[i] = numbers == nullptr ? n : numbers[n];
    }
}

template <class Addr>
void Policy<Addr>::decide(const Addr* destinations,
                          const std::uint8_t* dscps,
                          const std::uint32_t* classes,
                          std::uint32_t* values,
                          std::size_t count) const noexcept {
    for (std::size_t at = 0; at < count; at += kBurst) {
        const std::size_t n = std::min(kBurst, count - at);
        compiled_->decide(destinations + at, dscps + at, classes + at, values + at, n);
    }
}

template class Policy<net::Ipv4Addr>;
template class Policy<net::Ipv6Addr>;

}  // namespace sluice::fib
