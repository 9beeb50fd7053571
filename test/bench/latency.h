// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "preemptions.h"

/// Paced packets that carry the time at which they were sent, and how long they took.
namespace sluice::test {

inline std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

/// Nanoseconds, each right to 1/64.
class Histogram {
public:
    void add(std::uint64_t ns) {
        ++counts_[slot(ns)];
        ++count_;
        max_ = std::max(max_, ns);
    }
    void add(const Histogram& other) {
        std::ranges::transform(counts_, other.counts_, counts_.begin(), std::plus{});
        count_ += other.count_;
        max_ = std::max(max_, other.max_);
    }
    std::uint64_t count() const { return count_; }
    std::uint64_t max() const { return max_; }
    /// The least that more than `share` of all stay within.
    std::uint64_t at(double share) const {
        const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_));
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += counts_[i];
            if (seen > wanted) {
                return std::min(highest(i), max_);
            }
        }
        return max_;
    }

private:
    // Values below 2^kBits have a slot each; each power of two above has 2^kBits.
    static constexpr unsigned kBits = 6;
    static unsigned shift_of(std::uint64_t ns) {
        return ns >> kBits == 0 ? 0 : static_cast<unsigned>(std::bit_width(ns)) - kBits - 1;
    }
    static std::size_t slot(std::uint64_t ns) {
        const unsigned shift = shift_of(ns);
        return (std::size_t{shift} << kBits) + (ns >> shift);
    }
    static std::uint64_t highest(std::size_t slot) {
        const std::size_t shift = slot < (2U << kBits) ? 0 : (slot >> kBits) - 1;
        return ((slot - (shift << kBits) + 1) << shift) - 1;
    }
    std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(64U << kBits);
    std::uint64_t count_ = 0;
    std::uint64_t max_ = 0;
};

struct Window {
    std::uint64_t sent = 0;
    std::uint64_t refused = 0;  // the sender's end was full
    std::uint64_t skipped = 0;  // the sender had been stopped, and does not catch up
    std::uint64_t in_time = 0;  // received during the window
    double seconds = 0;
    Histogram latency;

    void add(const Window& other) {
        sent += other.sent;
        refused += other.refused;
        skipped += other.skipped;
        in_time += other.in_time;
        seconds += other.seconds;
        latency.add(other.latency);
    }
};

inline constexpr std::size_t kMostAtOnce = 32;
/// Of one window: so short that there are undisturbed ones while others use the machine, too.
inline constexpr double kWindow = 0.002;

struct Load {
    double per_second;  // 0: as many as go
    double seconds;     // in all, with what is between the windows
    double window = kWindow;
    double silence = 0;   // before each window, so long to twice as long
    double warm = 0.001;  // before each window: what is sent then is not counted; 0: nothing is
};

/// How many packets are due.
class Pacer {
public:
    Pacer(double per_second, std::uint64_t start)
        : interval_(per_second > 0 ? 1e9 / per_second : 0), next_(static_cast<double>(start)) {}

    std::size_t due(std::uint64_t now, std::uint64_t& skipped) {
        if (interval_ == 0) {
            return kMostAtOnce;
        }
        const double behind = (static_cast<double>(now) - next_) / interval_;
        if (behind < 0) {
            return 0;
        }
        if (behind > 2 * kMostAtOnce) {
            skipped += static_cast<std::uint64_t>(behind);
            next_ = static_cast<double>(now) + interval_;
            return 1;
        }
        const std::size_t count = std::min(static_cast<std::size_t>(behind) + 1, kMostAtOnce);
        next_ += static_cast<double>(count) * interval_;
        return count;
    }

private:
    double interval_;
    double next_;
};

/// One window. A Wire has
///   std::size_t send(std::size_t count, std::uint64_t now): how many it took;
///   void receive(fn): fn(ns when it was sent, ns now) for each packet that is there.
template <class Wire>
Window drive(Wire& wire, const Load& load) {
    constexpr std::uint64_t kLongestWarm = 20'000'000;
    constexpr std::uint64_t kLongestDrain = 5'000'000;
    Window w;
    std::uint64_t now = now_ns();
    if (load.silence > 0) {
        // Not in step with what sleeps.
        const double dice = static_cast<double>((now * 0x9e3779b97f4a7c15U) >> 32U) / 4294967296.0;
        const auto until = now + static_cast<std::uint64_t>(load.silence * (1 + dice) * 1e9);
        while (now < until) {
            now = now_ns();
        }
    }
    Pacer pacer(load.per_second, now);
    std::uint64_t nobody = 0;

    // The worker may be asleep, or others may have its core: only once it answers does time count.
    const std::uint64_t first = now;
    const auto warm = static_cast<std::uint64_t>(load.warm * 1e9);
    std::uint64_t answered = 0;
    while (warm != 0 && now < first + kLongestWarm &&
           (now < first + warm || answered + 50'000 < now)) {
        wire.send(pacer.due(now, nobody), now);
        wire.receive([&](std::uint64_t sent, std::uint64_t received) {
            answered = sent >= first ? received : answered;
        });
        now = now_ns();
    }

    const std::uint64_t start = now;
    const std::uint64_t end = start + static_cast<std::uint64_t>(load.window * 1e9);
    const auto take = [&](std::uint64_t sent, std::uint64_t received) {
        ++w.in_time;
        if (sent >= start) {
            w.latency.add(received - std::min(sent, received));
        }
    };
    while (now < end) {
        const std::size_t due = pacer.due(now, w.skipped);
        const std::size_t taken = due != 0 ? wire.send(due, now) : 0;
        w.sent += taken;
        w.refused += due - taken;
        wire.receive(take);
        now = now_ns();
    }
    w.seconds = static_cast<double>(now - start) / 1e9;
    const std::uint64_t in_time = w.in_time;
    while (now < end + kLongestDrain && w.latency.count() < w.sent) {
        wire.receive(take);
        now = now_ns();
    }
    w.in_time = in_time;
    return w;
}

/// One packet a window, after a silence in which a worker that may sleep has come to its longest.
inline Load wakeup_load(double seconds) {
    return {.per_second = 1000, .seconds = seconds, .window = 0.001, .silence = 0.0015, .warm = 0};
}

struct Measured {
    Window window;  // the sum
    unsigned windows = 0;
    unsigned clean = 0;

    double pps() const { return static_cast<double>(window.in_time) / window.seconds; }
    std::string json() const {
        const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };
        return fmt::format(
            R"("sent": {}, "received": {}, "refused": {}, "skipped": {}, "windows": {}, "clean": {}, "pps": {:.0f}, "p50": {:.3f}, "p99": {:.3f}, "p999": {:.3f}, "max": {:.3f})",
            window.sent,
            window.latency.count(),
            window.refused,
            window.skipped,
            windows,
            clean,
            pps(),
            us(window.latency.at(0.5)),
            us(window.latency.at(0.99)),
            us(window.latency.at(0.999)),
            us(window.latency.max()));
    }
};

/// Of the windows in which others took no more than what is `allowed` of the watched threads'
/// cores, where there were any.
template <class Wire>
Measured measure(Wire& wire,
                 const Load& load,
                 const Preemptions& preemptions,
                 const Preemptions::Allowed& allowed = {}) {
    Window all;
    Measured clean;
    unsigned windows = 0;
    const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(load.seconds * 1e9);
    for (; windows == 0 || now_ns() < end; ++windows) {
        const Preemptions::Seen before = preemptions.now();
        const Window w = drive(wire, load);
        if (allowed.by(before, preemptions.now())) {
            clean.window.add(w);
            ++clean.clean;
        }
        all.add(w);
    }
    clean.windows = windows;
    if (clean.clean == 0) {
        clean.window = all;
    }
    return clean;
}

}  // namespace sluice::test
