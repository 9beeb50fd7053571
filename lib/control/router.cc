// SPDX-License-Identifier: BSD-3-Clause
#include "control/router.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include <spdlog/spdlog.h>

#include "config/config.h"
#include "control/apply.h"

namespace sluice::control {

Time steady_now() noexcept {
    return std::chrono::steady_clock::now().time_since_epoch();
}

Result<std::string> read_file(const std::string& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file.is_open() || file.bad() || errno == EISDIR) {
        return fail(errno == EACCES ? ErrorCode::kPermission : ErrorCode::kNotFound,
                    "{}: {}",
                    path,
                    std::strerror(errno));
    }
    return text;
}

namespace {

config::NetdevSettings* settings_of(config::Netns& netns, const std::string& name) {
    if (const auto port = netns.ports.find(name); port != netns.ports.end()) {
        return &port->second.settings;
    }
    const auto vlan = netns.vlans.find(name);
    return vlan == netns.vlans.end() ? nullptr : &vlan->second.settings;
}

std::vector<config::Address>* addresses_of(config::Netns& netns, const std::string& name) {
    if (const auto port = netns.ports.find(name); port != netns.ports.end()) {
        return &port->second.addresses;
    }
    const auto vlan = netns.vlans.find(name);
    return vlan == netns.vlans.end() ? nullptr : &vlan->second.addresses;
}

/// No two ports have one MAC, whatever netns they are in: so the file has it, too.
Result<void> check_mac(const config::Config& running,
                       const std::string& netns,
                       const std::string& name,
                       const std::optional<net::MacAddr>& mac) {
    const auto check = [&](const std::string& where, const config::Netns& of) -> Result<void> {
        for (const auto& [other, port] : of.ports) {
            if (mac && port.settings.mac == mac && (where != netns || other != name)) {
                return fail(ErrorCode::kExists, "port {} has the MAC {}", other, mac->to_string());
            }
        }
        return {};
    };
    if (auto ok = check(std::string(kDefaultNetns), running.default_netns); !ok) {
        return ok;
    }
    for (const auto& [where, of] : running.netns) {
        if (auto ok = check(where, of); !ok) {
            return ok;
        }
    }
    return {};
}

}  // namespace

Router::Router(Engine& engine, config::Config running)
    : engine_(engine), running_(std::move(running)) {
    engine_.change_instance({.icmp = running_.icmp,
                             .forward_class_e = running_.forward_class_e,
                             .idle = running_.workers.idle,
                             .cache = running_.workers.cache});
}

Result<void> Router::apply(config::Config wanted) {
    const Time began = steady_now();
    if (auto ok = control::apply(engine_, running_, wanted, began); !ok) {
        return ok;
    }
    spdlog::debug("applied in {:.1f} ms",
                  std::chrono::duration<double, std::milli>(steady_now() - began).count());
    running_ = std::move(wanted);
    return {};
}

Result<void> Router::reload(const std::optional<std::string>& file) {
    const std::string path = file.value_or(running_.origin.file);
    const auto text = read_file(path);
    if (!text) {
        return std::unexpected(text.error());
    }
    auto wanted = config::load(*text, path);
    if (!wanted) {
        std::string lines;
        for (const auto& error : wanted.error()) {
            lines += lines.empty() ? "" : "\n";
            lines += error.to_string();
        }
        return std::unexpected(Error{ErrorCode::kInvalid, std::move(lines)});
    }
    if (auto ok = apply(std::move(*wanted)); !ok) {
        return ok;
    }
    spdlog::info("{}: loaded", path);
    return {};
}

std::string Router::effective_config() const {
    return config::emit(running_);
}

config::Netns& Router::config_of(const Netns& netns) {
    return netns.name == kDefaultNetns ? running_.default_netns : running_.netns[netns.name];
}

void Router::forget(config::Netns& netns, std::span<const std::string> names, bool hosts) {
    const std::set<std::string_view> gone(names.begin(), names.end());
    for (const std::string& name : names) {
        netns.ports.erase(name);
        netns.vlans.erase(name);
        netns.vrfs.erase(name);
    }
    for (auto& [vrf, members] : netns.vrfs) {
        std::erase_if(members.interfaces, [&](const auto& name) { return gone.contains(name); });
    }
    std::erase_if(netns.routes, [&](const auto& route) { return gone.contains(route.dev); });
    if (hosts) {
        std::erase_if(netns.neighbors, [&](const auto& host) { return gone.contains(host.dev); });
    }
}

bool Router::have_neighbors(const Netns& netns, std::span<const std::string> names) const {
    return std::ranges::any_of(names, [&](const std::string& name) {
        const Netdev* netdev = netns.find(name);
        return netdev != nullptr && engine_.neighbors().table().has_any(netdev->id);
    });
}

void Router::forget_nexthops(const Netns& netns) {
    config::Netns& config = config_of(netns);
    if (config.nexthops.empty()) {
        return;
    }
    std::size_t gone = 0;
    for (auto it = config.nexthops.begin(); it != config.nexthops.end();) {
        const NextHopObject* object = std::as_const(*netns.nexthops).find(it->first);
        if (object == nullptr) {
            it = config.nexthops.erase(it);
            ++gone;
            continue;
        }
        const config::Position at = it->second.at;
        it->second = object->config;  // a group may have lost members
        it->second.at = at;
        ++it;
    }
    if (gone != 0) {
        std::erase_if(config.routes, [&](const auto& route) {
            return route.nexthop && !config.nexthops.contains(*route.nexthop);
        });
    }
}

// --- netns --------------------------------------------------------------------------------------

Result<void> Router::add_netns(const std::string& name) {
    if (const auto made = engine_.add_netns(name); !made) {
        return std::unexpected(made.error());
    }
    running_.netns.try_emplace(name);
    return {};
}

Result<Ticket> Router::delete_netns(const std::string& name) {
    const auto found = engine_.netns().get(name);
    if (!found) {
        return std::unexpected(found.error());
    }
    const auto ticket = engine_.delete_netns(**found);
    if (ticket) {
        auto ended = running_.netns.extract(name);
        for (auto& [port_name, port] : ended.mapped().ports) {
            relink(port_name, name, kDefaultNetns);
            port.addresses.clear();
            running_.default_netns.ports.emplace(port_name, std::move(port));
        }
    }
    return ticket;
}

std::vector<NetnsInfo> Router::netns() const {
    std::vector<NetnsInfo> list;
    engine_.netns().for_each([&](const Netns& netns) {
        NetnsInfo info;
        info.name = netns.name;
        info.netdevs = netns.netdevs.size();
        for (const auto& [id, table] : netns.tables) {
            info.routes4 += table->v4.size();
            info.routes6 += table->v6.size();
        }
        info.generation4 = netns.generations4.whole();
        info.generation6 = netns.generations6.whole();
        list.push_back(std::move(info));
    });
    return list;
}

void Router::relink(const std::string& port, const std::string& from, const std::string& to) {
    const auto in = [&](const std::string& where, config::Netns& netns) {
        for (auto& [name, vlan] : netns.vlans) {
            if (where != from && vlan.link == port && vlan.link_netns == from) {
                vlan.link_netns = where == to ? "" : to;
            }
        }
    };
    in(kDefaultNetns, running_.default_netns);
    for (auto& [name, netns] : running_.netns) {
        in(name, netns);
    }
}

Result<Ticket> Router::move_link(const std::string& netns,
                                 const std::string& name,
                                 const std::string& to) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    const auto target = engine_.netns().get(to);
    if (!target) {
        return std::unexpected(target.error());
    }
    const auto ticket = engine_.move_link(**found, name, **target);
    if (!ticket || *found == *target) {
        return ticket;
    }
    config::Netns& from = config_of(**found);
    config::Netns& into = config_of(**target);
    const auto take = [&](auto& source, auto& sink, const std::string& what) {
        auto node = source.extract(what);
        if (!node.empty()) {
            node.mapped().addresses.clear();
            sink.insert(std::move(node));
            forget(from, {&what, 1}, true);
        }
    };
    std::vector<std::string> vlans;
    if (from.ports.contains(name)) {
        for (const auto& [vlan, config] : from.vlans) {
            if (config.link == name && config.link_netns.empty()) {
                vlans.push_back(vlan);
            }
        }
    } else {
        vlans.push_back(name);
    }
    if (from.ports.contains(name)) {
        relink(name, netns, to);
    } else {
        config::Vlan& vlan = from.vlans.at(name);
        const std::string home = vlan.link_netns.empty() ? netns : vlan.link_netns;
        vlan.link_netns = home == to ? "" : home;
    }
    take(from.ports, into.ports, name);
    for (const std::string& vlan : vlans) {
        take(from.vlans, into.vlans, vlan);
    }
    forget_nexthops(**found);
    return ticket;
}

// --- links --------------------------------------------------------------------------------------

Result<void> Router::add_port(const std::string& netns,
                              const std::string& name,
                              const config::Port& port) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    if (auto ok = check_mac(running_, netns, name, port.settings.mac); !ok) {
        return ok;
    }
    if (auto ok = engine_.add_port(**found, name, port); !ok) {
        return ok;
    }
    config_of(**found).ports.emplace(name, port).first->second.addresses.clear();
    return add_addresses(netns, name, port.addresses);
}

Result<void> Router::add_vlan(const std::string& netns,
                              const std::string& name,
                              const config::Vlan& vlan) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    if (auto ok = engine_.add_vlan(**found, name, vlan); !ok) {
        return ok;
    }
    config::Vlan& added = config_of(**found).vlans.emplace(name, vlan).first->second;
    added.addresses.clear();
    if (added.link_netns == netns) {
        added.link_netns.clear();  // as load() has it, and move_link() expects
    }
    return add_addresses(netns, name, vlan.addresses);
}

Result<void> Router::add_addresses(const std::string& netns,
                                   const std::string& netdev,
                                   std::span<const config::Address> addresses) {
    for (const auto& address : addresses) {
        if (auto ok = add_address(netns, netdev, address.value); !ok) {
            static_cast<void>(delete_netdevs(netns, std::array{netdev}));
            return ok;
        }
    }
    return {};
}

Result<void> Router::add_vrf(const std::string& netns,
                             const std::string& name,
                             std::uint32_t table) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    if (auto ok = engine_.add_vrf(**found, name, table); !ok) {
        return ok;
    }
    config_of(**found).vrfs[name].table = table;
    return {};
}

Result<Ticket> Router::delete_netdevs(const std::string& netns,
                                      std::span<const std::string> names) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    const bool hosts = have_neighbors(**found, names);
    const auto ticket = engine_.delete_netdevs(**found, names);
    if (ticket) {
        forget(config_of(**found), names, hosts);
        forget_nexthops(**found);
    }
    return ticket;
}

Result<void> Router::change_link(const std::string& netns,
                                 const std::string& name,
                                 const LinkChange& change) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    const auto netdev = (*found)->get(name);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    if ((*netdev)->kind == fib::NetdevKind::kPort) {
        if (auto ok = check_mac(running_, netns, name, change.mac); !ok) {
            return ok;
        }
    }
    const config::NetdevSettings from = (*netdev)->settings;
    config::NetdevSettings to = from;
    to.up = change.up.value_or(to.up);
    to.mtu = change.mtu.value_or(to.mtu);
    to.promiscuous = change.promiscuous.value_or(to.promiscuous);
    to.forwarding = change.forwarding.value_or(to.forwarding);
    to.send_redirects = change.send_redirects.value_or(to.send_redirects);
    to.source_validation = change.source_validation.value_or(to.source_validation);
    to.route_localnet = change.route_localnet.value_or(to.route_localnet);
    to.bc_forwarding = change.bc_forwarding.value_or(to.bc_forwarding);
    to.mark = change.mark.value_or(to.mark);
    if (change.mac) {
        to.mac = change.mac;
    }
    const Changes::Scope scope(engine_.changes());
    if (auto ok = engine_.change_netdev(**found, name, to); !ok) {
        return ok;
    }
    config::Netns& config = config_of(**found);
    if (change.vrf) {
        if (auto ok = engine_.set_vrf(**found, name, *change.vrf); !ok) {
            static_cast<void>(engine_.change_netdev(**found, name, from));
            return ok;
        }
        for (auto& [vrf, members] : config.vrfs) {
            std::erase(members.interfaces, name);
        }
        if (!change.vrf->empty()) {
            config.vrfs.at(*change.vrf).interfaces.push_back(name);
        }
    }
    *settings_of(config, name) = to;
    return {};
}

// --- addresses, routes, neighbors ---------------------------------------------------------------

Result<void> Router::add_address(const std::string& netns,
                                 const std::string& dev,
                                 const net::InterfaceAddr& address) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    if (auto ok = engine_.add_address(**found, dev, address); !ok) {
        return ok;
    }
    addresses_of(config_of(**found), dev)->push_back({.value = address, .at = {}});
    return {};
}

Result<void> Router::delete_address(const std::string& netns,
                                    const std::string& dev,
                                    const net::InterfaceAddr& address) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    if (auto ok = engine_.delete_address(**found, dev, address); !ok) {
        return ok;
    }
    std::erase_if(*addresses_of(config_of(**found), dev),
                  [&](const auto& own) { return own.value == address; });
    return {};
}

Result<void> Router::add_route(const std::string& netns,
                               const RouteRequest& route,
                               RouteMode mode) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    return engine_.add_route(**found, route, mode);
}

Result<void> Router::delete_route(const std::string& netns, const RouteRequest& route) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    return engine_.delete_route(**found, route);
}

Result<std::size_t> Router::flush_routes(const std::string& netns, RouteOwner owner) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    return engine_.flush_routes(**found, owner);
}

Result<RouteLookup> Router::lookup_route(const std::string& netns, const RouteQuery& query) const {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    return engine_.lookup_route(**found, query);
}

Result<void> Router::add_nexthop(const std::string& netns,
                                 std::uint32_t id,
                                 const config::NextHop& hop,
                                 bool replace) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    if (auto ok = engine_.add_nexthop(**found, id, hop, RouteOwner::kCli, replace); !ok) {
        return ok;
    }
    // With the netdev that the gateway was found on.
    config_of(**found).nexthops[id] = std::as_const(*(*found)->nexthops).find(id)->config;
    return {};
}

Result<void> Router::delete_nexthop(const std::string& netns, std::uint32_t id) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    if (auto ok = engine_.delete_nexthop(**found, id); !ok) {
        return ok;
    }
    forget_nexthops(**found);
    return {};
}

Result<std::vector<NextHopInfo>> Router::nexthops(const std::string& netns) const {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    return engine_.nexthops(**found);
}

Result<void> Router::add_rule(const std::string& netns, const config::Rule& rule) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    if (auto ok = engine_.add_rule(**found, rule, RouteOwner::kCli); !ok) {
        return ok;
    }
    take_rules(**found);
    return {};
}

Result<void> Router::delete_rule(const std::string& netns, const config::Rule& rule) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    if (auto ok = engine_.delete_rule(**found, rule); !ok) {
        return ok;
    }
    take_rules(**found);
    return {};
}

void Router::take_rules(const Netns& netns) {
    auto& rules = config_of(netns).routing_policy;
    rules.clear();
    for (RuleInfo& info : engine_.rules(netns)) {
        rules.push_back(std::move(info.rule));
    }
}

Result<std::vector<RuleInfo>> Router::rules(const std::string& netns) const {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    return engine_.rules(**found);
}

Result<std::vector<ExceptionInfo>> Router::exceptions(const std::string& netns) const {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    return engine_.exceptions(**found);
}

Result<std::size_t> Router::flush_exceptions(const std::string& netns) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    return engine_.flush_exceptions(**found);
}

Result<void> Router::add_neighbor(const std::string& netns,
                                  const std::string& dev,
                                  const net::IpAddr& address,
                                  const net::MacAddr& lladdr) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    const Netdev* netdev = (*found)->find(dev);
    const Neighbor* before =
        netdev == nullptr ? nullptr : engine_.neighbors().table().find({netdev->id, address});
    const bool replaces = before != nullptr && before->state == NeighborState::kPermanent;
    if (auto ok = engine_.add_neighbor(**found, dev, address, lladdr, steady_now()); !ok) {
        return ok;
    }
    auto& neighbors = config_of(**found).neighbors;
    if (replaces) {  // a look at all of them for each would make many of them slow
        std::erase_if(neighbors, [&](const auto& n) { return n.dev == dev && n.to == address; });
    }
    neighbors.push_back({.to = address, .dev = dev, .lladdr = lladdr, .at = {}});
    return {};
}

Result<void> Router::delete_neighbor(const std::string& netns,
                                     const std::string& dev,
                                     const net::IpAddr& address) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    if (auto ok = engine_.delete_neighbor(**found, dev, address); !ok) {
        return ok;
    }
    std::erase_if(config_of(**found).neighbors,
                  [&](const auto& n) { return n.dev == dev && n.to == address; });
    return {};
}

Result<std::size_t> Router::flush_neighbors(const std::string& netns, const std::string& dev) {
    const auto found = engine_.netns().get(netns);
    if (!found) {
        return std::unexpected(found.error());
    }
    return engine_.flush_neighbors(**found, dev);
}

}  // namespace sluice::control
