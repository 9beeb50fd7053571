// SPDX-License-Identifier: BSD-3-Clause
#include "control/next_hops.h"

#include "control/dsts.h"

namespace sluice::control {

using fib::DstType;

bool is_usable(const NextHopKey& key, const Netdev& netdev) noexcept {
    switch (key.type) {
        case DstType::kUnreachable:
        case DstType::kProhibit:
        case DstType::kBlackhole:
            return true;
        default:
            break;
    }
    if (!netdev.up()) {
        return false;
    }
    if (!key.gateway) {
        return true;
    }
    return !netdev.owns(*key.gateway) && (key.on_link || netdev.on_link(*key.gateway));
}

void NextHops::fill(NextHop& hop, const Netdev& netdev) {
    const auto& key = hop.key;
    fib::Dst& dst = shared_.dsts.writable(hop.value);
    fill_dst(dst, netdev, key.type, key.family, key.gateway, key.mtu);
    dst.counter = key.counter;
}

Result<NextHop*> NextHops::get(const NextHopKey& key, const Netdev& netdev) {
    if (const auto it = hops_.find(key); it != hops_.end()) {
        return it->second.get();
    }
    auto hop = std::make_unique<NextHop>();
    hop->key = key;
    hop->family = key.family;
    hop->usable = is_usable(key, netdev);
    if (netdev.kind == fib::NetdevKind::kVrf && key.type == DstType::kConnected) {
        hop->value = fib::kTableBit | key.netdev.value;
        return hops_.emplace(key, std::move(hop)).first->second.get();
    }
    const auto dst = shared_.dsts.allocate(netdev.id);
    if (!dst) {
        return std::unexpected(dst.error());
    }
    hop->value = *dst;
    fill(*hop, netdev);
    if (key.gateway) {
        neighbors_.attach({key.netdev, *key.gateway}, *dst);
    }
    return hops_.emplace(key, std::move(hop)).first->second.get();
}

void NextHops::drop_if_unused(NextHop& hop) {
    if (!hop.routes.empty() || hop.users != 0) {
        return;
    }
    if (hop.key.gateway) {
        neighbors_.detach({hop.key.netdev, *hop.key.gateway}, hop.value);
    }
    if (hop.has_dst()) {
        dsts_.release(hop.value, hop.family);
    }
    hops_.erase(hops_.find(hop.key));
}

Result<fib::DstIndex> NextHops::renew(NextHop& hop, const Netdev& netdev) {
    const auto dst = shared_.dsts.allocate(netdev.id);
    if (!dst) {
        return std::unexpected(dst.error());
    }
    const fib::DstIndex old = std::exchange(hop.value, *dst);
    fill(hop, netdev);
    return old;
}

void NextHops::refill(const Netdev& netdev) {
    for_each_on(netdev.id, [&](NextHop& hop) {
        if (hop.key.type == DstType::kUnicast) {
            set_source_mac(shared_.dsts.writable(hop.value), netdev.mac);
        }
    });
}

void NextHops::set_mtu(const Netdev& netdev) {
    for_each_on(netdev.id, [&](NextHop& hop) {
        if (hop.has_dst()) {
            set_path_mtu(shared_.dsts.writable(hop.value), netdev, hop.key.mtu);
        }
    });
}

}  // namespace sluice::control
