// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "fuzz/dice.h"
#include "fuzz/world.h"

namespace sluice::test::fuzz {

/// Netns, ports, VLANs, addresses, routes: what packets can go through from the first burst on.
void set_up(World& world, Dice& dice);
/// One change of whatever kind. What is refused is refused; that is part of the test.
void change(World& world, Dice& dice);

/// Routes over a link, more than a slice of its removal takes.
void load_link(World& world, Dice& dice, const std::string& name);
/// Its VLANs, and perhaps other links of its netns, go with it.
void delete_link(World& world, Dice& dice, const std::string& name);
/// A link that is gone, and what some link lacks to carry packets.
void bring_back(World& world, Dice& dice);

}  // namespace sluice::test::fuzz
