// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <rte_mempool.h>

#include "fuzz/world.h"

/// dst.md X-03: forwarding from the cache and without it agree packet by packet (what is sent,
/// where, in which order; what is counted; what the control thread is told), whatever changes in
/// between.
namespace sluice::test::fuzz {

/// A run is known by its seed. Steps that are left out change nothing of the others.
struct Plan {
    std::uint64_t seed = 0;
    std::uint32_t steps = 300;
    std::set<std::uint32_t> without = {};
    /// Of the last burst of the last step only that packet.
    std::optional<std::uint32_t> only_packet = {};
    bool trace = false;
    /// Takes no step after that; what it agreed on until then counts.
    std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

struct Failure {
    std::uint32_t step = 0;
    std::string what;
    std::vector<Input> burst;  // the last one
};

/// Empty: they agreed.
std::optional<Failure> run(const Plan& plan, rte_mempool* pool, Reach& reach);

/// Leaves out steps, then packets, as long as a difference stays; at most `runs` runs.
Plan shorten(Plan plan, const Failure& failure, rte_mempool* pool, unsigned runs);

/// Everything that one needs to see it again.
std::string describe(const Plan& plan, const Failure& failure);

/// What of `reach` is missing; empty: a run that came by all that there is. Needs some ten seconds.
std::string missing(const Reach& reach);
std::string to_string(const Reach& reach);

}  // namespace sluice::test::fuzz
