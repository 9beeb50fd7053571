// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/transmit.h"

#include <cstddef>
#include <cstdint>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "stats/counters.h"

namespace sluice::pipeline {

namespace {
std::uint16_t send_to_device(std::uint16_t port,
                             std::uint16_t queue,
                             rte_mbuf** packets,
                             std::uint16_t count) {
    return rte_eth_tx_burst(port, queue, packets, count);
}
}  // namespace

Transmitter::Transmitter(std::uint16_t queue, stats::Block& stats, Send send)
    : buffers_(RTE_MAX_ETHPORTS),
      queue_(queue),
      send_(send != nullptr ? send : send_to_device),
      stats_(stats) {}

void Transmitter::begin_run(std::uint16_t port, const Book& book) noexcept {
    Buffer& buffer = buffers_[port];
    if (!buffer.listed) {
        buffer.listed = true;
        dirty_[dirty_count_++] = port;
    }
    if (buffer.open.book.used != 0) {
        buffer.closed[buffer.runs++] = buffer.open;
    }
    buffer.open = {.book = book, .first = buffer.count};
}

// Takes what the device left over out of the last runs: these mbufs are still ours to read.
void Transmitter::drop_untaken(Buffer& buffer, std::uint32_t sent) noexcept {
    for (std::uint32_t i = buffer.count; i-- > sent;) {
        while (buffer.closed[buffer.runs - 1].first > i) {
            --buffer.runs;
        }
        Run& run = buffer.closed[buffer.runs - 1];
        run.bytes -= buffer.packets[i]->pkt_len;
        if (run.book.booked) {
            stats_.drop(run.book.book, DropReason::kTxFull, run.book.family);
        } else {
            stats::bump(stats_.netdev(run.book.out).fragments_lost);
        }
        rte_pktmbuf_free(buffer.packets[i]);
    }
    buffer.count = sent;
}

void Transmitter::flush_port(std::uint16_t port) noexcept {
    Buffer& buffer = buffers_[port];
    if (buffer.count == 0) {
        return;
    }
    buffer.closed[buffer.runs++] = buffer.open;
    buffer.open = {};
    const std::uint32_t sent =
        send_(port, queue_, buffer.packets.data(), static_cast<std::uint16_t>(buffer.count));
    if (sent < buffer.count) [[unlikely]] {
        drop_untaken(buffer, sent);
    }
    for (std::uint32_t r = 0; r < buffer.runs; ++r) {
        const Run& run = buffer.closed[r];
        const std::uint32_t end = r + 1 < buffer.runs ? buffer.closed[r + 1].first : buffer.count;
        stats::NetdevCounters& out = stats_.netdev(run.book.out);
        stats::bump(out.tx_packets, end - run.first);
        stats::bump(out.tx_bytes, run.bytes);
        if (run.book.booked) {
            stats::bump(stats_.netdev(run.book.book).forwarded, end - run.first);
        }
    }
    buffer.count = 0;
    buffer.runs = 0;
}

}  // namespace sluice::pipeline
