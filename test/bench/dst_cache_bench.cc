// SPDX-License-Identifier: BSD-3-Clause
//
// dst_cache_bench [Google Benchmark's options]
//
// The destination cache beside the lookup that it saves, in bursts of 64. Counter `cycles` is TSC
// cycles per address, the median of passes over the traffic, `best` the twentieth-best of
// a hundred, `hits` the share found.
//   lookup   the table alone
//   probe    the cache alone, as full as the traffic makes it; misses are only listed
//   path     the cache, its misses looked up together and, `budget` a burst, inserted
//   flood    the same for destinations that never come again
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/cycles.h"
#include "bench/dst_cache_layouts.h"
#include "fib/dst_cache.h"
#include "fib/generation.h"
#include "fib/lpm.h"
#include "support/no_readers.h"
#include "support/prefix_generator.h"

namespace sluice::fib {
namespace {

constexpr std::size_t kBurst = 64;
constexpr std::size_t kTraffic = std::size_t{1} << 16U;
constexpr std::array<std::int64_t, 9> kDestinations{1, 2, 15, 100, 200, 500, 1000, 2000, 8000};
constexpr std::array<std::size_t, 3> kEntries{512, 4096, 16384};

/// kTraffic packets to `count` destinations; to as many as there are packets if it is zero.
template <class Addr>
std::vector<Addr> traffic(const std::vector<net::Prefix<Addr>>& prefixes, std::size_t count) {
    std::mt19937_64 random(count);
    std::vector<Addr> destinations;
    std::set<Addr> seen;
    while (destinations.size() < (count == 0 ? kTraffic : count)) {
        const Addr address = test::random_address(prefixes[random() % prefixes.size()], random);
        if (seen.insert(address).second) {
            destinations.push_back(address);
        }
    }
    if (count == 0) {
        return destinations;
    }
    std::vector<Addr> out;
    for (std::size_t i = 0; i < kTraffic; ++i) {
        out.push_back(destinations[random() % count]);
    }
    return out;
}

/// Made when first asked for: a full one takes seconds.
template <class Addr>
class Table {
public:
    using Prefixes = std::vector<net::Prefix<Addr>>;

    Table(std::string name, std::function<Prefixes()> make)
        : name_(std::move(name)), make_(std::move(make)) {}

    const std::string& name() const { return name_; }
    const Prefixes& prefixes() {
        if (prefixes_.empty()) {
            prefixes_ = make_();
        }
        return prefixes_;
    }
    const LpmTable<Addr>& lpm() {
        if (!lpm_) {
            lpm_ = LpmTable<Addr>::create({.max_routes = 2'000'000}, reclaimer_).value();
            std::uint32_t value = 0;
            for (const auto& prefix : prefixes()) {
                if (const auto done = lpm_->set(prefix, ++value); !done) {
                    std::fprintf(stderr, "%s\n", done.error().message.c_str());
                    std::exit(1);
                }
            }
        }
        return *lpm_;
    }

private:
    std::string name_;
    std::function<Prefixes()> make_;
    test::NoReaders reclaimer_;
    Prefixes prefixes_;
    std::unique_ptr<LpmTable<Addr>> lpm_;
};

/// A worker's part: everything that a burst needs.
template <class Addr>
class Path {
public:
    Path(const LpmTable<Addr>& table, std::size_t entries, const CacheProbeImpl& impl)
        : table_(table), cache_(entries, 0x5eed, impl) {
        generations_->bump_all(1);
        tails_.fill(CacheTail::make(0, 1, 0));
    }
    CacheProbed probe(const Addr* addresses) {
        const CacheProbed probed = cache_.probe(*generations_,
                                                {addresses, kBurst},
                                                tails_.data(),
                                                values_.data(),
                                                stamps_.data(),
                                                misses_.data());
        benchmark::DoNotOptimize(values_);
        benchmark::ClobberMemory();
        return probed;
    }
    CacheProbed decide(const Addr* addresses, std::size_t budget) {
        const CacheProbed probed = probe(addresses);
        for (std::size_t i = 0; i < probed.misses; ++i) {
            missed_[i] = addresses[misses_[i]];
        }
        table_.lookup({missed_.data(), probed.misses}, found_.data());
        for (std::size_t i = 0; i < probed.misses; ++i) {
            values_[misses_[i]] = found_[i];
        }
        for (std::size_t i = 0; i < std::min<std::size_t>(budget, probed.misses); ++i) {
            if (found_[i] != kNoRoute) {
                cache_.insert(missed_[i], tails_[misses_[i]], found_[i], stamps_[misses_[i]]);
            }
        }
        benchmark::DoNotOptimize(values_);
        benchmark::ClobberMemory();
        return probed;
    }
    void lookup(const Addr* addresses) {
        table_.lookup({addresses, kBurst}, values_.data());
        benchmark::DoNotOptimize(values_);
        benchmark::ClobberMemory();
    }

private:
    const LpmTable<Addr>& table_;
    DstCache<Addr> cache_;
    std::unique_ptr<Generations<Addr>> generations_ = std::make_unique<Generations<Addr>>();
    std::array<std::uint32_t, kBurst> tails_{};
    std::array<std::uint32_t, kBurst> values_{};
    std::array<Stamp, kBurst> stamps_{};
    std::array<std::uint16_t, kBurst> misses_{};
    std::array<Addr, kBurst> missed_{};
    std::array<std::uint32_t, kBurst> found_{};
};

/// Runs `step` over the traffic, burst by burst; it returns how many were found. Each pass is timed
/// by itself: others share the machine, and most passes are not interrupted.
template <class Addr, class Step>
void measure(benchmark::State& state, const std::vector<Addr>& addresses, Step&& step) {
    std::uint64_t hits = 0;
    std::vector<double> passes;
    for (auto _ : state) {
        const std::uint64_t start = test::cycles_now();
        for (std::size_t at = 0; at < kTraffic; at += kBurst) {
            hits += step(&addresses[at]);
        }
        passes.push_back(static_cast<double>(test::cycles_now() - start) / kTraffic);
    }
    std::ranges::sort(passes);
    state.counters["cycles"] = passes[passes.size() / 2];
    state.counters["best"] = passes[passes.size() / 20];
    state.counters["hits"] =
        static_cast<double>(hits) / static_cast<double>(passes.size() * kTraffic);
}

constexpr std::size_t kEverything = std::numeric_limits<std::size_t>::max();

template <class Addr>
void add_benchmarks(const std::string& family, const std::vector<Table<Addr>*>& tables) {
    const auto add = [](const std::string& name, std::int64_t destinations, auto fn) {
        benchmark::RegisterBenchmark((name + "/" + std::to_string(destinations)).c_str(), fn);
    };
    for (Table<Addr>* table : tables) {
        const auto run = [table](std::int64_t destinations,
                                 std::size_t entries,
                                 const CacheProbeImpl& impl,
                                 auto step) {
            return [table, destinations, entries, &impl, step](benchmark::State& state) {
                const auto addresses =
                    traffic(table->prefixes(), static_cast<std::size_t>(destinations));
                Path<Addr> path(table->lpm(), entries, impl);
                for (std::size_t at = 0; at < kTraffic; at += kBurst) {
                    path.decide(&addresses[at], kEverything);
                }
                measure<Addr>(
                    state, addresses, [&](const Addr* burst) { return step(path, burst); });
            };
        };
        const auto lookup = [](Path<Addr>& path, const Addr* burst) {
            path.lookup(burst);
            return 0U;
        };
        const auto probe = [](Path<Addr>& path, const Addr* burst) {
            return path.probe(burst).hits;
        };
        const auto decide = [](std::size_t budget) {
            return [budget](Path<Addr>& path, const Addr* burst) {
                return path.decide(burst, budget).hits;
            };
        };
        const std::string where = family + "/" + table->name();
        const CacheProbeImpl& best = best_cache_probe();
        for (const std::int64_t count : kDestinations) {
            add("lookup/" + where, count, run(count, 512, best, lookup));
            for (const std::size_t entries : kEntries) {
                const std::string of = where + "/" + std::to_string(entries);
                for (const CacheProbeImpl& impl : cache_probe_impls()) {
                    if (impl.supported()) {
                        add("probe/" + of + "/" + std::string(impl.name),
                            count,
                            run(count, entries, impl, probe));
                    }
                }
                add("path/" + of + "/budget8", count, run(count, entries, best, decide(8)));
            }
        }
        add("flood/" + where + "/off", 0, run(0, 512, best, lookup));
        for (const std::size_t entries : kEntries) {
            const std::string of = "flood/" + where + "/" + std::to_string(entries);
            add(of + "/probe", 0, run(0, entries, best, probe));
            add(of + "/no_insert", 0, run(0, entries, best, decide(0)));
            add(of + "/budget8", 0, run(0, entries, best, decide(8)));
            add(of + "/insert_all", 0, run(0, entries, best, decide(kEverything)));
        }
    }
}

/// probe/ of another layout, as full as its buckets take it.
template <class Layout>
void add_layout(const std::string& name, Table<net::Ipv4Addr>& table) {
    for (const std::int64_t count : kDestinations) {
        for (const std::size_t entries : kEntries) {
            const auto run = [&table, count, entries](benchmark::State& state) {
                const auto addresses = traffic(table.prefixes(), static_cast<std::size_t>(count));
                Layout cache(entries);
                const auto generations = std::make_unique<Generations<net::Ipv4Addr>>();
                generations->bump_all(1);
                std::array<std::uint32_t, kBurst> tails{};
                tails.fill(CacheTail::make(0, 1, 0));
                for (const auto& address : addresses) {
                    cache.insert(address, tails[0], 1, 1);
                }
                std::array<std::uint32_t, kBurst> values{};
                measure<net::Ipv4Addr>(state, addresses, [&](const net::Ipv4Addr* burst) {
                    const std::uint32_t hits =
                        cache.probe(*generations, burst, tails.data(), values.data(), kBurst);
                    benchmark::DoNotOptimize(values);
                    benchmark::ClobberMemory();
                    return hits;
                });
            };
            benchmark::RegisterBenchmark(
                ("probe/v4/" + table.name() + "/" + std::to_string(entries) + "/" + name + "/" +
                 std::to_string(count))
                    .c_str(),
                run);
        }
    }
}

net::Ipv4Prefix p4(const char* text) {
    return net::Ipv4Prefix::parse(text).value();
}
net::Ipv6Prefix p6(const char* text) {
    return net::Ipv6Prefix::parse(text).value();
}

}  // namespace
}  // namespace sluice::fib

int main(int argc, char** argv) {
    using namespace sluice;
    using namespace sluice::fib;
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 1;
    }
    // Ten routes as a small router has them: connected nets with their own address, and a default.
    Table<net::Ipv4Addr> ten4("ten", [] {
        return std::vector{p4("0.0.0.0/0"),
                           p4("10.0.1.0/24"),
                           p4("10.0.1.1/32"),
                           p4("10.0.2.0/24"),
                           p4("10.0.2.1/32"),
                           p4("192.168.0.0/16"),
                           p4("198.18.0.0/15"),
                           p4("203.0.113.0/24"),
                           p4("203.0.113.9/32"),
                           p4("100.64.0.0/10")};
    });
    Table<net::Ipv6Addr> ten6("ten", [] {
        return std::vector{p6("::/0"),
                           p6("2001:db8:1::/64"),
                           p6("2001:db8:1::1/128"),
                           p6("2001:db8:2::/64"),
                           p6("2001:db8:2::1/128"),
                           p6("2001:db8:100::/40"),
                           p6("2001:db8:8000::/33"),
                           p6("fe80::/64"),
                           p6("fd00::/8"),
                           p6("2600::/12")};
    });
    Table<net::Ipv4Addr> full4("full",
                               [] { return test::internet_prefixes<net::Ipv4Addr>(1'000'000, 1); });
    Table<net::Ipv6Addr> full6("full",
                               [] { return test::internet_prefixes<net::Ipv6Addr>(200'000, 1); });
    add_benchmarks<net::Ipv4Addr>("v4", {&ten4, &full4});
    add_layout<layouts::Structures>("structures", ten4);
#if defined(__x86_64__)
    if (best_cache_probe().name == "avx512") {
        add_layout<layouts::Gathered>("gathered", ten4);
    }
#endif
    add_benchmarks<net::Ipv6Addr>("v6", {&ten6, &full6});
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
