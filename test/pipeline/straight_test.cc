// SPDX-License-Identifier: BSD-3-Clause
// The straight way: every vector form finds what the scalar one finds, and what that lets through
// is what the stages that look closer would let through.
#include "pipeline/straight.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fib/netdev_view.h"
#include "net/validate.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {
namespace {

using pipeline::StraightBurst;
using pipeline::StraightImpl;
using pipeline::StraightIngress;

constexpr std::uint16_t kVlan = 100;

class Straight : public testing::Test {
protected:
    Straight() {
        view.id = NetdevId{2};
        view.up = true;
        view.has_ipv4 = view.has_ipv6 = true;
        view.mac = Mac("02:00:00:00:00:01");
        view.local = std::make_shared<const fib::LocalAddresses>(
            std::vector<net::Ipv4Addr>{V4("10.0.0.1"), V4("10.0.1.1")},
            std::vector<net::Ipv6Addr>{V6("fd00::1"), V6("fd00:1::1")});
    }

    /// Frames in heap blocks of their own length, so that a sanitizer sees a read too far.
    struct Frames {
        std::vector<std::unique_ptr<std::uint8_t[]>> blocks;
        StraightBurst burst{};
        std::array<pipeline::Packet, pipeline::kMaxBatch> packets{};
        std::array<std::uint32_t, pipeline::kMaxBatch> lengths4{}, lengths6{};
        std::array<net::Ipv4Addr, pipeline::kMaxBatch> destinations4{};
        std::array<net::Ipv6Addr, pipeline::kMaxBatch> destinations6{};

        std::size_t look4(const StraightImpl& impl, const StraightIngress& in) {
            return impl.ip4(in, burst, lengths4.data(), destinations4.data(), burst.ip4.data());
        }
        std::size_t look6(const StraightImpl& impl, const StraightIngress& in) {
            return impl.ip6(in, burst, lengths6.data(), destinations6.data(), burst.ip6.data());
        }
    };
    static std::unique_ptr<Frames> burst_of(const std::vector<Bytes>& frames,
                                            const StraightIngress& in) {
        auto all = std::make_unique<Frames>();
        all->burst.packets = all->packets.data();
        all->burst.groups = (frames.size() + StraightBurst::kGroup - 1) / StraightBurst::kGroup;
        for (std::size_t i = 0; i < all->burst.groups * StraightBurst::kGroup; ++i) {
            Bytes bytes = i < frames.size() ? frames[i] : Bytes(60);
            all->blocks.push_back(std::make_unique<std::uint8_t[]>(bytes.size()));
            std::ranges::copy(bytes, all->blocks.back().get());
            all->packets[i].l3 = all->blocks.back().get() + in.model.l2_bytes;
            all->burst.bytes[i] = static_cast<std::uint32_t>(bytes.size());
        }
        return all;
    }

    fib::NetdevView view;
};

std::vector<Bytes> models() {
    return {
        Packet().eth().ipv4().udp().payload(18).bytes(),
        Packet().eth().ipv4({.ttl = 2}).udp().payload(200).bytes(),
        Packet().eth().ipv4({.tos = 0xb8}).tcp().bytes(),
        Packet().eth().ipv6().udp().payload(18).bytes(),
        Packet().eth().ipv6({.hop_limit = 2}).udp().payload(300).bytes(),
        Packet().eth().vlan({.id = kVlan}).ipv4().udp().payload(18).bytes(),
        Packet().eth().vlan({.id = kVlan, .priority = 5}).ipv6().udp().payload(64).bytes(),
    };
}

/// A model with some bytes of its headers changed, often to values on some edge; sometimes with its
/// IPv4 checksum put right again, padded, or cut.
Bytes mutated(std::mt19937_64& random) {
    static const std::vector<Bytes> all = models();
    Bytes frame = all[random() % all.size()];
    frame.resize(std::max<std::size_t>(frame.size(), 60));
    constexpr std::array<std::uint8_t, 12> kEdges{
        0, 1, 2, 0x45, 126, 127, 128, 223, 224, 0xfd, 0xfe, 0xff};
    for (std::size_t changes = random() % 4; changes > 0; --changes) {
        frame[random() % 58] = random() % 2 == 0 ? kEdges[random() % kEdges.size()]
                                                 : static_cast<std::uint8_t>(random());
    }
    if (random() % 4 == 0) {
        frame.resize(58 + random() % 80);
    }
    const std::size_t l3 = frame[12] == 0x81 ? 18 : 14;
    if (frame[l3] >> 4U == 4 && random() % 2 == 0) {
        const std::size_t header = std::min<std::size_t>((frame[l3] & 15U) * 4U, frame.size() - l3);
        if (header >= 20) {
            frame[l3 + 10] = frame[l3 + 11] = 0;
            const std::uint16_t sum =
                net::internet_checksum(std::span(frame).subspan(l3, header)).raw();
            std::memcpy(&frame[l3 + 10], &sum, 2);
        }
    }
    return frame;
}

TEST_F(Straight, EveryFormFindsTheSame) {
    std::mt19937_64 random(20261130);
    const StraightImpl& scalar = pipeline::straight_impls().back();
    std::array<std::size_t, 2> found{};
    for (int round = 0; round < 3000; ++round) {
        std::vector<Bytes> frames(1 + random() % 70);
        std::ranges::generate(frames, [&] { return mutated(random); });
        view.up = random() % 16 != 0;
        view.forwarding = random() % 16 != 0;
        const StraightIngress in(view, random() % 2 == 0 ? kVlan : 0);
        const auto want = burst_of(frames, in);
        found[0] += want->look4(scalar, in);
        found[1] += want->look6(scalar, in);
        for (const StraightImpl& impl : pipeline::straight_impls()) {
            if (!impl.supported()) {
                continue;
            }
            SCOPED_TRACE(fmt::format("{}, round {}", impl.name, round));
            const auto got = burst_of(frames, in);
            got->look4(impl, in);
            got->look6(impl, in);
            for (std::size_t i = 0; i < got->burst.groups * StraightBurst::kGroup; ++i) {
                const std::size_t group = i / StraightBurst::kGroup;
                ASSERT_EQ(got->burst.ip4[group], want->burst.ip4[group]);
                ASSERT_EQ(got->burst.ip6[group], want->burst.ip6[group]);
                if ((got->burst.ip4[group] >> i % StraightBurst::kGroup & 1) != 0) {
                    ASSERT_EQ(got->lengths4[i], want->lengths4[i]);
                    ASSERT_EQ(got->destinations4[i], want->destinations4[i]);
                }
                if ((got->burst.ip6[group] >> i % StraightBurst::kGroup & 1) != 0) {
                    ASSERT_EQ(got->lengths6[i], want->lengths6[i]);
                    ASSERT_EQ(got->destinations6[i], want->destinations6[i]);
                }
            }
        }
    }
    // Or it would have compared nothing.
    EXPECT_GT(found[0], 1000U);
    EXPECT_GT(found[1], 1000U);
}

// What is let through without a closer look has passed all that the closer look asks.
TEST_F(Straight, LetsThroughOnlyWhatTheCloserLookWould) {
    std::mt19937_64 random(4242);
    std::size_t let_through = 0;
    for (int i = 0; i < 300'000; ++i) {
        const Bytes frame = mutated(random);
        const bool tagged = random() % 2 == 0;
        const StraightIngress in(view, tagged ? kVlan : 0);
        const auto bytes = static_cast<std::uint32_t>(frame.size());
        const std::size_t l2 = tagged ? 18 : 14;
        const std::span<const std::uint8_t> l3 = std::span(frame).subspan(l2);
        const std::uint16_t length4 =
            pipeline::straight_length<net::Ipv4Addr>(in, l3.data(), bytes);
        const std::uint16_t length6 =
            pipeline::straight_length<net::Ipv6Addr>(in, l3.data(), bytes);
        ASSERT_TRUE(length4 == 0 || length6 == 0);
        if (length4 == 0 && length6 == 0) {
            continue;
        }
        ++let_through;
        ASSERT_EQ(std::memcmp(frame.data(), view.mac.bytes.data(), 6), 0);
        ASSERT_EQ(frame[6] & 1, 0);
        // Padding of a frame of the least length stays, more is cut off.
        ASSERT_TRUE(l3.size() == std::size_t{length4} + length6 || frame.size() <= 60);
        if (tagged) {
            ASSERT_EQ((frame[14] & 15) * 256 + frame[15], kVlan);
        }
        if (length4 != 0) {
            const auto& ip = *net::header_at<net::Ipv4Header>(l3);
            ASSERT_EQ(net::validate_ipv4(l3, l3.size()), DropReason::kNone);
            ASSERT_EQ(net::martian_source(ip.source, false), DropReason::kNone);
            ASSERT_EQ(net::martian_destination(ip.destination, false), DropReason::kNone);
            ASSERT_FALSE(view.local->contains(ip.source));
            ASSERT_FALSE(ip.is_fragment() || ip.header_bytes() != 20 || ip.ttl < 2);
            ASSERT_LT(ip.destination.bytes[0], 224);
            ASSERT_EQ(ip.total_length.host(), length4);
        } else {
            const auto& ip = *net::header_at<net::Ipv6Header>(l3);
            ASSERT_EQ(net::validate_ipv6(l3, l3.size()), DropReason::kNone);
            ASSERT_EQ(net::martian_source(ip.source), DropReason::kNone);
            ASSERT_EQ(net::martian_destination(ip.destination), DropReason::kNone);
            ASSERT_FALSE(view.local->contains(ip.source));
            ASSERT_FALSE(ip.source.is_link_local() || ip.destination.is_link_local());
            ASSERT_FALSE(ip.destination.is_multicast());
            ASSERT_GT(ip.hop_limit, 1);
            ASSERT_EQ(ip.payload_length.host() + 40, length6);
        }
    }
    EXPECT_GT(let_through, 10'000U);
}

struct Row {
    std::string name;
    Bytes frame;
    bool straight;
};

// Named, so that a form that lets nothing through would show.
TEST_F(Straight, Rows) {
    const auto bytes = [](const Packet& p) { return p.bytes(); };
    const std::vector<Row> rows{
        {"udp4", bytes(Packet().eth().ipv4().udp().payload(18)), true},
        {"padded4", bytes(Packet().eth().ipv4().udp().payload(2)), true},
        {"ttl1", bytes(Packet().eth().ipv4({.ttl = 1}).udp().payload(18)), false},
        {"fragment", bytes(Packet().eth().ipv4({.mf = true}).udp().payload(18)), false},
        {"own_source", bytes(Packet().eth().ipv4({.src = "10.0.0.1"}).udp().payload(18)), false},
        {"loopback", bytes(Packet().eth().ipv4({.src = "127.0.0.1"}).udp().payload(18)), false},
        {"multicast", bytes(Packet().eth().ipv4({.dst = "224.0.0.5"}).udp().payload(18)), false},
        {"udp6", bytes(Packet().eth().ipv6().udp().payload(18)), true},
        {"hop1", bytes(Packet().eth().ipv6({.hop_limit = 1}).udp().payload(18)), false},
        {"link_local", bytes(Packet().eth().ipv6({.src = "fe80::2"}).udp().payload(18)), false},
        {"other_mac",
         bytes(Packet().eth({.dst = "02:00:00:00:00:09"}).ipv4().udp().payload(18)),
         false},
    };
    const StraightIngress in(view);
    for (const Row& row : rows) {
        Bytes frame = row.frame;
        frame.resize(std::max<std::size_t>(frame.size(), 60));
        for (const StraightImpl& impl : pipeline::straight_impls()) {
            if (!impl.supported()) {
                continue;
            }
            const auto all = burst_of(std::vector<Bytes>(20, frame), in);
            const std::size_t found = all->look4(impl, in) + all->look6(impl, in);
            EXPECT_EQ(found, row.straight ? 20U : 0U) << row.name << " by " << impl.name;
        }
    }
}

/// An address out of 198.51.0.0/16 or 2001:db8::/96 that shares its bit of the filter with one of
/// the router's own.
template <class Addr>
Addr mistaken(const fib::LocalAddresses& local, Addr a) {
    const auto words = std::bit_cast<std::array<std::uint32_t, sizeof(Addr) / 4>>(a.bytes);
    for (std::uint32_t n = 0; n < 0x10000; ++n) {
        auto with = words;
        with.back() |= n << 16U;
        std::uint32_t hash = with[0] * fib::LocalAddresses::kFactor4;
        if constexpr (sizeof(Addr) == 16) {
            hash = 0;
            for (std::size_t i = 0; i < with.size(); ++i) {
                hash += with[i] * fib::LocalAddresses::kFactors6[i];
            }
        }
        hash >>= 32U - fib::LocalAddresses::kFilterBits;
        if ((local.filter()[hash / 32U] >> hash % 32U & 1U) != 0) {
            std::memcpy(a.bytes.data(), with.data(), sizeof(Addr));
            return a;
        }
    }
    ADD_FAILURE() << "the filter mistakes nobody";
    return a;
}

// One such host would make every burst that it is in a slow one.
TEST_F(Straight, WhomTheFilterMistakesForTheRouterIsNoExceptionEither) {
    const StraightIngress in(view);
    const std::string stranger4 =
        mistaken<net::Ipv4Addr>(*view.local, V4("198.51.0.0")).to_string();
    const std::string stranger6 =
        mistaken<net::Ipv6Addr>(*view.local, V6("2001:db8::")).to_string();
    const auto from4 = [](const char* source) {
        return Packet().eth().ipv4({.src = source}).udp().payload(18).bytes();
    };
    const auto from6 = [](const char* source) {
        return Packet().eth().ipv6({.src = source}).udp().payload(18).bytes();
    };
    std::vector<Bytes> frames4;
    std::vector<Bytes> frames6;
    for (std::size_t i = 0; i < 32; ++i) {
        frames4.push_back(from4(i % 5 == 0 ? "10.0.1.1" : stranger4.c_str()));
        frames6.push_back(from6(i % 5 == 0 ? "fd00:1::1" : stranger6.c_str()));
    }
    for (const StraightImpl& impl : pipeline::straight_impls()) {
        if (!impl.supported()) {
            continue;
        }
        SCOPED_TRACE(impl.name);
        const auto all4 = burst_of(frames4, in);
        const auto all6 = burst_of(frames6, in);
        EXPECT_EQ(all4->look4(impl, in), 25U);
        EXPECT_EQ(all6->look6(impl, in), 25U);
        for (std::size_t i = 0; i < 32; ++i) {
            EXPECT_EQ(all4->burst.ip4[i / 16] >> i % 16 & 1U, i % 5 == 0 ? 0U : 1U) << i;
            EXPECT_EQ(all6->burst.ip6[i / 16] >> i % 16 & 1U, i % 5 == 0 ? 0U : 1U) << i;
        }
    }
}

}  // namespace
}  // namespace sluice::test

namespace sluice::test {
namespace {

class MixedBurst : public StageBench, public testing::WithParamInterface<unsigned> {};

// Each packet keeps its own length, whichever family the burst is looked at as first, and whatever
// else is in it: seen by the differential test as a packet cut to another one's length.
TEST_P(MixedBurst, EveryPacketKeepsItsLength) {
    const unsigned turn = GetParam();
    std::vector<Bytes> frames;
    std::multiset<Bytes> want;
    for (unsigned i = 0; i < 40; ++i) {
        const std::size_t payload = 18 + 13 * i;
        switch ((i + turn) % 3) {
            case 0:
                frames.push_back(Packet().eth().ipv4().udp().payload(payload).bytes());
                want.insert(by_p1().ipv4({.ttl = 63}).udp().payload(payload).bytes());
                break;
            case 1:
                frames.push_back(Packet().eth().ipv6().udp().payload(payload).bytes());
                want.insert(by_p1().ipv6({.hop_limit = 63}).udp().payload(payload).bytes());
                break;
            default:  // not on the straight way, but forwarded
                frames.push_back(
                    Packet().eth().ipv4({.options = {7, 4, 4, 0}}).udp().payload(payload).bytes());
                want.insert(by_p1()
                                .ipv4({.ttl = 63, .options = {7, 4, 4, 0}})
                                .udp()
                                .payload(payload)
                                .bytes());
        }
    }
    receive(kP0, frames);
    std::multiset<Bytes> got;
    for (const Sent& sent : take_sent()) {
        got.insert(sent.bytes);
    }
    EXPECT_EQ(got, want);
}
INSTANTIATE_TEST_SUITE_P(Turns, MixedBurst, testing::Values(0U, 1U, 2U));

}  // namespace
}  // namespace sluice::test
