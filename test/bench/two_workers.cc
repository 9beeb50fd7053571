// SPDX-License-Identifier: BSD-3-Clause
// What a worker's packets cost while another works beside it: two workers of one process, each from
// a net_pcap port of its own, by the same tables and next hops to the same net_null port.
//
//   two_workers PCAP WORKERS
//
// WORKERS are 0, 1 or 01. Reads lines `WORKERS SECONDS`, some of the same, and answers each with a
// JSON object: TSC cycles of core per packet of those that were to work, receiving and sending
// included. The others sleep. Worker 0 has the first core and this thread beside it, which sleeps
// meanwhile; worker 1 the second.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <rte_cycles.h>

#include "preemptions.h"
#include "stats/counters.h"
#include "worker_bench.h"

namespace sluice::test {

namespace {

constexpr std::size_t kWorkers = 2;
constexpr auto kWindow = std::chrono::milliseconds(2);

struct Reading {
    std::uint64_t packets;
    std::uint64_t ns;  // of core
};

Reading read(const WorkerBench& bench, std::size_t worker) {
    return {.packets = stats::read(bench.block(worker).worker().packets),
            .ns = bench.cpu_ns(worker)};
}

double median(std::vector<double> values) {
    if (values.empty()) {
        return 0;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

/// 0 of a worker that did not work. Of windows in which nobody took a worker's core, where there
/// were any but this thread.
std::array<double, kWorkers> measure(const WorkerBench& bench,
                                     double seconds,
                                     const Preemptions& preemptions,
                                     const std::array<bool, kWorkers>& works,
                                     unsigned& clean_windows) {
    // Wakes up once, and looks.
    constexpr Preemptions::Allowed kThisThread{.switches = 1, .waited_ns = 500'000};
    const double cycles_per_ns = static_cast<double>(rte_get_tsc_hz()) / 1e9;
    std::array<std::vector<double>, kWorkers> all;
    std::array<std::vector<double>, kWorkers> clean;
    const auto working = static_cast<std::size_t>(std::ranges::count(works, true));
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
        std::array<Reading, kWorkers> before{};
        const Preemptions::Seen taken = preemptions.now();
        for (std::size_t i = 0; i < kWorkers; ++i) {
            before[i] = read(bench, i);
        }
        std::this_thread::sleep_for(kWindow);
        std::array<double, kWorkers> cost{};
        std::size_t worked = 0;
        for (std::size_t i = 0; i < kWorkers; ++i) {
            const Reading after = read(bench, i);
            const auto packets = static_cast<double>(after.packets - before[i].packets);
            worked += packets > 0 ? 1 : 0;
            cost[i] = packets > 0
                          ? static_cast<double>(after.ns - before[i].ns) * cycles_per_ns / packets
                          : 0;
        }
        // One whose core others had throughout was not at work beside the other.
        const bool undisturbed =
            worked == working &&
            (works[0] ? kThisThread : Preemptions::Allowed{}).by(taken, preemptions.now());
        for (std::size_t i = 0; i < kWorkers; ++i) {
            all[i].push_back(cost[i]);
            if (undisturbed) {
                clean[i].push_back(cost[i]);
            }
        }
    }
    clean_windows = static_cast<unsigned>(clean[0].size());
    const auto& chosen = clean_windows != 0 ? clean : all;
    return {median(chosen[0]), median(chosen[1])};
}

void answer(WorkerBench& bench, const std::string& workers, double seconds, const Preemptions& p) {
    std::array<bool, kWorkers> works{};
    for (std::size_t i = 0; i < kWorkers; ++i) {
        works[i] = workers.find(static_cast<char>('0' + i)) != std::string::npos;
        bench.poll(i, works[i]);
    }
    // What slept is awake, and its core's caches are its own.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    unsigned clean = 0;
    const std::array<double, kWorkers> cycles = measure(bench, seconds, p, works, clean);
    for (std::size_t i = 0; i < kWorkers; ++i) {
        bench.poll(i, false);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (std::size_t i = 0; i < kWorkers; ++i) {
        const stats::NetdevCounters book = bench.book(i);
        if (book.forwarded + 1024 < book.rx_packets) {
            fmt::print(
                stderr, "worker {}: {} of {} forwarded\n", i, book.forwarded, book.rx_packets);
            std::_Exit(1);
        }
    }
    fmt::print(R"({{"cycles": [{:.2f}, {:.2f}], "clean": {}}})"
               "\n",
               cycles[0],
               cycles[1],
               clean);
    std::fflush(stdout);
}

}  // namespace

}  // namespace sluice::test

int main(int argc, char** argv) {
    using namespace sluice::test;
    if (argc != 3) {
        fmt::print(stderr, "two_workers PCAP 0|1|01\n");
        return 2;
    }
    start_eal({"two_workers", "--lcores=0@0,1@0,2@1", "--main-lcore=0", "-m", "256"});
    const std::string pcap = fmt::format(",rx_pcap={},infinite_rx=1", argv[1]);
    WorkerBench bench({"net_pcap0" + pcap, "net_pcap1" + pcap}, "net_null0,no-rx=1");
    const std::string_view started = argv[2];
    for (unsigned i = 0; i < kWorkers; ++i) {
        if (started.find(static_cast<char>('0' + i)) != std::string_view::npos) {
            bench.launch(i, i + 1);
        }
    }
    Preemptions preemptions;
    preemptions.watch_workers("self");
    fmt::print("{{}}\n");  // ready
    std::fflush(stdout);
    std::string workers;
    double seconds = 0;
    while (std::cin >> workers >> seconds) {
        answer(bench, workers, seconds, preemptions);
    }
    std::_Exit(0);
}
