// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "fib/lpm_lookup.h"
#include "net/address.h"
#include "net/byte_order.h"

/// The words and arrays that the control thread writes and workers search. Internal to the LPM.
namespace sluice::fib {

// A word: a tag in the top 8 bits, a payload in the other 24.
//   tag 0..128  leaf: the payload is the value, the tag the length of the prefix it came from; all
//               zero is "no route". The length is what lets a longer prefix survive when a shorter
//               one is set around it, and a deleted one be found among its neighbors.
//   kTailTag    the payload is the number of a Tail
//   kGroupTag   the payload is the number of a group of kGroupWords words, counted from the root
inline constexpr std::uint32_t kPayloadBits = 24;
inline constexpr std::uint32_t kPayloadMask = (1U << kPayloadBits) - 1;
inline constexpr std::uint32_t kTailTag = 0xfe;
inline constexpr std::uint32_t kGroupTag = 0xff;
inline constexpr std::uint32_t kGroupWords = 256;

constexpr std::uint32_t make_word(std::uint32_t tag, std::uint32_t payload) noexcept {
    return tag << kPayloadBits | payload;
}
constexpr std::uint32_t tag_of(std::uint32_t word) noexcept {
    return word >> kPayloadBits;
}
constexpr std::uint32_t payload_of(std::uint32_t word) noexcept {
    return word & kPayloadMask;
}
constexpr bool is_leaf(std::uint32_t word) noexcept {
    return word < make_word(kTailTag, 0);
}
constexpr bool is_group(std::uint32_t word) noexcept {
    return tag_of(word) == kGroupTag;
}

/// Acquire: what a group or tail held when its number was published is seen by who reads the
/// number.
inline std::uint32_t load_word(const std::uint32_t& word) noexcept {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): C++23 has no atomic_ref to const
    return std::atomic_ref(const_cast<std::uint32_t&>(word)).load(std::memory_order_acquire);
}
inline void store_word(std::uint32_t& word, std::uint32_t value) noexcept {
    std::atomic_ref(word).store(value, std::memory_order_release);
}

/// An IPv6 address as two numbers.
struct Halves {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    friend constexpr auto operator<=>(const Halves&, const Halves&) = default;
};

constexpr std::uint32_t key_of(const net::Ipv4Addr& address) noexcept {
    return address.host();
}
constexpr Halves key_of(const net::Ipv6Addr& address) noexcept {
    // One load and one swap a half; from a loop over the bytes g++ 12 makes eight.
    const auto raw = std::bit_cast<std::array<std::uint64_t, 2>>(address.bytes);
    return {net::Be<std::uint64_t>::from_raw(raw[0]).host(),
            net::Be<std::uint64_t>::from_raw(raw[1]).host()};
}
/// The part of an address that a form's first step searches.
constexpr std::uint32_t first_key(const net::Ipv4Addr& address) noexcept {
    return address.host();
}
constexpr std::uint64_t first_key(const net::Ipv6Addr& address) noexcept {
    return key_of(address).high;
}

// --- Interval form: starts[i] <= key < starts[i + 1] has words[i]; starts[0] is 0.

template <std::unsigned_integral Key>
struct Intervals {
    const Key* starts = nullptr;
    const std::uint32_t* words = nullptr;
    std::uint32_t count = 0;

    /// The vector search sees nodes of so many starts, 32 nodes at most. Arrays are padded to whole
    /// nodes, with the highest start and the last word.
    std::uint32_t node_keys() const noexcept {
        constexpr std::uint32_t kMaxNodes = 32;
        constexpr std::uint32_t kVector = 64 / sizeof(Key);
        return count <= kMaxNodes
                   ? 1
                   : (count + kMaxNodes * kVector - 1) / (kMaxNodes * kVector) * kVector;
    }
    std::uint32_t nodes() const noexcept { return (count + node_keys() - 1) / node_keys(); }

    std::uint32_t find(Key key) const noexcept {
        std::uint32_t at = 0;
        for (std::uint32_t left = count; left > 1;) {
            const std::uint32_t half = left / 2;
            // A product: compilers make a branch of a choice, and half of them would be
            // mispredicted.
            at += half * static_cast<std::uint32_t>(starts[at + half] <= key);
            left -= half;
        }
        return words[at];
    }
};

/// Words are values.
template <>
struct IntervalView<net::Ipv4Addr> {
    Intervals<std::uint32_t> first;
};
/// `first` is over the high 64 bits; a word of it is a value or, with kTailTag, the number of the
/// intervals over the low 64 bits in `nested`: few /64 have longer prefixes in them.
template <>
struct IntervalView<net::Ipv6Addr> {
    Intervals<std::uint64_t> first;
    const Intervals<std::uint64_t>* nested = nullptr;
};

// --- Trie form

/// The one prefix longer than its node under a word: groups for the bytes between would each hold
/// 255 words that say the same. Fields are constant while published, hit and miss excepted.
struct Tail {
    Halves prefix;
    Halves mask;
    std::uint32_t hit = 0;   // leaf
    std::uint32_t miss = 0;  // leaf: what holds around the prefix

    bool holds(const Halves& address) const noexcept {
        return (((address.high ^ prefix.high) & mask.high) |
                ((address.low ^ prefix.low) & mask.low)) == 0;
    }
};

/// words[0 .. 2^root bits) is the root, indexed with the first bits of an address; groups follow it
/// in the same array, each indexed with the next byte.
template <class Addr>
struct TrieView {
    const std::uint32_t* words = nullptr;
    const Tail* tails = nullptr;  // IPv6 only
};

/// IPv4: all but 0.1 % of the Internet's prefixes end in the root. IPv6: more than 16 bits would
/// cost a table 64 MiB; see test/bench/lpm_bench.cc.
template <class Addr>
inline constexpr unsigned kRootBits = 24;
template <>
inline constexpr unsigned kRootBits<net::Ipv6Addr> = 16;
template <class Addr>
inline constexpr bool kHasTails = sizeof(Addr) > 4;

template <class Addr>
constexpr std::uint32_t root_index(const Addr& address) noexcept {
    std::uint32_t index = 0;
    for (std::size_t i = 0; i < kRootBits<Addr> / 8; ++i) {
        index = index << 8U | address.bytes[i];
    }
    return index;
}

template <class Addr>
std::uint32_t search(const IntervalView<Addr>& view, const Addr& address) noexcept {
    const std::uint32_t word = view.first.find(first_key(address));
    if constexpr (sizeof(Addr) > 4) {
        if (!is_leaf(word)) [[unlikely]] {
            return view.nested[payload_of(word)].find(key_of(address).low);
        }
    }
    return word;
}

/// Goes on from `word`, which was found for the bytes before `byte`.
template <class Addr>
std::uint32_t search_from(const TrieView<Addr>& view,
                          std::uint32_t word,
                          std::size_t byte,
                          const Addr& address) noexcept {
    while (is_group(word)) {
        word = load_word(
            view.words[std::size_t{payload_of(word)} * kGroupWords + address.bytes[byte]]);
        ++byte;
    }
    if constexpr (kHasTails<Addr>) {
        if (!is_leaf(word)) {
            const Tail& tail = view.tails[payload_of(word)];
            word = load_word(tail.holds(key_of(address)) ? tail.hit : tail.miss);
        }
    }
    return payload_of(word);
}

template <class Addr>
std::uint32_t search(const TrieView<Addr>& view, const Addr& address) noexcept {
    return search_from(
        view, load_word(view.words[root_index(address)]), kRootBits<Addr> / 8, address);
}

}  // namespace sluice::fib
