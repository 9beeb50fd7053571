// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "base/id.h"
#include "control/neighbor_table.h"
#include "net/address.h"

namespace sluice::control {
namespace {

using namespace std::chrono_literals;

/// What workers and hosts would believe, built from the calls alone, and the promises that every
/// single call must keep.
class World final : public NeighborActions {
public:
    void solicit(const NeighborKey& key, std::optional<net::MacAddr> unicast_to) override {
        const auto last = last_solicit.find(key);
        if (last != last_solicit.end()) {
            EXPECT_GE(now - last->second, settings.retrans_time) << "asked too soon";
        }
        last_solicit[key] = now;
        EXPECT_FALSE(permanent.contains(key)) << "asked for a static neighbor";
        if (unicast_to) {
            EXPECT_EQ(dst[key], *unicast_to) << "probe to a MAC that no dst has";
        }
        ++solicits;
    }
    void reachable(const NeighborKey& key, const net::MacAddr& mac) override {
        dst[key] = mac;
        waiting.erase(key);
    }
    void report_use(const NeighborKey& key, bool on) override {
        EXPECT_TRUE(dst.contains(key)) << "report before reachable";
        EXPECT_EQ(reports.contains(key), !on) << "no change";
        on ? void(reports.insert(key)) : void(reports.erase(key));
    }
    void failed(const NeighborKey& key) override {
        EXPECT_TRUE(dst.erase(key) == 1 || waiting.contains(key)) << "failed without reason";
        waiting.erase(key);
        ++failures;
    }
    void removed(const NeighborKey& key, NeighborState) override {
        if (!by_user) {
            EXPECT_FALSE(pins.contains(key)) << "a gateway was forgotten";
            EXPECT_FALSE(permanent.contains(key)) << "a static neighbor was forgotten";
            EXPECT_FALSE(waiting.contains(key)) << "a waiting packet was forgotten";
            ++forgotten;
        }
        dst.erase(key);
        waiting.erase(key);
        reports.erase(key);
        last_solicit.erase(key);
    }

    const NeighborSettings settings{.max_entries = 24, .timers_per_tick = 5};
    Time now = 5h;
    bool by_user = false;
    std::map<NeighborKey, net::MacAddr> dst;
    std::map<NeighborKey, net::MacAddr> permanent;
    std::map<NeighborKey, Time> waiting;  // since when a worker holds a packet
    std::map<NeighborKey, Time> last_solicit;
    std::set<NeighborKey> reports;
    std::multiset<NeighborKey> pins;
    std::size_t solicits = 0, failures = 0, forgotten = 0, refused = 0;
};

class Fuzz : public testing::TestWithParam<std::uint32_t> {
protected:
    std::uint32_t below(std::uint32_t n) {
        return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random);
    }
    bool one_in(std::uint32_t n) { return below(n) == 0; }

    NeighborKey any_key() {
        const NetdevId netdev{static_cast<std::uint16_t>(1 + below(2))};
        const auto last = static_cast<std::uint8_t>(1 + below(16));
        if (one_in(2)) {
            return {netdev, net::Ipv4Addr{{10, 0, 0, last}}};
        }
        net::Ipv6Addr address{{0xfd}};
        address.bytes[15] = last;
        return {netdev, address};
    }
    net::MacAddr any_mac() { return {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(below(3))}}; }

    void resolve(const NeighborKey& key) {
        const Resolve answer = table.resolve(key, world.now);
        if (answer == Resolve::kStarted) {
            world.waiting.emplace(key, world.now);
        }
        EXPECT_EQ(answer == Resolve::kKnown, world.dst.contains(key));
        world.refused += answer == Resolve::kTableFull ? 1 : 0;
    }

    void observe(const NeighborKey& key) {
        Observation observation{.solicited = one_in(2), .override = one_in(2), .create = one_in(3)};
        if (!one_in(5)) {
            observation.mac = any_mac();
        }
        if (one_in(2)) {
            observation.is_router = one_in(2);
        }
        const bool known = table.find(key) != nullptr;
        const Observed answer = table.observe(key, observation, world.now);
        EXPECT_EQ(answer == Observed::kUnknown,
                  !known && (!observation.create || !observation.mac));
        if (answer == Observed::kTableFull) {
            EXPECT_EQ(table.size(), world.settings.max_entries);
        }
    }

    void configure(const NeighborKey& key) {
        world.by_user = true;
        switch (below(4)) {
            case 0:
                table.flush(key.netdev, true);
                break;
            case 1:
                std::erase_if(world.permanent,
                              [&](const auto& p) { return p.first.netdev == key.netdev; });
                table.flush(key.netdev, false);
                break;
            default: {
                const bool known = table.find(key) != nullptr;
                world.permanent.erase(key);
                EXPECT_EQ(table.remove(key), known);
            }
        }
        world.by_user = false;
    }

    void add_permanent(const NeighborKey& key) {
        const net::MacAddr mac = any_mac();
        if (table.add_permanent(key, mac, world.now)) {
            world.permanent[key] = mac;
        }
    }

    void pin_or_unpin(const NeighborKey& key) {
        if (const auto it = world.pins.find(key); it != world.pins.end() && !one_in(3)) {
            world.pins.erase(it);
            table.unpin(key);
        } else if (world.pins.size() < 10) {
            world.pins.insert(key);
            table.pin(key);
        }
    }

    void step() {
        const NeighborKey key = any_key();
        const std::uint32_t event = below(1000);
        if (event < 350) {
            resolve(key);
        } else if (event < 500) {
            if (world.reports.contains(key) || one_in(10)) {  // late reports exist
                table.used(key, world.now);
            }
        } else if (event < 700) {
            observe(key);
        } else if (event < 705) {
            add_permanent(key);
        } else if (event < 715) {
            configure(key);
        } else if (event < 750) {
            pin_or_unpin(key);
        } else {
            world.now += one_in(10) ? std::chrono::milliseconds(below(20'000))
                                    : std::chrono::milliseconds(below(300));
        }
        while (table.next_deadline().value_or(Time::max()) <= world.now) {
            ASSERT_GT(table.tick(world.now), 0U);
        }
    }

    void check() {
        ASSERT_LE(table.size(), world.settings.max_entries);
        std::array<std::size_t, kNeighborStates> counts{};
        std::size_t with_mac = 0;
        std::size_t stale = 0;
        table.for_each([&](const Neighbor& n) {
            ++counts[std::to_underlying(n.state)];
            const auto dst = world.dst.find(n.key);
            EXPECT_EQ(n.mac.has_value(), dst != world.dst.end());
            EXPECT_TRUE(!n.mac || dst->second == *n.mac) << "workers have another MAC";
            with_mac += n.mac ? 1 : 0;
            stale += n.state == NeighborState::kStale ? 1 : 0;
            EXPECT_EQ(n.state == NeighborState::kStale, world.reports.contains(n.key));
            EXPECT_EQ(n.state == NeighborState::kPermanent, world.permanent.contains(n.key));
            EXPECT_EQ(n.pinned, world.pins.contains(n.key));
            EXPECT_LE(n.since, world.now);
        });
        EXPECT_EQ(with_mac, world.dst.size());
        EXPECT_EQ(stale, world.reports.size());
        std::size_t sum = 0;
        for (std::size_t i = 0; i < kNeighborStates; ++i) {
            EXPECT_EQ(table.count(static_cast<NeighborState>(i)), counts[i]);
            sum += counts[i];
        }
        EXPECT_EQ(sum, table.size());
        for (const auto& [key, mac] : world.permanent) {
            ASSERT_NE(table.find(key), nullptr);
            EXPECT_EQ(table.find(key)->mac, mac) << "a static neighbor changed";
        }
        for (const auto& [key, since] : world.waiting) {
            ASSERT_NE(table.find(key), nullptr) << "a packet waits for nobody";
            EXPECT_EQ(table.find(key)->state, NeighborState::kIncomplete);
        }
    }

    std::mt19937 random{GetParam()};
    World world;
    NeighborTable table{world, world.settings};
};

TEST_P(Fuzz, PromisesHoldUnderAnyEvents) {
    for (int i = 0; i < 30'000 && !HasFailure(); ++i) {
        step();
        check();
    }
    // The run went everywhere it should.
    EXPECT_GT(world.solicits, 100U);
    EXPECT_GT(world.failures, 20U);
    EXPECT_GT(world.forgotten, 100U);
    EXPECT_GT(world.refused, 20U);

    // Left alone, all that nobody needs goes away, in bounded time: nobody waits for ever.
    world.now += 4s;
    for (int i = 0; i < 10; ++i) {
        while (table.next_deadline().value_or(Time::max()) <= world.now) {
            table.tick(world.now);
        }
        world.now += 1s;
    }
    EXPECT_TRUE(world.waiting.empty());
    for (int i = 0; i < 1000; ++i) {
        world.now += 1s;
        table.tick(world.now);
    }
    check();
    EXPECT_EQ(table.next_deadline(), std::nullopt);
    table.for_each(
        [&](const Neighbor& n) { EXPECT_TRUE(n.pinned || n.state == NeighborState::kPermanent); });
}

INSTANTIATE_TEST_SUITE_P(Seeds, Fuzz, testing::Range(1U, 9U));

}  // namespace
}  // namespace sluice::control
