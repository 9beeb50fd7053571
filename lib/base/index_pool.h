// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice {

/// Which slots of a fixed array are taken. Hands out the one given back last, else one that never
/// was taken, so that memory behind unused slots stays untouched.
class IndexPool {
public:
    /// Slots [first, end).
    IndexPool(std::uint32_t first, std::uint32_t end) : first_(first), fresh_(first), end_(end) {}

    std::optional<std::uint32_t> take() {
        if (!free_.empty()) {
            const std::uint32_t index = free_.back();
            free_.pop_back();
            return index;
        }
        return fresh_ < end_ ? std::optional(fresh_++) : std::nullopt;
    }
    /// One that was taken.
    void give(std::uint32_t index) { free_.push_back(index); }
    bool was_taken(std::uint32_t index) const noexcept { return index >= first_ && index < fresh_; }
    std::size_t in_use() const noexcept { return fresh_ - first_ - free_.size(); }

private:
    std::uint32_t first_;
    std::uint32_t fresh_;  // all from here on never were
    std::uint32_t end_;
    std::vector<std::uint32_t> free_;
};

}  // namespace sluice
