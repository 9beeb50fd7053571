// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/result.h"

namespace sluice::dpdk {

/// Hands mbufs from one thread to one other thread: single producer, single consumer.
class MbufRing {
public:
    /// Holds `size` mbufs exactly. `name` up to 25 characters, unique in the process.
    static Result<MbufRing> create(const std::string& name,
                                   unsigned size,
                                   int socket = SOCKET_ID_ANY);

    /// As many of the first as fit; the rest stays the caller's.
    std::size_t enqueue(std::span<rte_mbuf* const> packets) noexcept {
        // rte_ring takes void* const*, and rte_mbuf* const* does not convert to it.
        void* const* objects = static_cast<void* const*>(static_cast<const void*>(packets.data()));
        return rte_ring_sp_enqueue_burst(
            ring_.get(), objects, static_cast<unsigned>(packets.size()), nullptr);
    }
    std::size_t dequeue(std::span<rte_mbuf*> packets) noexcept {
        void** objects = static_cast<void**>(static_cast<void*>(packets.data()));
        return rte_ring_sc_dequeue_burst(
            ring_.get(), objects, static_cast<unsigned>(packets.size()), nullptr);
    }
    std::size_t count() const noexcept { return rte_ring_count(ring_.get()); }
    bool empty() const noexcept { return rte_ring_empty(ring_.get()) != 0; }
    std::size_t capacity() const noexcept { return rte_ring_get_capacity(ring_.get()); }
    rte_ring* raw() const noexcept { return ring_.get(); }

private:
    struct Free {  // mbufs still inside go back to their pools
        void operator()(rte_ring* ring) const noexcept;
    };
    explicit MbufRing(rte_ring* ring) : ring_(ring) {}
    std::unique_ptr<rte_ring, Free> ring_;
};

}  // namespace sluice::dpdk
