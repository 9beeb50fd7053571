// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/environment.h"
#include "fuzz/world.h"

namespace sluice::test::fuzz {

/// How much is taken of everything that there is a pool of.
struct Levels {
    std::size_t mbufs = 0, dsts = 0, groups = 0, hosts = 0, exceptions = 0, uncached = 0;
    std::size_t netdevs = 0;
    friend bool operator==(const Levels&, const Levels&) = default;
};
std::string to_string(const Levels& levels);

/// Netdevs and ports that come, are moved and go, with next hops, groups, routes and hosts on them,
/// and packets to and from them before, amid and after (dst.md X-04). Each cycle is of another
/// kind; after kKinds of them everything is as it was.
class LeakCycles {
public:
    static constexpr std::uint64_t kKinds = 16;

    explicit LeakCycles(const Environment& environment);
    void run(std::uint64_t cycles);
    /// Once nothing is held or waits any more.
    Levels settled();
    /// Empty as long as forwarders agree and every call does what it should.
    const std::string& failure() const { return world_.difference; }
    const Reach& reach() const { return reach_; }

private:
    void must(const char* what, const Result<void>& result);
    void cycle(std::uint64_t number);
    void add_vlan(std::uint64_t number);
    void remove(const std::string& netns, const char* name);
    void traffic(const char* port, std::uint16_t vlan);
    void control();

    const Environment& environment_;
    Reach reach_;
    World world_;
};

}  // namespace sluice::test::fuzz
