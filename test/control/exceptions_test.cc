// SPDX-License-Identifier: BSD-3-Clause
#include "control/exceptions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/uncached.h"
#include "fib/dst.h"
#include "fib/lpm_support.h"
#include "fib/shared.h"
#include "net/address.h"

namespace sluice::control::test {
namespace {

using fib::Dst;
using fib::DstType;

net::IpAddr ip(std::string_view text) {
    return net::IpAddr::parse(text).value();
}
constexpr net::MacAddr kRouterMac{{2, 0xaa, 0, 0, 0, 1}};
constexpr NetdevId kLo{1};    // the domain of the netns
constexpr NetdevId kBlue{2};  // the one of a VRF
constexpr NetdevId kP0{3};
constexpr NetdevId kP1{4};

/// Tables that lead where the test says, and neighbors that are known.
class FakeActions final : public ExceptionActions {
public:
    explicit FakeActions(fib::Shared& shared, UncachedLists& uncached)
        : shared_(shared), uncached_(uncached) {}

    fib::DstIndex lookup(NetdevId domain, const net::IpAddr& destination) override {
        const auto it = routes.find({domain, destination});
        return it != routes.end() ? it->second : otherwise;
    }
    void attach(const NeighborKey& key, fib::DstIndex dst) override {
        EXPECT_EQ(published(dst), 0U) << "before the neighbor is known";
        EXPECT_TRUE(attached.emplace(dst, key).second);
        fib::resolve(shared_.dsts.writable(dst), kRouterMac);
    }
    void detach(const NeighborKey& key, fib::DstIndex dst) override {
        EXPECT_EQ(attached.at(dst), key);
        attached.erase(dst);
    }
    void changed(NetdevId domain, const net::IpAddr& destination) override {
        log.push_back("changed " + destination.to_string());
        last = shared_.exceptions.find(fib::NeighborKeyWords::of(domain, destination));
    }
    void release(fib::DstIndex dst, net::Family) override {
        EXPECT_FALSE(uncached_.listed(dst));
        EXPECT_FALSE(attached.contains(dst));
        EXPECT_NE(dst, last) << "it is still published";
        log.emplace_back("release");
        shared_.dsts.release(dst);
    }

    std::map<std::pair<NetdevId, net::IpAddr>, fib::DstIndex> routes;
    fib::DstIndex otherwise = fib::kNoRoute;
    std::map<fib::DstIndex, NeighborKey> attached;
    std::vector<std::string> log;
    fib::DstIndex last = fib::kNoRoute;  // what a lookup yielded at changed()

private:
    std::size_t published(fib::DstIndex dst) const { return dst == last ? 1 : 0; }

    fib::Shared& shared_;
    UncachedLists& uncached_;
};

class ExceptionsTest : public ::testing::Test {
protected:
    void TearDown() override { reclaimer.finish(); }

    explicit ExceptionsTest(Exceptions::Limits limits = {}) : limits_(limits) {
        gateway = base(DstType::kUnicast, kP0, "10.0.0.1", 1500);
        gateway6 = base(DstType::kUnicast, kP0, "fe80::1", 1500);
        connected = base(DstType::kConnected, kP1, "0.0.0.0", 1500);
        actions.otherwise = gateway;
        bases_in_use = shared.dsts.in_use();
    }
    fib::DstIndex base(DstType type, NetdevId out, std::string_view via, std::uint16_t mtu) {
        const fib::DstIndex index = shared.dsts.allocate().value();
        Dst& dst = shared.dsts.writable(index);
        dst.type = type;
        dst.out = out;
        dst.idev = out;
        dst.port = 7;
        dst.netns = NetnsId{5};
        dst.mtu = mtu;
        dst.rewrite_bytes = 14;
        dst.rewrite = {0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 8, 0};
        dst.counter = 3;
        dst.set_gateway(ip(via));
        return index;
    }
    bool mtu(std::string_view to, std::uint16_t value, NetdevId domain = kLo) {
        return exceptions.set_mtu(domain, ip(to), value, 1, now);
    }
    bool redirect(std::string_view to, std::string_view via, NetdevId ingress = kP0) {
        return exceptions.set_gateway(kLo, ip(to), ingress, ip(via), 1, now);
    }
    /// What a worker finds.
    const Dst* found(std::string_view to, NetdevId domain = kLo) {
        const auto index = shared.exceptions.find(fib::NeighborKeyWords::of(domain, ip(to)));
        return index == fib::kNoRoute ? nullptr : &shared.dsts[index];
    }
    /// "10.0.0.1 1400 locked", what packets to `to` meet; "tables": no exception.
    std::string path(std::string_view to, NetdevId domain = kLo) {
        const Dst* dst = found(to, domain);
        std::optional<Exception> listed;
        exceptions.for_each([&](const Exception& e) {
            if (e.domain == domain && e.destination == ip(to)) {
                listed = e;
            }
        });
        EXPECT_EQ(dst != nullptr, listed.has_value()) << to;
        if (dst == nullptr || !listed) {
            return "tables";
        }
        EXPECT_EQ(dst->expiry_s, listed->expiry_s);
        EXPECT_EQ(dst->out, listed->out);
        return (dst->gateway_is_v6 != 0 ? dst->gateway6().to_string()
                                        : dst->gateway4().to_string()) +
               " " + std::to_string(dst->mtu) + (listed->locked ? " locked" : "");
    }
    /// Nothing of an exception is left anywhere.
    void expect_none() {
        EXPECT_EQ(exceptions.size(), 0U);
        EXPECT_EQ(shared.exceptions.size(), 0U);
        EXPECT_EQ(shared.exception_count.load(), 0U);
        EXPECT_EQ(uncached.size(), 0U);
        EXPECT_TRUE(actions.attached.empty());
        reclaimer.finish();
        EXPECT_EQ(shared.dsts.in_use(), bases_in_use) << "the bases and none else";
    }

    fib::test::ManualReclaimer reclaimer;
    std::unique_ptr<fib::Shared> owned = std::make_unique<fib::Shared>(1024, 64, 12345, reclaimer);
    fib::Shared& shared = *owned;
    UncachedLists uncached{2, 1024};
    FakeActions actions{shared, uncached};
    Exceptions::Limits limits_;
    Exceptions exceptions{shared, uncached, actions, limits_};
    std::uint32_t now = 1000;
    std::size_t bases_in_use = 0;
    fib::DstIndex gateway = 0, gateway6 = 0, connected = 0;
};

TEST_F(ExceptionsTest, an_exception_is_the_tables_dst_with_another_mtu) {
    ASSERT_TRUE(mtu("192.0.2.1", 1400));
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 1400");
    EXPECT_EQ(path("192.0.2.2"), "tables");
    const Dst& dst = *found("192.0.2.1");
    EXPECT_EQ(dst.type, DstType::kUnicast);
    EXPECT_EQ(dst.out, kP0);
    EXPECT_EQ(dst.port, 7U);
    EXPECT_EQ(dst.netns, NetnsId{5});
    EXPECT_EQ(dst.counter, 3U);
    EXPECT_EQ(dst.expiry_s, now + 600);
    EXPECT_EQ(dst.rewrite[11], 9) << "source MAC";
    EXPECT_EQ(dst.rewrite[0], kRouterMac.bytes[0]);
    EXPECT_EQ(shared.exception_count.load(), 1U);
    exceptions.flush();
    expect_none();
}

// The neighbor's states leave kExpires alone: without it a worker would not look at the clock.
TEST_F(ExceptionsTest, expires_whatever_becomes_of_its_neighbor) {
    mtu("192.0.2.1", 1400);
    const fib::DstIndex index = actions.attached.begin()->first;
    Dst& dst = shared.dsts.writable(index);
    EXPECT_EQ(dst.state.load(), Dst::kExpires | Dst::kResolved);
    fib::set_report_use(dst, true);
    EXPECT_EQ(dst.state.load(), Dst::kExpires | Dst::kResolved | Dst::kReportUse);
    fib::unresolve(dst);
    EXPECT_EQ(dst.state.load(), Dst::kExpires);
    fib::resolve(dst, kRouterMac);
    EXPECT_EQ(dst.state.load(), Dst::kExpires | Dst::kResolved);
}

TEST_F(ExceptionsTest, U_01_is_listed_for_its_worker_while_it_lasts) {
    mtu("192.0.2.1", 1400);
    EXPECT_EQ(uncached.count(1, net::Family::kIpv4, kP0), 1U);
    mtu("192.0.2.1", 1300);
    EXPECT_EQ(uncached.count(1, net::Family::kIpv4, kP0), 1U);
    actions.otherwise = gateway6;
    mtu("2001:db8::1", 1400);
    EXPECT_EQ(uncached.count(1, net::Family::kIpv6, kP0), 1U);
    exceptions.flush();
    expect_none();
}

// Published, then bumped, then released: see FakeActions::release().
TEST_F(ExceptionsTest, G_04_caches_are_told_before_the_old_dst_is_let_go) {
    mtu("192.0.2.1", 1400);
    EXPECT_EQ(actions.log, (std::vector<std::string>{"changed 192.0.2.1"}));
    actions.log.clear();
    mtu("192.0.2.1", 1300);
    EXPECT_EQ(actions.log, (std::vector<std::string>{"changed 192.0.2.1", "release"}));
    actions.log.clear();
    exceptions.flush();
    EXPECT_EQ(actions.log, (std::vector<std::string>{"changed 192.0.2.1", "release"}));
}

TEST_F(ExceptionsTest, Check_86_a_lower_mtu_replaces_and_a_higher_is_ignored) {
    EXPECT_FALSE(mtu("192.0.2.1", 1500)) << "no news";
    EXPECT_FALSE(mtu("192.0.2.1", 9000));
    EXPECT_TRUE(mtu("192.0.2.1", 1400));
    EXPECT_FALSE(mtu("192.0.2.1", 1450));
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 1400");
    EXPECT_TRUE(mtu("192.0.2.1", 1300));
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 1300");
    now += 599;
    EXPECT_FALSE(mtu("192.0.2.1", 1450));
    now += 1;
    EXPECT_TRUE(mtu("192.0.2.1", 1450)) << "expired, though nobody has swept";
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 1450");
}

TEST_F(ExceptionsTest, the_same_mtu_again_makes_it_last_but_not_at_once) {
    mtu("192.0.2.1", 1400);
    now += 299;
    EXPECT_FALSE(mtu("192.0.2.1", 1400));
    now += 1;
    EXPECT_TRUE(mtu("192.0.2.1", 1400));
    EXPECT_EQ(found("192.0.2.1")->expiry_s, now + 600);
}

TEST_F(ExceptionsTest, Check_87_destinations_and_domains_are_apart) {
    mtu("192.0.2.1", 1400);
    mtu("192.0.2.1", 1300, kBlue);
    mtu("192.0.2.2", 1200);
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 1400");
    EXPECT_EQ(path("192.0.2.1", kBlue), "10.0.0.1 1300");
    EXPECT_EQ(path("192.0.2.2"), "10.0.0.1 1200");
    EXPECT_EQ(path("192.0.2.2", kBlue), "tables");
    std::size_t removed = 0;
    EXPECT_EQ(exceptions.flush_domain(kLo, {}, 1, removed), ip("192.0.2.2"));
    EXPECT_EQ(exceptions.flush_domain(kLo, ip("192.0.2.2"), 1, removed), std::nullopt);
    EXPECT_EQ(removed, 2U);
    EXPECT_EQ(path("192.0.2.1", kBlue), "10.0.0.1 1300");
    EXPECT_EQ(exceptions.flush_domain(kBlue, {}, 32, removed), std::nullopt);
    EXPECT_EQ(removed, 3U);
    expect_none();
}

TEST_F(ExceptionsTest, Check_83_redirect_then_mtu) {
    EXPECT_TRUE(redirect("192.0.2.1", "10.0.0.9"));
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.9 1500");
    EXPECT_TRUE(mtu("192.0.2.1", 1300));
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.9 1300");
    EXPECT_EQ(actions.attached.begin()->second, (NeighborKey{kP0, ip("10.0.0.9")}));
    exceptions.flush();
    expect_none();
}

TEST_F(ExceptionsTest, Check_83_mtu_then_redirect) {
    EXPECT_TRUE(mtu("192.0.2.1", 1300));
    EXPECT_TRUE(redirect("192.0.2.1", "10.0.0.9"));
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.9 1300");
    EXPECT_TRUE(redirect("192.0.2.1", "10.0.0.8")) << "and another";
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.8 1300");
    exceptions.flush();
    expect_none();
}

TEST_F(ExceptionsTest, Check_81_only_redirects_that_change_something_here) {
    EXPECT_FALSE(redirect("192.0.2.1", "10.0.0.1")) << "the same gateway";
    EXPECT_FALSE(redirect("192.0.2.1", "10.0.0.9", kP1)) << "from a link it does not leave by";
    EXPECT_FALSE(redirect("192.0.2.1", "fe80::9")) << "of the other family";
    EXPECT_EQ(exceptions.size(), 0U);
    actions.otherwise = gateway6;
    EXPECT_TRUE(redirect("2001:db8::1", "2001:db8::1")) << "it is on the link";
    EXPECT_EQ(path("2001:db8::1"), "2001:db8::1 1500");
}

TEST_F(ExceptionsTest, a_host_of_a_connected_prefix_is_its_own_gateway) {
    actions.otherwise = connected;
    EXPECT_TRUE(mtu("10.0.1.5", 1400));
    EXPECT_EQ(path("10.0.1.5"), "10.0.1.5 1400");
    EXPECT_EQ(found("10.0.1.5")->type, DstType::kUnicast);
    EXPECT_EQ(actions.attached.begin()->second, (NeighborKey{kP1, ip("10.0.1.5")}));
}

TEST_F(ExceptionsTest, nothing_is_learned_where_nothing_leaves) {
    for (const DstType type : {DstType::kNone,
                               DstType::kLocal,
                               DstType::kBroadcast,
                               DstType::kUnreachable,
                               DstType::kBlackhole}) {
        shared.dsts.writable(gateway).type = type;
        EXPECT_FALSE(mtu("192.0.2.1", 1400));
        EXPECT_FALSE(redirect("192.0.2.1", "10.0.0.9"));
    }
    shared.dsts.writable(gateway).type = DstType::kUnicast;
    fib::repoint_to_blackhole(shared.dsts.writable(gateway));
    EXPECT_FALSE(mtu("192.0.2.1", 1400));
    expect_none();
}

struct MtuCase {
    std::string name;
    std::string to;
    std::uint16_t link, reported;
    std::string path;
};
class ExceptionMtu : public ExceptionsTest, public ::testing::WithParamInterface<MtuCase> {};

TEST_P(ExceptionMtu, is_believed_within_limits) {
    const MtuCase& c = GetParam();
    actions.otherwise = ip(c.to).is_v4() ? gateway : gateway6;
    shared.dsts.writable(actions.otherwise).mtu = c.link;
    EXPECT_EQ(mtu(c.to, c.reported), c.path != "tables");
    EXPECT_EQ(path(c.to), c.path);
}

INSTANTIATE_TEST_SUITE_P(
    Exceptions,
    ExceptionMtu,
    ::testing::Values(MtuCase{"least", "192.0.2.1", 1500, 552, "10.0.0.1 552"},
                      MtuCase{"Check_89_less", "192.0.2.1", 1500, 400, "10.0.0.1 552 locked"},
                      MtuCase{"link_below_the_least", "192.0.2.1", 500, 400, "tables"},
                      MtuCase{"not_said_1500", "192.0.2.1", 1500, 0, "10.0.0.1 1492"},
                      MtuCase{"not_said_9000", "192.0.2.1", 9000, 0, "10.0.0.1 8166"},
                      MtuCase{"not_said_1006", "192.0.2.1", 1006, 0, "10.0.0.1 552 locked"},
                      MtuCase{"v6_least", "2001:db8::1", 1500, 1280, "fe80::1 1280"},
                      MtuCase{"v6_less_is_ignored", "2001:db8::1", 1500, 1279, "tables"},
                      MtuCase{"v6_zero_is_ignored", "2001:db8::1", 1500, 0, "tables"}),
    [](const auto& row) { return row.param.name; });

/// The netdev's MTU as next hops have it, then exceptions.
class ExceptionLinkMtu : public ExceptionsTest {
protected:
    void set_link(std::uint16_t value) {
        const std::uint16_t old = std::exchange(shared.dsts.writable(gateway).mtu, value);
        exceptions.set_link_mtu(kP0, old, value);
    }
};

TEST_F(ExceptionLinkMtu, Check_88_lowered_below_what_was_learned_and_raised) {
    set_link(2000);
    mtu("192.0.2.1", 1400);
    actions.routes[{kLo, ip("192.0.2.2")}] = connected;
    shared.dsts.writable(connected).mtu = 2000;
    mtu("192.0.2.2", 1500);
    const Dst* before = found("192.0.2.1");
    set_link(1300);
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 1300");
    EXPECT_EQ(path("192.0.2.2"), "192.0.2.2 1500") << "by another netdev";
    set_link(1700);
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 1700");
    EXPECT_EQ(found("192.0.2.1"), before) << "the same dst all the time";
}

TEST_F(ExceptionLinkMtu, Check_89_locked_552_then_500_then_1500) {
    mtu("192.0.2.1", 400);
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 552 locked");
    set_link(500);
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 500");
    set_link(1500);
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 1500");
}

TEST_F(ExceptionLinkMtu, follows_the_link_where_only_a_gateway_was_learned) {
    redirect("192.0.2.1", "10.0.0.9");
    set_link(1300);
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.9 1300");
    set_link(9000);
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.9 9000");
}

TEST_F(ExceptionsTest, expire_in_the_order_of_their_last_change) {
    mtu("192.0.2.1", 1400);
    now += 10;
    mtu("192.0.2.2", 1400);
    now += 10;
    mtu("192.0.2.1", 1300);
    EXPECT_EQ(exceptions.expire(1609), 0U);
    EXPECT_EQ(exceptions.expire(1610), 1U);
    EXPECT_EQ(path("192.0.2.2"), "tables");
    EXPECT_EQ(exceptions.expire(1619), 0U);
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 1300");
    EXPECT_EQ(exceptions.expire(5000), 1U);
    expect_none();
}

TEST_F(ExceptionsTest, Check_84_a_route_that_changes_takes_its_exceptions_along) {
    mtu("192.0.2.1", 1400);
    mtu("192.0.2.1", 1400, kBlue);
    mtu("192.0.3.1", 1400);
    actions.routes[{kLo, ip("192.0.2.1")}] = connected;
    actions.routes[{kBlue, ip("192.0.2.1")}] = connected;
    EXPECT_EQ(exceptions.recheck(*net::IpPrefix::parse("192.0.3.0/24")), 0U);
    EXPECT_EQ(exceptions.recheck(*net::IpPrefix::parse("192.0.0.0/23")), 0U);
    EXPECT_EQ(exceptions.recheck(*net::IpPrefix::parse("192.0.2.0/24")), 2U);
    EXPECT_EQ(path("192.0.2.1"), "tables");
    EXPECT_EQ(path("192.0.3.1"), "10.0.0.1 1400") << "its route is what it was";
    EXPECT_EQ(exceptions.recheck(), 0U);
    actions.otherwise = fib::kNoRoute;
    EXPECT_EQ(exceptions.recheck(*net::IpPrefix::parse("::/0")), 0U);
    EXPECT_EQ(exceptions.recheck(*net::IpPrefix::parse("0.0.0.0/0")), 1U);
    expect_none();
}

TEST_F(ExceptionsTest, Check_91_listed_then_flushed) {
    mtu("192.0.2.1", 1400);
    mtu("192.0.2.2", 1300);
    std::set<std::string> listed;
    exceptions.for_each([&](const Exception& e) {
        listed.insert(e.destination.to_string() + " " + std::to_string(e.mtu));
    });
    EXPECT_EQ(listed, (std::set<std::string>{"192.0.2.1 1400", "192.0.2.2 1300"}));
    EXPECT_EQ(exceptions.flush(), 2U);
    expect_none();
}

// Whichever comes first, the flush of the uncached lists or that of the exceptions.
TEST_F(ExceptionsTest, Check_92_removal_of_the_netdev_leaves_no_reference) {
    for (const bool lists_first : {false, true}) {
        mtu("192.0.2.1", 1400);
        redirect("192.0.2.2", "10.0.0.9");
        actions.routes[{kLo, ip("192.0.2.3")}] = connected;
        mtu("192.0.2.3", 1400);
        const std::vector<NetdevId> gone{kP0};
        std::size_t repointed = 0;
        const auto flush_lists = [&] {
            while (uncached.flush(gone, 100, [&](fib::DstIndex dst, bool) {
                fib::repoint_to_blackhole(shared.dsts.writable(dst));
                ++repointed;
            })) {
            }
        };
        if (lists_first) {
            flush_lists();
            EXPECT_EQ(repointed, 2U);
        }
        EXPECT_EQ(exceptions.flush_netdev(kP0), 2U);
        flush_lists();
        EXPECT_EQ(path("192.0.2.3"), "192.0.2.3 1400") << "by another netdev";
        EXPECT_EQ(exceptions.flush_netdev(kP1), 1U);
        expect_none();
    }
}

TEST_F(ExceptionsTest, dsts_of_a_netdev_can_be_refilled) {
    mtu("192.0.2.1", 1400);
    redirect("192.0.2.2", "10.0.0.9");
    actions.routes[{kLo, ip("192.0.2.3")}] = connected;
    mtu("192.0.2.3", 1400);
    std::size_t seen = 0;
    exceptions.for_each_dst_on(kP0, [&](Dst& dst) {
        EXPECT_EQ(dst.out, kP0);
        ++seen;
    });
    EXPECT_EQ(seen, 2U);
}

class FewExceptions : public ExceptionsTest {
protected:
    FewExceptions() : ExceptionsTest({.lifetime_s = 60, .most = 3}) {}
};

TEST_F(FewExceptions, the_oldest_goes_for_one_too_many) {
    mtu("192.0.2.1", 1400);
    mtu("192.0.2.2", 1400);
    mtu("192.0.2.3", 1400);
    EXPECT_TRUE(mtu("192.0.2.1", 1300)) << "no new one";
    EXPECT_EQ(exceptions.size(), 3U);
    EXPECT_TRUE(mtu("192.0.2.4", 1400));
    EXPECT_EQ(exceptions.size(), 3U);
    EXPECT_EQ(path("192.0.2.2"), "tables");
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 1300");
    EXPECT_EQ(found("192.0.2.4")->expiry_s, now + 60);
    exceptions.flush();
    expect_none();
}

TEST_F(ExceptionsTest, without_a_free_dst_all_stays_as_it_was) {
    mtu("192.0.2.1", 1400);
    std::vector<fib::DstIndex> taken;
    for (auto dst = shared.dsts.allocate(); dst; dst = shared.dsts.allocate()) {
        taken.push_back(*dst);
    }
    EXPECT_FALSE(mtu("192.0.2.1", 1300));
    EXPECT_FALSE(mtu("192.0.2.2", 1300));
    EXPECT_EQ(path("192.0.2.1"), "10.0.0.1 1400");
    EXPECT_EQ(path("192.0.2.2"), "tables");
    for (const fib::DstIndex dst : taken) {
        shared.dsts.release(dst);
    }
    exceptions.flush();
    expect_none();
}

}  // namespace
}  // namespace sluice::control::test
