// SPDX-License-Identifier: BSD-3-Clause
#include "environment.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include <sched.h>
#include <unistd.h>

namespace sluice::test {

dpdk::EalOptions eal_options(const std::string& instance) {
    unsigned cpu = 0;
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    while (cpu + 1 < CPU_SETSIZE && !CPU_ISSET(cpu, &set)) {
        ++cpu;
    }
    return {.instance = instance,
            .lcores = {cpu},
            .hugepages = false,
            .memory_mb = 256,
            .devices = {},
            .extra_args = {}};
}

std::size_t open_files() {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

bool shell(const std::string& command) {
    return std::system(command.c_str()) == 0;
}

std::string unique(const std::string& prefix) {
    return prefix + std::to_string(getpid());
}

rte_mbuf* packet_of(dpdk::PktPool& pool, const std::vector<std::uint8_t>& bytes) {
    rte_mbuf* head = rte_pktmbuf_alloc(pool.raw());
    rte_mbuf* tail = head;
    for (std::size_t done = 0; head != nullptr && done < bytes.size();) {
        if (rte_pktmbuf_tailroom(tail) == 0) {
            tail = rte_pktmbuf_alloc(pool.raw());
            if (tail == nullptr || rte_pktmbuf_chain(head, tail) != 0) {
                rte_pktmbuf_free(tail);
                rte_pktmbuf_free(head);
                return nullptr;
            }
        }
        const auto now = static_cast<std::uint16_t>(
            std::min<std::size_t>(rte_pktmbuf_tailroom(tail), bytes.size() - done));
        std::copy_n(bytes.data() + done,
                    now,
                    reinterpret_cast<std::uint8_t*>(rte_pktmbuf_append(head, now)));
        done += now;
    }
    return head;
}

std::vector<std::uint8_t> bytes_of(const rte_mbuf& packet) {
    std::vector<std::uint8_t> bytes;
    for (const rte_mbuf* m = &packet; m != nullptr; m = m->next) {
        const auto* data = rte_pktmbuf_mtod(m, const std::uint8_t*);
        bytes.insert(bytes.end(), data, data + m->data_len);
    }
    return bytes;
}

std::vector<std::uint8_t> test_frame(std::size_t bytes) {
    std::vector<std::uint8_t> frame{
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};
    while (frame.size() < bytes) {
        frame.push_back(static_cast<std::uint8_t>(frame.size() * 7));
    }
    return frame;
}

std::vector<std::uint8_t> receive(const dpdk::Port& port) {
    std::vector<std::uint8_t> found;
    eventually([&] {
        for (std::uint16_t queue = 0; queue < port.rx_queues() && found.empty(); ++queue) {
            std::array<rte_mbuf*, 1> packet{};
            while (found.empty() &&
                   rte_eth_rx_burst(port.id().value, queue, packet.data(), 1) == 1) {
                auto bytes = bytes_of(*packet[0]);
                rte_pktmbuf_free(packet[0]);
                if (bytes.size() > 13 && bytes[12] == 0x88 && bytes[13] == 0xb5) {
                    found = std::move(bytes);
                }
            }
        }
        return !found.empty();
    });
    return found;
}

bool send(const dpdk::Port& port, rte_mbuf* packet) {
    if (rte_eth_tx_burst(port.id().value, 0, &packet, 1) == 1) {
        return true;
    }
    rte_pktmbuf_free(packet);
    return false;
}

}  // namespace sluice::test
