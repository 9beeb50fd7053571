// SPDX-License-Identifier: BSD-3-Clause
// Path MTUs and gateways that were learned for single destinations.
#include <cstdint>
#include <span>

#include "control/engine.h"

namespace sluice::control {

namespace {

std::uint32_t value_in(const Table& table, const net::IpAddr& destination) {
    return destination.is_v4() ? table.v4.lpm().lookup_one(destination.v4())
                               : table.v6.lpm().lookup_one(destination.v6());
}

}  // namespace

fib::DstIndex Engine::lookup(NetdevId id, const net::IpAddr& destination) {
    const Netdev* domain = netdevs_.find(id);
    for (unsigned step = 0; step <= fib::kMaxTableSteps; ++step) {
        if (domain == nullptr || domain->table == nullptr) {
            return fib::kNoRoute;
        }
        const std::uint32_t value = value_in(*domain->table, destination);
        if ((value & fib::kGroupBit) != 0) {
            const fib::Group* group = shared_.groups[value];
            return group == nullptr ? fib::kNoRoute
                                    : group->buckets[0].dst.load(std::memory_order_relaxed);
        }
        if ((value & fib::kTableBit) == 0) {
            return value;
        }
        domain = netdevs_.find(NetdevId{static_cast<std::uint16_t>(value & ~fib::kSpecialBits)});
    }
    return fib::kNoRoute;
}

void Engine::attach(const NeighborKey& key, fib::DstIndex dst) {
    neighbors_.attach(key, dst);
}

void Engine::detach(const NeighborKey& key, fib::DstIndex dst) {
    neighbors_.detach(key, dst);
}

void Engine::changed(NetdevId domain, const net::IpAddr& destination) {
    const Netdev* netdev = netdevs_.find(domain);
    if (netdev != nullptr) {
        const std::uint8_t bits = destination.is_v4() ? 32 : 128;
        changes_.prefix(*netdev->netns, net::IpPrefix::of(destination, bits));
    }
}

void Engine::release(fib::DstIndex dst, net::Family family) {
    dsts_.release(dst, family);
}

void Engine::learn(std::size_t worker, const pipeline::WorkerEvent& event) {
    const Changes::Scope change(changes_);
    const NetdevId domain = event.key.netdev();
    const net::IpAddr destination = event.key.address();
    const std::uint32_t now_s = dataplane_.clock_s();
    if (event.kind == pipeline::WorkerEvent::Kind::kPathMtu) {
        exceptions_.set_mtu(domain, destination, event.mtu, worker, now_s);
    } else {
        exceptions_.set_gateway(domain, destination, event.ingress, event.gateway, worker, now_s);
    }
}

void Engine::tick() {
    const Changes::Scope change(changes_);
    const std::uint32_t now_s = dataplane_.clock_s();
    exceptions_.expire(now_s);
    netns_.for_each([&](Netns& netns) {
        if (!netns.nexthops->empty()) {
            netns.nexthops->migrate(now_s);
        }
    });
}

std::vector<ExceptionInfo> Engine::exceptions(const Netns& netns) const {
    std::vector<ExceptionInfo> list;
    const std::uint32_t now_s = dataplane_.clock_s();
    exceptions_.for_each([&](const Exception& exception) {
        const Netdev* domain = netdevs_.find(exception.domain);
        if (domain == nullptr || domain->netns != &netns) {
            return;
        }
        const Netdev* out = netdevs_.find(exception.out);
        list.push_back({.destination = exception.destination,
                        .domain = domain == netns.lo ? "" : domain->name,
                        .dev = out == nullptr ? "" : out->name,
                        .via = exception.gateway,
                        .mtu = exception.mtu,
                        .expires_s = exception.expiry_s > now_s ? exception.expiry_s - now_s : 0});
    });
    return list;
}

void Engine::recheck_exceptions(const net::IpPrefix* prefix) {
    if (exceptions_.size() == 0) {
        return;
    }
    if (prefix != nullptr) {
        exceptions_.recheck(*prefix);
    } else {
        exceptions_.recheck();
    }
}

}  // namespace sluice::control
