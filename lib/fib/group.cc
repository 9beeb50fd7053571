// SPDX-License-Identifier: BSD-3-Clause
#include "fib/group.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/reclaimer.h"
#include "base/result.h"
#include "fib/dst.h"

namespace sluice::fib {
namespace {

/// 128 KiB of a group at most; what is reached only by weights that differ by the hundreds.
constexpr std::size_t kMaxBuckets = 16384;
constexpr std::size_t kMinBucketsOfUnequal = 64;
/// A member's part of the buckets may be off by one in so many of its weight's.
constexpr std::uint64_t kPrecision = 100;

/// How many of `buckets` each weight gets: its share rounded down, and what is left goes to those
/// that would get none, then to the largest remainders.
std::vector<std::size_t> shares(const std::vector<std::uint64_t>& weights, std::size_t buckets) {
    const std::uint64_t sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
    std::vector<std::size_t> share;
    std::vector<std::size_t> order(weights.size());
    std::size_t left = buckets;
    for (const std::uint64_t weight : weights) {
        share.push_back(static_cast<std::size_t>(weight * buckets / sum));
        left -= share.back();
    }
    std::iota(order.begin(), order.end(), std::size_t{0});  // NOLINT: g++ 12 has no other
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        const bool none_a = share[a] == 0;
        const bool none_b = share[b] == 0;
        return none_a != none_b ? none_a : weights[a] * buckets % sum > weights[b] * buckets % sum;
    });
    for (const std::size_t member : order) {
        if (left != 0) {
            ++share[member];
            --left;
        } else if (share[member] == 0) {
            --*std::ranges::max_element(share);
            ++share[member];
        }
    }
    return share;
}

/// Whether every weight's share is as near as kPrecision asks.
bool exact_enough(const std::vector<std::uint64_t>& weights,
                  const std::vector<std::size_t>& share,
                  std::size_t buckets) {
    const std::uint64_t sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const std::uint64_t have = share[i] * sum;
        const std::uint64_t want = weights[i] * buckets;
        if ((have > want ? have - want : want - have) * kPrecision > want) {
            return false;
        }
    }
    return true;
}

std::size_t bucket_count(const std::vector<std::uint64_t>& weights) {
    const bool equal = std::ranges::all_of(
        weights, [&](std::uint64_t weight) { return weight == weights.front(); });
    std::size_t buckets =
        std::max(std::bit_ceil(weights.size()), equal ? std::size_t{1} : kMinBucketsOfUnequal);
    while (buckets < kMaxBuckets && !exact_enough(weights, shares(weights, buckets), buckets)) {
        buckets *= 2;
    }
    return buckets;
}

/// The last `bits` bits of `index` in the opposite order.
std::size_t reversed(std::size_t index, unsigned bits) noexcept {
    std::size_t out = 0;
    for (unsigned i = 0; i < bits; ++i) {
        out = out << 1U | (index >> i & 1U);
    }
    return out;
}

}  // namespace

std::unique_ptr<Group> make_group(const std::vector<GroupMember>& members) {
    std::vector<std::uint64_t> weights;
    std::vector<DstIndex> dsts;
    for (const GroupMember& member : members) {
        if (member.weight != 0) {
            weights.push_back(member.weight);
            dsts.push_back(member.dst);
        }
    }
    SLUICE_CHECK(!weights.empty());
    const std::size_t buckets = bucket_count(weights);
    const std::vector<std::size_t> share = shares(weights, buckets);
    auto group = std::make_unique<Group>(buckets, false);
    const auto bits = static_cast<unsigned>(std::countr_zero(buckets));
    std::size_t at = 0;
    for (std::size_t i = 0; i < share.size(); ++i) {
        for (std::size_t n = 0; n < share[i]; ++n) {
            group->buckets[reversed(at++, bits)].dst.store(dsts[i], std::memory_order_relaxed);
        }
    }
    return group;
}

GroupPool::GroupPool(std::size_t capacity, Reclaimer& reclaimer)
    : slots_(capacity), indices_(0, static_cast<std::uint32_t>(capacity)), reclaimer_(reclaimer) {
    SLUICE_CHECK(capacity <= kTableBit);
}

GroupPool::~GroupPool() {
    for (const auto& slot : slots_) {
        delete slot.load(std::memory_order_relaxed);
    }
}

Result<std::uint32_t> GroupPool::allocate() {
    const auto index = indices_.take();
    if (!index) {
        return fail(ErrorCode::kLimit, "all {} groups are in use", slots_.size());
    }
    return *index | kGroupBit;
}

void GroupPool::publish(std::uint32_t value, std::unique_ptr<const Group> group) {
    SLUICE_CHECK((value & kGroupBit) != 0 && indices_.was_taken(value & ~kGroupBit));
    const Group* old =
        slots_[value & ~kGroupBit].exchange(group.release(), std::memory_order_acq_rel);
    if (old != nullptr) {
        reclaimer_.defer([old] { delete old; });
    }
}

void GroupPool::release(std::uint32_t value) {
    publish(value, nullptr);
    reclaimer_.defer([this, index = value & ~kGroupBit] { indices_.give(index); });
}

}  // namespace sluice::fib
