// SPDX-License-Identifier: BSD-3-Clause
#include "control/request_args.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "config/model.h"
#include "config/spelling.h"
#include "control/request_value.h"
#include "control/route_labels.h"
#include "net/address.h"

namespace sluice::control {
namespace {

/// A value as an error message repeats it: short, whatever the client sent.
std::string shortened(std::string_view value) {
    constexpr std::size_t kLongest = 80;
    std::string text(value.substr(0, kLongest));
    if (value.size() > kLongest) {
        while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80U) != 0) {
            text.pop_back();  // never half a character
        }
        text += "...";
    }
    return text;
}

bool is_port(const Value& value) noexcept {
    return value.is(Value::Kind::kNatural) &&
           value.natural() <= std::numeric_limits<std::uint16_t>::max();
}

std::string_view not_a_host(const net::IpAddr& address) noexcept {
    if (address.is_v4()) {
        const net::Ipv4Addr& v4 = address.v4();
        return v4.is_multicast()           ? "a multicast address"
               : v4.is_limited_broadcast() ? "the broadcast address"
               : v4.is_this_network()      ? "no host's address (0.0.0.0/8)"
                                           : "";
    }
    return address.v6().is_multicast()     ? "a multicast address"
           : address.v6().is_unspecified() ? "no host's address"
                                           : "";
}

}  // namespace

const Value* Args::find(std::string_view key) const {
    const Value* value = object_.find(key);
    return value == nullptr || value->is(Value::Kind::kNull) ? nullptr : value;
}

void Args::refuse(Error error) {
    if (!error_) {
        error_ = std::move(error);
    }
}

void Args::missing(std::string_view key) {
    refuse({ErrorCode::kInvalid, fmt::format("argument \"{}\" is missing", key)});
}

void Args::wrong(std::string_view key, std::string_view value, std::string_view what) {
    refuse({ErrorCode::kInvalid, fmt::format("{} {}: {}", key, shortened(value), what)});
}

void Args::wrong_text(std::string_view key, const std::string& text, std::string_view what) {
    wrong(key, fmt::format("\"{}\"", text), what);
}

std::optional<std::string_view> Args::string_at(std::string_view key) {
    const Value* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is(Value::Kind::kString)) {
        wrong(key, *value, "must be a string");
    } else if (value->text().empty()) {
        wrong(key, *value, "must not be empty");
    } else {
        return value->text();
    }
    return std::nullopt;
}

std::optional<std::string> Args::text(std::string_view key) {
    const auto text = string_at(key);
    return text ? std::optional<std::string>(*text) : std::nullopt;
}

std::optional<std::string> Args::text_or_empty(std::string_view key) {
    return is(key, "") ? std::optional(std::string()) : text(key);
}

std::optional<std::string> Args::new_name(std::string_view key) {
    const auto text = string_at(key);
    if (text && !config::is_name(*text)) {
        wrong(key,
              *find(key),
              "a name has letters, digits, '.', '_' and '-' and begins with a letter, a digit or "
              "'_'; at most 31 bytes");
        return std::nullopt;
    }
    return text ? std::optional<std::string>(*text) : std::nullopt;
}

std::optional<bool> Args::flag(std::string_view key) {
    const Value* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is(Value::Kind::kBool)) {
        wrong(key, *value, "must be true or false");
        return std::nullopt;
    }
    return value->truth();
}

std::optional<std::uint64_t> Args::number(std::string_view key,
                                          std::uint64_t min,
                                          std::uint64_t max) {
    const Value* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is(Value::Kind::kNatural) || value->natural() < min || value->natural() > max) {
        wrong(key, *value, fmt::format("must be an integer from {} to {}", min, max));
        return std::nullopt;
    }
    return value->natural();
}

template <class T>
std::optional<T> Args::parsed(std::string_view key) {
    const auto text = string_at(key);
    if (!text) {
        return std::nullopt;
    }
    auto value = T::parse(*text);
    if (!value) {
        wrong(key, *find(key), value.error());
        return std::nullopt;
    }
    return *std::move(value);
}

std::optional<net::MacAddr> Args::mac(std::string_view key) {
    auto mac = parsed<net::MacAddr>(key);
    if (mac && (mac->is_group() || mac->is_zero())) {
        wrong_text(key,
                   mac->to_string(),
                   mac->is_zero() ? "no station's address"
                                  : "a multicast address; a station's has an even first byte");
        return std::nullopt;
    }
    return mac;
}

std::optional<net::IpAddr> Args::address(std::string_view key) {
    auto address = parsed<net::IpAddr>(key);
    if (address && !not_a_host(*address).empty()) {
        wrong_text(key, address->to_string(), not_a_host(*address));
        return std::nullopt;
    }
    return address;
}

std::optional<net::InterfaceAddr> Args::interface_address(std::string_view key) {
    auto address = parsed<net::InterfaceAddr>(key);
    if (address && !not_a_host(address->address).empty()) {
        wrong_text(key, address->to_string(), not_a_host(address->address));
        return std::nullopt;
    }
    return address;
}

std::optional<net::Family> Args::family(std::string_view key) {
    const auto text = string_at(key);
    if (!text) {
        return std::nullopt;
    }
    if (*text == "ipv4") {
        return net::Family::kIpv4;
    }
    if (*text == "ipv6") {
        return net::Family::kIpv6;
    }
    wrong(key, *find(key), "must be \"ipv4\" or \"ipv6\"");
    return std::nullopt;
}

std::vector<std::string> Args::texts(std::string_view key) {
    std::vector<std::string> texts;
    const Value* value = find(key);
    if (value == nullptr) {
        missing(key);
        return texts;
    }
    if (!value->is(Value::Kind::kArray) || value->empty() || value->size() > kMaxTexts) {
        wrong(key, *value, fmt::format("must be an array of 1 to {} strings", kMaxTexts));
        return texts;
    }
    for (const Value& entry : *value) {
        if (!entry.is(Value::Kind::kString) || entry.text().empty()) {
            wrong(key, entry, "must be a string, and not empty");
            return {};
        }
        texts.emplace_back(entry.text());
    }
    return texts;
}

net::IpPrefix Args::prefix() {
    const auto wanted = family("family");
    const auto text = string_at("prefix");
    if (!text) {
        missing("prefix");
        return {};
    }
    if (*text == "default") {
        const auto via = address("via");
        return net::IpPrefix::default_route(
            wanted.value_or(via ? via->family() : net::Family::kIpv4));
    }
    const auto prefix = parsed<net::IpPrefix>("prefix");
    if (prefix && wanted && prefix->family() != *wanted) {
        wrong("prefix", *find("prefix"), fmt::format("not of family {}", net::to_string(*wanted)));
    }
    return prefix.value_or(net::IpPrefix{});
}

std::optional<net::IpPrefix> Args::selector(std::string_view key) {
    const auto text = string_at(key);
    if (!text || *text == "all") {
        return std::nullopt;
    }
    if (text->contains('/')) {
        return parsed<net::IpPrefix>(key);
    }
    const auto host = parsed<net::IpAddr>(key);
    if (!host) {
        return std::nullopt;
    }
    constexpr std::uint8_t kBits4 = 32;
    constexpr std::uint8_t kBits6 = 128;
    return net::IpPrefix::of(*host, host->is_v4() ? kBits4 : kBits6);
}

std::optional<std::uint32_t> Args::table(std::string_view key) {
    const Value* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (is(key, "main")) {
        return config::kMainTable;
    }
    if (value->is(Value::Kind::kString)) {
        wrong(key, *value, "must be a number from 1 to 4294967295 or \"main\"");
        return std::nullopt;
    }
    return integer<std::uint32_t>(key, 1);
}

std::optional<std::uint8_t> Args::protocol(std::string_view key) {
    const Value* value = find(key);
    if (value == nullptr || !value->is(Value::Kind::kString)) {
        return integer<std::uint8_t>(key);
    }
    // IANA, Protocol Numbers.
    static constexpr std::array<Choice<std::uint8_t>, 12> kNames{{{"tcp", 6},
                                                                  {"udp", 17},
                                                                  {"icmp", 1},
                                                                  {"icmpv6", 58},
                                                                  {"ipv6-icmp", 58},
                                                                  {"sctp", 132},
                                                                  {"dccp", 33},
                                                                  {"gre", 47},
                                                                  {"esp", 50},
                                                                  {"ah", 51},
                                                                  {"igmp", 2},
                                                                  {"ospf", 89}}};
    return choice<std::uint8_t>(key, kNames);
}

std::optional<std::uint8_t> Args::route_protocol(std::string_view key) {
    const Value* value = find(key);
    if (value == nullptr || !value->is(Value::Kind::kString)) {
        return integer<std::uint8_t>(key, 1);
    }
    const auto named = protocol_by_name(value->text());
    if (!named) {
        wrong(key, *value, "must be a number from 1 to 255 or a name such as static, bgp, zebra");
    }
    return named;
}

std::optional<config::PortRange> Args::ports(std::string_view key) {
    const Value* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (is_port(*value)) {
        const auto port = static_cast<std::uint16_t>(value->natural());
        return config::PortRange{port, port};
    }
    std::vector<std::uint16_t> ends;
    if (value->is(Value::Kind::kArray) && value->size() == 2) {
        for (const Value& end : *value) {
            if (is_port(end)) {
                ends.push_back(static_cast<std::uint16_t>(end.natural()));
            }
        }
    }
    if (ends.size() != 2 || ends[0] > ends[1]) {
        wrong(key, *value, "must be a port, or [first, last], from 0 to 65535");
        return std::nullopt;
    }
    return config::PortRange{ends[0], ends[1]};
}

const Value* Args::objects(std::string_view key, std::span<const std::string_view> keys) {
    const Value* value = find(key);
    if (value == nullptr) {
        return nullptr;
    }
    if (!value->is(Value::Kind::kArray) || value->empty()) {
        wrong(key, *value, "must be an array of objects, and not empty");
        return nullptr;
    }
    for (const Value& entry : *value) {
        if (!entry.is(Value::Kind::kObject)) {
            wrong(key, entry, "must be an object");
            return nullptr;
        }
        for (const Value& item : entry) {
            if (std::ranges::find(keys, item.key()) == keys.end()) {
                wrong(key, entry, fmt::format("has keys other than {}", fmt::join(keys, ", ")));
                return nullptr;
            }
        }
    }
    return value;
}

void Args::must_be_one_of(std::string_view key, std::span<const std::string_view> words) {
    wrong(key, *find(key), fmt::format("must be one of {}", fmt::join(words, ", ")));
}

}  // namespace sluice::control
