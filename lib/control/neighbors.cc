// SPDX-License-Identifier: BSD-3-Clause
#include "control/neighbors.h"

#include <algorithm>
#include <span>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/check.h"
#include "control/dsts.h"
#include "control/netns.h"
#include "net/neighbor_message.h"

namespace sluice::control {

using pipeline::WorkerCommand;
using pipeline::WorkerEvent;

namespace {

fib::NeighborKeyWords words(const NeighborKey& key) noexcept {
    return fib::NeighborKeyWords::of(key.netdev, key.address);
}

}  // namespace

Neighbors::Neighbors(fib::Shared& shared,
                     Netdevs& netdevs,
                     Dsts& dsts,
                     Changes& changes,
                     Dataplane& dataplane,
                     const NeighborSettings& settings)
    : shared_(shared),
      netdevs_(netdevs),
      keeper_(dsts),
      changes_(changes),
      dataplane_(dataplane),
      table_(*this, settings),
      backlog_(dataplane.workers()) {}

// --- dsts ---------------------------------------------------------------------------------------

template <class Fn>
void Neighbors::for_each_dst(const NeighborKey& key, Fn&& fn) {
    const auto it = dsts_.find(key);
    if (it == dsts_.end()) {
        return;
    }
    for (const fib::DstIndex dst : it->second.gateways) {
        fn(shared_.dsts.writable(dst));
    }
    if (it->second.host != fib::kNoRoute) {
        fn(shared_.dsts.writable(it->second.host));
    }
}

template <class Fn>
void Neighbors::for_each_dsts_on(NetdevId netdev, Fn&& fn) {
    auto it = dsts_.lower_bound(NeighborKey{netdev, net::IpAddr{}});
    for (; it != dsts_.end() && it->first.netdev == netdev; ++it) {
        fn(it->first, it->second);
    }
}

void Neighbors::attach(const NeighborKey& key, fib::DstIndex dst) {
    dsts_[key].gateways.push_back(dst);
    table_.pin(key);
    const Netdev* netdev = netdevs_.find(key.netdev);
    const Neighbor* neighbor = table_.find(key);
    if (neighbor != nullptr && neighbor->mac && netdev != nullptr && netdev->rewriting == 0) {
        fib::resolve(shared_.dsts.writable(dst), *neighbor->mac);
        fib::set_report_use(shared_.dsts.writable(dst), neighbor->state == NeighborState::kStale);
    }
}

void Neighbors::detach(const NeighborKey& key, fib::DstIndex dst) {
    const auto it = dsts_.find(key);
    SLUICE_CHECK(it != dsts_.end() && std::erase(it->second.gateways, dst) == 1);
    if (it->second.empty()) {
        dsts_.erase(it);
    }
    table_.unpin(key);
}

bool Neighbors::ensure_host(const NeighborKey& key, const Netdev& netdev) {
    Leading& dsts = dsts_[key];
    if (dsts.host != fib::kNoRoute) {
        return true;
    }
    const auto dst = shared_.dsts.allocate(netdev.id);
    if (!dst) {
        // The pool is sized so that limits.neighbors is met first.
        spdlog::error(
            "neighbor {} on {}: {}", key.address.to_string(), netdev.name, dst.error().message);
        if (dsts.empty()) {
            dsts_.erase(key);
        }
        return false;
    }
    dsts.host = *dst;
    fill_dst(shared_.dsts.writable(*dst),
             netdev,
             fib::DstType::kUnicast,
             key.address.family(),
             key.address,
             0);
    const auto asked = asked_.find(key);
    keeper_.uncached().add(*dst,
                           asked == asked_.end() ? 0 : asked->second,
                           key.address.family(),
                           netdev.id,
                           netdev.id);
    shared_.neighbors.insert(words(key), *dst);
    return true;
}

void Neighbors::unresolve_on(NetdevId netdev) {
    for_each_dsts_on(netdev, [&](const NeighborKey& key, Leading&) {
        for_each_dst(key, [](fib::Dst& dst) { fib::unresolve(dst); });
    });
}

void Neighbors::refill(const Netdev& netdev) {
    for_each_dsts_on(netdev.id, [&](const NeighborKey&, Leading& dsts) {
        if (dsts.host != fib::kNoRoute) {
            set_source_mac(shared_.dsts.writable(dsts.host), netdev.mac);
        }
    });
}

void Neighbors::set_mtu(const Netdev& netdev) {
    for_each_dsts_on(netdev.id, [&](const NeighborKey&, Leading& dsts) {
        if (dsts.host != fib::kNoRoute) {
            set_path_mtu(shared_.dsts.writable(dsts.host), netdev, 0);
        }
    });
}

void Neighbors::announce_on(const Netdev& netdev) {
    std::vector<const Neighbor*> known;
    table_.for_each([&](const Neighbor& neighbor) {
        if (neighbor.key.netdev == netdev.id && neighbor.mac) {
            known.push_back(&neighbor);
        }
    });
    for (const Neighbor* neighbor : known) {
        reachable(neighbor->key, *neighbor->mac);
        report_use(neighbor->key, neighbor->state == NeighborState::kStale);
    }
}

// --- workers ------------------------------------------------------------------------------------

void Neighbors::send(std::size_t worker, const WorkerCommand& command) {
    // Behind what already waits: a worker must not learn of a failure before the success after it.
    if (!backlog_[worker].empty() || !dataplane_.send(worker, command)) {
        backlog_[worker].push_back(command);
    }
}

void Neighbors::send_all(WorkerCommand::Kind kind, const NeighborKey& key) {
    for (std::size_t worker = 0; worker < backlog_.size(); ++worker) {
        send(worker, {kind, words(key)});
    }
}

bool Neighbors::flush_backlog() {
    bool done = true;
    for (std::size_t worker = 0; worker < backlog_.size(); ++worker) {
        auto& waiting = backlog_[worker];
        while (!waiting.empty() && dataplane_.send(worker, waiting.front())) {
            waiting.pop_front();
        }
        done = done && waiting.empty();
    }
    return done;
}

bool Neighbors::may_ask(const Netdev* netdev, const net::IpAddr& address) const noexcept {
    return netdev != nullptr && netdev->up() && !netdev->owns(address) && on_link(*netdev, address);
}

bool Neighbors::on_link(const Netdev& netdev, const net::IpAddr& address) const noexcept {
    if (netdev.on_link(address)) {
        return true;
    }
    if (const auto it = dsts_.find({netdev.id, address});
        it != dsts_.end() && !it->second.gateways.empty()) {
        return true;
    }
    const auto leads_there = [&](fib::DstIndex index) {
        const fib::Dst& dst = shared_.dsts[index];
        return dst.type == fib::DstType::kConnected && dst.out == netdev.id;
    };
    // Any table: rules and routes from one VRF into another choose among them.
    return std::ranges::any_of(netdev.netns->tables, [&](const auto& entry) {
        const Table& table = *entry.second;
        const std::uint32_t value = address.is_v4() ? table.v4.lpm().lookup_one(address.v4())
                                                    : table.v6.lpm().lookup_one(address.v6());
        if ((value & fib::kSpecialBits) == 0) {
            return leads_there(value);
        }
        const fib::Group* group = (value & fib::kGroupBit) == 0 ? nullptr : shared_.groups[value];
        return group != nullptr &&
               std::ranges::any_of(
                   std::span(group->buckets.get(), std::size_t{group->mask} + 1),
                   [&](const fib::Group::Bucket& bucket) {
                       return leads_there(bucket.dst.load(std::memory_order_relaxed));
                   });
    });
}

void Neighbors::handle(std::size_t worker, const WorkerEvent& event, Time now) {
    const NeighborKey key{event.key.netdev(), event.key.address()};
    if (event.kind == WorkerEvent::Kind::kUsed) {
        table_.used(key, now);
        return;
    }
    const Netdev* netdev = netdevs_.find(key.netdev);
    if (!may_ask(netdev, key.address)) {
        const bool gone = netdev == nullptr || !netdev->up();
        send(worker, {gone ? WorkerCommand::Kind::kGone : WorkerCommand::Kind::kFailed, event.key});
        return;
    }
    asked_.try_emplace(key, worker);
    if (table_.resolve(key, now) == Resolve::kTableFull) {
        asked_.erase(key);
        send(worker, {WorkerCommand::Kind::kTableFull, event.key});
    }
}

// --- NeighborActions ----------------------------------------------------------------------------

void Neighbors::solicit(const NeighborKey& key, std::optional<net::MacAddr> unicast_to) {
    const Netdev* netdev = netdevs_.find(key.netdev);
    const fib::NetdevView* view = shared_.netdev(key.netdev);
    if (netdev == nullptr || view == nullptr || !netdev->up()) {
        return;
    }
    if (key.address.is_v4()) {
        const net::Ipv4Addr* source = view->source_for(key.address.v4());
        if (source == nullptr) {
            source = view->local->any4();
        }
        if (source != nullptr) {
            const auto frame = net::make_arp_request(
                netdev->mac, *source, unicast_to.value_or(net::kBroadcastMac), key.address.v4());
            dataplane_.transmit(key.netdev, frame.view());
        }
    } else if (const net::Ipv6Addr* source = view->source_for(key.address.v6());
               source != nullptr) {
        const auto frame =
            net::make_neighbor_solicitation(netdev->mac, *source, key.address.v6(), unicast_to);
        dataplane_.transmit(key.netdev, frame.view());
    }
}

void Neighbors::reachable(const NeighborKey& key, const net::MacAddr& mac) {
    const Netdev* netdev = netdevs_.find(key.netdev);
    if (netdev == nullptr || netdev->rewriting != 0) {
        return;  // announce_on() follows
    }
    const bool found = ensure_host(key, *netdev);
    asked_.erase(key);
    for_each_dst(key, [&](fib::Dst& dst) {
        // resolve() forgets it, and report_use() is not called again for the same state.
        const bool report = (dst.state.load(std::memory_order_relaxed) & fib::Dst::kReportUse) != 0;
        fib::resolve(dst, mac);
        fib::set_report_use(dst, report);
    });
    // Ready, a packet for a host without a dst of its own would only wait and ask again.
    send_all(found ? WorkerCommand::Kind::kReady : WorkerCommand::Kind::kTableFull, key);
}

void Neighbors::report_use(const NeighborKey& key, bool on) {
    const Netdev* netdev = netdevs_.find(key.netdev);
    if (netdev == nullptr || netdev->rewriting != 0) {
        return;
    }
    for_each_dst(key, [&](fib::Dst& dst) { fib::set_report_use(dst, on); });
}

void Neighbors::failed(const NeighborKey& key) {
    asked_.erase(key);
    for_each_dst(key, [](fib::Dst& dst) { fib::unresolve(dst); });
    send_all(WorkerCommand::Kind::kFailed, key);
}

void Neighbors::removed(const NeighborKey& key, NeighborState last) {
    asked_.erase(key);
    for_each_dst(key, [](fib::Dst& dst) { fib::unresolve(dst); });
    if (const auto it = dsts_.find(key); it != dsts_.end() && it->second.host != fib::kNoRoute) {
        // A cache may have the host's dst by its index; of a netdev that is gone none has any.
        const Changes::Scope change(changes_);
        shared_.neighbors.erase(words(key));
        if (const Netdev* netdev = netdevs_.find(key.netdev); netdev != nullptr) {
            const std::uint8_t bits = key.address.is_v4() ? 32 : 128;
            changes_.prefix(*netdev->netns, net::IpPrefix::of(key.address, bits));
        }
        keeper_.release(it->second.host, key.address.family());
        it->second.host = fib::kNoRoute;
        if (it->second.empty()) {
            dsts_.erase(it);
        }
    }
    const Netdev* netdev = netdevs_.find(key.netdev);
    if (netdev == nullptr || !netdev->up()) {
        send_all(WorkerCommand::Kind::kGone, key);
    } else if (last == NeighborState::kIncomplete) {
        send_all(WorkerCommand::Kind::kFailed, key);
    } else if (netdev->rewriting != 0) {
        // A packet may wait for the end of the rewriting, which this entry will not see.
        send_all(WorkerCommand::Kind::kReady, key);
    }
}

// --- own addresses ------------------------------------------------------------------------------

void Neighbors::announce_own(const Netdev& netdev, const net::IpAddr& address) {
    if (!netdev.up() || netdev.kind == fib::NetdevKind::kLoopback) {
        return;
    }
    if (address.is_v4()) {
        // RFC 5227 3: sender and target are the address itself.
        const auto frame =
            net::make_arp_request(netdev.mac, address.v4(), net::kBroadcastMac, address.v4());
        dataplane_.transmit(netdev.id, frame.view());
        return;
    }
    const auto frame = net::make_neighbor_advertisement(
        netdev.mac,
        address.v6(),
        address.v6(),
        net::multicast_mac(net::kAllNodes),
        net::kAllNodes,
        {.router = netdev.settings.forwarding, .solicited = false, .override = true});
    dataplane_.transmit(netdev.id, frame.view());
}

void Neighbors::announce_own(const Netdev& netdev) {
    bool link_local_done = false;
    for (const auto& own : netdev.addresses) {
        announce_own(netdev, own.address);
        link_local_done = link_local_done ||
                          (netdev.link_local && own.address == net::IpAddr{*netdev.link_local});
    }
    if (netdev.link_local && !link_local_done) {
        announce_own(netdev, *netdev.link_local);
    }
}

}  // namespace sluice::control
