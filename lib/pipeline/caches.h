// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "fib/dst_cache.h"
#include "fib/shared.h"
#include "pipeline/cache_meter.h"

namespace sluice::pipeline {

/// What one worker remembers of its decisions: where destinations lead, and which sources may come
/// in where. Two caches rather than one of pairs: many sources talk to many destinations.
struct Caches {
    explicit Caches(std::size_t entries, std::uint64_t secret)
        : destinations4(entries, secret),
          sources4(entries, secret * 3),
          destinations6(entries, secret * 5),
          sources6(entries, secret * 7) {}

    fib::Ipv4DstCache destinations4;
    fib::Ipv4DstCache sources4;
    fib::Ipv6DstCache destinations6;
    fib::Ipv6DstCache sources6;
    CacheMeter meter4;
    CacheMeter meter6;
    std::uint32_t epoch = 0;  // Shared::cache_epoch that they are of

    void clear() noexcept {
        destinations4.clear();
        sources4.clear();
        destinations6.clear();
        sources6.clear();
    }
};

}  // namespace sluice::pipeline
