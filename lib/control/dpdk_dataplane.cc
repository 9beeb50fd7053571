// SPDX-License-Identifier: BSD-3-Clause
#include "control/dpdk_dataplane.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_mbuf.h>

#include "dpdk/mbuf.h"
#include "dpdk/port.h"

namespace sluice::control {
namespace {

/// What another thread is counting, each word read whole.
stats::WorkerCounters snapshot(const stats::WorkerCounters& live) noexcept {
    using Words = std::array<std::uint64_t, sizeof(stats::WorkerCounters) / sizeof(std::uint64_t)>;
    const auto* from = reinterpret_cast<const std::uint64_t*>(&live);  // NOLINT: nothing else in it
    Words words{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = stats::read(from[i]);
    }
    return std::bit_cast<stats::WorkerCounters>(words);
}

int run_worker(void* worker) {
    static_cast<pipeline::Worker*>(worker)->run();
    return 0;
}

class DpdkPort final : public PortDevice {
public:
    explicit DpdkPort(dpdk::Port port) : port_(std::move(port)), own_mac_(port_.mac()) {}

    dpdk::Port& port() noexcept { return port_; }

    PortId id() const noexcept override { return port_.id(); }
    const std::string& driver() const noexcept override { return port_.driver(); }
    const net::MacAddr& mac() const noexcept override { return port_.mac(); }
    const net::MacAddr& own_mac() const noexcept override { return own_mac_; }
    std::uint16_t rx_queues() const noexcept override { return port_.rx_queues(); }
    std::optional<dpdk::RxWakeup> rx_wakeup(std::uint16_t queue) const noexcept override {
        return port_.rx_wakeup(queue);
    }
    std::uint16_t mtu() const noexcept override { return port_.mtu(); }
    dpdk::Link link() const noexcept override { return port_.link(); }
    std::vector<std::string> take_notes() override {
        const auto& notes = port_.notes();
        std::vector<std::string> fresh(notes.begin() + static_cast<std::ptrdiff_t>(taken_),
                                       notes.end());
        taken_ = notes.size();
        return fresh;
    }
    Result<void> set_mtu(std::uint16_t mtu) override { return port_.set_mtu(mtu); }
    Result<void> set_mac(const net::MacAddr& mac) override { return port_.set_mac(mac); }
    Result<void> set_promiscuous(bool on) override { return port_.set_promiscuous(on); }
    Result<void> start() override { return port_.start(); }
    void stop() override { port_.stop(); }

private:
    dpdk::Port port_;
    net::MacAddr own_mac_;
    std::size_t taken_ = 0;  // of the port's notes
};

}  // namespace

unsigned DpdkDataplane::packets_needed(std::size_t ports,
                                       std::size_t workers,
                                       unsigned descriptors) {
    // Per thread: its lcore cache, a burst being received, TX buffers, fragments under way.
    constexpr std::size_t kPerThread = 4096;
    // Ports that are added while running.
    constexpr std::size_t kSparePorts = 4;
    const std::size_t queues = (ports + kSparePorts) * workers;
    return static_cast<unsigned>(queues * 2 * descriptors +
                                 workers * (pipeline::kMaxHeldPackets + kPerThread) + kPerThread);
}

Result<std::unique_ptr<DpdkDataplane>> DpdkDataplane::create(const Options& options,
                                                             fib::Shared& shared,
                                                             dpdk::RcuDomain& rcu) {
    auto pool = dpdk::PktPool::create("packets", options.packets);
    if (!pool) {
        return std::unexpected(pool.error());
    }
    std::unique_ptr<DpdkDataplane> plane(new DpdkDataplane(options, std::move(*pool)));
    const auto count = static_cast<std::uint16_t>(options.lcores.size());
    for (std::uint16_t id = 0; id < count; ++id) {
        auto worker = pipeline::Worker::create({.id = WorkerId{id},
                                                .workers = count,
                                                .burst = options.burst,
                                                .cache_entries = options.cache_entries},
                                               shared,
                                               rcu,
                                               plane->pool_);
        if (!worker) {
            return std::unexpected(worker.error());
        }
        plane->workers_.push_back(std::move(*worker));
    }
    return plane;
}

DpdkDataplane::~DpdkDataplane() {
    stop();
}

Result<void> DpdkDataplane::launch() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        const unsigned lcore = options_.lcores[i];
        if (const int result = rte_eal_remote_launch(run_worker, workers_[i].get(), lcore);
            result != 0) {
            return fail(ErrorCode::kInternal,
                        "worker {} does not start on lcore {}: {}",
                        i,
                        lcore,
                        std::strerror(-result));
        }
        ++launched_;
    }
    return {};
}

void DpdkDataplane::stop() {
    for (std::size_t i = 0; i < launched_; ++i) {
        workers_[i]->stop();
    }
    for (std::size_t i = 0; i < launched_; ++i) {
        rte_eal_wait_lcore(options_.lcores[i]);
    }
    launched_ = 0;
}

Result<std::unique_ptr<PortDevice>> DpdkDataplane::open(const dpdk::PortOptions& options) {
    dpdk::PortOptions all = options;
    all.tx_queues = static_cast<std::uint16_t>(workers_.size());
    all.mac.reset();  // set below, so that the device's own stays known
    dpdk::PktPool* const pools[]{&pool_};
    auto port = dpdk::Port::open(all, pools);
    if (!port) {
        return std::unexpected(port.error());
    }
    if (port->tx_queues() < workers_.size()) {
        return fail(ErrorCode::kUnsupported,
                    "{}: {} has {} TX queues, {} workers need one each: fewer dpdk.lcores",
                    options.device,
                    port->driver(),
                    port->tx_queues(),
                    workers_.size());
    }
    auto device = std::make_unique<DpdkPort>(std::move(*port));
    if (options.mac) {
        if (auto ok = device->set_mac(*options.mac); !ok) {
            return std::unexpected(ok.error());
        }
    }
    if (auto ok = device->start(); !ok) {
        return std::unexpected(ok.error());
    }
    return device;
}

void DpdkDataplane::publish_queues(std::size_t worker,
                                   std::unique_ptr<const pipeline::RxQueueList> queues) {
    workers_[worker]->publish_queues(std::move(queues));
}

bool DpdkDataplane::send(std::size_t worker, const pipeline::WorkerCommand& command) {
    return workers_[worker]->send(command);
}

bool DpdkDataplane::transmit(NetdevId netdev, std::span<const std::uint8_t> frame) {
    rte_mbuf* m = rte_pktmbuf_alloc(pool_.raw());
    if (m == nullptr) {
        return false;
    }
    char* bytes = rte_pktmbuf_append(m, static_cast<std::uint16_t>(frame.size()));
    if (bytes != nullptr) {
        std::memcpy(bytes, frame.data(), frame.size());
        dpdk::meta(*m) = {.ingress = netdev};
        if (workers_.front()->inject().enqueue({&m, 1}) == 1) {
            return true;
        }
    }
    rte_pktmbuf_free(m);
    return false;
}

const stats::Block& DpdkDataplane::block(std::size_t worker) const noexcept {
    return std::as_const(*workers_[worker]).block();
}

std::uint32_t DpdkDataplane::clock_s() const noexcept {
    // As Worker tells the time.
    __extension__ using Wide = unsigned __int128;
    const std::uint64_t ns_per_tsc_q32 = (std::uint64_t{1'000'000'000} << 32U) / rte_get_tsc_hz();
    const auto ns = static_cast<std::uint64_t>((Wide{rte_rdtsc()} * ns_per_tsc_q32) >> 32U);
    return static_cast<std::uint32_t>(ns / 1'000'000'000U);
}

std::vector<WorkerInfo> DpdkDataplane::worker_infos() const {
    std::vector<WorkerInfo> infos;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        infos.push_back({.id = WorkerId{static_cast<std::uint16_t>(i)},
                         .lcore = options_.lcores[i],
                         .counters = snapshot(block(i).worker()),
                         .tsc_hz = static_cast<double>(rte_get_tsc_hz())});
    }
    return infos;
}

std::vector<PoolInfo> DpdkDataplane::pool_infos() const {
    return {{.name = "packets", .size = pool_.size(), .in_use = pool_.in_use()}};
}

}  // namespace sluice::control
