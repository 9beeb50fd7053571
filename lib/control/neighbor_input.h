// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/drop_reason.h"
#include "control/dataplane.h"
#include "control/neighbors.h"
#include "control/netdevs.h"

/// Who is believed and who is answered: ARP (RFC 826, 5227) and neighbour discovery (RFC 4861).
/// Strict: a netdev answers for its own addresses only (as arp_ignore 1, and no proxying).
namespace sluice::control {

struct NeighborInput {
    Neighbors& neighbors;
    Dataplane& dataplane;
    const Netdev& in;
    Time now;
};

/// `frame` from its Ethernet header on, contiguous; ARP or IPv6 begins at `l3_offset`. kNone:
/// delivered.
DropReason arp_input(const NeighborInput& input,
                     std::span<const std::uint8_t> frame,
                     std::size_t l3_offset);
DropReason ndp_input(const NeighborInput& input,
                     std::span<const std::uint8_t> frame,
                     std::size_t l3_offset);

}  // namespace sluice::control
