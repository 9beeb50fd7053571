// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/leak.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/model.h"
#include "control/controller.h"
#include "fuzz/plan.h"
#include "net/address.h"
#include "support/packet.h"

namespace sluice::test::fuzz {

namespace {

using control::RouteMode;
using control::RouteRequest;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1000 * kMs;
constexpr const char* kMacs[]{"02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"};
constexpr const char* kRed = "red";
constexpr const char* kHome = "default";

net::InterfaceAddr interface(const char* text) {
    return net::InterfaceAddr::parse(text).value();
}

config::Port port(std::uint32_t number) {
    config::Port port;
    port.device = fmt::format("dev-{}", number);
    port.settings.mac = net::MacAddr::parse(kMacs[number]).value();
    return port;
}

RouteRequest route(const char* prefix) {
    RouteRequest route;
    route.prefix = net::IpPrefix::parse(prefix).value();
    return route;
}

}  // namespace

std::string to_string(const Levels& l) {
    return fmt::format(
        "mbufs {}, dsts {}, groups {}, hosts {}, exceptions {}, uncached {}, netdevs {}",
        l.mbufs,
        l.dsts,
        l.groups,
        l.hosts,
        l.exceptions,
        l.uncached,
        l.netdevs);
}

LeakCycles::LeakCycles(const Environment& environment)
    : environment_(environment), world_(1, environment.pool(), reach_) {
    must("netns", world_.router->add_netns(kRed));
    for (std::uint32_t i = 0; i < 3; ++i) {
        const std::string name = fmt::format("p{}", i);
        must("port", world_.router->add_port(kHome, name, port(i)));
        for (const std::string& address :
             {fmt::format("10.0.{}.1/24", i), fmt::format("fd00:{}::1/64", i)}) {
            must("address", world_.router->add_address(kHome, name, interface(address.c_str())));
        }
    }
    config::NextHop hop;
    hop.via = ip("10.0.1.2");
    must("next hop", world_.router->add_nexthop(kHome, 2, hop, false, 0));
    must("host", world_.router->add_neighbor(kHome, "p1", ip("10.0.1.2"), {{2, 0xaa, 0, 0, 0, 2}}));
    world_.exchange();
    world_.most_netdevs = world_.netdevs() + 1;
}

void LeakCycles::must(const char* what, const Result<void>& result) {
    if (!result && world_.difference.empty()) {
        world_.difference = fmt::format("{}: {}", what, result.error().message);
    }
    ++reach_[what];
}

void LeakCycles::control() {
    world_.exchange();
    while (world_.engine->work()) {
    }
    world_.rcu.poll();
}

void LeakCycles::traffic(const char* name, std::uint16_t vlan) {
    const fib::NetdevView* in = world_.view(name);
    if (in == nullptr) {
        return;
    }
    std::vector<Input> frames = std::exchange(world_.answers[in->port], {});
    const auto from = [&] {
        Packet p = Packet().eth({.dst = in->mac, .src = {{2, 0xbb, 0, 0, 0, 1}}});
        return vlan != 0 ? p.vlan(vlan) : p;
    };
    for (const char* to : {"203.0.113.9", "198.51.100.9", "10.9.0.77", "10.0.2.5", "192.0.2.1"}) {
        for (std::uint16_t flow = 0; flow < 3; ++flow) {
            frames.push_back({from()
                                  .ipv4({.src = "10.9.0.2", .dst = to})
                                  .udp({.sport = static_cast<std::uint16_t>(1000 + flow)})
                                  .bytes()});
        }
    }
    for (const char* to : {"2001:db8:1::9", "fd00:9::77", "fd00:2::5"}) {
        frames.push_back({from().ipv6({.src = "fd00:9::2", .dst = to}).udp().bytes()});
    }
    // A question, which is answered and teaches who asks.
    frames.push_back({from().ipv4({.src = "10.0.0.7", .dst = "10.0.0.1"}).icmp(8).bytes()});
    world_.receive(*in, frames);
    reach_["packets"] += frames.size();
    for (auto& others : world_.answers) {  // of hosts on ports that nothing comes in by
        others.resize(std::min<std::size_t>(others.size(), 64));
    }
}

void LeakCycles::add_vlan(std::uint64_t number) {
    config::Vlan vlan;
    vlan.link = "p0";
    vlan.link_netns = kHome;
    vlan.id = static_cast<std::uint16_t>(100 + number % kKinds);
    must("vlan", world_.router->add_vlan(kHome, "v", vlan));
    must("address", world_.router->add_address(kHome, "v", interface("10.9.0.1/24")));
    must("address", world_.router->add_address(kHome, "v", interface("fd00:9::1/64")));
}

void LeakCycles::remove(const std::string& netns, const char* name) {
    const std::vector<std::string> names{name};
    const auto ticket = world_.router->delete_netdevs(netns, names);
    must("removal", ticket ? Result<void>{} : std::unexpected(ticket.error()));
}

void LeakCycles::cycle(std::uint64_t number) {
    const bool resolved = (number & 1U) != 0;
    const bool moves = (number & 2U) != 0;
    const bool drains =
        (number & 4U) != 0;  // the control thread finishes before packets come again
    const bool grouped = (number & 8U) != 0;
    const auto id = static_cast<std::uint16_t>(100 + number % kKinds);
    control::Router& router = *world_.router;

    add_vlan(number);
    config::NextHop hop;
    hop.via = ip("10.9.0.2");
    must("next hop", router.add_nexthop(kHome, 1, hop, false, 0));
    config::NextHop group;
    group.group = {{1, 1}, {2, 3}};
    if (grouped) {
        group.resilient.emplace().buckets = 8;
    }
    must("group", router.add_nexthop(kHome, 10, group, false, 0));
    RouteRequest over = route("198.51.100.0/24");
    over.nexthop = 10;
    must("route", router.add_route(kHome, over, RouteMode::kAdd));
    RouteRequest plain = route("203.0.113.0/24");
    plain.via = ip("10.9.0.2");
    must("route", router.add_route(kHome, plain, RouteMode::kAdd));
    RouteRequest six = route("2001:db8:1::/48");
    six.via = ip("fd00:9::2");
    must("route", router.add_route(kHome, six, RouteMode::kAdd));
    if (resolved) {
        must("host", router.add_neighbor(kHome, "v", ip("10.9.0.2"), {{2, 0xaa, 0, 0, 0, 9}}));
    }
    traffic("p1", 0);
    traffic("p0", id);
    world_.exchange();
    six.mtu = 1400;
    must("route", router.add_route(kHome, six, RouteMode::kReplace));
    traffic("p1", 0);
    if (drains) {
        control();
    }
    if (moves) {
        const auto ticket = router.move_link(kHome, "v", kRed);
        must("move", ticket ? Result<void>{} : std::unexpected(ticket.error()));
        must("address", router.add_address(kRed, "v", interface("10.9.0.1/24")));
        traffic("p1", 0);
        traffic("p0", id);
        world_.exchange();
    }
    remove(moves ? kRed : kHome, "v");
    traffic("p1", 0);
    if (number % kKinds == 0) {
        remove(kHome, "p2");
        traffic("p1", 0);
        control();
        must("port", router.add_port(kHome, "p2", port(2)));
        must("address", router.add_address(kHome, "p2", interface("10.0.2.1/24")));
        must("address", router.add_address(kHome, "p2", interface("fd00:2::1/64")));
    }
    control();
    // The group goes on with its other member.
    must("removal", router.delete_nexthop(kHome, 10));
    control();
    world_.pass_time(5 * kMs);
    if (number % 4 == 0) {
        world_.tick();
    }
}

void LeakCycles::run(std::uint64_t cycles) {
    for (std::uint64_t i = 0; i < cycles && world_.difference.empty(); ++i) {
        cycle(i);
    }
}

Levels LeakCycles::settled() {
    for (const char* netns : {kHome, kRed}) {
        static_cast<void>(world_.router->flush_neighbors(netns, ""));
        static_cast<void>(world_.router->flush_exceptions(netns));
    }
    for (int i = 0; i < 6; ++i) {  // what is held is given up, what nobody asks for forgotten
        world_.pass_time(kSecond);
        world_.tick();
        control();
    }
    while (world_.rcu.poll() != 0) {
    }
    const std::size_t few = std::exchange(world_.most_netdevs, kMaxNetdevs);
    world_.exchange();
    world_.most_netdevs = few;
    Levels levels{.mbufs = environment_.in_use(),
                  .dsts = world_.shared.dsts.in_use(),
                  .groups = world_.shared.groups.in_use(),
                  .hosts = world_.shared.neighbors.size(),
                  .exceptions = world_.shared.exceptions.size(),
                  .uncached = world_.engine->uncached().size()};
    for (std::size_t id = 0; id < kMaxNetdevs; ++id) {
        levels.netdevs +=
            world_.shared.netdev(NetdevId{static_cast<std::uint16_t>(id)}) != nullptr ? 1U : 0U;
    }
    return levels;
}

}  // namespace sluice::test::fuzz
