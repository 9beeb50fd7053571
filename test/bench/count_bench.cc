// SPDX-License-Identifier: BSD-3-Clause
// What scripts/bench instructions counts: bursts of fixed packets through process_burst(), under
// callgrind, which collects between the two toggles only and writes one dump a row. Prints what the
// counts depend on. Run alone it counts nothing, and checks that each row's packets end as the row
// says.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_version.h>
#include <valgrind/callgrind.h>

#include "base/check.h"
#include "base/drop_reason.h"
#include "fib/dst_cache_probe.h"
#include "fib/lpm_lookup.h"
#include "net/address.h"
#include "net/wire.h"
#include "path_tables.h"
#include "pipeline/burst.h"
#include "stats/counters.h"
#include "support/packet.h"
#include "support/prefix_generator.h"

namespace sluice::test {

namespace {

// Enough for a table of the big form with every level in it, and quick to build.
constexpr std::size_t kRoutes = 20'000;
constexpr std::size_t kSmallFlows = 100;
constexpr std::size_t kFullFlows = 4000;
constexpr std::size_t kWarmBursts = 512;
constexpr std::size_t kCountedBursts = 256;

/// How the packets of a row end: what the path does with their mbufs follows from it.
enum class End : std::uint8_t { kSent, kDropped };

struct Row {
    std::string name;
    std::vector<Bytes> frames;
    NetdevId book = Path::kP0;
    End end = End::kSent;
    CacheMode cache = CacheMode::kOff;
};

void fill(rte_mbuf& m, const Bytes& frame) {
    rte_pktmbuf_reset(&m);
    std::memcpy(rte_pktmbuf_mtod(&m, std::uint8_t*), frame.data(), frame.size());
    m.data_len = static_cast<std::uint16_t>(frame.size());
    m.pkt_len = m.data_len;
}

class Counter {
public:
    Counter(Path& path, Path::Side& side) : path_(path), side_(side) {}

    void count(const Row& row) {
        path_.shared().cache_mode = row.cache;
        side_.context.caches.clear();
        const std::uint64_t before = ended(row);
        std::mt19937_64 random(kSeed);
        for (std::size_t burst = 0; burst < kWarmBursts; ++burst) {
            step(row, random, false);
        }
        CALLGRIND_ZERO_STATS;
        for (std::size_t burst = 0; burst < kCountedBursts; ++burst) {
            step(row, random, true);
        }
        CALLGRIND_DUMP_STATS_AT(row.name.c_str());
        const std::uint64_t packets = (kWarmBursts + kCountedBursts) * kBurst;
        if (ended(row) - before != packets || path_.mbufs_in_use() != kPackets) {
            fmt::print(stderr,
                       "{}: {} of {} packets ended as they should: {}\n",
                       row.name,
                       ended(row) - before,
                       packets,
                       drops());
            std::exit(1);
        }
    }

private:
    void step(const Row& row, std::mt19937_64& random, bool counted) {
        std::array<rte_mbuf*, kBurst> burst{};
        SLUICE_CHECK(rte_pktmbuf_alloc_bulk(path_.pool(), burst.data(), kBurst) == 0);
        for (rte_mbuf* m : burst) {
            fill(*m, row.frames[random() % row.frames.size()]);
        }
        pipeline::StageTimer timer(side_.block.worker(), false);
        const fib::NetdevView& in = path_.netdev(Path::kP0);
        if (counted) {
            CALLGRIND_TOGGLE_COLLECT;
        }
        pipeline::process_burst(side_.context, side_.storage, in, burst, timer);
        if (counted) {
            CALLGRIND_TOGGLE_COLLECT;
        }
        if (row.end == End::kSent) {  // to nobody, who did not free them
            rte_pktmbuf_free_bulk(burst.data(), kBurst);
        }
    }
    /// Of what came in so far, as much as ended as the row wants.
    std::uint64_t ended(const Row& row) {
        const stats::NetdevCounters& book = side_.block.netdev(row.book);
        return row.end == End::kSent ? book.forwarded
                                     : book.rx_packets - book.forwarded - book.delivered;
    }
    std::string drops() {
        std::string text;
        for (const NetdevId id : {Path::kLo, Path::kP0, Path::kP1}) {
            const stats::NetdevCounters& book = side_.block.netdev(id);
            for (std::size_t i = 0; i < kDropReasons; ++i) {
                if (book.drops[i] != 0) {
                    text += fmt::format(" {} {}", book.drops[i], kDropInfo[i].name);
                }
            }
        }
        return text;
    }

    Path& path_;
    Path::Side& side_;
};

Bytes frame(const Flow<net::Ipv4Addr>& flow) {
    return Packet()
        .eth()
        .ipv4({.src = flow.source, .dst = flow.destination})
        .udp()
        .payload(18)
        .bytes();
}
Bytes frame(const Flow<net::Ipv6Addr>& flow) {
    return Packet()
        .eth()
        .ipv6({.src = flow.source, .dst = flow.destination})
        .udp()
        .payload(8)
        .bytes();
}

template <class Addr>
std::vector<Bytes> frames(const Tables<Addr>& tables, bool full) {
    std::vector<Bytes> all;
    for (const auto& flow : tables.flows(full ? kFullFlows : kSmallFlows, full, kSeed)) {
        all.push_back(frame(flow));
    }
    return all;
}

template <class Addr>
std::unique_ptr<Tables<Addr>> tables(Path& path, const fib::LookupImpl& lookup) {
    auto prefixes = internet_prefixes<Addr>(kRoutes, kSeed);
    const auto sources = prefix<Addr>(FamilyOf<Addr>::kSources);
    std::erase_if(prefixes, [&](const auto& p) { return sources.contains(p.address); });
    return std::make_unique<Tables<Addr>>(path, prefixes, lookup);
}

/// Rows that go by a table of path_bench's.
template <class Addr>
void table_rows(Counter& counter, Tables<Addr>& best, Tables<Addr>& scalar) {
    const std::string family = FamilyOf<Addr>::kName;
    for (const bool full : {false, true}) {
        const std::string size = full ? "full" : "small";
        const std::vector<Bytes> traffic = frames(best, full);
        const auto count = [&](const std::string& name, CacheMode mode) {
            counter.count(
                {.name = family + "/" + size + "/" + name, .frames = traffic, .cache = mode});
        };
        best.use(full, false);
        count("plain", CacheMode::kOff);
        scalar.use(full, false);
        count("plain-scalar", CacheMode::kOff);
        best.use(full, true);
        count("decision-cache-off", CacheMode::kOff);
        if (!full) {  // more flows than the cache has room for are no steady state
            count("decision-cache-on", CacheMode::kOn);
        }
    }
}

/// Rows that go by the test bench's own table, as a test's packets do.
struct OwnTable {
    explicit OwnTable(Path& path) : in(path.netdev(Path::kP0)), path_(path) {
        in_tag = path.add_netdev({.port = 0,
                                  .vlan = 100,
                                  .parent = Path::kP0,
                                  .mac = Path::kP0Mac,
                                  .addresses = {"10.0.100.1/24", "fd00:100::1/64"}});
        const NetdevId out = path.add_netdev({.port = 1,
                                              .vlan = 200,
                                              .parent = Path::kP1,
                                              .mac = Path::kP1Mac,
                                              .addresses = {"10.0.200.1/24", "fd00:200::1/64"}});
        path.add_route("198.18.0.0/15", {.via = "10.0.200.2", .dev = out});
        path.add_route("2001:db8:3::/48", {.via = "fd00:200::2", .dev = out});
        path.resolve(out, net::IpAddr::parse("10.0.200.2").value(), "02:cc:00:00:00:02");
        path.resolve(out, net::IpAddr::parse("fd00:200::2").value(), "02:cc:00:00:00:02");
    }
    void use() {
        in.fib4 = &path_.fib4();
        in.fib6 = &path_.fib6();
        in.policy4 = nullptr;
        in.policy6 = nullptr;
        in.source_validation = fib::SourceValidation::kOff;
        path_.bump();
    }
    fib::NetdevView& in;
    NetdevId in_tag;

private:
    Path& path_;
};

std::vector<Row> own_rows(NetdevId in_tag) {
    std::vector<Row> rows;
    Row vlan4{.name = "v4/vlan", .frames = {}, .book = in_tag};
    Row vlan6{.name = "v6/vlan", .frames = {}, .book = in_tag};
    for (unsigned i = 0; i < kSmallFlows; ++i) {
        const V4 to4(fmt::format("198.18.{}.7", i).c_str());
        const V6 to6(fmt::format("2001:db8:3:{:x}::7", i).c_str());
        vlan4.frames.push_back(Packet()
                                   .eth()
                                   .vlan(100)
                                   .ipv4({.src = "10.0.100.2", .dst = to4})
                                   .udp()
                                   .payload(18)
                                   .bytes());
        vlan6.frames.push_back(Packet()
                                   .eth()
                                   .vlan(100)
                                   .ipv6({.src = "fd00:100::2", .dst = to6})
                                   .udp()
                                   .payload(8)
                                   .bytes());
    }
    rows.push_back(std::move(vlan4));
    rows.push_back(std::move(vlan6));
    rows.push_back({.name = "v4/martian",
                    .frames = {Packet().eth().ipv4({.src = "127.0.0.1"}).udp().payload(18).bytes()},
                    .end = End::kDropped});
    rows.push_back({.name = "v6/martian",
                    .frames = {Packet().eth().ipv6({.src = "ff02::1"}).udp().payload(8).bytes()},
                    .end = End::kDropped});
    // Echo replies are received on `lo`, from where they are forwarded.
    rows.push_back(
        {.name = "v4/echo",
         .frames =
             {Packet().eth().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kEcho).payload(56).bytes()},
         .book = Path::kLo});
    rows.push_back(
        {.name = "v6/echo",
         .frames =
             {Packet().eth().ipv6({.dst = "fd00::1"}).icmp6(net::icmp6::kEcho).payload(56).bytes()},
         .book = Path::kLo});
    return rows;
}

void print_conditions() {
    fmt::print(
        R"({{"compiler": "{}", "build": "{}", "dpdk": "{}", "libc": "{}", "lookup": "{}", "probe": "{}", "packets": {}}})"
        "\n",
        __VERSION__,
        SLUICE_BENCH_BUILD,
        rte_version(),
        gnu_get_libc_version(),
        fib::best_lookup().name,
        fib::best_cache_probe().name,
        kCountedBursts * kBurst);
}

void count_all() {
    Path path;
    Path::Side side(path, "count", 512);
    Counter counter(path, side);
    const fib::LookupImpl& scalar = fib::lookup_impls().back();
    const auto best4 = tables<net::Ipv4Addr>(path, fib::best_lookup());
    const auto scalar4 = tables<net::Ipv4Addr>(path, scalar);
    const auto best6 = tables<net::Ipv6Addr>(path, fib::best_lookup());
    const auto scalar6 = tables<net::Ipv6Addr>(path, scalar);
    OwnTable own(path);
    CALLGRIND_START_INSTRUMENTATION;
    table_rows(counter, *best4, *scalar4);
    table_rows(counter, *best6, *scalar6);
    own.use();
    for (const Row& row : own_rows(own.in_tag)) {
        counter.count(row);
    }
    CALLGRIND_STOP_INSTRUMENTATION;
    std::fflush(stdout);
    std::_Exit(0);  // the tables would take longer to free than to fill
}

}  // namespace

}  // namespace sluice::test

int main() {
    using namespace sluice::test;
    std::array<std::string, 9> eal{"count_bench",
                                   "--no-huge",
                                   "-m",
                                   "128",
                                   "--no-pci",
                                   "--no-telemetry",
                                   "--no-shconf",
                                   "--log-level=lib.eal:error",
                                   "--lcores=0"};
    std::array<char*, eal.size()> arguments{};
    for (std::size_t i = 0; i < eal.size(); ++i) {
        arguments[i] = eal[i].data();
    }
    if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) < 0) {
        fmt::print(stderr, "the EAL does not start\n");
        return 1;
    }
    print_conditions();
    count_all();
}
