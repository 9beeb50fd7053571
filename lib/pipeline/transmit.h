// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <rte_config.h>
#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "base/id.h"
#include "stats/counters.h"

namespace sluice::pipeline {

/// Per-port buffers of one worker. A packet is booked as forwarded (on its own book) and as
/// transmitted (on the egress netdev) only when the device took it.
class Transmitter {
public:
    /// rte_eth_tx_burst's shape; tests put their own here.
    using Send = std::uint16_t (*)(std::uint16_t port,
                                   std::uint16_t queue,
                                   rte_mbuf** packets,
                                   std::uint16_t count);
    /// `queue`: this worker's TX queue on every port.
    Transmitter(std::uint16_t queue, stats::Block& stats, Send send = nullptr);

    static constexpr std::size_t kBufferPackets = 64;

    /// `family` 0, 1, 2 as in stats. `booked` false: a fragment after the first.
    void enqueue(std::uint16_t port,
                 rte_mbuf* m,
                 NetdevId book,
                 NetdevId out,
                 unsigned family,
                 bool booked = true) noexcept {
        Buffer& buffer = *buffers_[port];
        if (!buffer.listed) {
            buffer.listed = true;
            dirty_[dirty_count_++] = port;
        }
        const std::uint32_t i = buffer.count++;
        buffer.packets[i] = m;
        buffer.books[i] = {book, out, static_cast<std::uint8_t>(family), booked};
        buffer.bytes[i] = m->pkt_len;
        if (buffer.count == kBufferPackets) {
            flush_port(port);
        }
    }

    /// Sends what is buffered; once per round, before the quiescent state.
    void flush() noexcept {
        for (std::size_t i = 0; i < dirty_count_; ++i) {
            buffers_[dirty_[i]]->listed = false;
            flush_port(dirty_[i]);
        }
        dirty_count_ = 0;
    }

private:
    struct Book {
        NetdevId book;
        NetdevId out;
        std::uint8_t family;
        bool booked;
        friend bool operator==(const Book&, const Book&) = default;
    };
    struct alignas(64) Buffer {
        std::uint32_t count = 0;
        bool listed = false;  // in dirty_
        std::array<rte_mbuf*, kBufferPackets> packets;
        std::array<Book, kBufferPackets> books;
        std::array<std::uint32_t, kBufferPackets> bytes;
    };

    void flush_port(std::uint16_t port) noexcept;

    std::vector<std::unique_ptr<Buffer>> buffers_;         // by ethdev id, all made at start
    std::array<std::uint16_t, RTE_MAX_ETHPORTS> dirty_{};  // ports to flush this round
    std::size_t dirty_count_ = 0;
    std::uint16_t queue_;
    Send send_;
    stats::Block& stats_;
};

}  // namespace sluice::pipeline
