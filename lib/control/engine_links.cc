// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>
#include <utility>

#include <spdlog/spdlog.h>

#include "control/engine.h"
#include "net/wire.h"

namespace sluice::control {

using fib::DstType;
using fib::NetdevKind;

namespace {

constexpr std::size_t kMaxNameLength = 31;

Result<void> check_name(const std::string& name) {
    const bool fine = !name.empty() && name.size() <= kMaxNameLength &&
                      std::ranges::none_of(
                          name, [](unsigned char c) { return c <= ' ' || c == '/' || c == 0x7f; });
    if (!fine) {
        return fail(ErrorCode::kInvalid,
                    "'{}' is no name: 1 to {} characters without space and /",
                    name,
                    kMaxNameLength);
    }
    return {};
}

std::string device_of(const std::string& devargs) {
    return devargs.substr(0, devargs.find(','));
}

}  // namespace

// --- create -------------------------------------------------------------------------------------

Result<void> Engine::add_port(const std::string& name, const config::Port& port) {
    if (auto ok = check_name(name); !ok) {
        return ok;
    }
    if (netdevs_.find(name) != nullptr) {
        return fail(ErrorCode::kExists, "netdev {} is there already", name);
    }
    // A port of the device was deleted a moment ago: it is closed when no worker uses it any more.
    if (closing_.contains(device_of(port.device))) {
        if (auto ok = quiesce(port.device); !ok) {
            return ok;
        }
    }
    dpdk::PortOptions options;
    options.device = port.device;
    options.mac = port.settings.mac;
    options.mtu = port.settings.mtu;
    options.rx_queues = port.rx_queues.value_or(static_cast<std::uint16_t>(dataplane_.workers()));
    options.rx_descriptors = options_.descriptors;
    options.tx_descriptors = options_.descriptors;
    options.promiscuous = port.settings.promiscuous;
    options.rx_interrupts = options_.rx_interrupts;
    auto device = dataplane_.open(options);
    if (!device) {
        return std::unexpected(device.error());
    }
    auto made = make_netdev(name, NetdevKind::kPort);
    if (!made) {
        return std::unexpected(made.error());
    }
    Netdev& netdev = **made;
    netdev.settings = port.settings;
    netdev.devargs = port.device;
    netdev.device = std::move(*device);
    netdev.mac = netdev.device->mac();
    netdev.link = netdev.device->link();
    for (const std::string& note : netdev.device->take_notes()) {
        spdlog::warn("{}: {}", name, note);
    }
    spdlog::info("{}: {} ({}), MAC {}, MTU {}, {} RX queue(s), link {}",
                 name,
                 port.device,
                 netdev.device->driver(),
                 netdev.mac.to_string(),
                 netdev.settings.mtu,
                 netdev.device->rx_queues(),
                 netdev.link.up ? "up" : "down");
    warn_of_twins(netdev);
    netdevs_.publish(netdev);
    queues_.publish(netdev);
    return {};
}

Result<void> Engine::add_vlan(const std::string& name, const config::Vlan& vlan) {
    if (auto ok = check_name(name); !ok) {
        return ok;
    }
    const auto parent = netdevs_.get(vlan.link);
    if (!parent) {
        return std::unexpected(parent.error());
    }
    Netdev& port = **parent;
    if (port.kind != NetdevKind::kPort) {
        return fail(ErrorCode::kUnsupported, "{} is no port: VLANs go on ports", port.name);
    }
    if (vlan.id < 1 || vlan.id > 4094) {
        return fail(ErrorCode::kInvalid, "VLAN id {} is not in 1 to 4094", vlan.id);
    }
    for (const Netdev* other : port.vlans) {
        if (other->vlan_id == vlan.id) {
            return fail(
                ErrorCode::kExists, "{} is VLAN {} of {} already", other->name, vlan.id, port.name);
        }
    }
    auto made = make_netdev(name, NetdevKind::kVlan);
    if (!made) {
        return std::unexpected(made.error());
    }
    Netdev& netdev = **made;
    netdev.parent = &port;
    netdev.vlan_id = vlan.id;
    netdev.settings.mtu = vlan.settings.mtu;
    if (auto ok = check_settings(netdev, vlan.settings); !ok) {
        netdevs_.destroy(netdev);
        return ok;
    }
    netdev.settings = vlan.settings;
    netdev.mac = vlan.settings.mac.value_or(port.mac);
    port.vlans.push_back(&netdev);
    if (auto ok = update_promiscuous(port, port.settings.promiscuous); !ok) {
        port.vlans.pop_back();
        netdevs_.destroy(netdev);
        return ok;
    }
    netdevs_.publish(netdev);
    netdevs_.publish(port);
    return {};
}

void Engine::warn_of_twins(const Netdev& netdev) const {
    netdevs_.for_each([&](const Netdev& other) {
        if (&other != &netdev && other.device != nullptr && other.mac == netdev.mac) {
            spdlog::warn("{} and {} have the same MAC {}: give one of them another (mac:)",
                         other.name,
                         netdev.name,
                         netdev.mac.to_string());
        }
    });
}

// --- delete -------------------------------------------------------------------------------------

Result<void> Engine::delete_netdevs(std::span<const std::string> names) {
    std::vector<Netdev*> vlans;
    std::vector<Netdev*> ports;
    for (const std::string& name : names) {
        const auto netdev = netdevs_.get(name);
        if (!netdev) {
            return std::unexpected(netdev.error());
        }
        if ((*netdev)->kind != NetdevKind::kPort && (*netdev)->kind != NetdevKind::kVlan) {
            return fail(ErrorCode::kInvalid, "{} is always there", name);
        }
        auto& list = (*netdev)->kind == NetdevKind::kVlan ? vlans : ports;
        if (std::ranges::find(list, *netdev) != list.end()) {
            return fail(ErrorCode::kInvalid, "{} is named twice", name);
        }
        list.push_back(*netdev);
    }
    for (const Netdev* port : ports) {
        for (const Netdev* vlan : port->vlans) {
            if (std::ranges::find(vlans, vlan) == vlans.end()) {
                return fail(ErrorCode::kBusy,
                            "{} has the VLAN {}: delete that first, or with it",
                            port->name,
                            vlan->name);
            }
        }
    }
    for (Netdev* vlan : vlans) {
        remove_netdev(*vlan);
    }
    for (Netdev* port : ports) {
        remove_netdev(*port);
    }
    netdevs_.publish_all(netns_);
    return {};
}

void Engine::remove_netdev(Netdev& netdev) {
    // All at once, so that no prefix falls back to another route that is about to go.
    hops_.for_each_on(netdev.id, [](NextHop& hop) { hop.usable = false; });
    hops_.for_each_on(netdev.id, [&](NextHop& hop) {
        while (!hop.routes.empty()) {
            RouteHook& hook = hop.routes.front();
            const auto drop = [&](auto& rib, auto& route, std::size_t& configured) {
                configured -= route.key.owner == RouteOwner::kConnected ? 0 : 1;
                rib.remove(route);
            };
            if (hop.key.family == net::Family::kIpv4) {
                drop(main_.v4, static_cast<Route<net::Ipv4Addr>&>(hook), configured4_);
            } else {
                drop(main_.v6, static_cast<Route<net::Ipv6Addr>&>(hook), configured6_);
            }
        }
        hops_.drop_if_unused(hop);
    });
    netdev.stopped = true;  // for good: its neighbors did not fail, they are gone
    neighbors_.table().flush(netdev.id, false);
    if (netdev.parent != nullptr) {
        Netdev& port = *netdev.parent;
        std::erase(port.vlans, &netdev);
        static_cast<void>(update_promiscuous(port, port.settings.promiscuous));
    }
    if (netdev.device != nullptr) {
        queues_.withdraw(netdev);
        const std::string device = device_of(netdev.devargs);
        closing_.insert(device);
        rcu_.defer([this, device, closing = std::move(netdev.device)]() mutable {
            closing.reset();
            closing_.erase(device);
        });
    }
    netdevs_.destroy(netdev);
}

}  // namespace sluice::control
