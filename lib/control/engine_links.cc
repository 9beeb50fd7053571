// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>
#include <utility>

#include <spdlog/spdlog.h>

#include "control/engine.h"
#include "control/names.h"
#include "net/wire.h"

namespace sluice::control {

using fib::DstType;
using fib::NetdevKind;

Result<void> Engine::add_port(Netns& netns, const std::string& name, const config::Port& port) {
    if (auto ok = check_name(name); !ok) {
        return ok;
    }
    if (netns.find(name) != nullptr) {
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
    if (auto ok = netdevs_.room(1); !ok) {
        return ok;
    }
    auto device = dataplane_.open(options);
    if (!device) {
        return std::unexpected(device.error());
    }
    const Changes::Scope change(changes_);
    auto made = make_netdev(netns, name, NetdevKind::kPort);
    if (!made) {
        return std::unexpected(made.error());
    }
    Netdev& netdev = **made;
    netdev.settings = port.settings;
    netdev.devargs = port.device;
    netdev.device = std::move(*device);
    netdev.promiscuous = port.settings.promiscuous;
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
    changes_.all(netns);
    return {};
}

Result<void> Engine::add_vlan(Netns& netns, const std::string& name, const config::Vlan& vlan) {
    if (auto ok = check_name(name); !ok) {
        return ok;
    }
    const Result<Netns*> home =
        vlan.link_netns.empty() ? Result<Netns*>(&netns) : netns_.get(vlan.link_netns);
    if (!home) {
        return std::unexpected(home.error());
    }
    const auto parent = (*home)->get(vlan.link);
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
    const Changes::Scope change(changes_);
    auto made = make_netdev(netns, name, NetdevKind::kVlan);
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
    changes_.all(netns);
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

}  // namespace sluice::control
