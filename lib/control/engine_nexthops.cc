// SPDX-License-Identifier: BSD-3-Clause
// Next-hop objects, and what a change of one means for the routes over it.
#include <cstdint>
#include <vector>

#include "control/engine.h"
#include "control/route_labels.h"

namespace sluice::control {

using fib::DstType;

Result<NextHopKey> Engine::resolve_nexthop(const Netns& netns,
                                           config::NextHop& hop,
                                           RouteOwner owner) const {
    NextHopKey nothing{.netdev = kBlackholeNetdev, .type = DstType::kBlackhole};
    if (hop.blackhole || !hop.group.empty()) {
        return nothing;
    }
    // A gateway is one for the packets of its own family, and an IPv6 one for IPv4 packets too.
    RouteRequest route;
    route.prefix = hop.via && hop.via->is_v6() ? net::IpPrefix::of(net::Ipv6Addr{}, 0)
                                               : net::IpPrefix::of(net::Ipv4Addr{}, 0);
    route.via = hop.via;
    route.dev = hop.dev;
    route.on_link = hop.on_link;
    const auto key = resolve_request(netns, route);
    if (!key) {
        return key;
    }
    const Netdev& netdev = *netdevs_.find(key->netdev);
    if (!netdev.is_link()) {
        return fail(ErrorCode::kInvalid, "a next hop is no VRF: {} is one", netdev.name);
    }
    // A file says what is to be, whatever the links are at the moment.
    if (owner != RouteOwner::kFile && (!netdev.up() || !netdev.carrier())) {
        return fail(ErrorCode::kInvalid,
                    "{} {}: nothing can be reached over it",
                    netdev.name,
                    netdev.up() ? "has no carrier" : "is down");
    }
    hop.dev = netdev.name;
    return key;
}

Result<void> Engine::add_nexthop(Netns& netns,
                                 std::uint32_t id,
                                 const config::NextHop& hop,
                                 RouteOwner owner,
                                 bool replace,
                                 std::uint8_t protocol) {
    if (auto ok = netns.nexthops->check(id, hop, replace); !ok) {
        return ok;
    }
    config::NextHop resolved = hop;
    const auto key = resolve_nexthop(netns, resolved, owner);
    if (!key) {
        return std::unexpected(key.error());
    }
    const Changes::Scope scope(changes_);
    const auto change =
        netns.nexthops->add(id, resolved, *key, owner, protocol, replace, dataplane_.clock_s());
    if (!change) {
        return std::unexpected(change.error());
    }
    settle(netns, *change);
    return {};
}

Result<void> Engine::delete_nexthop(Netns& netns, std::uint32_t id) {
    const Changes::Scope scope(changes_);
    const auto change = netns.nexthops->remove(id);
    if (!change) {
        return std::unexpected(change.error());
    }
    settle(netns, *change);
    return {};
}

std::size_t Engine::flush_nexthops(Netns& netns, const RouteFilter& filter) {
    std::vector<std::uint32_t> ids;
    for (const NextHopInfo& info : netns.nexthops->infos()) {
        if (filter.takes(info.owner, protocol_of(info.protocol, info.owner))) {
            ids.push_back(info.id);
        }
    }
    const Changes::Scope scope(changes_);
    for (const std::uint32_t id : ids) {
        // A group that is named here too may have gone with its last member.
        if (const auto change = netns.nexthops->remove(id); change) {
            settle(netns, *change);
        }
    }
    return ids.size();
}

std::vector<NextHopInfo> Engine::nexthops(const Netns& netns) const {
    return netns.nexthops->infos();
}

}  // namespace sluice::control
