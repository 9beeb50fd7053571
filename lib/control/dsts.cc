// SPDX-License-Identifier: BSD-3-Clause
#include "control/dsts.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "control/netns.h"
#include "net/wire.h"

namespace sluice::control {
namespace {

constexpr std::size_t kSourceMacAt = 6;
constexpr std::size_t kTypeAt = 12;

void put16(fib::Dst& dst, std::size_t at, std::uint16_t value) noexcept {
    dst.rewrite[at] = static_cast<std::uint8_t>(value >> 8U);
    dst.rewrite[at + 1] = static_cast<std::uint8_t>(value);
}

std::uint16_t path_mtu(const Netdev& netdev, std::uint16_t route_mtu) noexcept {
    return route_mtu == 0 ? netdev.settings.mtu : std::min(route_mtu, netdev.settings.mtu);
}

}  // namespace

void Dsts::release(fib::DstIndex index, net::Family family) {
    const fib::Dst& dst = shared_.dsts[index];
    if (!uncached_.listed(index)) {
        uncached_.add(index, 0, family, dst.out, dst.idev);
    }
    reclaimer_.defer([this, index] {
        if (uncached_.listed(index)) {  // no removal met it
            uncached_.remove(index);
        }
    });
    shared_.dsts.release(index);
}

void set_source_mac(fib::Dst& dst, const net::MacAddr& mac) noexcept {
    std::ranges::copy(mac.bytes, dst.rewrite.begin() + kSourceMacAt);
}

void set_path_mtu(fib::Dst& dst, const Netdev& netdev, std::uint16_t route_mtu) noexcept {
    std::atomic_ref<std::uint16_t>(dst.mtu).store(path_mtu(netdev, route_mtu),
                                                  std::memory_order_relaxed);
}

void fill_dst(fib::Dst& dst,
              const Netdev& netdev,
              fib::DstType type,
              net::Family family,
              const std::optional<net::IpAddr>& gateway,
              std::uint16_t route_mtu) {
    dst.type = type;
    // What is delivered in a VRF is delivered to the VRF, with the member's IPv6 settings (U-05).
    const bool in_vrf = type == fib::DstType::kLocal && netdev.master != nullptr;
    dst.out = in_vrf ? netdev.master->id : netdev.id;
    dst.port = netdev.port().device == nullptr ? 0 : netdev.port().device->id().value;
    dst.mtu = path_mtu(netdev, route_mtu);
    dst.expiry_s = 0;
    dst.idev = netdev.id;
    dst.netns = netdev.netns->id;
    dst.set_gateway(gateway.value_or(net::IpAddr{}));

    dst.rewrite = {};
    set_source_mac(dst, netdev.mac);
    const std::uint16_t type_of_packet =
        family == net::Family::kIpv4 ? net::kEtherTypeIpv4 : net::kEtherTypeIpv6;
    if (netdev.vlan_id == 0) {
        dst.rewrite_bytes = 14;
        put16(dst, kTypeAt, type_of_packet);
    } else {
        dst.rewrite_bytes = 18;
        put16(dst, kTypeAt, net::kEtherTypeVlan);
        put16(dst, kTypeAt + 2, netdev.vlan_id);
        put16(dst, kTypeAt + 4, type_of_packet);
    }
    if (type == fib::DstType::kBroadcast) {
        fib::resolve(dst, net::kBroadcastMac);
    } else {
        fib::unresolve(dst);
    }
}

}  // namespace sluice::control
