// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "fib/lpm_words.h"
#include "net/address.h"

namespace sluice::fib {

template <std::unsigned_integral Key>
struct IntervalArrays {
    std::vector<Key> starts;
    std::vector<std::uint32_t> words;
    std::uint32_t count = 0;  // without the padding

    Intervals<Key> view() const noexcept { return {starts.data(), words.data(), count}; }
    std::size_t memory_bytes() const noexcept {
        return starts.capacity() * sizeof(Key) + words.capacity() * sizeof(std::uint32_t);
    }
};

/// Routes by address, outer before inner.
template <class Addr>
using SortedRoutes = std::vector<std::pair<net::Prefix<Addr>, std::uint32_t>>;

/// The interval form and its memory. Immutable: every change of a small table makes a new one.
template <class Addr>
class IntervalForm;

template <>
class IntervalForm<net::Ipv4Addr> {
public:
    explicit IntervalForm(const SortedRoutes<net::Ipv4Addr>& routes);
    IntervalView<net::Ipv4Addr> view() const noexcept { return {first_.view()}; }
    std::size_t memory_bytes() const noexcept { return sizeof(*this) + first_.memory_bytes(); }

private:
    IntervalArrays<std::uint32_t> first_;
};

template <>
class IntervalForm<net::Ipv6Addr> {
public:
    explicit IntervalForm(const SortedRoutes<net::Ipv6Addr>& routes);
    IntervalView<net::Ipv6Addr> view() const noexcept {
        return {first_.view(), nested_views_.data()};
    }
    std::size_t memory_bytes() const noexcept;

private:
    IntervalArrays<std::uint64_t> first_;
    std::vector<IntervalArrays<std::uint64_t>> nested_;
    std::vector<Intervals<std::uint64_t>> nested_views_;
};

}  // namespace sluice::fib
