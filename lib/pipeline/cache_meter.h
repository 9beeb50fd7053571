// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::pipeline {

/// Decides for `cache: auto` whether one worker's cache of one family pays (C-50): it runs windows
/// of packets with and without it, alternating, reads the clock around them, and keeps the better
/// for a while that grows as long as the answer stays the same. A trial that is clearly lost ends
/// early, since its windows with the cache are what a worker pays for asking. While it keeps an
/// answer it costs a subtraction per burst.
class CacheMeter {
public:
    static constexpr std::uint32_t kWindowPackets = 8192;
    /// The first of each pair only warms up: right after a switch the lines of the other way are
    /// cold.
    static constexpr unsigned kWindows = 10;  // on on off off on on off off on on
    static constexpr std::uint32_t kShortestKeep = 1U << 20U;
    static constexpr std::uint32_t kLongestKeep = 1U << 26U;
    /// The cache has to win by this much, or being right about it is luck: 1/64.
    static constexpr unsigned kMarginShift = 6;
    static constexpr std::uint64_t kMostMissEighths = 5;
    static constexpr std::uint64_t kMissEighthsOfDear = 2;
    /// With more, behind a window that filled the cache, there is nothing to time.
    static constexpr std::uint64_t kHopelessEighths = 7;

    /// Is the next burst to ask the cache?
    bool use() const noexcept { return window_ == kKeeping ? keep_on_ : uses(window_); }
    /// Are the clock's readings around the next burst wanted?
    bool timing() const noexcept { return window_ != kKeeping && (window_ & 1U) != 0; }

    /// After a burst of `packets` of the family, `misses` of which the cache did not have; `cycles`
    /// only counts while timing().
    void done(std::uint32_t packets, std::uint32_t misses, std::uint64_t cycles) noexcept {
        cycles_ += cycles;
        packets_ += packets;
        misses_ += misses;
        if (packets < left_) [[likely]] {
            left_ -= packets;
            return;
        }
        next();
    }

private:
    static constexpr unsigned kKeeping = ~0U;
    static constexpr bool uses(unsigned window) noexcept { return (window / 2) % 2 == 0; }

    void next() noexcept {
        if (window_ == kKeeping) {
            kept_ += packets_;
            // Kept on, it is looked at by windows: other traffic may hit less.
            if (kept_ < keep_ && !(keep_on_ && misses_ * 8 > packets_ * (miss_eighths_ + 2))) {
                begin_window();
                return;
            }
            window_ = 0;
            best_ = {kNone, kNone};
        } else {
            bool lost = false;
            if (timing()) {
                const std::uint64_t cost = cycles_ * 16 / std::max<std::uint64_t>(packets_, 1);
                std::uint64_t& best = best_[uses(window_) ? 1 : 0];
                best = std::min(best, cost);
                if (uses(window_)) {
                    miss_eighths_ = misses_ * 8 / std::max<std::uint64_t>(packets_, 1);
                }
                // Half as much again, with misses to explain it: without them somebody else may
                // have had the core for a part of one window.
                const bool dear = best_[0] != kNone && best_[1] > best_[0] + best_[0] / 2;
                lost = (dear && miss_eighths_ >= kMissEighthsOfDear) ||
                       misses_ * 8 > packets_ * kHopelessEighths;
            }
            if (lost) {
                keep(false, 2);
            } else if (++window_ == kWindows) {
                conclude();
            }
        }
        begin_window();
    }

    void begin_window() noexcept {
        left_ = window_ == kKeeping && !keep_on_ ? keep_ : kWindowPackets;
        cycles_ = packets_ = misses_ = 0;
    }

    void conclude() noexcept {
        // With a quarter of hits it cannot pay: if it seems to, somebody else had the core while
        // the other windows were timed.
        const bool on =
            miss_eighths_ <= kMostMissEighths && best_[1] + (best_[1] >> kMarginShift) < best_[0];
        keep(on, 1);
    }

    /// For so long as the answer has stayed the same, doubled `doublings` times.
    void keep(bool on, unsigned doublings) noexcept {
        keep_ = on == keep_on_ ? std::min(keep_ << doublings, kLongestKeep) : kShortestKeep;
        keep_on_ = on;
        kept_ = 0;
        window_ = kKeeping;
    }

    static constexpr std::uint64_t kNone = ~std::uint64_t{0} >> 8U;
    unsigned window_ = 0;
    std::uint32_t left_ = kWindowPackets;
    std::uint32_t keep_ = kShortestKeep / 2;  // the first conclusion doubles it
    bool keep_on_ = false;
    std::uint64_t kept_ = 0;
    std::uint64_t misses_ = 0;
    std::uint64_t miss_eighths_ = 0;  // of the packets, while it was last measured
    std::uint64_t cycles_ = 0;
    std::uint64_t packets_ = 0;
    std::array<std::uint64_t, 2> best_{kNone, kNone};
};

}  // namespace sluice::pipeline
