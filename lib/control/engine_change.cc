// SPDX-License-Identifier: BSD-3-Clause
// Changes to netdevs that stay: settings, carrier, and what of them reaches routes and neighbors.
#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "control/engine.h"
#include "control/policies.h"
#include "net/wire.h"

namespace sluice::control {

using fib::DstType;
using fib::NetdevKind;

namespace {

bool has_own_mac(const Netdev& vlan) {
    return vlan.settings.mac.has_value() && *vlan.settings.mac != vlan.parent->mac;
}

}  // namespace

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
    const bool on =
        wanted || std::ranges::any_of(port.vlans, [](auto* vlan) { return has_own_mac(*vlan); });
    if (on == port.promiscuous) {
        return {};
    }
    auto ok = port.device->set_promiscuous(on);
    if (ok) {
        port.promiscuous = on;
    }
    return ok;
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

Result<void> Engine::change_netdev(Netns& netns,
                                   const std::string& name,
                                   const config::NetdevSettings& to) {
    const auto found = netns.get(name);
    if (!found) {
        return std::unexpected(found.error());
    }
    Netdev& netdev = **found;
    if (!netdev.is_link()) {
        return fail(ErrorCode::kUnsupported, "{} does not change", name);
    }
    if (auto ok = check_settings(netdev, to); !ok) {
        return ok;
    }
    if (netdev.settings == to) {
        return {};
    }
    const Changes::Scope change(changes_);
    if (netdev.device != nullptr) {
        if (auto ok = set_up_device(netdev, to); !ok) {
            return ok;
        }
    }
    const config::NetdevSettings from = std::exchange(netdev.settings, to);
    if (from.mtu != to.mtu) {
        hops_.set_mtu(netdev);
        neighbors_.set_mtu(netdev);
        exceptions_.set_link_mtu(netdev.id, from.mtu, to.mtu);
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
    changes_.all(netns);
    if (from.mark != to.mark) {
        netns.policies->collect();
    }
    if (from.up != to.up) {
        went_up_or_down(netdev);
        for (Netdev* vlan : netdev.vlans) {
            netdevs_.publish(*vlan);
            went_up_or_down(*vlan);
            changes_.all(*vlan->netns);
        }
    }
    return {};
}

void Engine::went_up_or_down(Netdev& netdev) {
    reassess(netdev);
    if (netdev.up()) {
        neighbors_.announce_own(netdev);
    } else {
        exceptions_.flush_netdev(netdev.id);
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
        hops_.release(*old, hop.family);
    });
    netdevs_.publish_domain(netdev.domain());
    changes_.all(*netdev.netns);
    changes_.defer([this, id = netdev.id] { mac_settled(id); });
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
    exceptions_.for_each_dst_on(id, [&](fib::Dst& dst) { set_source_mac(dst, netdev->mac); });
    neighbors_.announce_on(*netdev);
    neighbors_.announce_own(*netdev);
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
