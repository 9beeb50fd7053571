// SPDX-License-Identifier: BSD-3-Clause
#include "fib/neighbor_map.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/reclaimer.h"
#include "fib/dst.h"
#include "net/address.h"

namespace sluice::fib {

net::IpAddr NeighborKeyWords::address() const noexcept {
    if ((tail & 0xffU) == 4) {
        net::Ipv4Addr a;
        std::memcpy(a.bytes.data(), &low, 4);
        return a;
    }
    net::Ipv6Addr a;
    std::memcpy(a.bytes.data(), &low, 8);
    std::memcpy(a.bytes.data() + 8, &high, 8);
    return a;
}

NeighborMap::NeighborMap(std::size_t buckets, std::uint64_t secret, Reclaimer& reclaimer)
    : buckets_(buckets), mask_(buckets - 1), secret_(secret | 1U), reclaimer_(reclaimer) {
    SLUICE_CHECK(std::has_single_bit(buckets));
}

NeighborMap::~NeighborMap() {
    for (auto& head : buckets_) {
        Node* node = head.load(std::memory_order_relaxed);
        while (node != nullptr) {
            Node* next = node->next.load(std::memory_order_relaxed);
            delete node;
            node = next;
        }
    }
}

void NeighborMap::insert(const NeighborKeyWords& key, DstIndex dst) {
    auto& head = buckets_[key.hash(secret_) & mask_];
    head.store(new Node{key, dst, head.load(std::memory_order_relaxed)}, std::memory_order_release);
    ++size_;
}

bool NeighborMap::erase(const NeighborKeyWords& key) {
    std::atomic<Node*>* link = &buckets_[key.hash(secret_) & mask_];
    Node* node = link->load(std::memory_order_relaxed);
    while (node != nullptr && node->key != key) {
        link = &node->next;
        node = link->load(std::memory_order_relaxed);
    }
    if (node == nullptr) {
        return false;
    }
    // The node keeps its own `next`: a reader that stands on it still finds the rest of the chain.
    link->store(node->next.load(std::memory_order_relaxed), std::memory_order_release);
    --size_;
    reclaimer_.defer([node] { delete node; });
    return true;
}

}  // namespace sluice::fib
