// SPDX-License-Identifier: BSD-3-Clause
#include "fib/dst.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/reclaimer.h"
#include "base/result.h"
#include "net/address.h"

namespace sluice::fib {

void Dst::set_gateway(const net::IpAddr& address) noexcept {
    gateway = {};
    gateway_is_v6 = address.is_v6() ? 1 : 0;
    if (address.is_v6()) {
        gateway = address.v6().bytes;
    } else {
        std::ranges::copy(address.v4().bytes, gateway.begin());
    }
}

DstPool::DstPool(std::size_t capacity, Reclaimer& reclaimer)
    : slots_(capacity),
      owners_(capacity),
      indices_(kFirstDst, static_cast<std::uint32_t>(capacity)),
      reclaimer_(reclaimer) {
    SLUICE_CHECK(capacity >= kFirstDst && capacity <= kMaxDsts);
    slots_[kSourceInvalidDst].type = DstType::kSourceInvalid;
    slots_[kRouteLoopDst].type = DstType::kRouteLoop;
    slots_[kGroupEmptyDst].type = DstType::kGroupEmpty;
}

Result<DstIndex> DstPool::allocate(NetdevId owner) {
    const auto index = indices_.take();
    if (!index) {
        return fail(ErrorCode::kLimit, "all {} dsts are in use (limits.neighbors)", slots_.size());
    }
    owners_[*index] = owner;
    ++owned_[owner.value];
    Dst& dst = slots_[*index];
    dst.type = DstType::kNone;
    dst.counter = 0;
    dst.base = kNoRoute;
    dst.state.store(0, std::memory_order_relaxed);
    return *index;
}

void DstPool::release(DstIndex index) {
    SLUICE_CHECK(indices_.was_taken(index));
    reclaimer_.defer([this, index] {
        indices_.give(index);
        --owned_[owners_[index].value];
    });
}

namespace {
std::atomic_ref<std::uint64_t> first_word(Dst& dst) noexcept {
    return std::atomic_ref<std::uint64_t>(
        *reinterpret_cast<std::uint64_t*>(dst.rewrite.data()));  // NOLINT: aligned to 8 by Dst
}
}  // namespace

void resolve(Dst& dst, const net::MacAddr& mac) noexcept {
    if ((dst.state.load(std::memory_order_relaxed) & Dst::kGone) != 0) {
        return;
    }
    std::uint64_t word = 0;
    std::memcpy(&word, dst.rewrite.data(), sizeof word);
    std::memcpy(&word, mac.bytes.data(), mac.bytes.size());
    first_word(dst).store(word, std::memory_order_relaxed);
    const std::uint32_t state = dst.state.load(std::memory_order_relaxed);
    dst.state.store(state | Dst::kResolved, std::memory_order_release);
}

void unresolve(Dst& dst) noexcept {
    const std::uint32_t state = dst.state.load(std::memory_order_relaxed);
    dst.state.store(state & (Dst::kGone | Dst::kExpires), std::memory_order_release);
}

void repoint_to_blackhole(Dst& dst) noexcept {
    dst.state.store(Dst::kGone, std::memory_order_release);
}

void set_report_use(Dst& dst, bool on) noexcept {
    const std::uint32_t state = dst.state.load(std::memory_order_relaxed);
    dst.state.store(on ? state | Dst::kReportUse : state & ~Dst::kReportUse,
                    std::memory_order_release);
}

}  // namespace sluice::fib
