// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/policies.h"
#include "engine_fixture.h"
#include "fib/group.h"
#include "net/wire.h"

namespace sluice::control::test {

/// The bench with next-hop objects, rules, and a worker's way through what is published.
class NextHopTest : public EngineTest {
protected:
    NextHopTest() {
        add_bench();
        settle();
    }

    Netns& netns() { return engine->default_netns(); }

    // --- next hops ---
    static config::NextHop over(std::string_view gateway, std::string dev = "") {
        config::NextHop hop;
        hop.via = ip(gateway);
        hop.dev = std::move(dev);
        return hop;
    }
    static config::NextHop on_link(std::string_view gateway, std::string dev) {
        config::NextHop hop = over(gateway, std::move(dev));
        hop.on_link = true;
        return hop;
    }
    static config::NextHop dev(std::string name) {
        config::NextHop hop;
        hop.dev = std::move(name);
        return hop;
    }
    static config::NextHop blackhole() {
        config::NextHop hop;
        hop.blackhole = true;
        return hop;
    }
    static config::NextHop group(std::map<std::uint32_t, std::uint32_t> members) {
        config::NextHop hop;
        hop.group = std::move(members);
        return hop;
    }
    static config::NextHop resilient(std::map<std::uint32_t, std::uint32_t> members,
                                     std::uint16_t buckets,
                                     int idle_ms) {
        config::NextHop hop = group(std::move(members));
        hop.resilient = config::ResilientGroup{.buckets = buckets,
                                               .idle_timer = std::chrono::milliseconds(idle_ms)};
        return hop;
    }
    Result<void> engine_add(std::uint32_t id, const config::NextHop& hop) {
        return engine->add_nexthop(netns(), id, hop, RouteOwner::kCli, false);
    }
    Result<void> engine_replace(std::uint32_t id, const config::NextHop& hop) {
        return engine->add_nexthop(netns(), id, hop, RouteOwner::kCli, true);
    }
    void nexthop(std::uint32_t id, const config::NextHop& hop) { expect_ok(engine_add(id, hop)); }
    void replace(std::uint32_t id, const config::NextHop& hop, std::string_view want = "fine") {
        EXPECT_EQ(code(engine_replace(id, hop)), want);
    }
    static RouteRequest over_object(std::string_view to, std::uint32_t id) {
        RouteRequest route;
        route.prefix = prefix(to);
        route.nexthop = id;
        return route;
    }
    Result<void> add_over(std::string_view to, std::uint32_t id) {
        return engine->add_route(netns(), over_object(to, id), RouteMode::kAdd);
    }
    void route_over(std::string_view to,
                    std::uint32_t id,
                    RouteMode mode = RouteMode::kAdd,
                    std::string_view want = "fine") {
        EXPECT_EQ(code(engine->add_route(netns(), over_object(to, id), mode)), want);
    }
    NextHopInfo info(std::uint32_t id) {
        for (const NextHopInfo& each : engine->nexthops(netns())) {
            if (each.id == id) {
                return each;
            }
        }
        ADD_FAILURE() << "no next hop " << id;
        return {};
    }
    std::string ids() {
        std::string text;
        for (const NextHopInfo& each : engine->nexthops(netns())) {
            text += fmt::format("{}{}", text.empty() ? "" : " ", each.id);
        }
        return text;
    }

    /// Everything there is to see, of next hops and rules too.
    std::string dump_all() {
        std::string text = dump();
        for (const NextHopInfo& each : engine->nexthops(netns())) {
            text += fmt::format("\nnexthop {} {} {} {} {} {}",
                                each.id,
                                each.hop.via ? each.hop.via->to_string() : "-",
                                each.hop.dev,
                                each.hop.blackhole,
                                each.active,
                                each.routes);
            for (const auto& member : each.members) {
                text += fmt::format(" {}:{}/{}", member.id, member.weight, member.buckets);
            }
        }
        for (const RuleInfo& each : engine->rules(netns())) {
            text += fmt::format("\nrule {} {}", each.rule.priority, each.rule.table);
        }
        return text + fmt::format("\n{} groups, generations {} {}",
                                  shared.groups.in_use(),
                                  netns().generations4.whole(),
                                  netns().generations6.whole());
    }
    /// A change that is refused and leaves everything as it was.
    template <class Change>
    void unchanged(Change&& change, ErrorCode want) {
        settle();
        const std::string before = dump_all();
        const Result<void> result = change();
        ASSERT_FALSE(result.has_value());
        EXPECT_EQ(to_string(result.error().code), to_string(want)) << result.error().message;
        EXPECT_FALSE(result.error().message.empty());
        settle();
        EXPECT_EQ(dump_all(), before);
    }

    // --- what a worker does ---
    /// What the tables and rules say of a packet that comes in by `in`.
    std::uint32_t value_of(std::string_view address, std::string_view in = "p0") {
        const net::IpAddr a = ip(address);
        const fib::NetdevView& ingress = *view(in);
        return a.is_v4() ? ingress.fib4->lookup_one(a.v4()) : ingress.fib6->lookup_one(a.v6());
    }
    std::string text_of(fib::DstIndex index) {
        const fib::Dst& d = shared.dsts[index];
        if ((d.state.load() & fib::Dst::kGone) != 0) {
            return "gone";
        }
        if (d.type == fib::DstType::kConnected) {
            return "dev " + engine->netdevs().find(d.out)->name;
        }
        if (d.type != fib::DstType::kUnicast) {
            return std::string(type_name(d.type));
        }
        return d.gateway_is_v6 != 0 ? net::IpAddr{d.gateway6()}.to_string()
                                    : net::IpAddr{d.gateway4()}.to_string();
    }
    std::vector<std::string> buckets(std::string_view address, std::string_view in = "p0") {
        const std::uint32_t value = value_of(address, in);
        if ((value & fib::kGroupBit) == 0) {
            return {text_of(value)};
        }
        const fib::Group* group = shared.groups[value];
        if (group == nullptr) {
            return {"no member"};
        }
        std::vector<std::string> list;
        for (std::uint32_t bucket = 0; bucket <= group->mask; ++bucket) {
            list.push_back(text_of(group->buckets[bucket].dst.load()));
        }
        return list;
    }
    /// Where packets go and in which proportion: "10.0.0.2 x1, 10.0.1.2 x3".
    std::string paths(std::string_view address, std::string_view in = "p0") {
        std::map<std::string, std::size_t> counts;
        std::size_t common = 0;
        for (const std::string& each : buckets(address, in)) {
            ++counts[each];
        }
        for (const auto& [path, count] : counts) {
            common = std::gcd(common, count);
        }
        std::string text;
        for (const auto& [path, count] : counts) {
            text += (text.empty() ? "" : ", ") + path;
            text += counts.size() == 1 ? "" : fmt::format(" x{}", count / common);
        }
        return text;
    }
    void send(std::string_view address, std::uint32_t packets) {
        const fib::Group* group = shared.groups[value_of(address)];
        ASSERT_NE(group, nullptr);
        for (std::uint32_t hash = 0; hash < packets; ++hash) {
            const fib::Dst& d = shared.dsts[group->pick(hash, plane.clock_s())];
            stats::bump(plane.blocks[0].next_hop(d.counter));
        }
    }
    void pass_seconds(std::uint32_t seconds) { plane.seconds += seconds; }
    void use_all_buckets(std::string_view address) { send(address, 16384); }
};

}  // namespace sluice::control::test
