// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/result.h"

namespace sluice::dpdk {

/// Room that the usual port needs: a 1500-byte frame with headroom fits one segment.
inline constexpr std::uint16_t kDefaultDataRoom = RTE_MBUF_DEFAULT_BUF_SIZE;

/// Owner of one mbuf pool.
class PktPool {
public:
    /// `name` up to 25 characters, unique in the process. `data_room_bytes` includes the headroom.
    /// `socket` is a NUMA node or SOCKET_ID_ANY. kLimit when memory is short: names the MB and the
    /// key.
    static Result<PktPool> create(const std::string& name,
                                  unsigned packets,
                                  std::uint16_t data_room_bytes = kDefaultDataRoom,
                                  int socket = SOCKET_ID_ANY);

    rte_mempool* raw() const noexcept { return pool_.get(); }
    unsigned size() const noexcept { return pool_->size; }
    /// Mbufs not in the pool or in an lcore's cache. Walks all caches: control thread.
    unsigned in_use() const noexcept { return rte_mempool_in_use_count(pool_.get()); }

private:
    struct Free {
        void operator()(rte_mempool* pool) const noexcept { rte_mempool_free(pool); }
    };
    explicit PktPool(rte_mempool* pool) : pool_(pool) {}
    std::unique_ptr<rte_mempool, Free> pool_;
};

/// MB that `packets` mbufs of this room take, as create() asks for them.
std::size_t pool_megabytes(unsigned packets, std::uint16_t data_room_bytes) noexcept;

}  // namespace sluice::dpdk
