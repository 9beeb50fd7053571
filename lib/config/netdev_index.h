// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "config/model.h"

namespace sluice::config {

/// Where addresses mean one host: a vrf, or the netns without its vrfs.
using Domain = std::uint32_t;
inline constexpr Domain kDefaultDomain = 0;

/// What routes, next hops and neighbors ask about a port or vlan of their netns.
struct NetdevFacts {
    std::vector<net::InterfaceAddr> addresses;
    std::uint16_t mtu = 0;
    Domain domain = kDefaultDomain;
    std::optional<net::Ipv6Addr> link_local;  // where the file has a MAC that it follows from
};

/// Refers to the netns.
class NetdevIndex {
public:
    explicit NetdevIndex(const Netns& netns);

    const NetdevFacts* find(const std::string& name) const;  // of a port or vlan
    const Vrf* find_vrf(const std::string& name) const;
    /// Of the vrf that has this table, or of the netns.
    Domain domain_of_table(std::uint32_t table) const;

    bool owns(Domain domain, const net::IpAddr& address) const;
    /// The netdev with the longest subnet that has `address`, the first by name of equals; empty
    /// when none has.
    std::string_view on_link(Domain domain, const net::IpAddr& address) const;

    /// "'p9' is no port or vlan here", with a guess at what was meant.
    std::string no_netdev(std::string_view name) const;
    std::string no_netdev_or_vrf(std::string_view name) const;

private:
    struct Place {
        Domain domain;
        net::IpAddr address;
        bool operator==(const Place&) const = default;
    };
    struct PlaceHash {
        std::size_t operator()(const Place& place) const noexcept {
            return std::hash<net::IpAddr>{}(place.address) ^ (std::size_t{place.domain} << 40U);
        }
    };
    /// Of one family and domain: by length, longest first.
    using Subnets =
        std::map<std::uint8_t, std::unordered_map<net::IpPrefix, std::string_view>, std::greater<>>;

    void add(const std::string& name,
             const NetdevSettings& settings,
             const std::optional<net::MacAddr>& mac,
             const std::vector<Address>& addresses);
    std::string guess(std::string_view name,
                      std::string_view what,
                      std::vector<std::string_view> names) const;
    std::vector<std::string_view> names() const;

    const Netns& netns_;
    std::map<std::string_view, Domain> domains_;  // of vrfs' members
    std::unordered_map<std::uint32_t, Domain> tables_;
    std::unordered_map<std::string, NetdevFacts> netdevs_;
    std::unordered_set<Place, PlaceHash> own_;
    std::map<std::pair<Domain, net::Family>, Subnets> subnets_;
};

}  // namespace sluice::config
