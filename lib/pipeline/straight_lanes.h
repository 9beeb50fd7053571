// SPDX-License-Identifier: BSD-3-Clause
// No #pragma once: the body of straight_avx2.cc and straight_avx512.cc, which bring the operations
// on their vectors. A lane of a vector is a frame, a vector one 32-bit word of each of kLanes
// frames, as it lies in memory.

/// Where a frame's words are, seen from the IP header.
template <std::uint32_t kL2>
inline constexpr std::ptrdiff_t kFrame = -static_cast<std::ptrdiff_t>(kL2);

/// The low byte of each lane.
SLUICE_LANES inline Vec low8(Vec v) noexcept {
    return and_(v, all(0xff));
}

/// Not zero in each lane of a frame without `in`'s MAC, tag and type. `eth`: the frame's first four
/// words; `type`: EtherType and what is behind it.
template <std::uint32_t kL2>
SLUICE_LANES inline Vec other_link(const StraightIngress& in,
                                   const Words& eth,
                                   Vec type,
                                   std::uint32_t type_bits,
                                   std::uint32_t wanted) noexcept {
    const auto high_bits = static_cast<std::uint32_t>(StraightIngress::kMacBits >> 32U);
    Vec bad = xor_(eth.w[0], all(static_cast<std::uint32_t>(in.mac)));
    bad = or_(bad,
              xor_(and_(eth.w[1], all(high_bits)), all(static_cast<std::uint32_t>(in.mac >> 32U))));
    bad = or_(bad, xor_(and_(type, all(type_bits)), all(wanted)));
    if constexpr (kL2 == StraightIngress::kTagged) {
        bad = or_(bad, xor_(and_(eth.w[3], all(StraightIngress::kBitsTag)), all(in.tag)));
    }
    return bad;
}

template <std::uint32_t kL2>
SLUICE_LANES inline Vec type_of(const Packet* packets, const Words& eth) noexcept {
    if constexpr (kL2 == StraightIngress::kTagged) {
        return word_at(packets, -2);
    } else {
        return eth.w[3];
    }
}

/// The packets of `length` bytes that fill their `room`, or leave what a frame of the least length
/// has behind it.
template <std::uint32_t kL2>
SLUICE_LANES inline Mask fits(Vec length, Vec room) noexcept {
    return either(equal(length, room),
                  both(greater(all(kMinFrame + 1 - kL2), room), greater(room, length)));
}

template <std::uint32_t kL2>
SLUICE_LANES inline unsigned look4(const StraightIngress& in,
                                   const Packet* packets,
                                   const std::uint32_t* bytes,
                                   std::uint32_t* lengths,
                                   net::Ipv4Addr* destinations) noexcept {
    const Words eth = words_at(packets, kFrame<kL2>);
    const Vec type = type_of<kL2>(packets, eth);
    const Words ip = words_at(packets, 2);  // length and id to the destination's first half
    const Vec destination = word_at(packets, 16);
    const Vec source = or_(high16(ip.w[2]), shift_up16(ip.w[3]));
    const Vec room = sub(load_words(bytes), all(kL2));
    const Vec length = swap_low16(ip.w[0]);
    store_words(lengths, length);
    store_words(destinations, destination);

    Vec bad = other_link<kL2>(in, eth, type, StraightIngress::kBits4, in.type4);
    bad = or_(bad, and_(ip.w[1], all(0xff3f)));  // MF, offset
    bad = or_(bad, in_filter(*in.local, times(source, all(fib::LocalAddresses::kFactor4))));

    // The sum of all halves of words; the first half of the first is the EtherType, and that of the
    // last stands in the word before, too.
    Vec sum = add(high16(type), high16(destination));
    for (const Vec& w : ip.w) {
        sum = add(sum, add(low16(w), high16(w)));
    }
    sum = add(low16(sum), high16(sum));
    sum = add(low16(sum), high16(sum));

    // Hosts: 1 to 223, but 127. One less makes 0 the greatest.
    const Vec s = sub(low8(source), all(1)), d = sub(low8(destination), all(1));
    const Mask unhosted = either(either(equal(s, all(126)), equal(d, all(126))),
                                 greater_unsigned(greatest(s, d), all(222)));
    const Vec ttl = low8(high16(ip.w[1]));

    Mask fine = both(equal(bad, all(0)), equal(sum, all(0xffff)));
    fine = both(fine, fits<kL2>(length, room));
    fine = both(fine, greater(length, all(sizeof(net::Ipv4Header) - 1)));
    fine = both(fine, greater(ttl, all(1)));
    return bits_of(but_not(fine, unhosted));
}

template <std::uint32_t kL2>
SLUICE_LANES inline unsigned look6(const StraightIngress& in,
                                   const Packet* packets,
                                   const std::uint32_t* bytes,
                                   std::uint32_t* lengths,
                                   net::Ipv6Addr* destinations) noexcept {
    const Words eth = words_at(packets, kFrame<kL2>);
    const Words source = words_at(packets, 8);
    const Vec head = word_at(packets, 4);  // payload length, next header, hop limit
    const Vec destination = word_at(packets, 24);
    const Vec room = sub(load_words(bytes), all(kL2));
    const Vec length = add(swap_low16(head), all(sizeof(net::Ipv6Header)));
    store_words(lengths, length);
    for (std::size_t i = 0; i < kLanes; ++i) {
        std::memcpy(&destinations[i], packets[i].l3 + 24, sizeof(net::Ipv6Addr));
    }

    Vec bad =
        other_link<kL2>(in, eth, type_of<kL2>(packets, eth), StraightIngress::kBits6, in.type6);
    Vec hash = all(0);
    for (std::size_t i = 0; i < 4; ++i) {
        hash = add(hash, times(source.w[i], all(fib::LocalAddresses::kFactors6[i])));
    }
    bad = or_(bad, in_filter(*in.local, hash));

    // What begins with 0, 0xfe or 0xff is of a scope, unspecified, mapped or a group. One less
    // makes 0 the greatest.
    const Vec s = sub(low8(source.w[0]), all(1)), d = sub(low8(destination), all(1));
    const Mask unhosted = greater_unsigned(greatest(s, d), all(0xfc));

    Mask fine = both(equal(bad, all(0)), fits<kL2>(length, room));
    fine = both(fine, greater(all(0x10000), length));
    fine = both(fine, greater(high8(head), all(1)));
    return bits_of(but_not(fine, unhosted));
}

template <std::uint32_t kL2>
SLUICE_LANES std::size_t find4(const StraightIngress& in,
                               const StraightBurst& burst,
                               std::uint32_t* lengths,
                               net::Ipv4Addr* destinations,
                               std::uint16_t* found) noexcept {
    std::size_t count = 0;
    for (std::size_t g = 0; g < burst.groups; ++g) {
        unsigned is = 0;
        for (std::size_t lane = 0; lane < StraightBurst::kGroup; lane += kLanes) {
            const std::size_t first = g * StraightBurst::kGroup + lane;
            is |= look4<kL2>(in,
                             burst.packets + first,
                             &burst.bytes[first],
                             lengths + first,
                             destinations + first)
                  << lane;
        }
        found[g] = static_cast<std::uint16_t>(is);
        count += static_cast<std::size_t>(std::popcount(is));
    }
    return count;
}

template <std::uint32_t kL2>
SLUICE_LANES std::size_t find6(const StraightIngress& in,
                               const StraightBurst& burst,
                               std::uint32_t* lengths,
                               net::Ipv6Addr* destinations,
                               std::uint16_t* found) noexcept {
    std::size_t count = 0;
    for (std::size_t g = 0; g < burst.groups; ++g) {
        unsigned is = 0;
        for (std::size_t lane = 0; lane < StraightBurst::kGroup; lane += kLanes) {
            const std::size_t first = g * StraightBurst::kGroup + lane;
            is |= look6<kL2>(in,
                             burst.packets + first,
                             &burst.bytes[first],
                             lengths + first,
                             destinations + first)
                  << lane;
        }
        found[g] = static_cast<std::uint16_t>(is);
        count += static_cast<std::size_t>(std::popcount(is));
    }
    return count;
}

}  // namespace

std::size_t ip4(const StraightIngress& in,
                const StraightBurst& burst,
                std::uint32_t* lengths,
                net::Ipv4Addr* destinations,
                std::uint16_t* found) noexcept {
    return in.model.l2_bytes == StraightIngress::kUntagged
               ? find4<StraightIngress::kUntagged>(in, burst, lengths, destinations, found)
               : find4<StraightIngress::kTagged>(in, burst, lengths, destinations, found);
}

std::size_t ip6(const StraightIngress& in,
                const StraightBurst& burst,
                std::uint32_t* lengths,
                net::Ipv6Addr* destinations,
                std::uint16_t* found) noexcept {
    return in.model.l2_bytes == StraightIngress::kUntagged
               ? find6<StraightIngress::kUntagged>(in, burst, lengths, destinations, found)
               : find6<StraightIngress::kTagged>(in, burst, lengths, destinations, found);
}
