// SPDX-License-Identifier: BSD-3-Clause
#include "fib/lpm_lookup.h"

#include <array>
#include <cstddef>

#include "base/first_supported.h"
#include "fib/lpm_lookup_x86.h"
#include "fib/lpm_words.h"

namespace sluice::fib {
namespace {

template <class View, class Addr>
void lookup_scalar(const View& view, std::span<const Addr> addresses, std::uint32_t* out) noexcept {
    for (const Addr& address : addresses) {
        *out++ = search(view, address);
    }
}

constexpr LookupImpl kScalar{
    .name = "scalar",
    .supported = []() noexcept { return true; },
    .intervals4 = lookup_scalar<IntervalView<net::Ipv4Addr>, net::Ipv4Addr>,
    .trie4 = lookup_scalar<TrieView<net::Ipv4Addr>, net::Ipv4Addr>,
    .intervals6 = lookup_scalar<IntervalView<net::Ipv6Addr>, net::Ipv6Addr>,
    .trie6 = lookup_scalar<TrieView<net::Ipv6Addr>, net::Ipv6Addr>,
};

#if defined(__x86_64__)
constexpr LookupImpl kAvx512{
    .name = "avx512",
    .supported = avx512::supported,
    .intervals4 = avx512::intervals4,
    .trie4 = avx512::trie4,
    .intervals6 = avx512::intervals6,
    .trie6 = avx512::trie6,
};
constexpr LookupImpl kAvx2{
    .name = "avx2",
    .supported = avx2::supported,
    .intervals4 = avx2::intervals4,
    .trie4 = avx2::trie4,
    .intervals6 = avx2::intervals6,
    .trie6 = avx2::trie6,
};
constexpr std::array kLookupImpls{kAvx512, kAvx2, kScalar};
#else
constexpr std::array kLookupImpls{kScalar};
#endif

}  // namespace

std::span<const LookupImpl> lookup_impls() noexcept {
    return kLookupImpls;
}

const LookupImpl& best_lookup() noexcept {
    static const LookupImpl& best = first_supported(lookup_impls());
    return best;
}

}  // namespace sluice::fib
