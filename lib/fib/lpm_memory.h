// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "base/reclaimer.h"

namespace sluice::fib {

/// Address space from the kernel: reads as zero, costs memory only where it has been written, on
/// 2-MiB pages where the kernel has them (with 4-KiB pages a lookup in a full table spends most of
/// its time on translation).
class Mapping {
public:
    Mapping() = default;
    explicit Mapping(std::size_t bytes) noexcept;  // check with operator bool
    ~Mapping();
    Mapping(Mapping&& other) noexcept
        : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(base_, other.base_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    explicit operator bool() const noexcept { return base_ != nullptr; }
    template <class T>
    T* as() const noexcept {
        return static_cast<T*>(base_);
    }

private:
    void* base_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Numbers of equal slots in an array that workers read. A released slot may still be in some
/// worker's hands, so it is given out again only after its grace period.
class SlotPool {
public:
    SlotPool(std::uint32_t first, std::uint32_t end, Reclaimer& reclaimer)
        : next_(first), first_(first), end_(end), reclaimer_(&reclaimer) {}

    /// How many take() can give now.
    std::size_t available();
    /// There must be one.
    std::uint32_t take();
    void release(std::uint32_t slot) { waiting_.push_back({reclaimer_->start(), slot}); }
    /// For a slot that was never published.
    void release_unseen(std::uint32_t slot) { free_.push_back(slot); }

    std::size_t waiting() const noexcept { return waiting_.size(); }
    std::size_t in_use() const noexcept { return next_ - first_ - free_.size() - waiting_.size(); }
    /// Slots that have ever been given out.
    std::size_t touched() const noexcept { return next_ - first_; }
    std::size_t memory_bytes() const noexcept {
        return free_.capacity() * sizeof(std::uint32_t) + waiting_.size() * sizeof(Waiting);
    }

private:
    struct Waiting {
        Reclaimer::Token token;
        std::uint32_t slot;
    };
    void collect();

    std::uint32_t next_;  // first that was never given out
    std::uint32_t first_;
    std::uint32_t end_;
    std::vector<std::uint32_t> free_;
    std::deque<Waiting> waiting_;  // by token
    Reclaimer* reclaimer_;
};

}  // namespace sluice::fib
