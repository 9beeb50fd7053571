// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fib/dst_cache.h"
#include "fib/generation.h"
#include "fib/lpm.h"
#include "net/address.h"

namespace sluice::fib::test {

inline std::vector<const CacheProbeImpl*> supported_probes() {
    std::vector<const CacheProbeImpl*> out;
    for (const CacheProbeImpl& impl : cache_probe_impls()) {
        if (impl.supported()) {
            out.push_back(&impl);
        }
    }
    return out;
}

template <class Addr>
struct Key {
    Addr address{};
    std::uint32_t tail = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
};

/// Address number `i` of a few prefixes; all differ.
template <class Addr>
Addr nth_address(std::uint32_t i);
template <>
inline net::Ipv4Addr nth_address(std::uint32_t i) {
    return net::Ipv4Addr::from_host(0x0a000000U + i);
}
template <>
inline net::Ipv6Addr nth_address(std::uint32_t i) {
    net::Ipv6Addr address{{0x20, 0x01, 0x0d, 0xb8}};
    for (unsigned byte = 0; byte < 4; ++byte) {
        address.bytes[15 - byte] = static_cast<std::uint8_t>(i >> (8 * byte));
    }
    return address;
}

/// What a probe says, its arrays checked for writes past their ends.
struct Answer {
    CacheProbed probed;
    std::vector<std::uint32_t> values;
    std::vector<Stamp> stamps;
    std::vector<std::uint16_t> misses;
    std::vector<std::uint32_t> places;  // as far as they were asked for
};

template <class Addr>
Answer probe(DstCache<Addr>& cache,
             const Generations<Addr>& generations,
             const std::vector<Key<Addr>>& keys,
             bool places = false) {
    constexpr std::uint32_t kUntouched = 0xdeadbeef;
    constexpr std::uint16_t kUntouchedMiss = 0xbeef;
    const std::size_t count = keys.size();
    const std::size_t room = (count + 15) / 16 * 16;
    std::vector<Addr> addresses;
    std::vector<std::uint32_t> tails;
    for (const auto& key : keys) {
        addresses.push_back(key.address);
        tails.push_back(key.tail);
    }
    Answer answer;
    answer.values.assign(count + 1, kUntouched);
    answer.stamps.assign(count + 1, kUntouched);
    answer.misses.assign(room + 1, kUntouchedMiss);
    answer.places.assign(count + 1, kUntouched);
    answer.probed = cache.probe(generations,
                                addresses,
                                tails.data(),
                                answer.values.data(),
                                answer.stamps.data(),
                                answer.misses.data(),
                                places ? answer.places.data() : nullptr);
    EXPECT_EQ(answer.values.back(), kUntouched) << "wrote past the end";
    EXPECT_EQ(answer.stamps.back(), kUntouched) << "wrote past the end";
    EXPECT_EQ(answer.misses.back(), kUntouchedMiss) << "wrote past the end";
    EXPECT_EQ(answer.probed.hits + answer.probed.misses, count);
    answer.values.pop_back();
    answer.stamps.pop_back();
    answer.misses.resize(answer.probed.misses);
    EXPECT_EQ(answer.places.back(), kUntouched) << "wrote past the end";
    answer.places.resize(places ? count : 0);
    for (const std::uint32_t place : answer.places) {
        EXPECT_LT(place, cache.entries()) << "of a miss, too";
    }
    return answer;
}

/// Keys that share both their buckets.
template <class Addr>
std::vector<Key<Addr>> colliding(const DstCache<Addr>& cache, std::size_t count) {
    std::vector<Key<Addr>> out;
    const auto buckets = cache.buckets_of(nth_address<Addr>(1), 0);
    for (std::uint32_t i = 1; out.size() < count; ++i) {
        if (cache.buckets_of(nth_address<Addr>(i), 0) == buckets) {
            out.push_back({nth_address<Addr>(i), 0});
        }
    }
    return out;
}

}  // namespace sluice::fib::test
