// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sched.h>

namespace sluice::test {

/// The lowest CPU that the process may run on: an EAL's lcore, where one is all that is needed.
inline unsigned first_cpu() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    unsigned cpu = 0;
    while (cpu + 1 < CPU_SETSIZE && !CPU_ISSET(cpu, &set)) {
        ++cpu;
    }
    return cpu;
}

}  // namespace sluice::test
