// SPDX-License-Identifier: BSD-3-Clause
#include "support/prefix_generator.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <span>

namespace sluice::test {
namespace {

struct Share {
    std::uint8_t length;
    std::uint32_t prefixes;
};

// Prefixes of each length in a full table; those of /25 to /31 and of the lengths with fewer than
// 150 IPv6 prefixes are left out.
constexpr auto kIpv4Shares = std::to_array<Share>({{8, 16},
                                                   {9, 13},
                                                   {10, 38},
                                                   {11, 103},
                                                   {12, 299},
                                                   {13, 581},
                                                   {14, 1203},
                                                   {15, 2100},
                                                   {16, 13490},
                                                   {17, 8235},
                                                   {18, 13798},
                                                   {19, 24870},
                                                   {20, 42611},
                                                   {21, 50750},
                                                   {22, 108623},
                                                   {23, 96510},
                                                   {24, 537698},
                                                   {28, 75},
                                                   {32, 886}});
constexpr auto kIpv6Shares =
    std::to_array<Share>({{20, 16},   {24, 30},    {28, 193},  {29, 4371},  {30, 650},  {32, 22548},
                          {33, 2926}, {34, 2603},  {35, 1043}, {36, 5996},  {37, 880},  {38, 1617},
                          {39, 1377}, {40, 13418}, {41, 903},  {42, 2301},  {43, 1001}, {44, 14365},
                          {45, 1553}, {46, 3039},  {47, 3153}, {48, 75488}, {64, 184}});
// Where the registries' blocks of 2000::/3 begin.
constexpr auto kIpv6Blocks = std::to_array<std::uint16_t>(
    {0x2001, 0x2400, 0x2401, 0x2402, 0x2403, 0x2404, 0x2405, 0x2406, 0x2407, 0x2600,
     0x2602, 0x2603, 0x2604, 0x2605, 0x2606, 0x2607, 0x2620, 0x2800, 0x2801, 0x2803,
     0x2804, 0x2806, 0x2a00, 0x2a01, 0x2a02, 0x2a03, 0x2a04, 0x2a05, 0x2a06, 0x2a07,
     0x2a09, 0x2a0a, 0x2a0b, 0x2a0c, 0x2a0d, 0x2a0e, 0x2a0f, 0x2c0e, 0x2c0f});

// The standard's distributions differ between libraries; a bias of 2^-32 does not matter here.
std::size_t below(std::mt19937_64& random, std::size_t end) {
    return random() % end;
}

template <class Addr>
Addr random_address(std::mt19937_64& random) {
    Addr address;
    for (std::uint8_t& byte : address.bytes) {
        byte = static_cast<std::uint8_t>(random());
    }
    if constexpr (sizeof(Addr) == 4) {
        address.bytes[0] = static_cast<std::uint8_t>(1 + below(random, 223));
    } else {
        const std::uint16_t block = kIpv6Blocks[below(random, kIpv6Blocks.size())];
        address.bytes[0] = static_cast<std::uint8_t>(block >> 8U);
        address.bytes[1] = static_cast<std::uint8_t>(block);
    }
    return address;
}

std::uint8_t random_length(std::mt19937_64& random, std::span<const Share> shares) {
    std::uint64_t all = 0;
    for (const Share& share : shares) {
        all += share.prefixes;
    }
    std::uint64_t at = below(random, all);
    for (const Share& share : shares) {
        if (at < share.prefixes) {
            return share.length;
        }
        at -= share.prefixes;
    }
    return shares.back().length;
}

}  // namespace

template <class Addr>
std::vector<net::Prefix<Addr>> internet_prefixes(std::size_t count, std::uint64_t seed) {
    using Prefix = net::Prefix<Addr>;
    constexpr unsigned kAllocation = sizeof(Addr) == 4 ? 20 : 36;
    const std::span<const Share> shares = [] {
        if constexpr (sizeof(Addr) == 4) {
            return std::span<const Share>(kIpv4Shares);
        } else {
            return std::span<const Share>(kIpv6Shares);
        }
    }();
    std::mt19937_64 random(seed);
    std::set<Prefix> known;
    std::vector<Prefix> out;
    std::vector<Prefix> allocations;  // short ones, for others to be cut from
    out.reserve(count);
    while (out.size() < count) {
        const std::uint8_t length = random_length(random, shares);
        Addr address = random_address<Addr>(random);
        if (!allocations.empty() && below(random, 4) != 0) {
            const Prefix& within = allocations[below(random, allocations.size())];
            if (within.length < length) {
                const Addr kept = address;
                address = within.address;
                for (unsigned bit = within.length; bit < length; ++bit) {
                    address.bytes[bit / 8] |=
                        static_cast<std::uint8_t>(kept.bytes[bit / 8] & (0x80U >> bit % 8));
                }
            }
        }
        const Prefix prefix = Prefix::of(address, length);
        if (known.insert(prefix).second) {
            out.push_back(prefix);
            if (length <= kAllocation) {
                allocations.push_back(prefix);
            }
        }
    }
    return out;
}

template std::vector<net::Ipv4Prefix> internet_prefixes(std::size_t, std::uint64_t);
template std::vector<net::Ipv6Prefix> internet_prefixes(std::size_t, std::uint64_t);

}  // namespace sluice::test
