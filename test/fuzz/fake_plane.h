// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "control/dataplane.h"
#include "dpdk/port.h"
#include "pipeline/messages.h"
#include "stats/counters.h"
#include "support/packet.h"

namespace sluice::test::fuzz {

inline constexpr std::size_t kDevices = 4;

/// A device that is always there: "dev-0" and so on, whose ethdev id is that number.
class FakePort final : public control::PortDevice {
public:
    FakePort(const dpdk::PortOptions& options, std::uint16_t number, const bool& link)
        : number_(number),
          own_mac_({{0x06, 0, 0, 0, 0, static_cast<std::uint8_t>(number)}}),
          mac_(options.mac.value_or(own_mac_)),
          mtu_(options.mtu),
          link_(link) {}
    PortId id() const noexcept override { return PortId{number_}; }
    const std::string& driver() const noexcept override { return driver_; }
    const net::MacAddr& mac() const noexcept override { return mac_; }
    const net::MacAddr& own_mac() const noexcept override { return own_mac_; }
    std::uint16_t rx_queues() const noexcept override { return 1; }
    std::optional<dpdk::RxWakeup> rx_wakeup(std::uint16_t /*queue*/) const noexcept override {
        return {};
    }
    std::uint16_t mtu() const noexcept override { return mtu_; }
    dpdk::Link link() const noexcept override { return {.up = link_}; }
    std::vector<std::string> take_notes() override { return {}; }
    Result<void> set_mtu(std::uint16_t mtu) override {
        mtu_ = mtu;
        return {};
    }
    Result<void> set_mac(const net::MacAddr& mac) override {
        mac_ = mac;
        return {};
    }
    Result<void> set_promiscuous(bool /*on*/) override { return {}; }
    Result<void> start() override { return {}; }
    void stop() override {}

private:
    std::string driver_ = "fake";
    std::uint16_t number_;
    net::MacAddr own_mac_;
    net::MacAddr mac_;
    std::uint16_t mtu_;
    const bool& link_;
};

/// What the engine of the differential test sees of its workers.
class FakePlane final : public control::Dataplane {
public:
    /// The workers' blocks, which outlive this.
    explicit FakePlane(std::vector<const stats::Block*> blocks, const std::uint64_t& now_ns)
        : commands(blocks.size()), blocks_(std::move(blocks)), now_ns_(now_ns) {}

    std::size_t workers() const noexcept override { return blocks_.size(); }
    Result<std::unique_ptr<control::PortDevice>> open(const dpdk::PortOptions& options) override {
        for (std::size_t number = 0; number < kDevices; ++number) {
            if (options.device == "dev-" + std::to_string(number)) {
                return std::make_unique<FakePort>(
                    options, static_cast<std::uint16_t>(number), links[number]);
            }
        }
        return fail(ErrorCode::kDevice, "no such device");
    }
    void publish_queues(std::size_t /*worker*/,
                        std::unique_ptr<const pipeline::RxQueueList> /*list*/) override {
        asked();
    }
    bool send(std::size_t worker, const pipeline::WorkerCommand& command) override {
        asked();
        commands[worker].push_back(command);
        return true;
    }
    bool transmit(NetdevId netdev, std::span<const std::uint8_t> frame) override {
        asked();
        sent.emplace_back(netdev, Bytes(frame.begin(), frame.end()));
        return true;
    }
    const stats::Block& block(std::size_t worker) const noexcept override {
        return *blocks_[worker];
    }
    std::uint32_t clock_s() const noexcept override {
        return static_cast<std::uint32_t>(now_ns_ / 1'000'000'000U);
    }
    std::vector<control::WorkerInfo> worker_infos() const override { return {}; }
    std::vector<control::PoolInfo> pool_infos() const override { return {}; }

    /// Called whenever the engine asks for something, so in the middle of its changes.
    std::function<void()> asked = [] {};
    std::array<bool, kDevices> links{true, true, true, true};
    std::vector<std::vector<pipeline::WorkerCommand>> commands;  // not yet obeyed
    std::vector<std::pair<NetdevId, Bytes>> sent;                // by the control thread

private:
    std::vector<const stats::Block*> blocks_;
    const std::uint64_t& now_ns_;
};

}  // namespace sluice::test::fuzz
