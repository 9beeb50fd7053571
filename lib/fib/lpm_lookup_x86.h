// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#if defined(__x86_64__)

#include <cstdint>
#include <span>

#include "fib/lpm_words.h"
#include "net/address.h"

/// Vector twins of search() in lpm_words.h.
namespace sluice::fib {

// ThreadSanitizer does not see gathers, so it takes what was read through one for unordered: builds
// with it have the scalar search only.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kGathersVisible = false;
#else
inline constexpr bool kGathersVisible = true;
#endif

namespace avx512 {
bool supported() noexcept;
void intervals4(const IntervalView<net::Ipv4Addr>& view,
                std::span<const net::Ipv4Addr> addresses,
                std::uint32_t* out) noexcept;
void trie4(const TrieView<net::Ipv4Addr>& view,
           std::span<const net::Ipv4Addr> addresses,
           std::uint32_t* out) noexcept;
void intervals6(const IntervalView<net::Ipv6Addr>& view,
                std::span<const net::Ipv6Addr> addresses,
                std::uint32_t* out) noexcept;
void trie6(const TrieView<net::Ipv6Addr>& view,
           std::span<const net::Ipv6Addr> addresses,
           std::uint32_t* out) noexcept;
}  // namespace avx512

namespace avx2 {
bool supported() noexcept;
void intervals4(const IntervalView<net::Ipv4Addr>& view,
                std::span<const net::Ipv4Addr> addresses,
                std::uint32_t* out) noexcept;
void trie4(const TrieView<net::Ipv4Addr>& view,
           std::span<const net::Ipv4Addr> addresses,
           std::uint32_t* out) noexcept;
void intervals6(const IntervalView<net::Ipv6Addr>& view,
                std::span<const net::Ipv6Addr> addresses,
                std::uint32_t* out) noexcept;
void trie6(const TrieView<net::Ipv6Addr>& view,
           std::span<const net::Ipv6Addr> addresses,
           std::uint32_t* out) noexcept;
}  // namespace avx2

}  // namespace sluice::fib

#endif
