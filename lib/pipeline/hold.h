// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <rte_mbuf.h>

#include "fib/neighbor_map.h"

namespace sluice::pipeline {

/// Packets of one worker that wait for a neighbour to be resolved: a few per neighbour (RFC 1122
/// 2.3.2.2 and RFC 4861 7.2.2 ask for at least one, and that the newest are kept), bounded in all.
/// Nothing is allocated after construction.
class HoldTable {
public:
    static constexpr std::size_t kNeighbors = 2048;
    static constexpr std::size_t kPacketsPerNeighbor = 8;
    static constexpr std::size_t kPackets = 4096;

    explicit HoldTable(std::uint64_t secret);

    enum class Outcome : std::uint8_t {
        kFirst,     // kept, nobody asked for this neighbour yet: the caller must
        kKept,      // kept
        kDisplaced  // kept, and `displaced` is the oldest of the same neighbour that had to go
    };
    struct Added {
        Outcome outcome;
        rte_mbuf* displaced;
    };
    /// False (and the packet stays the caller's): no room for another neighbour.
    bool add(const fib::NeighborKeyWords& key,
             rte_mbuf* m,
             std::uint64_t now_ns,
             Added& added) noexcept;

    using Batch = std::array<rte_mbuf*, kPacketsPerNeighbor>;
    /// Takes out all packets for `key`, oldest first; returns how many.
    std::size_t take(const fib::NeighborKeyWords& key, Batch& out) noexcept;
    /// Takes out those of the neighbour that has waited longest, if since before `before_ns`:
    /// against an answer that got lost. Returns how many.
    std::size_t take_overdue(std::uint64_t before_ns, Batch& out) noexcept;

    std::size_t packets() const noexcept { return packets_; }
    std::size_t neighbors() const noexcept { return neighbors_; }

private:
    static constexpr std::uint16_t kNone = 0xffff;
    struct Slot {
        fib::NeighborKeyWords key;
        std::uint64_t since_ns;
        std::array<rte_mbuf*, kPacketsPerNeighbor> packets;  // ring, oldest at `first`
        std::uint16_t next;                                  // in hash chain or free list
        std::uint16_t older, newer;                          // age list
        std::uint8_t first, count;
    };
    std::uint16_t& head_of(const fib::NeighborKeyWords& key) noexcept {
        return heads_[key.hash(secret_) & (heads_.size() - 1)];
    }
    std::size_t empty_slot(std::uint16_t index, Batch& out) noexcept;

    std::uint64_t secret_;
    std::unique_ptr<std::array<Slot, kNeighbors>> slots_;
    std::array<std::uint16_t, 2 * kNeighbors> heads_;
    std::uint16_t free_ = 0;
    std::uint16_t oldest_ = kNone, newest_ = kNone;
    std::size_t packets_ = 0;
    std::size_t neighbors_ = 0;
};

}  // namespace sluice::pipeline
