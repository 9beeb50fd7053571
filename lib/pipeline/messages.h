// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <boost/lockfree/spsc_queue.hpp>

#include "base/id.h"
#include "dpdk/port.h"
#include "fib/neighbor_map.h"
#include "net/address.h"

namespace sluice::pipeline {

/// Worker to control.
struct WorkerEvent {
    enum class Kind : std::uint8_t {
        kResolve,   // a packet waits for this neighbour; once per hold, until answered
        kUsed,      // a packet was sent to it and its dst asks to be told (Dst::kReportUse)
        kPathMtu,   // an ICMP error about a packet of ours: `key` is (routing domain, destination)
        kRedirect,  // the same, to `gateway`; only where the ingress does not forward
    };
    Kind kind = Kind::kResolve;
    std::uint16_t mtu = 0;  // kPathMtu: 0 where the router did not say (RFC 1191 5)
    NetdevId ingress{};     // kPathMtu, kRedirect
    fib::NeighborKeyWords key;
    net::IpAddr gateway{};  // kRedirect
};

/// Control to worker.
struct WorkerCommand {
    enum class Kind : std::uint8_t {
        kReady,      // look held packets for `key` up again and send them
        kFailed,     // drop them with host / address unreachable
        kTableFull,  // drop them: no room for another neighbour
        kGone,       // drop them: the netdev went down or away
    };
    Kind kind = Kind::kReady;
    fib::NeighborKeyWords key;
};

inline constexpr std::size_t kMessageQueueCapacity = 8192;
using EventQueue =
    boost::lockfree::spsc_queue<WorkerEvent, boost::lockfree::capacity<kMessageQueueCapacity>>;
using CommandQueue =
    boost::lockfree::spsc_queue<WorkerCommand, boost::lockfree::capacity<kMessageQueueCapacity>>;

/// What a worker polls; immutable, replaced through RCU.
struct RxQueue {
    std::uint16_t port = 0;   // ethdev
    std::uint16_t queue = 0;  // of the port
    NetdevId netdev;          // of the port
    dpdk::RxWakeup wakeup{};  // fd -1: the device has none, its worker sleeps by the clock
    friend bool operator==(const RxQueue&, const RxQueue&) = default;
};
using RxQueueList = std::vector<RxQueue>;

}  // namespace sluice::pipeline
