// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "base/result.h"

namespace sluice::dpdk {

namespace detail {
struct Unmap {
    std::size_t bytes = 0;
    void operator()(void* p) const noexcept;
};
}  // namespace detail

/// Zeroed memory for big tables, at least 64-byte aligned, from the operating system rather than
/// from dpdk.memory-mb: transparent hugepages where the kernel grants them, and no page is taken
/// before it is written. Not for device DMA. Needs no EAL.
class HugeMemory {
public:
    HugeMemory() = default;
    /// kLimit when the address space or memory is exhausted.
    static Result<HugeMemory> create(std::size_t bytes);

    void* data() const noexcept { return data_.get(); }
    std::size_t bytes() const noexcept { return data_.get_deleter().bytes; }

private:
    std::unique_ptr<void, detail::Unmap> data_;
};

/// Fixed-size array of zero-initialized T in HugeMemory.
template <class T>
class HugeArray {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 4096);

public:
    HugeArray() = default;
    static Result<HugeArray> create(std::size_t count) {
        if (count > SIZE_MAX / sizeof(T)) {
            return fail(ErrorCode::kLimit, "no memory for a table of {} entries", count);
        }
        auto memory = HugeMemory::create(count * sizeof(T));
        if (!memory) {
            return std::unexpected(std::move(memory.error()));
        }
        HugeArray array;
        array.memory_ = std::move(*memory);
        array.count_ = count;
        return array;
    }

    T* data() noexcept { return static_cast<T*>(memory_.data()); }
    const T* data() const noexcept { return static_cast<const T*>(memory_.data()); }
    std::size_t size() const noexcept { return count_; }
    T& operator[](std::size_t i) noexcept { return data()[i]; }
    const T& operator[](std::size_t i) const noexcept { return data()[i]; }
    std::span<T> span() noexcept { return {data(), count_}; }
    std::span<const T> span() const noexcept { return {data(), count_}; }

private:
    HugeMemory memory_;
    std::size_t count_ = 0;
};

}  // namespace sluice::dpdk
