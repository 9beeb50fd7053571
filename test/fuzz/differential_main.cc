// SPDX-License-Identifier: BSD-3-Clause
// The differential test by hand, for hours: differential --seed N --seconds S. A difference is made
// shorter, printed, and ends the program with 1.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "fuzz/differential.h"
#include "fuzz/environment.h"

namespace {

using namespace sluice::test::fuzz;

constexpr const char* kUsage =
    "differential [--seed N] [--seconds S] [--steps N] [--shorten RUNS] [--trace]\n"
    "  One run per seed, from N on, for S seconds; 0: that seed alone.\n";

struct Arguments {
    std::uint64_t seed = std::random_device{}();
    std::uint64_t seconds = 60;
    std::uint32_t steps = 300;
    unsigned shorten = 300;
    bool trace = false;
};

Arguments parse(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string_view option = argv[i];
        if (option == "--trace") {
            arguments.trace = true;
            continue;
        }
        if (i + 1 == argc) {
            fmt::print(stderr, "{}", kUsage);
            std::exit(2);
        }
        const std::uint64_t value = std::strtoull(argv[++i], nullptr, 10);
        if (option == "--seed") {
            arguments.seed = value;
        } else if (option == "--seconds") {
            arguments.seconds = value;
        } else if (option == "--steps") {
            arguments.steps = static_cast<std::uint32_t>(value);
        } else if (option == "--shorten") {
            arguments.shorten = static_cast<unsigned>(value);
        } else {
            fmt::print(stderr, "{}", kUsage);
            std::exit(2);
        }
    }
    return arguments;
}

}  // namespace

int main(int argc, char** argv) {
    const Arguments arguments = parse(argc, argv);
    const Environment environment("differential");
    Reach reach;
    const auto start = std::chrono::steady_clock::now();
    const auto spent = [&] { return std::chrono::steady_clock::now() - start; };
    std::uint64_t seed = arguments.seed;
    do {
        Plan plan{.seed = seed, .steps = arguments.steps, .trace = arguments.trace};
        if (arguments.seconds != 0) {
            plan.until = start + std::chrono::seconds(arguments.seconds);
        }
        if (const auto failure = run(plan, environment.pool(), reach)) {
            fmt::print("after {:.1f} s\n{}",
                       std::chrono::duration<double>(spent()).count(),
                       describe(plan, *failure));
            if (arguments.shorten != 0) {
                plan = shorten(plan, *failure, environment.pool(), arguments.shorten);
                plan.trace = true;
                if (const auto again = run(plan, environment.pool(), reach)) {
                    fmt::print("--- shorter:\n{}", describe(plan, *again));
                }
            }
            return 1;
        }
        if (environment.in_use() != 0) {
            fmt::print("seed {}: {} mbufs leaked\n", seed, environment.in_use());
            return 1;
        }
        ++seed;
    } while (spent() < std::chrono::seconds(arguments.seconds));
    fmt::print("seeds {} to {} agree; on the way:\n{}not met:\n{}",
               arguments.seed,
               seed - 1,
               to_string(reach),
               missing(reach));
    return 0;
}
