// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/hold.h"

#include <cstddef>
#include <cstdint>
#include <memory>

#include <rte_mbuf.h>

#include "fib/neighbor_map.h"

namespace sluice::pipeline {

HoldTable::HoldTable(std::uint64_t secret)
    : secret_(secret | 1U), slots_(std::make_unique<std::array<Slot, kNeighbors>>()) {
    heads_.fill(kNone);
    for (std::uint16_t i = 0; i < kNeighbors; ++i) {
        (*slots_)[i].next = i + 1U < kNeighbors ? static_cast<std::uint16_t>(i + 1) : kNone;
    }
}

bool HoldTable::add(const fib::NeighborKeyWords& key,
                    rte_mbuf* m,
                    std::uint64_t now_ns,
                    Added& added) noexcept {
    std::uint16_t& head = head_of(key);
    std::uint16_t index = head;
    while (index != kNone && (*slots_)[index].key != key) {
        index = (*slots_)[index].next;
    }
    if (index == kNone) {
        if (free_ == kNone || packets_ >= kPackets) {
            return false;
        }
        index = free_;
        Slot& slot = (*slots_)[index];
        free_ = slot.next;
        slot = {.key = key,
                .since_ns = now_ns,
                .packets = {},
                .next = head,
                .older = newest_,
                .newer = kNone,
                .first = 0,
                .count = 1};
        slot.packets[0] = m;
        head = index;
        (newest_ == kNone ? oldest_ : (*slots_)[newest_].newer) = index;
        newest_ = index;
        ++neighbors_;
        ++packets_;
        added = {Outcome::kFirst, nullptr};
        return true;
    }
    Slot& slot = (*slots_)[index];
    if (slot.count < kPacketsPerNeighbor && packets_ < kPackets) {
        slot.packets[(slot.first + slot.count) % kPacketsPerNeighbor] = m;
        ++slot.count;
        ++packets_;
        added = {Outcome::kKept, nullptr};
        return true;
    }
    added = {Outcome::kDisplaced, slot.packets[slot.first]};
    slot.packets[(slot.first + slot.count) % kPacketsPerNeighbor] = m;
    slot.first = static_cast<std::uint8_t>((slot.first + 1) % kPacketsPerNeighbor);
    return true;
}

std::size_t HoldTable::empty_slot(std::uint16_t index, Batch& out) noexcept {
    Slot& slot = (*slots_)[index];
    std::uint16_t* link = &head_of(slot.key);
    while (*link != index) {
        link = &(*slots_)[*link].next;
    }
    *link = slot.next;
    (slot.older == kNone ? oldest_ : (*slots_)[slot.older].newer) = slot.newer;
    (slot.newer == kNone ? newest_ : (*slots_)[slot.newer].older) = slot.older;
    for (std::size_t i = 0; i < slot.count; ++i) {
        out[i] = slot.packets[(slot.first + i) % kPacketsPerNeighbor];
    }
    slot.next = free_;
    free_ = index;
    packets_ -= slot.count;
    --neighbors_;
    return slot.count;
}

std::size_t HoldTable::take(const fib::NeighborKeyWords& key, Batch& out) noexcept {
    std::uint16_t index = head_of(key);
    while (index != kNone && (*slots_)[index].key != key) {
        index = (*slots_)[index].next;
    }
    return index == kNone ? 0 : empty_slot(index, out);
}

std::size_t HoldTable::take_overdue(std::uint64_t before_ns, Batch& out) noexcept {
    if (oldest_ == kNone || (*slots_)[oldest_].since_ns >= before_ns) {
        return 0;
    }
    return empty_slot(oldest_, out);
}

}  // namespace sluice::pipeline
