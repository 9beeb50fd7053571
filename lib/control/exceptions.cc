// SPDX-License-Identifier: BSD-3-Clause
#include "control/exceptions.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

#include "base/id.h"
#include "control/neighbor_table.h"
#include "control/uncached.h"
#include "fib/dst.h"
#include "fib/neighbor_map.h"
#include "fib/shared.h"
#include "net/address.h"

namespace sluice::control {
namespace {

/// RFC 1191 7.1: MTUs of common links, to try the next lower one where none was told.
constexpr std::array<std::uint16_t, 9> kPlateaus{
    32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296};

std::uint16_t next_lower(std::uint16_t mtu) noexcept {
    const auto* it = std::ranges::find_if(kPlateaus, [&](std::uint16_t p) { return p < mtu; });
    return it == kPlateaus.end() ? kPlateaus.back() : *it;
}

void store_mtu(fib::Dst& dst, std::uint16_t mtu) noexcept {
    std::atomic_ref<std::uint16_t>(dst.mtu).store(mtu, std::memory_order_relaxed);
}

/// Whether packets are sent to a neighbor.
bool leads_out(const fib::Dst& dst) noexcept {
    return (dst.type == fib::DstType::kUnicast || dst.type == fib::DstType::kConnected) &&
           (dst.state.load(std::memory_order_relaxed) & fib::Dst::kGone) == 0;
}

net::IpAddr gateway_of(const fib::Dst& dst, const net::IpAddr& destination) noexcept {
    if (dst.type != fib::DstType::kUnicast) {
        return destination;
    }
    return dst.gateway_is_v6 != 0 ? net::IpAddr{dst.gateway6()} : net::IpAddr{dst.gateway4()};
}

std::uint16_t mtu_with(const fib::Dst& base, const Exception& wanted) noexcept {
    return wanted.mtu == 0 ? base.mtu : std::min(base.mtu, wanted.mtu);
}

}  // namespace

Exceptions::Exceptions(fib::Shared& shared,
                       UncachedLists& uncached,
                       ExceptionActions& actions,
                       Limits limits)
    : shared_(shared), uncached_(uncached), actions_(actions), limits_(limits) {}

// --- what is learned ----------------------------------------------------------------------------

bool Exceptions::find(const Key& key, std::uint32_t now_s, Exception& wanted, fib::DstIndex& now) {
    wanted = {.domain = key.domain, .destination = key.destination};
    if (const auto it = entries_.find(key); it != entries_.end()) {
        if (now_s < it->second.exception.expiry_s) {
            wanted = it->second.exception;
            now = it->second.dst;
            return leads_out(shared_.dsts[now]);
        }
        remove(it);
    }
    now = actions_.lookup(key.domain, key.destination);
    return leads_out(shared_.dsts[now]);
}

bool Exceptions::set_mtu(NetdevId domain,
                         const net::IpAddr& destination,
                         std::uint16_t mtu,
                         std::size_t worker,
                         std::uint32_t now_s) {
    Exception wanted;
    fib::DstIndex now = fib::kNoRoute;
    if ((destination.is_v6() && mtu < kMinMtu6) ||
        !find({domain, destination}, now_s, wanted, now)) {
        return false;
    }
    const std::uint16_t current = shared_.dsts[now].mtu;
    if (mtu == 0) {
        mtu = next_lower(current);
    }
    const bool locked = destination.is_v4() && mtu < kMinMtu4;
    if (locked) {
        mtu = std::min(current, kMinMtu4);
    }
    if (mtu >= current) {
        // The same once more makes it last, now and then: anybody can send that.
        const bool old = wanted.mtu == mtu && wanted.expiry_s - now_s <= limits_.lifetime_s / 2;
        if (mtu > current || !old) {
            return false;
        }
    }
    wanted.mtu = mtu;
    wanted.locked = locked;
    return put({domain, destination}, wanted, worker, now_s);
}

bool Exceptions::set_gateway(NetdevId domain,
                             const net::IpAddr& destination,
                             NetdevId ingress,
                             const net::IpAddr& gateway,
                             std::size_t worker,
                             std::uint32_t now_s) {
    Exception wanted;
    fib::DstIndex now = fib::kNoRoute;
    if (gateway.family() != destination.family() ||
        !find({domain, destination}, now_s, wanted, now) || shared_.dsts[now].out != ingress) {
        return false;
    }
    if (gateway_of(shared_.dsts[now], destination) == gateway) {
        const bool old =
            wanted.gateway == gateway && wanted.expiry_s - now_s <= limits_.lifetime_s / 2;
        if (!old) {
            return false;
        }
    }
    wanted.gateway = gateway;
    return put({domain, destination}, wanted, worker, now_s);
}

// --- dsts ---------------------------------------------------------------------------------------

void Exceptions::fill(fib::DstIndex index, fib::DstIndex base_index, const Exception& wanted) {
    const fib::Dst& base = shared_.dsts[base_index];
    fib::Dst& dst = shared_.dsts.writable(index);
    dst.type = fib::DstType::kUnicast;
    dst.rewrite_bytes = base.rewrite_bytes;
    dst.out = base.out;
    dst.port = base.port;
    dst.mtu = mtu_with(base, wanted);
    dst.expiry_s = wanted.expiry_s;
    dst.counter = base.counter;
    dst.base = base_index;
    dst.rewrite = base.rewrite;
    dst.idev = base.idev;
    dst.netns = base.netns;
    dst.set_gateway(wanted.gateway.value_or(gateway_of(base, wanted.destination)));
    dst.state.store(fib::Dst::kExpires, std::memory_order_relaxed);
}

bool Exceptions::put(const Key& key,
                     const Exception& wanted,
                     std::size_t worker,
                     std::uint32_t now_s) {
    const fib::DstIndex base = actions_.lookup(key.domain, key.destination);
    if (!leads_out(shared_.dsts[base])) {
        return false;
    }
    if (entries_.size() >= limits_.most && !entries_.contains(key)) {
        remove(ages_.front());
    }
    const auto dst = shared_.dsts.allocate();
    if (!dst) {
        return false;
    }
    const auto [it, is_new] = entries_.try_emplace(key);
    Entry& entry = it->second;
    const Entry old = entry;
    entry.exception = wanted;
    entry.exception.expiry_s = now_s + limits_.lifetime_s;
    entry.exception.out = shared_.dsts[base].out;
    entry.worker = worker;
    entry.base = base;
    entry.dst = *dst;
    fill(*dst, base, entry.exception);
    entry.neighbor = {entry.exception.out,
                      gateway_of(shared_.dsts[*dst], entry.exception.destination)};
    actions_.attach(entry.neighbor, *dst);

    // Between the two a packet goes where the tables say, as it did before anything was learned.
    const auto words = fib::NeighborKeyWords::of(key.domain, key.destination);
    if (!is_new) {
        shared_.exceptions.erase(words);
        ages_.erase(old.age);
        by_out_.erase(old.by_out);
    }
    shared_.exceptions.insert(words, *dst);
    shared_.exception_count.store(static_cast<std::uint32_t>(entries_.size()),
                                  std::memory_order_relaxed);
    const fib::Dst& filled = shared_.dsts[*dst];
    uncached_.add(*dst, worker, key.destination.family(), filled.out, filled.idev);
    entry.age = ages_.insert(ages_.end(), it);
    entry.by_out = by_out_.emplace(entry.exception.out, &*it);
    actions_.changed(key.domain, key.destination);
    if (!is_new) {
        drop_dst(old);
    }
    return true;
}

/// Of an entry that is not published any more.
void Exceptions::drop_dst(const Entry& entry) {
    actions_.detach(entry.neighbor, entry.dst);
    if (uncached_.listed(entry.dst)) {  // a flush of its netdev may have been here
        uncached_.remove(entry.dst);
    }
    actions_.release(entry.dst, entry.exception.destination.family());
}

void Exceptions::remove(Entries::iterator it) {
    const auto node = entries_.extract(it);
    const Entry& entry = node.mapped();
    const Key& key = node.key();
    ages_.erase(entry.age);
    by_out_.erase(entry.by_out);
    shared_.exceptions.erase(fib::NeighborKeyWords::of(key.domain, key.destination));
    shared_.exception_count.store(static_cast<std::uint32_t>(entries_.size()),
                                  std::memory_order_relaxed);
    actions_.changed(key.domain, key.destination);
    drop_dst(entry);
}

// --- what ends ----------------------------------------------------------------------------------

template <class Wanted>
std::size_t Exceptions::remove_if(Entries::iterator from, Entries::iterator to, Wanted&& wanted) {
    std::size_t removed = 0;
    while (from != to) {
        const auto it = from++;
        if (wanted(it->first, it->second)) {
            remove(it);
            ++removed;
        }
    }
    return removed;
}

bool Exceptions::led_elsewhere(const Key& key, const Entry& entry) {
    return actions_.lookup(key.domain, key.destination) != entry.base;
}

std::size_t Exceptions::expire(std::uint32_t now_s) {
    std::size_t removed = 0;
    while (!ages_.empty() && ages_.front()->second.exception.expiry_s <= now_s) {
        remove(ages_.front());
        ++removed;
    }
    return removed;
}

std::size_t Exceptions::recheck(const net::IpPrefix& prefix) {
    std::size_t removed = 0;
    for (auto it = entries_.begin(); it != entries_.end();) {
        // One domain in every turn: from the prefix's first address, as long as it holds them.
        const NetdevId domain = it->first.domain;
        auto from = entries_.lower_bound({domain, prefix.address()});
        auto to = from;
        while (to != entries_.end() && to->first.domain == domain &&
               prefix.contains(to->first.destination)) {
            ++to;
        }
        removed += remove_if(from, to, [&](const Key& key, const Entry& entry) {
            return led_elsewhere(key, entry);
        });
        if (domain.value == std::numeric_limits<NetdevId::Value>::max()) {
            break;
        }
        it = entries_.lower_bound({NetdevId{static_cast<std::uint16_t>(domain.value + 1U)}, {}});
    }
    return removed;
}

std::size_t Exceptions::recheck() {
    return remove_if(entries_.begin(), entries_.end(), [&](const Key& key, const Entry& entry) {
        return led_elsewhere(key, entry);
    });
}

std::size_t Exceptions::flush() {
    return remove_if(entries_.begin(), entries_.end(), [](auto&&...) { return true; });
}

std::optional<net::IpAddr> Exceptions::flush_domain(NetdevId domain,
                                                    const net::IpAddr& from,
                                                    std::size_t limit,
                                                    std::size_t& removed) {
    auto it = entries_.lower_bound({domain, from});
    for (; it != entries_.end() && it->first.domain == domain; ++removed) {
        if (limit-- == 0) {
            return it->first.destination;
        }
        remove(it++);
    }
    return std::nullopt;
}

std::size_t Exceptions::flush_netdev(NetdevId out, std::size_t limit) {
    std::size_t removed = 0;
    for (auto it = by_out_.find(out); it != by_out_.end() && removed < limit;
         it = by_out_.find(out)) {
        remove(entries_.find(it->second->first));
        ++removed;
    }
    return removed;
}

void Exceptions::set_link_mtu(NetdevId out, std::uint16_t old_mtu, std::uint16_t new_mtu) {
    for (auto [it, end] = by_out_.equal_range(out); it != end; ++it) {
        Entry& entry = it->second->second;
        Exception& learned = entry.exception;
        if (learned.mtu != 0 && (new_mtu < learned.mtu || learned.mtu == old_mtu)) {
            learned.mtu = new_mtu;
            learned.locked = false;
        }
        store_mtu(shared_.dsts.writable(entry.dst), mtu_with(shared_.dsts[entry.base], learned));
    }
}

}  // namespace sluice::control
