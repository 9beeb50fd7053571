// SPDX-License-Identifier: BSD-3-Clause
// What the controller has to show.
#include <algorithm>
#include <string>
#include <utility>

#include "control/policies.h"
#include "control/router.h"

namespace sluice::control {
namespace {

std::string_view kind_name(fib::NetdevKind kind) noexcept {
    switch (kind) {
        case fib::NetdevKind::kBlackhole:
            return "blackhole";
        case fib::NetdevKind::kLoopback:
            return "loopback";
        case fib::NetdevKind::kPort:
            return "port";
        case fib::NetdevKind::kVlan:
            return "vlan";
        case fib::NetdevKind::kVrf:
            return "vrf";
    }
    return "";
}

LinkInfo describe(const Netdevs& netdevs, const Netdev& netdev) {
    LinkInfo info;
    info.id = netdev.id;
    info.name = netdev.name;
    info.kind = kind_name(netdev.kind);
    info.netns = netdev.netns->name;
    info.mtu = netdev.settings.mtu;
    info.up = netdev.settings.up;
    info.running = netdev.up() && netdev.carrier();
    info.forwarding = netdev.settings.forwarding;
    info.settings = netdev.settings;
    info.dsts = netdevs.dsts(netdev.id);
    if (netdev.master != nullptr) {
        info.vrf = netdev.master->name;
    }
    if (netdev.kind == fib::NetdevKind::kVrf) {
        info.table = netdev.table->id;
    }
    if (netdev.device != nullptr) {
        info.device = netdev.devargs;
        info.driver = netdev.device->driver();
        info.rx_queues = netdev.device->rx_queues();
        info.speed_mbps = netdev.link.speed_mbps;
    }
    if (netdev.is_link()) {
        info.mac = netdev.mac;
    }
    if (netdev.parent != nullptr) {
        info.link = netdev.parent->name;
        info.vlan_id = netdev.vlan_id;
    }
    info.addresses = netdev.addresses;
    if (netdev.link_local && std::ranges::none_of(netdev.addresses, [&](const auto& own) {
            return own.address == net::IpAddr{*netdev.link_local};
        })) {
        info.addresses.push_back({*netdev.link_local, 64});
    }
    return info;
}

}  // namespace

std::vector<LinkInfo> Router::links(const std::string& netns) const {
    std::vector<LinkInfo> links;
    engine_.netdevs().for_each([&](const Netdev& netdev) {
        if (netns.empty() || netdev.netns->name == netns) {
            links.push_back(describe(engine_.netdevs(), netdev));
        }
    });
    return links;
}

Result<LinkInfo> Router::link(const std::string& netns, const std::string& name) const {
    return in(netns, [&](Netns& of) -> Result<LinkInfo> {
        const auto netdev = of.get(name);
        if (!netdev) {
            return std::unexpected(netdev.error());
        }
        return describe(engine_.netdevs(), **netdev);
    });
}

Result<std::vector<VrfInfo>> Router::vrfs(const std::string& netns) const {
    return in(netns, [&](Netns& of) -> Result<std::vector<VrfInfo>> {
        std::vector<VrfInfo> list;
        for (const auto& [name, netdev] : of.netdevs) {
            if (netdev->kind == fib::NetdevKind::kVrf) {
                list.push_back({.name = name, .table = netdev->table->id, .interfaces = {}});
                for (const auto& [member, other] : of.netdevs) {
                    if (other->master == netdev) {
                        list.back().interfaces.push_back(member);
                    }
                }
            }
        }
        return list;
    });
}

Result<std::vector<AddressInfo>> Router::addresses(const std::string& netns) const {
    if (const auto found = engine_.netns().get(netns); !found) {
        return std::unexpected(found.error());
    }
    std::vector<AddressInfo> list;
    for (const LinkInfo& link : links(netns)) {
        for (const auto& address : link.addresses) {
            list.push_back(
                {.netdev = link.name,
                 .address = address,
                 .link_local = address.address.is_v6() && address.address.v6().is_link_local()});
        }
    }
    return list;
}

std::optional<net::IpPrefix> Router::routes_after(
    const std::string& netns,
    std::uint32_t table,
    const std::optional<net::IpPrefix>& after,
    std::size_t limit,
    const std::function<void(const RouteInfo&)>& each) const {
    const Netns* found = engine_.netns().find(netns);
    return found == nullptr ? std::nullopt
                            : engine_.routes_after(*found, table, after, limit, each);
}

Result<std::vector<std::uint32_t>> Router::tables(const std::string& netns) const {
    return in(netns, [&](Netns& of) -> Result<std::vector<std::uint32_t>> {
        std::vector<std::uint32_t> ids;
        for (const auto& [id, table] : of.tables) {
            if (table->v4.size() + table->v6.size() != 0) {
                ids.push_back(id);
            }
        }
        return ids;
    });
}

Result<std::vector<NeighborInfo>> Router::neighbors(const std::string& netns) const {
    return in(netns, [&](Netns& of) -> Result<std::vector<NeighborInfo>> {
        std::vector<NeighborInfo> list;
        engine_.neighbors().table().for_each([&](const Neighbor& neighbor) {
            const Netdev* netdev = engine_.netdevs().find(neighbor.key.netdev);
            if (netdev != nullptr && netdev->netns == &of) {
                list.push_back({.address = neighbor.key.address,
                                .netdev = netdev->name,
                                .lladdr = neighbor.mac,
                                .state = std::string(to_string(neighbor.state))});
            }
        });
        return list;
    });
}

CacheInfo Router::cache() const {
    CacheInfo info{
        .mode = running_.workers.cache, .entries = running_.workers.cache_entries, .bypassing = {}};
    engine_.netns().for_each([&](const Netns& netns) {
        if (netns.policies->bypasses_cache()) {
            info.bypassing.push_back(netns.name);
        }
    });
    return info;
}

void Router::set_cache_mode(config::CacheMode mode) {
    engine_.set_cache_mode(mode);
    running_.workers.cache = mode;
}

std::vector<UncachedInfo> Router::uncached() const {
    std::vector<UncachedInfo> list;
    engine_.netdevs().for_each([&](const Netdev& netdev) {
        for (std::size_t worker = 0; worker < engine_.dataplane().workers(); ++worker) {
            for (const net::Family family : {net::Family::kIpv4, net::Family::kIpv6}) {
                const std::size_t dsts = engine_.uncached().count(worker, family, netdev.id);
                if (dsts != 0) {
                    list.push_back({.worker = worker,
                                    .netns = netdev.netns->name,
                                    .netdev = netdev.name,
                                    .family = family,
                                    .dsts = dsts});
                }
            }
        }
    });
    return list;
}

stats::NetdevCounters Router::netdev_counters(NetdevId netdev) const {
    stats::NetdevCounters sum{};
    for (std::size_t writer = 0; writer <= engine_.dataplane().workers(); ++writer) {
        stats::accumulate(sum, netdev_counters_of(netdev, writer));
    }
    return sum;
}

stats::NetdevCounters Router::netdev_counters_of(NetdevId netdev, std::size_t writer) const {
    return engine_.counters(*engine_.netdevs().find(netdev), writer);
}

void Router::restart_longest_rounds() {
    engine_.shared().longest_round_epoch.fetch_add(1, std::memory_order_relaxed);
}

std::vector<WorkerInfo> Router::workers() const {
    return engine_.dataplane().worker_infos();
}

std::vector<PoolInfo> Router::pools() const {
    return engine_.dataplane().pool_infos();
}

std::vector<NetnsInfo> Router::netns() const {
    std::vector<NetnsInfo> list;
    engine_.netns().for_each([&](const Netns& netns) {
        NetnsInfo info;
        info.name = netns.name;
        info.netdevs = netns.netdevs.size();
        for (const auto& [id, table] : netns.tables) {
            info.routes4 += table->v4.size();
            info.routes6 += table->v6.size();
        }
        info.generation4 = netns.generations4.whole();
        info.generation6 = netns.generations6.whole();
        list.push_back(std::move(info));
    });
    return list;
}

}  // namespace sluice::control
