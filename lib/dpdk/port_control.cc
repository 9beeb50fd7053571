// SPDX-License-Identifier: BSD-3-Clause
// What is asked of a port, and changed on it, while it is there; its life is in port.cc.
#include <algorithm>
#include <cstdint>
#include <optional>

#include <rte_ethdev.h>
#include <unistd.h>

#include "dpdk/error.h"
#include "dpdk/port.h"
#include "dpdk/tap.h"

namespace sluice::dpdk {
namespace {

rte_ether_addr to_ether(const net::MacAddr& mac) {
    rte_ether_addr ether{};
    std::ranges::copy(mac.bytes, ether.addr_bytes);
    return ether;
}

}  // namespace

int Port::socket() const noexcept {
    return rte_eth_dev_socket_id(id_.value);
}

Result<void> Port::set_mtu(std::uint16_t mtu) {
    if (auto ok = check_mtu(mtu); !ok) {
        return ok;
    }
    const bool scatter = (rx_offloads_ & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
    if (scatter_needed(mtu) && !scatter) {
        if (started_) {
            return fail(ErrorCode::kBusy,
                        "port {}: MTU {} needs the port stopped, its buffers are shorter",
                        name_,
                        mtu);
        }
        const std::uint16_t old = mtu_;
        auto ok = configure(mtu);
        if (!ok) {
            static_cast<void>(configure(old));
        }
        return ok;
    }
    return set_device_mtu(mtu);
}

Result<void> Port::set_mac(const net::MacAddr& mac) {
    if (mac.is_group() || mac.is_zero()) {
        return fail(ErrorCode::kInvalid,
                    "port {}: {} is no MAC address for a port",
                    name_,
                    mac.to_string());
    }
    if (mac == mac_) {
        return {};
    }
    if (tap_) {  // the device's MAC is the kernel's end's
        mac_ = mac;
        return {};
    }
    rte_ether_addr ether = to_ether(mac);
    const int result = rte_eth_dev_default_mac_addr_set(id_.value, &ether);
    if (result == -ENOTSUP) {
        promiscuous_needed_ = true;
        if (auto ok = set_promiscuous(promiscuous_); !ok) {
            return ok;
        }
        note(fmt::format("port {}: promiscuous, as {} cannot change its MAC", name_, driver_));
    } else if (result < 0) {
        return fail(code_of(result),
                    "port {}: {} refuses MAC {}: {}",
                    name_,
                    driver_,
                    mac.to_string(),
                    reason(result));
    }
    mac_ = mac;
    return {};
}

Result<void> Port::set_promiscuous(bool on) {
    if (tap_) {  // filters nothing
        return {};
    }
    const int result = on || promiscuous_needed_ ? rte_eth_promiscuous_enable(id_.value)
                                                 : rte_eth_promiscuous_disable(id_.value);
    // A device without the switch filters nothing either.
    if (result < 0 && result != -ENOTSUP) {
        return fail(code_of(result), "port {}: promiscuous mode: {}", name_, reason(result));
    }
    promiscuous_ = on;
    return {};
}

Result<void> Port::set_allmulticast(bool on) {
    if (tap_) {
        return {};
    }
    const int result =
        on ? rte_eth_allmulticast_enable(id_.value) : rte_eth_allmulticast_disable(id_.value);
    if (result < 0 && result != -ENOTSUP) {
        return fail(code_of(result), "port {}: all-multicast mode: {}", name_, reason(result));
    }
    return {};
}

Link Port::link() const noexcept {
    rte_eth_link link{};
    if (tap_) {
        const auto fd = started_ ? queue_fd(0) : std::nullopt;
        return {.up = fd && tap::is_running(*fd), .speed_mbps = 0};
    }
    if (!started_ || rte_eth_link_get_nowait(id_.value, &link) < 0 ||
        link.link_status != RTE_ETH_LINK_UP) {
        return {};
    }
    return {.up = true,
            .speed_mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed};
}

PortStats Port::stats() const noexcept {
    rte_eth_stats s{};
    if (rte_eth_stats_get(id_.value, &s) < 0) {
        return {};
    }
    return {.rx_packets = s.ipackets,
            .rx_bytes = s.ibytes,
            .rx_errors = s.ierrors,
            .rx_missed = s.imissed,
            .rx_no_mbuf = s.rx_nombuf,
            .tx_packets = s.opackets,
            .tx_bytes = s.obytes,
            .tx_errors = s.oerrors};
}

std::optional<int> Port::queue_fd(std::uint16_t queue) const noexcept {
    const int fd = running_ ? rte_eth_dev_rx_intr_ctl_q_get_fd(id_.value, queue) : -1;
    return fd < 0 ? std::nullopt : std::optional(fd);
}

std::optional<RxWakeup> Port::rx_wakeup(std::uint16_t queue) const noexcept {
    const auto fd = rx_interrupts_ ? queue_fd(queue) : std::nullopt;
    if (!fd) {
        return std::nullopt;
    }
    RxWakeup wakeup{.fd = *fd, .port = id_, .queue = queue, .device_interrupt = !tap_};
    if (!wakeup.arm()) {
        return std::nullopt;
    }
    wakeup.disarm();
    return wakeup;
}

bool RxWakeup::arm() const noexcept {
    return !device_interrupt || rte_eth_dev_rx_intr_enable(port.value, queue) == 0;
}

void RxWakeup::disarm() const noexcept {
    if (!device_interrupt) {
        return;
    }
    rte_eth_dev_rx_intr_disable(port.value, queue);
    std::uint64_t events = 0;  // an eventfd, non-blocking; unread it would stay readable
    static_cast<void>(!read(fd, &events, sizeof(events)));
}

}  // namespace sluice::dpdk
