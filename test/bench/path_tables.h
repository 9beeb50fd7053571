// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "base/check.h"
#include "fib/dst.h"
#include "fib/group.h"
#include "fib/lpm.h"
#include "fib/lpm_lookup.h"
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

/// What path_bench forwards by and with: tables of both sizes and kinds, packets in memory.
namespace sluice::test {

using fib::CacheMode;
using fib::DstIndex;

inline constexpr std::size_t kBurst = 32;
inline constexpr std::size_t kBursts = 8;  // between two refills: their headers stay in L2
inline constexpr std::size_t kPackets = kBurst * kBursts;
inline constexpr std::uint64_t kSeed = 20261130;

inline std::uint16_t send_nowhere(std::uint16_t /*port*/,
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

    Tables(Path& path,
           const std::vector<net::Prefix<Addr>>& full,
           const fib::LookupImpl& lookup = fib::best_lookup())
        : path_(path), full_(full), lookup_(lookup) {
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

    /// So many different destinations over all routes alike, as far as those have so many.
    std::vector<Flow<Addr>> flows(std::size_t count, bool full, std::uint64_t seed) const {
        std::mt19937_64 random(seed);
        const auto sources = prefix<Addr>(F::kSources);
        const auto& from = prefixes(full);
        std::set<Addr> seen;
        std::size_t repeats = 0;  // a short table runs out of addresses
        std::vector<Flow<Addr>> flows;
        while (flows.size() < count) {
            const Addr destination = test::random_address(from[random() % from.size()], random);
            if (usable(destination) && (seen.insert(destination).second || ++repeats > 4 * count)) {
                flows.push_back({test::random_address(sources, random), destination});
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
        auto table =
            Lpm::create({.max_routes = 1'200'000, .lookup = &lookup_}, path_.reclaimer()).value();
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
    const fib::LookupImpl& lookup_;
    std::vector<net::Prefix<Addr>> small_;
    std::vector<std::uint32_t> hops_;
    std::vector<std::uint32_t> groups_;
    DstIndex back_ = 0;
    std::unique_ptr<Lpm> small_plain_, small_groups_, full_plain_, full_groups_;
    std::array<std::unique_ptr<Lpm>, 2> others_;
    std::unique_ptr<const fib::Policy<Addr>> policy_;
};

}  // namespace sluice::test
