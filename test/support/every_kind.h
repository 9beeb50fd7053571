// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "net/icmp.h"
#include "net/wire.h"
#include "support/packet.h"

namespace sluice::test {

/// Frames that come in by p0 of the test bench, one for each way through the stages: forwarded, too
/// long for its route, with a TTL at its end, to hosts that are to be resolved, echoes, ARP.
inline std::vector<Bytes> frames_of_every_kind() {
    return {Packet().eth().ipv4().udp().bytes(),
            Packet().eth().ipv6().udp().bytes(),
            Packet().eth().ipv4({.dst = "198.51.100.1"}).udp().payload(1400).bytes(),
            Packet().eth().ipv4({.ttl = 1}).udp().bytes(),
            Packet().eth().ipv6({.hop_limit = 1}).udp().bytes(),
            Packet().eth().ipv4({.dst = "10.0.1.77"}).udp().bytes(),
            Packet().eth().ipv6({.dst = "fd00:1::77"}).udp().bytes(),
            Packet().eth().ipv4({.dst = "10.0.0.1"}).icmp(net::icmp::kEcho).bytes(),
            Packet().eth().ipv6({.dst = "fd00::1"}).icmp6(net::icmp6::kEcho).bytes(),
            Packet().eth({.dst = net::kBroadcastMac}).arp().bytes()};
}

}  // namespace sluice::test
