// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/reclaimer.h"
#include "base/result.h"
#include "config/model.h"
#include "control/controller.h"
#include "control/netdevs.h"
#include "control/netns.h"
#include "control/next_hops.h"
#include "fib/policy.h"
#include "net/address.h"

namespace sluice::control {

/// Of an action that is an answer by itself.
fib::DstType answer_type(config::RuleAction action) noexcept;

/// The policy rules of one netns, and what they are compiled to for each netdev: one policy for all
/// whose packets meet the same rules, with the same mark, before the same table. Where no rule can
/// match there is none, and packets go straight to the table. Control thread.
class Policies {
public:
    /// Per family: fib::Policy takes one more, the table that everything ends in.
    static constexpr std::size_t kMaxRules = fib::Ipv4Policy::kMaxRules - 1;
    /// Rules before this priority are asked in a VRF, too; behind them comes the VRF's table alone,
    /// so that nothing falls through to the main one.
    static constexpr std::uint32_t kVrfPriority = 1000;

    Policies(Netns& netns, NetnsSet& tables, NextHops& hops, Reclaimer& reclaimer)
        : netns_(netns), tables_(tables), hops_(hops), reclaimer_(reclaimer) {}
    Policies(const Policies&) = delete;
    Policies& operator=(const Policies&) = delete;
    Policies(Policies&&) = delete;
    Policies& operator=(Policies&&) = delete;
    ~Policies();

    /// The netns ends, its tables are still there: gives everything back. No worker knows a view
    /// with one of its policies any more.
    void clear();

    // After add() and remove() the caller publishes the views of the netns's netdevs, makes what is
    // cached stale, and then calls collect().

    /// kExists, kLimit, kInvalid. `blackhole`: the netdev.
    Result<void> add(const config::Rule& rule, RouteOwner owner, const Netdev& blackhole);
    /// The rule that is equal; or, where that says nothing but a priority and family, the first of
    /// that priority. kNotFound.
    Result<void> remove(const config::Rule& rule);
    /// Frees what no netdev meets any more, after the grace period that begins now. Also for after
    /// a netdev's mark or VRF is another than before.
    void collect();

    /// For the view of a netdev of the netns. Null: no rules.
    const fib::Ipv4Policy* policy4(const Netdev& ingress);
    const fib::Ipv6Policy* policy6(const Netdev& ingress);

    /// The rules that packets of an ingress meet, in order. `fn` returns false to stop.
    struct Step {
        const config::Rule* rule = nullptr;  // null: the table that comes last
        const Table* table = nullptr;        // where the rule names one
    };
    void walk(const Netdev& ingress,
              net::Family family,
              const std::function<bool(const Step&)>& fn) const;

    std::vector<RuleInfo> infos() const;
    bool empty() const noexcept { return rules_.empty(); }
    /// A netdev has rules whose results no cache can hold.
    bool bypasses_cache() const;

private:
    struct Entry {
        config::Rule rule;
        RouteOwner owner = RouteOwner::kCli;
        std::uint64_t serial = 0;  // never used again
        Table* table = nullptr;
        const fib::Ipv4Lpm* lpm4 = nullptr;
        const fib::Ipv6Lpm* lpm6 = nullptr;
        NextHop* answer = nullptr;
    };
    /// Which rules, and what else goes into a policy.
    struct Key {
        std::vector<std::uint64_t> rules;
        std::uint32_t mark = 0;
        const void* table = nullptr;
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    template <class Addr>
    using Compiled = std::map<Key, std::unique_ptr<const fib::Policy<Addr>>>;
    static Result<void> check(const config::Rule& rule);
    Result<void> bind(Entry& entry, const Netdev& blackhole);
    void unbind(Entry& entry);
    static bool applies(const Entry& entry, const Netdev& ingress);
    template <class Addr>
    static fib::PolicyRule<Addr> rule_of(const Entry& entry);
    template <class Addr>
    Result<void> check_size() const;
    template <class Addr>
    Result<const fib::Policy<Addr>*> policy(const Netdev& ingress, Compiled<Addr>& compiled);
    template <class Addr>
    void collect(Compiled<Addr>& compiled);

    Netns& netns_;
    NetnsSet& tables_;
    NextHops& hops_;
    Reclaimer& reclaimer_;
    std::vector<std::unique_ptr<Entry>> rules_;  // in the order that they are asked in
    std::uint64_t next_serial_ = 1;
    Compiled<net::Ipv4Addr> compiled4_;
    Compiled<net::Ipv6Addr> compiled6_;
    std::vector<std::move_only_function<void()>> garbage_;  // for collect()
};

}  // namespace sluice::control
