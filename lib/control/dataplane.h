// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "control/controller.h"
#include "dpdk/port.h"
#include "net/address.h"
#include "pipeline/messages.h"
#include "stats/counters.h"

/// What the control thread wants of devices and workers; the seam where tests put fakes.
namespace sluice::control {

/// A started device; see dpdk::Port for what each call does. The destructor closes it.
class PortDevice {
public:
    PortDevice() = default;
    PortDevice(const PortDevice&) = delete;
    PortDevice& operator=(const PortDevice&) = delete;
    PortDevice(PortDevice&&) = delete;
    PortDevice& operator=(PortDevice&&) = delete;
    virtual ~PortDevice() = default;

    virtual PortId id() const noexcept = 0;
    virtual const std::string& driver() const noexcept = 0;
    virtual const net::MacAddr& mac() const noexcept = 0;
    /// The one it had before any was set.
    virtual const net::MacAddr& own_mac() const noexcept = 0;
    virtual std::uint16_t rx_queues() const noexcept = 0;
    virtual std::optional<dpdk::RxWakeup> rx_wakeup(std::uint16_t queue) const noexcept = 0;
    virtual std::uint16_t mtu() const noexcept = 0;
    virtual dpdk::Link link() const noexcept = 0;
    /// What the device could not give, said once each.
    virtual std::vector<std::string> take_notes() = 0;

    virtual Result<void> set_mtu(std::uint16_t mtu) = 0;
    virtual Result<void> set_mac(const net::MacAddr& mac) = 0;
    virtual Result<void> set_promiscuous(bool on) = 0;
    virtual Result<void> start() = 0;
    virtual void stop() = 0;
};

class Dataplane {
public:
    Dataplane() = default;
    Dataplane(const Dataplane&) = delete;
    Dataplane& operator=(const Dataplane&) = delete;
    Dataplane(Dataplane&&) = delete;
    Dataplane& operator=(Dataplane&&) = delete;
    virtual ~Dataplane() = default;

    virtual std::size_t workers() const noexcept = 0;
    /// Opens and starts; a TX queue for each worker or kUnsupported. `options` without queues and
    /// descriptors for TX, which are the data plane's own business.
    virtual Result<std::unique_ptr<PortDevice>> open(const dpdk::PortOptions& options) = 0;
    virtual void publish_queues(std::size_t worker,
                                std::unique_ptr<const pipeline::RxQueueList> queues) = 0;
    /// False: the queue is full, try again later.
    virtual bool send(std::size_t worker, const pipeline::WorkerCommand& command) = 0;
    /// Sends an untagged frame out of `netdev`. False: no buffer, lost.
    virtual bool transmit(NetdevId netdev, std::span<const std::uint8_t> frame) = 0;
    virtual const stats::Block& block(std::size_t worker) const noexcept = 0;
    /// The clock that workers compare Dst::expiry_s and bucket times with.
    virtual std::uint32_t clock_s() const noexcept = 0;

    virtual std::vector<WorkerInfo> worker_infos() const = 0;
    virtual std::vector<PoolInfo> pool_infos() const = 0;
};

}  // namespace sluice::control
