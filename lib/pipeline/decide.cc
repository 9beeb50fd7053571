// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "fib/dst.h"
#include "fib/dst_cache.h"
#include "fib/group.h"
#include "fib/netdev_view.h"
#include "fib/policy.h"
#include "pipeline/decide_steps.h"
#include "pipeline/stages.h"
#include "stats/counters.h"

/// Where a packet goes. What is decided about a destination depends on nothing but the cache's key
/// (destination, DSCP, ingress class, rule class); what depends on more (which member of a group,
/// whether the source may come in here) is done for every packet, hit or miss.
namespace sluice::pipeline {

namespace {

constexpr std::uint32_t kSourceFine = 1;  // what the cache of sources holds

/// The dst of the packet's host itself in the place of its prefix's, so that a hit needs no second
/// look-up. A route with an MTU of its own, or one that counts, keeps its dst.
template <class F>
std::uint32_t host_of(const Context& c,
                      std::uint32_t value,
                      const typename F::Addr& address) noexcept {
    if ((value & fib::kGroupBit) != 0) {
        return value;
    }
    const fib::Dst& dst = c.shared.dsts[value];
    if (dst.type != DstType::kConnected || dst.counter != 0) {
        return value;
    }
    const DstIndex host = c.shared.neighbors.find(fib::NeighborKeyWords::of(dst.out, address));
    return host != fib::kNoRoute && c.shared.dsts[host].mtu <= dst.mtu ? host : value;
}

/// May a packet whose source's route is `value` come in by `in`? (RFC 3704 2.2, 2.3) A route over
/// what is gone vouches for nobody: it is taken out some time later, without another generation.
bool leads_back(const Context& c, const NetdevView& in, std::uint32_t value) noexcept {
    const auto fits = [&](DstIndex index) {
        const fib::Dst& dst = c.shared.dsts[index];
        return (dst.type == DstType::kUnicast || dst.type == DstType::kConnected) &&
               (in.source_validation == fib::SourceValidation::kLoose || dst.out == in.id) &&
               (dst.state.load(std::memory_order_acquire) & fib::Dst::kGone) == 0;
    };
    if ((value & fib::kGroupBit) == 0) {
        return fits(value);
    }
    const fib::Group* group = c.shared.groups[value];
    for (std::size_t i = 0; group != nullptr && i <= group->mask; ++i) {
        if (fits(group->buckets[i].dst.load(std::memory_order_acquire))) {
            return true;
        }
    }
    return false;
}

/// The buckets of a resilient group change hands without a new generation (it is for flows that
/// stay), and with them who may lead back.
bool stays_valid(const Context& c, std::uint32_t value) noexcept {
    const fib::Group* group = (value & fib::kGroupBit) != 0 ? c.shared.groups[value] : nullptr;
    return group == nullptr || !group->resilient;
}

/// The packets [first, first + count) of a batch, which came in by one netdev.
template <class F>
class Run {
public:
    using Addr = typename F::Addr;

    Run(Context& c, Batch<Addr>& batch, std::size_t first, std::size_t count) noexcept
        : c_(c),
          b_(batch),
          in_(batch.uniform ? *batch.model.in : *batch.packets[first].in),
          policy_(F::policy(in_)),
          first_(first),
          count_(count) {}

    void decide(bool use_cache) noexcept {
        const bool asks = use_cache && (policy_ == nullptr || policy_->cacheable());
        const bool validates = in_.source_validation != fib::SourceValidation::kOff;
        if (asks || policy_ != nullptr || validates) {
            read_fields(asks, validates);
        }
        if (asks) {
            ask_cache(validates ? b_.places.data() : nullptr);
        } else {
            look_up(destinations(),
                    b_.dscps.data() + first_,
                    b_.classes.data() + first_,
                    dsts(),
                    count_);
            stats::bump(counters<F>(c_).bypassed, count_);
            finish_lookups();
        }
        pick_members();
        if (validates) {
            validate_sources(asks);
        }
    }

private:
    const Addr* destinations() const noexcept { return b_.destinations.data() + first_; }
    std::uint32_t* dsts() const noexcept { return b_.dsts.data() + first_; }
    /// Of a bare batch only what they point to.
    std::span<const Packet> packets() const noexcept { return {&b_.packets[first_], count_}; }

    /// Of packets on the straight way; else null.
    const std::uint32_t* lengths() const noexcept {
        return b_.uniform ? b_.lengths.data() : nullptr;
    }

    void read_fields(bool asks, bool validates) noexcept {
        const std::span<const Packet> all = packets();
        std::uint8_t* const dscps = b_.dscps.data() + first_;
        if (validates || (policy_ != nullptr && policy_->reads_source())) {
            Addr* const sources = b_.sources.data();
            for (std::size_t i = 0; i < all.size(); ++i) {
                dscps[i] = F::dscp(all[i]);
                sources[i] = F::source(all[i]);
            }
        } else {
            for (std::size_t i = 0; i < all.size(); ++i) {
                dscps[i] = F::dscp(all[i]);
            }
        }
        if (policy_ != nullptr) {
            if (policy_->reads_transport()) {
                F::transports(all, lengths(), b_.transports.data());
            }
            policy_->classify(
                b_.sources.data(), b_.transports.data(), b_.classes.data() + first_, count_);
        }
        if (!asks) {
            return;
        }
        if (policy_ == nullptr) {
            for (std::size_t i = first_; i < first_ + count_; ++i) {
                b_.tails[i] = fib::CacheTail::make(b_.dscps[i], in_.ingress_class, 0);
            }
        } else {
            for (std::size_t i = first_; i < first_ + count_; ++i) {
                b_.tails[i] = fib::CacheTail::make(b_.dscps[i], in_.ingress_class, b_.classes[i]);
            }
        }
    }

    void look_up(const Addr* addresses,
                 const std::uint8_t* dscps,
                 const std::uint32_t* classes,
                 std::uint32_t* values,
                 std::size_t count) const noexcept {
        if (policy_ == nullptr) {
            F::table(in_).lookup({addresses, count}, values);
        } else {
            policy_->decide(addresses, dscps, classes, values, count);
            for (std::size_t i = 0; i < count; ++i) {
                if (is_own(in_, addresses[i])) [[unlikely]] {
                    values[i] = F::table(in_).lookup_one(addresses[i]);
                }
            }
        }
    }

    /// What few packets need, behind one question for all.
    void finish_lookups() const noexcept {
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            bits |= dsts()[i];
        }
        if ((bits & fib::kTableBit) != 0) [[unlikely]] {
            for (std::size_t i = 0; i < count_; ++i) {
                dsts()[i] = follow_tables<F>(c_, dsts()[i], destinations()[i]);
            }
        }
        if (any_exceptions(c_)) [[unlikely]] {
            for (std::size_t i = 0; i < count_; ++i) {
                if ((dsts()[i] & fib::kGroupBit) == 0) {
                    dsts()[i] = with_exception<F>(c_, in_, dsts()[i], destinations()[i]);
                }
            }
        }
    }

    void ask_cache(std::uint32_t* places) noexcept {
        const auto probed = F::destinations(c_).probe(F::generations(in_),
                                                      {destinations(), count_},
                                                      b_.tails.data() + first_,
                                                      dsts(),
                                                      b_.stamps.data() + first_,
                                                      b_.positions.data(),
                                                      places);
        stats::CacheCounters& counted = counters<F>(c_);
        stats::bump(counted.hits, probed.hits);
        if (probed.misses == 0) [[likely]] {
            return;
        }
        stats::bump(counted.misses, probed.misses);
        stats::bump(counted.stale, probed.stale);
        b_.misses += probed.misses;
        c_.caches.inserts[F::kFamily].grant(probed.stale);
        look_up_misses(probed.misses);
    }

    void look_up_misses(std::size_t misses) noexcept {
        std::array<std::uint8_t, kBatchRoom> dscps;     // filled as far as used
        std::array<std::uint32_t, kBatchRoom> classes;  // the same
        for (std::size_t k = 0; k < misses; ++k) {
            const std::size_t i = first_ + b_.positions[k];
            b_.missed[k] = b_.destinations[i];
            dscps[k] = b_.dscps[i];
            classes[k] = policy_ == nullptr ? 0 : b_.classes[i];
        }
        look_up(b_.missed.data(), dscps.data(), classes.data(), b_.values.data(), misses);
        const bool exceptions = any_exceptions(c_);
        for (std::size_t k = 0; k < misses; ++k) {
            const std::size_t i = first_ + b_.positions[k];
            std::uint32_t value = follow_tables<F>(c_, b_.values[k], b_.missed[k]);
            if (exceptions && (value & fib::kGroupBit) == 0) [[unlikely]] {
                value = with_exception<F>(c_, in_, value, b_.missed[k]);
            }
            value = host_of<F>(c_, value, b_.missed[k]);
            b_.dsts[i] = value;
            if (value != fib::kNoRoute) {
                b_.pending[b_.pending_count++] = {
                    .packet = static_cast<std::uint16_t>(i), .stamp = b_.stamps[i], .value = value};
            }
        }
    }

    void pick_members() const noexcept {
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            bits |= dsts()[i];
        }
        if ((bits & fib::kGroupBit) == 0) [[likely]] {
            return;
        }
        F::hashes(c_, in_, packets(), lengths(), b_.hashes.data());
        const std::uint32_t now_s = c_.now_s();
        std::uint32_t* const values = dsts();
        const Addr* const to = destinations();
        for (std::size_t i = 0, count = count_; i < count; ++i) {
            if ((values[i] & fib::kGroupBit) != 0) {
                values[i] = member_of<F>(c_, in_, values[i], b_.hashes[i], now_s, to[i]);
            }
        }
    }

    /// A source is looked up as the destination of an answer: under the same DSCP, by the rules
    /// that ask for no source and no transport header, so that whether it is valid here depends on
    /// nothing else of the packet.
    void validate_sources(bool asks) noexcept {
        const std::uint32_t rule_class = policy_ == nullptr ? 0 : policy_->unknown_class();
        std::size_t unknown = 0;
        if (asks) {
            unknown = sources_without_memo(rule_class);
            if (unknown == 0) [[likely]] {
                return;
            }
            unknown = sources_without_entry(unknown);
        } else {
            for (; unknown < count_; ++unknown) {
                b_.positions[unknown] = static_cast<std::uint16_t>(unknown);
            }
        }
        if (unknown != 0) {
            judge_sources(unknown, rule_class, asks);
        }
    }

    /// How many sources were not the last valid ones behind their destination's entry; `positions`
    /// become theirs, and `source_tails` and `source_stamps` are filled in.
    std::size_t sources_without_memo(std::uint32_t rule_class) noexcept {
        const auto& generations = F::generations(in_);
        const auto& memo = F::memo(c_);
        const std::uint32_t tail = fib::CacheTail::make(0, in_.id.value, rule_class);
        Batch<Addr>& b = b_;
        const std::uint8_t* const dscps = b.dscps.data() + first_;
        std::size_t unknown = 0;
        for (std::size_t i = 0, count = count_; i < count; ++i) {
            const std::uint32_t its_tail = tail | dscps[i];
            const fib::Stamp stamp = generations.stamp(b.sources[i]);
            b.source_tails[i] = its_tail;
            b.source_stamps[i] = stamp;
            b.positions[unknown] = static_cast<std::uint16_t>(i);
            unknown += memo.has(b.places[i], b.sources[i], its_tail, stamp) ? 0 : 1;
        }
        stats::bump(counters<F>(c_).source_hits, count_ - unknown);
        return unknown;
    }

    /// How many of those at `positions` the cache of sources does not have; they close up.
    std::size_t sources_without_entry(std::size_t count) noexcept {
        std::array<std::uint32_t, kBatchRoom> tails;   // filled as far as used
        std::array<fib::Stamp, kBatchRoom> stamps;     // the same
        std::array<std::uint16_t, kBatchRoom> misses;  // the same
        for (std::size_t k = 0; k < count; ++k) {
            const std::size_t i = b_.positions[k];
            b_.missed[k] = b_.sources[i];
            tails[k] = b_.source_tails[i];
        }
        const auto probed = F::sources(c_).probe(F::generations(in_),
                                                 {b_.missed.data(), count},
                                                 tails.data(),
                                                 b_.values.data(),
                                                 stamps.data(),
                                                 misses.data());
        stats::bump(counters<F>(c_).source_hits, probed.hits);
        stats::bump(counters<F>(c_).source_misses, probed.misses);
        if (probed.misses != 0) {
            c_.caches.source_inserts[F::kFamily].grant(probed.stale);
        }
        std::size_t left = 0;
        for (std::size_t k = 0; k < count; ++k) {
            const std::uint16_t i = b_.positions[k];
            if (left < probed.misses && misses[left] == k) {
                b_.positions[left++] = i;
            } else {
                F::memo(c_).put(b_.places[i], b_.sources[i], tails[k], stamps[k]);
            }
        }
        return left;
    }

    void judge_sources(std::size_t unknown, std::uint32_t rule_class, bool asks) noexcept {
        std::array<std::uint8_t, kBatchRoom> dscps;     // filled as far as used
        std::array<std::uint32_t, kBatchRoom> classes;  // the same
        for (std::size_t k = 0; k < unknown; ++k) {
            const std::size_t i = b_.positions[k];
            b_.missed[k] = b_.sources[i];
            dscps[k] = b_.dscps[first_ + i];
            classes[k] = rule_class;
        }
        look_up(b_.missed.data(), dscps.data(), classes.data(), b_.values.data(), unknown);
        for (std::size_t k = 0; k < unknown; ++k) {
            const std::size_t i = b_.positions[k];
            const std::uint32_t value = follow_tables<F>(c_, b_.values[k], b_.missed[k]);
            if (!leads_back(c_, in_, value) && !F::beyond_routes(b_.missed[k])) {
                dsts()[i] = fib::kSourceInvalidDst;
            } else if (asks && stays_valid(c_, value) &&
                       c_.caches.source_inserts[F::kFamily].take()) {
                F::sources(c_).insert(
                    b_.missed[k], b_.source_tails[i], kSourceFine, b_.source_stamps[i]);
            }
        }
    }

    Context& c_;
    Batch<Addr>& b_;
    const NetdevView& in_;
    const fib::Policy<Addr>* policy_;
    std::size_t first_;
    std::size_t count_;
};

template <class F>
void decide(Context& c, Batch<typename F::Addr>& batch, bool use_cache) noexcept {
    batch.pending_count = 0;
    batch.cached = use_cache;
    batch.misses = 0;
    if (batch.uniform) [[likely]] {
        Run<F>(c, batch, 0, batch.count).decide(use_cache);
        return;
    }
    std::size_t first = 0;
    while (first < batch.count) {
        const NetdevView* in = batch.packets[first].in;
        std::size_t end = first + 1;
        while (end < batch.count && batch.packets[end].in == in) {
            ++end;
        }
        Run<F>(c, batch, first, end - first).decide(use_cache);
        first = end;
    }
}

template <class F>
void remember(Context& c, Batch<typename F::Addr>& batch) noexcept {
    std::size_t inserted = 0;
    for (std::size_t k = 0; k < batch.pending_count; ++k) {
        const PendingInsert& pending = batch.pending[k];
        if (batch.dsts[pending.packet] == fib::kNoRoute) {
            continue;
        }
        if (!c.caches.inserts[F::kFamily].take()) {
            break;
        }
        F::destinations(c).insert(batch.destinations[pending.packet],
                                  batch.tails[pending.packet],
                                  pending.value,
                                  pending.stamp);
        ++inserted;
    }
    stats::bump(counters<F>(c).inserts, inserted);
}

}  // namespace

void ip4_decide(Context& c, Batch4& batch, bool use_cache) noexcept {
    decide<DecideIpv4>(c, batch, use_cache);
}
void ip6_decide(Context& c, Batch6& batch, bool use_cache) noexcept {
    decide<DecideIpv6>(c, batch, use_cache);
}
void ip4_remember(Context& c, Batch4& batch) noexcept {
    remember<DecideIpv4>(c, batch);
}
void ip6_remember(Context& c, Batch6& batch) noexcept {
    remember<DecideIpv6>(c, batch);
}

}  // namespace sluice::pipeline
