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
class GenerationSequence {
public:
    /// What every generation starts with; never drawn (G-01).
    static constexpr Stamp kInitial = 0;

    /// Tests narrow it, to see it wrap.
    explicit GenerationSequence(Stamp last = ~Stamp{0}) : last_(last) {}

    /// When it has handed out `last` it starts over; whoever keeps stamps must have forgotten all
    /// of them before: see wraps().
    Stamp next() noexcept {
        if (drawn_ == last_) {
            drawn_ = kInitial;
            ++wraps_;
        }
        return ++drawn_;
    }
    /// How often it started over. Each time every worker's caches are to be emptied
    /// (Shared::cache_epoch) before the first of the new stamps is published.
    std::uint64_t wraps() const noexcept { return wraps_; }
    std::uint64_t bumps() const noexcept { return wraps_ * last_ + drawn_; }

private:
    Stamp last_;
    Stamp drawn_ = kInitial;
    std::uint64_t wraps_ = 0;
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

    /// Any thread. A stamp that is read before a lookup vouches for what the lookup yields.
    Stamp stamp(const Addr& address) const noexcept {
        return blocks_[block_of(address)].load(std::memory_order_acquire);
    }
    /// For bulk readers; kBlocks of them.
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
    /// Neighboring prefixes fall into different blocks.
    static std::size_t block_of(std::uint32_t top) noexcept {
        return (top * 0x9e3779b1U) >> (32U - kBlockBits);
    }

    std::array<std::atomic<Stamp>, kBlocks> blocks_{};
    std::atomic<Stamp> whole_{GenerationSequence::kInitial};
};

}  // namespace sluice::fib
