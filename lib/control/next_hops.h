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
#include "control/neighbors.h"
#include "control/netdevs.h"
#include "fib/dst.h"
#include "fib/shared.h"
#include "net/address.h"

namespace sluice::control {

struct NextHop;

/// A route's place in the list of its next hop; see control/rib.h for the rest of a route.
struct RouteHook : boost::intrusive::list_base_hook<> {
    NextHop* hop = nullptr;
};

/// What tells two next hops apart. By netdev first: all of one netdev are neighbors in a map.
struct NextHopKey {
    NetdevId netdev;
    fib::DstType type = fib::DstType::kUnicast;
    net::Family family = net::Family::kIpv4;  // of the packets, not of the gateway
    std::optional<net::IpAddr> gateway{};
    std::uint16_t mtu = 0;  // of the routes; 0: the netdev's
    bool on_link = false;   // the gateway need not be in a subnet of the netdev
    friend auto operator<=>(const NextHopKey&, const NextHopKey&) = default;
};

/// Where routes lead: one published dst, shared by all routes with equal keys.
struct NextHop {
    NextHopKey key;
    fib::DstIndex dst = fib::kNoRoute;
    bool usable = false;  // its routes may be in the table that packets are looked up in
    boost::intrusive::list<RouteHook, boost::intrusive::constant_time_size<false>> routes;
};

/// All next hops. They live as long as routes are on them. Control thread.
class NextHops {
public:
    NextHops(fib::Shared& shared, Neighbors& neighbors) : shared_(shared), neighbors_(neighbors) {}

    /// Finds or makes it. A new one without a route is to be given to drop_if_unused() sooner or
    /// later. kLimit: no dst left.
    Result<NextHop*> get(const NextHopKey& key, const Netdev& netdev);
    void drop_if_unused(NextHop& hop);

    /// Puts another dst in place of the hop's, for what cannot change in a published one; the
    /// caller re-points the routes and then releases the old dst, which is returned.
    Result<fib::DstIndex> renew(NextHop& hop, const Netdev& netdev);
    void release(fib::DstIndex dst) { shared_.dsts.release(dst); }

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
    std::map<NextHopKey, std::unique_ptr<NextHop>> hops_;
};

/// May the routes over it be used now? Down netdevs, vanished subnets and gateways that became own
/// addresses make them wait.
bool is_usable(const NextHopKey& key, const Netdev& netdev) noexcept;

}  // namespace sluice::control
