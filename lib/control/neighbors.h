// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/id.h"
#include "control/changes.h"
#include "control/dataplane.h"
#include "control/dsts.h"
#include "control/neighbor_table.h"
#include "control/netdevs.h"
#include "fib/shared.h"
#include "net/address.h"
#include "pipeline/messages.h"

namespace sluice::control {

/// Joins the neighbor states to what they decide: the dsts that lead to each neighbor, what workers
/// hold for it, and the messages on the wire. Control thread.
class Neighbors final : private NeighborActions {
public:
    Neighbors(fib::Shared& shared,
              Netdevs& netdevs,
              Dsts& dsts,
              Changes& changes,
              Dataplane& dataplane,
              const NeighborSettings& settings);

    NeighborTable& table() noexcept { return table_; }
    const NeighborTable& table() const noexcept { return table_; }

    /// A next hop's dst leads to this neighbor: it gets the MAC now, if known, and whenever it
    /// changes.
    void attach(const NeighborKey& key, fib::DstIndex dst);
    void detach(const NeighborKey& key, fib::DstIndex dst);

    /// Whether somebody on `netdev`'s link may have the address: it is in a subnet there, a gateway
    /// that a route calls on-link, or in the prefix of a route with a netdev and no gateway.
    bool on_link(const Netdev& netdev, const net::IpAddr& address) const noexcept;

    /// What a worker has to say.
    void handle(std::size_t worker, const pipeline::WorkerEvent& event, Time now);
    /// Sends what found a worker's queue full; false when some is left.
    bool flush_backlog();

    /// The MAC or MTU of `netdev` changed; see NextHops for the same of next hops.
    void unresolve_on(NetdevId netdev);
    void refill(const Netdev& netdev);
    void set_mtu(const Netdev& netdev);
    /// Gives every dst on the netdev its neighbor's MAC again and has workers try again.
    void announce_on(const Netdev& netdev);

    /// Gratuitous ARP and unsolicited advertisements of `netdev`'s addresses, or of one.
    void announce_own(const Netdev& netdev, const net::IpAddr& address);
    void announce_own(const Netdev& netdev);

private:
    /// The dsts that lead to one neighbor.
    struct Leading {
        fib::DstIndex host = fib::kNoRoute;   // in the neighbor map
        std::vector<fib::DstIndex> gateways;  // of next hops
        bool empty() const noexcept { return host == fib::kNoRoute && gateways.empty(); }
    };

    void solicit(const NeighborKey& key, std::optional<net::MacAddr> unicast_to) override;
    void reachable(const NeighborKey& key, const net::MacAddr& mac) override;
    void report_use(const NeighborKey& key, bool on) override;
    void failed(const NeighborKey& key) override;
    void removed(const NeighborKey& key, NeighborState last) override;

    /// The host's own dst, so that packets for its connected address find it. False: no room.
    bool ensure_host(const NeighborKey& key, const Netdev& netdev);
    template <class Fn>
    void for_each_dst(const NeighborKey& key, Fn&& fn);
    template <class Fn>
    void for_each_dsts_on(NetdevId netdev, Fn&& fn);
    void send(std::size_t worker, const pipeline::WorkerCommand& command);
    void send_all(pipeline::WorkerCommand::Kind kind, const NeighborKey& key);
    bool may_ask(const Netdev* netdev, const net::IpAddr& address) const noexcept;

    fib::Shared& shared_;
    Netdevs& netdevs_;
    Dsts& keeper_;
    Changes& changes_;
    Dataplane& dataplane_;
    NeighborTable table_;
    std::map<NeighborKey, Leading> dsts_;
    std::map<NeighborKey, std::size_t> asked_;  // the worker whose packet waits, until it is known
    std::vector<std::deque<pipeline::WorkerCommand>> backlog_;
};

}  // namespace sluice::control
