// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/id.h"
#include "base/result.h"
#include "dpdk/pool.h"
#include "dpdk/rcu.h"
#include "dpdk/ring.h"
#include "fib/shared.h"
#include "pipeline/messages.h"
#include "stats/counters.h"

namespace sluice::pipeline {

struct WorkerOptions {
    WorkerId id;                        // also its TX queue on every port
    std::uint16_t workers = 1;          // how many there are
    std::uint16_t burst = 32;           // 1..kMaxBurst
    std::uint16_t cache_entries = 512;  // power of two, 4..16384, per family
};

/// One poll-mode thread: its loop, and the ends of what joins it to the control thread.
class Worker {
public:  // control thread
    /// Rings and buffers are made here; run() allocates nothing.
    static Result<std::unique_ptr<Worker>> create(const WorkerOptions& options,
                                                  fib::Shared& shared,
                                                  dpdk::RcuDomain& rcu,
                                                  dpdk::PktPool& pool);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    Worker(Worker&&) = delete;
    Worker& operator=(Worker&&) = delete;

    /// Publishes the queues to poll (one per port); the old list is freed through RCU. Once the
    /// grace period is over the worker touches neither RX nor TX of ports that are in no list.
    void publish_queues(std::unique_ptr<const RxQueueList> queues);

    /// Takes what the worker has to say. False: nothing.
    bool next_event(WorkerEvent& event);
    /// False: the queue is full, try again later.
    bool send(const WorkerCommand& command);

    /// ARP and neighbour discovery packets, PacketMeta says where they came in and where L3 begins.
    /// Booked as held; the control thread books them off in its own block and frees them.
    dpdk::MbufRing& punted() noexcept;
    /// Whole untagged Ethernet frames to transmit; PacketMeta::ingress names the netdev to send
    /// them on. The worker adds the VLAN tag and books them on `lo`.
    dpdk::MbufRing& inject() noexcept;

    stats::Block& block() noexcept;
    const stats::Block& block() const noexcept;
    /// Asks run() to return; it does within the idle bound.
    void stop() noexcept;

public:  // the worker's thread
    void run() noexcept;

private:
    struct Impl;
    explicit Worker(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// Longest sleep of an idle worker without an interrupt, and so the bound on its wake-up.
inline constexpr std::uint32_t kIdleSleepMaxUs = 500;
/// Packets of one RX burst, at most.
inline constexpr std::uint16_t kMaxBurst = 256;
/// Mbufs that a worker's hold queues may keep, for sizing the pool.
inline constexpr std::uint32_t kMaxHeldPackets = 4096;

}  // namespace sluice::pipeline
