// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "fuzz/dice.h"
#include "fuzz/world.h"

namespace sluice::test::fuzz {

/// Netns, ports, VLANs, addresses, routes: what packets can go through from the first burst on.
void set_up(World& world, Dice& dice);
/// One change of whatever kind. What is refused is refused; that is part of the test.
void change(World& world, Dice& dice);

}  // namespace sluice::test::fuzz
