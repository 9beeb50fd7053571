// SPDX-License-Identifier: BSD-3-Clause
// Netdevs and their addresses: done by the engine, kept in the running configuration.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "config/netns.h"
#include "control/nexthop_objects.h"
#include "control/router.h"

namespace sluice::control {
namespace {

/// No two ports have one MAC, whatever netns they are in: so the file has it, too.
Result<void> check_mac(const config::Config& running,
                       const std::string& netns,
                       const std::string& name,
                       const std::optional<net::MacAddr>& mac) {
    Result<void> ok;
    config::for_each_netns(running, [&](std::string_view where, const config::Netns& of) {
        for (const auto& [other, port] : of.ports) {
            if (mac && port.settings.mac == mac && (where != netns || other != name)) {
                ok = fail(ErrorCode::kExists, "port {} has the MAC {}", other, mac->to_string());
            }
        }
    });
    return ok;
}

}  // namespace

Result<void> Router::add_port(const std::string& netns,
                              const std::string& name,
                              const config::Port& port) {
    return in(netns, [&](Netns& of) -> Result<void> {
        if (auto ok = check_mac(running_, netns, name, port.settings.mac); !ok) {
            return ok;
        }
        if (auto ok = engine_.add_port(of, name, port); !ok) {
            return ok;
        }
        config_of(of).ports.emplace(name, port).first->second.addresses.clear();
        return add_addresses(netns, name, port.addresses);
    });
}

Result<void> Router::add_vlan(const std::string& netns,
                              const std::string& name,
                              const config::Vlan& vlan) {
    return in(netns, [&](Netns& of) -> Result<void> {
        if (auto ok = engine_.add_vlan(of, name, vlan); !ok) {
            return ok;
        }
        config::Vlan& added = config_of(of).vlans.emplace(name, vlan).first->second;
        added.addresses.clear();
        if (added.link_netns == netns) {
            added.link_netns.clear();  // as load() has it, and move_link() expects
        }
        return add_addresses(netns, name, vlan.addresses);
    });
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
    return in(netns, [&](Netns& of) -> Result<void> {
        if (auto ok = engine_.add_vrf(of, name, table); !ok) {
            return ok;
        }
        config_of(of).vrfs[name].table = table;
        return {};
    });
}

Result<Ticket> Router::delete_netdevs(const std::string& netns,
                                      std::span<const std::string> names) {
    return in(netns, [&](Netns& of) -> Result<Ticket> {
        const Over over = what_is_over(of, names);
        const auto ticket = engine_.delete_netdevs(of, names);
        if (ticket) {
            forget(config_of(of), names, over);
            forget_nexthops(of);
        }
        return ticket;
    });
}

Result<void> Router::change_link(const std::string& netns,
                                 const std::string& name,
                                 const LinkChange& change) {
    return in(netns, [&](Netns& of) -> Result<void> {
        const auto netdev = of.get(name);
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
        if (auto ok = engine_.change_netdev(of, name, to); !ok) {
            return ok;
        }
        config::Netns& config = config_of(of);
        if (change.vrf) {
            if (auto ok = engine_.set_vrf(of, name, *change.vrf); !ok) {
                static_cast<void>(engine_.change_netdev(of, name, from));
                return ok;
            }
            for (auto& [vrf, members] : config.vrfs) {
                std::erase(members.interfaces, name);
            }
            if (!change.vrf->empty()) {
                config.vrfs.at(*change.vrf).interfaces.push_back(name);
            }
        }
        *config::settings_of(config, name) = to;
        return {};
    });
}

Result<Ticket> Router::move_link(const std::string& netns,
                                 const std::string& name,
                                 const std::string& to) {
    return in(netns, [&](Netns& of) -> Result<Ticket> {
        const auto target = engine_.netns().get(to);
        if (!target) {
            return std::unexpected(target.error());
        }
        config::Netns& from = config_of(of);
        std::vector<std::string> moving{name};
        const bool is_port = from.ports.contains(name);
        if (is_port) {
            for (const auto& [vlan, config] : from.vlans) {
                if (config.link == name && config.link_netns.empty()) {
                    moving.push_back(vlan);
                }
            }
        }
        const Over over = what_is_over(of, moving);
        const auto ticket = engine_.move_link(of, name, **target);
        if (!ticket || &of == *target) {
            return ticket;
        }
        if (is_port) {
            relink(name, netns, to);
        } else {
            config::Vlan& vlan = from.vlans.at(name);
            const std::string home = vlan.link_netns.empty() ? netns : vlan.link_netns;
            vlan.link_netns = home == to ? "" : home;
        }
        config::Netns& into = config_of(**target);
        const auto take = [&](auto& source, auto& sink, const std::string& what) {
            auto node = source.extract(what);
            if (!node.empty()) {
                node.mapped().addresses.clear();
                sink.insert(std::move(node));
            }
        };
        for (const std::string& netdev : moving) {
            take(from.ports, into.ports, netdev);
            take(from.vlans, into.vlans, netdev);
        }
        forget(from, moving, over);
        forget_nexthops(of);
        return ticket;
    });
}

void Router::relink(const std::string& port, const std::string& from, const std::string& to) {
    config::for_each_netns(running_, [&](std::string_view where, config::Netns& netns) {
        for (auto& [name, vlan] : netns.vlans) {
            if (where != from && vlan.link == port && vlan.link_netns == from) {
                vlan.link_netns = where == to ? "" : to;
            }
        }
    });
}

void Router::forget(config::Netns& netns, std::span<const std::string> names, const Over& over) {
    const std::set<std::string_view> gone(names.begin(), names.end());
    for (const std::string& name : names) {
        netns.ports.erase(name);
        netns.vlans.erase(name);
        netns.vrfs.erase(name);
    }
    for (auto& [vrf, members] : netns.vrfs) {
        std::erase_if(members.interfaces, [&](const auto& name) { return gone.contains(name); });
    }
    if (over.routes) {
        std::erase_if(netns.routes, [&](const auto& route) { return gone.contains(route.dev); });
    }
}

Router::Over Router::what_is_over(const Netns& netns, std::span<const std::string> names) const {
    Over over;
    for (const std::string& name : names) {
        if (const Netdev* netdev = netns.find(name); netdev != nullptr) {
            over.routes = over.routes || engine_.has_routes(netdev->id, RouteOwner::kFile);
        }
    }
    return over;
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

Result<void> Router::add_address(const std::string& netns,
                                 const std::string& dev,
                                 const net::InterfaceAddr& address) {
    return in(netns, [&](Netns& of) -> Result<void> {
        if (auto ok = engine_.add_address(of, dev, address); !ok) {
            return ok;
        }
        config::addresses_of(config_of(of), dev)->push_back({.value = address, .at = {}});
        return {};
    });
}

Result<void> Router::delete_address(const std::string& netns,
                                    const std::string& dev,
                                    const net::InterfaceAddr& address) {
    return in(netns, [&](Netns& of) -> Result<void> {
        if (auto ok = engine_.delete_address(of, dev, address); !ok) {
            return ok;
        }
        std::erase_if(*config::addresses_of(config_of(of), dev),
                      [&](const auto& own) { return own.value == address; });
        return {};
    });
}

}  // namespace sluice::control
