// SPDX-License-Identifier: BSD-3-Clause
// No #pragma once: the body of straight_avx2.cc and straight_avx512.cc, which bring the operations
// on their vectors. A lane of a vector is a frame, a vector one 32-bit word of each of kLanes
// frames, as it lies in memory.

/// The low byte of each lane.
SLUICE_LANES inline Vec low8(Vec v) noexcept {
    return and_(v, all(0xff));
}

/// What the 16 bytes from a frame's start on are to be under `mask`.
struct Head {
    __m128i bytes, mask;
};
template <class Addr>
SLUICE_LANES inline Head head_of(const StraightIngress& in) noexcept {
    const bool tagged = in.model.l2_bytes == StraightIngress::kTagged;
    const std::uint32_t last = tagged ? in.tag : StraightFamily<Addr>::kType;
    const std::uint32_t last_bits =
        tagged ? StraightIngress::kBitsTag : StraightFamily<Addr>::kTypeBits;
    return {.bytes = _mm_set_epi64x(static_cast<long long>(std::uint64_t{last} << 32U),
                                    static_cast<long long>(in.mac)),
            .mask = _mm_set_epi64x(static_cast<long long>(std::uint64_t{last_bits} << 32U),
                                   static_cast<long long>(StraightIngress::kMacBits))};
}

/// A bit for each frame with `in`'s MAC, tag and type. One question for all: frames mostly have
/// them.
template <std::uint32_t kL2, class Addr>
SLUICE_LANES inline unsigned linked(const StraightIngress& in,
                                    const Packet* packets,
                                    const Head& head) noexcept {
    using Family = StraightFamily<Addr>;
    __m128i bad = _mm_setzero_si128();
    std::uint32_t other_type = 0;
    for (std::size_t i = 0; i < kLanes; ++i) {
        const auto* frame = reinterpret_cast<const __m128i*>(packets[i].l3 - kL2);
        bad = _mm_or_si128(
            bad, _mm_and_si128(_mm_xor_si128(_mm_loadu_si128(frame), head.bytes), head.mask));
        if constexpr (kL2 == StraightIngress::kTagged) {
            other_type |=
                (load<std::uint32_t>(packets[i].l3 - 2) ^ Family::kType) & Family::kTypeBits;
        }
    }
    if (_mm_testz_si128(bad, bad) != 0 && other_type == 0) [[likely]] {
        return (1U << kLanes) - 1;
    }
    unsigned found = 0;
    for (std::size_t i = 0; i < kLanes; ++i) {
        found |= straight_link<Addr>(in, packets[i].l3) ? 1U << i : 0U;
    }
    return found;
}

/// The packets of `length` bytes that fill their `room`, or leave what a frame of the least length
/// has behind it.
template <std::uint32_t kL2>
SLUICE_LANES inline Mask fits(Vec length, Vec room) noexcept {
    return either(equal(length, room),
                  both(greater(all(kMinFrame + 1 - kL2), room), greater(room, length)));
}

/// The lanes of `found` whose source is not the router's own: those that the filter says it of
/// (`strange`), and of the others those that it is wrong about.
template <class Addr>
SLUICE_LANES inline unsigned without_own(const StraightIngress& in,
                                         unsigned found,
                                         unsigned strange,
                                         const Packet* packets) noexcept {
    for (unsigned suspects = found & ~strange; suspects != 0; suspects &= suspects - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(suspects));
        if (is_own_source<Addr>(in, packets[i].l3)) {
            found &= ~(1U << i);
        }
    }
    return found;
}

template <std::uint32_t kL2>
[[gnu::always_inline]] SLUICE_LANES inline unsigned look(const StraightIngress& in,
                                                         unsigned links,
                                                         const Packet* packets,
                                                         const std::uint32_t* bytes,
                                                         std::uint32_t* lengths,
                                                         net::Ipv4Addr* destinations) noexcept {
    const Vec first = words_at(packets, 0).w[0];  // the others once more behind it
    const Words ip = words_at(packets, 4);
    const Vec source = ip.w[2], destination = ip.w[3];
    const Vec room = sub(load_words(bytes), all(kL2));
    const Vec length = swap_low16(high16(first));
    store_words(lengths, length);
    store_words(destinations, destination);

    Vec bad = xor_(low8(first), all(net::Ipv4Header::kNoOptions));
    bad = or_(bad, and_(ip.w[0], all(0xff3f'0000)));  // MF, offset
    const Vec own = in_filter(*in.local, times(source, all(fib::LocalAddresses::kFactor4)));

    Vec sum = add(low16(first), high16(first));
    for (const Vec& w : ip.w) {
        sum = add(sum, add(low16(w), high16(w)));
    }
    sum = add(low16(sum), high16(sum));
    sum = add(low16(sum), high16(sum));

    // Hosts: 1 to 223, but 127. One less makes 0 the greatest.
    const Vec s = sub(low8(source), all(1)), d = sub(low8(destination), all(1));
    const Mask unhosted = either(either(equal(s, all(126)), equal(d, all(126))),
                                 greater_unsigned(greatest(s, d), all(222)));
    const Vec ttl = low8(ip.w[1]);

    Mask fine = both(equal(bad, all(0)), equal(sum, all(0xffff)));
    fine = both(fine, fits<kL2>(length, room));
    fine = both(fine, greater(length, all(sizeof(net::Ipv4Header) - 1)));
    fine = both(fine, greater(ttl, all(1)));
    return without_own<net::Ipv4Addr>(
        in, links & bits_of(but_not(fine, unhosted)), bits_of(equal(own, all(0))), packets);
}

template <std::uint32_t kL2>
[[gnu::always_inline]] SLUICE_LANES inline unsigned look(const StraightIngress& in,
                                                         unsigned links,
                                                         const Packet* packets,
                                                         const std::uint32_t* bytes,
                                                         std::uint32_t* lengths,
                                                         net::Ipv6Addr* destinations) noexcept {
    // Payload length, next header, hop limit; source; the destination's first three words.
    const Words low = words_at(packets, 4), high = words_at(packets, 20);
    const Vec head = low.w[0], destination = high.w[1];
    const Vec source[4] = {low.w[1], low.w[2], low.w[3], high.w[0]};
    const Vec room = sub(load_words(bytes), all(kL2));
    const Vec length = add(swap_low16(head), all(sizeof(net::Ipv6Header)));
    store_words(lengths, length);
    for (std::size_t i = 0; i < kLanes; ++i) {
        std::memcpy(&destinations[i], packets[i].l3 + 24, sizeof(net::Ipv6Addr));
    }

    Vec hash = all(0);
    for (std::size_t i = 0; i < 4; ++i) {
        hash = add(hash, times(source[i], all(fib::LocalAddresses::kFactors6[i])));
    }
    const Vec own = in_filter(*in.local, hash);

    // What begins with 0, 0xfe or 0xff is of a scope, unspecified, mapped or a group. One less
    // makes 0 the greatest.
    const Vec s = sub(low8(source[0]), all(1)), d = sub(low8(destination), all(1));
    const Mask unhosted = greater_unsigned(greatest(s, d), all(0xfc));

    Mask fine = both(fits<kL2>(length, room), greater(all(0x10000), length));
    fine = both(fine, greater(high8(head), all(1)));
    return without_own<net::Ipv6Addr>(
        in, links & bits_of(but_not(fine, unhosted)), bits_of(equal(own, all(0))), packets);
}

template <std::uint32_t kL2, class Addr>
SLUICE_LANES std::size_t find(const StraightIngress& in,
                              const StraightBurst& burst,
                              std::uint32_t* lengths,
                              Addr* destinations,
                              std::uint16_t* found) noexcept {
    std::size_t count = 0;
    const Head head = head_of<Addr>(in);
    for (std::size_t g = 0; g < burst.groups; ++g) {
        unsigned is = 0;
        for (std::size_t lane = 0; lane < StraightBurst::kGroup; lane += kLanes) {
            const std::size_t first = g * StraightBurst::kGroup + lane;
            const Packet* packets = burst.packets + first;
            is |= look<kL2>(in,
                            linked<kL2, Addr>(in, packets, head),
                            packets,
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

template <class Addr>
std::size_t find_any(const StraightIngress& in,
                     const StraightBurst& burst,
                     std::uint32_t* lengths,
                     Addr* destinations,
                     std::uint16_t* found) noexcept {
    if (!StraightFamily<Addr>::taken(in)) {
        std::fill_n(found, burst.groups, std::uint16_t{0});
        return 0;
    }
    return in.model.l2_bytes == StraightIngress::kUntagged
               ? find<StraightIngress::kUntagged>(in, burst, lengths, destinations, found)
               : find<StraightIngress::kTagged>(in, burst, lengths, destinations, found);
}

}  // namespace

std::size_t ip4(const StraightIngress& in,
                const StraightBurst& burst,
                std::uint32_t* lengths,
                net::Ipv4Addr* destinations,
                std::uint16_t* found) noexcept {
    return find_any(in, burst, lengths, destinations, found);
}
std::size_t ip6(const StraightIngress& in,
                const StraightBurst& burst,
                std::uint32_t* lengths,
                net::Ipv6Addr* destinations,
                std::uint16_t* found) noexcept {
    return find_any(in, burst, lengths, destinations, found);
}
