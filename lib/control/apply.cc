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

namespace sluice::control {
namespace {

using config::Action;
using config::Config;
using config::Position;

const std::vector<config::Address>* addresses_of(const Config& config, const std::string& netdev) {
    const auto& netns = config.default_netns;
    if (const auto port = netns.ports.find(netdev); port != netns.ports.end()) {
        return &port->second.addresses;
    }
    const auto vlan = netns.vlans.find(netdev);
    return vlan != netns.vlans.end() ? &vlan->second.addresses : nullptr;
}

/// Finds in `config` what an action leaves out.
const config::Address* find_address(const Config& config,
                                    const std::string& netdev,
                                    const net::InterfaceAddr& address) {
    const auto* addresses = addresses_of(config, netdev);
    if (addresses == nullptr) {
        return nullptr;
    }
    const auto it = std::ranges::find(*addresses, address, &config::Address::value);
    return it != addresses->end() ? &*it : nullptr;
}

const config::Neighbor* find_neighbor(const Config& config, const config::Neighbor& wanted) {
    for (const auto& neighbor : config.default_netns.neighbors) {
        if (neighbor.dev == wanted.dev && neighbor.to == wanted.to) {
            return &neighbor;
        }
    }
    return nullptr;
}

config::ChangeInstance instance_of(const Config& config) {
    return {.icmp = config.icmp,
            .forward_class_e = config.forward_class_e,
            .idle = config.workers.idle};
}

/// One action done.
struct Doer {
    Engine& engine;
    Time now;

    Result<void> operator()(const config::ChangeInstance& a) const {
        engine.change_instance(a);
        return {};
    }
    Result<void> operator()(const config::AddPort& a) const {
        return engine.add_port(a.name, a.port);
    }
    Result<void> operator()(const config::AddVlan& a) const {
        return engine.add_vlan(a.name, a.vlan);
    }
    Result<void> operator()(const config::RemovePort& a) const { return remove(a.name); }
    Result<void> operator()(const config::RemoveVlan& a) const { return remove(a.name); }
    Result<void> operator()(const config::ChangeNetdev& a) const {
        return engine.change_netdev(a.name, a.to);
    }
    Result<void> operator()(const config::AddAddress& a) const {
        return engine.add_address(a.netdev, a.address);
    }
    Result<void> operator()(const config::RemoveAddress& a) const {
        return engine.delete_address(a.netdev, a.address);
    }
    Result<void> operator()(const config::AddRoute& a) const {
        return engine.add_route(to_request(a.route), RouteMode::kAdd);
    }
    Result<void> operator()(const config::RemoveRoute& a) const {
        return engine.delete_route(to_request(a.route));
    }
    Result<void> operator()(const config::ReplaceRoute& a) const {
        return engine.replace_route(to_request(a.from), to_request(a.to));
    }
    Result<void> operator()(const config::SetNeighbor& a) const {
        const auto& n = a.neighbor;
        return engine.add_neighbor(n.dev, n.to, n.lladdr, now);
    }
    Result<void> operator()(const config::RemoveNeighbor& a) const {
        return engine.delete_neighbor(a.neighbor.dev, a.neighbor.to);
    }
    Result<void> remove(const std::string& name) const {
        return engine.delete_netdevs(std::array{name});
    }
};

/// The action that takes one back, which led away from `running`.
struct Inverter {
    const Config& running;

    Action operator()(const config::ChangeInstance&) const { return instance_of(running); }
    Action operator()(const config::AddPort& a) const { return config::RemovePort{a.name}; }
    Action operator()(const config::AddVlan& a) const { return config::RemoveVlan{a.name}; }
    Action operator()(const config::RemovePort& a) const {
        return config::AddPort{a.name, running.default_netns.ports.at(a.name)};
    }
    Action operator()(const config::RemoveVlan& a) const {
        return config::AddVlan{a.name, running.default_netns.vlans.at(a.name)};
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
        if (const auto* before = find_neighbor(running, a.neighbor); before != nullptr) {
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
    const Config& config;

    Position netdev(const std::string& name) const {
        const auto& netns = config.default_netns;
        if (const auto port = netns.ports.find(name); port != netns.ports.end()) {
            return port->second.at;
        }
        const auto vlan = netns.vlans.find(name);
        return vlan != netns.vlans.end() ? vlan->second.at : Position{};
    }
    Position operator()(const config::ChangeInstance&) const { return {}; }
    Position operator()(const config::AddPort& a) const { return a.port.at; }
    Position operator()(const config::AddVlan& a) const { return a.vlan.at; }
    Position operator()(const config::RemovePort&) const { return {}; }
    Position operator()(const config::RemoveVlan&) const { return {}; }
    Position operator()(const config::ChangeNetdev& a) const { return netdev(a.name); }
    Position operator()(const config::AddAddress& a) const {
        const auto* found = find_address(config, a.netdev, a.address);
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
            .metric = route.metric,
            .mtu = route.mtu,
            .on_link = route.on_link,
            .owner = RouteOwner::kFile};
}

namespace {

void undo(const Doer& doer, const Config& running, std::span<const Action> done) {
    std::set<std::string> reordered;
    for (const Action& action : done | std::views::reverse) {
        const Action back = std::visit(Inverter{running}, action);
        if (auto undone = std::visit(doer, back); !undone) {
            // A device that refused its old setting, say: the log is all that is left.
            spdlog::error("not undone: {}", undone.error().message);
        }
        if (const auto* added = std::get_if<config::AddAddress>(&back); added != nullptr) {
            reordered.insert(added->netdev);
        }
    }
    for (const std::string& name : reordered) {
        if (const auto* addresses = addresses_of(running, name); addresses != nullptr) {
            doer.engine.order_addresses(name, *addresses);
        }
    }
}

}  // namespace

Result<void> apply(Engine& engine, const Config& running, const Config& wanted, Time now) {
    const auto actions = config::diff(running, wanted);
    if (!actions) {
        std::string text;
        for (const auto& error : actions.error()) {
            text += text.empty() ? "" : "\n";
            text += error.to_string();
        }
        return std::unexpected(Error{ErrorCode::kUnsupported, std::move(text)});
    }
    const Doer doer{engine, now};
    for (std::size_t done = 0; done < actions->size(); ++done) {
        const Action& action = (*actions)[done];
        auto ok = std::visit(doer, action);
        if (ok) {
            continue;
        }
        const Position at = std::visit(Locator{wanted}, action);
        const config::ConfigError error{wanted.origin.file, at.line, at.column, ok.error().message};
        undo(doer, running, std::span(*actions).first(done));
        return std::unexpected(Error{ok.error().code, error.to_string()});
    }
    return {};
}

}  // namespace sluice::control
