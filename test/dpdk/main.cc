// SPDX-License-Identifier: BSD-3-Clause
// test_dpdk runs one EAL for all its tests. Called with --child INSTANCE it is one more process
// with an EAL of its own: says "ready", waits for its input to end, and ends cleanly.
#include <cstdio>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

#include "environment.h"

namespace {

int run_child(const char* instance) {
    const auto eal = sluice::dpdk::Eal::start(sluice::test::eal_options(instance), "test_dpdk");
    if (!eal) {
        std::fprintf(stderr, "%s\n", eal.error().message.c_str());
        return 1;
    }
    std::puts("ready");
    std::fflush(stdout);
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == "--child") {
        return run_child(argv[2]);
    }
    testing::InitGoogleTest(&argc, argv);
    if (GTEST_FLAG_GET(list_tests)) {
        return RUN_ALL_TESTS();
    }
    auto options = sluice::test::eal_options(sluice::test::unique("test-dpdk-"));
    options.extra_args = {"--no-telemetry"};
    const auto eal = sluice::dpdk::Eal::start(options, "test_dpdk");
    if (!eal) {
        std::fprintf(stderr, "%s\n", eal.error().message.c_str());
        return 1;
    }
    return RUN_ALL_TESTS();
}
