// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "base/id.h"
#include "base/reclaimer.h"
#include "fib/netdev_view.h"

namespace sluice::control {

/// The ingress classes of cache keys (C-03): one number for all views whose packets meet the same
/// tables, rules and flags. Control thread.
class IngressClasses {
public:
    explicit IngressClasses(Reclaimer& reclaimer) : reclaimer_(reclaimer) {}

    struct Taken {
        std::uint16_t number;
        /// It meant something else before: caches of the netns must be stale before it is
        /// published.
        bool reused;
    };
    /// For a view that is about to be published.
    Taken take(const fib::NetdevView& view);
    /// A view with that number is not published any more.
    void drop(std::uint16_t number);
    std::size_t size() const noexcept { return classes_.size(); }

private:
    struct Key {
        const void* fib4;
        const void* fib6;
        const void* policy4;
        const void* policy6;
        NetnsId netns;
        bool forwarding, route_localnet, bc_forwarding;
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    struct Class {
        std::uint16_t number = 0;
        std::size_t views = 0;
    };
    using Classes = std::map<Key, Class>;

    Reclaimer& reclaimer_;
    Classes classes_;
    std::vector<Classes::iterator> by_number_;
    std::deque<std::uint16_t> free_;
    std::deque<std::uint16_t> waiting_;  // for the end of a grace period
};

}  // namespace sluice::control
