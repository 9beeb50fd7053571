// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>

namespace sluice {

/// Deferred destruction of what workers may still be reading (quiescent-state reclamation).
/// The writer unpublishes an object first, then defers its destruction. Nothing here ever waits.
/// All members: control thread only.
class Reclaimer {
public:
    using Token = std::uint64_t;

    Reclaimer() = default;
    Reclaimer(const Reclaimer&) = delete;
    Reclaimer& operator=(const Reclaimer&) = delete;
    Reclaimer(Reclaimer&&) = delete;
    Reclaimer& operator=(Reclaimer&&) = delete;
    virtual ~Reclaimer() = default;

    /// Runs `fn` on the control thread, in call order, once no worker can hold a reference that was
    /// published before this call.
    virtual void defer(std::move_only_function<void()> fn) = 0;

    /// Starts a grace period; for owners that keep a free list of many small things and would
    /// rather not have one closure each. Tokens grow.
    virtual Token start() = 0;

    /// True once the grace period of `token`, and so of every smaller one, is over.
    virtual bool elapsed(Token token) = 0;
};

}  // namespace sluice
