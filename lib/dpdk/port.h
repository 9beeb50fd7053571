// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "dpdk/pool.h"
#include "net/address.h"

namespace sluice::dpdk {

struct PortOptions {
    std::string device;  // PCI address or devargs string
    /// The device's own when absent. For net_tap that is the kernel's end's, with the first byte
    /// changed.
    std::optional<net::MacAddr> mac = {};
    std::uint16_t mtu = 1500;
    std::uint16_t rx_queues = 1;
    std::uint16_t tx_queues = 1;  // one per thread that transmits
    std::uint16_t rx_descriptors = 1024;
    std::uint16_t tx_descriptors = 1024;
    bool promiscuous = false;
    bool rx_interrupts = false;  // wanted; see Port::rx_wakeup
};

struct Link {
    bool up = false;
    std::uint32_t speed_mbps = 0;  // 0: unknown
    friend bool operator==(const Link&, const Link&) = default;
};

struct PortStats {
    std::uint64_t rx_packets = 0, rx_bytes = 0, rx_errors = 0;
    std::uint64_t rx_missed = 0;  // the device had no descriptor or buffer
    std::uint64_t rx_no_mbuf = 0;
    std::uint64_t tx_packets = 0, tx_bytes = 0, tx_errors = 0;
};

/// How a worker that sleeps learns of a packet: arm(), look at the queue once more, then poll `fd`
/// for POLLIN, then disarm(). Worker thread; needs no Port.
struct RxWakeup {
    int fd = -1;
    PortId port;
    std::uint16_t queue = 0;
    bool device_interrupt =
        false;  // else `fd` is the packets' own source: nothing to arm or to read

    /// False when the device refuses: do not sleep on it.
    bool arm() const noexcept;
    void disarm() const noexcept;
    friend bool operator==(const RxWakeup&, const RxWakeup&) = default;
};

/// Owner of one ethdev: attached, configured, started, stopped, closed and detached here only.
/// All members: control thread. No worker may poll the port's queues while stop(), the destructor,
/// or set_mtu() of a stopped port runs.
class Port {
public:
    /// Attaches and configures, does not start. After an error the device is detached again.
    /// `pools`: one for all RX queues, or one per RX queue; they must outlive the port.
    /// kExists: the device is attached already; kDevice: it is not there or the driver failed;
    /// kInvalid: MTU outside the device's range; kUnsupported; kLimit: memory.
    static Result<Port> open(const PortOptions& options, std::span<PktPool* const> pools);

    Port(Port&& other) noexcept;
    Port& operator=(Port&&) = delete;
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;
    ~Port();

    Result<void> start();
    /// The driver frees what its TX queues hold; received packets not yet polled are lost.
    void stop();
    bool started() const noexcept { return started_; }

    PortId id() const noexcept { return id_; }
    const std::string& name() const noexcept { return name_; }  // "net_tap0", "0000:03:00.0"
    const std::string& driver() const noexcept { return driver_; }
    /// NUMA node, SOCKET_ID_ANY when it has none.
    int socket() const noexcept;
    /// As configured; may differ from what was asked for, notes() then says so. Every RX queue
    /// below rx_queues() must be polled: the device spreads packets over all of them.
    std::uint16_t rx_queues() const noexcept { return rx_queues_; }
    std::uint16_t tx_queues() const noexcept { return tx_queues_; }
    std::uint16_t max_rx_queues() const noexcept { return max_rx_queues_; }  // 0: no limit known
    std::uint16_t max_mtu() const noexcept { return max_mtu_; }
    std::uint16_t min_mtu() const noexcept { return min_mtu_; }
    std::uint16_t mtu() const noexcept { return mtu_; }
    const net::MacAddr& mac() const noexcept { return mac_; }
    std::uint64_t rx_offloads() const noexcept { return rx_offloads_; }
    std::uint64_t tx_offloads() const noexcept { return tx_offloads_; }
    /// One line each about what the device could not give; for the log, not errors.
    const std::vector<std::string>& notes() const noexcept { return notes_; }

    /// The kernel's end of a net_tap has the MTU that the port was opened with, and is the host's
    /// after. kInvalid outside the device's range, kBusy when the device must be stopped for it:
    /// then stop the workers' polling, stop(), set_mtu(), start(). On error the old MTU holds.
    Result<void> set_mtu(std::uint16_t mtu);
    /// A device that cannot change its MAC is set promiscuous instead (see notes()).
    Result<void> set_mac(const net::MacAddr& mac);
    Result<void> set_promiscuous(bool on);
    Result<void> set_allmulticast(bool on);

    /// Never waits; cheap enough to ask ten times a second.
    Link link() const noexcept;
    PortStats stats() const noexcept;

    /// For a worker's idle sleep; none when the device has no RX interrupts, or they were not asked
    /// for. Valid until stop().
    std::optional<RxWakeup> rx_wakeup(std::uint16_t queue) const noexcept;
    bool rx_interrupt_supported() const noexcept { return rx_interrupts_; }

private:
    Port() = default;
    Result<void> take_device(const std::string& device);
    Result<void> configure(std::uint16_t mtu);
    Result<void> set_up_queues();
    Result<void> set_device_mtu(std::uint16_t mtu);
    Result<void> check_mtu(std::uint16_t mtu) const;
    Result<void> start_device();
    std::optional<int> queue_fd(std::uint16_t queue) const noexcept;
    void discard_received() noexcept;
    bool scatter_needed(std::uint16_t mtu) const noexcept;
    void note(std::string text);

    std::string name_;
    std::string driver_;
    net::MacAddr mac_;
    std::vector<std::string> notes_;
    std::vector<rte_mempool*> pools_;
    std::uint64_t rx_offloads_ = 0, tx_offloads_ = 0;
    PortId id_{};
    std::uint16_t rx_queues_ = 0, tx_queues_ = 0, max_rx_queues_ = 0;
    std::uint16_t rx_descriptors_ = 0, tx_descriptors_ = 0;
    std::uint16_t mtu_ = 0, min_mtu_ = 0, max_mtu_ = 0;
    bool attached_ = false, started_ = false, promiscuous_ = false, rx_interrupts_ = false;
    bool promiscuous_needed_ = false;  // for what the device cannot filter otherwise
    bool rx_interrupts_wanted_ = false;
    bool tap_ = false;      // see tap.h
    bool running_ = false;  // the device; differs from started_ for a tap only
};

}  // namespace sluice::dpdk
