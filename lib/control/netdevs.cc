// SPDX-License-Identifier: BSD-3-Clause
#include "control/netdevs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "control/changes.h"
#include "control/netns.h"
#include "control/policies.h"

namespace sluice::control {
namespace {

// While there are new ids, an old one rests longer than a worker holds a packet (10 s, kHoldMaxNs
// in pipeline/resolve.cc): whoever reads counters or logs sees two netdevs apart.
constexpr std::chrono::seconds kIdRest{15};

fib::FlowHashFields hash_fields(const config::MultipathHash& hash) noexcept {
    using enum config::HashPolicy;
    if (hash.policy == kCustom) {
        return {.source = hash.fields.source,
                .destination = hash.fields.destination,
                .protocol = hash.fields.protocol,
                .source_port = hash.fields.source_port,
                .destination_port = hash.fields.destination_port,
                .flow_label = hash.fields.flow_label,
                .custom = true};
    }
    const bool l4 = hash.policy == kL4;
    return {.protocol = l4, .source_port = l4, .destination_port = l4, .flow_label = true};
}

// The file's words and the workers' are two enumerations of one order.
static_assert(std::to_underlying(config::SourceValidation::kOff) ==
              std::to_underlying(fib::SourceValidation::kOff));
static_assert(std::to_underlying(config::SourceValidation::kLoose) ==
              std::to_underlying(fib::SourceValidation::kLoose));
static_assert(std::to_underlying(config::SourceValidation::kStrict) ==
              std::to_underlying(fib::SourceValidation::kStrict));

bool is_link_local6(const net::IpAddr& address) noexcept {
    return address.is_v6() && address.v6().is_link_local();
}

}  // namespace

Netdev& Netdev::domain() const noexcept {
    if (master != nullptr) {
        return *master;
    }
    return kind == fib::NetdevKind::kVrf ? const_cast<Netdev&>(*this) : *netns->lo;  // NOLINT
}

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
        if (const auto why = own.never_a_host(address); !why.empty()) {
            return why;
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

Netdevs::Netdevs(fib::Shared& shared, Changes& changes, Clock clock)
    : shared_(shared), changes_(changes), clock_(std::move(clock)), classes_(changes) {}

Netdevs::~Netdevs() {
    for (std::size_t id = 0; id < ids_end_; ++id) {
        delete shared_.publish(NetdevId{static_cast<std::uint16_t>(id)}, nullptr);
    }
}

// --- ids ----------------------------------------------------------------------------------------

bool Netdevs::is_free(const Gone& gone) const {
    return gone.unknown && dsts(gone.id) == 0 && held(gone.id) == 0;
}

std::vector<Netdevs::Gone> Netdevs::draining() const {
    std::vector<Gone> list;
    std::ranges::copy_if(
        gone_, std::back_inserter(list), [&](const Gone& gone) { return !is_free(gone); });
    return list;
}

std::optional<NetdevId> Netdevs::take_id() {
    const auto take = [&](std::deque<Gone>::iterator it) {
        const NetdevId id = it->id;
        gone_.erase(it);
        return id;
    };
    if (!gone_.empty() && clock_() - gone_.front().since >= kIdRest && is_free(gone_.front())) {
        return take(gone_.begin());
    }
    if (ids_end_ < kMaxNetdevs) {
        return NetdevId{static_cast<std::uint16_t>(ids_end_++)};
    }
    const auto it = std::ranges::find_if(gone_, [&](const Gone& gone) { return is_free(gone); });
    return it == gone_.end() ? std::nullopt : std::optional(take(it));
}

Result<void> Netdevs::room(std::size_t count) {
    std::size_t found = kMaxNetdevs - ids_end_;
    for (auto it = gone_.begin(); it != gone_.end() && found < count; ++it) {
        found += is_free(*it) ? 1 : 0;
    }
    if (found < count) {
        return fail(ErrorCode::kLimit,
                    "all {} netdevs are in use; those deleted that are not drained yet count",
                    kMaxNetdevs);
    }
    return {};
}

void Netdevs::retire(Netdev& netdev) {
    swap_view(netdev.id, nullptr);
    used_before_[netdev.id.value] = true;
    gone_.push_back({.id = netdev.id, .name = netdev.name, .since = clock_()});
    // Twice: a worker that learns within the first period that the netdev is gone still books the
    // packets it held.
    changes_.defer([this, id = netdev.id] {
        changes_.defer([this, id] {
            const auto it = std::ranges::find(gone_, id, &Gone::id);
            SLUICE_CHECK(it != gone_.end());
            it->unknown = true;
        });
    });
}

Result<Netdev*> Netdevs::create(const std::string& name, fib::NetdevKind kind, Netns& netns) {
    if (netns.find(name) != nullptr) {
        return fail(ErrorCode::kExists, "netdev {} is there already", name);
    }
    if (auto ok = room(1); !ok) {
        return std::unexpected(ok.error());
    }
    auto netdev = std::make_unique<Netdev>();
    netdev->id = *take_id();
    netdev->name = name;
    netdev->kind = kind;
    netdev->netns = &netns;
    Netdev* made = netdev.get();
    netns.netdevs.emplace(name, made);
    by_id_[made->id.value] = std::move(netdev);
    return made;
}

void Netdevs::destroy(Netdev& netdev) {
    retire(netdev);
    netdev.netns->netdevs.erase(netdev.name);
    by_id_[netdev.id.value].reset();
}

void Netdevs::move(Netdev& netdev, Netns& to) {
    retire(netdev);
    netdev.netns->netdevs.erase(netdev.name);
    auto owned = std::move(by_id_[netdev.id.value]);
    netdev.id = *take_id();
    netdev.netns = &to;
    netdev.master = nullptr;
    to.netdevs.emplace(netdev.name, &netdev);
    by_id_[netdev.id.value] = std::move(owned);
}

// --- addresses ----------------------------------------------------------------------------------

Netdev* Netdevs::owner_of(const Netdev& domain, const net::IpAddr& address) noexcept {
    if (is_link_local6(address)) {
        return nullptr;
    }
    for (const auto& [name, netdev] : domain.netns->netdevs) {
        if (netdev->owns(address) && &netdev->domain() == &domain) {
            return netdev;
        }
    }
    return nullptr;
}

Netdev* Netdevs::on_link(const Netdev& domain, const net::IpAddr& address) noexcept {
    if (is_link_local6(address)) {
        return nullptr;
    }
    Netdev* found = nullptr;
    int longest = -1;
    for (const auto& [name, netdev] : domain.netns->netdevs) {
        for (const auto& own : netdev->addresses) {
            if (own.length > longest && own.network().contains(address) &&
                &netdev->domain() == &domain) {
                longest = own.length;
                found = netdev;
            }
        }
    }
    return found;
}

// --- views --------------------------------------------------------------------------------------

std::unique_ptr<fib::NetdevView> Netdevs::make_view(const Netdev& netdev) {
    auto view = std::make_unique<fib::NetdevView>();
    const Netns& netns = *netdev.netns;
    const Netdev& domain = netdev.domain();
    view->id = netdev.id;
    view->kind = netdev.kind;
    view->netns = netns.id;
    view->loopback = netns.lo->id;
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
    view->fib4 = &domain.table->v4.lpm();
    view->fib6 = &domain.table->v6.lpm();
    view->local = domain.local;
    view->domain = domain.id;
    view->policy4 = netns.policies->policy4(netdev);
    view->policy6 = netns.policies->policy6(netdev);
    view->generations4 = &netns.generations4;
    view->generations6 = &netns.generations6;
    view->source_validation =
        static_cast<fib::SourceValidation>(std::to_underlying(netdev.settings.source_validation));
    view->send_redirects = netdev.settings.send_redirects;
    view->hash4 = hash_fields(netns.hash4);
    view->hash6 = hash_fields(netns.hash6);
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
    const auto [number, reused] = classes_.take(*view);
    if (reused) {
        changes_.all_now(*netdev.netns);
    }
    view->ingress_class = number;
    return view;
}

void Netdevs::swap_view(NetdevId id, const fib::NetdevView* view) {
    if (const fib::NetdevView* old = shared_.publish(id, view); old != nullptr) {
        classes_.drop(old->ingress_class);
        changes_.defer([old] { delete old; });
    }
}

void Netdevs::publish(const Netdev& netdev) {
    swap_view(netdev.id, make_view(netdev).release());
}

void Netdevs::publish_domain(Netdev& domain) {
    std::vector<net::Ipv4Addr> v4;
    std::vector<net::Ipv6Addr> v6;
    std::vector<net::Ipv4Addr> broadcasts;
    std::vector<Netdev*> members;
    for (const auto& [name, netdev] : domain.netns->netdevs) {
        if (&netdev->domain() != &domain) {
            continue;
        }
        members.push_back(netdev);
        for (const auto& own : netdev->addresses) {
            if (own.address.is_v4()) {
                v4.push_back(own.address.v4());
                if (const auto broadcast = own.broadcast()) {
                    broadcasts.push_back(*broadcast);
                }
            } else if (!own.address.v6().is_link_local()) {
                v6.push_back(own.address.v6());
            }
        }
        if (netdev->link_local) {
            v6.push_back(*netdev->link_local);
        }
    }
    domain.local = std::make_shared<const fib::LocalAddresses>(
        std::move(v4), std::move(v6), std::move(broadcasts));
    for (const Netdev* netdev : members) {
        publish(*netdev);
    }
}

void Netdevs::publish_all(const Netns& netns) {
    for (const auto& [name, netdev] : netns.netdevs) {
        publish(*netdev);
    }
}

}  // namespace sluice::control
