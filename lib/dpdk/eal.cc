// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/eal.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/ranges.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf_dyn.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "dpdk/compat.h"
#include "dpdk/mbuf.h"

namespace sluice::dpdk {
namespace {

bool is_hex(std::string_view text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::vector<unsigned> allowed_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<unsigned> cpus;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &set)) {
                cpus.push_back(cpu);
            }
        }
    }
    return cpus;
}

Result<void> check_lcores(const std::vector<unsigned>& lcores) {
    if (lcores.empty()) {
        return fail(ErrorCode::kInvalid, "dpdk.lcores: names no CPU");
    }
    const auto allowed = allowed_cpus();
    for (const unsigned lcore : lcores) {
        if (std::ranges::find(allowed, lcore) == allowed.end()) {
            return fail(ErrorCode::kInvalid,
                        "dpdk.lcores: CPU {} does not exist or is not ours to use; these are: {}",
                        lcore,
                        fmt::join(allowed, ", "));
        }
        if (lcore >= RTE_MAX_LCORE) {
            return fail(ErrorCode::kInvalid,
                        "dpdk.lcores: CPU {} is past DPDK's highest, {}",
                        lcore,
                        RTE_MAX_LCORE - 1);
        }
    }
    return {};
}

/// Of all page sizes and NUMA nodes.
std::size_t free_hugepage_mb() {
    std::size_t kb = 0;
    std::error_code error;
    const std::filesystem::directory_iterator sizes("/sys/kernel/mm/hugepages", error);
    if (error) {
        return 0;
    }
    constexpr std::string_view kPrefix = "hugepages-";
    for (const auto& size : sizes) {
        const std::string name = size.path().filename();
        std::ifstream file(size.path() / "free_hugepages");
        std::size_t pages = 0;
        if (name.starts_with(kPrefix) && file >> pages) {
            kb += pages * std::strtoul(name.c_str() + kPrefix.size(), nullptr, 10);
        }
    }
    return kb / 1024;
}

Result<void> check_hugepages(unsigned memory_mb) {
    const std::size_t free_mb = free_hugepage_mb();
    if (free_mb >= memory_mb) {
        return {};
    }
    return fail(ErrorCode::kDevice,
                "hugepages: {} MB free, dpdk.memory-mb asks for {}; either 'sysctl -w "
                "vm.nr_hugepages={}' or 'dpdk.hugepages: false' in the YAML",
                free_mb,
                memory_mb,
                (memory_mb + 1) / 2);
}

Result<void> reserve_packet_meta() {
    rte_mbuf_dynfield field{};
    std::string_view("sluice_packet_meta").copy(field.name, sizeof(field.name) - 1);
    field.size = sizeof(PacketMeta);
    field.align = alignof(PacketMeta);
    if (rte_mbuf_dynfield_register_offset(&field, kPacketMetaOffset) < 0) {
        return fail(ErrorCode::kDevice,
                    "a driver has taken the mbuf bytes at {} that packet metadata needs: {}",
                    kPacketMetaOffset,
                    rte_strerror(rte_errno));
    }
    return {};
}

/// Removes the runtime directory with this process's sockets in it, which DPDK leaves until exit or
/// for good. Another process's socket keeps the directory: it is found by name only.
void remove_runtime_dir(const std::filesystem::path& dir) {
    std::error_code ignored;
    if (!dir.filename().string().starts_with("sluice-")) {
        return;
    }
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
        sockaddr_un address{};
        socklen_t length = sizeof(address);
        if (getsockname(std::atoi(entry.path().filename().c_str()),
                        reinterpret_cast<sockaddr*>(&address),
                        &length) == 0 &&
            address.sun_family == AF_UNIX && length > offsetof(sockaddr_un, sun_path)) {
            const std::filesystem::path path(address.sun_path);
            if (path.parent_path() == dir) {
                std::filesystem::remove(path, ignored);
            }
        }
    }
    std::filesystem::remove(dir, ignored);
}

}  // namespace

bool is_pci_device(std::string_view device) noexcept {
    std::string_view address = device.substr(0, device.find(','));
    const auto dot = address.rfind('.');
    if (dot == std::string_view::npos || !is_hex(address.substr(dot + 1)) ||
        address.size() - dot != 2) {
        return false;
    }
    address = address.substr(0, dot);
    const auto colon = address.rfind(':');
    if (colon == std::string_view::npos || address.size() - colon != 3 ||
        !is_hex(address.substr(colon + 1))) {
        return false;
    }
    address = address.substr(0, colon);
    if (const auto domain = address.find(':'); domain != std::string_view::npos) {
        if (domain < 4 || domain > 8 || !is_hex(address.substr(0, domain))) {
            return false;
        }
        address = address.substr(domain + 1);
    }
    return address.size() == 2 && is_hex(address);
}

std::vector<std::string> eal_arguments(const EalOptions& options) {
    std::vector<std::string> args{"--file-prefix=sluice-" + options.instance};
    args.insert(args.end(), {"-l", fmt::format("{}", fmt::join(options.lcores, ","))});
    if (!options.lcores.empty()) {
        args.push_back(fmt::format("--main-lcore={}", options.lcores.front()));
    }
    if (options.hugepages) {
        args.emplace_back("--in-memory");
    } else {
        // 22.11 refuses --in-memory here; this is what is left of it without hugepages.
        args.insert(args.end(), {"--no-huge", "--no-shconf"});
    }
    args.insert(args.end(), {"-m", std::to_string(options.memory_mb)});
    const auto before = args.size();
    for (const std::string& device : options.devices) {
        if (is_pci_device(device)) {
            args.insert(args.end(), {"-a", device});
        }
    }
    if (args.size() == before) {
        args.emplace_back("--no-pci");
    }
    args.emplace_back("--log-level=*:warning");
    args.insert(args.end(), options.extra_args.begin(), options.extra_args.end());
    return args;
}

Result<Eal> Eal::start(const EalOptions& options, std::string_view program) {
    if (auto ok = check_lcores(options.lcores); !ok) {
        return std::unexpected(std::move(ok.error()));
    }
    if (options.hugepages) {
        if (auto ok = check_hugepages(options.memory_mb); !ok) {
            return std::unexpected(std::move(ok.error()));
        }
    }
    // The default stream is also syslog, and stdout in some releases.
    rte_openlog_stream(stderr);

    std::vector<std::string> args = eal_arguments(options);
    args.insert(args.begin(), std::string(program));
    std::vector<char*> argv;
    for (std::string& arg : args) {
        argv.push_back(arg.data());
    }
    argv.push_back(nullptr);
    if (rte_eal_init(static_cast<int>(args.size()), argv.data()) < 0) {
        const int error = rte_errno;
        remove_runtime_dir(rte_eal_get_runtime_dir());
        if (error == EACCES || error == EPERM || geteuid() != 0) {
            return fail(ErrorCode::kPermission,
                        "EAL: {}; run as root or give the process CAP_NET_ADMIN, CAP_IPC_LOCK and "
                        "CAP_SYS_ADMIN",
                        rte_strerror(error));
        }
        if (error == EINVAL) {
            return fail(ErrorCode::kInvalid, "EAL refused its arguments: {}", fmt::join(args, " "));
        }
        return fail(ErrorCode::kDevice, "EAL does not start: {}", rte_strerror(error));
    }
    Eal eal;
    if (auto ok = reserve_packet_meta(); !ok) {
        return std::unexpected(std::move(ok.error()));
    }
    return eal;
}

Eal::Eal(Eal&& other) noexcept : owner_(std::exchange(other.owner_, false)) {}

Eal::~Eal() {
    if (!owner_) {
        return;
    }
    const std::filesystem::path runtime_dir = rte_eal_get_runtime_dir();
    rte_eal_cleanup();
    remove_runtime_dir(runtime_dir);
}

}  // namespace sluice::dpdk
