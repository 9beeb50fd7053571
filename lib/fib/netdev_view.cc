// SPDX-License-Identifier: BSD-3-Clause
#include "fib/netdev_view.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "net/address.h"

namespace sluice::fib {

LocalAddresses::LocalAddresses(std::vector<net::Ipv4Addr> v4,
                               std::vector<net::Ipv6Addr> v6,
                               std::vector<net::Ipv4Addr> broadcasts)
    : v4_(std::move(v4)), v6_(std::move(v6)), broadcasts_(std::move(broadcasts)) {
    std::ranges::sort(v4_);
    std::ranges::sort(v6_);
    std::ranges::sort(broadcasts_);
    const auto mark = [this](std::uint32_t h) { filter_[h / 32U] |= 1U << (h % 32U); };
    for (const auto& a : v4_) {
        mark(hash(a));
    }
    for (const auto& a : v6_) {
        mark(hash(a));
    }
    for (const auto& a : broadcasts_) {
        mark(hash(a));
    }
}

const net::Ipv6Addr* LocalAddresses::any6() const noexcept {
    // A link-local address means nothing on another link.
    const auto it = std::ranges::find_if(v6_, [](const auto& a) { return !a.is_link_local(); });
    return it == v6_.end() ? nullptr : &*it;
}

namespace {

template <class List, class Addr>
const Addr* pick(const List& list, const Addr& peer) noexcept {
    for (const auto& own : list) {
        if (net::Prefix<Addr>::of(own.address, own.length).contains(peer)) {
            return &own.address;
        }
    }
    return list.empty() ? nullptr : &list.front().address;
}

template <class List, class Addr>
bool on_link_of(const List& list, const Addr& a) noexcept {
    return std::ranges::any_of(list, [&](const auto& own) {
        return net::Prefix<Addr>::of(own.address, own.length).contains(a);
    });
}

}  // namespace

const net::Ipv4Addr* NetdevView::source_for(const net::Ipv4Addr& peer) const noexcept {
    return pick(addresses4, peer);
}

const net::Ipv6Addr* NetdevView::source_for(const net::Ipv6Addr& peer) const noexcept {
    if (!has_ipv6) {
        return nullptr;
    }
    if (peer.is_link_local() || addresses6.empty()) {
        return &link_local;
    }
    return pick(addresses6, peer);
}

bool NetdevView::is_broadcast(const net::Ipv4Addr& a) const noexcept {
    return std::ranges::any_of(addresses4, [&](const Address4& own) {
        return net::InterfaceAddr{own.address, own.length}.broadcast() == a;
    });
}

bool NetdevView::on_link(const net::Ipv4Addr& a) const noexcept {
    return on_link_of(addresses4, a);
}

bool NetdevView::on_link(const net::Ipv6Addr& a) const noexcept {
    return a.is_link_local() || on_link_of(addresses6, a);
}

bool NetdevView::owns(const net::Ipv4Addr& a) const noexcept {
    return std::ranges::any_of(addresses4, [&](const Address4& own) { return own.address == a; });
}

bool NetdevView::owns(const net::Ipv6Addr& a) const noexcept {
    return (has_ipv6 && a == link_local) ||
           std::ranges::any_of(addresses6, [&](const Address6& own) { return own.address == a; });
}

bool NetdevView::in_group(const net::Ipv6Addr& a) const noexcept {
    if (!has_ipv6) {
        return false;
    }
    if (a == net::kAllNodes || (forwarding && a == net::kAllRouters) ||
        a == net::solicited_node(link_local)) {
        return true;
    }
    return std::ranges::any_of(
        addresses6, [&](const Address6& own) { return a == net::solicited_node(own.address); });
}

}  // namespace sluice::fib
