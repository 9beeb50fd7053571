// SPDX-License-Identifier: BSD-3-Clause
// test_pipeline runs one EAL for all its tests: real mbufs and rings, no hugepages, no devices.
#include <cstdio>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "dpdk/eal.h"
#include "support/first_cpu.h"

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (GTEST_FLAG_GET(list_tests)) {
        return RUN_ALL_TESTS();
    }
    const auto eal =
        sluice::dpdk::Eal::start({.instance = "test-pipeline-" + std::to_string(getpid()),
                                  .lcores = {sluice::test::first_cpu()},
                                  .hugepages = false,
                                  .memory_mb = 128,
                                  .devices = {},
                                  .extra_args = {"--no-telemetry"}},
                                 "test_pipeline");
    if (!eal) {
        std::fprintf(stderr, "%s\n", eal.error().message.c_str());
        return 1;
    }
    return RUN_ALL_TESTS();
}
