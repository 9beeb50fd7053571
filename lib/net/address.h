// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "net/byte_order.h"

namespace sluice::net {

enum class Family : std::uint8_t { kIpv4 = 4, kIpv6 = 6 };
std::string_view to_string(Family family) noexcept;  // "ipv4", "ipv6"

/// What is wrong with a text, as the tail of a sentence: "not an IPv4 address".
using ParseError = std::string;
template <class T>
using Parsed = std::expected<T, ParseError>;

struct MacAddr {
    std::array<std::uint8_t, 6> bytes{};

    static Parsed<MacAddr> parse(std::string_view text);  // aa:bb:cc:dd:ee:ff, either case
    std::string to_string() const;                        // lower case
    constexpr bool is_group() const noexcept { return (bytes[0] & 1U) != 0; }
    constexpr bool is_zero() const noexcept { return *this == MacAddr{}; }
    friend constexpr auto operator<=>(const MacAddr&, const MacAddr&) = default;
    friend constexpr bool operator==(const MacAddr& a, const MacAddr& b) noexcept {
        const auto x = std::bit_cast<std::array<std::uint16_t, 3>>(a.bytes);
        const auto y = std::bit_cast<std::array<std::uint16_t, 3>>(b.bytes);
        return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2])) == 0;
    }
};
inline constexpr MacAddr kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

struct Ipv4Addr {
    std::array<std::uint8_t, 4> bytes{};

    static Parsed<Ipv4Addr> parse(std::string_view text);  // dotted quad, decimal, no leading zeros
    static constexpr Ipv4Addr from_host(std::uint32_t v) noexcept {
        return {{static_cast<std::uint8_t>(v >> 24U),
                 static_cast<std::uint8_t>(v >> 16U),
                 static_cast<std::uint8_t>(v >> 8U),
                 static_cast<std::uint8_t>(v)}};
    }
    constexpr std::uint32_t host() const noexcept {
        return std::uint32_t{bytes[0]} << 24U | std::uint32_t{bytes[1]} << 16U |
               std::uint32_t{bytes[2]} << 8U | bytes[3];
    }
    std::string to_string() const;

    constexpr bool is_zero() const noexcept { return host() == 0; }
    constexpr bool is_this_network() const noexcept { return bytes[0] == 0; }      // 0/8
    constexpr bool is_loopback() const noexcept { return bytes[0] == 127; }        // 127/8
    constexpr bool is_multicast() const noexcept { return bytes[0] >> 4U == 14; }  // 224/4
    constexpr bool is_reserved() const noexcept { return bytes[0] >> 4U == 15; }   // 240/4
    constexpr bool is_limited_broadcast() const noexcept { return host() == 0xffffffffU; }
    constexpr bool is_link_local() const noexcept { return bytes[0] == 169 && bytes[1] == 254; }
    friend constexpr auto operator<=>(const Ipv4Addr&, const Ipv4Addr&) = default;
    // The library compares arrays by calling memcmp.
    friend constexpr bool operator==(const Ipv4Addr& a, const Ipv4Addr& b) noexcept {
        return std::bit_cast<std::uint32_t>(a.bytes) == std::bit_cast<std::uint32_t>(b.bytes);
    }
};

struct Ipv6Addr {
    std::array<std::uint8_t, 16> bytes{};

    static Parsed<Ipv6Addr> parse(std::string_view text);  // RFC 4291 2.2, without zone
    std::string to_string() const;                         // RFC 5952

    // These run per packet, and the library compares arrays by calling memcmp: words instead.
    using Words = std::array<std::uint64_t, 2>;  // in memory order
    constexpr Words words() const noexcept { return std::bit_cast<Words>(bytes); }
    constexpr bool is_unspecified() const noexcept { return (words()[0] | words()[1]) == 0; }
    constexpr bool is_loopback() const noexcept {
        constexpr auto kOne = Be<std::uint64_t>::from_host(1).raw();
        return words()[0] == 0 && words()[1] == kOne;
    }
    constexpr bool is_multicast() const noexcept { return bytes[0] == 0xff; }
    constexpr bool is_link_local() const noexcept {  // fe80::/10
        return bytes[0] == 0xfe && (bytes[1] & 0xc0U) == 0x80;
    }
    friend constexpr auto operator<=>(const Ipv6Addr&, const Ipv6Addr&) = default;
    friend constexpr bool operator==(const Ipv6Addr& a, const Ipv6Addr& b) noexcept {
        return ((a.words()[0] ^ b.words()[0]) | (a.words()[1] ^ b.words()[1])) == 0;
    }
};

/// RFC 4291 2.5.1, appendix A: fe80:: and the modified EUI-64 of `mac`.
Ipv6Addr link_local_from_mac(const MacAddr& mac) noexcept;
/// RFC 4291 2.7.1: ff02::1:ffXX:XXXX of `target`.
Ipv6Addr solicited_node(const Ipv6Addr& target) noexcept;
/// RFC 2464 7: 33:33 and the last four bytes of `group`.
MacAddr multicast_mac(const Ipv6Addr& group) noexcept;
inline constexpr Ipv6Addr kAllNodes{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
inline constexpr Ipv6Addr kAllRouters{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};

/// An address of either family.
class IpAddr {
public:
    constexpr IpAddr() = default;                  // 0.0.0.0
    constexpr IpAddr(Ipv4Addr v4) : value_(v4) {}  // NOLINT(google-explicit-constructor): a union
    constexpr IpAddr(Ipv6Addr v6) : value_(v6) {}  // NOLINT(google-explicit-constructor): a union

    static Parsed<IpAddr> parse(std::string_view text);
    std::string to_string() const;
    constexpr Family family() const noexcept {
        return value_.index() == 0 ? Family::kIpv4 : Family::kIpv6;
    }
    constexpr bool is_v4() const noexcept { return value_.index() == 0; }
    constexpr bool is_v6() const noexcept { return value_.index() == 1; }
    constexpr const Ipv4Addr& v4() const { return std::get<Ipv4Addr>(value_); }
    constexpr const Ipv6Addr& v6() const { return std::get<Ipv6Addr>(value_); }
    friend constexpr auto operator<=>(const IpAddr&, const IpAddr&) = default;

private:
    std::variant<Ipv4Addr, Ipv6Addr> value_;
};

/// A network: an address whose bits past `length` are zero, and the length in bits.
/// Construct by parse() or by of(), which clears host bits.
template <class Addr>
struct Prefix {
    static constexpr unsigned kBits = sizeof(Addr) * 8;
    Addr address{};
    std::uint8_t length = 0;

    /// "10.0.0.0/8"; host bits set or no length are errors, "default" is not known here.
    static Parsed<Prefix> parse(std::string_view text);
    static constexpr Prefix of(Addr address, std::uint8_t length) noexcept {
        for (unsigned i = 0; i < sizeof(Addr); ++i) {
            const unsigned kept = length > i * 8 ? length - i * 8 : 0;
            if (kept < 8) {
                address.bytes[i] &= static_cast<std::uint8_t>(0xff00U >> kept);
            }
        }
        return {address, length};
    }
    constexpr bool contains(const Addr& a) const noexcept { return of(a, length) == *this; }
    constexpr bool contains(const Prefix& p) const noexcept {
        return p.length >= length && contains(p.address);
    }
    std::string to_string() const;
    friend constexpr auto operator<=>(const Prefix&, const Prefix&) = default;
};
using Ipv4Prefix = Prefix<Ipv4Addr>;
using Ipv6Prefix = Prefix<Ipv6Addr>;

/// A prefix of either family.
class IpPrefix {
public:
    constexpr IpPrefix() = default;
    constexpr IpPrefix(Ipv4Prefix p) : value_(p) {}  // NOLINT(google-explicit-constructor): a union
    constexpr IpPrefix(Ipv6Prefix p) : value_(p) {}  // NOLINT(google-explicit-constructor): a union
    /// Clears host bits. `length` at most 32 or 128.
    static IpPrefix of(const IpAddr& address, std::uint8_t length) noexcept;
    static IpPrefix default_route(Family family) noexcept;

    static Parsed<IpPrefix> parse(std::string_view text);
    std::string to_string() const;
    constexpr Family family() const noexcept {
        return value_.index() == 0 ? Family::kIpv4 : Family::kIpv6;
    }
    constexpr bool is_v4() const noexcept { return value_.index() == 0; }
    constexpr const Ipv4Prefix& v4() const { return std::get<Ipv4Prefix>(value_); }
    constexpr const Ipv6Prefix& v6() const { return std::get<Ipv6Prefix>(value_); }
    IpAddr address() const;
    std::uint8_t length() const noexcept;
    bool contains(const IpAddr& a) const noexcept;  // false across families
    friend constexpr auto operator<=>(const IpPrefix&, const IpPrefix&) = default;

private:
    std::variant<Ipv4Prefix, Ipv6Prefix> value_;
};

/// An interface address: host bits kept ("10.0.0.1/24").
struct InterfaceAddr {
    IpAddr address;
    std::uint8_t length = 0;

    static Parsed<InterfaceAddr> parse(std::string_view text);  // length required
    std::string to_string() const;
    IpPrefix network() const noexcept { return IpPrefix::of(address, length); }
    /// The directed broadcast address; none for IPv6, /31 (RFC 3021) and /32.
    std::optional<Ipv4Addr> broadcast() const noexcept;
    /// Why nobody in its subnet can have the address (it is the subnet's broadcast address, or its
    /// own); empty when somebody can.
    std::string_view never_a_host(const IpAddr& other) const noexcept;
    friend constexpr auto operator<=>(const InterfaceAddr&, const InterfaceAddr&) = default;
};

}  // namespace sluice::net

template <>
struct std::hash<sluice::net::IpAddr> {
    std::size_t operator()(const sluice::net::IpAddr& a) const noexcept;
};
template <>
struct std::hash<sluice::net::IpPrefix> {
    std::size_t operator()(const sluice::net::IpPrefix& p) const noexcept;
};
template <>
struct std::hash<sluice::net::Ipv6Addr> {
    std::size_t operator()(const sluice::net::Ipv6Addr& a) const noexcept;
};
