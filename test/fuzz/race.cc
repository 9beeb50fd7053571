// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/race.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/drop_reason.h"
#include "control/netns.h"
#include "fib/dst.h"
#include "fuzz/churn.h"
#include "fuzz/plan.h"

namespace sluice::test::fuzz {

namespace {

constexpr std::size_t kFrames = 48;
constexpr unsigned kMeetings = 12;                       // in the middle of one change
constexpr std::uint64_t kExpiry = 601ULL * 1000000000U;  // longer than anything is believed
constexpr std::uint32_t kNarrow = 1000;                  // stamps that come round soon enough

/// What a packet of the last burst was decided to go by.
struct Decided {
    NetdevId in;
    NetdevId domain;
    net::IpAddr destination;
    fib::DstIndex dst = fib::kNoRoute;
};

/// The same frames again and again.
class Meeting {
public:
    Meeting(World& world, const fib::NetdevView& port, std::vector<Input> frames, Dice& dice)
        : world_(world), device_(port.port), frames_(std::move(frames)), dice_(dice) {}

    bool fine() const { return world_.difference.empty(); }

    void receive() {
        if (const fib::NetdevView* port = world_.port_of(device_); port != nullptr) {
            world_.receive(*port, frames_);
        }
    }

    template <class Change>
    void during(Change&& change) {
        if (!fine()) {
            return;
        }
        met_ = 0;
        world_.amid = [this](bool certain) { meet(certain); };
        change();
        world_.amid = nullptr;
        if (fine()) {
            world_.settle();
            world_.exchange();
            receive();
        }
    }

    /// One that went on, by chance.
    std::optional<Decided> decided() {
        const auto& ip4 = world_.uncached().storage.ip4;
        const auto& ip6 = world_.uncached().storage.ip6;
        for (unsigned attempt = 0; attempt < 8 && ip4.count + ip6.count != 0; ++attempt) {
            const std::size_t i = dice_.below(ip4.count + ip6.count);
            const auto of = [&](const auto& batch, std::size_t at) {
                const fib::NetdevView& in = *batch.packets[at].in;
                return Decided{.in = in.id,
                               .domain = in.domain,
                               .destination = batch.destinations[at],
                               .dst = batch.dsts[at]};
            };
            const Decided found = i < ip4.count ? of(ip4, i) : of(ip6, i - ip4.count);
            if (found.dst != fib::kNoRoute && (found.dst & fib::kSpecialBits) == 0) {
                return found;
            }
        }
        return std::nullopt;
    }

private:
    static std::uint64_t ends(const Forwarder& forwarder, DropReason reason) {
        std::uint64_t sum = 0;
        for (const auto& drops : forwarder.block.worker().drops_by_family) {
            sum += drops[std::to_underlying(reason)];
        }
        return sum;
    }

    void meet(bool certain) {
        const fib::NetdevView* port = world_.port_of(device_);
        if (port == nullptr || !fine() || met_ == kMeetings ||
            (!certain && !dice_.one_in(1 + met_))) {
            return;
        }
        ++met_;
        world_.burst = frames_;
        const std::uint64_t lost_by_cached = lost(world_.cached(), *port);
        const std::uint64_t lost_by_uncached = lost(world_.uncached(), *port);
        world_.count("amid a change");
        world_.count("gone amid a change", lost_by_cached);
        if (fine() && lost_by_cached > lost_by_uncached) {
            world_.difference =
                fmt::format("amid a change {} packets ended at what is gone, {} without a cache\n",
                            lost_by_cached,
                            lost_by_uncached);
        }
    }

    /// How many of the frames end at something that is gone, or, as without a cache the source is
    /// asked for first, because of their source.
    std::uint64_t lost(Forwarder& forwarder, const fib::NetdevView& port) {
        const bool uncached = &forwarder == &world_.uncached();
        const auto sum = [&] {
            return ends(forwarder, DropReason::kNetdevGone) +
                   (uncached ? ends(forwarder, DropReason::kSourceInvalid) : 0);
        };
        const std::uint64_t before = sum();
        std::vector<std::uint64_t> sent(world_.netdevs());
        for (std::uint16_t id = 0; id < sent.size(); ++id) {
            sent[id] = forwarder.block.netdev(NetdevId{id}).tx_packets;
        }
        forwarder.receive(port, frames_);
        for (std::uint16_t id = 0; id < sent.size(); ++id) {
            if (world_.shared.netdev(NetdevId{id}) == nullptr &&
                forwarder.block.netdev(NetdevId{id}).tx_packets != sent[id]) {
                world_.difference = fmt::format(
                    "amid a change packets left by netdev {}, which is gone, cache {}\n",
                    id,
                    forwarder.name);
            }
        }
        for (const pipeline::WorkerEvent& event : forwarder.output.events) {
            const NetdevId netdev = event.key.netdev();
            if (event.kind == pipeline::WorkerEvent::Kind::kResolve &&
                world_.shared.netdev(netdev) == nullptr) {
                world_.difference = fmt::format(
                    "amid a change packets wait at netdev {}, which is gone, cache {}\n",
                    netdev.value,
                    forwarder.name);
            }
        }
        forwarder.lose_output();
        return sum() - before;
    }

    World& world_;
    std::uint16_t device_;
    std::vector<Input> frames_;
    Dice& dice_;
    unsigned met_ = 0;
};

// --- what is changed -----------------------------------------------------------------------------

void some_change(World& world, Meeting& meeting, Dice& dice) {
    meeting.during([&] { change(world, dice); });
}

/// What leads to it, or it itself, goes.
void remove_netdev(World& world, Meeting& meeting, Dice& dice) {
    const control::Netdev* netdev =
        world.left_by.empty() ? nullptr : world.engine->netdevs().find(dice.of(world.left_by));
    if (netdev == nullptr || !netdev->is_link()) {
        some_change(world, meeting, dice);
        return;
    }
    const std::string name = netdev->name;
    const std::string netns = netdev->netns->name;
    world.where = name + " of " + netns;
    if (dice.one_in(3)) {  // what is removed after it waits for it
        const std::string other = link_name(dice.below(kLinks));
        if (other != name && !world.netns_of(other).empty()) {
            load_link(world, dice, other);
            meeting.during([&] { delete_link(world, dice, other); });
        }
    }
    if (dice.one_in(3)) {
        load_link(world, dice, name);
    }
    meeting.receive();
    const std::uint32_t kind = dice.below(6);
    meeting.during([&] {
        if (kind == 0) {
            control::LinkChange down;
            down.up = false;
            world.note("change_link", world.router->change_link(netns, name, down));
        } else if (kind < 3) {
            world.note("move_link", world.router->move_link(netns, name, dice.of(kNetns)));
        } else {
            delete_link(world, dice, name);
        }
    });
    for (unsigned slices = dice.below(4); slices > 0; --slices) {
        meeting.during([&] { world.engine->work(); });
    }
    bring_back(world, dice);
    world.exchange();
    meeting.receive();
}

/// The neighbor that a packet went to goes, and perhaps comes back as somebody else.
void replace_neighbor(World& world, Meeting& meeting, Dice& dice) {
    const auto packet = meeting.decided();
    const fib::Dst* dst = packet ? &world.shared.dsts[packet->dst] : nullptr;
    if (dst == nullptr ||
        (dst->type != fib::DstType::kConnected && dst->type != fib::DstType::kUnicast)) {
        some_change(world, meeting, dice);
        return;
    }
    const control::Netdev* netdev = world.engine->netdevs().find(dst->out);
    if (netdev == nullptr) {
        return;
    }
    const std::string name = netdev->name;
    const std::string netns = netdev->netns->name;
    world.where = name + " of " + netns;
    const net::IpAddr host = dst->type == fib::DstType::kConnected ? packet->destination
                             : dst->gateway_is_v6 != 0             ? net::IpAddr{dst->gateway6()}
                                                                   : net::IpAddr{dst->gateway4()};
    meeting.during(
        [&] { world.note("delete_neighbor", world.router->delete_neighbor(netns, name, host)); });
    world.rcu.poll();
    if (!dice.one_in(3)) {
        const net::MacAddr mac = host_mac(dice);
        meeting.during([&] {
            world.note("add_neighbor", world.router->add_neighbor(netns, name, host, mac));
        });
    }
}

/// A destination that gets a route of its own, which is then taken away.
class OwnRoute {
public:
    OwnRoute(World& world, const Decided& packet) : world_(world) {
        const control::Netdev* domain = world.engine->netdevs().find(packet.domain);
        if (domain == nullptr || domain->table == nullptr) {
            return;
        }
        netns_ = domain->netns->name;
        const std::uint8_t bits = packet.destination.is_v4() ? 32 : 128;
        route_.prefix = net::IpPrefix::of(packet.destination, bits);
        route_.table = domain->table->id;
        world.where = route_.prefix.to_string() + " of " + netns_;
    }
    void add(Dice& dice) {
        control::RouteRequest route = route_;
        route.type = dice.one_in(2) ? "blackhole" : "prohibit";
        world_.note("replace_route",
                    world_.router->add_route(netns_, route, control::RouteMode::kReplace));
    }
    void remove() { world_.note("delete_route", world_.router->delete_route(netns_, route_)); }

private:
    World& world_;
    std::string netns_;
    control::RouteRequest route_;
};

void replace_route(World& world, Meeting& meeting, Dice& dice) {
    const auto packet = meeting.decided();
    if (!packet) {
        some_change(world, meeting, dice);
        return;
    }
    OwnRoute route(world, *packet);
    meeting.during([&] { route.add(dice); });
    meeting.during([&] { route.remove(); });
}

/// Nobody asks for a destination while its stamps come round to the one that it is cached with.
void come_round(World& world, Meeting& meeting, Dice& dice) {
    const auto packet = meeting.decided();
    const control::Netdev* in = packet ? world.engine->netdevs().find(packet->in) : nullptr;
    // Not too often: it empties every cache.
    if (world.last_stamp > kNarrow || in == nullptr || !dice.one_in(3)) {
        replace_route(world, meeting, dice);
        return;
    }
    control::Netns& netns = *in->netns;
    const net::IpAddr& address = packet->destination;
    const auto stamp = [&] {
        return address.is_v4() ? netns.generations4.stamp(address.v4())
                               : netns.generations6.stamp(address.v6());
    };
    const fib::Stamp then = stamp();
    OwnRoute route(world, *packet);
    route.add(dice);
    for (fib::Stamp i = 0; i < 2 * world.last_stamp && stamp() != then; ++i) {
        const control::Changes::Scope scope(world.changes);
        world.changes.all(netns);
    }
    world.count("stamps came round", stamp() == then ? 1 : 0);
    world.exchange();
    meeting.receive();
    meeting.during([&] { route.remove(); });
}

/// What was learned ends while the control thread does not look.
void expire(World& world, Meeting& meeting, Dice& dice) {
    const auto packet = meeting.decided();
    if (!packet) {
        return;
    }
    const pipeline::WorkerEvent event{
        .kind = pipeline::WorkerEvent::Kind::kPathMtu,
        .mtu = static_cast<std::uint16_t>(dice.from(1280, 1400)),
        .ingress = packet->in,
        .key = fib::NeighborKeyWords::of(packet->domain, packet->destination)};
    meeting.during([&] { world.engine->handle(0, event, world.now()); });
    meeting.receive();
    const auto learned = meeting.decided();
    world.pass_time(kExpiry);
    world.count("expired in cache",
                learned && (world.shared.dsts[learned->dst].state.load() & fib::Dst::kExpires) != 0
                    ? 1
                    : 0);
    meeting.receive();
    world.tick();
    meeting.receive();
}

}  // namespace

void race(World& world, Traffic& traffic, std::uint32_t phase, Dice& dice) {
    const auto ports = world.ports();
    if (ports.empty()) {
        return;
    }
    const fib::NetdevView* port = dice.of(ports);
    if (!port->has_ipv4 && !port->has_ipv6) {
        port = dice.of(ports);
    }
    std::vector<Input> frames = traffic.burst(world, *port, phase, dice);
    frames.resize(std::min(frames.size(), kFrames));
    Meeting meeting(world, *port, std::move(frames), dice);
    meeting.receive();  // may put into the cache, and be held
    meeting.receive();
    if (!meeting.fine()) {
        return;
    }
    switch (dice.below(12)) {
        case 0:
        case 1:
        case 2:
            remove_netdev(world, meeting, dice);
            break;
        case 3:
        case 4:
            replace_neighbor(world, meeting, dice);
            break;
        case 5:
            replace_route(world, meeting, dice);
            break;
        case 6:
            come_round(world, meeting, dice);
            break;
        case 7:
            expire(world, meeting, dice);
            break;
        default:
            some_change(world, meeting, dice);
            break;
    }
}

}  // namespace sluice::test::fuzz
