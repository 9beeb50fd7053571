// SPDX-License-Identifier: BSD-3-Clause
#include "fib/policy.h"
#include "nexthop_fixture.h"

namespace sluice::control::test {
namespace {

/// A packet as rules see it.
struct Probe {
    std::string_view to = "192.0.2.9";
    std::string_view in = "p0";
    std::string_view from = "10.0.0.9";
    std::uint8_t dscp = 0;
    std::uint8_t protocol = 0;
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;
};

class RulesTest : public NextHopTest {
protected:
    static config::Rule rule(std::uint32_t priority, std::uint32_t table) {
        config::Rule made;
        made.priority = priority;
        made.table = table;
        return made;
    }
    static config::Rule rule6(std::uint32_t priority, std::uint32_t table) {
        config::Rule made = rule(priority, table);
        made.family = net::Family::kIpv6;
        return made;
    }
    static config::Rule action(std::uint32_t priority, config::RuleAction what) {
        config::Rule made = rule(priority, config::kMainTable);
        made.action = what;
        return made;
    }
    Result<void> engine_add_rule(const config::Rule& each) {
        return engine->add_rule(netns(), each, RouteOwner::kCli);
    }
    void add_rule(const config::Rule& each) { expect_ok(engine_add_rule(each)); }
    void delete_rule(const config::Rule& each) { expect_ok(engine->delete_rule(netns(), each)); }
    void in_table(std::uint32_t table, std::string_view to, std::string_view gateway) {
        RouteRequest route = via(to, gateway);
        route.table = table;
        expect_ok(engine->add_route(netns(), route, RouteMode::kAdd));
    }

    template <class Addr, class Policy, class Lpm>
    std::uint32_t decide(const Policy* policy,
                         const Lpm* lpm,
                         const Addr& to,
                         const Addr& from,
                         const Probe& probe) {
        if (policy == nullptr) {
            return lpm->lookup_one(to);
        }
        const fib::Transport transport{.protocol = probe.protocol,
                                       .has_ports = net::has_ports(net::IpProtocol{probe.protocol}),
                                       .source_port = probe.source_port,
                                       .destination_port = probe.destination_port};
        std::uint32_t rule_class = 0;
        std::uint32_t value = 0;
        policy->classify(&from, &transport, &rule_class, 1);
        policy->decide(&to, &probe.dscp, &rule_class, &value, 1);
        return value;
    }
    /// Where the packet goes as a worker decides; the control thread must say the same.
    std::string where(const Probe& probe) {
        const net::IpAddr to = ip(probe.to);
        const net::IpAddr from =
            ip(to.is_v4() || probe.from != "10.0.0.9" ? probe.from : "fd00::9");
        const fib::NetdevView& in = *view(probe.in);
        const std::uint32_t value = to.is_v4()
                                        ? decide(in.policy4, in.fib4, to.v4(), from.v4(), probe)
                                        : decide(in.policy6, in.fib6, to.v6(), from.v6(), probe);
        const std::string text = text_of(value);
        RouteQuery query;
        query.destination = to;
        query.from = from;
        query.iif = probe.in;
        query.dscp = probe.dscp;
        query.protocol = probe.protocol;
        query.source_port = probe.source_port;
        query.destination_port = probe.destination_port;
        const auto found = engine->lookup_route(netns(), query);
        EXPECT_TRUE(found);
        EXPECT_EQ(found->via                 ? found->via->to_string()
                  : found->type == "unicast" ? "dev " + found->dev
                                             : found->type,
                  text);
        return text;
    }
};

TEST_F(RulesTest, NoRuleNoPolicy) {
    EXPECT_EQ(view("p0")->policy4, nullptr);
    EXPECT_EQ(view("p0")->policy6, nullptr);
    add_rule(rule(100, 100));
    EXPECT_NE(view("p0")->policy4, nullptr);
    EXPECT_EQ(view("p0")->policy6, nullptr) << "of the other family";
    EXPECT_EQ(view("p0")->policy4, view("p1")->policy4) << "one for all that meet the same";
    delete_rule(rule(100, 100));
    EXPECT_EQ(view("p0")->policy4, nullptr);
}

TEST_F(RulesTest, Check_77_EachFieldChoosesTheTable) {
    in_table(254, "0.0.0.0/0", "10.0.1.2");
    in_table(254, "::/0", "fd00:1::2");
    in_table(100, "0.0.0.0/0", "10.0.0.2");
    in_table(100, "::/0", "fd00::2");
    struct Case {
        std::string name;
        std::function<void(config::Rule&)> field;
        std::function<void(Probe&)> packet;  // makes it match
    };
    const std::vector<Case> cases{
        {"tos 0x10", [](auto& r) { r.dscp = 4; }, [](auto& p) { p.dscp = 4; }},
        {"protocol tcp", [](auto& r) { r.protocol = 6; }, [](auto& p) { p.protocol = 6; }},
        {"protocol icmp", [](auto& r) { r.protocol = 1; }, [](auto& p) { p.protocol = 1; }},
        {"protocol icmpv6", [](auto& r) { r.protocol = 58; }, [](auto& p) { p.protocol = 58; }},
        {"sport and dport",
         [](auto& r) {
             r.source_ports = config::PortRange{666, 666};
             r.destination_ports = config::PortRange{777, 777};
         },
         [](auto& p) {
             p.protocol = 17;
             p.source_port = 666;
             p.destination_port = 777;
         }},
        {"a range of ports",
         [](auto& r) {
             r.protocol = 17;
             r.destination_ports = config::PortRange{700, 800};
         },
         [](auto& p) {
             p.protocol = 17;
             p.destination_port = 800;
         }},
        {"iif", [](auto& r) { r.iif = "p1"; }, [](auto& p) { p.in = "p1"; }},
    };
    for (const Case& c : cases) {
        for (const bool v4 : {true, false}) {
            SCOPED_TRACE(c.name + (v4 ? " IPv4" : " IPv6"));
            config::Rule r = v4 ? rule(100, 100) : rule6(100, 100);
            c.field(r);
            Probe other;
            other.to = v4 ? "192.0.2.9" : "2001:db8::9";
            Probe matching = other;
            c.packet(matching);
            add_rule(r);
            EXPECT_EQ(where(matching), v4 ? "10.0.0.2" : "fd00::2");
            EXPECT_EQ(where(other), v4 ? "10.0.1.2" : "fd00:1::2");
            // By its preference alone.
            delete_rule(v4 ? rule(100, 254) : rule6(100, 254));
            EXPECT_EQ(where(matching), v4 ? "10.0.1.2" : "fd00:1::2");
        }
    }
}

TEST_F(RulesTest, Check_77_SourceDestinationAndIngress) {
    in_table(254, "0.0.0.0/0", "10.0.1.2");
    in_table(100, "0.0.0.0/0", "10.0.0.2");
    config::Rule r = rule(100, 100);
    r.from = prefix("10.0.0.0/24");
    r.to = prefix("192.0.2.0/24");
    r.iif = "p0";
    add_rule(r);
    EXPECT_EQ(where({}), "10.0.0.2");
    EXPECT_EQ(where({.from = "10.0.1.9"}), "10.0.1.2");
    EXPECT_EQ(where({.to = "198.51.100.9"}), "10.0.1.2");
    EXPECT_EQ(where({.in = "p1"}), "10.0.1.2");
}

TEST_F(RulesTest, Check_77_MarkOfThePortAndOfARule) {
    in_table(254, "0.0.0.0/0", "10.0.1.2");
    in_table(100, "0.0.0.0/0", "10.0.0.2");
    in_table(101, "0.0.0.0/0", "10.0.0.3");
    config::Rule marked = rule(200, 100);
    marked.mark = 7;
    add_rule(marked);
    config::Rule other = rule(200, 101);
    other.mark = 8;
    add_rule(other);
    EXPECT_EQ(where({}), "10.0.1.2");
    config::NetdevSettings settings = netdev("p0").settings;
    settings.mark = 7;
    expect_ok(engine->change_netdev(netns(), "p0", settings));
    EXPECT_EQ(where({}), "10.0.0.2");
    EXPECT_EQ(where({.in = "p1"}), "10.0.1.2");
    config::Rule set = action(100, config::RuleAction::kSetMark);
    set.set_mark = 8;
    set.dscp = 4;
    add_rule(set);
    EXPECT_EQ(where({.dscp = 4}), "10.0.0.3");
    EXPECT_EQ(where({}), "10.0.0.2");
}

TEST_F(RulesTest, AnswersWithoutATable) {
    in_table(254, "0.0.0.0/0", "10.0.1.2");
    using enum config::RuleAction;
    for (const auto& [what, want] : {std::pair{kBlackhole, "blackhole"},
                                     {kUnreachable, "unreachable"},
                                     {kProhibit, "prohibit"}}) {
        add_rule(action(100, what));
        EXPECT_EQ(where({}), want);
        delete_rule(action(100, what));
    }
    EXPECT_EQ(where({}), "10.0.1.2");
}

TEST_F(RulesTest, OrderedByPriorityThenAge) {
    in_table(100, "0.0.0.0/0", "10.0.0.2");
    in_table(101, "0.0.0.0/0", "10.0.0.3");
    in_table(102, "0.0.0.0/0", "10.0.0.4");
    add_rule(rule(200, 100));
    add_rule(rule(200, 101));
    EXPECT_EQ(where({}), "10.0.0.2");
    add_rule(rule(100, 102));
    EXPECT_EQ(where({}), "10.0.0.4");
    // An empty table has no answer, and the next rule is asked.
    add_rule(rule(50, 103));
    EXPECT_EQ(where({}), "10.0.0.4");
    in_table(103, "192.0.2.0/24", "10.0.0.5");
    EXPECT_EQ(where({}), "10.0.0.5");
    std::string order;
    for (const RuleInfo& each : engine->rules(netns())) {
        order += fmt::format("{}:{} ", each.rule.priority, each.rule.table);
    }
    EXPECT_EQ(order, "50:103 100:102 200:100 200:101 ");
    delete_rule(rule(200, 101));
    EXPECT_EQ(engine->rules(netns()).size(), 3U);
    EXPECT_EQ(engine->rules(netns()).back().rule.table, 100U);
}

TEST_F(RulesTest, Check_74_SuppressedDefaultRouteIsNoMatch) {
    in_table(254, "0.0.0.0/0", "10.0.1.2");
    in_table(254, "192.0.2.0/24", "10.0.1.3");
    in_table(100, "0.0.0.0/0", "10.0.0.2");
    config::Rule r = rule(100, 254);
    r.suppress_prefixlength = 0;
    add_rule(r);
    add_rule(rule(200, 100));
    EXPECT_EQ(where({.to = "198.51.100.9"}), "10.0.0.2");
    EXPECT_EQ(where({}), "10.0.1.3");
    // Kept in step with the table, and gone without a trace.
    in_table(254, "198.51.100.0/24", "10.0.1.4");
    EXPECT_EQ(where({.to = "198.51.100.9"}), "10.0.1.4");
    expect_ok(engine->delete_route(netns(), via("198.51.100.0/24", "10.0.1.4")));
    EXPECT_EQ(where({.to = "198.51.100.9"}), "10.0.0.2");
    delete_rule(r);
    settle();
    in_table(254, "203.0.113.0/24", "10.0.1.5");
    EXPECT_EQ(where({.to = "203.0.113.9"}), "10.0.0.2") << "table 100 is asked before main";
}

TEST_F(RulesTest, Check_80_C_41_ARuleIsObeyedFromTheNextPacketOn) {
    in_table(100, "0.0.0.0/0", "10.0.0.2");
    const auto stamp4 = netns().generations4.stamp(ip("192.0.2.9").v4());
    add_rule(rule(100, 100));
    EXPECT_EQ(netns().generations4.stamp(ip("192.0.2.9").v4()), stamp4 + 1);
    EXPECT_EQ(where({}), "10.0.0.2");
    delete_rule(rule(100, 100));
    EXPECT_EQ(netns().generations4.stamp(ip("192.0.2.9").v4()), stamp4 + 2);
    EXPECT_EQ(where({}), "none");
}

TEST_F(RulesTest, ARuleMayNameANetdevThatIsToCome) {
    in_table(100, "0.0.0.0/0", "10.0.0.2");
    config::Rule r = rule(100, 100);
    r.iif = "p0.7";
    add_rule(r);
    EXPECT_EQ(view("p0")->policy4, nullptr);
    add_vlan("p0.7", "p0", 7);
    EXPECT_EQ(where({.in = "p0.7"}), "10.0.0.2");
    EXPECT_EQ(where({}), "none");
}

TEST_F(RulesTest, VrfIsIsolatedFromTheMainTable) {
    in_table(254, "0.0.0.0/0", "10.0.1.2");
    in_table(101, "0.0.0.0/0", "10.0.1.3");
    expect_ok(engine->add_vrf(netns(), "blue", 100));
    expect_ok(engine->set_vrf(netns(), "p0", "blue"));
    EXPECT_EQ(where({}), "none");
    // Rules from priority 1000 on are not asked in a VRF, earlier ones are.
    add_rule(rule(1000, 101));
    EXPECT_EQ(where({}), "none");
    EXPECT_EQ(where({.in = "p1"}), "10.0.1.3");
    config::Rule early = rule(999, 101);
    early.to = prefix("192.0.2.0/24");
    add_rule(early);
    EXPECT_EQ(where({}), "10.0.1.3");
    EXPECT_EQ(where({.to = "198.51.100.9"}), "none") << "nothing falls through to main";
    // iif: a VRF for all its members.
    delete_rule(early);
    early.iif = "blue";
    add_rule(early);
    EXPECT_EQ(where({}), "10.0.1.3");
    delete_rule(rule(1000, 101));
    EXPECT_EQ(where({.in = "p1"}), "10.0.1.2");
    expect_ok(engine->set_vrf(netns(), "p0", ""));
    EXPECT_EQ(where({}), "10.0.1.2");
}

TEST_F(RulesTest, OldPoliciesAndTablesGoAfterAGracePeriod) {
    settle();
    const std::string before = dump_all();
    for (std::uint32_t i = 0; i < 20; ++i) {
        config::Rule r = rule(100 + i, 254);
        r.suppress_prefixlength = static_cast<std::uint8_t>(i % 3);
        add_rule(r);
        add_rule(action(300 + i, config::RuleAction::kProhibit));
        if (i >= 2) {
            delete_rule(rule(98 + i, 254));
            delete_rule(action(298 + i, config::RuleAction::kProhibit));
        }
        settle();
    }
    for (const std::uint32_t priority : {118U, 119U}) {
        delete_rule(rule(priority, 254));
        delete_rule(action(priority + 200, config::RuleAction::kProhibit));
    }
    settle();
    EXPECT_EQ(dump_all().substr(0, before.find("groups")), before.substr(0, before.find("groups")));
    EXPECT_EQ(rcu.pending(), 0U);
}

TEST_F(RulesTest, RefusedAndNothingChanged) {
    in_table(100, "0.0.0.0/0", "10.0.0.2");
    add_rule(rule(100, 100));
    struct Case {
        std::string name;
        std::function<void(config::Rule&)> wrong;
        ErrorCode code = ErrorCode::kInvalid;
    };
    const std::vector<Case> cases{
        {"an equal one", [](auto& r) { r.priority = 100; }, ErrorCode::kExists},
        {"from of the other family", [](auto& r) { r.from = prefix("2001:db8::/32"); }},
        {"to of the other family", [](auto& r) { r.to = prefix("2001:db8::/32"); }},
        {"dscp 64", [](auto& r) { r.dscp = 64; }},
        {"ports of icmp",
         [](auto& r) {
             r.protocol = 1;
             r.source_ports = config::PortRange{1, 2};
         }},
        {"ports backwards", [](auto& r) { r.source_ports = config::PortRange{2, 1}; }},
        {"table 0", [](auto& r) { r.table = 0; }},
        {"table local", [](auto& r) { r.table = 255; }},
        {"suppress without a table",
         [](auto& r) {
             r.action = config::RuleAction::kBlackhole;
             r.suppress_prefixlength = 0;
         }},
        {"suppress 33", [](auto& r) { r.suppress_prefixlength = 33; }},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        config::Rule r = rule(50, 100);
        c.wrong(r);
        unchanged([&] { return engine_add_rule(r); }, c.code);
    }
    unchanged([&] { return engine->delete_rule(netns(), rule(101, 254)); }, ErrorCode::kNotFound);
    config::Rule other = rule(100, 254);
    other.dscp = 1;
    unchanged([&] { return engine->delete_rule(netns(), other); }, ErrorCode::kNotFound);
    for (std::uint32_t i = 1; i < Policies::kMaxRules; ++i) {
        add_rule(rule(1000 + i, 100));
    }
    unchanged([&] { return engine_add_rule(rule(5000, 100)); }, ErrorCode::kLimit);
    add_rule(rule6(5000, 100));
}

// What a rule's table says is on a link is asked for there.
TEST_F(RulesTest, Check_52_HostOnTheLinkOfARulesTable) {
    resolve("p1", "192.0.2.9");
    EXPECT_EQ(neighbor("p1", "192.0.2.9"), "none");
    RouteRequest route;
    route.prefix = prefix("192.0.2.0/24");
    route.dev = "p1";
    route.table = 100;
    expect_ok(engine->add_route(netns(), route, RouteMode::kAdd));
    add_rule(rule(100, 100));
    EXPECT_EQ(where({}), "dev p1");
    resolve("p1", "192.0.2.9");
    EXPECT_EQ(neighbor("p1", "192.0.2.9"), "incomplete");
}

TEST_F(RulesTest, LookupFollowsVrfsAndNotInCircles) {
    expect_ok(engine->add_vrf(netns(), "blue", 100));
    expect_ok(engine->add_vrf(netns(), "red", 101));
    expect_ok(engine->set_vrf(netns(), "p1", "red"));
    RouteRequest into_red;
    into_red.prefix = prefix("0.0.0.0/0");
    into_red.dev = "red";
    expect_ok(engine->add_route(netns(), into_red, RouteMode::kAdd));
    in_table(101, "192.0.2.0/24", "10.0.1.2");
    RouteQuery query;
    query.destination = ip("192.0.2.9");
    const auto found = engine->lookup_route(netns(), query);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->table, 101U);
    EXPECT_EQ(found->dev, "p1");
    EXPECT_EQ(found->via, ip("10.0.1.2"));
    RouteRequest loop;
    loop.prefix = prefix("198.51.100.0/24");
    loop.table = 101;
    loop.dev = "blue";
    expect_ok(engine->add_route(netns(), loop, RouteMode::kAdd));
    loop.table = 100;
    loop.dev = "red";
    expect_ok(engine->add_route(netns(), loop, RouteMode::kAdd));
    query.destination = ip("198.51.100.9");
    EXPECT_EQ(engine->lookup_route(netns(), query)->type, "loop");
    query.iif = "p9";
    EXPECT_EQ(engine->lookup_route(netns(), query).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace sluice::control::test
