// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fib/generation.h"
#include "net/address.h"

namespace sluice::fib {

template <class Addr>
struct CacheView;

/// DstCache::Probed.
struct CacheProbed {
    std::uint32_t hits = 0;
    std::uint32_t misses = 0;
    std::uint32_t stale = 0;  // of the misses: an entry of another generation, now empty
};

/// DstCache::probe().
template <class Addr>
using CacheProbeFn = CacheProbed (*)(CacheView<Addr>&,
                                     const Generations<Addr>&,
                                     std::span<const Addr>,
                                     const std::uint32_t* tails,
                                     std::uint32_t* values,
                                     Stamp* stamps,
                                     std::uint16_t* misses,
                                     std::uint32_t* places) noexcept;

/// One way to probe caches. All leave the same answers and the same cache; the scalar one is the
/// oracle.
struct CacheProbeImpl {
    std::string_view name;
    bool (*supported)() noexcept;
    CacheProbeFn<net::Ipv4Addr> probe4;
    CacheProbeFn<net::Ipv6Addr> probe6;
};

/// Best first, scalar last.
std::span<const CacheProbeImpl> cache_probe_impls() noexcept;
/// The first that this machine supports.
const CacheProbeImpl& best_cache_probe() noexcept;

}  // namespace sluice::fib
