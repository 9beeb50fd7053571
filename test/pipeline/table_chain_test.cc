// SPDX-License-Identifier: BSD-3-Clause
// VRFs whose tables send on to each other: so many and no more. What `route get` says of the same
// chains is in test/control/route_get_test.cc.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/drop_reason.h"
#include "fib/dst.h"
#include "net/address.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {
namespace {

constexpr NetdevId kP0 = StageBench::kP0;
constexpr NetdevId kP1 = StageBench::kP1;

class TableChain : public StageBench {
protected:
    /// `leaks` tables send on; the last has the route.
    void chain(unsigned leaks) {
        for (unsigned i = 0; i < leaks; ++i) {
            const NetdevId vrf = add_netdev({});
            netdev(vrf).kind = fib::NetdevKind::kVrf;
            tables4_.push_back(fib::Ipv4Lpm::create({}, reclaimer()).value());
            tables6_.push_back(fib::Ipv6Lpm::create({}, reclaimer()).value());
            netdev(vrf).fib4 = tables4_.back().get();
            netdev(vrf).fib6 = tables6_.back().get();
            fib::Ipv4Lpm& before4 = i == 0 ? fib4() : *tables4_[i - 1];
            fib::Ipv6Lpm& before6 = i == 0 ? fib6() : *tables6_[i - 1];
            ASSERT_TRUE(before4.set(kTo4, fib::kTableBit | vrf.value).has_value());
            ASSERT_TRUE(before6.set(kTo6, fib::kTableBit | vrf.value).has_value());
        }
        const RouteSpec by_h1_4{.via = "10.0.1.2", .dev = kP1};
        const RouteSpec by_h1_6{.via = "fd00:1::2", .dev = kP1};
        ASSERT_TRUE(tables4_.back()->set(kTo4, add_dst(net::Family::kIpv4, by_h1_4)).has_value());
        ASSERT_TRUE(tables6_.back()->set(kTo6, add_dst(net::Family::kIpv6, by_h1_6)).has_value());
        bump();
    }

    static inline const net::Ipv4Prefix kTo4{V4("198.51.100.0"), 24};
    static inline const net::Ipv6Prefix kTo6{V6("2001:db8:9::"), 48};
    std::vector<std::unique_ptr<fib::Ipv4Lpm>> tables4_;
    std::vector<std::unique_ptr<fib::Ipv6Lpm>> tables6_;
};

struct Row {
    std::string name;
    unsigned leaks;
    bool arrives;
};

class TableChains : public TableChain, public testing::WithParamInterface<Row> {};

TEST_P(TableChains, Check_118_ends_where_route_get_says) {
    chain(GetParam().leaks);
    const std::vector<Bytes> frames{Packet().eth().ipv4({.dst = "198.51.100.1"}).udp().bytes(),
                                    Packet().eth().ipv6({.dst = "2001:db8:9::1"}).udp().bytes()};
    for (int again = 0; again < 2; ++again) {  // cold and cached
        receive(kP0, frames);
        EXPECT_EQ(take_sent().size(), GetParam().arrives ? 2U : 0U);
    }
    EXPECT_EQ(drops(kP0, DropReason::kRouteLoop), GetParam().arrives ? 0U : 4U);
}

INSTANTIATE_TEST_SUITE_P(Leaks,
                         TableChains,
                         testing::Values(Row{"one", 1, true},
                                         Row{"as_many_as_may_be", fib::kMaxTableSteps, true},
                                         Row{"one_more", fib::kMaxTableSteps + 1, false}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace sluice::test
