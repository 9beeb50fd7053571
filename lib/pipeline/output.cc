// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "fib/dst.h"
#include "pipeline/stages.h"
#include "pipeline/straight.h"

namespace sluice::pipeline {

bool pull_up(rte_mbuf& m, std::size_t bytes) noexcept {
    if (m.data_len >= bytes) [[likely]] {
        return true;
    }
    if (bytes - m.data_len > rte_pktmbuf_tailroom(&m)) {
        return false;
    }
    for (rte_mbuf* from = m.next; m.data_len < bytes; from = from->next) {
        const auto piece =
            static_cast<std::uint16_t>(std::min<std::size_t>(bytes - m.data_len, from->data_len));
        std::memcpy(rte_pktmbuf_mtod_offset(&m, std::uint8_t*, m.data_len),
                    rte_pktmbuf_mtod(from, const std::uint8_t*),
                    piece);
        m.data_len = static_cast<std::uint16_t>(m.data_len + piece);
        from->data_off = static_cast<std::uint16_t>(from->data_off + piece);
        from->data_len = static_cast<std::uint16_t>(from->data_len - piece);
    }
    return true;
}

void trim_to(rte_mbuf& m, std::size_t bytes) noexcept {
    if (m.pkt_len <= bytes) {
        return;
    }
    rte_mbuf* segment = &m;
    std::size_t left = bytes;
    while (segment->data_len < left) {
        left -= segment->data_len;
        segment = segment->next;
    }
    segment->data_len = static_cast<std::uint16_t>(left);
    m.pkt_len = static_cast<std::uint32_t>(bytes);
    rte_mbuf* rest = segment->next;
    segment->next = nullptr;
    while (rest != nullptr) {
        rte_mbuf* next = rest->next;
        rte_pktmbuf_free_seg(rest);
        --m.nb_segs;
        rest = next;
    }
}

namespace {

// The frame's start moves so that the new header ends where L3 begins.
bool fit_header(rte_mbuf& m, unsigned old_bytes, unsigned new_bytes) noexcept {
    if (new_bytes > old_bytes) {
        return rte_pktmbuf_prepend(&m, static_cast<std::uint16_t>(new_bytes - old_bytes)) !=
               nullptr;
    }
    rte_pktmbuf_adj(&m, static_cast<std::uint16_t>(old_bytes - new_bytes));
    return true;
}

}  // namespace

void transmit(
    Context& c, const Packet& p, const fib::Dst& dst, std::size_t l3_bytes, bool booked) noexcept {
    rte_mbuf& m = *p.m;
    if (p.l2_bytes != dst.rewrite_bytes && !fit_header(m, p.l2_bytes, dst.rewrite_bytes))
        [[unlikely]] {
        c.drop(p, DropReason::kNoBuffer);
        return;
    }
    const std::size_t frame = std::max<std::size_t>(dst.rewrite_bytes + l3_bytes, kMinFrame);
    if (m.pkt_len > frame) [[unlikely]] {
        trim_to(m, frame);
    }
    dst.write_rewrite(p.l3);
    c.transmit.enqueue(dst.port, &m, p.book, dst.out, p.family(), booked);
}

}  // namespace sluice::pipeline
