// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/id.h"
#include "fib/generation.h"
#include "fib/lpm.h"
#include "fib/policy.h"
#include "net/address.h"

namespace sluice::fib {

enum class NetdevKind : std::uint8_t { kBlackhole, kLoopback, kPort, kVlan, kVrf };

/// The addresses that are the router's own in one routing domain, to spot them as a packet's source
/// or destination: nearly every packet is told "no" by one bit of a 512-byte filter. Immutable.
class LocalAddresses {
public:
    LocalAddresses() = default;
    /// `broadcasts`: directed ones, of the subnets that they are in.
    LocalAddresses(std::vector<net::Ipv4Addr> v4,
                   std::vector<net::Ipv6Addr> v6,
                   std::vector<net::Ipv4Addr> broadcasts = {});

    bool contains(const net::Ipv4Addr& a) const noexcept {
        return maybe(hash(a)) && std::ranges::binary_search(v4_, a);
    }
    bool contains(const net::Ipv6Addr& a) const noexcept {
        return maybe(hash(a)) && std::ranges::binary_search(v6_, a);
    }

    using Words = std::array<std::uint32_t, 4>;  // of an IPv6 address, in memory order

    /// The filter, for those who ask about many at once: bit hash(a) is set for each address a.
    const std::uint32_t* filter() const noexcept { return filter_.data(); }
    static constexpr unsigned kFilterBits = 12;
    static constexpr std::uint32_t kFactor4 = 0x9e3779b1;
    static constexpr Words kFactors6{0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f, 0x9e3779b1};

    /// Is a packet to it for the router itself, whatever rules say?
    bool takes(const net::Ipv4Addr& a) const noexcept {
        return maybe(hash(a)) &&
               (std::ranges::binary_search(v4_, a) || std::ranges::binary_search(broadcasts_, a));
    }
    bool takes(const net::Ipv6Addr& a) const noexcept { return contains(a); }

    /// Some address of the family, for an answer from a netdev that has none; null: none at all.
    const net::Ipv4Addr* any4() const noexcept { return v4_.empty() ? nullptr : &v4_.front(); }
    const net::Ipv6Addr* any6() const noexcept;

private:
    static std::uint32_t hash(std::uint32_t word) noexcept {
        return (word * kFactor4) >> (32U - kFilterBits);
    }
    static std::uint32_t hash(const Words& words) noexcept {
        std::uint32_t sum = 0;
        for (std::size_t i = 0; i < words.size(); ++i) {
            sum += words[i] * kFactors6[i];
        }
        return sum >> (32U - kFilterBits);
    }
    static std::uint32_t hash(const net::Ipv4Addr& a) noexcept {
        return hash(std::bit_cast<std::uint32_t>(a.bytes));
    }
    static std::uint32_t hash(const net::Ipv6Addr& a) noexcept {
        return hash(std::bit_cast<Words>(a.bytes));
    }
    bool maybe(std::uint32_t h) const noexcept {
        return ((filter_[h / 32U] >> (h % 32U)) & 1U) != 0;
    }

    std::array<std::uint32_t, (1U << kFilterBits) / 32U> filter_{};
    std::vector<net::Ipv4Addr> v4_;          // sorted
    std::vector<net::Ipv6Addr> v6_;          // sorted
    std::vector<net::Ipv4Addr> broadcasts_;  // sorted
};

/// RFC 3704: may a packet with this source come in here?
enum class SourceValidation : std::uint8_t {
    kOff,
    kLoose,   // some unicast route leads to the source
    kStrict,  // the route to the source leads out of the ingress
};

/// What multipath packets are spread by; kept per netns. `addresses_only` bits are by field.
struct FlowHashFields {
    bool source = true, destination = true, protocol = true, source_port = true,
         destination_port = true, flow_label = true;
    /// The named policies: fragments by addresses only, ICMP errors by the flow they quote.
    bool custom = false;
    friend bool operator==(const FlowHashFields&, const FlowHashFields&) = default;
};

/// A netdev as workers see it: immutable; every change publishes a new one.
struct NetdevView {
    NetdevId id;
    NetdevKind kind = NetdevKind::kPort;
    NetnsId netns;
    NetdevId loopback;  // `lo` of its netns, on whose book originated packets go

    bool up = false;         // administratively, its parent too
    bool forwarding = true;  // of what comes in here
    bool route_localnet = false;
    bool bc_forwarding = false;
    bool forward_class_e = true;
    bool has_ipv4 = false;  // an address of the family: without one its packets are not taken
    bool has_ipv6 = false;

    std::uint16_t port = 0;     // ethdev
    std::uint16_t vlan_id = 0;  // 0: untagged
    std::uint16_t mtu = 1500;
    net::MacAddr mac;

    /// The table that its packets are looked up in: the main one of its netns, or its VRF's. Of a
    /// VRF master its own.
    const Ipv4Lpm* fib4 = nullptr;
    const Ipv6Lpm* fib6 = nullptr;
    /// Of its netns, or of its VRF.
    std::shared_ptr<const LocalAddresses> local;

    // How its packets' destinations are decided about (pipeline/decide.cc). The routing domain is
    // the VRF master, or `lo` of the netns: whose exceptions, and whose errors' routes.
    NetdevId domain;
    /// Null: no rules, the table alone. Else the rules, the table last among them.
    const Ipv4Policy* policy4 = nullptr;
    const Ipv6Policy* policy6 = nullptr;
    const Generations<net::Ipv4Addr>* generations4 = nullptr;  // of the netns
    const Generations<net::Ipv6Addr>* generations6 = nullptr;
    /// The same for all netdevs whose packets meet the same tables and rules (C-03).
    std::uint16_t ingress_class = 0;
    SourceValidation source_validation = SourceValidation::kOff;
    bool send_redirects = false;
    FlowHashFields hash4, hash6;

    struct Address4 {
        net::Ipv4Addr address;
        std::uint8_t length;
    };
    std::vector<Address4> addresses4;  // in the order they were added; the first is the primary one
    struct Address6 {
        net::Ipv6Addr address;
        std::uint8_t length;
    };
    std::vector<Address6> addresses6;  // without the link-local one
    net::Ipv6Addr link_local;

    /// Of a port: sub-interface by VLAN id, kBlackholeNetdev where there is none. Null: no VLANs.
    std::unique_ptr<std::array<NetdevId, 4096>> vlans;

    /// Own address to talk to `peer` with: one whose subnet holds the peer, else the first.
    /// Null when there is none of the family.
    const net::Ipv4Addr* source_for(const net::Ipv4Addr& peer) const noexcept;
    /// The same; link-local for a link-local peer and where there is no other.
    const net::Ipv6Addr* source_for(const net::Ipv6Addr& peer) const noexcept;
    /// A directed broadcast address of this netdev?
    bool is_broadcast(const net::Ipv4Addr& a) const noexcept;
    /// Is `a` on the link, by the prefixes of its addresses?
    bool on_link(const net::Ipv4Addr& a) const noexcept;
    bool on_link(const net::Ipv6Addr& a) const noexcept;
    /// Its own address (IPv6: link-local included)?
    bool owns(const net::Ipv4Addr& a) const noexcept;
    bool owns(const net::Ipv6Addr& a) const noexcept;
    /// Listens to the group `a`: all nodes, all routers, or solicited-node of an own address.
    bool in_group(const net::Ipv6Addr& a) const noexcept;
};

}  // namespace sluice::fib
