// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/world.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/drop_reason.h"
#include "config/diff.h"
#include "fib/dst.h"
#include "net/wire.h"
#include "support/frame.h"

namespace sluice::test::fuzz {

namespace {

constexpr std::uint64_t kStartNs = 1'000'000'000'000;
constexpr std::uint64_t kHousekeepingNs = 100'000'000;
constexpr std::size_t kDsts = 32768;
constexpr std::size_t kNeighborBuckets = 4096;
constexpr std::uint64_t kAnswersStream = ~std::uint64_t{0};
constexpr std::uint64_t kWorldStream = kAnswersStream - 1;
/// Of the clock that slices of removals are measured with: a look at it takes that long.
constexpr auto kLookAtClock = std::chrono::microseconds(100);

/// In half of the worlds stamps wrap after a few hundred changes.
fib::Stamp last_stamp_of(std::uint64_t seed) {
    Dice dice(seed, kWorldStream);
    return dice.one_in(2) ? ~fib::Stamp{0} : 64 + dice.below(256);
}

std::size_t cache_entries(std::uint64_t seed) {
    Dice dice(seed, kWorldStream - 1);
    return std::size_t{16} << dice.below(8);  // small ones displace much
}

}  // namespace

World::World(std::uint64_t seed, rte_mempool* pool, Reach& reach)
    : now_ns(kStartNs),
      reach_(reach),
      last_stamp(last_stamp_of(seed)),
      changes(rcu, last_stamp),
      shared(kDsts, kNeighborBuckets, 0x2545f4914f6cdd1dU, changes),
      answers_dice_(seed, kAnswersStream),
      names_(kMaxNetdevs),
      before_(kMaxNetdevs) {
    shared.flow_seed = Dice(seed, kWorldStream - 2).next();
    std::vector<const stats::Block*> blocks;
    const std::pair<const char*, fib::CacheMode> modes[]{{"on", fib::CacheMode::kOn},
                                                         {"off", fib::CacheMode::kOff},
                                                         {"auto", fib::CacheMode::kAuto}};
    for (const auto& [name, mode] : modes) {
        forwarders.push_back(
            std::make_unique<Forwarder>(name,
                                        static_cast<std::uint16_t>(forwarders.size()),
                                        mode,
                                        shared,
                                        pool,
                                        cache_entries(seed),
                                        now_ns));
        blocks.push_back(&forwarders.back()->block);
    }
    plane = std::make_unique<FakePlane>(std::move(blocks), now_ns);
    control::EngineOptions options;
    options.ipv4_routes = 20'000;
    options.ipv6_routes = 20'000;
    options.neighbors.max_entries = 64;  // full now and then
    options.neighbors.seed = static_cast<std::uint32_t>(seed);
    options.clock = [this, looks = 0]() mutable {
        meet(false);
        return now() + ++looks * kLookAtClock;
    };
    plane->asked = [this] { meet(false); };
    auto made = control::Engine::create(options, shared, changes, *plane);
    SLUICE_CHECK(made.has_value());
    engine = std::move(*made);
    changes.on_change = [this, told = std::move(changes.on_change)](const net::IpPrefix* prefix) {
        meet(true);
        told(prefix);
        meet(true);
    };
    router = std::make_unique<control::Router>(*engine, config::starting_point(config::Config{}));
}

World::~World() {
    router.reset();
    forwarders[0]->context.caches.clear();
    engine->close_ports();
    while (engine->work()) {
    }
    while (rcu.poll() != 0) {
    }
    engine.reset();
    while (rcu.poll() != 0) {
    }
}

void World::log(std::string_view what, std::string_view text) const {
    fmt::print("    {} ({}): {}\n", what, where, text);
    std::fflush(stdout);
}

void World::count(std::string_view what, std::uint64_t by) {
    reach_[std::string(what)] += by;
}

// --- what is there ------------------------------------------------------------------------------

std::vector<const fib::NetdevView*> World::ports() const {
    std::vector<const fib::NetdevView*> found;
    engine->netdevs().for_each([&](const control::Netdev& netdev) {
        const fib::NetdevView* view = shared.netdev(netdev.id);
        if (view != nullptr && view->kind == fib::NetdevKind::kPort) {
            found.push_back(view);
        }
    });
    return found;
}

std::vector<const fib::NetdevView*> World::ingresses(const fib::NetdevView& port) const {
    std::vector<const fib::NetdevView*> found{&port};
    engine->netdevs().for_each([&](const control::Netdev& netdev) {
        const fib::NetdevView* view = shared.netdev(netdev.id);
        if (view != nullptr && view->kind == fib::NetdevKind::kVlan && view->port == port.port) {
            found.push_back(view);
        }
    });
    return found;
}

const fib::NetdevView* World::view(std::string_view name) const {
    const fib::NetdevView* found = nullptr;
    engine->netdevs().for_each([&](const control::Netdev& netdev) {
        if (netdev.name == name) {
            found = shared.netdev(netdev.id);
        }
    });
    return found;
}

const fib::NetdevView* World::port_of(std::uint16_t device) const {
    for (std::uint16_t id = 0; id < kMaxNetdevs; ++id) {
        const fib::NetdevView* view = shared.netdev(NetdevId{id});
        if (view != nullptr && view->kind == fib::NetdevKind::kPort && view->port == device) {
            return view;
        }
    }
    return nullptr;
}

std::string World::netns_of(std::string_view name) const {
    std::string found;
    engine->netdevs().for_each([&](const control::Netdev& netdev) {
        if (netdev.name == name && netdev.netns != nullptr) {
            found = netdev.netns->name;
        }
    });
    return found;
}

// --- traffic ------------------------------------------------------------------------------------

void World::receive(const fib::NetdevView& port, const std::vector<Input>& frames) {
    if (!difference.empty()) {
        return;
    }
    burst = frames;
    for (const auto& forwarder : forwarders) {
        forwarder->receive(port, frames);
    }
    compare_all("burst");
    check_isolation(&port);
    count_ends();
    exchange();
}

void World::note_netdevs() {
    engine->netdevs().for_each([&](const control::Netdev& netdev) {
        netdevs_ = std::max<std::size_t>(netdevs_, netdev.id.value + 1U);
    });
    sent_before_.resize(kMaxNetdevs);
}

void World::settle() {
    note_netdevs();
    for (const auto& forwarder : forwarders) {
        forwarder->let_go();
    }
    for (const auto& forwarder : forwarders) {
        if (forwarder.get() != &uncached()) {
            forwarder->take_counters(uncached(), netdevs_);
        }
    }
    for (std::uint16_t id = 0; id < netdevs_; ++id) {
        sent_before_[id] = uncached().block.netdev(NetdevId{id}).tx_packets;
    }
}

void World::compare_all(std::string_view what) {
    note_netdevs();
    for (const auto& forwarder : forwarders) {
        if (forwarder.get() == &uncached() || !difference.empty()) {
            continue;
        }
        const std::string text = compare(*forwarder, uncached(), std::min(netdevs_, most_netdevs));
        if (!text.empty()) {
            difference = fmt::format("{}, cache {} against off:\n{}", what, forwarder->name, text);
        }
    }
}

/// What holds with and without a cache: books balance, and nothing leaves by a netdev that is not
/// there, or that no packet's netns has (M-03).
void World::check_isolation(const fib::NetdevView* port) {
    if (!difference.empty()) {
        return;
    }
    std::set<NetnsId> from;
    if (port != nullptr) {
        for (const fib::NetdevView* in : ingresses(*port)) {
            from.insert(in->netns);
        }
    }
    if (port != nullptr) {
        left_by.clear();
    }
    for (std::uint16_t id = 0; id < std::min(netdevs_, most_netdevs); ++id) {
        const stats::NetdevCounters& counters = uncached().block.netdev(NetdevId{id});
        const std::uint64_t sent = counters.tx_packets - sent_before_[id];
        sent_before_[id] = counters.tx_packets;
        if (stats::imbalance(counters) != 0) {
            difference = fmt::format("books of netdev {} do not balance", id);
        }
        if (sent == 0) {
            continue;
        }
        if (port != nullptr) {
            left_by.push_back(NetdevId{id});
        }
        const fib::NetdevView* out = shared.netdev(NetdevId{id});
        if (out == nullptr) {
            difference = fmt::format("{} packets left by netdev {}, which is gone", sent, id);
        } else if (port != nullptr && !from.contains(out->netns)) {
            difference = fmt::format("{} packets left by netdev {} of netns {}, where none came in",
                                     sent,
                                     id,
                                     out->netns.value);
        } else if (!out->up) {
            difference = fmt::format("{} packets left by netdev {}, which is down", sent, id);
        }
    }
}

void World::count_ends() {
    static constexpr const char* kTypes[]{"none",
                                          "unicast",
                                          "connected",
                                          "local",
                                          "broadcast",
                                          "unreachable",
                                          "prohibit",
                                          "blackhole",
                                          "source-invalid",
                                          "route-loop",
                                          "group-empty"};
    const auto look = [&](const auto& uncached_batch, const auto& cached_batch, int family) {
        for (std::size_t i = 0; i < uncached_batch.count; ++i) {
            const fib::DstIndex index = uncached_batch.dsts[i];
            if (index == fib::kNoRoute || (index & fib::kSpecialBits) != 0) {
                continue;
            }
            const fib::Dst& dst = shared.dsts[index];
            count(
                fmt::format("passed by {}{}", kTypes[static_cast<std::size_t>(dst.type)], family));
            if ((dst.state.load() & fib::Dst::kExpires) != 0) {
                count(fmt::format("passed by exception{}", family));
            }
            if (dst.counter != 0) {
                count(fmt::format("passed by next hop{}", family));
            }
        }
        for (std::size_t k = 0; k < cached_batch.pending_count; ++k) {
            if ((cached_batch.pending[k].value & fib::kGroupBit) != 0) {
                count(fmt::format("group in cache{}", family));
            }
        }
        for (std::size_t i = 0; i < uncached_batch.count; ++i) {
            const fib::NetdevView& in = *uncached_batch.packets[i].in;
            const auto rules = [&](const auto* policy) {
                if (policy != nullptr) {
                    count(fmt::format("rules{}", family));
                    count(fmt::format("rules of source{}", family), policy->reads_source() ? 1 : 0);
                    count(fmt::format("rules of ports{}", family),
                          policy->reads_transport() ? 1 : 0);
                    count(fmt::format("rules past the cache{}", family),
                          policy->cacheable() ? 0 : 1);
                }
            };
            family == 4 ? rules(in.policy4) : rules(in.policy6);
        }
    };
    look(uncached().storage.ip4, cached().storage.ip4, 4);
    look(uncached().storage.ip6, cached().storage.ip6, 6);
}

// --- between workers and the control thread -----------------------------------------------------

/// What the control thread asks on the wire, a host may answer.
void World::answer(NetdevId netdev, const Bytes& frame) {
    const fib::NetdevView* view = shared.netdev(netdev);
    if (view == nullptr || answers_dice_.one_in(4)) {
        return;
    }
    const Frame asked = parse_frame(frame);
    const Mac mac(
        net::MacAddr{{2, 0xaa, 0, 0, 0, static_cast<std::uint8_t>(1 + answers_dice_.below(3))}});
    Packet reply;
    reply.eth({.dst = view->mac, .src = mac});
    if (view->vlan_id != 0) {
        reply.vlan(view->vlan_id);
    }
    if (asked.arp && asked.arp->operation.host() == net::ArpHeader::kRequest &&
        asked.arp->sender_ip != asked.arp->target_ip) {
        reply.arp({.operation = net::ArpHeader::kReply,
                   .sender_mac = mac,
                   .sender_ip = asked.arp->target_ip,
                   .target_mac = view->mac,
                   .target_ip = asked.arp->sender_ip});
    } else if (asked.icmp && asked.ipv6 && asked.icmp->type == 135 && asked.payload.size() >= 16) {
        V6 target;
        std::copy_n(asked.payload.begin(), 16, target.bytes.begin());
        reply.ipv6({.src = target, .dst = asked.ipv6->source, .hop_limit = 255})
            .ndp_na({.target = target, .solicited = true, .override = true, .target_link = mac});
    } else {
        return;
    }
    answers[view->port].push_back({.bytes = reply.bytes()});
}

/// An id means another netdev only when no worker holds a packet that came in by the one before.
void World::check_ids() {
    std::vector<std::string> names(kMaxNetdevs);
    engine->netdevs().for_each([&](const control::Netdev& netdev) {
        const std::size_t id = netdev.id.value;
        names[id] = fmt::format("{} of {}", netdev.name, netdev.netns->name);
        if (names[id] == names_[id] || !difference.empty()) {
            return;
        }
        for (const auto& forwarder : forwarders) {
            if (forwarder->held(netdev.id) != 0) {
                difference = fmt::format(
                    "{} got the id {} of {}, whose packets are held\n", names[id], id, before_[id]);
                return;
            }
        }
        before_[id] = names[id];
    });
    names_ = std::move(names);
}

void World::exchange() {
    check_ids();
    // In turn, one thing of each: the control thread's answers then come in one order for all.
    const auto for_each = [&](auto member, auto&& fn) {
        const std::size_t size = (uncached().output.*member).size();
        for (std::size_t i = 0; i < size; ++i) {
            for (std::size_t worker = 0; worker < forwarders.size(); ++worker) {
                fn(worker, (forwarders[worker]->output.*member)[i]);
            }
        }
    };
    // Answers to what workers do on commands may ask again; bounded, the rest waits.
    for (unsigned round = 0; round < 4 && difference.empty(); ++round) {
        for_each(&Output::punted, [&](std::size_t, const Output::Punted& punted) {
            engine->punted(punted.ingress, punted.bytes, punted.l3_offset, now());
            count("punted");
        });
        for_each(&Output::events, [&](std::size_t worker, const pipeline::WorkerEvent& event) {
            engine->handle(worker, event, now());
            count(fmt::format("event {}", static_cast<int>(event.kind)));
        });
        for (const auto& forwarder : forwarders) {
            forwarder->output.clear();
        }
        for (const auto& [netdev, frame] : std::exchange(plane->sent, {})) {
            answer(netdev, frame);
        }
        const auto commands = std::exchange(
            plane->commands, std::vector<std::vector<pipeline::WorkerCommand>>(forwarders.size()));
        if (std::ranges::all_of(commands, [](const auto& list) { return list.empty(); })) {
            break;
        }
        for (std::size_t worker = 0; worker < forwarders.size(); ++worker) {
            forwarders[worker]->obey(commands[worker]);
        }
        count("released", uncached().output.sent.size());
        compare_all("released packets");
        check_isolation(nullptr);
    }
}

void World::pass_time(std::uint64_t ns) {
    now_ns += ns;
    for (const auto& forwarder : forwarders) {
        forwarder->context.now_ns = now_ns;
    }
    if (now_ns >= next_housekeeping_ns_) {
        next_housekeeping_ns_ = now_ns + kHousekeepingNs;
        for (const auto& forwarder : forwarders) {
            forwarder->housekeeping();
        }
        compare_all("housekeeping");
        exchange();
    }
}

void World::tick() {
    engine->neighbors().table().tick(now());
    engine->tick();
    exchange();
}

}  // namespace sluice::test::fuzz
