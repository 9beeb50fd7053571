// SPDX-License-Identifier: BSD-3-Clause
// leak [CYCLES]: dst.md X-04 by hand, a million cycles unless told otherwise. Prints what is taken
// of the pools and of memory ten times, and ends with 1 if anything is not back at its level.
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "fuzz/environment.h"
#include "fuzz/leak.h"

namespace {

double resident_mb() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    statm >> size >> resident;
    return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace sluice::test::fuzz;
    const std::uint64_t wanted = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
    const Environment environment("leak");
    LeakCycles cycles(environment);
    cycles.run(LeakCycles::kKinds);
    const Levels before = cycles.settled();
    const std::uint64_t part = wanted / 10 / LeakCycles::kKinds * LeakCycles::kKinds;
    for (std::uint64_t done = 0; done < wanted; done += part) {
        fmt::print("{:>8} cycles: {}; {:.1f} MB resident\n",
                   done,
                   to_string(cycles.settled()),
                   resident_mb());
        std::fflush(stdout);
        cycles.run(part);
        if (!cycles.failure().empty() || cycles.settled() != before) {
            fmt::print("{}\n{}\nat first {}\n",
                       cycles.failure(),
                       to_string(cycles.settled()),
                       to_string(before));
            return 1;
        }
    }
    for (const auto& [what, count] : cycles.reach()) {
        fmt::print("{:>12} {}\n", count, what);
    }
    fmt::print("{:.1f} MB resident; every pool is back at {}\n", resident_mb(), to_string(before));
    return 0;
}
