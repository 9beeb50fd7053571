// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>

#include "fib/dst.h"
#include "fib/group.h"
#include "fib/netdev_view.h"
#include "fib/policy.h"
#include "pipeline/decide_steps.h"
#include "pipeline/stages.h"

/// The decision about one packet, without the caches: what turned out to be invalid, and what we
/// send ourselves.
namespace sluice::pipeline {

namespace {

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
    fib::Transport transport;
    if (F::policy(in) != nullptr) {
        F::transports({&p, 1}, nullptr, &transport);
    }
    std::uint32_t value = table_or_rules<F>(in, destination, F::dscp(p), F::source(p), transport);
    value = follow_tables<F>(c, value, destination);
    if ((value & fib::kGroupBit) != 0) {
        std::uint32_t hash = 0;
        F::hashes(c, *p.in, {&p, 1}, nullptr, &hash);
        return member_of<F>(c, *p.in, value, hash, c.now_s(), destination);
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

DstIndex ip4_decide_one(Context& c, const Packet& p) noexcept {
    return decide_one<DecideIpv4>(c, p);
}
DstIndex ip6_decide_one(Context& c, const Packet& p) noexcept {
    return decide_one<DecideIpv6>(c, p);
}
DstIndex ip4_decide_own(Context& c,
                        const NetdevView& in,
                        const net::Ipv4Addr& destination) noexcept {
    return decide_own<DecideIpv4>(c, in, destination);
}
DstIndex ip6_decide_own(Context& c,
                        const NetdevView& in,
                        const net::Ipv6Addr& destination) noexcept {
    return decide_own<DecideIpv6>(c, in, destination);
}

}  // namespace sluice::pipeline
