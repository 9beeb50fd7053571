// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include <sys/mman.h>

namespace sluice {

/// A big zeroed array straight from the kernel: costs memory only where it is touched, and asks for
/// transparent 2-MiB pages, which matter more to a lookup than anything else. T must be fine as
/// all-zero bytes.
template <class T>
class PageArray {
    static_assert(std::is_trivially_destructible_v<T>);

public:
    PageArray() = default;
    /// Throws std::bad_alloc: only ever called at start or by control code that catches it.
    explicit PageArray(std::size_t count) : bytes_(count * sizeof(T)), count_(count) {
        void* p = ::mmap(nullptr,
                         bytes_,
                         PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                         -1,
                         0);
        if (p == MAP_FAILED) {
            throw std::bad_alloc();
        }
        ::madvise(p, bytes_, MADV_HUGEPAGE);
        data_ = static_cast<T*>(p);
    }
    PageArray(PageArray&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)),
          count_(std::exchange(other.count_, 0)) {}
    PageArray& operator=(PageArray&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(count_, other.count_);
        return *this;
    }
    PageArray(const PageArray&) = delete;
    PageArray& operator=(const PageArray&) = delete;
    ~PageArray() {
        if (data_ != nullptr) {
            ::munmap(data_, bytes_);
        }
    }

    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return count_; }
    T& operator[](std::size_t i) noexcept { return data_[i]; }
    const T& operator[](std::size_t i) const noexcept { return data_[i]; }

private:
    T* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t count_ = 0;
};

}  // namespace sluice
