// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/differential.h"

#include <algorithm>

#include <fmt/format.h>

#include "fuzz/churn.h"
#include "fuzz/race.h"
#include "fuzz/traffic.h"

namespace sluice::test::fuzz {

namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint32_t kPhase = 40;  // steps

void pass_time(World& world, Dice& dice) {
    const std::uint64_t much[]{0, 1, 1, 5, 5, 20, 100, 1000};
    std::uint64_t ns = dice.of(much) * kMs;
    if (dice.one_in(60)) {
        ns = dice.from(5, 60) * 1000 * kMs;
    } else if (dice.one_in(50)) {
        ns = 650'000 * kMs;  // what was learned expires
    }
    world.pass_time(ns);
    if (!dice.one_in(3)) {  // workers may see the time first
        world.tick();
    }
}

/// The control thread's other work, of which there may be none for a while.
void control(World& world, Dice& dice) {
    if (dice.percent(70)) {
        world.rcu.poll();
    }
    if (dice.percent(60) && world.engine->work()) {
        world.count("slices");
    }
    world.exchange();
}

}  // namespace

std::optional<Failure> run(const Plan& plan, rte_mempool* pool, Reach& reach) {
    World world(plan.seed, pool, reach);
    world.trace = plan.trace;
    Traffic traffic(plan.seed);
    Dice dice(plan.seed, 0);
    set_up(world, dice);
    world.exchange();
    std::uint32_t step = 0;
    const auto late = [&] { return std::chrono::steady_clock::now() >= plan.until; };
    for (; step < plan.steps && world.difference.empty() && !late(); ++step) {
        if (plan.without.contains(step)) {
            continue;
        }
        Dice chance(plan.seed, step + 1);
        if (plan.trace) {
            fmt::print("step {}\n", step);
        }
        for (std::uint32_t changes = chance.of({0U, 0U, 0U, 0U, 1U, 1U, 2U}); changes > 0;
             --changes) {
            change(world, chance);
            world.exchange();
        }
        control(world, chance);
        pass_time(world, chance);
        if (chance.one_in(8)) {
            race(world, traffic, step / kPhase, chance);
        }
        const auto ports = world.ports();
        const fib::NetdevView* port = nullptr;
        for (std::uint32_t bursts = chance.from(4, 24); bursts > 0 && !ports.empty() && !late();
             --bursts) {
            port = port == nullptr || chance.one_in(8) ? chance.of(ports) : port;
            if (!port->has_ipv4 && !port->has_ipv6) {
                port = chance.of(ports);
            }
            std::vector<Input> frames = traffic.burst(world, *port, step / kPhase, chance);
            const bool last = plan.only_packet && step + 1 == plan.steps && bursts == 1;
            if (last && *plan.only_packet < frames.size()) {
                frames = {frames[*plan.only_packet]};
            }
            world.count("packets", frames.size());
            world.receive(*port, frames);
            if (!world.difference.empty()) {
                break;
            }
        }
    }
    const auto& caches = world.cached().block.worker().caches;
    for (const std::size_t family : {0UL, 1UL}) {
        const auto of = [&](const char* what) { return fmt::format("{}{}", what, family * 2 + 4); };
        world.count(of("hits"), caches[family].hits);
        world.count(of("misses"), caches[family].misses);
        world.count(of("stale"), caches[family].stale);
        world.count(of("source hits"), caches[family].source_hits);
        const auto& drops = world.uncached().block.worker().drops_by_family[family + 1];
        for (std::size_t reason = 1; reason < kDropReasons; ++reason) {
            if (drops[reason] != 0) {
                world.count(fmt::format("drop {}{}", kDropInfo[reason].name, family * 2 + 4),
                            drops[reason]);
            }
        }
    }
    world.count("redirects", world.uncached().block.worker().redirects_sent);
    world.count("epochs", world.shared.cache_epoch.load());
    world.count("runs");
    if (world.difference.empty()) {
        return std::nullopt;
    }
    return Failure{step - 1, world.difference, world.burst};
}

Plan shorten(Plan plan, const Failure& failure, rte_mempool* pool, unsigned runs) {
    Reach ignored;
    plan.until = std::chrono::steady_clock::time_point::max();
    plan.steps = failure.step + 1;
    std::uint32_t piece = std::max<std::uint32_t>(plan.steps / 2, 1);
    // Pieces from the back: what made the difference is mostly recent.
    for (; piece >= 1 && runs > 0; piece /= 2) {
        for (std::uint32_t end = plan.steps - 1; end > 0 && runs > 0;) {
            const std::uint32_t begin = end > piece ? end - piece : 0;
            Plan shorter = plan;
            for (std::uint32_t step = begin; step < end; ++step) {
                shorter.without.insert(step);
            }
            end = begin;
            if (shorter.without.size() == plan.without.size()) {
                continue;
            }
            --runs;
            if (const auto again = run(shorter, pool, ignored)) {
                shorter.steps = again->step + 1;
                plan = std::move(shorter);
            }
        }
    }
    for (std::uint32_t packet = 0; packet < failure.burst.size() && runs > 0; ++packet, --runs) {
        Plan shorter = plan;
        shorter.only_packet = packet;
        if (run(shorter, pool, ignored)) {
            return shorter;
        }
    }
    return plan;
}

std::string describe(const Plan& plan, const Failure& failure) {
    std::string without;
    for (std::uint32_t step = 0; step < plan.steps; ++step) {
        without += plan.without.contains(step) ? "" : fmt::format(" {}", step);
    }
    std::string text = fmt::format("seed {}, step {}; steps that it takes:{}\n{}",
                                   plan.seed,
                                   failure.step,
                                   without,
                                   failure.what);
    for (std::size_t i = 0; i < failure.burst.size() && failure.burst.size() <= 8; ++i) {
        text += fmt::format("packet {}:\n{}\n", i, to_hex(failure.burst[i].bytes));
    }
    return text;
}

std::string missing(const Reach& reach) {
    static constexpr const char* kWanted[]{"call add_port",
                                           "call add_vlan",
                                           "call add_vrf",
                                           "call add_netns",
                                           "call delete_netns",
                                           "call delete_netdevs",
                                           "call change_link",
                                           "call move_link",
                                           "call add_address",
                                           "call delete_address",
                                           "call add_route",
                                           "call replace_route",
                                           "call delete_route",
                                           "call flush_routes",
                                           "call add_nexthop",
                                           "call add_group",
                                           "call add_resilient",
                                           "call delete_nexthop",
                                           "call flush_nexthops",
                                           "call add_rule",
                                           "call delete_rule",
                                           "call add_neighbor",
                                           "call delete_neighbor",
                                           "call flush_neighbors",
                                           "call flush_exceptions",
                                           "many routes",
                                           "cache",
                                           "multipath hash",
                                           "instance",
                                           "carrier",
                                           "learned",
                                           "slices",
                                           "amid a change",
                                           "gone amid a change",
                                           "expired in cache",
                                           "stamps came round",
                                           "epochs",
                                           "released",
                                           "punted",
                                           "redirects",
                                           "stale4",
                                           "stale6",
                                           "source hits4",
                                           "source hits6",
                                           "passed by unicast4",
                                           "passed by unicast6",
                                           "passed by connected4",
                                           "passed by connected6",
                                           "passed by local4",
                                           "passed by local6",
                                           "passed by exception4",
                                           "passed by exception6",
                                           "passed by next hop4",
                                           "passed by next hop6",
                                           "group in cache4",
                                           "group in cache6",
                                           "rules of source4",
                                           "rules of source6",
                                           "rules of ports4",
                                           "rules of ports6",
                                           "drop no_route4",
                                           "drop no_route6",
                                           "drop route_unreachable4",
                                           "drop route_unreachable6",
                                           "drop route_prohibit4",
                                           "drop route_prohibit6",
                                           "drop route_blackhole4",
                                           "drop route_blackhole6",
                                           "drop route_loop4",
                                           "drop route_loop6",
                                           "drop source_invalid4",
                                           "drop source_invalid6",
                                           "drop ttl_expired4",
                                           "drop ttl_expired6",
                                           "drop fragmentation_needed4",
                                           "drop packet_too_big6",
                                           "drop forwarding_disabled4",
                                           "drop forwarding_disabled6",
                                           "drop destination_broadcast4",
                                           "drop netdev_gone4",
                                           "drop neighbor_failed4",
                                           "drop martian_source_zero4",
                                           "drop martian_source_loopback4",
                                           "drop martian_source_multicast4",
                                           "drop martian_source_broadcast4",
                                           "drop martian_source_own4",
                                           "drop martian_destination_loopback4",
                                           "drop martian_source_zero6",
                                           "drop martian_source_loopback6",
                                           "drop martian_source_multicast6",
                                           "drop martian_source_link_local6",
                                           "drop l2_broadcast_unicast4",
                                           "drop l2_broadcast_unicast6"};
    std::string text;
    const auto of = [&](std::string_view what) {
        const auto it = reach.find(what);
        return it == reach.end() ? std::uint64_t{0} : it->second;
    };
    for (const char* what : kWanted) {
        if (of(what) == 0) {
            text += fmt::format("{}\n", what);
        }
    }
    // Races, and stamps that come round, cost hits.
    if (2 * (of("hits4") + of("hits6")) <= of("misses4") + of("misses6")) {
        text += "half as many hits as misses\n";
    }
    return text;
}

std::string to_string(const Reach& reach) {
    std::string text;
    for (const auto& [what, count] : reach) {
        text += fmt::format("{:>12} {}\n", count, what);
    }
    return text;
}

}  // namespace sluice::test::fuzz
