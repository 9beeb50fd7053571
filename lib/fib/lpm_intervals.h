// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fib/lpm_routes.h"
#include "fib/lpm_words.h"

namespace sluice::fib {

template <std::unsigned_integral Key>
struct IntervalArrays {
    std::vector<Key> starts;
    std::vector<std::uint32_t> words;

    Intervals<Key> view() const noexcept {
        return {starts.data(), words.data(), static_cast<std::uint32_t>(starts.size())};
    }
    std::size_t memory_bytes() const noexcept {
        return starts.capacity() * sizeof(Key) + words.capacity() * sizeof(std::uint32_t);
    }
};

/// The interval form and its memory. Immutable: every change of a small table makes a new one.
template <class Addr>
class IntervalForm;

template <>
class IntervalForm<net::Ipv4Addr> {
public:
    explicit IntervalForm(const RouteStore<net::Ipv4Addr>& routes);
    IntervalView<net::Ipv4Addr> view() const noexcept { return {first_.view()}; }
    std::size_t memory_bytes() const noexcept { return sizeof(*this) + first_.memory_bytes(); }

private:
    IntervalArrays<std::uint32_t> first_;
};

template <>
class IntervalForm<net::Ipv6Addr> {
public:
    explicit IntervalForm(const RouteStore<net::Ipv6Addr>& routes);
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
