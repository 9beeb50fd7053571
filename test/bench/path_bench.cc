// SPDX-License-Identifier: BSD-3-Clause
// What the packet path costs without drivers: process_burst() on packets in memory, sent to nobody.
// Prints one JSON object a line; scripts/bench cache and churn read it.
//
//   path_bench cache [--rounds N] [--packets N] [--only SUBSTRING] [--prefixes FILE] [--counts
//   1,15,...] path_bench churn [--rounds N] [--seconds S]
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "base/check.h"
#include "base/pages.h"
#include "fib/dst.h"
#include "fib/group.h"
#include "fib/lpm.h"
#include "fib/policy.h"
#include "fib/shared.h"
#include "net/address.h"
#include "net/checksum.h"
#include "net/wire.h"
#include "pipeline/burst.h"
#include "pipeline/context.h"
#include "pipeline/stage_timer.h"
#include "support/packet.h"
#include "support/prefix_generator.h"
#include "support/stage_bench.h"

namespace sluice::test {

namespace {

using fib::CacheMode;
using fib::DstIndex;

constexpr std::size_t kBurst = 32;
constexpr std::size_t kBursts = 8;  // between two refills: their headers stay in L2
constexpr std::size_t kPackets = kBurst * kBursts;
constexpr std::uint64_t kSeed = 20261130;
constexpr std::array kCounts{1, 2, 15, 100, 500, 1000, 2000, 4000, 8000};
constexpr std::size_t kSequence = std::size_t{1} << 18U;

struct Arguments {
    std::string what;
    unsigned rounds = 5;
    std::size_t packets = 400'000;
    double seconds = 1;
    std::string only;
    std::string prefixes;
};

std::uint16_t send_nowhere(std::uint16_t /*port*/,
                           std::uint16_t /*queue*/,
                           rte_mbuf** /*packets*/,
                           std::uint16_t count) {
    return count;
}

template <class Addr>
struct Flow {
    Addr source;
    Addr destination;
};

/// StageBench for its ports, dsts and addresses; packets and contexts are the bench's own.
class Path : public StageBench {
public:
    Path() : StageBench(4096) {
        keep_sent = false;
        for (rte_mbuf*& m : packets_) {
            m = rte_pktmbuf_alloc(pool());
            SLUICE_CHECK(m != nullptr);
        }
    }
    void TestBody() override {}

    /// One worker's side.
    struct Side {
        stats::Block block;
        pipeline::EventQueue events;
        dpdk::MbufRing punted;
        pipeline::BurstStorage storage;
        pipeline::Context context;
        Side(Path& path, const std::string& name, std::size_t entries)
            : punted(dpdk::MbufRing::create("path-" + name, 64).value()),
              context{.shared = path.shared(),
                      .stats = block,
                      .pool = path.pool(),
                      .transmit = pipeline::Transmitter(0, block, &send_nowhere),
                      .holds = pipeline::HoldTable(1),
                      .icmp_limit = {},
                      .events = events,
                      .punted = punted,
                      .caches = pipeline::Caches(entries, 0x2545f4914f6cdd1dU),
                      .redirects = {},
                      .now_ns = 1'000'000'000'000} {}
    };

    /// The way of kPackets packets of the next flows of `sequence`; TSC cycles.
    template <class Addr>
    std::uint64_t step(Side& side,
                       const std::vector<Flow<Addr>>& flows,
                       const std::vector<std::uint32_t>& sequence,
                       std::size_t& at) {
        for (rte_mbuf* m : packets_) {
            const Flow<Addr>& flow = flows[sequence[at]];
            at = (at + 1) % sequence.size();
            fill(*m, flow);
        }
        const fib::NetdevView& in = netdev(kP0);
        pipeline::StageTimer timer(side.block.worker(), false);
        const std::uint64_t start = rte_rdtsc();
        for (std::size_t i = 0; i < kBursts; ++i) {
            pipeline::process_burst(
                side.context, side.storage, in, {packets_.data() + i * kBurst, kBurst}, timer);
        }
        return rte_rdtsc() - start;
    }

private:
    static constexpr std::uint16_t kFrame = 60;

    static void reset(rte_mbuf& m, std::uint16_t bytes) {
        m.data_off = RTE_PKTMBUF_HEADROOM;
        m.data_len = bytes;
        m.pkt_len = bytes;
        m.ol_flags = 0;
        m.nb_segs = 1;
        m.next = nullptr;
    }
    void fill(rte_mbuf& m, const Flow<net::Ipv4Addr>& flow) {
        static const Bytes kTemplate = Packet().eth().ipv4().udp().payload(18).bytes();
        reset(m, kFrame);
        auto* bytes = rte_pktmbuf_mtod(&m, std::uint8_t*);
        std::memcpy(bytes, kTemplate.data(), kFrame);
        auto& ip = *reinterpret_cast<net::Ipv4Header*>(bytes + 14);
        ip.source = flow.source;
        ip.destination = flow.destination;
        ip.checksum = {};
        ip.checksum = net::internet_checksum({bytes + 14, 20});
    }
    void fill(rte_mbuf& m, const Flow<net::Ipv6Addr>& flow) {
        static const Bytes kTemplate = Packet().eth().ipv6().udp().payload(8).bytes();
        reset(m, static_cast<std::uint16_t>(kTemplate.size()));
        auto* bytes = rte_pktmbuf_mtod(&m, std::uint8_t*);
        std::memcpy(bytes, kTemplate.data(), kTemplate.size());
        auto& ip = *reinterpret_cast<net::Ipv6Header*>(bytes + 14);
        ip.source = flow.source;
        ip.destination = flow.destination;
    }

    std::array<rte_mbuf*, kPackets> packets_{};
};

template <class Addr>
struct FamilyOf;
template <>
struct FamilyOf<net::Ipv4Addr> {
    static constexpr const char* kName = "v4";
    static constexpr net::Family kFamily = net::Family::kIpv4;
    static constexpr std::size_t kFullRoutes = 900'000;
    static constexpr std::array kSmall{"198.18.0.0/15",
                                       "203.0.112.0/20",
                                       "192.0.2.0/24",
                                       "198.51.100.0/24",
                                       "203.0.113.128/25",
                                       "172.16.0.0/12",
                                       "100.64.0.0/10",
                                       "192.88.99.0/24",
                                       "8.0.0.0/8",
                                       "0.0.0.0/0"};
    static constexpr const char* kSources = "10.0.0.0/8";
    static constexpr const char* kGateway = "10.0.1.{}";
};
template <>
struct FamilyOf<net::Ipv6Addr> {
    static constexpr const char* kName = "v6";
    static constexpr net::Family kFamily = net::Family::kIpv6;
    static constexpr std::size_t kFullRoutes = 200'000;
    static constexpr std::array kSmall{"2001:db8::/32",
                                       "2001:db8:1::/48",
                                       "2001:db8:2::/48",
                                       "2a00::/16",
                                       "2400::/12",
                                       "2600::/12",
                                       "2c0f::/16",
                                       "2001:db8:3:4::/64",
                                       "2800::/12",
                                       "::/0"};
    static constexpr const char* kSources = "fd00::/32";
    static constexpr const char* kGateway = "fd00:1::{}";
};

template <class Addr>
Addr random_in(const net::Prefix<Addr>& prefix, std::mt19937_64& random) {
    std::array<std::uint8_t, sizeof(Addr)> bytes;
    for (std::uint8_t& byte : bytes) {
        byte = static_cast<std::uint8_t>(random());
    }
    for (unsigned bit = 0; bit < prefix.length; ++bit) {
        const auto mask = static_cast<std::uint8_t>(0x80U >> (bit % 8));
        bytes[bit / 8] = static_cast<std::uint8_t>((bytes[bit / 8] & ~mask) |
                                                   (prefix.address.bytes[bit / 8] & mask));
    }
    return Addr{bytes};
}

template <class Addr>
net::Prefix<Addr> prefix(const char* text) {
    const auto parsed = net::IpPrefix::parse(text).value();
    if constexpr (sizeof(Addr) == 4) {
        return parsed.v4();
    } else {
        return parsed.v6();
    }
}

/// The tables of one family: small and full, to plain next hops or to groups of four.
template <class Addr>
class Tables {
public:
    using F = FamilyOf<Addr>;
    using Lpm = fib::LpmTable<Addr>;
    static constexpr std::size_t kHops = 64;

    Tables(Path& path, const std::vector<net::Prefix<Addr>>& full) : path_(path), full_(full) {
        for (std::size_t i = 0; i < kHops; ++i) {
            const std::string gateway = fmt::format(fmt::runtime(F::kGateway), i + 2);
            const auto address = net::IpAddr::parse(gateway).value();
            hops_.push_back(path.add_dst(F::kFamily, {.via = gateway.c_str(), .dev = Path::kP1}));
            path.resolve(Path::kP1, address, "02:bb:00:00:00:02");
        }
        back_ = path.add_dst(F::kFamily, {.via = back_gateway(), .dev = Path::kP0});
        path.resolve(Path::kP0, net::IpAddr::parse(back_gateway()).value(), "02:aa:00:00:00:02");
        for (std::size_t i = 0; i < kHops / 4; ++i) {
            const std::uint32_t value = path.shared().groups.allocate().value();
            path.shared().groups.publish(value,
                                         fib::make_group({{.dst = hops_[4 * i]},
                                                          {.dst = hops_[4 * i + 1]},
                                                          {.dst = hops_[4 * i + 2]},
                                                          {.dst = hops_[4 * i + 3]}}));
            groups_.push_back(value);
        }
        for (const char* text : F::kSmall) {
            small_.push_back(prefix<Addr>(text));
        }
        small_plain_ = build(small_, hops_);
        small_groups_ = build(small_, groups_);
        full_plain_ = build(full_, hops_);
        full_groups_ = build(full_, groups_);
        // The other two tables of the rules hold little: what they do not know goes on.
        for (std::unique_ptr<Lpm>& table : others_) {
            table = build({small_[0], small_[2], small_[3]}, hops_);
        }
    }

    void use(bool full, bool decision) {
        fib::NetdevView& in = path_.netdev(Path::kP0);
        Lpm& table = full ? (decision ? *full_groups_ : *full_plain_)
                          : (decision ? *small_groups_ : *small_plain_);
        set_table(in, table);
        in.source_validation =
            decision ? fib::SourceValidation::kStrict : fib::SourceValidation::kOff;
        policy_ = decision ? compile(table) : nullptr;
        set_policy(in, policy_.get());
        path_.bump();
    }

    Lpm& table(bool full) { return full ? *full_plain_ : *small_plain_; }
    const std::vector<net::Prefix<Addr>>& prefixes(bool full) const {
        return full ? full_ : small_;
    }
    DstIndex hop(std::size_t i) const { return hops_[i % kHops]; }

    std::vector<Flow<Addr>> flows(std::size_t count, bool full, std::uint64_t seed) const {
        std::mt19937_64 random(seed);
        const auto sources = prefix<Addr>(F::kSources);
        const auto& from = prefixes(full);
        std::vector<Flow<Addr>> flows;
        while (flows.size() < count) {
            const Addr destination = random_in(from[random() % from.size()], random);
            if (usable(destination)) {
                flows.push_back({random_in(sources, random), destination});
            }
        }
        return flows;
    }

private:
    static const char* back_gateway() { return sizeof(Addr) == 4 ? "10.0.0.2" : "fd00::2"; }
    static void set_table(fib::NetdevView& in, fib::Ipv4Lpm& table) { in.fib4 = &table; }
    static void set_table(fib::NetdevView& in, fib::Ipv6Lpm& table) { in.fib6 = &table; }
    static void set_policy(fib::NetdevView& in, const fib::Ipv4Policy* p) { in.policy4 = p; }
    static void set_policy(fib::NetdevView& in, const fib::Ipv6Policy* p) { in.policy6 = p; }

    static bool usable(const net::Ipv4Addr& a) {
        return !a.is_this_network() && !a.is_loopback() && !a.is_multicast() && !a.is_reserved() &&
               a.bytes[0] != 10;
    }
    static bool usable(const net::Ipv6Addr& a) { return a.bytes[0] < 0xfc && a.bytes[0] >= 0x20; }

    std::unique_ptr<Lpm> build(const std::vector<net::Prefix<Addr>>& prefixes,
                               const std::vector<std::uint32_t>& values) {
        auto table = Lpm::create({.max_routes = 1'200'000}, path_.reclaimer()).value();
        SLUICE_CHECK(table->set(prefix<Addr>(F::kSources), back_).has_value());
        std::size_t i = 0;
        for (const auto& p : prefixes) {
            SLUICE_CHECK(table->set(p, values[i++ % values.size()]).has_value());
        }
        return table;
    }

    /// Eight rules over three tables; half of the sources ask a table that knows nothing first.
    std::unique_ptr<const fib::Policy<Addr>> compile(Lpm& main) {
        using Rule = fib::PolicyRule<Addr>;
        const auto sources = prefix<Addr>(F::kSources);
        const auto half = [&](unsigned length, unsigned which) {
            auto p = sources;
            p.length = static_cast<std::uint8_t>(length);
            const unsigned bit = length - 1;
            if (which == 1) {
                p.address.bytes[bit / 8] =
                    static_cast<std::uint8_t>(p.address.bytes[bit / 8] | (0x80U >> (bit % 8)));
            }
            return p;
        };
        const unsigned base = sources.length;
        const std::vector<Rule> rules{
            Rule{.from = half(base + 1, 1), .table = others_[0].get()},
            Rule{.dscp = 8, .table = others_[0].get()},
            Rule{.to = small_[4], .table = others_[1].get()},
            Rule{.protocol = 6,
                 .destination_ports = fib::PolicyPorts{80, 80},
                 .table = others_[1].get()},
            Rule{.from = half(base + 3, 1), .to = small_[7], .answer = hops_[0]},
            Rule{.protocol = 17,
                 .source_ports = fib::PolicyPorts{53, 53},
                 .table = others_[0].get()},
            Rule{.dscp = 46, .table = others_[1].get()},
            Rule{.table = &main}};
        return fib::Policy<Addr>::compile(rules, 0, path_.reclaimer()).value();
    }

    Path& path_;
    std::vector<net::Prefix<Addr>> full_;
    std::vector<net::Prefix<Addr>> small_;
    std::vector<std::uint32_t> hops_;
    std::vector<std::uint32_t> groups_;
    DstIndex back_ = 0;
    std::unique_ptr<Lpm> small_plain_, small_groups_, full_plain_, full_groups_;
    std::array<std::unique_ptr<Lpm>, 2> others_;
    std::unique_ptr<const fib::Policy<Addr>> policy_;
};

// --- traffic ------------------------------------------------------------------------------------

struct Traffic {
    std::string name;
    std::size_t flows;
    /// The flow of each packet.
    std::vector<std::uint32_t> sequence;
};

std::vector<Traffic> traffics() {
    std::mt19937_64 random(kSeed);
    std::vector<Traffic> all;
    const auto sequence = [&](auto&& pick) {
        std::vector<std::uint32_t> s(kSequence);
        std::ranges::generate(s, pick);
        return s;
    };
    for (const int count : kCounts) {
        const auto n = static_cast<std::size_t>(count);
        all.push_back({std::to_string(n), n, sequence([&] {
                           return static_cast<std::uint32_t>(random() % n);
                       })});
    }
    // Destinations that come once, as far as any cache can tell.
    all.push_back({"flood", kSequence, sequence([i = 0U]() mutable { return i++; })});
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
    all.push_back({"mixed", kSequence, sequence([&, i = 100U]() mutable {
                       return static_cast<std::uint32_t>(
                           random() % 2 == 0 ? random() % 100 : 100 + i++ % (kSequence - 100));
                   })});
    return all;
}

struct Mode {
    const char* name;
    CacheMode mode;
};
constexpr std::array kModes{
    Mode{"off", CacheMode::kOff}, Mode{"on", CacheMode::kOn}, Mode{"auto", CacheMode::kAuto}};

template <class Addr>
void cache_rows(Path& path,
                Tables<Addr>& tables,
                const std::vector<Traffic>& traffic,
                const Arguments& options,
                std::vector<std::unique_ptr<Path::Side>>& sides) {
    using F = FamilyOf<Addr>;
    for (const bool full : {false, true}) {
        for (const bool decision : {false, true}) {
            for (const Traffic& t : traffic) {
                const std::string id = fmt::format("cache/{}/{}/{}/{}",
                                                   F::kName,
                                                   full ? "full" : "small",
                                                   decision ? "decision" : "plain",
                                                   t.name);
                if (id.find(options.only) == std::string::npos) {
                    continue;
                }
                tables.use(full, decision);
                const auto flows = tables.flows(t.flows, full, kSeed + t.flows);
                std::array<std::size_t, kModes.size()> at{};
                const auto run = [&](std::size_t mode, std::size_t packets) {
                    path.shared().cache_mode = kModes[mode].mode;
                    std::uint64_t cycles = 0;
                    for (std::size_t done = 0; done < packets; done += kPackets) {
                        cycles += path.step(*sides[mode], flows, t.sequence, at[mode]);
                    }
                    return static_cast<double>(cycles) / static_cast<double>(packets);
                };
                // The first round is warmth; auto makes up its mind.
                for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
                    sides[mode]->context.caches.meter4 = {};
                    sides[mode]->context.caches.meter6 = {};
                    run(mode, kModes[mode].mode == CacheMode::kAuto ? 200'000 : 50'000);
                }
                for (unsigned round = 0; round < options.rounds; ++round) {
                    for (std::size_t k = 0; k < kModes.size(); ++k) {
                        const std::size_t mode = (round + k) % kModes.size();
                        const auto before = sides[mode]->block.worker().caches;
                        const double cycles = run(mode, options.packets);
                        const auto& after = sides[mode]->block.worker().caches;
                        constexpr std::size_t kIndex = sizeof(Addr) == 4 ? 0 : 1;
                        const auto hits = after[kIndex].hits - before[kIndex].hits;
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

/// Another thread changes routes of the full table, as the control thread does: publish, bump.
template <class Addr>
void churn_rows(Path& path, Tables<Addr>& tables, const Arguments& options, Path::Side& side) {
    using F = FamilyOf<Addr>;
    tables.use(true, false);
    path.shared().cache_mode = CacheMode::kOn;
    const auto flows = tables.flows(100, true, kSeed);
    std::vector<std::uint32_t> sequence(kSequence);
    std::mt19937_64 random(kSeed);
    std::ranges::generate(sequence, [&] { return static_cast<std::uint32_t>(random() % 100); });
    for (unsigned round = 0; round < options.rounds; ++round) {
        for (const unsigned rate : {0U, 10U, 1000U, 10000U}) {
            std::atomic<bool> stop{false};
            std::atomic<std::uint64_t> updates{0};
            std::jthread control([&] {
                std::mt19937_64 pick(round);
                const auto& prefixes = tables.prefixes(true);
                const auto start = std::chrono::steady_clock::now();
                while (!stop && rate != 0) {
                    const auto passed = std::chrono::steady_clock::now() - start;
                    const auto due = static_cast<std::uint64_t>(
                        std::chrono::duration<double>(passed).count() * rate);
                    for (; updates < due; ++updates) {
                        const auto& p = prefixes[pick() % prefixes.size()];
                        SLUICE_CHECK(tables.table(true).set(p, tables.hop(pick())).has_value());
                        bump(path, p);
                    }
                    std::this_thread::sleep_for(std::chrono::microseconds(50));
                }
            });
            std::size_t at = 0;
            const auto before = side.block.worker().caches[sizeof(Addr) == 4 ? 0 : 1];
            std::uint64_t cycles = 0;
            std::size_t packets = 0;
            const auto end =
                std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
            while (std::chrono::steady_clock::now() < end) {
                cycles += path.step(side, flows, sequence, at);
                packets += kPackets;
            }
            stop = true;
            control.join();
            const auto& after = side.block.worker().caches[sizeof(Addr) == 4 ? 0 : 1];
            fmt::print(
                R"({{"id": "churn/{}/{}", "round": {}, "hits": {:.5f}, "cycles": {:.2f}, "mpps": {:.3f}, "updates": {}}})"
                "\n",
                F::kName,
                rate,
                round,
                static_cast<double>(after.hits - before.hits) / static_cast<double>(packets),
                static_cast<double>(cycles) / static_cast<double>(packets),
                static_cast<double>(packets) * static_cast<double>(rte_get_tsc_hz()) /
                    static_cast<double>(cycles) / 1e6,
                updates.load());
            std::fflush(stdout);
        }
    }
}

// --- prefixes -----------------------------------------------------------------------------------

template <class Addr>
std::vector<net::Prefix<Addr>> full_table(const Arguments& options) {
    if (options.prefixes.empty()) {
        return internet_prefixes<Addr>(FamilyOf<Addr>::kFullRoutes, kSeed);
    }
    std::vector<net::Prefix<Addr>> prefixes;
    std::ifstream file(options.prefixes);
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
    if (prefixes.empty()) {
        fmt::print(stderr, "{}: no prefix of {} in it\n", options.prefixes, FamilyOf<Addr>::kName);
        std::exit(2);
    }
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
            options.packets = std::stoul(value());
        } else if (word == "--seconds") {
            options.seconds = std::stod(value());
        } else if (word == "--only") {
            options.only = value();
        } else if (word == "--prefixes") {
            options.prefixes = value();
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
void run(Path& path, const Arguments& options, std::vector<std::unique_ptr<Path::Side>>& sides) {
    // A full table costs seconds and hundreds of megabytes.
    if (options.what == "cache" && !options.only.empty() &&
        fmt::format("cache/{}/", FamilyOf<Addr>::kName).find(options.only.substr(0, 9)) ==
            std::string::npos &&
        options.only.starts_with("cache/")) {
        return;
    }
    Tables<Addr> tables(path, full_table<Addr>(options));
    if (options.what == "cache") {
        cache_rows(path, tables, traffics(), options, sides);
    } else {
        churn_rows(path, tables, options, *sides[1]);
    }
}

}  // namespace

}  // namespace sluice::test

int main(int argc, char** argv) {
    using namespace sluice::test;
    const Arguments options = parse(argc, argv);
    std::array eal{"path_bench",
                   "--no-huge",
                   "-m",
                   "256",
                   "--no-pci",
                   "--no-telemetry",
                   "--no-shconf",
                   "--log-level=lib.eal:error",
                   "-l",
                   "1"};
    std::vector<char*> arguments;
    for (const char* word : eal) {
        arguments.push_back(const_cast<char*>(word));
    }
    if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) < 0) {
        fmt::print(stderr, "the EAL does not start\n");
        return 1;
    }
    Path path;
    std::vector<std::unique_ptr<Path::Side>> sides;
    for (const Mode& mode : kModes) {
        sides.push_back(std::make_unique<Path::Side>(path, mode.name, 512));
    }
    run<sluice::net::Ipv4Addr>(path, options, sides);
    run<sluice::net::Ipv6Addr>(path, options, sides);
    std::fflush(stdout);
    std::_Exit(0);  // the bench's tables would take longer to free than to fill
}
