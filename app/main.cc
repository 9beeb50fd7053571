// SPDX-License-Identifier: BSD-3-Clause
// The daemon: arguments, start, event loop, end. Exit codes: see kExit* and README.md.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/result.h"
#include "config/config.h"
#include "control/dpdk_dataplane.h"
#include "control/engine.h"
#include "control/loop.h"
#include "control/notify.h"
#include "control/requests.h"
#include "control/router.h"
#include "control/server.h"
#include "dpdk/eal.h"
#include "dpdk/pool.h"
#include "dpdk/rcu.h"
#include "fib/shared.h"

namespace {

using namespace sluice;

constexpr int kExitFine = 0;
constexpr int kExitFailure = 1;      // what has no code of its own
constexpr int kExitUsage = 2;        // of the command line
constexpr int kExitDevice = 69;      // a device or hugepages are missing
constexpr int kExitPermission = 77;  // rights
constexpr int kExitConfig = 78;      // the file: unreadable, wrong, or more than this machine has

struct Arguments {
    std::string file;
    bool check = false;
    std::string log_level = "info";
    std::vector<std::string> eal;
};

int exit_code(const Error& error) {
    switch (error.code) {
        case ErrorCode::kDevice:
            return kExitDevice;
        case ErrorCode::kPermission:
            return kExitPermission;
        case ErrorCode::kBusy:  // this instance runs already
        case ErrorCode::kInternal:
            return kExitFailure;
        default:
            return kExitConfig;
    }
}

int give_up(const Error& error) {
    spdlog::critical("{}", error.message);
    return exit_code(error);
}

/// Per queue: what the driver is asked for. Without hugepages memory is scarce.
std::uint16_t descriptors(const config::Config& config) {
    return config.dpdk.hugepages ? 1024 : 512;
}

template <class Fn>
void for_each_port(const config::Config& config, Fn&& fn) {
    for (const auto& [name, port] : config.default_netns.ports) {
        fn(port);
    }
    for (const auto& [name, netns] : config.netns) {
        for (const auto& [port_name, port] : netns.ports) {
            fn(port);
        }
    }
}

dpdk::EalOptions eal_options(const config::Config& config, const Arguments& arguments) {
    dpdk::EalOptions options;
    options.instance = config.instance;
    options.lcores.assign(config.dpdk.lcores.begin(), config.dpdk.lcores.end());
    options.hugepages = config.dpdk.hugepages;
    options.memory_mb = config.dpdk.memory_mb;
    for_each_port(config,
                  [&](const config::Port& port) { options.devices.push_back(port.device); });
    options.extra_args = config.dpdk.extra_args;
    options.extra_args.insert(options.extra_args.end(), arguments.eal.begin(), arguments.eal.end());
    return options;
}

Result<std::unique_ptr<control::DpdkDataplane>> make_dataplane(const config::Config& config,
                                                               fib::Shared& shared,
                                                               dpdk::RcuDomain& rcu) {
    control::DpdkDataplane::Options options;
    options.lcores.assign(config.dpdk.lcores.begin() + 1, config.dpdk.lcores.end());
    options.burst = config.workers.burst;
    options.cache_entries = config.workers.cache_entries;
    std::size_t ports = 0;
    for_each_port(config, [&](const config::Port&) { ++ports; });
    options.packets =
        control::DpdkDataplane::packets_needed(ports, options.lcores.size(), descriptors(config));
    const std::size_t megabytes = dpdk::pool_megabytes(options.packets, dpdk::kDefaultDataRoom);
    if (megabytes > config.dpdk.memory_mb) {
        return fail(ErrorCode::kLimit,
                    "{}:{}: {} ports and {} workers need {} MB for packets: dpdk.memory-mb is {}",
                    config.origin.file,
                    config.dpdk.at.line,
                    ports,
                    options.lcores.size(),
                    megabytes,
                    config.dpdk.memory_mb);
    }
    return control::DpdkDataplane::create(options, shared, rcu);
}

std::uint64_t draw_secret() {
    std::random_device device;
    return std::uint64_t{device()} << 32U | device();
}

int run(const config::Config& config, const Arguments& arguments) {
    const dpdk::EalOptions eal_arguments = eal_options(config, arguments);
    spdlog::info("sluice {}, instance {}; EAL arguments: {}",
                 SLUICE_VERSION,
                 config.instance,
                 fmt::join(dpdk::eal_arguments(eal_arguments), " "));
    control::block_signals();
    auto eal = dpdk::Eal::start(eal_arguments, "sluice");
    if (!eal) {
        return give_up(eal.error());
    }

    // A next hop takes a dst, a neighbor takes one, and what is replaced stays for a grace period.
    constexpr std::size_t kNextHopRoom = std::size_t{1} << 17U;
    constexpr std::size_t kNeighborBuckets = std::size_t{1} << 16U;
    dpdk::RcuDomain rcu;
    control::Changes changes(rcu);
    fib::Shared shared(
        config.limits.neighbors + kNextHopRoom, kNeighborBuckets, draw_secret(), changes);
    shared.flow_seed = draw_secret();
    auto plane = make_dataplane(config, shared, rcu);
    if (!plane) {
        return give_up(plane.error());
    }
    control::EngineOptions options;
    options.ipv4_routes = config.limits.ipv4_routes;
    options.ipv6_routes = config.limits.ipv6_routes;
    options.neighbors.max_entries = config.limits.neighbors;
    options.uncached_lists = config.limits.uncached_lists;
    options.neighbors.seed = std::random_device{}();
    options.rx_interrupts = config.workers.idle == config::IdleMode::kAdaptive;
    options.descriptors = descriptors(config);
    auto engine = control::Engine::create(options, shared, changes, **plane);
    if (!engine) {
        return give_up(engine.error());
    }
    if (auto ok = (*plane)->launch(); !ok) {
        return give_up(ok.error());
    }
    control::Router router(**engine, config::starting_point(config));
    int code = kExitFine;
    {
        control::Requests requests(router,
                                   {.instance = config.instance, .version = SLUICE_VERSION});
        // Before the ports: a second start of this instance must not touch the first one's devices.
        auto server = control::Server::listen(
            config.control.socket,
            [&](std::string_view line, bool after_failure) {
                return requests.handle(line, after_failure);
            },
            control::Requests::refusal);
        Result<void> ok;
        if (!server) {
            ok = std::unexpected(server.error());
        } else {
            ok = router.apply(config);
        }
        if (ok) {
            auto loop = control::Loop::create(**engine, router, **plane, rcu, **server);
            if (loop) {
                control::notify("READY=1");
                spdlog::info("ready, control socket {}", config.control.socket);
                (*loop)->run();
                control::notify("STOPPING=1");
            } else {
                ok = std::unexpected(loop.error());
            }
        }
        if (!ok) {
            code = give_up(ok.error());
        }
    }
    (*plane)->stop();
    (*engine)->close_ports();
    // Devices and files are gone. The rest is memory, which the operating system takes back at
    // once; freeing a million routes one by one takes seconds.
    static_cast<void>(engine->release());
    static_cast<void>(plane->release());
    {
        const auto ended = std::move(eal);
    }
    spdlog::shutdown();
    std::fflush(nullptr);
    ::_exit(code);
}

int check_or_run(const Arguments& arguments) {
    const auto text = control::read_file(arguments.file);
    if (!text) {
        fmt::print(stderr, "{}\n", text.error().message);
        return text.error().code == ErrorCode::kPermission ? kExitPermission : kExitConfig;
    }
    const auto config = config::load(*text, arguments.file);
    if (!config) {
        for (const auto& error : config.error()) {
            fmt::print(stderr, "{}\n", error.to_string());
        }
        return kExitConfig;
    }
    if (arguments.check) {
        fmt::print("{}", config::emit(*config));
        return kExitFine;
    }
    return run(*config, arguments);
}

int parse_and_go(int argc, char** argv) {
    Arguments arguments;
    // What is behind "--" belongs to the EAL, word for word.
    std::vector<std::string> own;
    for (int i = 1; i < argc; ++i) {
        if (std::string_view(argv[i]) == "--") {
            arguments.eal.assign(argv + i + 1, argv + argc);
            break;
        }
        own.emplace_back(argv[i]);
    }
    CLI::App app("sluice, a userspace router on DPDK", "sluice");
    app.footer(
        "Words behind -- are passed to the EAL as they are.\n"
        "SIGHUP reloads FILE, SIGTERM and SIGINT stop.\n"
        "Exit status: 0 fine, 1 failure, 2 usage, 69 device or hugepages missing, 77 rights,\n"
        "78 configuration file unreadable or wrong.");
    app.set_version_flag("--version", SLUICE_VERSION);
    app.add_flag("--check",
                 arguments.check,
                 "only validate FILE and print the effective configuration; needs no rights");
    app.add_option("--log-level", arguments.log_level, "")
        ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}))
        ->capture_default_str();
    app.add_option("FILE", arguments.file, "the configuration, YAML")->required();
    try {
        std::reverse(own.begin(), own.end());  // as CLI11 wants a vector
        app.parse(std::move(own));
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kExitFine : kExitUsage;
    }
    const auto logger = std::make_shared<spdlog::logger>(
        "sluice", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_level(spdlog::level::from_str(arguments.log_level));
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
    spdlog::set_default_logger(logger);
    return check_or_run(arguments);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return parse_and_go(argc, argv);
    } catch (const std::bad_alloc&) {
        std::fputs("sluice: out of memory\n", stderr);
    } catch (const std::exception& error) {
        fmt::print(stderr, "sluice: {}\n", error.what());
    }
    return kExitFailure;
}
