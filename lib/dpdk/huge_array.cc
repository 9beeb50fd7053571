// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/huge_array.h"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/mman.h>

namespace sluice::dpdk {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;

std::size_t round_up(std::size_t n, std::size_t unit) {
    return (n + unit - 1) / unit * unit;
}

}  // namespace

Result<HugeMemory> HugeMemory::create(std::size_t bytes) {
    // Only whole aligned 2 MB units become hugepages: map one more and give back what is not
    // aligned.
    const bool huge = bytes >= kHugePage;
    const std::size_t kept = round_up(bytes == 0 ? 1 : bytes, huge ? kHugePage : kPage);
    const std::size_t mapped = huge ? kept + kHugePage : kept;
    void* base = kept < bytes ? MAP_FAILED
                              : mmap(nullptr,
                                     mapped,
                                     PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                     -1,
                                     0);
    if (base == MAP_FAILED) {
        return fail(ErrorCode::kLimit,
                    "no memory for a table of {} MB: {}",
                    bytes >> 20U,
                    std::generic_category().message(kept < bytes ? EOVERFLOW : errno));
    }
    auto* start = static_cast<std::byte*>(base);
    if (huge) {
        const std::size_t skip = round_up(reinterpret_cast<std::uintptr_t>(start), kHugePage) -
                                 reinterpret_cast<std::uintptr_t>(start);
        if (skip != 0) {
            munmap(start, skip);
        }
        munmap(start + skip + kept, kHugePage - skip);
        start += skip;
        // Refusal only costs speed.
        static_cast<void>(madvise(start, kept, MADV_HUGEPAGE));
    }
    HugeMemory memory;
    memory.data_ = std::unique_ptr<void, detail::Unmap>(start, detail::Unmap{kept});
    return memory;
}

void detail::Unmap::operator()(void* p) const noexcept {
    munmap(p, bytes);
}

}  // namespace sluice::dpdk
