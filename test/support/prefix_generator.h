// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "net/address.h"

namespace sluice::test {

/// `count` different prefixes with the lengths of the Internet's table of 2026, most of the longer
/// ones inside shorter ones as announcements are. The same seed gives the same prefixes everywhere.
/// At most about 2,000,000 IPv4 prefixes exist with this mix.
template <class Addr>
std::vector<net::Prefix<Addr>> internet_prefixes(std::size_t count, std::uint64_t seed);

/// A random address in the prefix.
template <class Addr>
Addr random_address(const net::Prefix<Addr>& prefix, std::mt19937_64& random) {
    Addr address = prefix.address;
    for (unsigned bit = prefix.length; bit < sizeof(Addr) * 8; ++bit) {
        address.bytes[bit / 8] |=
            static_cast<std::uint8_t>((random() & 1U) != 0 ? 0x80U >> bit % 8 : 0);
    }
    return address;
}

}  // namespace sluice::test
