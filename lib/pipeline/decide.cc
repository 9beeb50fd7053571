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
#include "net/wire.h"
#include "pipeline/flow_hash.h"
#include "pipeline/stages.h"
#include "stats/counters.h"

/// Where a packet goes. What is decided about a destination depends on nothing but the cache's key
/// (destination, DSCP, ingress class, rule class); what depends on more (which member of a group,
/// whether the source may come in here) is done for every packet, hit or miss.
namespace sluice::pipeline {

namespace {

using fib::DstIndex;
using fib::DstType;
using fib::NetdevView;

constexpr std::uint32_t kSourceFine = 1;  // what the cache of sources holds

struct Ipv4 {
    using Addr = net::Ipv4Addr;
    static constexpr std::size_t kFamily = 0;
    static const fib::Ipv4Lpm& table(const NetdevView& in) noexcept { return *in.fib4; }
    static const fib::Ipv4Policy* policy(const NetdevView& in) noexcept { return in.policy4; }
    static const auto& generations(const NetdevView& in) noexcept { return *in.generations4; }
    static auto& destinations(Context& c) noexcept { return c.caches.destinations4; }
    static auto& sources(Context& c) noexcept { return c.caches.sources4; }
    static std::uint8_t dscp(const Packet& p) noexcept {
        return static_cast<std::uint8_t>(p.ip4().tos >> 2U);
    }
    static const Addr& source(const Packet& p) noexcept { return p.ip4().source; }
    static const Addr& destination(const Packet& p) noexcept { return p.ip4().destination; }
    static fib::Transport transport(const Packet& p) noexcept { return transport_of4(p); }
    static std::uint32_t hash(const Context& c, const Packet& p) noexcept {
        return flow_hash4(c.shared.flow_seed, p.in->hash4, p.l3_span());
    }
    /// Sources that no route leads to, by their scope.
    static bool beyond_routes(const Addr& /*source*/) noexcept { return false; }
};

struct Ipv6 {
    using Addr = net::Ipv6Addr;
    static constexpr std::size_t kFamily = 1;
    static const fib::Ipv6Lpm& table(const NetdevView& in) noexcept { return *in.fib6; }
    static const fib::Ipv6Policy* policy(const NetdevView& in) noexcept { return in.policy6; }
    static const auto& generations(const NetdevView& in) noexcept { return *in.generations6; }
    static auto& destinations(Context& c) noexcept { return c.caches.destinations6; }
    static auto& sources(Context& c) noexcept { return c.caches.sources6; }
    static std::uint8_t dscp(const Packet& p) noexcept {
        return static_cast<std::uint8_t>(p.ip6().traffic_class() >> 2U);
    }
    static const Addr& source(const Packet& p) noexcept { return p.ip6().source; }
    static const Addr& destination(const Packet& p) noexcept { return p.ip6().destination; }
    static fib::Transport transport(const Packet& p) noexcept { return transport_of6(p); }
    static std::uint32_t hash(const Context& c, const Packet& p) noexcept {
        return flow_hash6(c.shared.flow_seed, p.in->hash6, p.l3_span());
    }
    static bool beyond_routes(const Addr& source) noexcept { return source.is_link_local(); }
};

template <class F>
stats::CacheCounters& counters(Context& c) noexcept {
    return c.stats.worker().caches[F::kFamily];
}

/// Follows "look on in that VRF's table".
template <class F>
std::uint32_t follow_tables(const Context& c,
                            std::uint32_t value,
                            const typename F::Addr& address) noexcept {
    for (unsigned step = 0; (value & fib::kTableBit) != 0; ++step) {
        if (step == fib::kMaxTableSteps) {
            return fib::kRouteLoopDst;
        }
        const NetdevId vrf{static_cast<std::uint16_t>(value & ~fib::kSpecialBits)};
        const NetdevView* view = c.shared.netdev(vrf);
        value = view == nullptr ? fib::kNoRoute : F::table(*view).lookup_one(address);
    }
    return value;
}

/// What was learned for one destination takes the place of the dst that it was learned behind, but
/// of no other that rules or a group lead to (checks.md 90).
template <class F>
DstIndex with_exception(const Context& c,
                        const NetdevView& in,
                        DstIndex index,
                        const typename F::Addr& address) noexcept {
    const DstIndex learned =
        c.shared.exceptions.find(fib::NeighborKeyWords::of(in.domain, address));
    if (learned == fib::kNoRoute) {
        return index;
    }
    const fib::Dst& dst = c.shared.dsts[learned];
    const std::uint32_t state = dst.state.load(std::memory_order_acquire);
    return dst.base == index && dst.valid(state, c.now_s()) ? learned : index;
}

bool any_exceptions(const Context& c) noexcept {
    return c.shared.exception_count.load(std::memory_order_relaxed) != 0;
}

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

/// Another one for every flow, so what was learned behind it is looked for here, not in the cache.
template <class F>
DstIndex member_of(const Context& c, std::uint32_t value, const Packet& p) noexcept {
    const fib::Group* group = c.shared.groups[value];
    const DstIndex member =
        group == nullptr ? fib::kNoRoute : group->pick(F::hash(c, p), c.now_s());
    if (member == fib::kNoRoute) {
        return fib::kGroupEmptyDst;
    }
    return any_exceptions(c) ? with_exception<F>(c, *p.in, member, F::destination(p)) : member;
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

/// What is for the router itself is found before any rule: a default route in a rule's table does
/// not take it away.
template <class Addr>
bool is_own(const NetdevView& in, const Addr& destination) noexcept {
    return in.local->takes(destination);
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
            b_.complete();
            read_fields(asks, validates);
        }
        if (asks) {
            ask_cache();
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
    const Packet& packet(std::size_t i) const noexcept { return b_.packets[first_ + i]; }

    void read_fields(bool asks, bool validates) noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            b_.dscps[first_ + i] = F::dscp(packet(i));
        }
        if (validates || (policy_ != nullptr && policy_->reads_source())) {
            for (std::size_t i = 0; i < count_; ++i) {
                b_.sources[i] = F::source(packet(i));
            }
        }
        if (policy_ != nullptr) {
            if (policy_->reads_transport()) {
                for (std::size_t i = 0; i < count_; ++i) {
                    b_.transports[i] = F::transport(packet(i));
                }
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

    void ask_cache() noexcept {
        const auto probed = F::destinations(c_).probe(F::generations(in_),
                                                      {destinations(), count_},
                                                      b_.tails.data() + first_,
                                                      dsts(),
                                                      b_.stamps.data() + first_,
                                                      b_.positions.data());
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
        b_.complete();
        for (std::size_t i = 0; i < count_; ++i) {
            if ((dsts()[i] & fib::kGroupBit) != 0) {
                dsts()[i] = member_of<F>(c_, dsts()[i], packet(i));
            }
        }
    }

    /// A source is looked up as the destination of an answer: under the same DSCP, by the rules
    /// that ask for no source and no transport header, so that whether it is valid here depends on
    /// nothing else of the packet.
    void validate_sources(bool asks) noexcept {
        const std::uint32_t rule_class = policy_ == nullptr ? 0 : policy_->unknown_class();
        std::size_t unknown = count_;
        if (asks) {
            for (std::size_t i = 0; i < count_; ++i) {
                b_.source_tails[i] =
                    fib::CacheTail::make(b_.dscps[first_ + i], in_.id.value, rule_class);
            }
            const auto probed = F::sources(c_).probe(F::generations(in_),
                                                     {b_.sources.data(), count_},
                                                     b_.source_tails.data(),
                                                     b_.values.data(),
                                                     b_.source_stamps.data(),
                                                     b_.positions.data());
            stats::bump(counters<F>(c_).source_hits, probed.hits);
            stats::bump(counters<F>(c_).source_misses, probed.misses);
            unknown = probed.misses;
            if (unknown != 0) {
                c_.caches.source_inserts[F::kFamily].grant(probed.stale);
            }
        } else {
            for (std::size_t i = 0; i < count_; ++i) {
                b_.positions[i] = static_cast<std::uint16_t>(i);
            }
        }
        if (unknown != 0) {
            judge_sources(unknown, rule_class, asks);
        }
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

template <class F>
std::uint32_t table_or_rules(const NetdevView& in,
                             const typename F::Addr& destination,
                             std::uint8_t dscp,
                             const typename F::Addr& source,
                             const fib::Transport& transport) noexcept {
    const auto* policy = F::policy(in);
    if (policy == nullptr || is_own(in, destination)) {
        return F::table(in).lookup_one(destination);
    }
    std::uint32_t rule_class = 0;
    std::uint32_t value = fib::kNoRoute;
    policy->classify(&source, &transport, &rule_class, 1);
    policy->decide(&destination, &dscp, &rule_class, &value, 1);
    return value;
}

/// Who decides about what we send ourselves on behalf of `in`: its routing domain (`lo`, or the
/// VRF's master), since rules that ask for an ingress or its mark are about what comes in there.
const NetdevView& own_view(const Context& c, const NetdevView& in) noexcept {
    const NetdevView* domain = c.shared.netdev(in.domain);
    return domain == nullptr ? in : *domain;
}

template <class F>
DstIndex decide_one(Context& c, const Packet& p) noexcept {
    const NetdevView& in = p.is(Packet::kOriginated) ? own_view(c, *p.in) : *p.in;
    const typename F::Addr& destination = F::destination(p);
    std::uint32_t value =
        table_or_rules<F>(in,
                          destination,
                          F::dscp(p),
                          F::source(p),
                          F::policy(in) == nullptr ? fib::Transport{} : F::transport(p));
    value = follow_tables<F>(c, value, destination);
    if ((value & fib::kGroupBit) != 0) {
        return member_of<F>(c, value, p);
    }
    return any_exceptions(c) ? with_exception<F>(c, in, value, destination) : value;
}

template <class F>
DstIndex decide_own(Context& c,
                    const NetdevView& ingress,
                    const typename F::Addr& destination) noexcept {
    const NetdevView& in = own_view(c, ingress);
    std::uint32_t value = table_or_rules<F>(in, destination, 0, typename F::Addr{}, {});
    value = follow_tables<F>(c, value, destination);
    if ((value & fib::kGroupBit) != 0) {
        const fib::Group* group = c.shared.groups[value];
        value = group == nullptr ? fib::kGroupEmptyDst : group->pick(0, c.now_s());
    }
    return any_exceptions(c) ? with_exception<F>(c, in, value, destination) : value;
}

}  // namespace

void ip4_decide(Context& c, Batch4& batch, bool use_cache) noexcept {
    decide<Ipv4>(c, batch, use_cache);
}
void ip6_decide(Context& c, Batch6& batch, bool use_cache) noexcept {
    decide<Ipv6>(c, batch, use_cache);
}
void ip4_remember(Context& c, Batch4& batch) noexcept {
    remember<Ipv4>(c, batch);
}
void ip6_remember(Context& c, Batch6& batch) noexcept {
    remember<Ipv6>(c, batch);
}
DstIndex ip4_decide_one(Context& c, const Packet& p) noexcept {
    return decide_one<Ipv4>(c, p);
}
DstIndex ip6_decide_one(Context& c, const Packet& p) noexcept {
    return decide_one<Ipv6>(c, p);
}
DstIndex ip4_decide_own(Context& c,
                        const NetdevView& in,
                        const net::Ipv4Addr& destination) noexcept {
    return decide_own<Ipv4>(c, in, destination);
}
DstIndex ip6_decide_own(Context& c,
                        const NetdevView& in,
                        const net::Ipv6Addr& destination) noexcept {
    return decide_own<Ipv6>(c, in, destination);
}

}  // namespace sluice::pipeline
