// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/id.h"
#include "base/pages.h"
#include "fib/dst_cache.h"
#include "fib/generation.h"

namespace sluice::fib {

/// Behind each entry of a cache of destinations the source that was last found valid with it: most
/// flows have one. What it says is true of the source whatever the destination, since the source's
/// whole key and stamp are compared; an entry that meanwhile is another destination's only finds
/// less. One worker reads and writes it.
template <class Addr>
class SourceMemo {
public:
    explicit SourceMemo(std::size_t places) : notes_(places) {}

    /// Was this source found valid under this key and stamp? `place` as DstCache::probe() has it;
    /// the ingress class of `tail` is the netdev's id.
    bool has(std::uint32_t place,
             const Addr& source,
             std::uint32_t tail,
             Stamp stamp) const noexcept {
        const Note& note = notes_[place];
        return (note.source == source) & (note.tail == tail) & (note.stamp == stamp);
    }
    void put(std::uint32_t place, const Addr& source, std::uint32_t tail, Stamp stamp) noexcept {
        notes_[place] = {source, tail, stamp};
    }
    void clear() noexcept {
        for (std::size_t place = 0; place < notes_.size(); ++place) {
            notes_[place] = {};
        }
    }

private:
    struct Note {
        Addr source;
        std::uint32_t tail;
        Stamp stamp;
    };
    PageArray<Note> notes_;  // zeros are of no source: nothing comes in by the blackhole netdev
    static_assert(kBlackholeNetdev.value == 0 && kMaxNetdevs <= CacheTail::kMaxIngressClass);
};

}  // namespace sluice::fib
