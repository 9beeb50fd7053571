// SPDX-License-Identifier: BSD-3-Clause
// What the packet path costs without drivers: process_burst() on packets in memory, sent to nobody.
// Prints one JSON object a line; scripts/bench cache and churn read it.
//
//   path_bench cache [--rounds N] [--packets N] [--warm N] [--sequence N] [--rows SUBSTRING,...]
//   [--mode off|on|auto] path_bench churn [--rounds N] [--seconds S]
// and for both [--prefixes FILE | --routes N]: the full table, or how long a generated one is.
//
// Modes alternate every `packets` packets, less than a millisecond: the clock of a shared core may
// change at any time, so only what stands side by side in one round is comparable.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <ranges>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <sched.h>

#include "base/check.h"
#include "base/drop_reason.h"
#include "fib/shared.h"
#include "net/address.h"
#include "path_tables.h"
#include "stats/counters.h"
#include "support/prefix_generator.h"

namespace sluice::test {

namespace {

constexpr std::array kCounts{1, 2, 15, 100, 500, 1000, 2000, 4000, 8000};
constexpr int kPathCore = 1;

struct Arguments {
    std::string what;
    unsigned rounds = 100;
    std::size_t packets = 6144;
    std::size_t warm = 51'200;  // packets of each mode before its rounds; `auto` four times as many
    std::size_t sequence = std::size_t{1} << 18U;  // packets after which traffic repeats
    double seconds = 1;
    std::vector<std::string> rows;  // parts of ids; none: all
    std::string mode;               // one alone, for a profile of it; none: all
    std::string prefixes;
    std::size_t full4 = FamilyOf<net::Ipv4Addr>::kFullRoutes;
    std::size_t full6 = FamilyOf<net::Ipv6Addr>::kFullRoutes;
};

bool wanted(const Arguments& options, const std::string& id) {
    return options.rows.empty() || std::ranges::any_of(options.rows, [&](const std::string& part) {
               return id.find(part) != std::string::npos;
           });
}

template <class Addr>
const stats::CacheCounters& counters(const Path::Side& side) {
    return side.block.worker().caches[sizeof(Addr) == 4 ? 0 : 1];
}

// --- cache --------------------------------------------------------------------------------------

struct Traffic {
    std::string name;
    std::size_t flows;
    /// The flow of each packet.
    std::vector<std::uint32_t> sequence;
};

template <class Pick>
std::vector<std::uint32_t> make_sequence(std::size_t length, Pick pick) {
    std::vector<std::uint32_t> s(length);
    std::ranges::generate(s, pick);
    return s;
}

std::vector<Traffic> traffics(std::size_t length) {
    std::mt19937_64 random(kSeed);
    std::vector<Traffic> all;
    const auto sequence = [&](auto pick) { return make_sequence(length, pick); };
    for (const int count : kCounts) {
        const auto n = static_cast<std::size_t>(count);
        all.push_back({std::to_string(n), n, sequence([&] {
                           return static_cast<std::uint32_t>(random() % n);
                       })});
    }
    // Destinations that come once, as far as any cache can tell.
    all.push_back({"flood", length, sequence([i = 0U]() mutable { return i++; })});
    std::vector<double> cumulated(100'000);
    double sum = 0;
    for (std::size_t i = 0; i < cumulated.size(); ++i) {
        sum += 1 / std::pow(static_cast<double>(i + 1), 1.1);
        cumulated[i] = sum;
    }
    std::uniform_real_distribution<double> uniform(0, sum);
    all.push_back({"zipf", cumulated.size(), sequence([&] {
                       return static_cast<std::uint32_t>(
                           std::ranges::lower_bound(cumulated, uniform(random)) -
                           cumulated.begin());
                   })});
    all.push_back({"mixed", length, sequence([&, i = 100U]() mutable {
                       return static_cast<std::uint32_t>(
                           random() % 2 == 0 ? random() % 100 : 100 + i++ % (length - 100));
                   })});
    return all;
}

struct Mode {
    const char* name;
    CacheMode mode;
};
constexpr std::array kModes{
    Mode{"off", CacheMode::kOff}, Mode{"on", CacheMode::kOn}, Mode{"auto", CacheMode::kAuto}};

/// A worker's side for each of kModes.
using Sides = std::vector<std::unique_ptr<Path::Side>>;

/// A fast row that forwarded nothing would be worth nothing.
void check_forwarded(const std::string& what, Path::Side& side) {
    stats::NetdevCounters& counted = side.block.netdev(Path::kP0);
    for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
        if (counted.drops[reason] * 100 > counted.rx_packets) {
            fmt::print(stderr,
                       "{}: {} of {} packets dropped, {}\n",
                       what,
                       counted.drops[reason],
                       counted.rx_packets,
                       kDropInfo[reason].name);
        }
    }
    counted = {};
}

template <class Addr>
void cache_row(Path& path,
               const std::string& id,
               const std::vector<Flow<Addr>>& flows,
               const Traffic& traffic,
               const Arguments& options,
               const Sides& sides) {
    // Apart, so that no mode finds what another one has just brought into the processor's caches.
    std::array<std::size_t, kModes.size()> at{};
    for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
        at[mode] = traffic.sequence.size() / kModes.size() * mode;
    }
    const auto run = [&](std::size_t mode, std::size_t packets) {
        path.shared().cache_mode = kModes[mode].mode;
        std::uint64_t cycles = 0;
        for (std::size_t done = 0; done < packets; done += kPackets) {
            cycles += path.step(*sides[mode], flows, traffic.sequence, at[mode]);
        }
        return static_cast<double>(cycles) / static_cast<double>(packets);
    };
    for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
        sides[mode]->context.caches.meter4 = {};
        sides[mode]->context.caches.meter6 = {};
        // `auto` makes up its mind.
        run(mode, kModes[mode].mode == CacheMode::kAuto ? 4 * options.warm : options.warm);
    }
    check_forwarded(id, *sides[0]);
    for (unsigned round = 0; round < options.rounds; ++round) {
        for (std::size_t k = 0; k < kModes.size(); ++k) {
            // Each mode comes behind each other one: what that left in the processor's caches
            // counts.
            const std::size_t step = round % 2 == 0 ? k : kModes.size() - k;
            const std::size_t mode = (round / 2 + step) % kModes.size();
            if (!options.mode.empty() && options.mode != kModes[mode].name) {
                continue;
            }
            // What the mode before left in the processor's caches is not this one's.
            run(mode, options.packets / 4);
            const auto before = counters<Addr>(*sides[mode]).hits;
            const double cycles = run(mode, options.packets);
            const auto hits = counters<Addr>(*sides[mode]).hits - before;
            fmt::print(
                R"({{"id": "{}", "mode": "{}", "round": {}, "cycles": {:.2f}, "hits": {:.4f}}})"
                "\n",
                id,
                kModes[mode].name,
                round,
                cycles,
                static_cast<double>(hits) / static_cast<double>(options.packets));
        }
    }
    std::fflush(stdout);
}

template <class Addr>
void cache_rows(Path& path, Tables<Addr>& tables, const Arguments& options, const Sides& sides) {
    const std::vector<Traffic> traffic = traffics(options.sequence);
    for (const bool full : {false, true}) {
        for (const bool decision : {false, true}) {
            for (const Traffic& t : traffic) {
                const std::string id = fmt::format("cache/{}/{}/{}/{}",
                                                   FamilyOf<Addr>::kName,
                                                   full ? "full" : "small",
                                                   decision ? "decision" : "plain",
                                                   t.name);
                if (wanted(options, id + "/")) {
                    tables.use(full, decision);
                    const auto flows = tables.flows(t.flows, full, kSeed + t.flows);
                    cache_row(path, id, flows, t, options, sides);
                }
            }
        }
    }
}

// --- churn --------------------------------------------------------------------------------------

void bump(Path& path, const net::Ipv4Prefix& p) {
    path.generations4().bump(p, path.sequence().next());
}
void bump(Path& path, const net::Ipv6Prefix& p) {
    path.generations6().bump(p, path.sequence().next());
}

/// The path has its core for itself: the EAL has bound this program to that one.
void leave_path_core() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (core != kPathCore) {
            CPU_SET(core, &cores);
        }
    }
    pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

/// Changes routes of the full table as the control thread does: publish, bump.
template <class Addr>
void update_routes(Path& path,
                   Tables<Addr>& tables,
                   unsigned rate,
                   std::uint64_t seed,
                   const std::atomic<bool>& stop,
                   std::atomic<std::uint64_t>& updates) {
    leave_path_core();
    std::mt19937_64 pick(seed);
    const auto& prefixes = tables.prefixes(true);
    const auto start = std::chrono::steady_clock::now();
    while (!stop && rate != 0) {
        const auto passed = std::chrono::steady_clock::now() - start;
        const auto due =
            static_cast<std::uint64_t>(std::chrono::duration<double>(passed).count() * rate);
        for (; updates < due; ++updates) {
            const auto& p = prefixes[pick() % prefixes.size()];
            SLUICE_CHECK(tables.table(true).set(p, tables.hop(pick())).has_value());
            bump(path, p);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

template <class Addr>
void churn_rows(Path& path, Tables<Addr>& tables, const Arguments& options, Path::Side& side) {
    tables.use(true, false);
    path.shared().cache_mode = CacheMode::kOn;
    const auto flows = tables.flows(100, true, kSeed);
    std::mt19937_64 random(kSeed);
    const auto order =
        make_sequence(options.sequence, [&] { return static_cast<std::uint32_t>(random() % 100); });
    for (unsigned round = 0; round < options.rounds; ++round) {
        for (const unsigned rate : {0U, 10U, 1000U, 10000U}) {
            std::atomic<bool> stop{false};
            std::atomic<std::uint64_t> updates{0};
            std::jthread control([&] { update_routes(path, tables, rate, round, stop, updates); });
            std::size_t at = 0;
            const auto before = counters<Addr>(side).hits;
            std::uint64_t cycles = 0;
            std::size_t packets = 0;
            const auto end =
                std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
            while (std::chrono::steady_clock::now() < end) {
                cycles += path.step(side, flows, order, at);
                packets += kPackets;
            }
            stop = true;
            control.join();
            const auto per_packet = static_cast<double>(cycles) / static_cast<double>(packets);
            fmt::print(
                R"({{"id": "churn/{}/{}", "round": {}, "hits": {:.5f}, "cycles": {:.2f}, "mpps": {:.3f}, "updates": {}, "seconds": {:.3f}}})"
                "\n",
                FamilyOf<Addr>::kName,
                rate,
                round,
                static_cast<double>(counters<Addr>(side).hits - before) /
                    static_cast<double>(packets),
                per_packet,
                static_cast<double>(rte_get_tsc_hz()) / per_packet / 1e6,
                updates.load(),
                options.seconds);
            std::fflush(stdout);
        }
    }
}

// --- the rest -----------------------------------------------------------------------------------

template <class Addr>
std::vector<net::Prefix<Addr>> read_prefixes(const std::string& path) {
    std::vector<net::Prefix<Addr>> prefixes;
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        const auto parsed = net::IpPrefix::parse(line.substr(0, line.find_first_of(" \t")));
        if (parsed && parsed->is_v4() == (sizeof(Addr) == 4)) {
            if constexpr (sizeof(Addr) == 4) {
                prefixes.push_back(parsed->v4());
            } else {
                prefixes.push_back(parsed->v6());
            }
        }
    }
    return prefixes;
}

template <class Addr>
std::vector<net::Prefix<Addr>> full_table(const Arguments& options) {
    auto prefixes =
        options.prefixes.empty()
            ? internet_prefixes<Addr>(sizeof(Addr) == 4 ? options.full4 : options.full6, kSeed)
            : read_prefixes<Addr>(options.prefixes);
    // The way back to the senders stays one route: else source validation drops what they send.
    const auto sources = prefix<Addr>(FamilyOf<Addr>::kSources);
    std::erase_if(prefixes, [&](const auto& p) { return sources.contains(p.address); });
    return prefixes;
}

Arguments parse(int argc, char** argv) {
    Arguments options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        const auto value = [&]() -> std::string {
            if (++i >= argc) {
                fmt::print(stderr, "{} wants a value\n", word);
                std::exit(2);
            }
            return argv[i];
        };
        if (word == "cache" || word == "churn") {
            options.what = word;
        } else if (word == "--rounds") {
            options.rounds = static_cast<unsigned>(std::stoul(value()));
        } else if (word == "--packets") {
            options.packets = std::max(std::stoul(value()) / kPackets, 1UL) * kPackets;
        } else if (word == "--warm") {
            options.warm = std::stoul(value());
        } else if (word == "--sequence") {
            options.sequence = std::max(std::stoul(value()), 1000UL);
        } else if (word == "--seconds") {
            options.seconds = std::stod(value());
        } else if (word == "--rows") {
            for (const auto part : std::views::split(value(), ',')) {
                options.rows.emplace_back(part.begin(), part.end());
            }
        } else if (word == "--mode") {
            options.mode = value();
        } else if (word == "--prefixes") {
            options.prefixes = value();
        } else if (word == "--routes") {
            options.full4 = options.full6 = std::stoul(value());
        } else {
            fmt::print(stderr, "what is '{}'?\n", word);
            std::exit(2);
        }
    }
    if (options.what.empty()) {
        fmt::print(stderr, "path_bench cache|churn [--rounds N] [--packets N] [--seconds S] ...\n");
        std::exit(2);
    }
    return options;
}

template <class Addr>
void run(Path& path, const Arguments& options, const Sides& sides) {
    const auto prefixes = full_table<Addr>(options);
    if (prefixes.empty()) {  // a file of the other family's
        fmt::print(stderr, "no {} prefix to work with\n", FamilyOf<Addr>::kName);
        return;
    }
    Tables<Addr> tables(path, prefixes);
    if (options.what == "cache") {
        cache_rows(path, tables, options, sides);
    } else {
        churn_rows(path, tables, options, *sides[1]);
    }
}

}  // namespace

}  // namespace sluice::test

int main(int argc, char** argv) {
    using namespace sluice::test;
    const Arguments options = parse(argc, argv);
    const std::string core = std::to_string(kPathCore);
    const std::array<const char*, 10> eal{"path_bench",
                                          "--no-huge",
                                          "-m",
                                          "256",
                                          "--no-pci",
                                          "--no-telemetry",
                                          "--no-shconf",
                                          "--log-level=lib.eal:error",
                                          "-l",
                                          core.c_str()};
    std::vector<char*> arguments;
    for (const char* word : eal) {
        arguments.push_back(const_cast<char*>(word));
    }
    if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) < 0) {
        fmt::print(stderr, "the EAL does not start\n");
        return 1;
    }
    Path path;
    Sides sides;
    for (const Mode& mode : kModes) {
        sides.push_back(std::make_unique<Path::Side>(path, mode.name, 512));
    }
    run<sluice::net::Ipv4Addr>(path, options, sides);
    run<sluice::net::Ipv6Addr>(path, options, sides);
    std::fflush(stdout);
    std::_Exit(0);  // the bench's tables would take longer to free than to fill
}
