// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/id.h"
#include "base/pages.h"

namespace sluice::pipeline {

/// Token buckets, one per netdev: RFC 1812 4.3.2.8, RFC 4443 2.4 (f). Both families share one.
class IcmpRateLimiter {
public:
    IcmpRateLimiter() : buckets_(kMaxNetdevs) {}

    /// `rate` tokens a second, at most `burst` at once.
    bool allow(NetdevId netdev,
               std::uint64_t now_ns,
               std::uint32_t rate,
               std::uint32_t burst) noexcept {
        if (rate == 0) {
            return false;
        }
        Bucket& bucket = buckets_[netdev.value];
        const std::uint64_t interval_ns = 1'000'000'000U / rate;
        // The bucket is kept as the time at which it would be full: a token is one interval.
        const std::uint64_t capacity_ns = interval_ns * burst;
        const std::uint64_t next = std::max(bucket.full_at_ns, now_ns);
        if (next + interval_ns > now_ns + capacity_ns) {
            return false;
        }
        bucket.full_at_ns = next + interval_ns;
        return true;
    }

private:
    struct Bucket {
        std::uint64_t full_at_ns;
    };
    PageArray<Bucket> buckets_;
};

}  // namespace sluice::pipeline
