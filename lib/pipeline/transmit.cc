// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/transmit.h"

#include <cstddef>
#include <cstdint>
#include <memory>

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
    : queue_(queue), send_(send != nullptr ? send : send_to_device), stats_(stats) {
    buffers_.reserve(RTE_MAX_ETHPORTS);
    for (unsigned port = 0; port < RTE_MAX_ETHPORTS; ++port) {
        buffers_.push_back(std::make_unique<Buffer>());
    }
}

void Transmitter::flush_port(std::uint16_t port) noexcept {
    Buffer& buffer = *buffers_[port];
    const std::uint32_t count = buffer.count;
    if (count == 0) {
        return;
    }
    buffer.count = 0;
    const std::uint32_t sent =
        send_(port, queue_, buffer.packets.data(), static_cast<std::uint16_t>(count));

    // Booked per run of equal books, which is nearly always the whole burst.
    std::uint32_t i = 0;
    while (i < sent) {
        const Book book = buffer.books[i];
        const std::uint32_t first = i;
        std::uint64_t bytes = 0;
        do {
            bytes += buffer.bytes[i];
            ++i;
        } while (i < sent && buffer.books[i] == book);
        stats::NetdevCounters& out = stats_.netdev(book.out);
        stats::bump(out.tx_packets, i - first);
        stats::bump(out.tx_bytes, bytes);
        if (book.booked) {
            stats::bump(stats_.netdev(book.book).forwarded, i - first);
        }
    }
    for (; i < count; ++i) {
        const Book& book = buffer.books[i];
        if (book.booked) {
            stats_.drop(book.book, DropReason::kTxFull, book.family);
        } else {
            stats::bump(stats_.netdev(book.out).fragments_lost);
        }
        rte_pktmbuf_free(buffer.packets[i]);
    }
}

}  // namespace sluice::pipeline
