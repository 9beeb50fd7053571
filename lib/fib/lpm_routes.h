// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fib/lpm_words.h"
#include "net/address.h"

namespace sluice::fib {

/// The routes of a table as they were set: one open-addressed hash over (address, length), 8 bytes
/// a slot for IPv4 and 20 for IPv6. A slot's second part is a leaf word, so it is 0 in a free slot.
template <class Addr>
class RouteStore {
public:
    using Prefix = net::Prefix<Addr>;

    std::size_t size() const noexcept { return size_; }
    std::size_t memory_bytes() const noexcept { return slots_.capacity() * sizeof(Slot); }

    std::optional<std::uint32_t> find(const Prefix& prefix) const noexcept {
        if (count_by_length_[prefix.length] == 0) {
            return std::nullopt;
        }
        const Slot& slot = slots_[slot_of(prefix)];
        return slot.leaf == 0 ? std::nullopt : std::optional(payload_of(slot.leaf));
    }

    /// The leaf word of the longest prefix that is shorter than `prefix` and holds it; 0 if none.
    std::uint32_t covering_leaf(const Prefix& prefix) const noexcept {
        for (unsigned length = prefix.length; length-- > 0;) {
            if (count_by_length_[length] == 0) {
                continue;
            }
            const Prefix shorter = Prefix::of(prefix.address, static_cast<std::uint8_t>(length));
            if (const auto value = find(shorter)) {
                return make_word(length, *value);
            }
        }
        return 0;
    }

    void put(const Prefix& prefix, std::uint32_t value) {
        if ((size_ + 1) * 4 > slots_.size() * 3) {
            grow();
        }
        Slot& slot = slots_[slot_of(prefix)];
        if (slot.leaf == 0) {
            ++size_;
            ++count_by_length_[prefix.length];
        }
        slot = {prefix.address, make_word(prefix.length, value)};
    }

    /// The prefix must be there.
    void erase(const Prefix& prefix) noexcept {
        std::size_t hole = slot_of(prefix);
        --size_;
        --count_by_length_[prefix.length];
        // Without markers for the deleted: whoever would no longer be found past the hole moves in.
        for (std::size_t at = next(hole); slots_[at].leaf != 0; at = next(at)) {
            const std::size_t home = home_of(slots_[at].prefix());
            if (((at - home) & mask()) >= ((at - hole) & mask())) {
                slots_[hole] = slots_[at];
                hole = at;
            }
        }
        slots_[hole] = {};
    }

    template <class Fn>
    void for_each(Fn&& fn) const {
        for (const Slot& slot : slots_) {
            if (slot.leaf != 0) {
                fn(slot.prefix(), payload_of(slot.leaf));
            }
        }
    }

private:
    struct Slot {
        Addr address;
        std::uint32_t leaf = 0;
        Prefix prefix() const noexcept {
            return {address, static_cast<std::uint8_t>(tag_of(leaf))};
        }
    };
    static_assert(sizeof(Slot) == sizeof(Addr) + 4);
    static constexpr std::size_t kFirstSlots = 8;

    std::size_t mask() const noexcept { return slots_.size() - 1; }
    std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask(); }

    std::size_t home_of(const Prefix& prefix) const noexcept {
        // Multiplication carries only upwards, so the index comes from the top bits of the product.
        std::uint64_t key = 0;
        if constexpr (sizeof(Addr) == 4) {
            key = std::uint64_t{key_of(prefix.address)} << 8U | prefix.length;
        } else {
            const Halves halves = key_of(prefix.address);
            key = (halves.high ^ prefix.length) * 0xd6e8feb86659fd93U;
            key = std::rotl(key, 32) ^ halves.low;
        }
        key *= 0x9e3779b97f4a7c15U;
        return static_cast<std::size_t>(key >> (64 - std::bit_width(mask())));
    }

    /// Where the prefix is or, if it is not there, would go.
    std::size_t slot_of(const Prefix& prefix) const noexcept {
        std::size_t at = home_of(prefix);
        while (slots_[at].leaf != 0 && slots_[at].prefix() != prefix) {
            at = next(at);
        }
        return at;
    }

    void grow() {
        std::vector<Slot> old(slots_.empty() ? kFirstSlots : slots_.size() * 2);
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.leaf != 0) {
                slots_[slot_of(slot.prefix())] = slot;
            }
        }
    }

    std::vector<Slot> slots_;  // a power of two, or empty
    std::size_t size_ = 0;
    std::array<std::uint32_t, Prefix::kBits + 1> count_by_length_{};
};

}  // namespace sluice::fib
