// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/environment.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "support/first_cpu.h"

namespace sluice::test::fuzz {

namespace {

constexpr unsigned kPackets = 16383;

template <class T>
T or_exit(Result<T> result) {
    if (!result) {
        std::fprintf(stderr, "%s\n", result.error().message.c_str());
        std::exit(1);
    }
    return std::move(*result);
}

dpdk::Eal start(std::string_view program) {
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    dpdk::Eal eal = or_exit(dpdk::Eal::start({.instance = "fuzz-" + std::to_string(getpid()),
                                              .lcores = {first_cpu()},
                                              .hugepages = false,
                                              .memory_mb = 128,
                                              .devices = {},
                                              .extra_args = {"--no-telemetry"}},
                                             program));
    // Nothing here needs a processor of its own, and several may run at a time.
    sched_setaffinity(0, sizeof before, &before);
    return eal;
}

}  // namespace

Environment::Environment(std::string_view program)
    : eal_(start(program)),
      pool_(std::make_unique<dpdk::PktPool>(or_exit(dpdk::PktPool::create("fuzz", kPackets)))) {
    spdlog::set_level(spdlog::level::off);  // refusals are part of the game
}

}  // namespace sluice::test::fuzz
