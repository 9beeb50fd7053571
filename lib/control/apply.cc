// SPDX-License-Identifier: BSD-3-Clause
#include "control/apply.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <spdlog/spdlog.h>

#include "config/diff.h"
#include "config/netns.h"

namespace sluice::control {
namespace {

using config::Action;
using config::Config;
using config::Position;
using config::Step;

/// Finds in `config` what an action leaves out.
const config::Address* find_address(const config::Netns& netns,
                                    const std::string& netdev,
                                    const net::InterfaceAddr& address) {
    const auto* addresses = config::addresses_of(netns, netdev);
    if (addresses == nullptr) {
        return nullptr;
    }
    const auto it = std::ranges::find(*addresses, address, &config::Address::value);
    return it != addresses->end() ? &*it : nullptr;
}

const config::Neighbor* find_neighbor(const config::Netns& netns, const config::Neighbor& wanted) {
    for (const auto& neighbor : netns.neighbors) {
        if (neighbor.dev == wanted.dev && neighbor.to == wanted.to) {
            return &neighbor;
        }
    }
    return nullptr;
}

/// One action done in a netns.
struct Doer {
    Engine& engine;
    Time now;
    Netns* netns;  // null: it is not there (yet)
    const std::string& name;

    Result<void> operator()(const config::ChangeInstance& a) const {
        engine.change_instance(a);
        return {};
    }
    Result<void> operator()(const config::AddNetns&) const { return plain(engine.add_netns(name)); }
    Result<void> operator()(const config::RemoveNetns&) const {
        return plain(engine.delete_netns(*netns));
    }
    Result<void> operator()(const config::MovePort& a) const {
        const auto to = engine.netns().get(a.to);
        return to ? plain(engine.move_link(*netns, a.name, **to)) : plain(to);
    }
    Result<void> operator()(const config::AddVrf& a) const {
        return engine.add_vrf(*netns, a.name, a.table);
    }
    Result<void> operator()(const config::RemoveVrf& a) const { return remove(a.name); }
    Result<void> operator()(const config::SetVrf& a) const {
        return engine.set_vrf(*netns, a.netdev, a.vrf);
    }
    Result<void> operator()(const config::AddNextHop& a) const {
        return engine.add_nexthop(*netns, a.id, a.hop, RouteOwner::kFile, false);
    }
    Result<void> operator()(const config::RemoveNextHop& a) const {
        return engine.delete_nexthop(*netns, a.id);
    }
    Result<void> operator()(const config::ReplaceNextHop& a) const {
        return engine.add_nexthop(*netns, a.id, a.to, RouteOwner::kFile, true);
    }
    Result<void> operator()(const config::AddRule& a) const {
        return engine.add_rule(*netns, a.rule, RouteOwner::kFile);
    }
    Result<void> operator()(const config::RemoveRule& a) const {
        return engine.delete_rule(*netns, a.rule);
    }
    Result<void> operator()(const config::SetMultipathHash& a) const {
        engine.set_multipath_hash(*netns, a.family, a.to);
        return {};
    }
    Result<void> operator()(const config::AddPort& a) const {
        return engine.add_port(*netns, a.name, a.port);
    }
    Result<void> operator()(const config::AddVlan& a) const {
        return engine.add_vlan(*netns, a.name, a.vlan);
    }
    Result<void> operator()(const config::RemovePort& a) const { return remove(a.name); }
    Result<void> operator()(const config::RemoveVlan& a) const { return remove(a.name); }
    Result<void> operator()(const config::ChangeNetdev& a) const {
        return engine.change_netdev(*netns, a.name, a.to);
    }
    Result<void> operator()(const config::AddAddress& a) const {
        return engine.add_address(*netns, a.netdev, a.address);
    }
    Result<void> operator()(const config::RemoveAddress& a) const {
        return engine.delete_address(*netns, a.netdev, a.address);
    }
    Result<void> operator()(const config::AddRoute& a) const {
        return engine.add_route(*netns, to_request(a.route), RouteMode::kAdd);
    }
    Result<void> operator()(const config::RemoveRoute& a) const {
        return engine.delete_route(*netns, to_request(a.route));
    }
    Result<void> operator()(const config::ReplaceRoute& a) const {
        return engine.replace_route(*netns, to_request(a.from), to_request(a.to));
    }
    Result<void> operator()(const config::SetNeighbor& a) const {
        const auto& n = a.neighbor;
        return engine.add_neighbor(*netns, n.dev, n.to, n.lladdr, now);
    }
    Result<void> operator()(const config::RemoveNeighbor& a) const {
        return engine.delete_neighbor(*netns, a.neighbor.dev, a.neighbor.to);
    }

    Result<void> remove(const std::string& netdev) const {
        return plain(engine.delete_netdevs(*netns, std::array{netdev}));
    }
    /// Nobody here waits for tickets.
    template <class T>
    static Result<void> plain(const Result<T>& result) {
        return result ? Result<void>{} : std::unexpected(result.error());
    }
};

/// The step that takes one back, which led away from `running`.
struct Inverter {
    const Config& running;
    const std::string& name;

    const config::Netns& netns() const {
        static const config::Netns kNone;
        const config::Netns* found = config::find_netns(running, name);
        return found != nullptr ? *found : kNone;
    }
    Action operator()(const config::ChangeInstance&) const { return config::instance_of(running); }
    Action operator()(const config::AddNetns&) const { return config::RemoveNetns{}; }
    Action operator()(const config::RemoveNetns&) const { return config::AddNetns{}; }
    // The step goes to the other netns, too: see undo().
    Action operator()(const config::MovePort& a) const { return config::MovePort{a.name, name}; }
    Action operator()(const config::AddVrf& a) const { return config::RemoveVrf{a.name}; }
    Action operator()(const config::RemoveVrf& a) const {
        return config::AddVrf{a.name, netns().vrfs.at(a.name).table};
    }
    Action operator()(const config::SetVrf& a) const {
        const auto masters = config::masters_of(netns());
        const auto before = masters.find(a.netdev);
        return config::SetVrf{a.netdev, std::string{before == masters.end() ? "" : before->second}};
    }
    Action operator()(const config::AddNextHop& a) const { return config::RemoveNextHop{a.id}; }
    Action operator()(const config::RemoveNextHop& a) const {
        return config::AddNextHop{a.id, netns().nexthops.at(a.id)};
    }
    Action operator()(const config::ReplaceNextHop& a) const {
        return config::ReplaceNextHop{a.id, a.to, a.from};
    }
    Action operator()(const config::AddRule& a) const { return config::RemoveRule{a.rule}; }
    Action operator()(const config::RemoveRule& a) const { return config::AddRule{a.rule}; }
    Action operator()(const config::SetMultipathHash& a) const {
        return config::SetMultipathHash{a.family, a.to, a.from};
    }
    Action operator()(const config::AddPort& a) const { return config::RemovePort{a.name}; }
    Action operator()(const config::AddVlan& a) const { return config::RemoveVlan{a.name}; }
    Action operator()(const config::RemovePort& a) const {
        return config::AddPort{a.name, netns().ports.at(a.name)};
    }
    Action operator()(const config::RemoveVlan& a) const {
        return config::AddVlan{a.name, netns().vlans.at(a.name)};
    }
    Action operator()(const config::ChangeNetdev& a) const {
        return config::ChangeNetdev{a.name, a.to, a.from};
    }
    Action operator()(const config::AddAddress& a) const {
        return config::RemoveAddress{a.netdev, a.address};
    }
    Action operator()(const config::RemoveAddress& a) const {
        return config::AddAddress{a.netdev, a.address};
    }
    Action operator()(const config::AddRoute& a) const { return config::RemoveRoute{a.route}; }
    Action operator()(const config::RemoveRoute& a) const { return config::AddRoute{a.route}; }
    Action operator()(const config::ReplaceRoute& a) const {
        return config::ReplaceRoute{a.to, a.from};
    }
    Action operator()(const config::SetNeighbor& a) const {
        if (const auto* before = find_neighbor(netns(), a.neighbor); before != nullptr) {
            return config::SetNeighbor{*before};
        }
        return config::RemoveNeighbor{a.neighbor};
    }
    Action operator()(const config::RemoveNeighbor& a) const {
        return config::SetNeighbor{a.neighbor};
    }
};

/// Where the file has what an action is about.
struct Locator {
    const config::Netns& netns;

    template <class Map, class Key>
    static Position in(const Map& map, const Key& key) {
        const auto it = map.find(key);
        return it != map.end() ? it->second.at : Position{};
    }
    Position netdev(const std::string& name) const {
        const Position port = in(netns.ports, name);
        return port.line != 0 ? port : in(netns.vlans, name);
    }
    Position operator()(const config::ChangeInstance&) const { return {}; }
    Position operator()(const config::AddNetns&) const { return netns.at; }
    Position operator()(const config::RemoveNetns&) const { return {}; }
    Position operator()(const config::MovePort& a) const { return netdev(a.name); }
    Position operator()(const config::AddVrf& a) const { return in(netns.vrfs, a.name); }
    Position operator()(const config::RemoveVrf&) const { return {}; }
    Position operator()(const config::SetVrf& a) const {
        return a.vrf.empty() ? netdev(a.netdev) : in(netns.vrfs, a.vrf);
    }
    Position operator()(const config::AddNextHop& a) const { return a.hop.at; }
    Position operator()(const config::RemoveNextHop&) const { return {}; }
    Position operator()(const config::ReplaceNextHop& a) const { return a.to.at; }
    Position operator()(const config::AddRule& a) const { return a.rule.at; }
    Position operator()(const config::RemoveRule&) const { return {}; }
    Position operator()(const config::SetMultipathHash&) const { return netns.at; }
    Position operator()(const config::AddPort& a) const { return a.port.at; }
    Position operator()(const config::AddVlan& a) const { return a.vlan.at; }
    Position operator()(const config::RemovePort&) const { return {}; }
    Position operator()(const config::RemoveVlan&) const { return {}; }
    Position operator()(const config::ChangeNetdev& a) const { return netdev(a.name); }
    Position operator()(const config::AddAddress& a) const {
        const auto* found = find_address(netns, a.netdev, a.address);
        return found != nullptr ? found->at : netdev(a.netdev);
    }
    Position operator()(const config::RemoveAddress& a) const { return netdev(a.netdev); }
    Position operator()(const config::AddRoute& a) const { return a.route.at; }
    Position operator()(const config::RemoveRoute&) const { return {}; }
    Position operator()(const config::ReplaceRoute& a) const { return a.to.at; }
    Position operator()(const config::SetNeighbor& a) const { return a.neighbor.at; }
    Position operator()(const config::RemoveNeighbor&) const { return {}; }
};

}  // namespace

RouteRequest to_request(const config::Route& route) {
    constexpr std::array kTypes{"unicast", "blackhole", "unreachable", "prohibit", "local"};
    return {.prefix = route.to,
            .type = kTypes[std::to_underlying(route.type)],
            .via = route.via,
            .dev = route.dev,
            .nexthop = route.nexthop,
            .table = route.table,
            .metric = route.metric,
            .mtu = route.mtu,
            .on_link = route.on_link,
            .owner = RouteOwner::kFile};
}

namespace {

Result<void> perform(Engine& engine, const Step& step, Time now) {
    Netns* netns = engine.netns().find(step.netns);
    const bool needs_none = std::holds_alternative<config::AddNetns>(step.action) ||
                            std::holds_alternative<config::ChangeInstance>(step.action);
    if (netns == nullptr && !needs_none) {
        return fail(ErrorCode::kNotFound, "no netns {}", step.netns);
    }
    return std::visit(Doer{engine, now, netns, step.netns}, step.action);
}

void undo(Engine& engine, const Config& running, std::span<const Step> done, Time now) {
    std::set<std::pair<std::string, std::string>> reordered;
    for (const Step& step : done | std::views::reverse) {
        Step back{step.netns, std::visit(Inverter{running, step.netns}, step.action)};
        if (const auto* moved = std::get_if<config::MovePort>(&step.action); moved != nullptr) {
            back.netns = moved->to;
        }
        if (auto undone = perform(engine, back, now); !undone) {
            // A device that refused its old setting, say: the log is all that is left.
            spdlog::error("not undone: {}", undone.error().message);
        }
        if (const auto* added = std::get_if<config::AddAddress>(&back.action); added != nullptr) {
            reordered.emplace(back.netns, added->netdev);
        }
    }
    for (const auto& [name, netdev] : reordered) {
        Netns* netns = engine.netns().find(name);
        const config::Netns* before = config::find_netns(running, name);
        if (netns == nullptr || before == nullptr) {
            continue;
        }
        if (const auto* addresses = config::addresses_of(*before, netdev); addresses != nullptr) {
            engine.order_addresses(*netns, netdev, *addresses);
        }
    }
}

}  // namespace

Result<void> apply(Engine& engine, const Config& running, const Config& wanted, Time now) {
    const auto steps = config::diff(running, wanted);
    if (!steps) {
        std::string text;
        for (const auto& error : steps.error()) {
            text += text.empty() ? "" : "\n";
            text += error.to_string();
        }
        return std::unexpected(Error{ErrorCode::kUnsupported, std::move(text)});
    }
    const Changes::Scope change(engine.changes());
    for (std::size_t done = 0; done < steps->size(); ++done) {
        const Step& step = (*steps)[done];
        auto ok = perform(engine, step, now);
        if (ok) {
            continue;
        }
        static const config::Netns kNone;
        const config::Netns* netns = config::find_netns(wanted, step.netns);
        const Position at = std::visit(Locator{netns != nullptr ? *netns : kNone}, step.action);
        const config::ConfigError error{wanted.origin.file, at.line, at.column, ok.error().message};
        undo(engine, running, std::span(*steps).first(done), now);
        return std::unexpected(Error{ok.error().code, error.to_string()});
    }
    return {};
}

}  // namespace sluice::control
