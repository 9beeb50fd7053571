// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace sluice {

/// A number that names a thing of one kind: ids of different kinds do not convert into each other.
template <class Tag, class T>
struct Id {
    using Value = T;
    T value{};

    constexpr Id() = default;
    constexpr explicit Id(T v) : value(v) {}
    friend constexpr auto operator<=>(Id, Id) = default;
};

/// Dense: every id below the highest in use is an array slot (see kMaxNetdevs).
using NetdevId = Id<struct NetdevTag, std::uint16_t>;
/// DPDK ethdev port id.
using PortId = Id<struct PortTag, std::uint16_t>;
/// Dense number of a worker, 0-based; not the lcore id.
using WorkerId = Id<struct WorkerTag, std::uint16_t>;
/// Routing instance.
using NetnsId = Id<struct NetnsTag, std::uint16_t>;

/// The one netdev that drops and counts everything and never goes away.
inline constexpr NetdevId kBlackholeNetdev{0};
/// Ids above this do not exist; sized for hundreds of netns with a loopback and a few VLANs each.
inline constexpr std::size_t kMaxNetdevs = 4096;
inline constexpr std::size_t kMaxWorkers = 64;

}  // namespace sluice

template <class Tag, class T>
struct std::hash<sluice::Id<Tag, T>> {
    std::size_t operator()(sluice::Id<Tag, T> id) const noexcept {
        return std::hash<T>{}(id.value);
    }
};
