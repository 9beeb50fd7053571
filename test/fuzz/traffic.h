// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "fuzz/dice.h"
#include "fuzz/world.h"

namespace sluice::test::fuzz {

/// Makes bursts out of few flows, so that caches are warm, and of all that must not be answered
/// from them.
class Traffic {
public:
    explicit Traffic(std::uint64_t seed);

    /// A burst of 1 to 256 frames for the device of `port`, what World::answers has for it first.
    /// In one phase the same few flows come in by one port, more or less.
    std::vector<Input> burst(World& world,
                             const fib::NetdevView& port,
                             std::uint32_t phase,
                             Dice& dice);

private:
    struct Flow {
        net::Ipv4Addr source4, destination4;
        net::Ipv6Addr source6, destination6;
        std::uint32_t source_link = 0;
        std::uint8_t dscp = 0;
        std::uint16_t source_port = 0, destination_port = 0;
        bool tcp = false;
    };
    Input frame(const World& world,
                const std::vector<const fib::NetdevView*>& ingresses,
                const std::vector<std::uint32_t>& hot,
                Dice& dice);
    Packet packet4(const fib::NetdevView& in, const Flow& flow, Packet p, Dice& dice);
    Packet packet6(const fib::NetdevView& in, const Flow& flow, Packet p, Dice& dice);
    std::uint64_t seed_;
    std::vector<Flow> flows_;
    std::uint16_t number_ = 0;  // in every packet, so that no two are the same
};

}  // namespace sluice::test::fuzz
