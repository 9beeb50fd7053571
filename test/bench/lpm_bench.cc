// SPDX-License-Identifier: BSD-3-Clause
//
// lpm_bench [--prefixes=FILE] [Google Benchmark's options]
//
// Lookups in bursts of 64 and updates of both families' tables: ten routes, and a full table that
// is generated or read from FILE (one prefix a line, both families). Counters: `cycles` is TSC
// cycles per address, `bytes` is the table's own memory_bytes().
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/cycles.h"
#include "fib/lpm.h"
#include "support/no_readers.h"
#include "support/prefix_generator.h"

namespace sluice::fib {
namespace {

constexpr std::size_t kBurst = 64;
constexpr std::size_t kTraffic = std::size_t{1} << 16U;
constexpr std::size_t kFullIpv4 = 1'000'000;
constexpr std::size_t kFullIpv6 = 200'000;

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <class Addr>
struct Routes {
    std::string name;
    std::vector<net::Prefix<Addr>> prefixes;
};

template <class Addr>
std::vector<Addr> traffic(const std::vector<net::Prefix<Addr>>& prefixes, std::size_t count) {
    std::mt19937_64 random(count);
    std::vector<Addr> destinations;
    for (std::size_t i = 0; i < count; ++i) {
        destinations.push_back(test::random_address(prefixes[random() % prefixes.size()], random));
    }
    std::vector<Addr> out;
    for (std::size_t i = 0; i < kTraffic; ++i) {
        out.push_back(destinations[random() % count]);
    }
    return out;
}

template <class Addr>
std::unique_ptr<LpmTable<Addr>> filled(const std::vector<net::Prefix<Addr>>& prefixes,
                                       const LookupImpl& impl,
                                       Reclaimer& reclaimer) {
    auto table =
        LpmTable<Addr>::create({.max_routes = 2'000'000, .lookup = &impl}, reclaimer).value();
    std::uint32_t value = 0;
    for (const auto& prefix : prefixes) {
        if (const auto done = table->set(prefix, ++value); !done) {
            std::fprintf(stderr, "%s\n", done.error().message.c_str());
            std::exit(1);
        }
    }
    return table;
}

template <class Addr>
void lookup(benchmark::State& state,
            const LpmTable<Addr>& table,
            const std::vector<net::Prefix<Addr>>& prefixes) {
    const std::vector<Addr> addresses = traffic(prefixes, static_cast<std::size_t>(state.range(0)));
    std::array<std::uint32_t, kBurst> values{};
    std::size_t at = 0;
    const std::uint64_t start = test::cycles_now();
    for (auto _ : state) {
        table.lookup({&addresses[at], kBurst}, values.data());
        benchmark::DoNotOptimize(values);
        benchmark::ClobberMemory();
        at = (at + kBurst) % kTraffic;
    }
    const auto lookups = static_cast<double>(state.iterations()) * kBurst;
    state.counters["cycles"] = static_cast<double>(test::cycles_now() - start) / lookups;
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBurst));
}

template <class Addr>
void update(benchmark::State& state, const std::vector<net::Prefix<Addr>>& prefixes) {
    test::NoReaders reclaimer;
    double set_s = 0;
    double replace_s = 0;
    double erase_s = 0;
    double bytes = 0;
    double default_s = 0;
    // CPU time: others may share the machine.
    const auto timed = [](auto&& fn) {
        const double start = cpu_seconds();
        fn();
        return cpu_seconds() - start;
    };
    for (auto _ : state) {
        std::unique_ptr<LpmTable<Addr>> table;
        set_s += timed([&] { table = filled(prefixes, best_lookup(), reclaimer); });
        bytes = static_cast<double>(table->memory_bytes());
        replace_s += timed([&] {
            for (const auto& prefix : prefixes) {
                (void)table->set(prefix, 1);
            }
        });
        default_s += timed([&] { (void)table->set({}, 2); });
        erase_s += timed([&] {
            for (const auto& prefix : prefixes) {
                (void)table->erase(prefix);
            }
        });
    }
    const double updates =
        static_cast<double>(state.iterations()) * static_cast<double>(prefixes.size());
    state.counters["sets_per_s"] = updates / set_s;
    state.counters["replaces_per_s"] = updates / replace_s;
    state.counters["erases_per_s"] = updates / erase_s;
    state.counters["default_route_us"] = default_s * 1e6 / static_cast<double>(state.iterations());
    state.counters["bytes"] = bytes;
    state.counters["routes"] = static_cast<double>(prefixes.size());
}

template <class Addr>
void add_benchmarks(const char* family,
                    const std::vector<Routes<Addr>>& tables,
                    Reclaimer& reclaimer) {
    for (const Routes<Addr>& routes : tables) {
        const std::string path = std::string(family) + "/" + routes.name;
        benchmark::RegisterBenchmark(("update/" + path).c_str(), [&routes](benchmark::State& s) {
            update(s, routes.prefixes);
        })->Unit(benchmark::kMillisecond);
        for (const LookupImpl& impl : lookup_impls()) {
            if (!impl.supported()) {
                continue;
            }
            const std::shared_ptr<LpmTable<Addr>> table = filled(routes.prefixes, impl, reclaimer);
            benchmark::RegisterBenchmark(
                ("lookup/" + path + "/" + std::string(impl.name)).c_str(),
                [&routes, table](benchmark::State& s) { lookup(s, *table, routes.prefixes); })
                ->Arg(1)
                ->Arg(15)
                ->Arg(100)
                ->Arg(1000)
                ->Arg(8000)
                ->Arg(60000);
        }
    }
}

net::Ipv4Prefix p4(const char* text) {
    return net::Ipv4Prefix::parse(text).value();
}
net::Ipv6Prefix p6(const char* text) {
    return net::Ipv6Prefix::parse(text).value();
}

template <class Addr>
std::vector<net::Prefix<Addr>> first(std::vector<net::Prefix<Addr>> prefixes, std::size_t count) {
    prefixes.resize(std::min(prefixes.size(), count));
    return prefixes;
}

/// Ends the program when the file is not what it should be: figures of another table than the one
/// asked for would be worse than none.
void read_prefixes(const std::string& path,
                   std::vector<net::Ipv4Prefix>& v4,
                   std::vector<net::Ipv6Prefix>& v6) {
    std::ifstream file(path);
    std::size_t number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        if (line.ends_with('\r')) {
            line.pop_back();
        }
        if (const auto as4 = net::Ipv4Prefix::parse(line)) {
            v4.push_back(*as4);
        } else if (const auto as6 = net::Ipv6Prefix::parse(line)) {
            v6.push_back(*as6);
        } else {
            std::fprintf(stderr, "%s:%zu: not a prefix: %s\n", path.c_str(), number, line.c_str());
            std::exit(1);
        }
    }
    if (v4.empty() || v6.empty()) {
        std::fprintf(stderr, "%s: not readable, or not prefixes of both families\n", path.c_str());
        std::exit(1);
    }
}

}  // namespace
}  // namespace sluice::fib

int main(int argc, char** argv) {
    using namespace sluice;
    using namespace sluice::fib;
    std::vector<net::Ipv4Prefix> full4;
    std::vector<net::Ipv6Prefix> full6;
    constexpr std::string_view kOption = "--prefixes=";
    std::string full = "generated";
    for (int i = 1; i < argc; ++i) {
        if (const std::string_view argument = argv[i]; argument.starts_with(kOption)) {
            read_prefixes(std::string(argument.substr(kOption.size())), full4, full6);
            full = "from_file";
            std::copy(argv + i + 1, argv + argc + 1, argv + i);
            --argc;
            break;
        }
    }
    if (full == "generated") {
        full4 = test::internet_prefixes<net::Ipv4Addr>(kFullIpv4, 1);
        full6 = test::internet_prefixes<net::Ipv6Addr>(kFullIpv6, 1);
    }
    // Ten routes as a small router has them: connected nets with their own address, and a default.
    const std::vector<Routes<net::Ipv4Addr>> tables4{
        {"ten",
         {p4("0.0.0.0/0"),
          p4("10.0.1.0/24"),
          p4("10.0.1.1/32"),
          p4("10.0.2.0/24"),
          p4("10.0.2.1/32"),
          p4("192.168.0.0/16"),
          p4("198.18.0.0/15"),
          p4("203.0.113.0/24"),
          p4("203.0.113.9/32"),
          p4("100.64.0.0/10")}},
        {"hundred", first(full4, 100)},
        {"five_hundred", first(full4, 500)},
        {full, full4},
    };
    const std::vector<Routes<net::Ipv6Addr>> tables6{
        {"ten",
         {p6("::/0"),
          p6("2001:db8:1::/64"),
          p6("2001:db8:1::1/128"),
          p6("2001:db8:2::/64"),
          p6("2001:db8:2::1/128"),
          p6("2001:db8:100::/40"),
          p6("2001:db8:8000::/33"),
          p6("fe80::/64"),
          p6("fd00::/8"),
          p6("2600::/12")}},
        {"hundred", first(full6, 100)},
        {"five_hundred", first(full6, 500)},
        {full, full6},
    };
    test::NoReaders reclaimer;
    add_benchmarks("ipv4", tables4, reclaimer);
    add_benchmarks("ipv6", tables6, reclaimer);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 1;
    }
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
