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

bool has_own_mac(const Netdev& vlan) {
    return vlan.settings.mac.has_value() && *vlan.settings.mac != vlan.parent->mac;
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

// --- change -------------------------------------------------------------------------------------

Result<void> Engine::check_settings(const Netdev& netdev, const config::NetdevSettings& to) const {
    const auto refuse = [&](ErrorCode code, const std::string& why) {
        return fail(code, "{}: {}", netdev.name, why);
    };
    if (to.mac && (to.mac->is_group() || to.mac->is_zero())) {
        return refuse(ErrorCode::kInvalid, to.mac->to_string() + " is no MAC of a station");
    }
    if (to.mtu < net::kIpv4MinMtu) {
        return refuse(ErrorCode::kInvalid,
                      fmt::format("MTU {} is below {} (RFC 791)", to.mtu, net::kIpv4MinMtu));
    }
    if (to.mtu < net::kIpv6MinMtu && netdev.has(net::Family::kIpv6)) {
        return refuse(ErrorCode::kInvalid,
                      fmt::format("MTU {} is below {}, and it has IPv6 addresses (RFC 8200 5)",
                                  to.mtu,
                                  net::kIpv6MinMtu));
    }
    if (netdev.parent != nullptr && to.mtu > netdev.parent->settings.mtu) {
        return refuse(ErrorCode::kInvalid,
                      fmt::format("MTU {} is more than the {} of {}",
                                  to.mtu,
                                  netdev.parent->settings.mtu,
                                  netdev.parent->name));
    }
    if (netdev.parent != nullptr && to.promiscuous) {
        return refuse(ErrorCode::kUnsupported, "promiscuous is of ports, not of VLANs");
    }
    for (const Netdev* vlan : netdev.vlans) {
        if (vlan->settings.mtu > to.mtu) {
            return refuse(ErrorCode::kInvalid,
                          fmt::format("MTU {} is less than the {} of its VLAN {}",
                                      to.mtu,
                                      vlan->settings.mtu,
                                      vlan->name));
        }
    }
    return {};
}

Result<void> Engine::update_promiscuous(Netdev& port, bool wanted) {
    if (port.device == nullptr) {
        return {};
    }
    // The device would not take frames for a VLAN's own MAC.
    return port.device->set_promiscuous(
        wanted || std::ranges::any_of(port.vlans, [](auto* vlan) { return has_own_mac(*vlan); }));
}

Result<void> Engine::set_device_mtu(Netdev& netdev, std::uint16_t mtu) {
    auto ok = netdev.device->set_mtu(mtu);
    if (ok || ok.error().code != ErrorCode::kBusy) {
        return ok;
    }
    const auto tell = [&] {
        netdevs_.publish(netdev);
        reassess(netdev);
        for (const Netdev* vlan : netdev.vlans) {
            netdevs_.publish(*vlan);
            reassess(*vlan);
        }
    };
    netdev.stopped = true;
    tell();
    queues_.withdraw(netdev);
    ok = quiesce(netdev.name);
    if (ok) {
        netdev.device->stop();
        ok = netdev.device->set_mtu(mtu);
        if (auto started = netdev.device->start(); !started) {
            spdlog::error("{}: {}", netdev.name, started.error().message);
            ok = std::move(started);
        }
    }
    queues_.publish(netdev);
    netdev.stopped = false;
    tell();
    return ok;
}

Result<void> Engine::set_up_device(Netdev& netdev, const config::NetdevSettings& to) {
    PortDevice& device = *netdev.device;
    const std::uint16_t old_mtu = netdev.settings.mtu;
    if (to.mtu != old_mtu) {
        if (auto ok = set_device_mtu(netdev, to.mtu); !ok) {
            return ok;
        }
    }
    const net::MacAddr mac = to.mac.value_or(device.own_mac());
    Result<void> ok;
    if (mac != netdev.mac) {
        ok = device.set_mac(mac);
    }
    if (ok && to.promiscuous != netdev.settings.promiscuous) {
        ok = update_promiscuous(netdev, to.promiscuous);
        if (!ok && mac != netdev.mac) {
            static_cast<void>(device.set_mac(netdev.mac));
        }
    }
    if (!ok && to.mtu != old_mtu) {
        static_cast<void>(set_device_mtu(netdev, old_mtu));
    }
    for (const std::string& note : device.take_notes()) {
        spdlog::warn("{}: {}", netdev.name, note);
    }
    return ok;
}

Result<void> Engine::change_netdev(const std::string& name, const config::NetdevSettings& to) {
    const auto found = netdevs_.get(name);
    if (!found) {
        return std::unexpected(found.error());
    }
    Netdev& netdev = **found;
    if (netdev.kind != NetdevKind::kPort && netdev.kind != NetdevKind::kVlan) {
        return fail(ErrorCode::kUnsupported, "{} does not change", name);
    }
    if (auto ok = check_settings(netdev, to); !ok) {
        return ok;
    }
    if (netdev.device != nullptr) {
        if (auto ok = set_up_device(netdev, to); !ok) {
            return ok;
        }
    }
    const config::NetdevSettings from = std::exchange(netdev.settings, to);
    if (from.mtu != to.mtu) {
        hops_.set_mtu(netdev);
        neighbors_.set_mtu(netdev);
    }
    const net::MacAddr inherited =
        netdev.device != nullptr ? netdev.device->mac() : netdev.port().mac;
    if (const net::MacAddr mac = to.mac.value_or(inherited); mac != netdev.mac) {
        change_mac(netdev, mac);
    }
    if (netdev.parent != nullptr) {
        static_cast<void>(update_promiscuous(*netdev.parent, netdev.parent->settings.promiscuous));
    }
    netdevs_.publish(netdev);
    if (from.up != to.up) {
        went_up_or_down(netdev);
        for (Netdev* vlan : netdev.vlans) {
            netdevs_.publish(*vlan);
            went_up_or_down(*vlan);
        }
    }
    return {};
}

void Engine::went_up_or_down(Netdev& netdev) {
    reassess(netdev);
    if (netdev.up()) {
        neighbors_.announce_own(netdev);
    } else {
        neighbors_.table().flush(netdev.id, true);
    }
}

void Engine::change_mac(Netdev& netdev, const net::MacAddr& mac) {
    netdev.mac = mac;
    netdev.link_local = link_local_of(netdev);
    ++netdev.rewriting;
    neighbors_.unresolve_on(netdev.id);
    hops_.for_each_on(netdev.id, [&](NextHop& hop) {
        if (hop.key.type != DstType::kBroadcast) {
            return;
        }
        const auto old = hops_.renew(hop, netdev);
        if (!old) {
            spdlog::error(
                "{}: broadcasts leave with the old MAC: {}", netdev.name, old.error().message);
            return;
        }
        update_routes(hop);
        hops_.release(*old);
    });
    netdevs_.publish_all(netns_);
    rcu_.defer([this, id = netdev.id] { mac_settled(id); });
    for (Netdev* vlan : netdev.vlans) {
        if (!vlan->settings.mac) {
            change_mac(*vlan, mac);
        }
    }
    warn_of_twins(netdev);
}

void Engine::mac_settled(NetdevId id) {
    // The id cannot be another netdev's yet: see Netdevs::destroy.
    Netdev* netdev = netdevs_.find(id);
    if (netdev == nullptr || --netdev->rewriting > 0) {
        return;
    }
    hops_.refill(*netdev);
    neighbors_.refill(*netdev);
    neighbors_.announce_on(*netdev);
    neighbors_.announce_own(*netdev);
}

void Engine::change_instance(const config::ChangeInstance& change) {
    const auto per_worker = [&](std::uint32_t limit) {
        const auto workers = static_cast<std::uint32_t>(dataplane_.workers());
        // Rounded up: a limit of 1 with two workers is not a limit of 0.
        return (limit + workers - 1) / workers;
    };
    shared_.icmp_error_rate.store(per_worker(change.icmp.error_rate), std::memory_order_relaxed);
    shared_.icmp_error_burst.store(per_worker(change.icmp.error_burst), std::memory_order_relaxed);
    shared_.idle_sleep.store(change.idle == config::IdleMode::kAdaptive, std::memory_order_relaxed);
    netdevs_.forward_class_e = change.forward_class_e;
    netdevs_.publish_all(netns_);
}

void Engine::close_ports() {
    netdevs_.for_each([](Netdev& netdev) { netdev.device.reset(); });
    while (!closing_.empty()) {
        rcu_.drain_blocking();
    }
}

void Engine::poll_links() {
    netdevs_.for_each([&](Netdev& netdev) {
        if (netdev.device == nullptr) {
            return;
        }
        const dpdk::Link link = netdev.device->link();
        if (link.up != netdev.link.up) {
            spdlog::info("{}: link {}", netdev.name, link.up ? "up" : "down");
        }
        const bool came_up = link.up && !netdev.link.up;
        netdev.link = link;
        if (came_up) {
            // Whoever is at the other end now may know nothing of us.
            neighbors_.announce_own(netdev);
            for (const Netdev* vlan : netdev.vlans) {
                neighbors_.announce_own(*vlan);
            }
        }
    });
}

}  // namespace sluice::control
