// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "base/reclaimer.h"
#include "control/netdevs.h"
#include "control/uncached.h"
#include "fib/dst.h"
#include "fib/shared.h"
#include "net/address.h"

/// How the control thread writes dsts.
namespace sluice::control {

/// How dsts end. Control thread.
class Dsts {
public:
    Dsts(fib::Shared& shared, UncachedLists& uncached, Reclaimer& reclaimer)
        : shared_(shared), uncached_(uncached), reclaimer_(reclaimer) {}

    UncachedLists& uncached() noexcept { return uncached_; }
    /// It is not published any more. Until no worker can hold it, it is on the uncached lists
    /// (U-01), so that the removal of its netdev finds it.
    void release(fib::DstIndex dst, net::Family family);

private:
    fib::Shared& shared_;
    UncachedLists& uncached_;
    Reclaimer& reclaimer_;
};

/// Fills a dst that is not published yet. `family` is the packets' one, which the EtherType follows
/// even when the gateway is of the other (RFC 5549). Broadcast dsts come resolved, unicast ones
/// not.
void fill_dst(fib::Dst& dst,
              const Netdev& netdev,
              fib::DstType type,
              net::Family family,
              const std::optional<net::IpAddr>& gateway,
              std::uint16_t route_mtu);

/// In a published dst that is unresolved, after the grace period that the unresolving began.
void set_source_mac(fib::Dst& dst, const net::MacAddr& mac) noexcept;

/// In a published dst: an aligned half-word, of which a worker reads the old value or the new one.
void set_path_mtu(fib::Dst& dst, const Netdev& netdev, std::uint16_t route_mtu) noexcept;

}  // namespace sluice::control
