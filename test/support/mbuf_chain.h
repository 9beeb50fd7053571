// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/check.h"

namespace sluice::test {

/// A packet of `bytes`. `segments`: sizes of the first segments, 0 allowed; the rest follows in
/// full ones.
inline rte_mbuf* mbuf_chain(rte_mempool* pool,
                            std::span<const std::uint8_t> bytes,
                            std::span<const std::size_t> segments) {
    rte_mbuf* head = nullptr;
    std::size_t done = 0;
    for (std::size_t i = 0; i < segments.size() || done < bytes.size() || head == nullptr; ++i) {
        rte_mbuf* m = rte_pktmbuf_alloc(pool);
        SLUICE_CHECK(m != nullptr);
        const std::size_t wanted = i < segments.size() ? segments[i] : bytes.size();
        const auto length = static_cast<std::uint16_t>(
            std::min({wanted, bytes.size() - done, std::size_t{rte_pktmbuf_tailroom(m)}}));
        std::copy_n(bytes.data() + done, length, rte_pktmbuf_mtod(m, std::uint8_t*));
        m->data_len = length;
        m->pkt_len = length;
        done += length;
        if (head == nullptr) {
            head = m;
        } else {
            SLUICE_CHECK(rte_pktmbuf_chain(head, m) == 0);
        }
    }
    return head;
}

}  // namespace sluice::test
