// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/address.h"

namespace sluice::fib {

/// The published forms of a table as workers see them, and the ways to search them.

template <class Addr>
struct IntervalView;
template <class Addr>
struct TrieView;

template <class View, class Addr>
using LookupFn = void (*)(const View&, std::span<const Addr>, std::uint32_t*) noexcept;

/// One way to search every form. All give the same answers; the scalar one is the oracle.
struct LookupImpl {
    std::string_view name;
    bool (*supported)() noexcept;
    LookupFn<IntervalView<net::Ipv4Addr>, net::Ipv4Addr> intervals4;
    LookupFn<TrieView<net::Ipv4Addr>, net::Ipv4Addr> trie4;
    LookupFn<IntervalView<net::Ipv6Addr>, net::Ipv6Addr> intervals6;
    LookupFn<TrieView<net::Ipv6Addr>, net::Ipv6Addr> trie6;
};

/// Best first, scalar last.
std::span<const LookupImpl> lookup_impls() noexcept;
/// The first that this machine supports.
const LookupImpl& best_lookup() noexcept;

}  // namespace sluice::fib
