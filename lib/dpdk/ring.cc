// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/ring.h"

#include <rte_errno.h>

namespace sluice::dpdk {

Result<MbufRing> MbufRing::create(const std::string& name, unsigned size, int socket) {
    rte_ring* ring = rte_ring_create(
        name.c_str(), size, socket, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
    if (ring != nullptr) {
        return MbufRing(ring);
    }
    switch (rte_errno) {
        case EEXIST:
            return fail(ErrorCode::kExists, "ring {}: there is one of that name", name);
        case ENOMEM:
        case ENOSPC:
            return fail(ErrorCode::kLimit,
                        "ring {}: no memory for {} slots; raise dpdk.memory-mb",
                        name,
                        size);
        default:
            return fail(ErrorCode::kInternal, "ring {}: {}", name, rte_strerror(rte_errno));
    }
}

void MbufRing::Free::operator()(rte_ring* ring) const noexcept {
    void* packet = nullptr;
    while (rte_ring_sc_dequeue(ring, &packet) == 0) {
        rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
    }
    rte_ring_free(ring);
}

}  // namespace sluice::dpdk
