// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <rte_config.h>
#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "base/id.h"
#include "fib/dst.h"
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
        Buffer& buffer = run_of(port, {book, out, static_cast<std::uint8_t>(family), booked});
        buffer.open.bytes += m->pkt_len;
        buffer.packets[buffer.count++] = m;
        if (buffer.count == kBufferPackets) [[unlikely]] {
            flush_port(port);
        }
    }

    class Appender;

    /// Sends what is buffered; once per round, before the quiescent state.
    void flush() noexcept {
        for (std::size_t i = 0; i < dirty_count_; ++i) {
            buffers_[dirty_[i]].listed = false;
            flush_port(dirty_[i]);
        }
        dirty_count_ = 0;
    }

private:
    struct Book {
        NetdevId book{};
        NetdevId out{};
        std::uint8_t family = 0;
        bool booked = false;
        std::uint16_t used = 1;  // 0: nothing is booked by it
        friend bool operator==(const Book& a, const Book& b) {
            return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
        }
    };
    /// Packets in a row that are booked alike, nearly always the whole burst.
    struct Run {
        Book book{{}, {}, 0, false, 0};
        std::uint64_t bytes = 0;
        std::uint32_t first = 0;  // in packets; it ends where the next begins
    };
    struct alignas(64) Buffer {
        std::uint32_t count = 0;
        std::uint32_t runs = 0;  // closed ones
        Run open;
        bool listed = false;  // in dirty_
        std::array<rte_mbuf*, kBufferPackets> packets;
        std::array<Run, kBufferPackets + 1> closed;
    };

    /// The port's buffer, open for what is booked like this.
    Buffer& run_of(std::uint16_t port, const Book& book) noexcept {
        Buffer& buffer = buffers_[port];
        if (buffer.open.book != book) [[unlikely]] {
            begin_run(port, book);
        }
        return buffer;
    }
    void begin_run(std::uint16_t port, const Book& book) noexcept;
    void flush_port(std::uint16_t port) noexcept;
    void drop_untaken(Buffer& buffer, std::uint32_t sent) noexcept;

    std::vector<Buffer> buffers_;                          // by ethdev id
    std::array<std::uint16_t, RTE_MAX_ETHPORTS> dirty_{};  // ports to flush this round
    std::size_t dirty_count_ = 0;
    std::uint16_t queue_;
    Send send_;
    stats::Block& stats_;
};

/// Enqueues packets of one book one after another at the least cost while they leave by the same
/// netdev: what is counted meanwhile is in registers. While one is open (from open() to close())
/// nobody else may enqueue.
class Transmitter::Appender {
public:
    Appender(Transmitter& transmit, NetdevId book, unsigned family) noexcept
        : transmit_(transmit), book_(book), family_(static_cast<std::uint8_t>(family)) {}
    Appender(const Appender&) = delete;
    Appender& operator=(const Appender&) = delete;
    Appender(Appender&&) = delete;
    Appender& operator=(Appender&&) = delete;
    ~Appender() { close(); }

    /// Is it open for what leaves by `dst`?
    bool is_open(const fib::Dst& dst) const noexcept { return dst.out == out_; }
    void open(const fib::Dst& dst) noexcept {
        close();
        out_ = dst.out;
        buffer_ = &transmit_.run_of(dst.port, {book_, dst.out, family_, true});
        next_ = buffer_->packets.data() + buffer_->count;
        end_ = buffer_->packets.data() + kBufferPackets;
        bytes_ = 0;
    }
    void append(const fib::Dst& dst, rte_mbuf* m) noexcept {
        bytes_ += m->pkt_len;
        *next_++ = m;
        if (next_ == end_) [[unlikely]] {
            close();
            transmit_.flush_port(dst.port);
        }
    }
    void close() noexcept {
        if (buffer_ != nullptr) {
            buffer_->count = static_cast<std::uint32_t>(next_ - buffer_->packets.data());
            buffer_->open.bytes += bytes_;
            buffer_ = nullptr;
            out_ = kBlackholeNetdev;
        }
    }

private:
    Transmitter& transmit_;
    Buffer* buffer_ = nullptr;
    NetdevId out_ = kBlackholeNetdev;  // no packet leaves by it
    NetdevId book_;
    rte_mbuf** next_ = nullptr;
    rte_mbuf** end_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::uint8_t family_;
};

}  // namespace sluice::pipeline
