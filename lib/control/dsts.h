// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "control/netdevs.h"
#include "fib/dst.h"
#include "net/address.h"

/// How the control thread writes dsts.
namespace sluice::control {

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
