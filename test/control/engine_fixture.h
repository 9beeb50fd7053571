// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/engine.h"
#include "control/netdevs.h"
#include "dpdk/rcu.h"
#include "fib/dst_cache.h"
#include "fib/shared.h"
#include "support/packet.h"

/// An engine on fake devices and fake workers; needs no EAL. A grace period is over when the test
/// says so, with settle().
namespace sluice::control::test {

using sluice::test::Bytes;

inline net::IpAddr ip(std::string_view text) {
    return *net::IpAddr::parse(text);
}
inline net::IpPrefix prefix(std::string_view text) {
    return *net::IpPrefix::parse(text);
}
inline net::InterfaceAddr interface(std::string_view text) {
    return *net::InterfaceAddr::parse(text);
}
inline net::MacAddr mac(std::string_view text) {
    return *net::MacAddr::parse(text);
}

inline const net::MacAddr kHostMac = mac("02:aa:00:00:00:02");
inline const net::MacAddr kGatewayMac = mac("02:aa:00:00:01:02");

/// What all fake devices share: who is open, what they refuse.
struct FakeHardware {
    std::set<std::string> open;
    std::uint16_t next_id = 0;
    std::uint16_t rx_queues = 1;
    std::uint16_t max_mtu = 9000;
    bool mtu_needs_stop = false;
    bool link_up = true;
    std::vector<std::string> log;  // device calls that are about order
};

class FakeDevice final : public PortDevice {
public:
    FakeDevice(FakeHardware& hardware, const dpdk::PortOptions& options)
        : hardware_(hardware),
          device_(options.device),
          id_(hardware.next_id++),
          own_mac_({{0x06, 0, 0, 0, 0, static_cast<std::uint8_t>(id_.value)}}),
          mac_(options.mac.value_or(own_mac_)),
          mtu_(options.mtu) {}
    ~FakeDevice() override {
        hardware_.open.erase(device_);
        hardware_.log.push_back(fmt::format("close {}", device_));
    }
    PortId id() const noexcept override { return id_; }
    const std::string& driver() const noexcept override { return driver_; }
    const net::MacAddr& mac() const noexcept override { return mac_; }
    const net::MacAddr& own_mac() const noexcept override { return own_mac_; }
    std::uint16_t rx_queues() const noexcept override { return hardware_.rx_queues; }
    std::optional<dpdk::RxWakeup> rx_wakeup(std::uint16_t) const noexcept override { return {}; }
    std::uint16_t mtu() const noexcept override { return mtu_; }
    dpdk::Link link() const noexcept override { return {.up = hardware_.link_up}; }
    std::vector<std::string> take_notes() override { return {}; }
    Result<void> set_mtu(std::uint16_t mtu) override {
        if (mtu > hardware_.max_mtu) {
            return fail(ErrorCode::kInvalid, "MTU {} is too large", mtu);
        }
        if (hardware_.mtu_needs_stop && started_) {
            return fail(ErrorCode::kBusy, "stop first");
        }
        hardware_.log.push_back("mtu");
        mtu_ = mtu;
        return {};
    }
    Result<void> set_mac(const net::MacAddr& mac) override {
        mac_ = mac;
        return {};
    }
    Result<void> set_promiscuous(bool on) override {
        promiscuous = on;
        return {};
    }
    Result<void> start() override {
        started_ = true;
        hardware_.log.push_back("start");
        return {};
    }
    void stop() override {
        started_ = false;
        hardware_.log.push_back("stop");
    }
    bool promiscuous = false;

private:
    FakeHardware& hardware_;
    std::string device_;
    std::string driver_ = "fake";
    PortId id_;
    net::MacAddr own_mac_;
    net::MacAddr mac_;
    std::uint16_t mtu_;
    bool started_ = true;
};

class FakeDataplane final : public Dataplane {
public:
    explicit FakeDataplane(std::size_t workers)
        : queues(workers), commands(workers), blocks(workers) {}

    std::size_t workers() const noexcept override { return queues.size(); }
    Result<std::unique_ptr<PortDevice>> open(const dpdk::PortOptions& options) override {
        if (options.device == "broken") {
            return fail(ErrorCode::kDevice, "no such device");
        }
        if (!hardware.open.insert(options.device).second) {
            return fail(ErrorCode::kExists, "{} is open", options.device);
        }
        hardware.log.push_back(fmt::format("open {}", options.device));
        return std::make_unique<FakeDevice>(hardware, options);
    }
    void publish_queues(std::size_t worker,
                        std::unique_ptr<const pipeline::RxQueueList> list) override {
        queues[worker] = *list;
    }
    bool send(std::size_t worker, const pipeline::WorkerCommand& command) override {
        if (commands[worker].size() >= command_room) {
            return false;
        }
        commands[worker].push_back(command);
        return true;
    }
    bool transmit(NetdevId netdev, std::span<const std::uint8_t> frame) override {
        sent.emplace_back(netdev, Bytes(frame.begin(), frame.end()));
        return true;
    }
    const stats::Block& block(std::size_t worker) const noexcept override { return blocks[worker]; }
    std::uint32_t clock_s() const noexcept override { return seconds; }
    std::vector<WorkerInfo> worker_infos() const override { return {}; }
    std::vector<PoolInfo> pool_infos() const override { return {}; }

    FakeHardware hardware;
    std::vector<pipeline::RxQueueList> queues;
    std::vector<std::vector<pipeline::WorkerCommand>> commands;
    std::size_t command_room = 1000;
    std::vector<stats::Block> blocks;
    std::uint32_t seconds = 1000;
    std::vector<std::pair<NetdevId, Bytes>> sent;
};

class EngineTest : public ::testing::Test {
protected:
    /// `look`: how far the clock goes each time that somebody reads it.
    explicit EngineTest(std::size_t workers = 1,
                        EngineOptions options = {},
                        Time look = std::chrono::nanoseconds(0))
        : plane(workers) {
        options.clock = [this, look] { return now += look; };
        engine = *Engine::create(options, shared, changes, plane);
    }

    /// The test bench of the cases: p0 and p1, no routes.
    void add_bench() {
        add_port("p0", "02:00:00:00:00:01");
        add_port("p1", "02:00:00:00:00:02");
        for (const auto& [dev, address] : {std::pair{"p0", "10.0.0.1/24"},
                                           {"p0", "fd00::1/64"},
                                           {"p1", "10.0.1.1/24"},
                                           {"p1", "fd00:1::1/64"}}) {
            expect_ok(engine->add_address(ns(), dev, interface(address)));
        }
        plane.sent.clear();
    }
    void add_port(const std::string& name, std::string_view address) {
        config::Port port;
        port.device = fmt::format("dev-{}", name);
        port.settings.mac = mac(address);
        expect_ok(engine->add_port(ns(), name, port));
    }
    void add_vlan(const std::string& name, const std::string& link, std::uint16_t id) {
        config::Vlan vlan;
        vlan.link = link;
        vlan.id = id;
        expect_ok(engine->add_vlan(ns(), name, vlan));
    }
    static RouteRequest via(std::string_view to, std::string_view gateway) {
        RouteRequest route;
        route.prefix = prefix(to);
        route.via = ip(gateway);
        return route;
    }
    static RouteRequest typed(std::string_view to, std::string type) {
        RouteRequest route;
        route.prefix = prefix(to);
        route.type = std::move(type);
        return route;
    }
    void add(const RouteRequest& route) {
        expect_ok(engine->add_route(ns(), route, RouteMode::kAdd));
    }
    void set_up(const std::string& name, bool up) {
        config::NetdevSettings settings = netdev(name).settings;
        settings.up = up;
        expect_ok(engine->change_netdev(ns(), name, settings));
    }
    template <class T>
    static void expect_ok(const Result<T>& result) {
        EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
    }
    template <class T>
    static std::string code(const Result<T>& result) {
        return result ? "fine" : std::string(to_string(result.error().code));
    }

    Netns& ns(std::string_view name = "default") { return *engine->netns().find(name); }
    Netdev& netdev(std::string_view name, std::string_view netns = "default") {
        return *ns(netns).find(name);
    }
    const fib::NetdevView* view(std::string_view name) { return shared.netdev(netdev(name).id); }
    /// What a worker finds for a packet to `address`.
    const fib::Dst& dst(std::string_view address) {
        const net::IpAddr a = ip(address);
        const auto* any = shared.netdev(NetdevId{1});
        return shared
            .dsts[a.is_v4() ? any->fib4->lookup_one(a.v4()) : any->fib6->lookup_one(a.v6())];
    }
    /// "unicast via 10.0.1.2 dev p1" and the like, of the route that packets take.
    std::string route(std::string_view address) {
        const RouteLookup found = *engine->lookup_route(ns(), {.destination = ip(address)});
        EXPECT_EQ(found.type, type_name(dst(address).type)) << "table and lookup disagree";
        std::string text = found.type;
        if (found.via) {
            text += fmt::format(" via {}", found.via->to_string());
        }
        if (!found.dev.empty()) {
            text += fmt::format(" dev {}", found.dev);
        }
        return text;
    }
    /// Everything there is to see, to compare before and after. Ids on request: a netdev that is
    /// made anew may get another.
    enum class Ids { kShown, kHidden };
    std::string dump(Ids ids = Ids::kShown) {
        std::map<std::string, std::string> netdevs;
        std::map<NetdevId, std::string> names;
        engine->netdevs().for_each([&](const Netdev& netdev) {
            const std::string name = fmt::format("{}/{}", netdev.netns->name, netdev.name);
            std::string& text = netdevs[name];
            names[netdev.id] = name;
            text = fmt::format("{} {} {} {} {} {}",
                               ids == Ids::kShown ? netdev.id.value : 0,
                               name,
                               netdev.mac.to_string(),
                               netdev.settings.mtu,
                               netdev.up(),
                               netdev.master == nullptr ? "-" : netdev.master->name);
            for (const auto& own : netdev.addresses) {
                text += fmt::format(" {}", own.to_string());
            }
        });
        std::string text;
        for (const auto& [name, line] : netdevs) {
            text += fmt::format("{}\n", line);
        }
        const auto show = [&](const RouteInfo& r) {
            text += fmt::format("{} {} {} {} {} {} {} {} {}\n",
                                r.prefix.to_string(),
                                r.type,
                                r.via ? r.via->to_string() : "-",
                                r.dev,
                                r.table,
                                r.metric,
                                r.mtu,
                                to_string(r.owner),
                                r.active);
        };
        engine->netns().for_each([&](const Netns& netns) {
            text += fmt::format("netns {}\n", netns.name);
            for (const auto& [id, table] : netns.tables) {
                engine->for_each_route(netns, id, show);
            }
            for (const NextHopInfo& hop : engine->nexthops(netns)) {
                text += fmt::format("nexthop {} {} {}", hop.id, hop.active, hop.routes);
                for (const auto& member : hop.members) {
                    text += fmt::format(" {}:{}", member.id, member.buckets);
                }
                text += "\n";
            }
        });
        engine->neighbors().table().for_each([&](const Neighbor& n) {
            text += fmt::format(
                "{} {} {}\n", names[n.key.netdev], n.key.address.to_string(), to_string(n.state));
        });
        return text + fmt::format("{} dsts", shared.dsts.in_use());
    }
    /// All grace periods are over.
    void settle() {
        while (rcu.pending() != 0) {
            rcu.poll();
        }
    }

    /// Of a flush, to its end.
    std::size_t removed(const Flush& flush) {
        while (engine->work()) {
        }
        settle();
        EXPECT_TRUE(engine->settled(flush.ticket));
        return *flush.removed;
    }

    // --- the worker's and the wire's part ---
    void resolve(std::string_view dev, std::string_view address, std::size_t worker = 0) {
        engine->neighbors().handle(worker,
                                   {.kind = pipeline::WorkerEvent::Kind::kResolve,
                                    .key = fib::NeighborKeyWords::of(netdev(dev).id, ip(address))},
                                   now);
    }
    /// A frame that a worker punts; returns how it was booked.
    DropReason punt(std::string_view dev, const Bytes& frame) {
        const NetdevId id = netdev(dev).id;
        const stats::NetdevCounters before = engine->block().netdev(id);
        engine->punted(id, frame, 14, now);
        const stats::NetdevCounters after = engine->block().netdev(id);
        EXPECT_EQ(after.held, before.held - 1);
        for (std::size_t reason = 1; reason < kDropReasons; ++reason) {
            if (after.drops[reason] != before.drops[reason]) {
                EXPECT_EQ(after.delivered, before.delivered);
                return static_cast<DropReason>(reason);
            }
        }
        EXPECT_EQ(after.delivered, before.delivered + 1);
        return DropReason::kNone;
    }
    /// "10.0.0.2 stale 02:aa:...", or "none".
    std::string neighbor(std::string_view dev, std::string_view address) {
        const Neighbor* n = engine->neighbors().table().find({netdev(dev).id, ip(address)});
        if (n == nullptr) {
            return "none";
        }
        std::string text(to_string(n->state));
        if (n->mac) {
            text += fmt::format(" {}", n->mac->to_string());
        }
        return text;
    }
    const fib::Dst* host(std::string_view dev, std::string_view address) {
        const auto index =
            shared.neighbors.find(fib::NeighborKeyWords::of(netdev(dev).id, ip(address)));
        return index == fib::kNoRoute ? nullptr : &shared.dsts[index];
    }
    static net::MacAddr mac_in(const fib::Dst& d, std::size_t at) {
        net::MacAddr m;
        std::copy_n(d.rewrite.begin() + static_cast<std::ptrdiff_t>(at), 6, m.bytes.begin());
        return m;
    }
    static bool resolved(const fib::Dst& d) { return (d.state.load() & fib::Dst::kResolved) != 0; }

    dpdk::RcuDomain rcu;
    Changes changes{rcu};
    fib::Shared shared{4096, 1024, 12345, changes};
    FakeDataplane plane;
    std::unique_ptr<Engine> engine;
    Time now = std::chrono::seconds(100);
};

}  // namespace sluice::control::test
