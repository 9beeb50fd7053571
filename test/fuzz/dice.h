// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::test::fuzz {

/// Chances from a seed, the same on every machine. Every step has its own, so that leaving one step
/// out changes no other: that is what lets a failing run be made shorter.
class Dice {
public:
    explicit Dice(std::uint64_t seed, std::uint64_t stream = 0)
        : state_(mix(seed ^ mix(stream + 0x5851f42d4c957f2dU))) {}

    std::uint64_t next() noexcept { return mix(state_ += 0x9e3779b97f4a7c15U); }
    std::uint32_t below(std::size_t bound) noexcept {
        return static_cast<std::uint32_t>(next() % bound);
    }
    /// From `low` to `high`, both included.
    std::uint32_t from(std::uint32_t low, std::uint32_t high) noexcept {
        return low + below(std::size_t{high} - low + 1);
    }
    bool one_in(std::uint32_t chances) noexcept { return below(chances) == 0; }
    bool percent(std::uint32_t chance) noexcept { return below(100) < chance; }
    template <class T, std::size_t N>
    const T& of(const T (&choices)[N]) noexcept {  // NOLINT: tables of constants
        return choices[below(N)];
    }
    template <class Range>
    const auto& of(const Range& choices) noexcept {
        return choices[below(choices.size())];
    }

private:
    static std::uint64_t mix(std::uint64_t x) noexcept {  // splitmix64's finisher
        x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
        x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
        return x ^ (x >> 31U);
    }
    std::uint64_t state_;
};

}  // namespace sluice::test::fuzz
