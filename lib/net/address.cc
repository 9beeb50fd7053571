// SPDX-License-Identifier: BSD-3-Clause
#include "net/address.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace sluice::net {
namespace {

std::unexpected<ParseError> bad(std::string what) {
    return std::unexpected(std::move(what));
}

constexpr bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}
constexpr bool is_hex(char c) noexcept {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// A decimal number of nothing but digits, without a leading zero: "010" is 8 to some readers and
/// 10 to others, so it is nobody's number here.
std::optional<unsigned> parse_decimal(std::string_view text, unsigned max) noexcept {
    if (text.empty() || text.size() > 3 || (text.size() > 1 && text.front() == '0')) {
        return std::nullopt;
    }
    unsigned value = 0;
    for (const char c : text) {
        if (!is_digit(c)) {
            return std::nullopt;
        }
        value = value * 10 + static_cast<unsigned>(c - '0');
    }
    return value <= max ? std::optional(value) : std::nullopt;
}

/// `text`: hexadecimal digits only, at most four.
std::uint16_t hex_value(std::string_view text) noexcept {
    std::uint16_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return value;
}

template <class Addr>
constexpr std::string_view kExampleNetwork = "192.0.2.0/24";
template <>
constexpr std::string_view kExampleNetwork<Ipv6Addr> = "2001:db8::/32";

/// "<address>/<length>", host bits kept.
template <class Addr>
Parsed<std::pair<Addr, std::uint8_t>> parse_with_length(std::string_view text) {
    const std::size_t slash = text.find('/');
    auto address = Addr::parse(text.substr(0, slash));
    if (!address) {
        return std::unexpected(std::move(address.error()));
    }
    constexpr unsigned kBits = Prefix<Addr>::kBits;
    if (slash == std::string_view::npos) {
        return bad(fmt::format("no prefix length, as in {} (for this one address: {}/{})",
                               kExampleNetwork<Addr>,
                               address->to_string(),
                               kBits));
    }
    const auto length = parse_decimal(text.substr(slash + 1), kBits);
    if (!length) {
        return bad(fmt::format("prefix length is not a number from 0 to {}", kBits));
    }
    return std::pair{*address, static_cast<std::uint8_t>(*length)};
}

std::size_t hash_bytes(const void* bytes, std::size_t size, std::uint64_t seed) noexcept {
    // Multiplies by an odd constant and folds the high half back, so that every input bit reaches
    // the low bits by which hash tables choose a bucket.
    std::uint64_t h = seed;
    const auto* next = static_cast<const char*>(bytes);
    while (size > 0) {
        std::uint64_t word = 0;
        const std::size_t step = size < sizeof(word) ? size : sizeof(word);
        std::memcpy(&word, next, step);
        h = (h ^ word) * 0x9e3779b97f4a7c15U;
        h ^= h >> 32U;
        next += step;
        size -= step;
    }
    return h;
}

}  // namespace

std::string_view to_string(Family family) noexcept {
    return family == Family::kIpv4 ? "ipv4" : "ipv6";
}

Parsed<MacAddr> MacAddr::parse(std::string_view text) {
    constexpr std::size_t kTextLength = 17;
    MacAddr mac;
    bool ok = text.size() == kTextLength;
    for (std::size_t i = 0; ok && i < mac.bytes.size(); ++i) {
        const std::string_view two = text.substr(i * 3, 2);
        ok = is_hex(two[0]) && is_hex(two[1]) && (i == 5 || text[i * 3 + 2] == ':');
        if (ok) {
            mac.bytes[i] = static_cast<std::uint8_t>(hex_value(two));
        }
    }
    if (!ok) {
        return bad("not a MAC address, as in 02:00:00:00:00:01");
    }
    return mac;
}

std::string MacAddr::to_string() const {
    return fmt::format("{:02x}", fmt::join(bytes, ":"));
}

Parsed<Ipv4Addr> Ipv4Addr::parse(std::string_view text) {
    Ipv4Addr address;
    std::string_view rest = text;
    for (std::size_t i = 0; i < address.bytes.size(); ++i) {
        const bool last = i + 1 == address.bytes.size();
        const std::size_t dot = last ? rest.size() : rest.find('.');
        if (dot == std::string_view::npos) {
            return bad("not an IPv4 address");
        }
        const std::string_view digits = rest.substr(0, dot);
        const auto octet = parse_decimal(digits, 255);
        if (!octet) {
            if (digits.size() > 1 && digits.front() == '0' && is_digit(digits[1])) {
                return bad("not an IPv4 address: leading zero");
            }
            return bad("not an IPv4 address");
        }
        address.bytes[i] = static_cast<std::uint8_t>(*octet);
        rest = last ? std::string_view{} : rest.substr(dot + 1);
    }
    return address;
}

std::string Ipv4Addr::to_string() const {
    return fmt::format("{}", fmt::join(bytes, "."));
}

Parsed<Ipv6Addr> Ipv6Addr::parse(std::string_view text) {
    constexpr std::string_view kNot = "not an IPv6 address";
    if (text.contains('%')) {
        return bad("an IPv6 address with a zone, which is not taken here");
    }
    constexpr std::size_t kGroups = 8;
    std::array<std::uint16_t, kGroups> groups{};
    std::size_t count = 0;
    std::optional<std::size_t> gap;  // number of groups before "::"
    std::size_t at = 0;
    if (text.starts_with("::")) {
        gap = 0;
        at = 2;
    }
    while (at < text.size()) {
        std::size_t end = at;
        while (end < text.size() && is_hex(text[end])) {
            ++end;
        }
        if (end < text.size() && text[end] == '.') {
            // RFC 4291 2.2 (3): the last 32 bits as a dotted quad.
            const auto v4 = Ipv4Addr::parse(text.substr(at));
            if (!v4 || count + 2 > kGroups) {
                return bad(std::string(kNot));
            }
            groups[count++] = static_cast<std::uint16_t>(v4->host() >> 16U);
            groups[count++] = static_cast<std::uint16_t>(v4->host());
            break;
        }
        if (end == at || end - at > 4 || count == kGroups) {
            return bad(std::string(kNot));
        }
        groups[count++] = hex_value(text.substr(at, end - at));
        if (end == text.size()) {
            break;
        }
        at = end + 1;
        if (text[end] != ':' || at == text.size()) {
            return bad(std::string(kNot));
        }
        if (text[at] == ':') {
            if (gap) {
                return bad("not an IPv6 address: \"::\" stands in it twice");
            }
            gap = count;
            ++at;
        }
    }
    if (gap ? count == kGroups : count != kGroups) {
        return bad(std::string(kNot));
    }
    Ipv6Addr address;
    const std::size_t zeros = kGroups - count;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t to = gap && i >= *gap ? i + zeros : i;
        address.bytes[to * 2] = static_cast<std::uint8_t>(groups[i] >> 8U);
        address.bytes[to * 2 + 1] = static_cast<std::uint8_t>(groups[i]);
    }
    return address;
}

std::string Ipv6Addr::to_string() const {
    std::array<unsigned, 8> groups{};
    for (std::size_t i = 0; i < groups.size(); ++i) {
        groups[i] = static_cast<unsigned>(bytes[i * 2] << 8U | bytes[i * 2 + 1]);
    }
    // RFC 5952 5: the prefix of IPv4-mapped addresses is well known, so the mixed form is used.
    constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (std::memcmp(bytes.data(), kMapped.data(), kMapped.size()) == 0) {
        return fmt::format("::ffff:{}.{}.{}.{}", bytes[12], bytes[13], bytes[14], bytes[15]);
    }
    // RFC 5952 4.2.2, 4.2.3: the first of the longest runs of at least two zero groups is "::".
    std::size_t run_at = groups.size();
    std::size_t run_length = 1;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        std::size_t end = i;
        while (end < groups.size() && groups[end] == 0) {
            ++end;
        }
        if (end - i > run_length) {
            run_at = i;
            run_length = end - i;
        }
    }
    std::string text;
    for (std::size_t i = 0; i < groups.size();) {
        if (i == run_at) {
            text += "::";
            i += run_length;
            continue;
        }
        if (!text.empty() && !text.ends_with(':')) {
            text += ':';
        }
        text += fmt::format("{:x}", groups[i]);
        ++i;
    }
    return text;
}

Ipv6Addr link_local_from_mac(const MacAddr& mac) noexcept {
    const auto& m = mac.bytes;
    return {{0xfe,
             0x80,
             0,
             0,
             0,
             0,
             0,
             0,
             static_cast<std::uint8_t>(m[0] ^ 2U),
             m[1],
             m[2],
             0xff,
             0xfe,
             m[3],
             m[4],
             m[5]}};
}

Ipv6Addr solicited_node(const Ipv6Addr& target) noexcept {
    const auto& t = target.bytes;
    return {{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, t[13], t[14], t[15]}};
}

MacAddr multicast_mac(const Ipv6Addr& group) noexcept {
    const auto& g = group.bytes;
    return {{0x33, 0x33, g[12], g[13], g[14], g[15]}};
}

Parsed<IpAddr> IpAddr::parse(std::string_view text) {
    if (text.contains(':')) {
        auto v6 = Ipv6Addr::parse(text);
        return v6 ? Parsed<IpAddr>(*v6) : std::unexpected(std::move(v6.error()));
    }
    if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) {
        return bad("not an IPv4 or IPv6 address");
    }
    auto v4 = Ipv4Addr::parse(text);
    return v4 ? Parsed<IpAddr>(*v4) : std::unexpected(std::move(v4.error()));
}

std::string IpAddr::to_string() const {
    return is_v4() ? v4().to_string() : v6().to_string();
}

template <class Addr>
Parsed<Prefix<Addr>> Prefix<Addr>::parse(std::string_view text) {
    auto parsed = parse_with_length<Addr>(text);
    if (!parsed) {
        return std::unexpected(std::move(parsed.error()));
    }
    const auto prefix = Prefix::of(parsed->first, parsed->second);
    if (prefix.address != parsed->first) {
        return bad(fmt::format("host bits set; did you mean {}?", prefix.to_string()));
    }
    return prefix;
}

template <class Addr>
std::string Prefix<Addr>::to_string() const {
    return fmt::format("{}/{}", address.to_string(), length);
}

template struct Prefix<Ipv4Addr>;
template struct Prefix<Ipv6Addr>;

IpPrefix IpPrefix::of(const IpAddr& address, std::uint8_t length) noexcept {
    return address.is_v4() ? IpPrefix(Ipv4Prefix::of(address.v4(), length))
                           : IpPrefix(Ipv6Prefix::of(address.v6(), length));
}

IpPrefix IpPrefix::default_route(Family family) noexcept {
    return family == Family::kIpv4 ? IpPrefix(Ipv4Prefix{}) : IpPrefix(Ipv6Prefix{});
}

Parsed<IpPrefix> IpPrefix::parse(std::string_view text) {
    if (text.contains(':')) {
        auto v6 = Ipv6Prefix::parse(text);
        return v6 ? Parsed<IpPrefix>(*v6) : std::unexpected(std::move(v6.error()));
    }
    if (text.empty() || text.find_first_not_of("0123456789./") != std::string_view::npos) {
        return bad("not an IPv4 or IPv6 prefix, as in 192.0.2.0/24 or 2001:db8::/32");
    }
    auto v4 = Ipv4Prefix::parse(text);
    return v4 ? Parsed<IpPrefix>(*v4) : std::unexpected(std::move(v4.error()));
}

std::string IpPrefix::to_string() const {
    return is_v4() ? v4().to_string() : v6().to_string();
}

IpAddr IpPrefix::address() const {
    return is_v4() ? IpAddr(v4().address) : IpAddr(v6().address);
}

std::uint8_t IpPrefix::length() const noexcept {
    return is_v4() ? v4().length : v6().length;
}

bool IpPrefix::contains(const IpAddr& a) const noexcept {
    if (a.family() != family()) {
        return false;
    }
    return is_v4() ? v4().contains(a.v4()) : v6().contains(a.v6());
}

Parsed<InterfaceAddr> InterfaceAddr::parse(std::string_view text) {
    if (text.contains(':')) {
        auto v6 = parse_with_length<Ipv6Addr>(text);
        return v6 ? Parsed<InterfaceAddr>(InterfaceAddr{v6->first, v6->second})
                  : std::unexpected(std::move(v6.error()));
    }
    if (text.empty() || text.find_first_not_of("0123456789./") != std::string_view::npos) {
        return bad("not an IPv4 or IPv6 address with its length, as in 192.0.2.1/24");
    }
    auto v4 = parse_with_length<Ipv4Addr>(text);
    return v4 ? Parsed<InterfaceAddr>(InterfaceAddr{v4->first, v4->second})
              : std::unexpected(std::move(v4.error()));
}

std::string InterfaceAddr::to_string() const {
    return fmt::format("{}/{}", address.to_string(), length);
}

std::optional<Ipv4Addr> InterfaceAddr::broadcast() const noexcept {
    // RFC 3021 2.1: with 31 bits both addresses are hosts.
    constexpr std::uint8_t kLongestWithBroadcast = 30;
    if (!address.is_v4() || length > kLongestWithBroadcast) {
        return std::nullopt;
    }
    return Ipv4Addr::from_host(address.v4().host() | 0xffffffffU >> length);
}

std::string_view InterfaceAddr::never_a_host(const IpAddr& other) const noexcept {
    if (!address.is_v4() || !other.is_v4()) {
        return {};
    }
    if (broadcast() == other.v4()) {
        return "the broadcast address";
    }
    return length < 31 && network().v4().address == other.v4() ? "the network's own address" : "";
}

}  // namespace sluice::net

std::size_t std::hash<sluice::net::Ipv6Addr>::operator()(
    const sluice::net::Ipv6Addr& a) const noexcept {
    return sluice::net::hash_bytes(a.bytes.data(), a.bytes.size(), 6);
}

std::size_t std::hash<sluice::net::IpAddr>::operator()(
    const sluice::net::IpAddr& a) const noexcept {
    return a.is_v4() ? sluice::net::hash_bytes(a.v4().bytes.data(), a.v4().bytes.size(), 4)
                     : std::hash<sluice::net::Ipv6Addr>{}(a.v6());
}

std::size_t std::hash<sluice::net::IpPrefix>::operator()(
    const sluice::net::IpPrefix& p) const noexcept {
    const std::uint64_t length = p.length();
    return sluice::net::hash_bytes(
        &length, sizeof(length), std::hash<sluice::net::IpAddr>{}(p.address()));
}
