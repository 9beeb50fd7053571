// SPDX-License-Identifier: BSD-3-Clause
#include "control/neighbor_table.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/id.h"
#include "base/result.h"
#include "net/address.h"

namespace sluice::control {

// GoogleTest finds it by its name.
void PrintTo(NeighborState state, std::ostream* out) {
    *out << to_string(state);
}

namespace {

using namespace std::chrono_literals;
using enum NeighborState;
using Log = std::vector<std::string>;

constexpr net::MacAddr kA{{2, 0, 0, 0, 0, 0x0a}};
constexpr net::MacAddr kB{{2, 0, 0, 0, 0, 0x0b}};
constexpr NetdevId kPort{1};
constexpr NetdevId kOtherPort{2};
constexpr NeighborKey kHost{kPort, net::Ipv4Addr{{10, 0, 0, 2}}};

NeighborKey host(std::uint32_t n) {
    return {kPort, net::Ipv4Addr::from_host(0x0a000000U + n)};
}

std::string name_of(const net::MacAddr& mac) {
    if (mac == kA) {
        return "A";
    }
    return mac == kB ? "B" : mac.to_string();
}

/// Writes down what it is told; calls about other neighbours than kHost carry their address.
class Recorder final : public NeighborActions {
public:
    Log take() { return std::exchange(log_, {}); }

    void solicit(const NeighborKey& key, std::optional<net::MacAddr> unicast_to) override {
        note(key, "ask " + (unicast_to ? name_of(*unicast_to) : "all"));
    }
    void reachable(const NeighborKey& key, const net::MacAddr& mac) override {
        note(key, "reachable " + name_of(mac));
    }
    void report_use(const NeighborKey& key, bool on) override {
        note(key, on ? "report on" : "report off");
    }
    void failed(const NeighborKey& key) override { note(key, "failed"); }
    void removed(const NeighborKey& key, NeighborState) override { note(key, "removed"); }

private:
    void note(const NeighborKey& key, const std::string& what) {
        log_.push_back(
            key == kHost
                ? what
                : fmt::format("{}%{}: {}", key.address.to_string(), key.netdev.value, what));
    }
    Log log_;
};

constexpr Observation kArpReply{.mac = kA, .solicited = true, .override = true};
constexpr Observation kArpRequestToUs{.mac = kA, .override = true, .create = true};
constexpr Observation kGratuitousArp{.mac = kA, .override = true};

Observation with(Observation observation, std::optional<net::MacAddr> mac) {
    observation.mac = mac;
    return observation;
}

class NeighborTableTest : public testing::Test {
protected:
    explicit NeighborTableTest(const NeighborSettings& settings = {}) : table(actions, settings) {}

    /// Time passes; the control thread wakes for every deadline.
    void pass(Time duration) {
        const Time end = now + duration;
        while (table.next_deadline().value_or(Time::max()) <= end) {
            now = std::max(now, *table.next_deadline());
            ASSERT_GT(table.tick(now), 0U);
        }
        now = end;
        table.tick(now);
    }

    /// Brings kHost, with MAC A where it has one, into a state; forgets what happened on the way.
    void enter(NeighborState state) {
        switch (state) {
            case kPermanent:
                ASSERT_TRUE(table.add_permanent(kHost, kA, now));
                break;
            case kIncomplete:
                table.resolve(kHost, now);
                break;
            case kFailed:
                table.resolve(kHost, now);
                pass(3s);
                break;
            case kReachable:
                table.resolve(kHost, now);
                table.observe(kHost, kArpReply, now);
                break;
            case kStale:
                table.observe(kHost, kArpRequestToUs, now);
                break;
            case kDelay:
                table.observe(kHost, kArpRequestToUs, now);
                table.used(kHost, now);
                break;
            case kProbe:
                enter(kDelay);
                pass(5s);
                break;
            case kCount:
                FAIL();
        }
        ASSERT_EQ(this->state(), state);
        actions.take();
    }

    std::optional<NeighborState> state(const NeighborKey& key = kHost) const {
        const Neighbor* neighbor = table.find(key);
        return neighbor == nullptr ? std::nullopt : std::optional(neighbor->state);
    }
    std::optional<net::MacAddr> mac(const NeighborKey& key = kHost) const {
        const Neighbor* neighbor = table.find(key);
        return neighbor == nullptr ? std::nullopt : neighbor->mac;
    }

    Recorder actions;
    NeighborTable table;
    Time now = 1000h;
};

// --- RFC 4861 7.2.3, 7.2.5: what a message does, from every state ---

struct Case {
    const char* name;
    std::optional<NeighborState> from = {};  // with MAC A; none: no entry
    Observation in;
    Observed want = Observed::kUnchanged;
    std::optional<NeighborState> to = {};
    std::optional<net::MacAddr> mac = {};
    Log actions = {};
};
void PrintTo(const Case& c, std::ostream* out) {
    *out << c.name;
}

class Observe : public NeighborTableTest, public testing::WithParamInterface<Case> {};

TEST_P(Observe, Rfc4861_7_2_5) {
    const Case& c = GetParam();
    if (c.from) {
        enter(*c.from);
    }
    EXPECT_EQ(table.observe(kHost, c.in, now), c.want);
    EXPECT_EQ(state(), c.to);
    EXPECT_EQ(mac(), c.mac);
    EXPECT_EQ(actions.take(), c.actions);
}

constexpr Observation kNaSolicited{.mac = kA, .solicited = true, .is_router = true};
constexpr Observation kNaUnsolicited{.mac = kA, .is_router = true};
constexpr Observation kNaBareSolicited{.solicited = true, .is_router = true};
constexpr Observation kNaBare{.override = true, .is_router = true};
constexpr net::MacAddr kGroup{{0x33, 0x33, 0, 0, 0, 1}};

INSTANTIATE_TEST_SUITE_P(
    Messages,
    Observe,
    testing::Values(
        // No entry.
        Case{.name = "none_reply_is_unknown", .in = kArpReply, .want = Observed::kUnknown},
        Case{.name = "Check_105_gratuitous_arp_makes_no_entry",
             .in = kGratuitousArp,
             .want = Observed::kUnknown},
        Case{.name = "Check_105_gratuitous_arp_accepted_makes_a_stale_entry",
             .in = {.mac = kA, .override = true, .create = true},
             .want = Observed::kCreated,
             .to = kStale,
             .mac = kA,
             .actions = {"reachable A", "report on"}},
        Case{.name = "Check_106_unsolicited_na_makes_no_entry",
             .in = kNaUnsolicited,
             .want = Observed::kUnknown},
        Case{.name = "Check_106_unsolicited_na_accepted_makes_a_stale_entry",
             .in = {.mac = kA, .override = true, .is_router = false, .create = true},
             .want = Observed::kCreated,
             .to = kStale,
             .mac = kA,
             .actions = {"reachable A", "report on"}},
        Case{.name = "none_na_without_address_makes_no_entry",
             .in = {.create = true},
             .want = Observed::kUnknown},
        Case{.name = "none_group_mac_makes_no_entry",
             .in = with(kArpRequestToUs, kGroup),
             .want = Observed::kBadMac},
        Case{.name = "none_zero_mac_makes_no_entry",
             .in = with(kArpRequestToUs, net::MacAddr{}),
             .want = Observed::kBadMac},
        // INCOMPLETE: any address is taken, the override flag does not matter.
        Case{.name = "incomplete_arp_reply",
             .from = kIncomplete,
             .in = kArpReply,
             .want = Observed::kUpdated,
             .to = kReachable,
             .mac = kA,
             .actions = {"reachable A"}},
        Case{.name = "incomplete_solicited_without_override",
             .from = kIncomplete,
             .in = kNaSolicited,
             .want = Observed::kUpdated,
             .to = kReachable,
             .mac = kA,
             .actions = {"reachable A"}},
        Case{.name = "incomplete_unsolicited",
             .from = kIncomplete,
             .in = kNaUnsolicited,
             .want = Observed::kUpdated,
             .to = kStale,
             .mac = kA,
             .actions = {"reachable A", "report on"}},
        Case{.name = "incomplete_solicitation_from_it",
             .from = kIncomplete,
             .in = kArpRequestToUs,
             .want = Observed::kUpdated,
             .to = kStale,
             .mac = kA,
             .actions = {"reachable A", "report on"}},
        Case{.name = "incomplete_without_address",
             .from = kIncomplete,
             .in = kNaBareSolicited,
             .to = kIncomplete},
        Case{.name = "incomplete_group_mac",
             .from = kIncomplete,
             .in = with(kArpReply, net::kBroadcastMac),
             .want = Observed::kBadMac,
             .to = kIncomplete},
        // FAILED: a late answer counts.
        Case{.name = "failed_late_reply",
             .from = kFailed,
             .in = kArpReply,
             .want = Observed::kUpdated,
             .to = kReachable,
             .mac = kA,
             .actions = {"reachable A"}},
        Case{.name = "failed_gratuitous_arp",
             .from = kFailed,
             .in = kGratuitousArp,
             .want = Observed::kUpdated,
             .to = kStale,
             .mac = kA,
             .actions = {"reachable A", "report on"}},
        // REACHABLE
        Case{.name = "reachable_confirmed",
             .from = kReachable,
             .in = kNaSolicited,
             .want = Observed::kUpdated,
             .to = kReachable,
             .mac = kA},
        Case{.name = "reachable_other_mac_without_override_is_doubted",
             .from = kReachable,
             .in = with(kNaSolicited, kB),
             .want = Observed::kUpdated,
             .to = kStale,
             .mac = kA,
             .actions = {"report on"}},
        Case{.name = "Case_55_reachable_gratuitous_arp_moves_it",
             .from = kReachable,
             .in = with(kGratuitousArp, kB),
             .want = Observed::kUpdated,
             .to = kStale,
             .mac = kB,
             .actions = {"reachable B", "report on"}},
        Case{.name = "reachable_solicited_override_moves_it",
             .from = kReachable,
             .in = with(kArpReply, kB),
             .want = Observed::kUpdated,
             .to = kReachable,
             .mac = kB,
             .actions = {"reachable B"}},
        Case{.name = "reachable_same_mac_unsolicited",
             .from = kReachable,
             .in = kGratuitousArp,
             .to = kReachable,
             .mac = kA},
        Case{.name = "reachable_same_mac_solicitation",
             .from = kReachable,
             .in = kArpRequestToUs,
             .to = kReachable,
             .mac = kA},
        // STALE
        Case{.name = "stale_confirmed",
             .from = kStale,
             .in = kArpReply,
             .want = Observed::kUpdated,
             .to = kReachable,
             .mac = kA,
             .actions = {"report off"}},
        Case{.name = "stale_confirmed_without_address",
             .from = kStale,
             .in = kNaBareSolicited,
             .want = Observed::kUpdated,
             .to = kReachable,
             .mac = kA,
             .actions = {"report off"}},
        Case{.name = "stale_unsolicited_without_address",
             .from = kStale,
             .in = kNaBare,
             .to = kStale,
             .mac = kA},
        Case{.name = "stale_other_mac_without_override_is_ignored",
             .from = kStale,
             .in = with(kNaSolicited, kB),
             .to = kStale,
             .mac = kA},
        Case{.name = "stale_gratuitous_arp_moves_it",
             .from = kStale,
             .in = with(kGratuitousArp, kB),
             .want = Observed::kUpdated,
             .to = kStale,
             .mac = kB,
             .actions = {"reachable B"}},
        Case{.name = "stale_reply_moves_it",
             .from = kStale,
             .in = with(kArpReply, kB),
             .want = Observed::kUpdated,
             .to = kReachable,
             .mac = kB,
             .actions = {"reachable B", "report off"}},
        // DELAY
        Case{.name = "delay_confirmed",
             .from = kDelay,
             .in = kArpReply,
             .want = Observed::kUpdated,
             .to = kReachable,
             .mac = kA},
        Case{.name = "delay_same_mac_unsolicited",
             .from = kDelay,
             .in = kGratuitousArp,
             .to = kDelay,
             .mac = kA},
        Case{.name = "delay_gratuitous_arp_moves_it",
             .from = kDelay,
             .in = with(kGratuitousArp, kB),
             .want = Observed::kUpdated,
             .to = kStale,
             .mac = kB,
             .actions = {"reachable B", "report on"}},
        // PROBE
        Case{.name = "probe_answered",
             .from = kProbe,
             .in = kNaSolicited,
             .want = Observed::kUpdated,
             .to = kReachable,
             .mac = kA},
        Case{.name = "probe_other_mac_without_override_is_ignored",
             .from = kProbe,
             .in = with(kNaSolicited, kB),
             .to = kProbe,
             .mac = kA},
        Case{.name = "probe_unsolicited_is_no_answer",
             .from = kProbe,
             .in = kNaUnsolicited,
             .to = kProbe,
             .mac = kA},
        Case{.name = "probe_gratuitous_arp_moves_it",
             .from = kProbe,
             .in = with(kGratuitousArp, kB),
             .want = Observed::kUpdated,
             .to = kStale,
             .mac = kB,
             .actions = {"reachable B", "report on"}},
        // PERMANENT
        Case{.name = "permanent_is_deaf",
             .from = kPermanent,
             .in = with(kArpReply, kB),
             .to = kPermanent,
             .mac = kA}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_F(NeighborTableTest, Rfc4861_7_2_5_RouterFlagFollowsAcceptedAdvertisementsOnly) {
    enter(kStale);
    EXPECT_FALSE(table.find(kHost)->is_router);
    table.observe(kHost, with(kNaSolicited, kB), now);  // ignored: other MAC, no override
    EXPECT_FALSE(table.find(kHost)->is_router);
    table.observe(kHost, kNaSolicited, now);
    EXPECT_TRUE(table.find(kHost)->is_router);
    table.observe(
        kHost, with(kArpRequestToUs, kB), now);  // 7.2.3: a solicitation says nothing of it
    EXPECT_TRUE(table.find(kHost)->is_router);
}

// --- walks through the machine ---

TEST_F(NeighborTableTest, Rfc4861_7_2_2_NoAnswerToThreeSolicitationsFails) {
    EXPECT_EQ(table.resolve(kHost, now), Resolve::kStarted);
    EXPECT_EQ(actions.take(), Log{"ask all"});
    pass(999ms);
    EXPECT_EQ(actions.take(), Log{});
    pass(1ms);
    EXPECT_EQ(actions.take(), Log{"ask all"});
    pass(1s);
    EXPECT_EQ(actions.take(), Log{"ask all"});
    pass(999ms);
    EXPECT_EQ(actions.take(), Log{});
    EXPECT_EQ(state(), kIncomplete);
    pass(1ms);
    EXPECT_EQ(actions.take(), Log{"failed"});
    EXPECT_EQ(state(), kFailed);
    pass(1s);
    EXPECT_EQ(actions.take(), Log{"removed"});
    EXPECT_EQ(table.size(), 0U);
    EXPECT_EQ(table.next_deadline(), std::nullopt);
}

TEST_F(NeighborTableTest, Rfc4861_7_3_LifeOfAUsedNeighbor) {
    enter(kReachable);
    pass(14'999ms);  // at least half the reachable time
    EXPECT_EQ(actions.take(), Log{});
    EXPECT_EQ(state(), kReachable);
    pass(30'001ms);  // at most one and a half
    EXPECT_EQ(actions.take(), Log{"report on"});
    EXPECT_EQ(state(), kStale);
    table.used(kHost, now);
    table.used(kHost, now);  // another worker's
    EXPECT_EQ(actions.take(), Log{"report off"});
    EXPECT_EQ(state(), kDelay);
    pass(4'999ms);
    EXPECT_EQ(actions.take(), Log{});
    pass(1ms);
    EXPECT_EQ(actions.take(), Log{"ask A"});
    EXPECT_EQ(state(), kProbe);
    table.observe(kHost, kArpReply, now);
    EXPECT_EQ(actions.take(), Log{});  // the MAC is the one that dsts have
    EXPECT_EQ(state(), kReachable);
}

TEST_F(NeighborTableTest, Rfc4861_6_3_2_ReachableTimesDiffer) {
    std::map<Time, int> times;
    for (std::uint32_t n = 0; n < 100; ++n) {
        table.resolve(host(n), now);
        table.observe(host(n), kArpReply, now);
        const Time ends = *table.next_deadline() - now;
        EXPECT_GE(ends, 15s);
        EXPECT_LE(ends, 45s);
        ++times[ends];
        table.remove(host(n));
    }
    EXPECT_GT(times.size(), 90U);
    EXPECT_GT(times.rbegin()->first - times.begin()->first, 20s);
}

TEST_F(NeighborTableTest, Case_49_SilentMacChangeIsFoundByMulticastAfterUnicast) {
    enter(kStale);
    table.used(kHost, now);
    pass(7s);
    EXPECT_EQ(actions.take(), (Log{"report off", "ask A", "ask A", "ask A"}));
    EXPECT_EQ(mac(), kA);  // traffic goes on meanwhile
    pass(1s);
    EXPECT_EQ(actions.take(), Log{"ask all"});
    EXPECT_EQ(mac(), kA);
    EXPECT_EQ(table.observe(kHost, with(kArpReply, kB), now), Observed::kUpdated);
    EXPECT_EQ(actions.take(), Log{"reachable B"});
    EXPECT_EQ(state(), kReachable);
    pass(10s);
    EXPECT_EQ(actions.take(), Log{});
}

TEST_F(NeighborTableTest, Case_48_UnpluggedGatewayFailsAndComesBack) {
    table.pin(kHost);
    enter(kProbe);
    pass(5s);
    EXPECT_EQ(actions.take(), (Log{"ask A", "ask A", "ask all", "ask all", "ask all"}));
    EXPECT_EQ(state(), kProbe);
    pass(1s);
    EXPECT_EQ(actions.take(), Log{"failed"});
    EXPECT_EQ(state(), kFailed);
    EXPECT_EQ(mac(), std::nullopt);
    pass(24h);
    EXPECT_EQ(actions.take(), Log{});
    EXPECT_EQ(state(), kFailed);
    EXPECT_EQ(table.resolve(kHost, now), Resolve::kStarted);
    table.observe(kHost, kArpReply, now);
    EXPECT_EQ(actions.take(), (Log{"ask all", "reachable A"}));
    EXPECT_EQ(state(), kReachable);
}

TEST_F(NeighborTableTest, Case_47_OrderA_RouteThenRequestFromGateway) {
    table.pin(kHost);
    EXPECT_EQ(table.size(), 0U);
    EXPECT_EQ(table.observe(kHost, kArpRequestToUs, now), Observed::kCreated);
    EXPECT_TRUE(table.find(kHost)->pinned);
    EXPECT_EQ(table.resolve(kHost, now), Resolve::kKnown);
    EXPECT_EQ(table.size(), 1U);
}

TEST_F(NeighborTableTest, Case_47_OrderB_RequestFromGatewayThenRoute) {
    EXPECT_EQ(table.observe(kHost, kArpRequestToUs, now), Observed::kCreated);
    table.pin(kHost);
    EXPECT_TRUE(table.find(kHost)->pinned);
    EXPECT_EQ(table.resolve(kHost, now), Resolve::kKnown);
    EXPECT_EQ(table.size(), 1U);
}

TEST_F(NeighborTableTest, Case_54_OneSolicitationASecondUnderFlood) {
    std::size_t asked = 0;
    std::size_t failed = 0;
    for (int ms = 0; ms < 9'500; ++ms) {
        table.resolve(kHost, now);
        pass(1ms);
        for (const std::string& line : actions.take()) {
            asked += line == "ask all" ? 1 : 0;
            failed += line == "failed" ? 1 : 0;
        }
    }
    EXPECT_EQ(asked, 10U);
    EXPECT_EQ(failed, 3U);
    EXPECT_EQ(table.size(), 1U);
}

TEST_F(NeighborTableTest, Case_56_SameAddressOnTwoNetdevsIsTwoNeighbors) {
    const NeighborKey other{kOtherPort, kHost.address};
    table.observe(kHost, kArpRequestToUs, now);
    table.observe(other, with(kArpRequestToUs, kB), now);
    EXPECT_EQ(mac(kHost), kA);
    EXPECT_EQ(mac(other), kB);
}

TEST_F(NeighborTableTest, Check_133_257WaitingPacketsAskOnce) {
    for (int i = 0; i < 257; ++i) {
        EXPECT_EQ(table.resolve(kHost, now), Resolve::kStarted);
    }
    EXPECT_EQ(actions.take(), Log{"ask all"});
}

TEST_F(NeighborTableTest, Check_134_ThousandIpv6NeighborsAlikeButForTheLow32Bits) {
    for (std::uint32_t n = 0; n < 1000; ++n) {
        net::Ipv6Addr address{{0xfd, 0}};
        for (unsigned i = 0; i < 4; ++i) {
            address.bytes[12 + i] = static_cast<std::uint8_t>(n * 2654435761U >> (24 - 8 * i));
        }
        EXPECT_EQ(table.resolve({kPort, address}, now), Resolve::kStarted);
    }
    EXPECT_EQ(actions.take().size(), 1000U);
    EXPECT_EQ(table.count(kIncomplete), 1000U);
}

// A worker may hold a packet after the answer went out to it: it must hear the answer again.
TEST_F(NeighborTableTest, ResolveOfAKnownNeighborAnswersAgainAndIsAUse) {
    enter(kReachable);
    EXPECT_EQ(table.resolve(kHost, now), Resolve::kKnown);
    EXPECT_EQ(actions.take(), Log{"reachable A"});
    EXPECT_EQ(state(), kReachable);
    table.remove(kHost);
    enter(kStale);
    EXPECT_EQ(table.resolve(kHost, now), Resolve::kKnown);
    EXPECT_EQ(actions.take(), (Log{"reachable A", "report off"}));
    EXPECT_EQ(state(), kDelay);
}

TEST_F(NeighborTableTest, UseIsNewsOnlyWhenStale) {
    table.used(kHost, now);
    EXPECT_EQ(table.size(), 0U);
    for (const NeighborState from :
         {kIncomplete, kFailed, kReachable, kDelay, kProbe, kPermanent}) {
        enter(from);
        table.used(kHost, now);
        EXPECT_EQ(state(), from);
        EXPECT_EQ(actions.take(), Log{});
        table.remove(kHost);
    }
}

TEST_F(NeighborTableTest, StaleAndUnusedIsForgotten) {
    enter(kStale);
    pass(59'999ms);
    EXPECT_EQ(state(), kStale);
    pass(1ms);
    EXPECT_EQ(actions.take(), Log{"removed"});
    EXPECT_EQ(table.size(), 0U);
}

TEST_F(NeighborTableTest, PinnedIsNotForgottenUntilTheLastUnpin) {
    table.pin(kHost);
    table.pin(kHost);
    enter(kStale);
    table.unpin(kHost);
    pass(24h);
    EXPECT_EQ(state(), kStale);
    table.unpin(kHost);
    pass(0s);
    EXPECT_EQ(actions.take(), Log{"removed"});
}

TEST_F(NeighborTableTest, PinKeepsAnEntryThatIsAlreadyThere) {
    enter(kStale);
    table.pin(kHost);
    pass(24h);
    EXPECT_EQ(state(), kStale);
    EXPECT_EQ(actions.take(), Log{});
}

TEST_F(NeighborTableTest, PinOutlivesRemoval) {
    table.pin(kHost);
    enter(kReachable);
    EXPECT_TRUE(table.remove(kHost));
    EXPECT_FALSE(table.remove(kHost));
    EXPECT_EQ(actions.take(), Log{"removed"});
    enter(kStale);
    EXPECT_TRUE(table.find(kHost)->pinned);
}

// --- static entries, flaps ---

TEST_F(NeighborTableTest, Check_136_StaticReplacesDynamicOfAnyState) {
    for (const NeighborState from : {kIncomplete, kFailed, kReachable, kStale, kDelay, kProbe}) {
        for (const net::MacAddr& wanted : {kA, kB}) {
            enter(from);
            ASSERT_TRUE(table.add_permanent(kHost, wanted, now));
            Log want{"reachable " + name_of(wanted)};
            if (from == kStale) {
                want.emplace_back("report off");
            }
            EXPECT_EQ(actions.take(), want) << to_string(from);
            EXPECT_EQ(state(), kPermanent);
            EXPECT_EQ(mac(), wanted);
            EXPECT_EQ(table.next_deadline(), std::nullopt) << to_string(from);
            EXPECT_TRUE(table.remove(kHost));
            EXPECT_EQ(actions.take(), Log{"removed"});
        }
    }
}

TEST_F(NeighborTableTest, Check_136_NetdevFlapTakesDynamicEntriesOnly) {
    const NeighborKey next_port{kOtherPort, kHost.address};
    const NeighborKey v6{kPort, net::Ipv6Addr{{0xfe, 0x80}}};
    ASSERT_TRUE(table.add_permanent(host(1), kB, now));
    table.observe(kHost, kArpRequestToUs, now);
    table.resolve(v6, now);
    table.observe(next_port, kArpRequestToUs, now);
    actions.take();
    table.flush(kPort, true);
    EXPECT_EQ(actions.take(), (Log{"removed", "fe80::%1: removed"}));
    EXPECT_EQ(state(host(1)), kPermanent);
    EXPECT_EQ(mac(host(1)), kB);
    EXPECT_EQ(state(next_port), kStale);
    EXPECT_EQ(table.size(), 2U);
}

TEST_F(NeighborTableTest, Check_139_MovedNetdevIsClearedAndAsksAgain) {
    table.pin(kHost);
    enter(kReachable);
    ASSERT_TRUE(table.add_permanent(host(1), kB, now));
    actions.take();
    table.flush(kPort, false);
    EXPECT_EQ(actions.take(), (Log{"10.0.0.1%1: removed", "removed"}));
    EXPECT_EQ(table.size(), 0U);
    EXPECT_EQ(table.next_deadline(), std::nullopt);
    EXPECT_EQ(table.resolve(kHost, now), Resolve::kStarted);
    EXPECT_EQ(actions.take(), Log{"ask all"});
}

TEST_F(NeighborTableTest, Check_148_StaticGroupOrZeroMacIsRefused) {
    enter(kReachable);
    for (const net::MacAddr& bad : {kGroup, net::kBroadcastMac, net::MacAddr{}}) {
        const Result<void> added = table.add_permanent(kHost, bad, now);
        ASSERT_FALSE(added);
        EXPECT_EQ(added.error().code, ErrorCode::kInvalid);
    }
    EXPECT_EQ(state(), kReachable);
    EXPECT_EQ(actions.take(), Log{});
}

// --- limits ---

class SmallNeighborTableTest : public NeighborTableTest {
protected:
    SmallNeighborTableTest() : NeighborTableTest({.max_entries = 3, .timers_per_tick = 2}) {}
};

TEST_F(SmallNeighborTableTest, Check_140_FullOfWantedEntriesRefusesTheNext) {
    enter(kReachable);
    table.pin(host(10));
    table.observe(host(10), kArpRequestToUs, now);  // stale, but a gateway
    table.resolve(host(11), now);
    actions.take();
    EXPECT_EQ(table.resolve(host(12), now), Resolve::kTableFull);
    EXPECT_EQ(table.observe(host(12), kArpRequestToUs, now), Observed::kTableFull);
    const Result<void> added = table.add_permanent(host(12), kA, now);
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code, ErrorCode::kLimit);
    EXPECT_NE(added.error().message.find("limits.neighbors"), std::string::npos);
    EXPECT_EQ(actions.take(), Log{});
    EXPECT_EQ(state(), kReachable);
    EXPECT_EQ(state(host(10)), kStale);
    EXPECT_EQ(state(host(11)), kIncomplete);
    EXPECT_EQ(table.size(), 3U);
}

TEST_F(SmallNeighborTableTest, Check_140_FullGivesUpWhatIsForgottenFirst) {
    table.observe(host(10), kArpRequestToUs, now);
    pass(1s);
    table.observe(host(11), kArpRequestToUs, now);
    table.resolve(host(12), now);
    pass(3s);
    ASSERT_EQ(state(host(12)), kFailed);
    actions.take();
    EXPECT_EQ(table.resolve(host(13), now), Resolve::kStarted);
    EXPECT_EQ(actions.take(), (Log{"10.0.0.12%1: removed", "10.0.0.13%1: ask all"}));
    EXPECT_TRUE(table.add_permanent(host(14), kA, now));
    EXPECT_EQ(actions.take(), (Log{"10.0.0.10%1: removed", "10.0.0.14%1: reachable A"}));
    EXPECT_EQ(table.observe(host(15), kArpRequestToUs, now), Observed::kCreated);
    EXPECT_EQ(actions.take(),
              (Log{"10.0.0.11%1: removed", "10.0.0.15%1: reachable A", "10.0.0.15%1: report on"}));
    EXPECT_EQ(table.size(), 3U);
}

TEST_F(SmallNeighborTableTest, TickIsBoundedAndSaysSo) {
    for (const std::uint32_t n : {10U, 11U, 12U}) {
        table.resolve(host(n), now);
    }
    now += 1s;
    EXPECT_EQ(table.tick(now), 2U);
    EXPECT_LE(*table.next_deadline(), now);
    EXPECT_EQ(table.tick(now), 1U);
    EXPECT_EQ(*table.next_deadline(), now + 1s);
    EXPECT_EQ(table.tick(now), 0U);
}

// A control thread that was busy for long must not make up for it with a burst.
TEST_F(NeighborTableTest, LateTickAsksOnce) {
    enter(kIncomplete);
    now += 10s;
    table.tick(now);
    EXPECT_EQ(actions.take(), Log{"ask all"});
    EXPECT_EQ(*table.next_deadline(), now + 1s);
}

TEST_F(NeighborTableTest, DefaultLimitHoldsAndEmptiesAgain) {
    const auto limit = static_cast<std::uint32_t>(NeighborSettings{}.max_entries);
    for (std::uint32_t n = 0; n < limit; ++n) {
        ASSERT_EQ(table.resolve(host(n), now), Resolve::kStarted);
    }
    EXPECT_EQ(table.resolve(host(limit), now), Resolve::kTableFull);
    pass(3s);
    EXPECT_EQ(table.count(kFailed), limit);
    EXPECT_EQ(actions.take().size(), std::size_t{limit} * 4);  // three solicitations, one failure
    pass(1s);
    EXPECT_EQ(table.size(), 0U);
}

TEST_F(NeighborTableTest, ShowsEveryEntryInOrderAndCountsByState) {
    table.resolve({kOtherPort, kHost.address}, now);
    table.observe(host(9), kArpRequestToUs, now);
    ASSERT_TRUE(table.add_permanent(host(1), kB, now));
    Log shown;
    table.for_each([&](const Neighbor& n) {
        shown.push_back(fmt::format(
            "{} {} {}", n.key.netdev.value, n.key.address.to_string(), to_string(n.state)));
    });
    EXPECT_EQ(shown, (Log{"1 10.0.0.1 permanent", "1 10.0.0.9 stale", "2 10.0.0.2 incomplete"}));
    EXPECT_EQ(table.count(kPermanent), 1U);
    EXPECT_EQ(table.count(kStale), 1U);
    EXPECT_EQ(table.count(kIncomplete), 1U);
    EXPECT_EQ(table.count(kReachable), 0U);
}

}  // namespace
}  // namespace sluice::control
