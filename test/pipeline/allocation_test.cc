// SPDX-License-Identifier: BSD-3-Clause
// The packet path allocates nothing: operator new counts while a burst is worked on.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include "net/wire.h"
#include "support/every_kind.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace {
thread_local bool t_watched = false;
thread_local std::size_t t_allocations = 0;
}  // namespace

void* operator new(std::size_t bytes) {
    t_allocations += t_watched ? 1 : 0;
    if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) {
        return p;
    }
    throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
    t_allocations += t_watched ? 1 : 0;
    return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* p) noexcept {
    std::free(p);
}
void operator delete(void* p, std::size_t /*bytes*/) noexcept {
    std::free(p);
}

namespace sluice::test {

namespace {

class Allocation : public StageBench {};

TEST_F(Allocation, none_on_the_packet_path) {
    add_route("198.51.100.0/24", {.via = "10.0.1.2", .dev = kP1, .mtu = 576});
    std::vector<Bytes> frames = frames_of_every_kind();
    frames.push_back(Packet().eth().ipv4({.checksum = std::uint16_t{1}}).udp().bytes());
    std::vector<rte_mbuf*> burst;
    for (const Bytes& frame : frames) {
        burst.push_back(mbuf_of(frame));
        burst.push_back(mbuf_of(frame, {20, 0, 30}));
    }
    keep_sent = false;
    t_allocations = 0;
    t_watched = true;
    receive(kP0, burst);
    t_watched = false;
    EXPECT_EQ(t_allocations, 0U);
    EXPECT_EQ(counters(kP0).forwarded, 6U);

    // A burst that is all on the straight way takes another one.
    const std::vector<rte_mbuf*> uniform{mbuf_of(frames[1]), mbuf_of(frames[1])};
    t_watched = true;
    receive(kP0, uniform);
    t_watched = false;
    EXPECT_EQ(t_allocations, 0U);
    EXPECT_EQ(counters(kP0).forwarded, 8U);

    // The counter counts.
    t_watched = true;
    delete new int;
    t_watched = false;
    EXPECT_EQ(t_allocations, 1U);
}

}  // namespace

}  // namespace sluice::test
