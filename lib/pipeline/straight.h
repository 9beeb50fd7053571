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
    static constexpr std::uint16_t kTypeVlan = 0x0081;
    /// Of EtherType and what is behind it: a tag, whatever its priority.
    static constexpr std::uint32_t kBitsTag = 0xff0f'ffff;
    static constexpr std::uint8_t kUntagged = sizeof(net::EthernetHeader);
    static constexpr std::uint8_t kTagged = kUntagged + sizeof(net::VlanTag);

    bool ip4 = false, ip6 = false;  // takes packets of the family and forwards them
    std::uint32_t tag = 0;          // of tagged ones
    std::uint64_t mac = 0;
    const fib::LocalAddresses* local = nullptr;
    Packet model;  // but for m, l3, length

    /// Of nobody: takes none.
    StraightIngress() = default;
    /// `vlan_id` 0: frames without a tag.
    explicit StraightIngress(const fib::NetdevView& in, std::uint16_t vlan_id = 0) noexcept
        : ip4(in.up && in.forwarding && in.has_ipv4),
          ip6(in.up && in.forwarding && in.has_ipv6),
          local(in.local.get()) {
        std::memcpy(&mac, in.mac.bytes.data(), in.mac.bytes.size());
        model.in = &in;
        model.book = in.id;
        model.l2_bytes = kUntagged;
        if (vlan_id != 0) {
            model.l2_bytes = kTagged;
            tag = kTypeVlan | (std::uint32_t{rte_bswap16(vlan_id)} << 16U);
        }
        model.flags = Packet::kStraight;
        model.turn_back = in.send_redirects ? in.id : kBlackholeNetdev;
    }
};

/// Does a packet of `length` bytes fill its `room`, or leave what a frame of the least length has
/// behind it?
inline bool straight_fits(std::uint32_t length,
                          std::uint32_t room,
                          std::uint32_t l2_bytes) noexcept {
    return room == length || (room + l2_bytes <= kMinFrame && length < room);
}

/// Is the source of the packet at `l3` the router's own? The filter alone would be wrong about one
/// in some thousands, and about more where there are many addresses.
template <class Addr>
bool is_own_source(const StraightIngress& in, const std::uint8_t* l3) noexcept;

/// What is particular to a family. `length`: of the packet at `l3`, whose header lies in memory
/// whole, when it may be forwarded as it is; else 0. `room`: bytes of the frame from l3 on.
template <class Addr>
struct StraightFamily;

template <>
struct StraightFamily<net::Ipv4Addr> {
    /// EtherType and the first byte behind it, without options.
    static constexpr std::uint32_t kType = 0x0045'0008, kTypeBits = 0x00ff'ffff;
    static constexpr std::size_t kSource = offsetof(net::Ipv4Header, source);
    static constexpr std::size_t kDestination = offsetof(net::Ipv4Header, destination);
    static bool taken(const StraightIngress& in) noexcept { return in.ip4; }

    /// What validate_ipv4, the martian checks and the TTL's say about it.
    static std::uint16_t length(const StraightIngress& in,
                                const std::uint8_t* l3,
                                std::uint32_t room) noexcept {
        const auto first = load<std::uint64_t>(l3);
        const auto second = load<std::uint64_t>(l3 + 8);
        const auto third = load<std::uint32_t>(l3 + 16);
        const std::uint32_t length = rte_bswap16(static_cast<std::uint16_t>(first >> 16U));
        constexpr std::uint64_t kFragment = std::uint64_t{0xff3f} << 48U;  // MF, offset
        const std::uint64_t ttl = second & 0xffU;
        const auto source = static_cast<unsigned>(second >> 32U) & 0xffU;
        const unsigned destination = third & 0xffU;
        std::uint64_t sum = (first & 0xffff'ffffU) + (first >> 32U) + (second & 0xffff'ffffU) +
                            (second >> 32U) + third;
        sum = (sum & 0xffff'ffffU) + (sum >> 32U);
        sum = (sum & 0xffffU) + (sum >> 16U);
        sum = (sum & 0xffffU) + (sum >> 16U);
        // 1 to 223, but 127.
        const auto host = [](unsigned byte) { return byte - 1 < 223 && byte != 127; };
        const bool fine = straight_fits(length, room, in.model.l2_bytes) &&
                          length >= sizeof(net::Ipv4Header) && (first & kFragment) == 0 &&
                          ttl > 1 && (sum & 0xffffU) == 0xffffU && host(source) &&
                          host(destination) && !is_own_source<net::Ipv4Addr>(in, l3);
        return fine ? static_cast<std::uint16_t>(length) : std::uint16_t{0};
    }
};

template <>
struct StraightFamily<net::Ipv6Addr> {
    /// The same, whatever the traffic class.
    static constexpr std::uint32_t kType = 0x0060'dd86, kTypeBits = 0x00f0'ffff;
    static constexpr std::size_t kSource = offsetof(net::Ipv6Header, source);
    static constexpr std::size_t kDestination = offsetof(net::Ipv6Header, destination);
    static bool taken(const StraightIngress& in) noexcept { return in.ip6; }

    static std::uint16_t length(const StraightIngress& in,
                                const std::uint8_t* l3,
                                std::uint32_t room) noexcept {
        const auto first = load<std::uint64_t>(l3);
        constexpr std::uint32_t kHeader = sizeof(net::Ipv6Header);
        const std::uint32_t length =
            kHeader + rte_bswap16(static_cast<std::uint16_t>(first >> 32U));
        const std::uint64_t hop_limit = first >> 56U;
        // What begins with 0, 0xfe or 0xff is of a scope, unspecified, mapped or a group.
        const auto host = [](std::uint8_t byte) { return static_cast<std::uint8_t>(byte + 2) > 2; };
        const bool fine = straight_fits(length, room, in.model.l2_bytes) && length <= 0xffffU &&
                          hop_limit > 1 && host(l3[8]) && host(l3[24]) &&
                          !is_own_source<net::Ipv6Addr>(in, l3);
        return fine ? static_cast<std::uint16_t>(length) : std::uint16_t{0};
    }
};

template <class Addr>
bool is_own_source(const StraightIngress& in, const std::uint8_t* l3) noexcept {
    return in.local->contains(load<Addr>(l3 + StraightFamily<Addr>::kSource));
}

/// Does the frame in front of `l3` have the MAC, tag and type that `in` asks for?
template <class Addr>
bool straight_link(const StraightIngress& in, const std::uint8_t* l3) noexcept {
    using Family = StraightFamily<Addr>;
    const std::uint8_t* frame = l3 - in.model.l2_bytes;
    return (load<std::uint64_t>(frame) & StraightIngress::kMacBits) == in.mac &&
           (load<std::uint32_t>(l3 - 2) & Family::kTypeBits) == Family::kType &&
           (in.model.l2_bytes == StraightIngress::kUntagged ||
            (load<std::uint32_t>(frame + 12) & StraightIngress::kBitsTag) == in.tag);
}
/// The length of the packet at `l3` when its frame, of `bytes` and at least StraightBurst::kLeast,
/// is on the straight way in by `in`; else 0.
template <class Addr>
std::uint16_t straight_length(const StraightIngress& in,
                              const std::uint8_t* l3,
                              std::uint32_t bytes) noexcept {
    using Family = StraightFamily<Addr>;
    return Family::taken(in) && straight_link<Addr>(in, l3)
               ? Family::length(in, l3, bytes - in.model.l2_bytes)
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

/// Looks for packets of a family that came in by `in`: a bit for each in `found`, and how many
/// there are. `lengths` and `destinations` are written for all frames, and mean something for
/// those.
template <class Addr>
using StraightFn = std::size_t(const StraightIngress& in,
                               const StraightBurst& burst,
                               std::uint32_t* lengths,
                               Addr* destinations,
                               std::uint16_t* found) noexcept;

/// One way to look at frames; all find the same, and the scalar one is the oracle.
struct StraightImpl {
    std::string_view name;
    bool (*supported)() noexcept;
    StraightFn<net::Ipv4Addr>* ip4;
    StraightFn<net::Ipv6Addr>* ip6;
};
/// Best first, scalar last.
std::span<const StraightImpl> straight_impls() noexcept;
/// The first that this machine supports.
const StraightImpl& best_straight() noexcept;

}  // namespace sluice::pipeline
