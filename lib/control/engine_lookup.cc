// SPDX-License-Identifier: BSD-3-Clause
// What a packet would meet: the rules, tables and VRFs as workers go through them, by the control
// thread's own data.
#include <algorithm>
#include <optional>

#include "control/engine.h"
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
    // What is for the router itself is found before any rule.
    const Netdev& domain = in->domain();
    if (domain.table != nullptr) {
        const RouteLookup own = look_up(*domain.table, query.destination, 0, 0);
        if (own.type == type_name(fib::DstType::kLocal) ||
            own.type == type_name(fib::DstType::kBroadcast)) {
            return own;
        }
    }
    RouteLookup answer;
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
        if (rule != nullptr && step.table == nullptr) {
            answer = RouteLookup{};
            answer.type = answer_name(rule->action);
            return false;
        }
        const unsigned shortest =
            rule != nullptr && rule->suppress_prefixlength ? *rule->suppress_prefixlength + 1U : 0;
        answer = look_up(*step.table, query.destination, shortest, fib::kMaxTableSteps);
        return !answer.prefix.has_value();
    });
    return answer;
}

RouteLookup Engine::look_up(const Table& table,
                            const net::IpAddr& destination,
                            unsigned shortest,
                            unsigned vrfs) const {
    RouteLookup found;
    found.type = type_name(fib::DstType::kNone);
    found.table = table.id;
    const auto in = [&](const auto* route) {
        if (route == nullptr || is_dead(*route->hop)) {
            return;
        }
        const RouteTarget& target = *route->hop;
        if ((target.value & fib::kTableBit) != 0 && (target.value & fib::kGroupBit) == 0) {
            const Netdev& vrf = *netdevs_.find(as_next_hop(target)->key.netdev);
            if (vrfs > 0) {
                found = look_up(*vrf.table, destination, 0, vrfs - 1);
            }
            return;
        }
        const RouteInfo info =
            describe(table, route->key.prefix, route->key.metric, route->key.owner, true, target);
        found.type = info.type;
        found.prefix = info.prefix;
        found.via = info.via;
        found.dev = info.dev;
        found.nexthop = info.nexthop;
        complete(found, target, destination);
    };
    if (destination.is_v4()) {
        in(table.v4.match(destination.v4(), shortest));
    } else {
        in(table.v6.match(destination.v6(), shortest));
    }
    return found;
}

void Engine::complete(RouteLookup& found,
                      const RouteTarget& target,
                      const net::IpAddr& destination) const {
    const NextHop* hop = as_next_hop(target);
    if (const ObjectTarget* object = as_object(target);
        object != nullptr && !object->object->is_group) {
        hop = object->object->hops[destination.is_v4() ? 0 : 1];
    }
    if (hop == nullptr) {
        return;  // a group: each flow has a next hop of its own
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
    if (found.nexthop) {
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
