// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/id.h"
#include "fib/dst.h"
#include "net/address.h"

namespace sluice::control {

/// The dsts that no FIB object owns (U-01), per worker that they were made for and family, in lists
/// by netdev: so that removing a netdev finds them without a look at any other's (U-06). Links are
/// indices beside the dst pool, not in it: workers never read them. Control thread.
class UncachedLists {
public:
    /// Lists per worker and family: kMaxNetdevs is one per netdev, fewer are shared by id modulo
    /// their number, 1 is a single list. A power of two (U-02).
    UncachedLists(std::size_t workers, std::size_t dst_capacity, std::size_t lists = kMaxNetdevs);

    /// The dst must not be listed. It is found from `out` and, where that is another netdev, from
    /// `idev` (U-05). O(1), and so is the rest but flush().
    void add(
        fib::DstIndex dst, std::size_t worker, net::Family family, NetdevId out, NetdevId idev);
    /// Needs to know nothing of the netdevs (U-03). The dst must be listed.
    void remove(fib::DstIndex dst);
    bool listed(fib::DstIndex dst) const noexcept;

    /// Every listed dst whose output netdev or idev is in `gone`: `each(dst, still)` where `still`
    /// says that its other netdev lives, so that it stays listed under that one; else it has left
    /// the lists when `each` runs. Stops after about `limit` visits; call again until it returns
    /// false (U-08).
    bool flush(std::span<const NetdevId> gone,
               std::size_t limit,
               const std::function<void(fib::DstIndex dst, bool still)>& each);

    std::size_t size() const noexcept;
    /// Of one netdev as output.
    std::size_t count(std::size_t worker, net::Family family, NetdevId out) const noexcept;
    std::size_t visits() const noexcept;  // by flush() so far, of any dst
};

}  // namespace sluice::control
