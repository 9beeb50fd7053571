// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/pool.h"

#include <algorithm>

#include <rte_errno.h>

namespace sluice::dpdk {
namespace {

/// Mbufs that each lcore may keep for itself: enough for a few bursts, never much of a small pool.
unsigned cache_packets(unsigned packets) {
    constexpr unsigned kMost = 256;
    return std::min(kMost, packets / 8);
}

}  // namespace

std::size_t pool_megabytes(unsigned packets, std::uint16_t data_room_bytes) noexcept {
    const std::size_t object = rte_mempool_calc_obj_size(
        static_cast<std::uint32_t>(sizeof(rte_mbuf)) + data_room_bytes, 0, nullptr);
    return (object * packets + (1U << 20U) - 1) >> 20U;
}

Result<PktPool> PktPool::create(const std::string& name,
                                unsigned packets,
                                std::uint16_t data_room_bytes,
                                int socket) {
    const auto allocate = [&](int on) {
        return rte_pktmbuf_pool_create(
            name.c_str(), packets, cache_packets(packets), 0, data_room_bytes, on);
    };
    rte_mempool* pool = allocate(socket);
    if (pool == nullptr && rte_errno != EEXIST && socket != SOCKET_ID_ANY) {
        // A worker far from its memory is slow, one without does not run.
        pool = allocate(SOCKET_ID_ANY);
    }
    if (pool != nullptr) {
        return PktPool(pool);
    }
    switch (rte_errno) {
        case EEXIST:
            return fail(ErrorCode::kExists, "packet pool {}: there is one of that name", name);
        case ENOMEM:
        case ENOBUFS:  // found room for the pool, not for its packets
            return fail(ErrorCode::kLimit,
                        "packet pool {}: no {} MB for {} packets of {} bytes; raise dpdk.memory-mb",
                        name,
                        pool_megabytes(packets, data_room_bytes),
                        packets,
                        data_room_bytes);
        default:
            return fail(ErrorCode::kInternal, "packet pool {}: {}", name, rte_strerror(rte_errno));
    }
}

}  // namespace sluice::dpdk
