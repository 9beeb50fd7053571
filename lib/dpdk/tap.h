// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

/// net_tap as a cable: the port is one end, the kernel's interface the other, and that end may be
/// moved into a host's network namespace. The driver's own controls work on the interface by name,
/// in the namespace that the process started in, and fail with ENODEV after a move; these ask the
/// queue's file, which knows its interface wherever it is.
///
/// Observed with DPDK 22.11 on Linux 6.18 without sch_multiq:
/// - One and several queues work; the kernel spreads flows over all of them by its own hash, so all
///   must be polled. RX and TX queues come in pairs. rte_flow is off (the driver warns at attach).
/// - The kernel's end has the MAC that the driver reports and sets. Two ends of one cable with one
/// MAC
///   derive one IPv6 link-local address, so Port never sets it and takes another for itself.
/// - No vnet header: the kernel completes checksums and segments before it hands a frame over.
/// - 22.11 allows an MTU of 1504 at most. The driver drops frames longer than its MTU on transmit,
/// and reads a frame into as many
///   mbufs as there are RX descriptors with SCATTER, one without.
/// - RX is triggered by a real-time signal per frame (SIGRTMIN+1 or the next that is free):
/// epoll_wait and
///   its like return EINTR on whatever thread takes it, usually the main one.
/// - Stopping and starting takes the kernel's end down and up, by name: impossible after a move.
namespace sluice::dpdk::tap {

/// Up and running. False when the interface is gone with its namespace.
bool is_running(int queue_fd) noexcept;

/// 0 or an errno.
int set_mtu(int queue_fd, std::uint16_t mtu) noexcept;

/// What the kernel allows for a tap: 65535 less the Ethernet header.
inline constexpr std::uint16_t kMaxMtu = 65521;
inline constexpr std::uint16_t kMinMtu = 68;

}  // namespace sluice::dpdk::tap
