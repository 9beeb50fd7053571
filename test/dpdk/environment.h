// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "dpdk/eal.h"
#include "dpdk/pool.h"
#include "dpdk/port.h"

namespace sluice::test {

/// What test_dpdk's own EAL, and those that its tests start, are started with.
dpdk::EalOptions eal_options(const std::string& instance);

/// Open file descriptors of this process.
std::size_t open_files();

/// Runs a shell command; true when it succeeds. For `ip`.
bool shell(const std::string& command);

/// Unique among concurrent runs; short enough for an interface.
std::string unique(const std::string& prefix);

/// False after five seconds.
bool eventually(std::predicate auto condition) {
    using namespace std::chrono_literals;
    const auto deadline = std::chrono::steady_clock::now() + 5s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(5ms);
    }
    return true;
}

/// A mbuf that holds `bytes`, over several segments if need be.
rte_mbuf* packet_of(dpdk::PktPool& pool, const std::vector<std::uint8_t>& bytes);
std::vector<std::uint8_t> bytes_of(const rte_mbuf& packet);

/// A frame of `bytes` bytes, broadcast, of an experimental EtherType, with a pattern in it.
std::vector<std::uint8_t> test_frame(std::size_t bytes);

/// The next test_frame() that arrives; what else arrives is dropped. Empty after five seconds.
std::vector<std::uint8_t> receive(const dpdk::Port& port);
/// Sends `packet` on queue 0; frees it and returns false if the device does not take it.
bool send(const dpdk::Port& port, rte_mbuf* packet);

}  // namespace sluice::test
