// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::dpdk {

struct EalOptions {
    std::string instance;              // names the runtime directory, so instances run side by side
    std::vector<unsigned> lcores;      // first is the control thread
    bool hugepages = true;             // dpdk.hugepages
    unsigned memory_mb = 512;          // dpdk.memory-mb
    std::vector<std::string> devices;  // `device` of every port, to let the PCI ones in
    std::vector<std::string> extra_args;
};

/// True for "0000:03:00.0", "03:00.0" and the same with devargs behind a comma.
bool is_pci_device(std::string_view device) noexcept;

/// The EAL's arguments, without argv[0]. What the caller wants logged first.
///
/// Memory has no name: `--in-memory`, or `--no-shconf` without hugepages. No file in hugetlbfs or
/// in /dev/shm, so nothing is left after kill -9 and instances need no lock. Cost: no DPDK
/// secondary process can attach. The telemetry socket is in /run/dpdk/sluice-<instance>/; a clean
/// stop removes both, the next start takes over what kill -9 left.
std::vector<std::string> eal_arguments(const EalOptions& options);

/// The started EAL. One per process, ever: DPDK cannot start twice.
/// Destroy after everything else of this module, on the thread that started it.
class Eal {
public:
    /// Errors: kInvalid (an lcore that is not there), kDevice (hugepages missing), kPermission.
    /// Logs go to stderr, warnings and worse. The calling thread becomes the main lcore and is
    /// pinned.
    static Result<Eal> start(const EalOptions& options, std::string_view program);

    Eal(Eal&& other) noexcept;
    Eal& operator=(Eal&&) = delete;
    Eal(const Eal&) = delete;
    Eal& operator=(const Eal&) = delete;
    ~Eal();

private:
    Eal() = default;
    bool owner_ = true;
};

}  // namespace sluice::dpdk
