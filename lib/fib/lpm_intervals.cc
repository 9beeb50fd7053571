// SPDX-License-Identifier: BSD-3-Clause
#include "fib/lpm_intervals.h"

#include <algorithm>
#include <limits>
#include <span>

namespace sluice::fib {
namespace {

/// The addresses of one prefix, both ends included.
template <class Key>
struct Range {
    Key first;
    Key last;
    std::uint32_t word;
};

/// Ones in the low `bits` bits.
template <class Key>
constexpr Key low_ones(unsigned bits) noexcept {
    return bits == 0 ? Key{0} : std::numeric_limits<Key>::max() >> (sizeof(Key) * 8 - bits);
}

/// Ranges nest or are disjoint; they come outer first, then by address.
template <class Key>
IntervalArrays<Key> cut(std::span<const Range<Key>> ranges, std::uint32_t outside) {
    IntervalArrays<Key> out;
    out.starts.reserve(ranges.size() * 2 + 1);
    out.words.reserve(ranges.size() * 2 + 1);
    const auto begin_interval = [&out](Key start, std::uint32_t word) {
        if (!out.starts.empty() && out.starts.back() == start) {
            out.words.back() = word;
        } else if (out.words.empty() || out.words.back() != word) {
            out.starts.push_back(start);
            out.words.push_back(word);
        }
    };
    begin_interval(0, outside);
    std::vector<Range<Key>> open;
    const auto close_before = [&](Key key) {
        while (!open.empty() && open.back().last < key) {
            const Key after = open.back().last + 1;
            open.pop_back();
            begin_interval(after, open.empty() ? outside : open.back().word);
        }
    };
    for (const Range<Key>& range : ranges) {
        close_before(range.first);
        begin_interval(range.first, range.word);
        open.push_back(range);
    }
    // A range that ends with the last address, and all around it, have nothing after them.
    close_before(std::numeric_limits<Key>::max());

    out.count = static_cast<std::uint32_t>(out.starts.size());
    const Intervals<Key> unpadded = out.view();
    const std::size_t padded = std::size_t{unpadded.nodes()} * unpadded.node_keys();
    out.starts.resize(padded, std::numeric_limits<Key>::max());
    out.words.resize(padded, out.words.back());
    return out;
}

}  // namespace

IntervalForm<net::Ipv4Addr>::IntervalForm(const SortedRoutes<net::Ipv4Addr>& routes) {
    std::vector<Range<std::uint32_t>> ranges;
    ranges.reserve(routes.size());
    for (const auto& [prefix, value] : routes) {
        const std::uint32_t first = prefix.address.host();
        ranges.push_back({first, first | low_ones<std::uint32_t>(32U - prefix.length), value});
    }
    first_ = cut<std::uint32_t>(ranges, 0);
}

IntervalForm<net::Ipv6Addr>::IntervalForm(const SortedRoutes<net::Ipv6Addr>& routes) {
    using Key = std::uint64_t;
    std::vector<Range<Key>> short_ranges;  // up to /64
    std::vector<Range<Key>> first_ranges;  // the same, and one for each /64 with longer ones in it
    for (const auto& [prefix, value] : routes) {
        const Key high = key_of(prefix.address).high;
        if (prefix.length <= 64) {
            short_ranges.push_back({high, high | low_ones<Key>(64U - prefix.length), value});
            first_ranges.push_back(short_ranges.back());
        } else if (first_ranges.empty() || first_ranges.back().first != high ||
                   is_leaf(first_ranges.back().word)) {
            const auto number = static_cast<std::uint32_t>(nested_.size());
            first_ranges.push_back({high, high, make_word(kTailTag, number)});
            nested_.emplace_back();
        }
    }
    first_ = cut<Key>(first_ranges, 0);

    const IntervalArrays<Key> around = cut<Key>(short_ranges, 0);
    auto at = routes.begin();
    for (IntervalArrays<Key>& nested : nested_) {
        at = std::find_if(at, routes.end(), [](const auto& r) { return r.first.length > 64; });
        const Key high = key_of(at->first.address).high;
        std::vector<Range<Key>> ranges;
        for (; at != routes.end() && key_of(at->first.address).high == high; ++at) {
            const Key low = key_of(at->first.address).low;
            ranges.push_back({low, low | low_ones<Key>(128U - at->first.length), at->second});
        }
        nested = cut<Key>(ranges, around.view().find(high));
    }
    for (const IntervalArrays<Key>& nested : nested_) {
        nested_views_.push_back(nested.view());
    }
}

std::size_t IntervalForm<net::Ipv6Addr>::memory_bytes() const noexcept {
    std::size_t bytes = sizeof(*this) + first_.memory_bytes();
    for (const IntervalArrays<std::uint64_t>& nested : nested_) {
        bytes += sizeof(nested) + sizeof(Intervals<std::uint64_t>) + nested.memory_bytes();
    }
    return bytes;
}

}  // namespace sluice::fib
