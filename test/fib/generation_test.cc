// SPDX-License-Identifier: BSD-3-Clause
#include "fib/generation.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/address.h"
#include "support/prefix_generator.h"

namespace sluice::fib {
namespace {

using net::Ipv4Addr;
using net::Ipv6Addr;

net::Ipv4Prefix p4(const char* text) {
    return net::Ipv4Prefix::parse(text).value();
}
net::Ipv6Prefix p6(const char* text) {
    return net::Ipv6Prefix::parse(text).value();
}

template <class Addr>
std::size_t blocks_with(const Generations<Addr>& generations, Stamp stamp) {
    return static_cast<std::size_t>(
        std::count_if(generations.blocks(),
                      generations.blocks() + Generations<Addr>::kBlocks,
                      [&](const std::atomic<Stamp>& block) { return block.load() == stamp; }));
}

TEST(Generation, Case_G01_AllStartAtAValueThatNoBumpDraws) {
    const auto a = std::make_unique<Generations<Ipv4Addr>>();
    const auto b = std::make_unique<Generations<Ipv6Addr>>();
    EXPECT_EQ(blocks_with(*a, GenerationSequence::kInitial), Generations<Ipv4Addr>::kBlocks);
    EXPECT_EQ(blocks_with(*b, GenerationSequence::kInitial), Generations<Ipv6Addr>::kBlocks);
    EXPECT_EQ(a->whole(), GenerationSequence::kInitial);

    GenerationSequence narrow(10);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_NE(narrow.next(), GenerationSequence::kInitial);
    }
    EXPECT_EQ(narrow.bumps(), 1000U);
}

TEST(Generation, Case_G01_DrawsEveryStampOnceARound) {
    GenerationSequence sequence(10);
    for (int round = 0; round < 3; ++round) {
        std::set<Stamp> drawn;
        for (int i = 0; i < 10; ++i) {
            drawn.insert(sequence.next());
        }
        EXPECT_EQ(drawn.size(), 10U);
        EXPECT_EQ(*drawn.begin(), 1U);
        EXPECT_EQ(*drawn.rbegin(), 10U);
    }
}

TEST(Generation, Case_G01_WrapsAreCountedWithTheFirstStampOfAHalf) {
    GenerationSequence sequence(10);
    const std::array<std::uint64_t, 11> want{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2};
    for (const std::uint64_t wraps : want) {
        const Stamp stamp = sequence.next();
        EXPECT_EQ(sequence.wraps(), wraps) << stamp;
    }
    GenerationSequence wide;
    wide.next();
    EXPECT_EQ(wide.wraps(), 0U);
}

/// What the control thread does for a bump, and a worker that is as late as it may be: it empties
/// its cache some time before the half that began is used up.
class Wrapping {
public:
    static constexpr std::size_t kNetns = 5;
    static constexpr Stamp kLast = 64;

    explicit Wrapping(bool renew) : renew_(renew), netns_(kNetns) {
        for (auto& generations : netns_) {
            generations = std::make_unique<Generations<Ipv4Addr>>();
        }
    }

    void bump(std::size_t netns, const net::Ipv4Prefix& prefix) {
        const std::uint64_t before = sequence_.wraps();
        const Stamp stamp = sequence_.next();
        if (sequence_.wraps() != before && renew_) {
            netns_[0]->bump_all(stamp);
            for (std::size_t i = 1; i < kNetns; ++i) {
                netns_[i]->bump_all(sequence_.next());
            }
            netns_[netns]->bump(prefix, sequence_.next());
            return;
        }
        netns_[netns]->bump(prefix, stamp);
    }
    Stamp stamp(std::size_t netns, const Ipv4Addr& address) const {
        return netns_[netns]->stamp(address);
    }
    std::uint64_t wraps() const { return sequence_.wraps(); }

private:
    bool renew_;
    GenerationSequence sequence_{kLast};
    std::vector<std::unique_ptr<Generations<Ipv4Addr>>> netns_;
};

/// How often an address had, after a bump of its prefix, a stamp that somebody remembered for it
/// from before that bump. A memory is kept from one wrap to the last bump of the half after it.
std::size_t reused_stamps(bool renew) {
    std::mt19937_64 random(1);
    Wrapping control(renew);
    std::vector<net::Ipv4Prefix> prefixes;
    for (unsigned i = 0; i < 8; ++i) {
        prefixes.push_back({Ipv4Addr::from_host(0x0a000000U + (i << 16U)), 16});
    }
    struct Memory {
        std::uint64_t half;
        std::set<Stamp> stamps;
    };
    std::vector<std::vector<std::vector<Memory>>> remembered(
        Wrapping::kNetns, std::vector<std::vector<Memory>>(prefixes.size()));
    std::size_t reused = 0;
    for (int i = 0; i < 20000; ++i) {
        const auto netns = static_cast<std::size_t>(random() % Wrapping::kNetns);
        // One prefix is hardly ever bumped.
        const auto prefix = static_cast<std::size_t>(
            random() % 500 == 0 ? 0 : 1 + random() % (prefixes.size() - 1));
        const Ipv4Addr address = prefixes[prefix].address;
        auto& memories = remembered[netns][prefix];
        if (memories.empty() || memories.back().half != control.wraps()) {
            memories.push_back({control.wraps(), {}});
        }
        memories.back().stamps.insert(control.stamp(netns, address));
        control.bump(netns, prefixes[prefix]);
        std::erase_if(memories, [&](const Memory& m) { return m.half + 1 < control.wraps(); });
        for (const Memory& memory : memories) {
            reused += memory.stamps.contains(control.stamp(netns, address)) ? 1 : 0;
        }
    }
    return reused;
}

TEST(Generation, Case_G01_AfterAWrapNoRememberedStampComesBack) {
    EXPECT_EQ(reused_stamps(true), 0U);
    // Without the renewal at a wrap, which is what makes it so.
    EXPECT_GT(reused_stamps(false), 0U);
}

TEST(Generation, Case_G02_NetnsAgreeOnlyWhileNeitherWasBumped) {
    GenerationSequence sequence;
    const auto a = std::make_unique<Generations<Ipv4Addr>>();
    const auto b = std::make_unique<Generations<Ipv4Addr>>();
    const Ipv4Addr address = Ipv4Addr::from_host(0x0a010203);
    EXPECT_EQ(a->stamp(address), b->stamp(address));
    a->bump(p4("10.1.0.0/16"), sequence.next());
    EXPECT_NE(a->stamp(address), b->stamp(address));
    b->bump(p4("10.1.0.0/16"), sequence.next());
    EXPECT_NE(a->stamp(address), b->stamp(address));
    a->bump_all(sequence.next());
    b->bump_all(sequence.next());
    EXPECT_NE(a->stamp(address), b->stamp(address));
    EXPECT_NE(a->whole(), b->whole());
}

template <class Addr>
void expect_covered(const net::Prefix<Addr>& prefix) {
    std::mt19937_64 random(prefix.length);
    const auto generations = std::make_unique<Generations<Addr>>();
    generations->bump(prefix, 7);
    for (int i = 0; i < 2000; ++i) {
        const Addr address = sluice::test::random_address(prefix, random);
        ASSERT_EQ(generations->stamp(address), 7U) << prefix.to_string() << " " << i;
    }
}

TEST(Generation, Case_G03_ABumpCoversEveryAddressOfThePrefix) {
    for (std::uint8_t length = 0; length <= 32; ++length) {
        expect_covered(net::Ipv4Prefix::of(Ipv4Addr::from_host(0xc6336455U), length));
        expect_covered(net::Ipv4Prefix::of(Ipv4Addr::from_host(0xffffffffU), length));
    }
    const Ipv6Addr address = Ipv6Addr::parse("2001:db8:1234:5678:9abc:def0:1234:5678").value();
    Ipv6Addr last;
    last.bytes.fill(0xff);
    for (unsigned length = 0; length <= 128; ++length) {
        expect_covered(net::Ipv6Prefix::of(address, static_cast<std::uint8_t>(length)));
        expect_covered(net::Ipv6Prefix::of(last, static_cast<std::uint8_t>(length)));
    }
}

template <class Addr>
std::size_t bumped_blocks(const net::Prefix<Addr>& prefix) {
    const auto generations = std::make_unique<Generations<Addr>>();
    generations->bump(prefix, 7);
    return blocks_with(*generations, 7);
}

TEST(Generation, Case_G05_ARouteChangeLeavesMostBlocksAlone) {
    struct Case {
        std::string name;
        std::size_t blocks;
        std::size_t at_most;
    };
    const std::vector<Case> cases{
        {"/32", bumped_blocks(p4("198.51.100.7/32")), 1},
        {"/24", bumped_blocks(p4("198.51.100.0/24")), 1},
        {"/16", bumped_blocks(p4("198.51.0.0/16")), 1},
        {"/15", bumped_blocks(p4("198.50.0.0/15")), 2},
        {"/10", bumped_blocks(p4("100.64.0.0/10")), 64},
        {"v6/128", bumped_blocks(p6("2001:db8::1/128")), 1},
        {"v6/48", bumped_blocks(p6("2001:db8:7::/48")), 1},
        {"v6/32", bumped_blocks(p6("2001:db8::/32")), 1},
        {"v6/29", bumped_blocks(p6("2001:db8::/29")), 8},
        {"v6/24", bumped_blocks(p6("2001:d00::/24")), 256},
    };
    for (const Case& c : cases) {
        EXPECT_LE(c.blocks, c.at_most) << c.name;
        // Fewer would be fine as such, but prefixes side by side are not to fall into one block.
        EXPECT_GE(c.blocks, c.at_most * 3 / 4) << c.name;
    }
    EXPECT_EQ(bumped_blocks(p4("0.0.0.0/0")), Generations<Ipv4Addr>::kBlocks);
    EXPECT_EQ(bumped_blocks(p6("::/0")), Generations<Ipv6Addr>::kBlocks);
}

TEST(Generation, Case_G05_BlocksShareTheAddressesEvenly) {
    std::vector<std::size_t> load(Generations<Ipv4Addr>::kBlocks);
    for (std::uint32_t top = 0; top < 65536; ++top) {
        ++load[Generations<Ipv4Addr>::block_of(Ipv4Addr::from_host(top << 16U))];
    }
    EXPECT_LE(*std::ranges::max_element(load), 2 * 65536 / load.size());

    std::vector<std::size_t> load6(Generations<Ipv6Addr>::kBlocks);
    for (unsigned i = 0; i < 65536; ++i) {  // 2000::/16 by /32
        Ipv6Addr address{{0x20, 0x01}};
        address.bytes[2] = static_cast<std::uint8_t>(i >> 8U);
        address.bytes[3] = static_cast<std::uint8_t>(i);
        ++load6[Generations<Ipv6Addr>::block_of(address)];
    }
    EXPECT_LE(*std::ranges::max_element(load6), 2 * 65536 / load6.size());
}

}  // namespace
}  // namespace sluice::fib
