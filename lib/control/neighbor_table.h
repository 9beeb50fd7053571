// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/id.h"
#include "base/result.h"
#include "net/address.h"

/// The neighbours of all netdevs and their states (RFC 4861 7.3; ARP runs the same machine, RFC
/// 1122 2.3.2). Logic only: time is an argument, messages and dsts are behind NeighborActions.
namespace sluice::control {

/// Since any epoch that does not jump (the steady clock's).
using Time = std::chrono::nanoseconds;

struct NeighborKey {
    NetdevId netdev;
    net::IpAddr address;
    friend constexpr auto operator<=>(const NeighborKey&, const NeighborKey&) = default;
};

// clang-format off
#define SLUICE_NEIGHBOR_STATES(X)                                                                  \
    X(kIncomplete, "incomplete")  /* asked for, no answer yet */                                   \
    X(kReachable,  "reachable")   /* confirmed within the reachable time */                        \
    X(kStale,      "stale")       /* address known, not confirmed lately, not used since */        \
    X(kDelay,      "delay")       /* used while stale, about to be probed */                       \
    X(kProbe,      "probe")       /* being asked whether it is still there; traffic goes on */     \
    X(kFailed,     "failed")      /* did not answer */                                             \
    X(kPermanent,  "permanent")   /* set by the user: no timers, deaf to the wire */
// clang-format on

enum class NeighborState : std::uint8_t {
#define SLUICE_X(enumerator, name) enumerator,
    SLUICE_NEIGHBOR_STATES(SLUICE_X)
#undef SLUICE_X
        kCount
};
inline constexpr std::size_t kNeighborStates = std::to_underlying(NeighborState::kCount);

/// Part of `neigh show` and of the metrics.
std::string_view to_string(NeighborState state) noexcept;

struct Neighbor {
    NeighborKey key;
    NeighborState state = NeighborState::kIncomplete;
    std::optional<net::MacAddr> mac;  // none while kIncomplete or kFailed
    Time since{};                     // entered `state`, or was last confirmed in it
    bool is_router = false;           // as its last advertisement said
    bool pinned = false;
};

/// What the table makes happen. Called from inside its functions, when the entry already is in its
/// new state; an implementation must not call the table.
class NeighborActions {
public:
    NeighborActions() = default;
    NeighborActions(const NeighborActions&) = delete;
    NeighborActions& operator=(const NeighborActions&) = delete;
    NeighborActions(NeighborActions&&) = delete;
    NeighborActions& operator=(NeighborActions&&) = delete;
    virtual ~NeighborActions() = default;

    /// Sends an ARP request or neighbour solicitation: broadcast or to the solicited-node group
    /// without `unicast_to`.
    virtual void solicit(const NeighborKey& key, std::optional<net::MacAddr> unicast_to) = 0;
    /// The MAC is known, or another one: dsts get it and every worker releases what it holds. Also
    /// called again without news, for a worker that asked when the answer was already on its way.
    virtual void reachable(const NeighborKey& key, const net::MacAddr& mac) = 0;
    /// Workers shall report the next packet sent to it, or need not any more. Off to begin with;
    /// reachable() leaves it as it is, and comes first where both are called.
    virtual void report_use(const NeighborKey& key, bool on) = 0;
    /// No answer: held packets are dropped with an ICMP unreachable, dsts become unresolved.
    virtual void failed(const NeighborKey& key) = 0;
    /// The entry is gone, and was in `last`: dsts become unresolved, packets that wait for an
    /// answer do so no longer.
    virtual void removed(const NeighborKey& key, NeighborState last) = 0;
};

/// Counts and times: RFC 4861 10, where it names them.
struct NeighborSettings {
    std::size_t max_entries = 65536;
    std::chrono::nanoseconds reachable_time =
        std::chrono::seconds(30);  // times 0.5 to 1.5, per entry
    std::chrono::nanoseconds retrans_time = std::chrono::seconds(1);
    unsigned max_multicast_solicit = 3;
    unsigned max_unicast_solicit = 3;
    std::chrono::nanoseconds delay_first_probe = std::chrono::seconds(5);
    std::chrono::nanoseconds gc_stale_time = std::chrono::seconds(60);  // unused, then forgotten
    std::chrono::nanoseconds failed_hold =
        std::chrono::seconds(1);  // seen in `neigh show`, then forgotten
    std::size_t timers_per_tick = 1024;
    std::uint32_t seed = 1;
};

/// What a message said about its sender or target.
///   ARP reply to us:                 solicited, override
///   ARP request, gratuitous ARP:     override
///   neighbour solicitation:          override, mac = source link option (none: do not call)
///   neighbour advertisement:         its flags, mac = target link option
struct Observation {
    std::optional<net::MacAddr> mac = std::nullopt;
    bool solicited = false;
    bool override = false;
    std::optional<bool> is_router = std::nullopt;  // advertisements only
    bool create = false;  // may make a new entry: it asked for our address, or policy accepts it
};

enum class Observed : std::uint8_t {
    kUnchanged,
    kUpdated,
    kCreated,
    kUnknown,    // no entry and none wanted
    kBadMac,     // a group address or zero
    kTableFull,  // no room for a new entry
};

enum class Resolve : std::uint8_t {
    kStarted,    // under way, since now or before
    kKnown,      // reachable() was called once more
    kTableFull,  // refused; failed() is not called: the caller has the packet's holders drop it
};

/// All members: control thread.
class NeighborTable {
public:
    NeighborTable(NeighborActions& actions, const NeighborSettings& settings);

    /// A packet waits for this neighbour.
    Resolve resolve(const NeighborKey& key, Time now);
    /// A packet was sent to a neighbour that was to report its use. Late and repeated reports are
    /// fine.
    void used(const NeighborKey& key, Time now);
    /// A valid message arrived, from a sender that belongs on this link (the caller's checks).
    Observed observe(const NeighborKey& key, const Observation& observation, Time now);

    /// A next hop needs this neighbour: its entry, should there be one, is neither aged nor
    /// evicted. Counted; lasts over removals. Makes no entry.
    void pin(const NeighborKey& key);
    /// Undoes one pin().
    void unpin(const NeighborKey& key);

    /// Takes the place of a learned entry, or of a permanent one with another MAC. kInvalid,
    /// kLimit.
    Result<void> add_permanent(const NeighborKey& key, const net::MacAddr& mac, Time now);
    /// False if there is none.
    bool remove(const NeighborKey& key);
    /// The netdev went down (`keep_permanent`), or away, or to another netns.
    void flush(NetdevId netdev, bool keep_permanent);
    /// The same for at most `limit` entries; true: there are more.
    bool flush(NetdevId netdev, bool keep_permanent, std::size_t limit);
    /// Removes learned ones among the netdev's next `limit` from `from` on: adds to `removed`, and
    /// says where to go on; nothing at the end.
    std::optional<net::IpAddr> flush_learned(NetdevId netdev,
                                             const net::IpAddr& from,
                                             std::size_t limit,
                                             std::size_t& removed);

    /// Runs what is due, at most `timers_per_tick`; returns how many it ran.
    std::size_t tick(Time now);
    /// When tick() next has work; in the past if it left some.
    std::optional<Time> next_deadline() const noexcept;

    std::size_t size() const noexcept { return entries_.size(); }
    std::size_t count(NeighborState state) const noexcept {
        return counts_[std::to_underlying(state)];
    }
    const Neighbor* find(const NeighborKey& key) const noexcept;
    bool has_any(NetdevId netdev) const noexcept;
    /// By netdev, then address.
    template <class Fn>
    void for_each(Fn&& fn) const {
        for (const auto& [key, entry] : entries_) {
            fn(static_cast<const Neighbor&>(entry));
        }
    }

private:
    struct Entry;
    using Queue = std::multimap<Time, Entry*>;
    struct Entry : Neighbor {
        Queue* queue = nullptr;  // the one that `timer` is in
        Queue::iterator timer;
        unsigned solicits = 0;  // sent in this kIncomplete or kProbe
    };
    using Entries = std::map<NeighborKey, Entry>;

    Entry* lookup(const NeighborKey& key) noexcept;
    /// nullptr when the table is full of entries that may not be evicted.
    Entry* create(const NeighborKey& key, NeighborState state, Time now);
    Entries::iterator erase(Entries::iterator it);
    void set_state(Entry& entry, NeighborState state, Time now);

    static void arm(Entry& entry, Queue& queue, Time at);
    static void disarm(Entry& entry) noexcept;
    void arm_idle(Entry& entry);

    void become_reachable(Entry& entry, Time now);
    void become_stale(Entry& entry, Time now);
    void solicit(Entry& entry, Time now);
    Observed learn(Entry& entry, const Observation& observation, Time now);
    Observed revise(Entry& entry, const Observation& observation, Time now);
    void expired(Entry& entry, Time now);
    void retransmit(Entry& entry, Time now);

    NeighborActions& actions_;
    const NeighborSettings settings_;
    std::minstd_rand random_;
    Entries entries_;
    std::map<NeighborKey, std::size_t> pins_;
    std::array<std::size_t, kNeighborStates> counts_{};
    // Every entry is in at most one: the state's timer, or, for what nobody needs (stale or failed,
    // not pinned), when it is forgotten. The front of idle_ is what a full table gives up first.
    Queue timers_;
    Queue idle_;
};

}  // namespace sluice::control
