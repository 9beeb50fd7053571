// SPDX-License-Identifier: BSD-3-Clause
#include "control/router.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
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

Router::Router(Engine& engine, config::Config running)
    : engine_(engine), running_(std::move(running)) {
    engine_.change_instance({.icmp = running_.icmp,
                             .forward_class_e = running_.forward_class_e,
                             .idle = running_.workers.idle});
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

// --- links --------------------------------------------------------------------------------------

config::NetdevSettings* Router::settings_of(const std::string& name) {
    auto& netns = running_.default_netns;
    if (const auto port = netns.ports.find(name); port != netns.ports.end()) {
        return &port->second.settings;
    }
    const auto vlan = netns.vlans.find(name);
    return vlan == netns.vlans.end() ? nullptr : &vlan->second.settings;
}

std::vector<config::Address>* Router::addresses_of(const std::string& name) {
    auto& netns = running_.default_netns;
    if (const auto port = netns.ports.find(name); port != netns.ports.end()) {
        return &port->second.addresses;
    }
    const auto vlan = netns.vlans.find(name);
    return vlan == netns.vlans.end() ? nullptr : &vlan->second.addresses;
}

void Router::forget(const std::string& name) {
    auto& netns = running_.default_netns;
    netns.ports.erase(name);
    netns.vlans.erase(name);
    std::erase_if(netns.routes, [&](const auto& route) { return route.dev == name; });
    std::erase_if(netns.neighbors, [&](const auto& neighbor) { return neighbor.dev == name; });
}

Result<void> Router::add_port(const std::string& name, const config::Port& port) {
    if (auto ok = engine_.add_port(name, port); !ok) {
        return ok;
    }
    running_.default_netns.ports.emplace(name, port).first->second.addresses.clear();
    for (const auto& address : port.addresses) {
        if (auto ok = add_address(name, address.value); !ok) {
            static_cast<void>(delete_netdevs(std::array{name}));
            return ok;
        }
    }
    return {};
}

Result<void> Router::add_vlan(const std::string& name, const config::Vlan& vlan) {
    if (auto ok = engine_.add_vlan(name, vlan); !ok) {
        return ok;
    }
    running_.default_netns.vlans.emplace(name, vlan).first->second.addresses.clear();
    for (const auto& address : vlan.addresses) {
        if (auto ok = add_address(name, address.value); !ok) {
            static_cast<void>(delete_netdevs(std::array{name}));
            return ok;
        }
    }
    return {};
}

Result<void> Router::delete_netdevs(std::span<const std::string> names) {
    if (auto ok = engine_.delete_netdevs(names); !ok) {
        return ok;
    }
    for (const std::string& name : names) {
        forget(name);
    }
    return {};
}

Result<void> Router::change_link(const std::string& name, const LinkChange& change) {
    const auto netdev = engine_.netdevs().get(name);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    config::NetdevSettings to = (*netdev)->settings;
    to.up = change.up.value_or(to.up);
    to.mtu = change.mtu.value_or(to.mtu);
    to.promiscuous = change.promiscuous.value_or(to.promiscuous);
    if (change.mac) {
        to.mac = change.mac;
    }
    if (auto ok = engine_.change_netdev(name, to); !ok) {
        return ok;
    }
    *settings_of(name) = to;
    return {};
}

// --- addresses, routes, neighbors ---------------------------------------------------------------

Result<void> Router::add_address(const std::string& dev, const net::InterfaceAddr& address) {
    if (auto ok = engine_.add_address(dev, address); !ok) {
        return ok;
    }
    addresses_of(dev)->push_back({.value = address, .at = {}});
    return {};
}

Result<void> Router::delete_address(const std::string& dev, const net::InterfaceAddr& address) {
    if (auto ok = engine_.delete_address(dev, address); !ok) {
        return ok;
    }
    std::erase_if(*addresses_of(dev), [&](const auto& own) { return own.value == address; });
    return {};
}

Result<void> Router::add_route(const RouteRequest& route, RouteMode mode) {
    return engine_.add_route(route, mode);
}

Result<void> Router::delete_route(const RouteRequest& route) {
    return engine_.delete_route(route);
}

std::size_t Router::flush_routes(RouteOwner owner) {
    return engine_.flush_routes(owner);
}

RouteLookup Router::lookup_route(const net::IpAddr& destination) const {
    return engine_.lookup_route(destination);
}

Result<void> Router::add_neighbor(const std::string& dev,
                                  const net::IpAddr& address,
                                  const net::MacAddr& lladdr) {
    if (auto ok = engine_.add_neighbor(dev, address, lladdr, steady_now()); !ok) {
        return ok;
    }
    auto& neighbors = running_.default_netns.neighbors;
    std::erase_if(neighbors, [&](const auto& n) { return n.dev == dev && n.to == address; });
    neighbors.push_back({.to = address, .dev = dev, .lladdr = lladdr, .at = {}});
    return {};
}

Result<void> Router::delete_neighbor(const std::string& dev, const net::IpAddr& address) {
    if (auto ok = engine_.delete_neighbor(dev, address); !ok) {
        return ok;
    }
    std::erase_if(running_.default_netns.neighbors,
                  [&](const auto& n) { return n.dev == dev && n.to == address; });
    return {};
}

Result<std::size_t> Router::flush_neighbors(const std::string& dev) {
    return engine_.flush_neighbors(dev);
}

// --- show ---------------------------------------------------------------------------------------

std::vector<LinkInfo> Router::links() const {
    const auto kind_name = [](fib::NetdevKind kind) {
        switch (kind) {
            case fib::NetdevKind::kBlackhole:
                return "blackhole";
            case fib::NetdevKind::kLoopback:
                return "loopback";
            case fib::NetdevKind::kPort:
                return "port";
            case fib::NetdevKind::kVlan:
                return "vlan";
            case fib::NetdevKind::kVrf:
                return "vrf";
        }
        return "";
    };
    std::vector<LinkInfo> links;
    engine_.netdevs().for_each([&](const Netdev& netdev) {
        LinkInfo info;
        info.id = netdev.id;
        info.name = netdev.name;
        info.kind = kind_name(netdev.kind);
        info.netns = netdev.netns->name;
        info.mtu = netdev.settings.mtu;
        info.up = netdev.settings.up;
        info.running = netdev.up() && netdev.carrier();
        info.forwarding = netdev.settings.forwarding;
        if (netdev.device != nullptr) {
            info.device = netdev.devargs;
            info.driver = netdev.device->driver();
            info.rx_queues = netdev.device->rx_queues();
            info.speed_mbps = netdev.link.speed_mbps;
        }
        if (netdev.device != nullptr || netdev.parent != nullptr) {
            info.mac = netdev.mac;
        }
        if (netdev.parent != nullptr) {
            info.link = netdev.parent->name;
            info.vlan_id = netdev.vlan_id;
        }
        info.addresses = netdev.addresses;
        if (netdev.link_local && std::ranges::none_of(netdev.addresses, [&](const auto& own) {
                return own.address == net::IpAddr{*netdev.link_local};
            })) {
            info.addresses.push_back({*netdev.link_local, 64});
        }
        links.push_back(std::move(info));
    });
    return links;
}

std::vector<AddressInfo> Router::addresses() const {
    std::vector<AddressInfo> list;
    for (const LinkInfo& link : links()) {
        for (const auto& address : link.addresses) {
            list.push_back(
                {.netdev = link.name,
                 .address = address,
                 .link_local = address.address.is_v6() && address.address.v6().is_link_local()});
        }
    }
    return list;
}

void Router::for_each_route(const std::function<void(const RouteInfo&)>& each) const {
    engine_.for_each_route(each);
}

std::optional<net::IpPrefix> Router::routes_after(
    const std::optional<net::IpPrefix>& after,
    std::size_t limit,
    const std::function<void(const RouteInfo&)>& each) const {
    return engine_.routes_after(after, limit, each);
}

std::vector<NeighborInfo> Router::neighbors() const {
    std::vector<NeighborInfo> list;
    engine_.neighbors().table().for_each([&](const Neighbor& neighbor) {
        const Netdev* netdev = engine_.netdevs().find(neighbor.key.netdev);
        list.push_back({.address = neighbor.key.address,
                        .netdev = netdev == nullptr ? "" : netdev->name,
                        .lladdr = neighbor.mac,
                        .state = std::string(to_string(neighbor.state))});
    });
    return list;
}

stats::NetdevCounters Router::netdev_counters(NetdevId netdev) const {
    stats::NetdevCounters sum{};
    for (std::size_t writer = 0; writer <= engine_.dataplane().workers(); ++writer) {
        stats::accumulate(sum, netdev_counters_of(netdev, writer));
    }
    return sum;
}

stats::NetdevCounters Router::netdev_counters_of(NetdevId netdev, std::size_t writer) const {
    return engine_.counters(*engine_.netdevs().find(netdev), writer);
}

std::vector<WorkerInfo> Router::workers() const {
    return engine_.dataplane().worker_infos();
}

std::vector<PoolInfo> Router::pools() const {
    return engine_.dataplane().pool_infos();
}

}  // namespace sluice::control
