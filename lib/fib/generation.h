// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "net/address.h"

namespace sluice::fib {

/// What a decision is stamped with. Two stamps are compared for equality only: which is newer says
/// nothing, since they wrap.
using Stamp = std::uint32_t;

/// The process-wide source of stamps of one family: every bump of any netns draws the next one.
/// Control thread.
///
/// 32 bits last for years of bumps, not for ever. So the stamps are two halves that take turns, and
/// whenever wraps() has changed, everything that carries a stamp of the half now beginning or of
/// the one just ended is made stale before anything else is bumped: bump_all() of every netns, each
/// with a stamp of its own, and another Shared::cache_epoch. No netns then carries a stamp of the
/// ended half any more, and workers have the whole of the new half to empty their caches in:
/// whenever a stamp is drawn again, nobody remembers it. (Emptying the caches alone would not do: a
/// block that nobody bumped since would be bumped from a stamp to the same stamp.)
class GenerationSequence {
public:
    /// What every generation starts with; never drawn (G-01).
    static constexpr Stamp kInitial = 0;

    /// Tests narrow it, to see it wrap; a half must be longer than there are netns.
    explicit GenerationSequence(Stamp last = ~Stamp{0}) : last_(last), half_(last / 2) {}

    Stamp next() noexcept {
        ++bumps_;
        if (drawn_ == half_) {
            ++wraps_;
        } else if (drawn_ == last_) {
            ++wraps_;
            drawn_ = kInitial;
        }
        return ++drawn_;
    }
    /// How often the other half's turn began, with the stamp drawn last.
    std::uint64_t wraps() const noexcept { return wraps_; }
    std::uint64_t bumps() const noexcept { return bumps_; }

private:
    Stamp last_;
    Stamp half_;
    Stamp drawn_ = kInitial;
    std::uint64_t wraps_ = 0;
    std::uint64_t bumps_ = 0;
};

/// The generation of one netns and family, per block of destinations: a route change makes stale
/// what it can have changed, one block in 1,024 for all but the shortest prefixes, and a BGP update
/// leaves the rest of every cache alone (G-05). What concerns a whole netns (rules, netdevs) writes
/// every block. One writer (control), readers on any thread.
template <class Addr>
class Generations {
public:
    static constexpr unsigned kBlockBits = 10;
    static constexpr std::size_t kBlocks = std::size_t{1} << kBlockBits;
    /// A prefix of at least this length lies in one block.
    static constexpr unsigned kBlockPrefix = sizeof(Addr) == 4 ? 16 : 32;
    /// Spreads prefixes over blocks: those next to each other fall into different ones.
    static constexpr std::uint32_t kBlockFactor = 0x9e3779b1U;

    /// Any thread. A stamp that is read before a lookup vouches for what the lookup yields.
    Stamp stamp(const Addr& address) const noexcept {
        return blocks_[block_of(address)].load(std::memory_order_acquire);
    }
    /// For bulk readers; kBlocks of them, found as block_of() does.
    const std::atomic<Stamp>* blocks() const noexcept { return blocks_.data(); }
    static std::size_t block_of(const Addr& address) noexcept { return block_of(top(address)); }

    /// Control thread. Everything of the netns is stale.
    void bump_all(Stamp stamp) noexcept {
        whole_.store(stamp, std::memory_order_relaxed);
        for (auto& block : blocks_) {
            block.store(stamp, std::memory_order_release);
        }
    }
    /// Control thread. Every address in `prefix` is stale, and as little else as blocks allow.
    void bump(const net::Prefix<Addr>& prefix, Stamp stamp) noexcept {
        const unsigned length = prefix.length;
        if (length + kBlockBits <= kBlockPrefix) {  // it lies in nearly every block
            bump_all(stamp);
            return;
        }
        const std::uint32_t first = top(prefix.address);
        const std::uint32_t count = length >= kBlockPrefix ? 1 : 1U << (kBlockPrefix - length);
        for (std::uint32_t i = 0; i < count; ++i) {
            blocks_[block_of(first + i)].store(stamp, std::memory_order_release);
        }
    }
    /// The stamp of the last bump of everything; for show.
    Stamp whole() const noexcept { return whole_.load(std::memory_order_relaxed); }

private:
    /// The first kBlockPrefix bits, as a number.
    static std::uint32_t top(const Addr& address) noexcept {
        std::uint32_t word = 0;
        std::memcpy(&word, &address, 4);
        word = std::byteswap(word);
        return word >> (32U - kBlockPrefix);
    }
    static std::size_t block_of(std::uint32_t top) noexcept {
        return (top * kBlockFactor) >> (32U - kBlockBits);
    }

    std::array<std::atomic<Stamp>, kBlocks> blocks_{};
    std::atomic<Stamp> whole_{GenerationSequence::kInitial};
};

}  // namespace sluice::fib
