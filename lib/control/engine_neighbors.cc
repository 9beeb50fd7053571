// SPDX-License-Identifier: BSD-3-Clause
// Neighbors that the user sets, and what workers bring of them.
#include "control/engine.h"
#include "control/host_address.h"
#include "control/neighbor_input.h"
#include "net/wire.h"

namespace sluice::control {

Result<void> Engine::add_neighbor(Netns& netns,
                                  const std::string& dev,
                                  const net::IpAddr& address,
                                  const net::MacAddr& lladdr,
                                  Time now) {
    const auto netdev = netns.get(dev);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    if (!(*netdev)->is_link()) {
        return fail(ErrorCode::kUnsupported, "{} has no neighbors", dev);
    }
    const std::uint8_t bits = address.is_v4() ? 32 : 128;
    if (auto ok = check_own_address({address, bits}); !ok) {
        return ok;
    }
    if ((*netdev)->owns(address) || Netdevs::owner_of((*netdev)->domain(), address) != nullptr) {
        return fail(ErrorCode::kInvalid, "{} is an address of this router", address.to_string());
    }
    if (const auto wrong = (*netdev)->never_a_host(address); !wrong.empty()) {
        return fail(ErrorCode::kInvalid, "{} is {} on {}", address.to_string(), wrong, dev);
    }
    return neighbors_.table().add_permanent({(*netdev)->id, address}, lladdr, now);
}

Result<void> Engine::delete_neighbor(Netns& netns,
                                     const std::string& dev,
                                     const net::IpAddr& address) {
    const auto netdev = netns.get(dev);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    if (!neighbors_.table().remove({(*netdev)->id, address})) {
        return fail(ErrorCode::kNotFound, "no neighbor {} on {}", address.to_string(), dev);
    }
    return {};
}

// --- punted packets -----------------------------------------------------------------------------

void Engine::punted(NetdevId ingress,
                    std::span<const std::uint8_t> frame,
                    std::size_t l3_offset,
                    Time now) {
    stats::NetdevCounters& counters = block_.netdev(ingress);
    stats::bump(counters.held, ~std::uint64_t{0});  // the worker booked it on
    const auto* type = net::header_at<net::Be16>(frame, l3_offset < 2 ? 0 : l3_offset - 2);
    const bool arp = type != nullptr && type->host() == net::kEtherTypeArp;
    const unsigned family = arp ? 0 : 2;

    const Netdev* netdev = netdevs_.find(ingress);
    DropReason reason = DropReason::kNone;
    if (netdev == nullptr) {
        reason = DropReason::kNetdevGone;
    } else if (!netdev->up()) {
        reason = DropReason::kNetdevDown;
    } else {
        const NeighborInput input{neighbors_, dataplane_, *netdev, now};
        reason = arp ? arp_input(input, frame, l3_offset) : ndp_input(input, frame, l3_offset);
    }
    if (reason == DropReason::kNone) {
        stats::bump(counters.delivered);
    } else {
        block_.drop(ingress, reason, family);
    }
}

void Engine::handle(std::size_t worker, const pipeline::WorkerEvent& event, Time now) {
    using Kind = pipeline::WorkerEvent::Kind;
    switch (event.kind) {
        case Kind::kResolve:
        case Kind::kUsed:
            neighbors_.handle(worker, event, now);
            return;
        case Kind::kPathMtu:
        case Kind::kRedirect:
            learn(worker, event);
            return;
    }
}

}  // namespace sluice::control
