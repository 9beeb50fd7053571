// SPDX-License-Identifier: BSD-3-Clause
#include "control/netdevs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice::control {
namespace {

// A worker holds a packet for up to 10 s (kHoldMaxNs in pipeline/resolve.cc) and books it off the
// netdev where it came in; rings to and from the control thread are empty long before.
constexpr std::chrono::seconds kIdQuarantine{15};

bool is_link_local6(const net::IpAddr& address) noexcept {
    return address.is_v6() && address.v6().is_link_local();
}

}  // namespace

bool Netdev::carrier() const noexcept {
    return port().device == nullptr || port().link.up;
}

bool Netdev::has(net::Family family) const noexcept {
    return std::ranges::any_of(addresses,
                               [&](const auto& own) { return own.address.family() == family; });
}

bool Netdev::owns(const net::IpAddr& address) const noexcept {
    return (link_local && address == net::IpAddr{*link_local}) ||
           std::ranges::any_of(addresses, [&](const auto& own) { return own.address == address; });
}

bool Netdev::on_link(const net::IpAddr& address) const noexcept {
    if (is_link_local6(address)) {
        return link_local.has_value();
    }
    return std::ranges::any_of(addresses,
                               [&](const auto& own) { return own.network().contains(address); });
}

bool Netdev::is_broadcast(const net::Ipv4Addr& address) const noexcept {
    return address.is_limited_broadcast() || std::ranges::any_of(addresses, [&](const auto& own) {
               return own.address.is_v4() && own.broadcast() == address;
           });
}

std::string_view Netdev::never_a_host(const net::IpAddr& address) const noexcept {
    for (const auto& own : addresses) {
        if (!own.address.is_v4() || !address.is_v4()) {
            continue;
        }
        if (own.broadcast() == address.v4()) {
            return "the broadcast address";
        }
        if (own.length < 31 && own.network().v4().address == address.v4()) {
            return "the network's own address";
        }
    }
    return {};
}

std::optional<net::Ipv6Addr> link_local_of(const Netdev& netdev) {
    const auto configured = std::ranges::find_if(
        netdev.addresses, [](const auto& own) { return is_link_local6(own.address); });
    if (configured != netdev.addresses.end()) {
        return configured->address.v6();
    }
    if (!netdev.has(net::Family::kIpv6)) {
        return std::nullopt;
    }
    return net::link_local_from_mac(netdev.mac);
}

Netdevs::Netdevs(fib::Shared& shared, Reclaimer& reclaimer, Clock clock)
    : shared_(shared), reclaimer_(reclaimer), clock_(std::move(clock)) {}

Netdevs::~Netdevs() {
    for (std::size_t id = 0; id < ids_end_; ++id) {
        delete shared_.publish(NetdevId{static_cast<std::uint16_t>(id)}, nullptr);
    }
}

std::optional<NetdevId> Netdevs::take_id() {
    if (!free_ids_.empty() && clock_() - free_ids_.front().destroyed >= kIdQuarantine) {
        const NetdevId id = free_ids_.front().id;
        free_ids_.pop_front();
        return id;
    }
    if (ids_end_ == kMaxNetdevs) {
        return std::nullopt;
    }
    return NetdevId{static_cast<std::uint16_t>(ids_end_++)};
}

Result<Netdev*> Netdevs::create(const std::string& name, fib::NetdevKind kind, Netns& netns) {
    if (by_name_.contains(name)) {
        return fail(ErrorCode::kExists, "netdev {} is there already", name);
    }
    const auto id = take_id();
    if (!id) {
        return fail(ErrorCode::kLimit,
                    "all {} netdevs are in use; those deleted within the last {} s count",
                    kMaxNetdevs,
                    kIdQuarantine.count());
    }
    auto netdev = std::make_unique<Netdev>();
    netdev->id = *id;
    netdev->name = name;
    netdev->kind = kind;
    netdev->netns = &netns;
    by_id_[id->value] = netdev.get();
    return by_name_.emplace(name, std::move(netdev)).first->second.get();
}

void Netdevs::destroy(Netdev& netdev) {
    const NetdevId id = netdev.id;
    swap_view(id, nullptr);
    by_id_[id.value] = nullptr;
    by_name_.erase(by_name_.find(netdev.name));
    // Twice: a worker that learns within the first period that the netdev is gone still books the
    // packets it held.
    const FreeId free{id, clock_()};
    reclaimer_.defer(
        [this, free] { reclaimer_.defer([this, free] { free_ids_.push_back(free); }); });
}

Netdev* Netdevs::find(std::string_view name) const noexcept {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second.get();
}

Result<Netdev*> Netdevs::get(std::string_view name) const {
    Netdev* netdev = find(name);
    if (netdev == nullptr) {
        return fail(ErrorCode::kNotFound, "no netdev {}", name);
    }
    return netdev;
}

Netdev* Netdevs::owner_of(const net::IpAddr& address) const noexcept {
    if (is_link_local6(address)) {
        return nullptr;
    }
    Netdev* found = nullptr;
    for_each([&](Netdev& netdev) {
        if (found == nullptr && netdev.owns(address)) {
            found = &netdev;
        }
    });
    return found;
}

Netdev* Netdevs::on_link(const net::IpAddr& address) const noexcept {
    if (is_link_local6(address)) {
        return nullptr;
    }
    Netdev* found = nullptr;
    int longest = -1;
    for_each([&](Netdev& netdev) {
        for (const auto& own : netdev.addresses) {
            if (own.length > longest && own.network().contains(address)) {
                longest = own.length;
                found = &netdev;
            }
        }
    });
    return found;
}

std::unique_ptr<fib::NetdevView> Netdevs::make_view(const Netdev& netdev) const {
    auto view = std::make_unique<fib::NetdevView>();
    view->id = netdev.id;
    view->kind = netdev.kind;
    view->netns = netdev.netns->id;
    view->loopback = netdev.netns->loopback;
    view->up = netdev.up();
    view->forwarding = netdev.settings.forwarding;
    view->route_localnet = netdev.settings.route_localnet;
    view->bc_forwarding = netdev.settings.bc_forwarding;
    view->forward_class_e = forward_class_e;
    view->has_ipv4 = netdev.has(net::Family::kIpv4);
    view->has_ipv6 = netdev.link_local.has_value();
    if (netdev.port().device != nullptr) {
        view->port = netdev.port().device->id().value;
    }
    view->vlan_id = netdev.vlan_id;
    view->mtu = netdev.settings.mtu;
    view->mac = netdev.mac;
    view->fib4 = netdev.netns->fib4;
    view->fib6 = netdev.netns->fib6;
    view->local = netdev.netns->local;
    for (const auto& own : netdev.addresses) {
        if (own.address.is_v4()) {
            view->addresses4.push_back({own.address.v4(), own.length});
        } else if (!own.address.v6().is_link_local()) {
            view->addresses6.push_back({own.address.v6(), own.length});
        }
    }
    view->link_local = netdev.link_local.value_or(net::Ipv6Addr{});
    if (!netdev.vlans.empty()) {
        view->vlans = std::make_unique<std::array<NetdevId, 4096>>();
        for (const Netdev* vlan : netdev.vlans) {
            (*view->vlans)[vlan->vlan_id] = vlan->id;
        }
    }
    return view;
}

void Netdevs::swap_view(NetdevId id, const fib::NetdevView* view) {
    if (const fib::NetdevView* old = shared_.publish(id, view); old != nullptr) {
        reclaimer_.defer([old] { delete old; });
    }
}

void Netdevs::publish(const Netdev& netdev) {
    swap_view(netdev.id, make_view(netdev).release());
}

void Netdevs::publish_all(Netns& netns) {
    std::vector<net::Ipv4Addr> v4;
    std::vector<net::Ipv6Addr> v6;
    for_each([&](const Netdev& netdev) {
        if (netdev.netns != &netns) {
            return;
        }
        for (const auto& own : netdev.addresses) {
            if (own.address.is_v4()) {
                v4.push_back(own.address.v4());
            } else if (!own.address.v6().is_link_local()) {
                v6.push_back(own.address.v6());
            }
        }
        if (netdev.link_local) {
            v6.push_back(*netdev.link_local);
        }
    });
    netns.local = std::make_shared<const fib::LocalAddresses>(std::move(v4), std::move(v6));
    for_each([&](const Netdev& netdev) {
        if (netdev.netns == &netns) {
            publish(netdev);
        }
    });
}

}  // namespace sluice::control
