// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "fib/dst_cache.h"
#include "fib/shared.h"
#include "fib/source_memo.h"
#include "pipeline/cache_meter.h"

namespace sluice::pipeline {

/// How many decisions may still be put into a cache. A cold one fills at once; then each stale
/// entry may be replaced, and of what else misses one a burst: a flood of destinations that come
/// once displaces little and costs little (dst.md C-50).
class InsertBudget {
public:
    explicit InsertBudget(std::size_t entries) noexcept
        : most_(static_cast<std::uint32_t>(entries)), left_(most_) {}

    /// Of a burst that missed; `stale` of the misses were entries of an older generation.
    void grant(std::uint32_t stale) noexcept { left_ = std::min(left_ + stale + 1, most_); }
    bool take() noexcept {
        if (left_ == 0) {
            return false;
        }
        --left_;
        return true;
    }
    void refill() noexcept { left_ = most_; }

private:
    std::uint32_t most_;
    std::uint32_t left_;
};

/// What one worker remembers of its decisions: where destinations lead, and which sources may come
/// in where. Two caches rather than one of pairs: many sources talk to many destinations. Those who
/// talk to one only are remembered beside it.
struct Caches {
    explicit Caches(std::size_t entries, std::uint64_t secret)
        : destinations4(entries, secret),
          sources4(entries, secret * 3),
          destinations6(entries, secret * 5),
          sources6(entries, secret * 7),
          memo4(entries),
          memo6(entries),
          inserts{InsertBudget(entries), InsertBudget(entries)},
          source_inserts{InsertBudget(entries), InsertBudget(entries)} {}

    fib::Ipv4DstCache destinations4;
    fib::Ipv4DstCache sources4;
    fib::Ipv6DstCache destinations6;
    fib::Ipv6DstCache sources6;
    fib::SourceMemo<net::Ipv4Addr> memo4;  // by entry of destinations4
    fib::SourceMemo<net::Ipv6Addr> memo6;
    std::array<InsertBudget, 2> inserts;  // IPv4, IPv6
    std::array<InsertBudget, 2> source_inserts;
    CacheMeter meter4;
    CacheMeter meter6;
    std::uint32_t epoch = 0;  // Shared::cache_epoch that they are of

    void clear() noexcept {
        destinations4.clear();
        sources4.clear();
        destinations6.clear();
        sources6.clear();
        memo4.clear();
        memo6.clear();
        for (std::size_t family = 0; family < 2; ++family) {
            inserts[family].refill();
            source_inserts[family].refill();
        }
    }
};

}  // namespace sluice::pipeline
