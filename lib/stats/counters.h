// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "base/drop_reason.h"
#include "base/id.h"
#include "base/pages.h"

namespace sluice::stats {

/// One writer, any readers: a plain add for the writer, no lock prefix, no torn value for readers.
inline void bump(std::uint64_t& counter, std::uint64_t by = 1) noexcept {
    std::atomic_ref<std::uint64_t> ref(counter);
    ref.store(ref.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}
inline std::uint64_t read(const std::uint64_t& counter) noexcept {
    // atomic_ref wants a non-const object; loading does not change it.
    return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(counter))
        .load(std::memory_order_relaxed);
}

/// One netdev as one writer saw it. The books (checked after every end-to-end run):
/// rx_packets = forwarded + delivered + held + sum of drops, summed over all writers.
/// A packet is booked on its ingress netdev; what sluice originates is received on the netns's
/// `lo`.
struct NetdevCounters {
    std::uint64_t rx_packets;
    std::uint64_t rx_bytes;    // frames without FCS
    std::uint64_t tx_packets;  // booked on the egress netdev, fragments each
    std::uint64_t tx_bytes;
    std::uint64_t forwarded;  // packets that left whole or in fragments, booked on the ingress
    std::uint64_t delivered;
    std::uint64_t held;  // in a hold queue or on the way to the control thread; modulo 2^64, since
                         // the control thread takes off what a worker put on
    std::uint64_t icmp_errors_sent;        // about packets that came in here
    std::uint64_t icmp_errors_suppressed;  // by the rate limit
    std::uint64_t fragments_lost;  // fragments after the first that the device did not take,
                                   // booked on the egress; their packet counts as forwarded
    std::array<std::uint64_t, kDropReasons> drops;
};

/// Parts of a worker's round whose cost `stats workers` shows.
enum class Stage : std::uint8_t { kReceive, kInput, kLookup, kForward, kTransmit, kCount };
inline constexpr std::size_t kStages = std::to_underlying(Stage::kCount);
inline constexpr std::array<const char*, kStages> kStageNames{
    "receive", "input", "lookup", "forward", "transmit"};

/// Of one worker's cache of one family; in packets.
struct CacheCounters {
    std::uint64_t hits;
    std::uint64_t misses;  // stale ones included
    std::uint64_t stale;   // found, but of another generation, expired or gone
    std::uint64_t inserts;
    std::uint64_t bypassed;     // looked up without asking the cache
    std::uint64_t source_hits;  // of the cache of validated sources
    std::uint64_t source_misses;
};

struct WorkerCounters {
    std::uint64_t rounds;
    std::uint64_t busy_rounds;  // received at least one packet
    std::uint64_t packets;      // received
    std::uint64_t cycles_busy;  // TSC cycles of busy rounds
    std::uint64_t cycles_idle;  // TSC cycles of empty rounds, sleep not counted
    std::uint64_t
        longest_round;  // TSC cycles, of any round since the last reset, sleep not counted
    std::uint64_t sleeps;
    std::uint64_t sleep_ns;
    std::uint64_t sampled_packets;  // stages are timed in one burst of kStageSampling
    std::array<std::uint64_t, kStages> stage_cycles;
    /// [0] neither family, [1] IPv4, [2] IPv6.
    std::array<std::array<std::uint64_t, kDropReasons>, 3> drops_by_family;
    std::array<CacheCounters, 2> caches;  // IPv4, IPv6
    std::uint64_t redirects_sent;
};

/// Of next-hop objects, by Dst::counter; 0 is nobody's.
inline constexpr std::size_t kMaxNextHopCounters = 65536;
inline constexpr unsigned kStageSampling = 64;

/// Everything one writer (a worker or the control thread) counts.
class Block {
public:
    Block() : netdevs_(kMaxNetdevs), next_hops_(kMaxNextHopCounters) {}

    NetdevCounters& netdev(NetdevId id) noexcept { return netdevs_[id.value]; }
    const NetdevCounters& netdev(NetdevId id) const noexcept { return netdevs_[id.value]; }
    WorkerCounters& worker() noexcept { return worker_; }
    const WorkerCounters& worker() const noexcept { return worker_; }

    std::uint64_t& next_hop(std::uint32_t counter) noexcept { return next_hops_[counter]; }
    const std::uint64_t& next_hop(std::uint32_t counter) const noexcept {
        return next_hops_[counter];
    }

    /// `family` 0, 1 (IPv4) or 2 (IPv6).
    void drop(NetdevId ingress, DropReason reason, unsigned family) noexcept {
        bump(netdev(ingress).drops[std::to_underlying(reason)]);
        bump(worker_.drops_by_family[family][std::to_underlying(reason)]);
    }

private:
    PageArray<NetdevCounters> netdevs_;  // pages of ids never used are never touched
    PageArray<std::uint64_t> next_hops_;
    alignas(64) WorkerCounters worker_{};
};

/// Adds `from` to `into`, reading as another thread.
void accumulate(NetdevCounters& into, const NetdevCounters& from) noexcept;
/// rx - (forwarded + delivered + held + drops), modulo 2^64; zero when nothing is under way.
std::uint64_t imbalance(const NetdevCounters& sum) noexcept;

}  // namespace sluice::stats
