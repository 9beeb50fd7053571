// SPDX-License-Identifier: BSD-3-Clause
// A directed broadcast of one of our own subnets is for the router itself, whatever a rule's table
// says of it.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "fib/dst.h"
#include "fib/netdev_view.h"
#include "fib/policy.h"
#include "net/address.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {
namespace {

constexpr NetdevId kP0 = StageBench::kP0;
constexpr NetdevId kP1 = StageBench::kP1;

class OwnBroadcast : public StageBench {
protected:
    OwnBroadcast() {
        // Everything by H1, from a table that knows nothing of our addresses.
        other_ = fib::Ipv4Lpm::create({}, reclaimer()).value();
        SLUICE_CHECK(other_
                         ->set({V4("0.0.0.0"), 0},
                               add_dst(net::Family::kIpv4, {.via = "10.0.1.2", .dev = kP1}))
                         .has_value());
        const std::vector<fib::PolicyRule<net::Ipv4Addr>> rules{{.table = other_.get()},
                                                                {.table = &fib4()}};
        policy_ = fib::Ipv4Policy::compile(rules, 0, reclaimer()).value();
        netdev(kP0).policy4 = policy_.get();
        bump();
    }
    std::unique_ptr<fib::Ipv4Lpm> other_;
    std::unique_ptr<const fib::Ipv4Policy> policy_;
};

TEST_F(OwnBroadcast, Check_12_13_no_rule_takes_it_away) {
    struct Row {
        std::string name;
        const char* to;
        bool own;
    };
    const std::vector<Row> rows{{"broadcast of the ingress link", "10.0.0.255", true},
                                {"broadcast of the other link", "10.0.1.255", true},
                                {"own address", "10.0.0.1", true},
                                {"a host of the ingress link", "10.0.0.9", false},
                                {"a broadcast of nobody's", "10.0.2.255", false}};
    for (const Row& row : rows) {
        SCOPED_TRACE(row.name);
        const Bytes frame = Packet().eth().ipv4({.dst = row.to}).udp().bytes();
        for (int again = 0; again < 2; ++again) {  // cold and cached
            const auto before = counters(kP0);
            receive(kP0, std::vector<Bytes>{frame});
            const auto after = counters(kP0);
            EXPECT_EQ(after.forwarded - before.forwarded, row.own ? 0U : 1U);
            take_sent();
        }
    }
    const Bytes echo = Packet().eth().ipv4({.dst = "10.0.1.255"}).icmp(8).payload(8).bytes();
    receive(kP0, std::vector<Bytes>{echo});
    const auto sent = take_sent();
    ASSERT_EQ(sent.size(), 1U) << "checks.md 12: answered";
    EXPECT_EQ(sent[0].port, 0U);
}

}  // namespace
}  // namespace sluice::test
