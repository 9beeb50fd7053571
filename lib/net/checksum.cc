// SPDX-License-Identifier: BSD-3-Clause
#include "net/checksum.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace sluice::net {

std::uint32_t sum_words(std::span<const std::uint8_t> bytes, std::uint32_t initial) noexcept {
    // 32-bit words into 64 bits: the carries of 2^32 words fit, and folding at the end gives what
    // 16-bit words would have given (RFC 1071 2 C).
    std::uint64_t sum = initial;
    const std::uint8_t* next = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; next += 8, left -= 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, next, sizeof(word));
        sum += (word & 0xffffffffU) + (word >> 32U);
    }
    if (left > 0) {
        std::uint64_t word = 0;
        std::memcpy(&word, next, left);
        sum += (word & 0xffffffffU) + (word >> 32U);
    }
    sum = (sum & 0xffffffffU) + (sum >> 32U);
    sum = (sum & 0xffffU) + (sum >> 16U);
    return static_cast<std::uint32_t>(sum);
}

namespace {
std::uint32_t word(std::uint32_t host) noexcept {
    return Be16::from_host(static_cast<std::uint16_t>(host)).raw();
}
}  // namespace

std::uint32_t pseudo_header_sum(const Ipv6Addr& source,
                                const Ipv6Addr& destination,
                                std::uint32_t length,
                                IpProtocol protocol) noexcept {
    const std::uint32_t sum =
        word(length >> 16U) + word(length) + word(std::to_underlying(protocol));
    return sum_words(destination.bytes, sum_words(source.bytes, sum));
}

std::uint32_t pseudo_header_sum(const Ipv4Addr& source,
                                const Ipv4Addr& destination,
                                std::uint16_t length,
                                IpProtocol protocol) noexcept {
    const std::uint32_t sum = word(length) + word(std::to_underlying(protocol));
    return sum_words(destination.bytes, sum_words(source.bytes, sum));
}

}  // namespace sluice::net
