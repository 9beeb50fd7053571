// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "net/address.h"
#include "net/wire.h"

namespace sluice::net {

/// Ones' complement sum of `bytes` as 16-bit words in memory order (RFC 1071; byte order does not
/// matter, 2 B), unfolded, added to `initial`. An odd last byte is padded with zero, so only the
/// last of several pieces may be odd. Zero only if every word is zero.
std::uint32_t sum_words(std::span<const std::uint8_t> bytes, std::uint32_t initial = 0) noexcept;

/// Folds to 16 bits and complements: ready to store as it is.
constexpr Be16 fold_checksum(std::uint32_t sum) noexcept {
    sum = (sum & 0xffffU) + (sum >> 16U);
    sum = (sum & 0xffffU) + (sum >> 16U);
    return Be16::from_raw(static_cast<std::uint16_t>(~sum));
}

/// Checksum over `bytes` whose own checksum field is zero.
inline Be16 internet_checksum(std::span<const std::uint8_t> bytes) noexcept {
    return fold_checksum(sum_words(bytes));
}

/// RFC 1071: over bytes that include their checksum, all ones says valid.
inline bool checksum_ok(std::span<const std::uint8_t> bytes) noexcept {
    return fold_checksum(sum_words(bytes)).raw() == 0;
}

/// The same for an IPv4 header without options, which is nearly every one.
inline bool checksum_ok(const Ipv4Header& header) noexcept {
    const auto words = std::bit_cast<std::array<std::uint32_t, 5>>(header);
    // Sums of 32-bit words are sums of 16-bit words once folded.
    std::uint64_t sum = std::uint64_t{words[0]} + words[1] + words[2] + words[3] + words[4];
    sum = (sum & 0xffffffffU) + (sum >> 32U);
    sum = (sum & 0xffffU) + (sum >> 16U);
    return fold_checksum(static_cast<std::uint32_t>(sum)).raw() == 0;
}

/// RFC 8200 8.1: unfolded pseudo-header sum to pass as `initial`; `length` of the upper layer,
/// bytes.
std::uint32_t pseudo_header_sum(const Ipv6Addr& source,
                                const Ipv6Addr& destination,
                                std::uint32_t length,
                                IpProtocol protocol) noexcept;
/// RFC 768, RFC 9293 3.1.
std::uint32_t pseudo_header_sum(const Ipv4Addr& source,
                                const Ipv4Addr& destination,
                                std::uint16_t length,
                                IpProtocol protocol) noexcept;

/// Lowers the TTL by one and updates the checksum (RFC 1624 eqn. 3): HC' = ~(~HC + ~m + m'), with m
/// the old TTL/protocol word: a ones' complement sum of HC and 0x0100. The result is the one a full
/// computation gives, the zero edge (0x0000, never 0xffff) included, since no valid header sums to
/// zero. `ip.ttl` at least 1.
inline void decrement_ttl(Ipv4Header& ip) noexcept {
    // TTL, protocol and checksum as one word in memory order, as the sum does not mind (RFC 1071
    // 2 B): one less in the first byte, 0x0100 more in the last two.
    static_assert(std::endian::native == std::endian::little);
    static_assert(offsetof(Ipv4Header, checksum) == offsetof(Ipv4Header, ttl) + 2);
    std::uint8_t* const bytes = &ip.ttl;
    std::uint32_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    word += 0x1'0000U - 1U;
    if (word >= 0xffff'0000U) [[unlikely]] {
        word += 0x1'0000U;  // all ones is zero
    }
    std::memcpy(bytes, &word, sizeof word);
}

}  // namespace sluice::net
