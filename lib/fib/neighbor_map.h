// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/id.h"
#include "base/reclaimer.h"
#include "fib/dst.h"
#include "net/address.h"

namespace sluice::fib {

/// (netdev, address) in three words; both families in one form.
struct NeighborKeyWords {
    std::uint64_t low = 0, high = 0, tail = 0;

    static NeighborKeyWords of(NetdevId netdev, const net::Ipv4Addr& a) noexcept {
        NeighborKeyWords k;
        std::memcpy(&k.low, a.bytes.data(), 4);
        k.tail = std::uint64_t{netdev.value} << 8U | 4U;
        return k;
    }
    static NeighborKeyWords of(NetdevId netdev, const net::Ipv6Addr& a) noexcept {
        NeighborKeyWords k;
        std::memcpy(&k.low, a.bytes.data(), 8);
        std::memcpy(&k.high, a.bytes.data() + 8, 8);
        k.tail = std::uint64_t{netdev.value} << 8U | 6U;
        return k;
    }
    static NeighborKeyWords of(NetdevId netdev, const net::IpAddr& a) noexcept {
        return a.is_v4() ? of(netdev, a.v4()) : of(netdev, a.v6());
    }
    NetdevId netdev() const noexcept { return NetdevId{static_cast<std::uint16_t>(tail >> 8U)}; }
    net::IpAddr address() const noexcept;
    /// `secret` odd: an outsider cannot choose addresses that share a chain.
    std::uint64_t hash(std::uint64_t secret) const noexcept {
        std::uint64_t h = (low ^ tail << 32U) * secret;
        h = (h ^ h >> 32U ^ high) * secret;
        h = (h ^ h >> 29U) * 0x9e3779b97f4a7c15U;
        return h ^ h >> 32U;
    }
    friend bool operator==(const NeighborKeyWords&, const NeighborKeyWords&) = default;
};

/// The dst of every host that was looked for on a link. One writer (control), readers under RCU.
class NeighborMap {
public:
    /// `buckets` a power of two.
    NeighborMap(std::size_t buckets, std::uint64_t secret, Reclaimer& reclaimer);
    NeighborMap(const NeighborMap&) = delete;
    NeighborMap& operator=(const NeighborMap&) = delete;
    NeighborMap(NeighborMap&&) = delete;
    NeighborMap& operator=(NeighborMap&&) = delete;
    ~NeighborMap();

    /// Any thread; kNoRoute when absent.
    DstIndex find(const NeighborKeyWords& key) const noexcept {
        const Node* node = buckets_[key.hash(secret_) & mask_].load(std::memory_order_acquire);
        while (node != nullptr) {
            if (node->key == key) {
                return node->dst;
            }
            node = node->next.load(std::memory_order_acquire);
        }
        return kNoRoute;
    }

    /// Control thread. The key must be absent.
    void insert(const NeighborKeyWords& key, DstIndex dst);
    /// Control thread. Unpublishes; false when absent. Does not release the dst.
    bool erase(const NeighborKeyWords& key);
    std::size_t size() const noexcept { return size_; }

private:
    struct Node {
        NeighborKeyWords key;
        DstIndex dst;
        std::atomic<Node*> next;
    };
    std::vector<std::atomic<Node*>> buckets_;
    std::uint64_t mask_;
    std::uint64_t secret_;
    std::size_t size_ = 0;
    Reclaimer& reclaimer_;
};

}  // namespace sluice::fib
