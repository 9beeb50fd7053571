// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "fib/netdev_view.h"
#include "fib/policy.h"
#include "pipeline/context.h"

namespace sluice::pipeline {

/// Of packets' transport headers what rules and the flow hash read. A fragment has no ports, the
/// first one neither: its followers could not agree with it. Padding is not read. `lengths`: of
/// packets on the straight way, of which only l3 need be filled in; else null. `transports`: as
/// many as packets.
void transports_of4(std::span<const Packet> packets,
                    const std::uint32_t* lengths,
                    fib::Transport* transports) noexcept;
void transports_of6(std::span<const Packet> packets,
                    const std::uint32_t* lengths,
                    fib::Transport* transports) noexcept;

/// Which member of a multipath group a packet takes: the same for all packets of a flow on one box,
/// another on the next, by `seed`. `l3`: from the IP header on, as far as it is contiguous, without
/// padding. Unless
/// the fields are the user's own choice, fragments go by addresses alone, and an ICMP error goes
/// the way of the flow that it quotes.
std::uint32_t flow_hash4(std::uint64_t seed,
                         const fib::FlowHashFields& fields,
                         std::span<const std::uint8_t> l3) noexcept;
std::uint32_t flow_hash6(std::uint64_t seed,
                         const fib::FlowHashFields& fields,
                         std::span<const std::uint8_t> l3) noexcept;
/// Of many; `lengths` and `hashes` as for transports_of4().
void flow_hashes4(std::uint64_t seed,
                  const fib::FlowHashFields& fields,
                  std::span<const Packet> packets,
                  const std::uint32_t* lengths,
                  std::uint32_t* hashes) noexcept;
void flow_hashes6(std::uint64_t seed,
                  const fib::FlowHashFields& fields,
                  std::span<const Packet> packets,
                  const std::uint32_t* lengths,
                  std::uint32_t* hashes) noexcept;

}  // namespace sluice::pipeline
