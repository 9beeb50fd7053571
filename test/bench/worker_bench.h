// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_launch.h>

#include "base/check.h"
#include "base/result.h"
#include "dpdk/pool.h"
#include "dpdk/port.h"
#include "dpdk/rcu.h"
#include "fib/shared.h"
#include "net/address.h"
#include "pipeline/messages.h"
#include "pipeline/worker.h"
#include "support/packet.h"
#include "support/stage_bench.h"

/// Real workers on lcores of their own, between real ports, without a control thread.
namespace sluice::test {

inline void start_eal(std::vector<std::string> words) {
    words.insert(words.end(), {"--no-huge", "--no-pci", "--no-telemetry", "--no-shconf"});
    words.emplace_back("--log-level=lib.eal:error");
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) < 0) {
        fmt::print(stderr, "the EAL does not start\n");
        std::exit(1);
    }
}

template <class T>
T must(Result<T> result) {
    if (!result) {
        fmt::print(stderr, "{}\n", result.error().message);
        std::exit(1);
    }
    return std::move(*result);
}

/// StageBench for netdevs, dsts and tables. What comes in by one of its ports for kPrefix4 or
/// kPrefix6 leaves by `out`, to one of ten gateways.
class WorkerBench : public StageBench {
public:
    static constexpr unsigned kRoutes = 10;

    /// Worker i is to poll the i-th of `in`.
    WorkerBench(const std::vector<std::string>& in, const std::string& out)
        : StageBench(64), pool_(must(dpdk::PktPool::create("worker-bench", 16384))) {
        shared().cache_mode = fib::CacheMode::kAuto;
        const auto queues = static_cast<std::uint16_t>(in.size());
        out_ = &open(out, queues);
        netdev(kP1).port = out_->id().value;
        for (std::size_t i = 0; i < in.size(); ++i) {
            const dpdk::Port& port = open(in[i], queues);
            NetdevId id = kP0;
            if (i == 0) {
                netdev(kP0).port = port.id().value;
            } else {
                const std::string address = fmt::format("10.0.{}.1/24", 10 + i);
                id = add_netdev({.port = port.id().value,
                                 .mac = kP0Mac,
                                 .addresses = {address.c_str(), "fd00:9::1/64"}});
            }
            queues_.push_back({.port = port.id().value, .netdev = id});
            workers_.push_back(std::make_unique<Thread>(must(pipeline::Worker::create(
                {.id = WorkerId{static_cast<std::uint16_t>(i)}, .workers = queues},
                shared(),
                rcu_,
                pool_))));
        }
        for (unsigned i = 0; i < kRoutes; ++i) {
            route(fmt::format("198.18.{}.0/20", i * 16), fmt::format("10.0.1.{}", 10 + i));
            route(fmt::format("2001:db8:{:x}::/48", i), fmt::format("fd00:1::{:x}", 16 + i));
        }
    }
    void TestBody() override {}

    void launch(std::size_t i, unsigned lcore) {
        const auto run = [](void* thread) {
            auto& t = *static_cast<Thread*>(thread);
            clockid_t clock{};
            pthread_getcpuclockid(pthread_self(), &clock);
            t.clock = clock;
            t.worker->run();
            return 0;
        };
        SLUICE_CHECK(rte_eal_remote_launch(run, workers_[i].get(), lcore) == 0);
    }
    /// Of core that worker i has had, whoever else wanted it.
    std::uint64_t cpu_ns(std::size_t i) const {
        timespec t{};
        clock_gettime(workers_[i]->clock, &t);
        return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U +
               static_cast<std::uint64_t>(t.tv_nsec);
    }
    /// A worker that polls nothing sleeps, where Shared::idle_sleep lets it.
    void poll(std::size_t i, bool on) {
        auto list = std::make_unique<pipeline::RxQueueList>();
        if (on) {
            list->push_back(queues_[i]);
        }
        workers_[i]->worker->publish_queues(std::move(list));
    }
    const stats::Block& block(std::size_t i) const {
        return std::as_const(*workers_[i]->worker).block();
    }
    /// Of what came in by worker i's port.
    stats::NetdevCounters book(std::size_t i) const {
        stats::NetdevCounters sum{};
        stats::accumulate(sum, block(i).netdev(queues_[i].netdev));
        return sum;
    }
    dpdk::PktPool& packets() { return pool_; }

private:
    struct Thread {
        explicit Thread(std::unique_ptr<pipeline::Worker> w) : worker(std::move(w)) {}
        std::unique_ptr<pipeline::Worker> worker;
        std::atomic<clockid_t> clock{CLOCK_MONOTONIC};
    };
    dpdk::Port& open(const std::string& device, std::uint16_t tx_queues) {
        std::array<dpdk::PktPool*, 1> pools{&pool_};
        ports_.push_back(std::make_unique<dpdk::Port>(
            must(dpdk::Port::open({.device = device, .tx_queues = tx_queues}, pools))));
        if (const auto ok = ports_.back()->start(); !ok) {
            fmt::print(stderr, "{}\n", ok.error().message);
            std::exit(1);
        }
        return *ports_.back();
    }
    void route(const std::string& prefix, const std::string& gateway) {
        add_route(prefix, {.via = gateway.c_str(), .dev = kP1});
        resolve(kP1, net::IpAddr::parse(gateway).value(), kH1Mac);
    }

    dpdk::PktPool pool_;
    dpdk::RcuDomain rcu_;
    std::vector<std::unique_ptr<dpdk::Port>> ports_;
    dpdk::Port* out_ = nullptr;
    std::vector<pipeline::RxQueue> queues_;
    std::vector<std::unique_ptr<Thread>> workers_;
};

}  // namespace sluice::test
