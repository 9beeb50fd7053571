// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/index_pool.h"
#include "base/reclaimer.h"
#include "base/result.h"
#include "fib/dst.h"

namespace sluice::fib {

/// Where the packets of one flow go: a member's dst by bucket of the flow hash. Immutable in its
/// shape; the buckets of a resilient group are re-pointed one by one.
struct Group {
    struct Bucket {
        std::atomic<DstIndex> dst{kNoRoute};
        /// Worker clock in seconds of the last packet, kept only in a resilient group.
        std::atomic<std::uint32_t> used_s{0};
    };

    Group(std::size_t bucket_count, bool is_resilient)
        : mask(static_cast<std::uint32_t>(bucket_count - 1)),
          resilient(is_resilient),
          buckets(new Bucket[bucket_count]) {}

    std::uint32_t mask;  // buckets are a power of two
    bool resilient;
    std::unique_ptr<Bucket[]> buckets;  // NOLINT: its length is mask + 1

    /// Worker threads. The store of a time is rare: once a second and bucket.
    DstIndex pick(std::uint32_t flow_hash, std::uint32_t now_s) const noexcept {
        Bucket& bucket = buckets[flow_hash & mask];
        if (resilient && bucket.used_s.load(std::memory_order_relaxed) != now_s) {
            bucket.used_s.store(now_s, std::memory_order_relaxed);
        }
        return bucket.dst.load(std::memory_order_acquire);
    }
};

/// All multipath groups of the process. What a table stores of one has kGroupBit set, so that a
/// worker tells it from a dst without a load; a change of members swaps one pointer and no route is
/// touched.
class GroupPool {
public:
    /// `capacity` groups at most, below kGroupBit.
    GroupPool(std::size_t capacity, Reclaimer& reclaimer);
    ~GroupPool();
    GroupPool(const GroupPool&) = delete;
    GroupPool& operator=(const GroupPool&) = delete;
    GroupPool(GroupPool&&) = delete;
    GroupPool& operator=(GroupPool&&) = delete;

    /// Worker threads; `value` as a table gave it. Null: it has no member (any more).
    const Group* operator[](std::uint32_t value) const noexcept {
        return slots_[value & ~kGroupBit].load(std::memory_order_acquire);
    }

    /// Control thread. The value for tables, without a group yet. kLimit.
    Result<std::uint32_t> allocate();
    /// Control thread. Takes the place of what was there, which readers may still see for a while.
    void publish(std::uint32_t value, std::unique_ptr<const Group> group);
    /// Control thread. No table holds `value` any more; it is reused after a grace period.
    void release(std::uint32_t value);
    std::size_t in_use() const noexcept { return indices_.in_use(); }

private:
    std::vector<std::atomic<const Group*>> slots_;
    alignas(
        64) IndexPool indices_;  // which the control thread writes, apart from what workers read
    Reclaimer& reclaimer_;
};

struct GroupMember {
    DstIndex dst = kNoRoute;
    std::uint32_t weight = 1;
};

/// A group that spreads by weight: as many buckets, up to 16,384, as bring every member within 1 %
/// of its share; equal weights of a power of two of members take one each. A share is right to
/// within one bucket, and nobody with a weight gets none: where 16,384 are too few for that, the
/// heaviest give. Members without a weight get none; one must have a weight.
///
/// The members divide the range of the flow hash among them in their order (the hash is read from
/// its last bit on, so that groups of any size agree on where a flow lies). When one goes, the
/// parts of its neighbors grow into its own and the others' shift after them: a quarter to a half
/// of all flows move, as RFC 2992 computes for this. Flows that must stay need a resilient group.
std::unique_ptr<Group> make_group(const std::vector<GroupMember>& members);

}  // namespace sluice::fib
