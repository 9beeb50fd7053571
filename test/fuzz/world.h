// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rte_mempool.h>

#include "base/id.h"
#include "base/result.h"
#include "control/changes.h"
#include "control/engine.h"
#include "control/router.h"
#include "dpdk/rcu.h"
#include "fib/shared.h"
#include "fuzz/dice.h"
#include "fuzz/fake_plane.h"
#include "fuzz/forwarder.h"

namespace sluice::test::fuzz {

/// What a run has come by, by name: calls that succeeded, ends that packets found. A test that
/// came by nothing has tested nothing.
using Reach = std::map<std::string, std::uint64_t, std::less<>>;

/// One control engine and three forwarders that read what it publishes.
class World {
public:
    /// `pool` must have room for all that three workers can hold.
    World(std::uint64_t seed, rte_mempool* pool, Reach& reach);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;
    World(World&&) = delete;
    World& operator=(World&&) = delete;

    // --- what may go wrong: empty as long as nothing did ---
    std::string difference;
    /// Of the last burst that differed.
    std::vector<Input> burst;

    // --- traffic ---

    /// Gives `frames`, which came in by the device of `port`, to all three and compares.
    void receive(const fib::NetdevView& port, const std::vector<Input>& frames);
    /// What the control thread has to say, and what it hears; compares what workers do on it.
    void exchange();
    /// Time for workers; the control thread looks at its clock with tick().
    void pass_time(std::uint64_t ns);
    void tick();
    /// By whom packets of the last burst left.
    std::vector<NetdevId> left_by;

    // --- packets in the middle of changes (race.h) -----------------------------------------------

    /// Called in the middle of what the control thread does; `certain`: where everything is
    /// published, and the caches do not know.
    std::function<void(bool certain)> amid;
    /// After bursts that not all forwarders had, or that they may have treated differently: nothing
    /// is held any more, and all have counted what the one without a cache did.
    void settle();
    /// Netdevs with this id and above are not looked at. There are many once many were made.
    std::size_t most_netdevs = kMaxNetdevs;
    /// Above the highest id that was compared.
    std::size_t netdevs() const noexcept { return netdevs_; }
    /// Frames to come in by each device: answers of hosts.
    std::array<std::vector<Input>, kDevices> answers;

    // --- what is there, as workers see it ---

    /// Views of all ports that can receive.
    std::vector<const fib::NetdevView*> ports() const;
    /// The port itself and its VLANs.
    std::vector<const fib::NetdevView*> ingresses(const fib::NetdevView& port) const;
    const fib::NetdevView* view(std::string_view name) const;
    /// The port over that device.
    const fib::NetdevView* port_of(std::uint16_t device) const;
    /// Where a netdev of that name is; empty: nowhere.
    std::string netns_of(std::string_view name) const;

    /// Counts a call and its success.
    template <class T>
    bool note(std::string_view what, const Result<T>& result) {
        ++reach_[std::string(result ? "call " : "refused ") + std::string(what)];
        if (trace) {
            log(what, result ? "fine" : result.error().message);
        }
        return result.has_value();
    }
    void count(std::string_view what, std::uint64_t by = 1);
    bool trace = false;         // says what is done
    mutable std::string where;  // that it is done to, for the trace

    std::uint64_t now_ns;
    control::Time now() const { return std::chrono::nanoseconds(now_ns); }
    Reach& reach_;

    /// After so many bumps each stamp is drawn again.
    const fib::Stamp last_stamp;
    dpdk::RcuDomain rcu;
    control::Changes changes;
    fib::Shared shared;
    std::vector<std::unique_ptr<Forwarder>> forwarders;  // on, off, auto
    Forwarder& cached() { return *forwarders[0]; }
    Forwarder& uncached() { return *forwarders[1]; }
    std::unique_ptr<FakePlane> plane;
    std::unique_ptr<control::Engine> engine;
    std::unique_ptr<control::Router> router;

private:
    void log(std::string_view what, std::string_view text) const;
    void meet(bool certain) const {
        if (amid) {
            amid(certain);
        }
    }
    void compare_all(std::string_view what);
    void note_netdevs();
    void check_ids();
    void check_isolation(const fib::NetdevView* port);
    void count_ends();
    void answer(NetdevId netdev, const Bytes& frame);

    Dice answers_dice_;
    std::uint64_t next_housekeeping_ns_ = 0;
    std::size_t netdevs_ = 1;          // above the highest id seen
    std::vector<std::string> names_;   // by id; empty: nobody's
    std::vector<std::string> before_;  // who had it last
    std::vector<std::uint64_t> sent_before_;
};

}  // namespace sluice::test::fuzz
