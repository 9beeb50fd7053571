// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <rte_byteorder.h>
#include <rte_ether.h>

#include "fib/netdev_view.h"
#include "net/address.h"
#include "net/wire.h"
#include "pipeline/context.h"

/// The straight way: what nearly every packet is, told by a few compares of whole words. Who says
/// no here only sends the packet to the stages that look closer, find the same and more, and name
/// the reason; so nothing here decides what becomes of a packet but the one answer "forward it".
namespace sluice::pipeline {

/// Ethernet's least frame without FCS: padding up to it stays, since the device would put it back.
inline constexpr std::uint32_t kMinFrame = RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN;

template <class Word>
Word load(const std::uint8_t* bytes) noexcept {
    Word word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
}

/// What the frames of one netdev begin with, as words in memory order, and what is the same of all
/// their packets. Good for one burst.
struct StraightIngress {
    /// Of the frame's first 8 bytes: the destination MAC and the source's group bit.
    static constexpr std::uint64_t kMacBits = 0x0001'ffff'ffff'ffff;
    /// Of EtherType and the first byte behind it: IPv4 without options.
    static constexpr std::uint32_t kBits4 = 0x00ff'ffff, kType4 = 0x0045'0008;
    /// Of the same: IPv6, whatever the traffic class.
    static constexpr std::uint32_t kBits6 = 0x00f0'ffff, kType6 = 0x0060'dd86;
    static constexpr std::uint16_t kTypeVlan = 0x0081;

    std::uint64_t mac = ~std::uint64_t{0};    // no frame's under kMacBits
    std::uint32_t type4 = ~std::uint32_t{0};  // no frame's under kBits4
    std::uint32_t type6 = ~std::uint32_t{0};
    const fib::LocalAddresses* local = nullptr;
    Packet model;  // but for m, l3, length

    StraightIngress() = default;
    StraightIngress(const fib::NetdevView& in, std::uint8_t l2_bytes) noexcept
        : local(in.local.get()) {
        model.in = &in;
        model.book = in.id;
        model.l2_bytes = l2_bytes;
        model.flags = Packet::kStraight;
        model.turn_back = in.send_redirects ? in.id : kBlackholeNetdev;
        if (in.up && in.forwarding) {
            mac = 0;
            std::memcpy(&mac, in.mac.bytes.data(), in.mac.bytes.size());
            type4 = in.has_ipv4 ? kType4 : type4;
            type6 = in.has_ipv6 ? kType6 : type6;
        }
    }
};

/// The length of the IPv4 packet at `l3`, whose header has no options and lies in memory whole,
/// when it may be forwarded as it is; else 0. `room`: bytes of the frame from l3 on; `spare`: so
/// many of them may be padding. What validate_ipv4, the martian checks and the TTL's say about it.
inline std::uint16_t straight4(const std::uint8_t* l3,
                               std::uint32_t room,
                               std::uint32_t spare,
                               bool checksum_known_good,
                               const fib::LocalAddresses& local) noexcept {
    const auto first = load<std::uint64_t>(l3);
    const auto second = load<std::uint64_t>(l3 + 8);
    const auto third = load<std::uint32_t>(l3 + 16);
    const std::uint32_t length = rte_bswap16(static_cast<std::uint16_t>(first >> 16U));
    constexpr std::uint64_t kFragment = std::uint64_t{0xff3f} << 48U;  // MF, offset
    const std::uint64_t ttl = second & 0xffU;
    const auto source = static_cast<unsigned>(second >> 32U) & 0xffU;
    const unsigned destination = third & 0xffU;
    std::uint64_t sum =
        (first & 0xffff'ffffU) + (first >> 32U) + (second & 0xffff'ffffU) + (second >> 32U) + third;
    sum = (sum & 0xffff'ffffU) + (sum >> 32U);
    sum = (sum & 0xffffU) + (sum >> 16U);
    sum = (sum & 0xffffU) + (sum >> 16U);
    // 1 to 223, but 127.
    const auto host = [](unsigned byte) { return byte - 1 < 223 && byte != 127; };
    const bool fine = (room == length || (room < spare && length < room)) &&
                      length >= sizeof(net::Ipv4Header) && (first & kFragment) == 0 && ttl > 1 &&
                      ((sum & 0xffffU) == 0xffffU || checksum_known_good) && host(source) &&
                      host(destination) &&
                      !local.may_contain(static_cast<std::uint32_t>(second >> 32U));
    return fine ? static_cast<std::uint16_t>(length) : std::uint16_t{0};
}

/// The same of IPv6.
inline std::uint16_t straight6(const std::uint8_t* l3,
                               std::uint32_t room,
                               std::uint32_t spare,
                               const fib::LocalAddresses& local) noexcept {
    const auto first = load<std::uint64_t>(l3);
    constexpr std::uint32_t kHeader = sizeof(net::Ipv6Header);
    const std::uint32_t length = kHeader + rte_bswap16(static_cast<std::uint16_t>(first >> 32U));
    const std::uint64_t hop_limit = first >> 56U;
    // What begins with 0, 0xfe or 0xff is of a scope, unspecified, mapped or a group.
    const auto host = [](std::uint8_t byte) { return static_cast<std::uint8_t>(byte + 2) > 2; };
    const bool fine = (room == length || (room < spare && length < room)) && hop_limit > 1 &&
                      host(l3[8]) && host(l3[24]) &&
                      !local.may_contain(load<std::uint64_t>(l3 + 8), load<std::uint64_t>(l3 + 16));
    return fine && length <= 0xffffU ? static_cast<std::uint16_t>(length) : std::uint16_t{0};
}

}  // namespace sluice::pipeline
