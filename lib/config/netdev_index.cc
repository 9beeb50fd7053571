// SPDX-License-Identifier: BSD-3-Clause
#include "config/netdev_index.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/netns.h"
#include "config/spelling.h"

namespace sluice::config {
namespace {

constexpr std::size_t kMaxListed = 16;  // more say little

}  // namespace

NetdevIndex::NetdevIndex(const Netns& netns) : netns_(netns) {
    Domain last = kDefaultDomain;
    for (const auto& [name, vrf] : netns.vrfs) {
        const Domain domain = ++last;
        tables_.emplace(vrf.table, domain);
        for (const auto& member : vrf.interfaces) {
            domains_.emplace(member, domain);
        }
    }
    for (const auto& [name, port] : netns.ports) {
        add(name, port.settings, port.settings.mac, port.addresses);
    }
    for (const auto& [name, vlan] : netns.vlans) {
        const Port* port = vlan.link_netns.empty() ? find_port(netns, vlan.link) : nullptr;
        const bool inherits = !vlan.settings.mac && port != nullptr;
        add(name, vlan.settings, inherits ? port->settings.mac : vlan.settings.mac, vlan.addresses);
    }
}

void NetdevIndex::add(const std::string& name,
                      const NetdevSettings& settings,
                      const std::optional<net::MacAddr>& mac,
                      const std::vector<Address>& addresses) {
    const auto member = domains_.find(name);
    NetdevFacts facts{.addresses = {},
                      .mtu = settings.mtu,
                      .domain = member == domains_.end() ? kDefaultDomain : member->second,
                      .link_local = {}};
    if (mac) {
        facts.link_local = net::link_local_from_mac(*mac);
    }
    for (const Address& address : addresses) {
        const auto network = address.value.network();
        facts.addresses.push_back(address.value);
        own_.insert({facts.domain, address.value.address});
        auto& owner = subnets_[{facts.domain, network.family()}][network.length()][network];
        if (owner.empty() || name < owner) {
            owner = name;
        }
    }
    netdevs_.emplace(name, std::move(facts));
}

const NetdevFacts* NetdevIndex::find(const std::string& name) const {
    const auto it = netdevs_.find(name);
    return it == netdevs_.end() ? nullptr : &it->second;
}

const Vrf* NetdevIndex::find_vrf(const std::string& name) const {
    const auto it = netns_.vrfs.find(name);
    return it == netns_.vrfs.end() ? nullptr : &it->second;
}

Domain NetdevIndex::domain_of_table(std::uint32_t table) const {
    const auto it = tables_.find(table);
    return it == tables_.end() ? kDefaultDomain : it->second;
}

bool NetdevIndex::owns(Domain domain, const net::IpAddr& address) const {
    return own_.contains({domain, address});
}

std::string_view NetdevIndex::on_link(Domain domain, const net::IpAddr& address) const {
    const auto subnets = subnets_.find({domain, address.family()});
    if (subnets == subnets_.end()) {
        return {};
    }
    for (const auto& [length, owners] : subnets->second) {
        const auto owner = owners.find(net::IpPrefix::of(address, length));
        if (owner != owners.end()) {
            return owner->second;
        }
    }
    return {};
}

std::vector<std::string_view> NetdevIndex::names() const {
    std::vector<std::string_view> names;
    if (netdevs_.size() <= kMaxGuessed) {
        for (const auto& [name, facts] : netdevs_) {
            names.push_back(name);
        }
    }
    return names;
}

std::string NetdevIndex::no_netdev(std::string_view name) const {
    return guess(name, "port or vlan", names());
}

std::string NetdevIndex::no_netdev_or_vrf(std::string_view name) const {
    auto all = names();
    if (netns_.vrfs.empty() || all.size() + netns_.vrfs.size() > kMaxGuessed) {
        return guess(name, "port or vlan", std::move(all));
    }
    for (const auto& [vrf, content] : netns_.vrfs) {
        all.push_back(vrf);
    }
    return guess(name, "port, vlan or vrf", std::move(all));
}

std::string NetdevIndex::guess(std::string_view name,
                               std::string_view what,
                               std::vector<std::string_view> names) const {
    std::sort(names.begin(), names.end());
    if (const auto close = nearest(name, names); !close.empty()) {
        return fmt::format("'{}' is no {} here: did you mean '{}'?", name, what, close);
    }
    if (names.empty() || names.size() > kMaxListed) {
        return fmt::format("'{}' is no {} here: there {}",
                           name,
                           what,
                           netdevs_.empty() ? "is none" : "are many others");
    }
    return fmt::format("'{}' is no {} here: there is {}", name, what, fmt::join(names, ", "));
}

}  // namespace sluice::config
