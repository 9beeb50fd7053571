// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/id.h"
#include "control/controller.h"
#include "control/neighbor_table.h"
#include "control/netns.h"

namespace sluice::control {

/// What is left to do of netdevs that were removed or moved away: by the time that there is one, no
/// packet leaves over them any more, and what remains is to take out what leads to them. Or of a
/// flush, which is all `flush`.
struct Removal {
    Ticket ticket = 0;
    Netns* netns = nullptr;  // that they were in
    std::vector<NetdevId> gone;
    std::vector<RouteTarget*> targets;  // of next-hop objects that went too
    std::unique_ptr<Netns> ended;       // `netns`, which goes with the last of its routes
    std::move_only_function<bool(Time deadline)> flush;  // true: done
    bool unlisted = false;                               // the uncached dsts of `gone` are
    std::size_t exceptions_done = 0;                     // of `gone`
    std::size_t neighbors_done = 0;                      // of `gone`
    std::size_t hops_done = 0;
    std::size_t targets_done = 0;
    bool sliced = false;  // not all done within the call
};

}  // namespace sluice::control
