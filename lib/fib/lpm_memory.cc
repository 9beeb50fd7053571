// SPDX-License-Identifier: BSD-3-Clause
#include "fib/lpm_memory.h"

#include <sys/mman.h>

#include "base/check.h"

namespace sluice::fib {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20U;

}  // namespace

Mapping::Mapping(std::size_t bytes) noexcept {
    // One huge page more, so that the part between two huge-page borders is large enough.
    const std::size_t wanted = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    const std::size_t mapped = wanted + kHugePageBytes;
    void* got = ::mmap(nullptr,
                       mapped,
                       PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1,
                       0);
    if (got == MAP_FAILED) {
        return;
    }
    auto* start = static_cast<std::byte*>(got);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): distance to the next border
    const std::size_t past = reinterpret_cast<std::uintptr_t>(start) % kHugePageBytes;
    const std::size_t skip = past == 0 ? 0 : kHugePageBytes - past;
    if (skip != 0) {
        ::munmap(start, skip);
    }
    ::munmap(start + skip + wanted, mapped - skip - wanted);
    base_ = start + skip;
    bytes_ = wanted;
    // Advice: without huge pages in the kernel everything still works, only slower.
    ::madvise(base_, bytes_, MADV_HUGEPAGE);
}

Mapping::~Mapping() {
    if (base_ != nullptr) {
        ::munmap(base_, bytes_);
    }
}

void SlotPool::collect() {
    while (!waiting_.empty() && reclaimer_->elapsed(waiting_.front().token)) {
        free_.push_back(waiting_.front().slot);
        waiting_.pop_front();
    }
}

std::size_t SlotPool::available() {
    collect();
    return free_.size() + (end_ - next_);
}

std::uint32_t SlotPool::take() {
    collect();
    if (!free_.empty()) {
        const std::uint32_t slot = free_.back();
        free_.pop_back();
        return slot;
    }
    SLUICE_CHECK(next_ < end_);
    return next_++;
}

}  // namespace sluice::fib
