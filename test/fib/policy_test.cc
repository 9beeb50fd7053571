// SPDX-License-Identifier: BSD-3-Clause
#include "fib/policy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fib/dst.h"
#include "fib/lpm.h"
#include "fib/lpm_support.h"
#include "net/address.h"

namespace sluice::fib::test {
namespace {

template <class Addr>
struct TestPacket {
    Addr source{}, destination{};
    std::uint8_t dscp = 0;
    Transport transport{};
};

/// The rules as they are written, one packet and one rule at a time.
template <class Addr>
std::uint32_t naive(std::span<const PolicyRule<Addr>> rules,
                    std::uint32_t mark,
                    const TestPacket<Addr>& packet) {
    const auto in = [&](const std::optional<PolicyPorts>& range, std::uint16_t port) {
        return !range ||
               (packet.transport.has_ports && range->first <= port && port <= range->last);
    };
    for (const PolicyRule<Addr>& rule : rules) {
        if ((rule.from && !rule.from->contains(packet.source)) ||
            (rule.to && !rule.to->contains(packet.destination)) ||
            (rule.dscp && *rule.dscp != packet.dscp) || (rule.mark && *rule.mark != mark) ||
            (rule.protocol && *rule.protocol != packet.transport.protocol) ||
            !in(rule.source_ports, packet.transport.source_port) ||
            !in(rule.destination_ports, packet.transport.destination_port)) {
            continue;
        }
        if (rule.set_mark) {
            mark = *rule.set_mark;
        } else if (rule.table != nullptr) {
            if (const auto value = rule.table->lookup_one(packet.destination); value != kNoRoute) {
                return value;
            }
        } else {
            return rule.answer;
        }
    }
    return kNoRoute;
}

/// As a worker asks: only what the policy says that it reads.
template <class Addr>
std::vector<std::uint32_t> decide(const Policy<Addr>& policy,
                                  const std::vector<TestPacket<Addr>>& packets,
                                  std::vector<std::uint32_t>* classes_out = nullptr) {
    std::vector<Addr> sources;
    std::vector<Addr> destinations;
    std::vector<std::uint8_t> dscps;
    std::vector<Transport> transports;
    for (const auto& packet : packets) {
        sources.push_back(packet.source);
        destinations.push_back(packet.destination);
        dscps.push_back(packet.dscp);
        transports.push_back(packet.transport);
    }
    std::vector<std::uint32_t> classes(packets.size(), 0xdeadbeef);
    std::vector<std::uint32_t> values(packets.size() + 1, 0xdeadbeef);
    policy.classify(policy.reads_source() ? sources.data() : nullptr,
                    policy.reads_transport() ? transports.data() : nullptr,
                    classes.data(),
                    packets.size());
    policy.decide(destinations.data(), dscps.data(), classes.data(), values.data(), packets.size());
    EXPECT_EQ(values.back(), 0xdeadbeef) << "wrote past the end";
    values.pop_back();
    if (classes_out != nullptr) {
        *classes_out = classes;
    }
    return values;
}

template <class Addr>
std::unique_ptr<const Policy<Addr>> compiled(const std::vector<PolicyRule<Addr>>& rules,
                                             Reclaimer& reclaimer,
                                             std::uint32_t mark = 0) {
    auto policy = Policy<Addr>::compile(rules, mark, reclaimer);
    EXPECT_TRUE(policy) << (policy ? "" : policy.error().message);
    return *std::move(policy);
}

using Rule4 = PolicyRule<net::Ipv4Addr>;
using Packet4 = TestPacket<net::Ipv4Addr>;

/// Table 100 knows all, table 200 only 10/8, main all but 10/8.
class PolicyTest : public ::testing::Test {
protected:
    PolicyTest() {
        EXPECT_TRUE(all->set(p4("0.0.0.0/0"), 100));
        EXPECT_TRUE(ten->set(p4("10.0.0.0/8"), 200));
        EXPECT_TRUE(main->set(p4("0.0.0.0/1"), 254));
        EXPECT_TRUE(main->set(p4("128.0.0.0/1"), 255));
    }
    std::uint32_t ask(std::vector<Rule4> rules, const Packet4& packet, std::uint32_t mark = 0) {
        rules.push_back({.table = main.get()});
        const auto policy = compiled(rules, reclaimer, mark);
        const std::uint32_t value = decide(*policy, std::vector{packet}).front();
        EXPECT_EQ(value, (naive<net::Ipv4Addr>(rules, mark, packet)));
        return value;
    }
    ImmediateReclaimer reclaimer;
    std::unique_ptr<Ipv4Lpm> all = Ipv4Lpm::create({}, reclaimer).value();
    std::unique_ptr<Ipv4Lpm> ten = Ipv4Lpm::create({}, reclaimer).value();
    std::unique_ptr<Ipv4Lpm> main = Ipv4Lpm::create({}, reclaimer).value();
};

constexpr Transport kTcp80{6, true, 40000, 80};

struct RuleCase {
    std::string name;
    Rule4 rule;     // to table 100
    Packet4 match;  // goes there
    Packet4 other;  // goes to main
    std::uint32_t mark = 0;
};

class Check_77_Rule : public PolicyTest, public ::testing::WithParamInterface<RuleCase> {};

TEST_P(Check_77_Rule, sends_what_matches_to_its_table_and_the_rest_to_main) {
    Rule4 rule = GetParam().rule;
    rule.table = all.get();
    EXPECT_EQ(ask({rule}, GetParam().match, GetParam().mark), 100U);
    EXPECT_EQ(ask({rule}, GetParam().other, GetParam().mark), 254U);
    EXPECT_EQ(ask({}, GetParam().match, GetParam().mark), 254U) << "and without the rule";
}

INSTANTIATE_TEST_SUITE_P(
    Policy,
    Check_77_Rule,
    ::testing::Values(
        RuleCase{.name = "from",
                 .rule = {.from = p4("10.1.0.0/16")},
                 .match = {.source = a4("10.1.255.255")},
                 .other = {.source = a4("10.2.0.0")}},
        RuleCase{.name = "to",
                 .rule = {.to = p4("10.1.0.0/16")},
                 .match = {.destination = a4("10.1.0.0")},
                 .other = {.destination = a4("10.0.255.255")}},
        RuleCase{.name = "dscp", .rule = {.dscp = 4}, .match = {.dscp = 4}, .other = {.dscp = 5}},
        RuleCase{.name = "dscp_zero_is_a_value",
                 .rule = {.dscp = 0},
                 .match = {},
                 .other = {.dscp = 63}},
        RuleCase{.name = "protocol",
                 .rule = {.protocol = 6},
                 .match = {.transport = kTcp80},
                 .other = {.transport = {17, true, 40000, 80}}},
        RuleCase{.name = "protocol_without_ports",
                 .rule = {.protocol = 1},
                 .match = {.transport = {1, false, 0, 0}},
                 .other = {.transport = {}}},
        RuleCase{.name = "source_port",
                 .rule = {.source_ports = PolicyPorts{40000, 40000}},
                 .match = {.transport = kTcp80},
                 .other = {.transport = {6, true, 40001, 80}}},
        RuleCase{.name = "destination_ports_from_zero",
                 .rule = {.destination_ports = PolicyPorts{0, 80}},
                 .match = {.transport = kTcp80},
                 .other = {.transport = {6, true, 80, 81}}},
        RuleCase{.name = "all_ports_are_not_none",
                 .rule = {.destination_ports = PolicyPorts{}},
                 .match = {.transport = {6, true, 0, 65535}},
                 .other = {.transport = {6, false, 0, 0}}},
        RuleCase{.name = "all_of_several",
                 .rule = {.from = p4("10.0.0.0/8"), .dscp = 1, .protocol = 6},
                 .match = {.source = a4("10.0.0.1"), .dscp = 1, .transport = kTcp80},
                 .other = {.source = a4("10.0.0.1"), .dscp = 1}}),
    [](const auto& row) { return row.param.name; });

TEST_F(PolicyTest, prefixes_of_length_zero_match_everything) {
    const Packet4 packet{.source = a4("203.0.113.1"), .destination = a4("200.0.0.1")};
    EXPECT_EQ(ask({{.from = p4("0.0.0.0/0"), .table = all.get()}}, packet), 100U);
    EXPECT_EQ(ask({{.to = p4("0.0.0.0/0"), .table = all.get()}}, packet), 100U);
}

TEST_F(PolicyTest, a_table_without_a_route_leads_to_the_next_rule) {
    EXPECT_EQ(ask({{.table = ten.get()}}, {.destination = a4("10.0.0.1")}), 200U);
    EXPECT_EQ(ask({{.table = ten.get()}}, {.destination = a4("11.0.0.1")}), 254U);
    EXPECT_EQ(ask({{.table = ten.get()}, {.table = ten.get()}, {.answer = 7}},
                  {.destination = a4("11.0.0.1")}),
              7U);
    const auto policy = compiled<net::Ipv4Addr>({{.table = ten.get()}}, reclaimer);
    EXPECT_EQ(decide(*policy, {Packet4{.destination = a4("11.0.0.1")}}).front(), kNoRoute)
        << "nobody has an answer";
}

TEST_F(PolicyTest, no_rules_know_no_route) {
    const auto policy = compiled<net::Ipv4Addr>({}, reclaimer);
    EXPECT_EQ(decide(*policy, {Packet4{}, Packet4{}}), (std::vector<std::uint32_t>{0, 0}));
    EXPECT_TRUE(policy->cacheable());
}

TEST_F(PolicyTest, Check_77_marks_of_the_ingress_and_of_rules) {
    const Packet4 packet{.source = a4("10.1.0.1"), .destination = a4("1.0.0.1")};
    const Rule4 wants_5{.mark = 5, .table = all.get()};
    EXPECT_EQ(ask({wants_5}, packet, 5), 100U);
    EXPECT_EQ(ask({wants_5}, packet, 6), 254U);
    const Rule4 sets_5{.from = p4("10.1.0.0/16"), .set_mark = 5};
    EXPECT_EQ(ask({sets_5, wants_5}, packet, 6), 100U);
    EXPECT_EQ(ask({wants_5, sets_5}, packet, 6), 254U) << "too late";
    EXPECT_EQ(ask({sets_5, wants_5}, {.source = a4("10.2.0.1")}, 6), 254U) << "of another source";
    EXPECT_EQ(ask({sets_5, {.mark = 5, .set_mark = 6}, wants_5}, packet), 254U);
    EXPECT_EQ(ask({sets_5, {.mark = 5, .set_mark = 6}, {.mark = 6, .answer = 9}}, packet), 9U);
}

TEST_F(PolicyTest, reads_no_more_than_its_rules) {
    const auto plain =
        compiled<net::Ipv4Addr>({{.to = p4("10.0.0.0/8"), .dscp = 3, .answer = 1}}, reclaimer);
    EXPECT_FALSE(plain->reads_source());
    EXPECT_FALSE(plain->reads_transport());
    const auto source =
        compiled<net::Ipv4Addr>({{.from = p4("0.0.0.0/0"), .answer = 1}}, reclaimer);
    EXPECT_TRUE(source->reads_source());
    const auto ports =
        compiled<net::Ipv4Addr>({{.source_ports = PolicyPorts{0, 65535}, .answer = 1}}, reclaimer);
    EXPECT_TRUE(ports->reads_transport());
    const auto other_mark = compiled<net::Ipv4Addr>(
        {{.from = p4("10.0.0.0/8"), .mark = 2, .protocol = 6, .answer = 1}}, reclaimer, 1);
    EXPECT_FALSE(other_mark->reads_source()) << "of a rule that never matches";
    EXPECT_FALSE(other_mark->reads_transport());
}

TEST_F(PolicyTest, refuses_what_it_cannot_do) {
    const std::vector<Rule4> many(Ipv4Policy::kMaxRules + 1, Rule4{.answer = 1});
    const auto too_many = Ipv4Policy::compile(many, 0, reclaimer);
    ASSERT_FALSE(too_many);
    EXPECT_EQ(too_many.error().code, ErrorCode::kLimit);
    const auto nothing = Ipv4Policy::compile(std::vector<Rule4>{{.dscp = 1}}, 0, reclaimer);
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().code, ErrorCode::kInvalid);
}

TEST_F(PolicyTest, the_most_rules_and_the_last_of_them_answers) {
    std::vector<Rule4> rules;
    for (std::uint32_t i = 0; i < Ipv4Policy::kMaxRules; ++i) {
        rules.push_back(
            {.from = net::Ipv4Prefix::of(net::Ipv4Addr::from_host(i << 8U), 24), .answer = i + 1});
    }
    const auto policy = compiled<net::Ipv4Addr>(rules, reclaimer);
    EXPECT_TRUE(policy->cacheable());
    for (std::uint32_t i = 0; i < Ipv4Policy::kMaxRules; ++i) {
        EXPECT_EQ(
            decide(*policy, {Packet4{.source = net::Ipv4Addr::from_host((i << 8U) + 3)}}).front(),
            i + 1);
    }
}

// C-40: what only the class tells apart is the same for equal classes, and there are as few as the
// rules need.
TEST_F(PolicyTest, C_40_combinations_that_meet_the_same_rules_are_one_class) {
    std::vector<Rule4> rules;
    for (std::uint16_t port = 1; port <= 20; ++port) {
        rules.push_back(
            {.protocol = 6, .destination_ports = PolicyPorts{port, port}, .answer = port});
    }
    const auto policy = compiled<net::Ipv4Addr>(rules, reclaimer);
    std::vector<Packet4> packets;
    for (const std::uint8_t protocol : {std::uint8_t{6}, std::uint8_t{17}, std::uint8_t{1}}) {
        for (std::uint16_t port = 0; port <= 30; ++port) {
            packets.push_back({.transport = {protocol, protocol != 1, 5, port}});
        }
    }
    std::vector<std::uint32_t> classes;
    decide(*policy, packets, &classes);
    EXPECT_LE(*std::ranges::max_element(classes), 20U) << "one for each port, one for the rest";
    EXPECT_TRUE(policy->cacheable());
}

struct SizeCase {
    std::string name;
    unsigned sources, ports;
    bool cacheable;
};
class C_40_Size : public PolicyTest, public ::testing::WithParamInterface<SizeCase> {};

/// Rules that read more than a cache key can tell apart still decide rightly.
TEST_P(C_40_Size, only_what_cannot_be_classed_bypasses_the_cache) {
    std::vector<Rule4> rules;
    for (unsigned i = 0; i < GetParam().sources; ++i) {
        rules.push_back({.from = net::Ipv4Prefix::of(net::Ipv4Addr::from_host(i << 24U), 8),
                         .dscp = 1,
                         .answer = 1000 + i});
    }
    for (unsigned i = 0; i < GetParam().ports; ++i) {
        const auto port = static_cast<std::uint16_t>(i * 10);
        rules.push_back({.source_ports = PolicyPorts{port, port}, .answer = 2000 + i});
        rules.push_back({.destination_ports = PolicyPorts{port, port}, .answer = 3000 + i});
    }
    const auto policy = compiled<net::Ipv4Addr>(rules, reclaimer);
    EXPECT_EQ(policy->cacheable(), GetParam().cacheable);
    std::mt19937 random(1);
    std::vector<Packet4> packets;
    for (int i = 0; i < 500; ++i) {
        packets.push_back(
            {.source = net::Ipv4Addr::from_host(static_cast<std::uint32_t>(random() % 80 << 24U)),
             .dscp = static_cast<std::uint8_t>(random() % 2),
             .transport = {6,
                           random() % 4 != 0,
                           static_cast<std::uint16_t>(random() % 100 * 5),
                           static_cast<std::uint16_t>(random() % 100 * 5)}});
    }
    const auto values = decide(*policy, packets);
    for (std::size_t i = 0; i < packets.size(); ++i) {
        ASSERT_EQ(values[i], (naive<net::Ipv4Addr>(rules, 0, packets[i])));
    }
}

INSTANTIATE_TEST_SUITE_P(Policy,
                         C_40_Size,
                         ::testing::Values(SizeCase{"small", 8, 8, true},
                                           SizeCase{"largest", 15, 15, true},
                                           SizeCase{"numbered_but_too_many", 30, 20, false},
                                           SizeCase{"not_even_numbered", 70, 50, false}),
                         [](const auto& row) { return row.param.name; });

TEST(Policy, too_many_combinations_are_refused) {
    ImmediateReclaimer reclaimer;
    std::vector<Rule4> rules;
    for (std::uint32_t i = 0; i < Ipv4Policy::kMaxRules; ++i) {
        const auto first = static_cast<std::uint16_t>(i * 100);
        rules.push_back(
            {.from = net::Ipv4Prefix::of(net::Ipv4Addr::from_host(i << 8U), 24),
             .protocol = static_cast<std::uint8_t>(i),
             .source_ports = PolicyPorts{first, static_cast<std::uint16_t>(first + 150)},
             .destination_ports = PolicyPorts{first, static_cast<std::uint16_t>(first + 150)},
             .answer = 1});
    }
    const auto policy = Ipv4Policy::compile(rules, 0, reclaimer);
    ASSERT_FALSE(policy);
    EXPECT_EQ(policy.error().code, ErrorCode::kLimit);
}

// What a compilation leaves with the reclaimer does not need the policy any more.
TEST(Policy, is_destroyed_through_the_reclaimer) {
    ManualReclaimer reclaimer;
    const auto table = Ipv4Lpm::create({}, reclaimer).value();
    std::vector<Rule4> rules;
    for (std::uint32_t i = 0; i < 20; ++i) {
        const auto prefix = net::Ipv4Prefix::of(net::Ipv4Addr::from_host(i << 24U), 8);
        rules.push_back({.from = prefix, .to = prefix, .table = table.get()});
    }
    auto policy = compiled<net::Ipv4Addr>(rules, reclaimer);
    decide(*policy, {Packet4{}});
    reclaimer.defer([old = std::move(policy)]() mutable { old.reset(); });
    reclaimer.finish();
    EXPECT_EQ(reclaimer.deferred(), 0U);
}

// --- against the naive walk ---------------------------------------------------------------------

template <class Addr>
class PolicyModel : public ::testing::Test {
protected:
    /// Few different ones, so that rules and packets meet: the first byte from five, the last bits
    /// from four.
    Addr address() {
        Addr a{};
        a.bytes.front() = static_cast<std::uint8_t>(pick(5) * 32);
        a.bytes[1] = static_cast<std::uint8_t>(pick(2) * 128);
        a.bytes.back() = static_cast<std::uint8_t>(pick(4));
        return a;
    }
    net::Prefix<Addr> prefix() {
        static constexpr std::uint8_t kBits = sizeof(Addr) * 8;
        const std::uint8_t lengths[] = {0, 1, 3, 8, 9, 16, kBits - 1, kBits};
        return net::Prefix<Addr>::of(address(), lengths[pick(std::size(lengths))]);
    }
    PolicyPorts ports() {
        const auto first = static_cast<std::uint16_t>(kPorts[pick(std::size(kPorts))]);
        const auto last = static_cast<std::uint16_t>(kPorts[pick(std::size(kPorts))]);
        return {std::min(first, last), std::max(first, last)};
    }
    Transport transport() {
        Transport t;
        t.protocol = static_cast<std::uint8_t>(kProtocols[pick(std::size(kProtocols))]);
        t.has_ports = pick(4) != 0;
        t.source_port = static_cast<std::uint16_t>(kPorts[pick(std::size(kPorts))]);
        t.destination_port = static_cast<std::uint16_t>(kPorts[pick(std::size(kPorts))]);
        return t;
    }
    PolicyRule<Addr> rule() {
        PolicyRule<Addr> r;
        const std::size_t rare = pick(3) + 2;  // some rules read much, some hardly anything
        const auto now_and_then = [&] { return pick(rare) == 0; };
        if (now_and_then()) {
            r.from = prefix();
        }
        if (now_and_then()) {
            r.to = prefix();
        }
        if (now_and_then()) {
            r.dscp = static_cast<std::uint8_t>(pick(3) * 20);
        }
        if (now_and_then()) {
            r.mark = static_cast<std::uint32_t>(pick(3));
        }
        if (now_and_then()) {
            r.protocol = static_cast<std::uint8_t>(kProtocols[pick(std::size(kProtocols))]);
        }
        if (now_and_then()) {
            r.source_ports = ports();
        }
        if (now_and_then()) {
            r.destination_ports = ports();
        }
        switch (pick(5)) {
            case 0:
                r.set_mark = static_cast<std::uint32_t>(pick(3));
                break;
            case 1:
                r.answer = static_cast<std::uint32_t>(10'000 + pick(100));
                break;
            default:
                r.table = tables_[pick(tables_.size())].get();
        }
        return r;
    }
    void run(std::size_t rounds) {
        for (std::size_t round = 0; round < rounds; ++round) {
            tables_.clear();
            for (std::size_t t = 0; t < 1 + pick(5); ++t) {
                tables_.push_back(LpmTable<Addr>::create({}, reclaimer_).value());
                for (std::size_t i = 0; i < pick(8); ++i) {
                    ASSERT_TRUE(
                        tables_.back()->set(prefix(), static_cast<std::uint32_t>(1 + t * 100 + i)));
                }
            }
            std::vector<PolicyRule<Addr>> rules;
            const std::size_t most[] = {4, 12, 70, 256};
            const std::size_t count = pick(most[round % 4] + 1);
            while (rules.size() < count) {
                rules.push_back(rule());
            }
            const auto mark = static_cast<std::uint32_t>(pick(3));
            const auto policy = compiled(rules, reclaimer_, mark);
            cacheable_ += policy->cacheable() ? 1U : 0U;
            std::vector<TestPacket<Addr>> packets;
            const std::size_t sizes[] = {1, 63, 64, 65, 256};
            for (std::size_t n = sizes[pick(std::size(sizes))]; n > 0; --n) {
                packets.push_back(
                    {address(), address(), static_cast<std::uint8_t>(pick(3) * 20), transport()});
            }
            const auto values = decide(*policy, packets);
            for (std::size_t i = 0; i < packets.size(); ++i) {
                ASSERT_EQ(values[i], naive<Addr>(rules, mark, packets[i]))
                    << "round " << round << ", packet " << i << ": "
                    << packets[i].source.to_string() << " to "
                    << packets[i].destination.to_string();
                answered_ += values[i] != kNoRoute ? 1U : 0U;
                ++asked_;
            }
        }
        EXPECT_GT(answered_ * 2, asked_) << "the rules hardly ever match";
        EXPECT_GT(cacheable_ * 4, rounds) << "hardly any of the policies was numbered";
        EXPECT_LT(cacheable_, rounds) << "all of them were";
    }

private:
    static constexpr int kPorts[] = {0, 1, 2, 79, 80, 81, 65534, 65535};
    static constexpr int kProtocols[] = {0, 1, 6, 17, 255};
    std::size_t pick(std::size_t below) { return random_() % below; }

    std::mt19937_64 random_{42};
    ImmediateReclaimer reclaimer_;
    std::vector<std::unique_ptr<LpmTable<Addr>>> tables_;
    std::size_t answered_ = 0;
    std::size_t asked_ = 0;
    std::size_t cacheable_ = 0;
};

using Families = ::testing::Types<net::Ipv4Addr, net::Ipv6Addr>;
TYPED_TEST_SUITE(PolicyModel, Families);

TYPED_TEST(PolicyModel, C_40_decides_as_the_walk_rule_by_rule) {
    this->run(400);
}

}  // namespace
}  // namespace sluice::fib::test
