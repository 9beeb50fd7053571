// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "net/wire.h"
#include "support/packet.h"

namespace sluice::test {

/// What a frame says, for expectations; copies, so it outlives the bytes. A header that is not
/// there or is cut off is empty, and so is all behind it.
struct Frame {
    std::optional<net::EthernetHeader> eth;
    std::optional<net::VlanTag> vlan;  // of 0x8100
    std::optional<net::ArpHeader> arp;
    std::optional<net::Ipv4Header> ipv4;
    std::optional<net::Ipv6Header> ipv6;
    std::optional<net::Ipv6FragmentHeader> fragment;
    std::optional<net::IcmpHeader> icmp;  // of either family
    std::optional<net::UdpHeader> udp;
    std::optional<net::TcpHeader> tcp;
    std::size_t l3_offset = 0;
    Bytes l3;       // from the IP or ARP header on, Ethernet padding cut off
    Bytes payload;  // behind the last header known, padding cut off

    /// Of an ICMP error: the packet that it quotes, read as if it came after an IP EtherType.
    std::optional<net::Ipv4Header> quoted_ipv4() const;
    std::optional<net::Ipv6Header> quoted_ipv6() const;
};

Frame parse_frame(std::span<const std::uint8_t> bytes);
/// The same without an Ethernet header.
Frame parse_l3(std::span<const std::uint8_t> bytes);

/// Empty when the IPv4 header's, and ICMP's, UDP's and TCP's checksums are right (those of
/// fragments are not looked at); else which is not, and what it should be.
std::string verify_checksums(std::span<const std::uint8_t> frame);
/// The same without an Ethernet header.
std::string verify_checksums_l3(std::span<const std::uint8_t> l3);

}  // namespace sluice::test
