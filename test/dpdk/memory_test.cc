// SPDX-License-Identifier: BSD-3-Clause
// Pools, rings, mbuf access, big arrays.
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "dpdk/mbuf.h"
#include "dpdk/pool.h"
#include "dpdk/ring.h"
#include "environment.h"
#include "net/wire.h"

namespace sluice::dpdk {
namespace {

PktPool make_pool(unsigned packets = 256, std::uint16_t room = kDefaultDataRoom) {
    auto pool = PktPool::create("memory-test", packets, room);
    EXPECT_TRUE(pool) << pool.error().message;
    return std::move(*pool);
}

TEST(PktPool, CountsWhatIsOutAndEndsAtItsSize) {
    auto pool = make_pool(64);
    EXPECT_EQ(pool.size(), 64U);
    EXPECT_EQ(pool.in_use(), 0U);
    std::vector<rte_mbuf*> out;
    while (rte_mbuf* m = rte_pktmbuf_alloc(pool.raw())) {
        out.push_back(m);
    }
    EXPECT_EQ(out.size(), 64U);
    EXPECT_EQ(pool.in_use(), 64U);
    for (rte_mbuf* m : out) {
        rte_pktmbuf_free(m);
    }
    EXPECT_EQ(pool.in_use(), 0U);
}

TEST(PktPool, TooLittleMemoryNamesMegabytesAndKeyAndLeavesTheName) {
    const auto pool = PktPool::create("memory-test", 1000000);
    ASSERT_FALSE(pool);
    EXPECT_EQ(pool.error().code, ErrorCode::kLimit);
    const std::string mb = std::to_string(pool_megabytes(1000000, kDefaultDataRoom));
    EXPECT_NE(pool.error().message.find(mb + " MB"), std::string::npos) << pool.error().message;
    EXPECT_NE(pool.error().message.find("dpdk.memory-mb"), std::string::npos);
    EXPECT_GE(pool_megabytes(1000000, kDefaultDataRoom), 1000000UL * kDefaultDataRoom >> 20U);
    make_pool();
}

TEST(PktPool, ANameTakenIsSaidSo) {
    const auto first = make_pool();
    const auto second = PktPool::create("memory-test", 64);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kExists);
}

TEST(PktPool, Case_95_memory_of_another_node_is_better_than_none) {
    for (const int socket : {SOCKET_ID_ANY, 0, RTE_MAX_NUMA_NODES - 1}) {
        const auto pool = PktPool::create("memory-test", 64, kDefaultDataRoom, socket);
        EXPECT_TRUE(pool) << socket << ": " << pool.error().message;
    }
}

TEST(PktPool, AHundredPoolsOneAfterTheOtherTakeNoMore) {
    for (int i = 0; i < 100; ++i) {
        make_pool(16384);  // 256 MB hold two or three of them
    }
}

TEST(MbufRing, HoldsItsSizeExactlyAndKeepsOrder) {
    auto pool = make_pool();
    auto ring = MbufRing::create("memory-test", 10);
    ASSERT_TRUE(ring) << ring.error().message;
    EXPECT_EQ(ring->capacity(), 10U);
    EXPECT_TRUE(ring->empty());
    std::array<rte_mbuf*, 12> in{};
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool.raw(), in.data(), in.size()), 0);
    EXPECT_EQ(ring->enqueue(in), 10U) << "as many as fit";
    EXPECT_EQ(ring->count(), 10U);
    EXPECT_EQ(ring->enqueue(std::span(in).subspan(10)), 0U);
    std::array<rte_mbuf*, 4> out{};
    EXPECT_EQ(ring->dequeue(out), 4U);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin()));
    EXPECT_EQ(ring->enqueue(std::span(in).subspan(10)), 2U);
    for (rte_mbuf* m : out) {
        rte_pktmbuf_free(m);
    }
    EXPECT_EQ(pool.in_use(), 8U);
    ring = fail(ErrorCode::kInternal, "gone");
    EXPECT_EQ(pool.in_use(), 0U) << "a ring frees what is in it";
}

TEST(MbufRing, ErrorsNameTheRing) {
    const auto ring = MbufRing::create("memory-test", 64);
    ASSERT_TRUE(ring);
    const auto twice = MbufRing::create("memory-test", 64);
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().code, ErrorCode::kExists);
    const auto big = MbufRing::create("memory-test-big", 1U << 28U);
    ASSERT_FALSE(big);
    EXPECT_EQ(big.error().code, ErrorCode::kLimit);
    EXPECT_NE(big.error().message.find("memory-test-big"), std::string::npos);
}

TEST(Mbuf, HeaderAtEndsWithTheFirstSegment) {
    auto pool = make_pool();
    for (std::size_t length = 0; length <= 40; ++length) {
        rte_mbuf* m = test::packet_of(pool, test::test_frame(64));
        m->data_len = static_cast<std::uint16_t>(length);  // pkt_len stays: the rest is "elsewhere"
        const rte_mbuf& view = *m;
        EXPECT_EQ(header_at<net::EthernetHeader>(*m, 0) != nullptr, length >= 14) << length;
        EXPECT_EQ(header_at<net::EthernetHeader>(view, 0) != nullptr, length >= 14) << length;
        EXPECT_EQ(header_at<net::Ipv4Header>(view, 14) != nullptr, length >= 34) << length;
        EXPECT_EQ(header_at<net::Ipv4Header>(*m, 14) != nullptr, length >= 34) << length;
        EXPECT_EQ(first_segment(view).size(), length);
        m->data_len = 64;
        rte_pktmbuf_free(m);
    }
    rte_mbuf* m = test::packet_of(pool, test::test_frame(64));
    EXPECT_EQ(header_at<net::Ipv4Header>(*m, SIZE_MAX - 8), nullptr) << "offset + size wraps";
    EXPECT_EQ(static_cast<void*>(header_at<net::Ipv4Header>(*m, 14)),
              rte_pktmbuf_mtod_offset(m, void*, 14));
    rte_pktmbuf_free(m);
}

TEST(Mbuf, MetaKeepsClearOfWhatDriversAndLibrariesUse) {
    auto pool = make_pool();
    rte_mbuf* m = test::packet_of(pool, test::test_frame(64));
    rte_mbuf* copy = test::packet_of(pool, test::test_frame(64));
    rte_pktmbuf_chain(m, copy);
    meta(*m) = {.dst = 0xffffffff,
                .ingress = NetdevId{0xffff},
                .flags = 0xffff,
                .l3_offset = 0xffff,
                .l4_offset = 0xffff,
                .extra = 0xffffffff};
    EXPECT_EQ(m->next, copy);
    EXPECT_EQ(m->pool, pool.raw());
    EXPECT_EQ(m->pkt_len, 128U);
    EXPECT_EQ(m->nb_segs, 2);
    EXPECT_EQ(m->tx_offload, 0U);
    EXPECT_EQ(rte_mbuf_check(m, 1, nullptr), 0);
    const rte_mbuf& view = *m;
    EXPECT_EQ(meta(view).dst, 0xffffffffU);
    EXPECT_EQ(meta(view).ingress, NetdevId{0xffff});
    rte_pktmbuf_free(m);
    EXPECT_EQ(pool.in_use(), 0U);

    // A driver that wants these bytes is told that they are taken.
    rte_mbuf_dynfield other{};
    std::snprintf(other.name, sizeof(other.name), "somebody-else");
    other.size = 4;
    other.align = 4;
    EXPECT_LT(rte_mbuf_dynfield_register_offset(&other, kPacketMetaOffset + 12), 0);
}

TEST(Mbuf, CopyToLinearCrossesSegments) {
    auto pool = make_pool(64, RTE_PKTMBUF_HEADROOM + 50);
    const auto frame = test::test_frame(180);
    rte_mbuf* m = test::packet_of(pool, frame);
    ASSERT_EQ(m->nb_segs, 4);
    std::array<std::uint8_t, 120> buffer{};
    struct Case {
        const char* name;
        std::size_t offset, room, want;
        bool copied;
    };
    for (const Case& c : {Case{"inside the first", 10, 40, 40, false},
                          Case{"over one border", 40, 20, 20, true},
                          Case{"over all", 30, 120, 120, true},
                          Case{"to the end", 100, 120, 80, true},
                          Case{"last byte", 179, 120, 1, false},
                          Case{"at the end", 180, 120, 0, false},
                          Case{"past it", 500, 120, 0, false}}) {
        const auto got = copy_to_linear(*m, c.offset, std::span(buffer).first(c.room));
        ASSERT_EQ(got.size(), c.want) << c.name;
        EXPECT_TRUE(std::equal(
            got.begin(),
            got.end(),
            frame.begin() + static_cast<std::ptrdiff_t>(std::min(c.offset, frame.size()))))
            << c.name;
        if (c.want != 0) {
            EXPECT_EQ(got.data() == buffer.data(), c.copied) << c.name;
        }
    }
    rte_pktmbuf_free(m);
}

}  // namespace
}  // namespace sluice::dpdk
