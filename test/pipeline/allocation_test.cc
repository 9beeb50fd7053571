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
    const std::vector<Bytes> frames{
        Packet().eth().ipv4().udp().bytes(),
        Packet().eth().ipv6().udp().bytes(),
        Packet().eth().ipv4({.dst = "198.51.100.1"}).udp().payload(1400).bytes(),
        Packet().eth().ipv4({.ttl = 1}).udp().bytes(),
        Packet().eth().ipv6({.hop_limit = 1}).udp().bytes(),
        Packet().eth().ipv4({.dst = "10.0.1.77"}).udp().bytes(),
        Packet().eth().ipv6({.dst = "fd00:1::77"}).udp().bytes(),
        Packet().eth().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kEcho).bytes(),
        Packet().eth().ipv6({.dst = "fd00::1"}).icmp6(net::icmp6::kEcho).bytes(),
        Packet().eth({.dst = net::kBroadcastMac}).arp().bytes(),
        Packet().eth().ipv4({.checksum = std::uint16_t{1}}).udp().bytes()};
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

    // The counter counts.
    t_watched = true;
    delete new int;
    t_watched = false;
    EXPECT_EQ(t_allocations, 1U);
}

}  // namespace

}  // namespace sluice::test
