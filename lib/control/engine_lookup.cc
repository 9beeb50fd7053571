// SPDX-License-Identifier: BSD-3-Clause
// What a packet would meet: the rules, tables and VRFs as workers go through them, by the control
// thread's own data.
#include <optional>

#include "control/engine.h"
#include "control/flow_member.h"
#include "control/policies.h"
#include "net/wire.h"

namespace sluice::control {

namespace {

bool in_range(const std::optional<config::PortRange>& range, std::uint16_t port) {
    return !range || (range->first <= port && port <= range->last);
}

bool matches_ports(const config::Rule& rule, const RouteQuery& query) {
    if (!rule.source_ports && !rule.destination_ports) {
        return true;
    }
    return net::has_ports(net::IpProtocol{query.protocol}) &&
           in_range(rule.source_ports, query.source_port) &&
           in_range(rule.destination_ports, query.destination_port);
}

bool rule_matches(const config::Rule& rule, const RouteQuery& query, std::uint32_t mark) {
    const net::IpAddr unspecified =
        query.destination.is_v4() ? net::IpAddr{net::Ipv4Addr{}} : net::IpAddr{net::Ipv6Addr{}};
    return (!rule.from || rule.from->contains(query.from.value_or(unspecified))) &&
           (!rule.to || rule.to->contains(query.destination)) &&
           (!rule.dscp || *rule.dscp == query.dscp) && (!rule.mark || *rule.mark == mark) &&
           (!rule.protocol || *rule.protocol == query.protocol) && matches_ports(rule, query);
}

std::string_view answer_name(config::RuleAction action) {
    return type_name(answer_type(action));
}

}  // namespace

Result<RouteLookup> Engine::lookup_route(const Netns& netns, const RouteQuery& query) const {
    const Netdev* in = netns.lo;
    if (!query.iif.empty()) {
        const auto found = netns.get(query.iif);
        if (!found) {
            return std::unexpected(found.error());
        }
        in = *found;
    }
    const fib::NetdevView* view = shared_.netdev(in->id);
    const auto own = [&](const auto& address) { return view->local->takes(address); };
    RouteLookup answer;
    // What is for the router itself is found before any rule, in the ingress's own table.
    if (view != nullptr && view->local != nullptr &&
        (query.destination.is_v4() ? own(query.destination.v4()) : own(query.destination.v6()))) {
        look_up(answer, {*in, query}, in->routing_table(), 0, fib::kMaxTableSteps);
        return answer;
    }
    std::uint32_t mark = in->settings.mark;
    netns.policies->walk(*in, query.destination.family(), [&](const Policies::Step& step) {
        const config::Rule* rule = step.rule;
        if (rule != nullptr && !rule_matches(*rule, query, mark)) {
            return true;
        }
        if (rule != nullptr && rule->action == config::RuleAction::kSetMark) {
            mark = rule->set_mark;
            return true;
        }
        answer = RouteLookup{};
        if (rule != nullptr && step.table == nullptr) {
            answer.type = answer_name(rule->action);
            return false;
        }
        const unsigned shortest =
            rule != nullptr && rule->suppress_prefixlength ? *rule->suppress_prefixlength + 1U : 0;
        return !look_up(answer, {*in, query}, *step.table, shortest, fib::kMaxTableSteps);
    });
    return answer;
}

bool Engine::look_up(RouteLookup& found,
                     const Flow& flow,
                     const Table& table,
                     unsigned shortest,
                     unsigned steps) const {
    const net::IpAddr& destination = flow.query.destination;
    found.type = type_name(fib::DstType::kNone);
    found.table = table.id;
    const auto in = [&](const auto* route) {
        if (route == nullptr || is_dead(*route->hop)) {
            return false;
        }
        const RouteTarget& target = *route->hop;
        if ((target.value & fib::kTableBit) != 0 && (target.value & fib::kGroupBit) == 0) {
            const Netdev& vrf = *netdevs_.find(as_next_hop(target)->key.netdev);
            if (steps == 0) {
                found.type = type_name(fib::DstType::kRouteLoop);
            } else {
                look_up(found, flow, *vrf.table, 0, steps - 1);
            }
            return true;  // even where that table has none: no further rule is asked
        }
        const RouteInfo info = describe(table, *route, target);
        found.type = info.type;
        found.prefix = info.prefix;
        found.via = info.via;
        found.dev = info.dev;
        found.nexthop = info.nexthop;
        complete(found, target, flow);
        return true;
    };
    return destination.is_v4() ? in(table.v4.match(destination.v4(), shortest))
                               : in(table.v6.match(destination.v6(), shortest));
}

const NextHop* Engine::member_of(RouteLookup& found,
                                 const ObjectTarget& target,
                                 const Flow& flow) const {
    const fib::NetdevView* view = shared_.netdev(flow.in.id);
    const fib::Group* group = shared_.groups[target.value];
    if (view == nullptr || group == nullptr) {
        return nullptr;
    }
    const std::uint32_t hash = flow_hash(
        shared_.flow_seed, flow.query.destination.is_v4() ? view->hash4 : view->hash6, flow.query);
    const fib::DstIndex dst =
        group->buckets[hash & group->mask].dst.load(std::memory_order_relaxed);
    for (const NextHopObject::Member& member : target.object->members) {
        const NextHop* hop = member.object->hops[target.family == net::Family::kIpv4 ? 0 : 1];
        if (hop != nullptr && hop->value == dst) {
            if (!flow.in.netns->multipath->owns(target)) {
                found.member = member.object->id;
            }
            return hop;
        }
    }
    return nullptr;
}

void Engine::complete(RouteLookup& found, const RouteTarget& target, const Flow& flow) const {
    const net::IpAddr& destination = flow.query.destination;
    const NextHop* hop = as_next_hop(target);
    if (const ObjectTarget* over = as_object(target); over != nullptr) {
        hop = over->object->is_group ? member_of(found, *over, flow)
                                     : over->object->hops[destination.is_v4() ? 0 : 1];
    }
    if (hop == nullptr) {
        return;  // a group without a member that can be used
    }
    // A route over an object names that; the question is what becomes of the packet.
    if (hop->key.type == fib::DstType::kBlackhole) {
        found.type = type_name(hop->key.type);
        return;
    }
    found.mtu = shared_.dsts[hop->value].mtu;
    const fib::NetdevView* view = shared_.netdev(hop->key.netdev);
    if (view == nullptr) {
        return;
    }
    if (as_object(target) != nullptr) {
        found.via = hop->key.gateway;
        found.dev = netdevs_.find(hop->key.netdev)->name;
    }
    const net::IpAddr peer = found.via ? *found.via : destination;
    if (destination.is_v4()) {
        const auto* source = peer.is_v4()
                                 ? view->source_for(peer.v4())
                                 : (view->addresses4.empty() ? view->local->any4()
                                                             : &view->addresses4.front().address);
        if (source != nullptr) {
            found.source = *source;
        }
    } else if (const auto* source = view->source_for(peer.v6()); source != nullptr) {
        found.source = *source;
    }
}

}  // namespace sluice::control
