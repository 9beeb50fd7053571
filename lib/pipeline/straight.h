// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

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
    static constexpr std::uint8_t kUntagged = sizeof(net::EthernetHeader);
    static constexpr std::uint8_t kTagged = kUntagged + sizeof(net::VlanTag);

    /// Of EtherType and what is behind it: a tag, whatever its priority.
    static constexpr std::uint32_t kBitsTag = 0xff0f'ffff;

    std::uint32_t tag = 0;                    // of tagged ones
    std::uint64_t mac = ~std::uint64_t{0};    // no frame's under kMacBits
    std::uint32_t type4 = ~std::uint32_t{0};  // no frame's under kBits4
    std::uint32_t type6 = ~std::uint32_t{0};
    const fib::LocalAddresses* local = nullptr;
    Packet model;  // but for m, l3, length

    StraightIngress() = default;
    /// `vlan_id` 0: frames without a tag.
    explicit StraightIngress(const fib::NetdevView& in, std::uint16_t vlan_id = 0) noexcept
        : local(in.local.get()) {
        model.in = &in;
        model.book = in.id;
        model.l2_bytes = kUntagged;
        if (vlan_id != 0) {
            model.l2_bytes = kTagged;
            tag = kTypeVlan | (std::uint32_t{rte_bswap16(vlan_id)} << 16U);
        }
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
/// when it may be forwarded as it is; else 0. `room`: bytes of the frame from l3 on; `spare`: with
/// fewer there may be padding. What validate_ipv4, the martian checks and the TTL's say about it.
inline std::uint16_t straight4(const std::uint8_t* l3,
                               std::uint32_t room,
                               std::uint32_t spare,
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
                      (sum & 0xffffU) == 0xffffU && host(source) && host(destination) &&
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
                      !local.may_contain(load<fib::LocalAddresses::Words>(l3 + 8));
    return fine && length <= 0xffffU ? static_cast<std::uint16_t>(length) : std::uint16_t{0};
}

/// Does the frame's link layer say IPv4 (`type` in.type4) or IPv6, and all else that `in` asks for?
inline bool straight_link(const StraightIngress& in,
                          const std::uint8_t* frame,
                          std::uint32_t type,
                          std::uint32_t type_bits) noexcept {
    const std::uint32_t l2_bytes = in.model.l2_bytes;
    return (load<std::uint64_t>(frame) & StraightIngress::kMacBits) == in.mac &&
           (load<std::uint32_t>(frame + l2_bytes - 2) & type_bits) == type &&
           (l2_bytes == StraightIngress::kUntagged ||
            (load<std::uint32_t>(frame + 12) & StraightIngress::kBitsTag) == in.tag);
}
/// A frame of `in`, of at least StraightBurst::kLeast bytes: as straight4; 0 when the link layer
/// is not all that `in` asks for.
inline std::uint16_t straight_frame4(const StraightIngress& in,
                                     const std::uint8_t* frame,
                                     std::uint32_t bytes) noexcept {
    const std::uint32_t l2_bytes = in.model.l2_bytes;
    return straight_link(in, frame, in.type4, StraightIngress::kBits4)
               ? straight4(frame + l2_bytes, bytes - l2_bytes, kMinFrame + 1 - l2_bytes, *in.local)
               : std::uint16_t{0};
}
inline std::uint16_t straight_frame6(const StraightIngress& in,
                                     const std::uint8_t* frame,
                                     std::uint32_t bytes) noexcept {
    const std::uint32_t l2_bytes = in.model.l2_bytes;
    return straight_link(in, frame, in.type6, StraightIngress::kBits6)
               ? straight6(frame + l2_bytes, bytes - l2_bytes, kMinFrame + 1 - l2_bytes, *in.local)
               : std::uint16_t{0};
}

/// The frames of a burst as the straight way looks at them.
struct StraightBurst {
    /// So many are looked at together; the last ones are filled up with frames that are on no way.
    static constexpr std::size_t kGroup = 16;
    /// So many bytes are read of each frame: a tag and an IPv6 header. A shorter one is looked at
    /// closer.
    static constexpr std::uint32_t kLeast = 58;

    std::size_t groups = 0;
    const Packet* packets = nullptr;  // `l3` is behind the link-layer header that `in` asks for
    std::array<std::uint32_t, kMaxBatch> bytes;  // of each frame
    /// What is found out: a bit for each frame of a group.
    std::array<std::uint16_t, kMaxBatch / kGroup> ip4, ip6;
};

/// One way to look at frames; all find the same, and the scalar one is the oracle.
struct StraightImpl {
    std::string_view name;
    bool (*supported)() noexcept;
    /// Looks for IPv4 packets that came in by `in`; a bit for each in `found`, and how many there
    /// are. `lengths` and `destinations` are written for all frames, and mean something for those.
    std::size_t (*ip4)(const StraightIngress& in,
                       const StraightBurst& burst,
                       std::uint32_t* lengths,
                       net::Ipv4Addr* destinations,
                       std::uint16_t* found) noexcept;
    /// The same of IPv6.
    std::size_t (*ip6)(const StraightIngress& in,
                       const StraightBurst& burst,
                       std::uint32_t* lengths,
                       net::Ipv6Addr* destinations,
                       std::uint16_t* found) noexcept;
};
/// Best first, scalar last.
std::span<const StraightImpl> straight_impls() noexcept;
/// The first that this machine supports.
const StraightImpl& best_straight() noexcept;

}  // namespace sluice::pipeline
