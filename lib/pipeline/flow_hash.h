// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "fib/netdev_view.h"
#include "fib/policy.h"
#include "pipeline/context.h"

namespace sluice::pipeline {

/// Of a packet's transport header what rules and the flow hash read. A fragment has no ports, the
/// first one neither: its followers could not agree with it.
fib::Transport transport_of4(const Packet& p) noexcept;
fib::Transport transport_of6(const Packet& p) noexcept;

/// Which member of a multipath group a packet takes: the same for all packets of a flow on one box,
/// another on the next, by `seed`. `l3`: from the IP header on, as far as it is contiguous. Unless
/// the fields are the user's own choice, fragments go by addresses alone, and an ICMP error goes
/// the way of the flow that it quotes.
std::uint32_t flow_hash4(std::uint64_t seed,
                         const fib::FlowHashFields& fields,
                         std::span<const std::uint8_t> l3) noexcept;
std::uint32_t flow_hash6(std::uint64_t seed,
                         const fib::FlowHashFields& fields,
                         std::span<const std::uint8_t> l3) noexcept;

}  // namespace sluice::pipeline
