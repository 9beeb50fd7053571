// SPDX-License-Identifier: BSD-3-Clause
//
// policy_bench [Google Benchmark's options]
//
// What rules cost per packet in bursts of 64: 8 rules over 3 tables, beside the last table alone.
// `classify` is what a worker does for the rule class, `decide` what the cache saves; `rules`
// counts the packets in a hundred that other rules than the last answer. `cycles` is TSC cycles per
// packet.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/cycles.h"
#include "fib/lpm.h"
#include "fib/policy.h"
#include "support/no_readers.h"
#include "support/prefix_generator.h"

namespace sluice::fib {
namespace {

constexpr std::size_t kBurst = 64;
constexpr std::size_t kTraffic = std::size_t{1} << 16U;

/// A network with 10.0.0.0/8 (fd00::/8) inside, whose hosts are sent elsewhere.
template <class Addr>
Addr inside(std::uint32_t n) {
    Addr a{};
    a.bytes[0] = sizeof(Addr) == 4 ? 10 : 0xfd;
    a.bytes[1] = static_cast<std::uint8_t>(n >> 16U);
    a.bytes[2] = static_cast<std::uint8_t>(n >> 8U);
    a.bytes[3] = static_cast<std::uint8_t>(n);
    return a;
}
template <class Addr>
net::Prefix<Addr> inside_prefix(std::uint8_t second, std::uint8_t length) {
    return net::Prefix<Addr>::of(inside<Addr>(std::uint32_t{second} << 16U), length);
}

template <class Addr>
struct Bench {
    explicit Bench(bool full) {
        for (auto& table : tables) {
            table = LpmTable<Addr>::create({.max_routes = 1'100'000}, reclaimer).value();
        }
        check(tables[0]->set(inside_prefix<Addr>(0, 8), 1));
        check(tables[1]->set({}, 2));
        prefixes =
            test::internet_prefixes<Addr>(full ? (sizeof(Addr) == 4 ? 1'000'000 : 200'000) : 10, 1);
        for (const auto& prefix : prefixes) {
            check(tables[2]->set(prefix, 3));
        }
        check(tables[2]->set({}, 4));
        using Rule = PolicyRule<Addr>;
        const std::vector<Rule> rules{
            {.from = inside_prefix<Addr>(1, 16), .table = tables[0].get()},
            {.from = inside_prefix<Addr>(2, 16), .dscp = 46, .table = tables[1].get()},
            {.to = inside_prefix<Addr>(3, 16), .table = tables[0].get()},
            {.from = inside_prefix<Addr>(4, 16),
             .protocol = 6,
             .destination_ports = PolicyPorts{25, 25},
             .answer = 5},
            {.from = inside_prefix<Addr>(5, 16), .set_mark = 7},
            {.mark = 7, .table = tables[1].get()},
            {.dscp = 8, .table = tables[1].get()},
            {.table = tables[2].get()},
        };
        policy = *Policy<Addr>::compile(rules, 0, reclaimer);
    }
    static void check(const Result<void>& done) {
        if (!done) {
            std::fprintf(stderr, "%s\n", done.error().message.c_str());
            std::exit(1);
        }
    }
    /// `elsewhere` of a hundred packets meet another rule than the last.
    void make_traffic(std::size_t destination_count, unsigned elsewhere) {
        std::mt19937_64 random(destination_count);
        std::vector<Addr> known;
        for (std::size_t i = 0; i < destination_count; ++i) {
            Addr a = prefixes[random() % prefixes.size()].address;
            a.bytes.back() = static_cast<std::uint8_t>(random());
            known.push_back(a);
        }
        sources.clear();
        destinations.clear();
        dscps.clear();
        transports.clear();
        for (std::size_t i = 0; i < kTraffic; ++i) {
            const bool other = random() % 100 < elsewhere;
            const auto host = static_cast<std::uint32_t>(random() % 65536);
            const auto net = static_cast<std::uint32_t>(other ? 1 + random() % 5 : 9);
            sources.push_back(inside<Addr>(net << 16U | host));
            destinations.push_back(known[random() % known.size()]);
            dscps.push_back(other ? 46 : 0);
            transports.push_back({6,
                                  true,
                                  static_cast<std::uint16_t>(random()),
                                  static_cast<std::uint16_t>(other ? 25 : 80)});
        }
    }

    test::NoReaders reclaimer;
    std::array<std::unique_ptr<LpmTable<Addr>>, 3> tables;
    std::vector<net::Prefix<Addr>> prefixes;
    std::unique_ptr<const Policy<Addr>> policy;
    std::vector<Addr> sources, destinations;
    std::vector<std::uint8_t> dscps;
    std::vector<Transport> transports;
};

enum class What : std::uint8_t { kTableAlone, kClassify, kDecide, kBoth };

template <class Addr>
void run(benchmark::State& state, Bench<Addr>& bench, What what, unsigned elsewhere) {
    bench.make_traffic(static_cast<std::size_t>(state.range(0)), elsewhere);
    std::vector<std::uint32_t> classes(kTraffic);
    bench.policy->classify(bench.sources.data(), bench.transports.data(), classes.data(), kTraffic);
    std::array<std::uint32_t, kBurst> values{};
    std::size_t at = 0;
    const std::uint64_t start = test::cycles_now();
    for (auto _ : state) {
        if (what == What::kTableAlone) {
            bench.tables[2]->lookup({&bench.destinations[at], kBurst}, values.data());
        }
        if (what == What::kClassify || what == What::kBoth) {
            bench.policy->classify(&bench.sources[at], &bench.transports[at], &classes[at], kBurst);
        }
        if (what == What::kDecide || what == What::kBoth) {
            bench.policy->decide(
                &bench.destinations[at], &bench.dscps[at], &classes[at], values.data(), kBurst);
        }
        benchmark::DoNotOptimize(values);
        benchmark::ClobberMemory();
        at = (at + kBurst) % kTraffic;
    }
    const auto packets = static_cast<double>(state.iterations()) * kBurst;
    state.counters["cycles"] = static_cast<double>(test::cycles_now() - start) / packets;
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBurst));
}

template <class Addr>
void add_benchmarks(const std::string& family) {
    for (const bool full : {false, true}) {
        const auto bench = std::make_shared<Bench<Addr>>(full);
        for (const auto& [name, what] : {std::pair{"table_alone", What::kTableAlone},
                                         {"classify", What::kClassify},
                                         {"decide", What::kDecide},
                                         {"both", What::kBoth}}) {
            for (const unsigned elsewhere : {0U, 10U, 50U}) {
                if (what == What::kTableAlone && elsewhere != 0) {
                    continue;
                }
                benchmark::RegisterBenchmark(
                    (family + (full ? "/full/" : "/ten/") + name +
                     "/rules:" + std::to_string(elsewhere))
                        .c_str(),
                    [bench, what = what, elsewhere](benchmark::State& state) {
                        run(state, *bench, what, elsewhere);
                    })
                    ->Arg(15)
                    ->Arg(500)
                    ->Arg(8000);
            }
        }
    }
}

}  // namespace
}  // namespace sluice::fib

int main(int argc, char** argv) {
    using namespace sluice;
    fib::add_benchmarks<net::Ipv4Addr>("ipv4");
    fib::add_benchmarks<net::Ipv6Addr>("ipv6");
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 1;
    }
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
