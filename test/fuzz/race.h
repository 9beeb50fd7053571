// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "fuzz/dice.h"
#include "fuzz/traffic.h"
#include "fuzz/world.h"

namespace sluice::test::fuzz {

/// A change to what a burst that just passed went by, with the same burst coming in before, after,
/// and in the middle of it, wherever the control thread can be seen half-way: what is published is
/// not yet known to the caches, what is removed is re-pointed but not yet taken out. There a worker
/// may go by its cache or by the tables, so the two are not compared; what must hold is that
/// nothing leaves by what is gone or waits for it, and that nothing is lost because the cache knew
/// only that (C-12, U-04, X-02). Before and after, all is compared.
///
/// Some go where chance hardly comes: an exception that ends while its dst is cached, stamps that
/// come round to the one of a cached entry.
void race(World& world, Traffic& traffic, std::uint32_t phase, Dice& dice);

}  // namespace sluice::test::fuzz
