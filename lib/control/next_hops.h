// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <boost/intrusive/list.hpp>

#include "base/id.h"
#include "base/result.h"
#include "control/dsts.h"
#include "control/neighbors.h"
#include "control/netdevs.h"
#include "fib/dst.h"
#include "fib/shared.h"
#include "net/address.h"

namespace sluice::control {

struct RouteTarget;

/// A route's place in the list of what it leads to; see control/rib.h for the rest of a route.
struct RouteHook : boost::intrusive::list_base_hook<> {
    RouteTarget* hop = nullptr;
};

/// What routes lead to: a next hop of theirs, or a next-hop object (control/nexthop_objects.h).
struct RouteTarget {
    enum class Kind : std::uint8_t { kNextHop, kObject };

    std::uint32_t value = fib::kNoRoute;  // what tables hold: a dst, a group, a VRF to look on in
    bool usable = false;  // its routes may be in the table that packets are looked up in
    net::Family family = net::Family::kIpv4;  // of the packets, and so of the routes
    Kind kind = Kind::kNextHop;
    boost::intrusive::list<RouteHook> routes;
};

/// What tells two next hops apart. By netdev first: all of one netdev are neighbors in a map.
struct NextHopKey {
    NetdevId netdev;  // a VRF (type kConnected, no gateway): the lookup goes on in its table
    fib::DstType type = fib::DstType::kUnicast;
    net::Family family = net::Family::kIpv4;  // of the packets, not of the gateway
    std::optional<net::IpAddr> gateway{};
    std::uint16_t mtu = 0;      // of the routes; 0: the netdev's
    bool on_link = false;       // the gateway need not be in a subnet of the netdev
    std::uint32_t counter = 0;  // of the next-hop object that has it for itself; 0: none
    friend auto operator<=>(const NextHopKey&, const NextHopKey&) = default;
};

/// One published dst, shared by all routes with equal keys; or none, where the value is a VRF.
struct NextHop : RouteTarget {
    NextHopKey key;
    unsigned users = 0;  // next-hop objects that have it without a route
    bool has_dst() const noexcept { return (value & fib::kSpecialBits) == 0; }
};

/// Null: it is something else.
inline NextHop* as_next_hop(RouteTarget& target) noexcept {
    return target.kind == RouteTarget::Kind::kNextHop ? static_cast<NextHop*>(&target) : nullptr;
}
inline const NextHop* as_next_hop(const RouteTarget& target) noexcept {
    return target.kind == RouteTarget::Kind::kNextHop ? static_cast<const NextHop*>(&target)
                                                      : nullptr;
}

/// All next hops. They live as long as routes or objects are on them. Control thread.
class NextHops {
public:
    NextHops(fib::Shared& shared, Neighbors& neighbors, Dsts& dsts)
        : shared_(shared), neighbors_(neighbors), dsts_(dsts) {}

    /// Finds or makes it. A new one without a route is to be given to drop_if_unused() sooner or
    /// later. kLimit: no dst left.
    Result<NextHop*> get(const NextHopKey& key, const Netdev& netdev);
    void drop_if_unused(NextHop& hop);
    /// The same for what a route was on; objects stay.
    void drop_if_unused(RouteTarget& target) {
        if (NextHop* hop = as_next_hop(target); hop != nullptr) {
            drop_if_unused(*hop);
        }
    }

    /// Puts another dst in place of the hop's (which has one), for what cannot change in a
    /// published one; the caller re-points the routes and then releases the old dst, which is
    /// returned.
    Result<fib::DstIndex> renew(NextHop& hop, const Netdev& netdev);
    void release(fib::DstIndex dst, net::Family family) { dsts_.release(dst, family); }

    /// Stores the source MAC and MTU of `netdev` in the dsts over it. The dsts with a rewrite must
    /// be unresolved, and no worker have a copy under way.
    void refill(const Netdev& netdev);
    void set_mtu(const Netdev& netdev);

    /// `fn` may drop the hop it is given.
    template <class Fn>
    void for_each_on(NetdevId netdev, Fn&& fn) {
        auto it = hops_.lower_bound(NextHopKey{.netdev = netdev, .type = fib::DstType::kNone});
        while (it != hops_.end() && it->first.netdev == netdev) {
            NextHop& hop = *(it++)->second;
            fn(hop);
        }
    }
    std::size_t size() const noexcept { return hops_.size(); }

private:
    void fill(NextHop& hop, const Netdev& netdev);

    fib::Shared& shared_;
    Neighbors& neighbors_;
    Dsts& dsts_;
    std::map<NextHopKey, std::unique_ptr<NextHop>> hops_;
};

/// May the routes over it be used now? Down netdevs, vanished subnets and gateways that became own
/// addresses make them wait.
bool is_usable(const NextHopKey& key, const Netdev& netdev) noexcept;

}  // namespace sluice::control
