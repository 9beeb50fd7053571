// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "control/dataplane.h"
#include "dpdk/pool.h"
#include "dpdk/rcu.h"
#include "fib/shared.h"
#include "pipeline/worker.h"

namespace sluice::control {

/// The workers, their mbufs and the real devices.
class DpdkDataplane final : public Dataplane {
public:
    struct Options {
        std::vector<unsigned> lcores;  // of the workers
        std::uint16_t burst = 32;
        std::uint16_t cache_entries = 512;
        unsigned packets = 0;  // mbufs; see packets_needed()
    };
    static Result<std::unique_ptr<DpdkDataplane>> create(const Options& options,
                                                         fib::Shared& shared,
                                                         dpdk::RcuDomain& rcu);
    ~DpdkDataplane() override;

    /// Mbufs with which no port, queue or worker can leave another without.
    static unsigned packets_needed(std::size_t ports, std::size_t workers, unsigned descriptors);

    Result<void> launch();
    /// Ends the workers and waits for that: at most an idle sleep.
    void stop();
    pipeline::Worker& worker(std::size_t index) noexcept { return *workers_[index]; }

public:  // Dataplane
    std::size_t workers() const noexcept override { return workers_.size(); }
    Result<std::unique_ptr<PortDevice>> open(const dpdk::PortOptions& options) override;
    void publish_queues(std::size_t worker,
                        std::unique_ptr<const pipeline::RxQueueList> queues) override;
    bool send(std::size_t worker, const pipeline::WorkerCommand& command) override;
    bool transmit(NetdevId netdev, std::span<const std::uint8_t> frame) override;
    const stats::Block& block(std::size_t worker) const noexcept override;
    std::uint32_t clock_s() const noexcept override;
    std::vector<WorkerInfo> worker_infos() const override;
    std::vector<PoolInfo> pool_infos() const override;

private:
    explicit DpdkDataplane(Options options, dpdk::PktPool pool)
        : options_(std::move(options)), pool_(std::move(pool)) {}

    Options options_;
    dpdk::PktPool pool_;
    std::vector<std::unique_ptr<pipeline::Worker>> workers_;
    std::size_t launched_ = 0;
};

}  // namespace sluice::control
