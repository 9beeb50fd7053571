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
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "config/model.h"
#include "config/spelling.h"
#include "control/request_json.h"
#include "net/address.h"

namespace sluice::control {
namespace {

/// A value as an error message repeats it: short, whatever the client sent.
std::string quoted(const Json& value) {
    constexpr std::size_t kLongest = 80;
    std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() > kLongest) {
        text.resize(kLongest);
        while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80U) != 0) {
            text.pop_back();  // never half a character
        }
        text += "...";
    }
    return text;
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

const Json* Args::find(std::string_view key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
}

void Args::refuse(Error error) {
    if (!error_) {
        error_ = std::move(error);
    }
}

void Args::missing(std::string_view key) {
    refuse({ErrorCode::kInvalid, fmt::format("argument \"{}\" is missing", key)});
}

void Args::wrong(std::string_view key, const Json& value, std::string_view what) {
    refuse({ErrorCode::kInvalid, fmt::format("{} {}: {}", key, quoted(value), what)});
}

const std::string* Args::string_at(std::string_view key) {
    const Json* value = find(key);
    if (value == nullptr) {
        return nullptr;
    }
    const auto* text = value->get_ptr<const std::string*>();
    if (text == nullptr) {
        wrong(key, *value, "must be a string");
    } else if (text->empty()) {
        wrong(key, *value, "must not be empty");
        return nullptr;
    }
    return text;
}

std::optional<std::string> Args::text(std::string_view key) {
    const std::string* text = string_at(key);
    return text == nullptr ? std::nullopt : std::optional(*text);
}

std::optional<std::string> Args::text_or_empty(std::string_view key) {
    const Json* value = find(key);
    return value != nullptr && *value == "" ? std::optional(std::string()) : text(key);
}

std::optional<std::string> Args::new_name(std::string_view key) {
    const std::string* text = string_at(key);
    if (text != nullptr && !config::is_name(*text)) {
        wrong(key,
              *text,
              "a name has letters, digits, '.', '_' and '-' and begins with a letter, a digit or "
              "'_'; at most 31 bytes");
        return std::nullopt;
    }
    return text == nullptr ? std::nullopt : std::optional(*text);
}

std::optional<bool> Args::flag(std::string_view key) {
    const Json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_boolean()) {
        wrong(key, *value, "must be true or false");
        return std::nullopt;
    }
    return value->get<bool>();
}

std::optional<std::uint64_t> Args::number(std::string_view key,
                                          std::uint64_t min,
                                          std::uint64_t max) {
    const Json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    // A literal below zero is_number_integer() but not unsigned, and so is out of every range here.
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() < min ||
        value->get<std::uint64_t>() > max) {
        wrong(key, *value, fmt::format("must be an integer from {} to {}", min, max));
        return std::nullopt;
    }
    return value->get<std::uint64_t>();
}

template <class T>
std::optional<T> Args::parsed(std::string_view key) {
    const std::string* text = string_at(key);
    if (text == nullptr) {
        return std::nullopt;
    }
    auto value = T::parse(*text);
    if (!value) {
        wrong(key, *text, value.error());
        return std::nullopt;
    }
    return *std::move(value);
}

std::optional<net::MacAddr> Args::mac(std::string_view key) {
    auto mac = parsed<net::MacAddr>(key);
    if (mac && (mac->is_group() || mac->is_zero())) {
        wrong(key,
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
        wrong(key, address->to_string(), not_a_host(*address));
        return std::nullopt;
    }
    return address;
}

std::optional<net::InterfaceAddr> Args::interface_address(std::string_view key) {
    auto address = parsed<net::InterfaceAddr>(key);
    if (address && !not_a_host(address->address).empty()) {
        wrong(key, address->to_string(), not_a_host(address->address));
        return std::nullopt;
    }
    return address;
}

std::optional<net::Family> Args::family(std::string_view key) {
    const std::string* text = string_at(key);
    if (text == nullptr) {
        return std::nullopt;
    }
    if (*text == "ipv4") {
        return net::Family::kIpv4;
    }
    if (*text == "ipv6") {
        return net::Family::kIpv6;
    }
    wrong(key, *text, "must be \"ipv4\" or \"ipv6\"");
    return std::nullopt;
}

std::vector<std::string> Args::texts(std::string_view key) {
    std::vector<std::string> texts;
    const Json* value = find(key);
    if (value == nullptr) {
        missing(key);
        return texts;
    }
    if (!value->is_array() || value->empty() || value->size() > kMaxTexts) {
        wrong(key, *value, fmt::format("must be an array of 1 to {} strings", kMaxTexts));
        return texts;
    }
    for (const Json& entry : *value) {
        const auto* text = entry.get_ptr<const std::string*>();
        if (text == nullptr || text->empty()) {
            wrong(key, entry, "must be a string, and not empty");
            return {};
        }
        texts.push_back(*text);
    }
    return texts;
}

net::IpPrefix Args::prefix() {
    const auto wanted = family("family");
    const std::string* text = string_at("prefix");
    if (text == nullptr) {
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
        wrong("prefix", *text, fmt::format("not of family {}", net::to_string(*wanted)));
    }
    return prefix.value_or(net::IpPrefix{});
}

std::optional<net::IpPrefix> Args::selector(std::string_view key) {
    const std::string* text = string_at(key);
    if (text == nullptr || *text == "all") {
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
    const Json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (*value == "main") {
        return config::kMainTable;
    }
    if (value->is_string()) {
        wrong(key, *value, "must be a number from 1 to 4294967295 or \"main\"");
        return std::nullopt;
    }
    return integer<std::uint32_t>(key, 1);
}

std::optional<std::uint8_t> Args::protocol(std::string_view key) {
    const Json* value = find(key);
    if (value == nullptr || !value->is_string()) {
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

std::optional<config::PortRange> Args::ports(std::string_view key) {
    const Json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    const auto is_port = [](const Json& port) {
        return port.is_number_unsigned() &&
               port.get<std::uint64_t>() <= std::numeric_limits<std::uint16_t>::max();
    };
    if (is_port(*value)) {
        const auto port = value->get<std::uint16_t>();
        return config::PortRange{port, port};
    }
    if (!value->is_array() || value->size() != 2 || !is_port((*value)[0]) ||
        !is_port((*value)[1]) || (*value)[0] > (*value)[1]) {
        wrong(key, *value, "must be a port, or [first, last], from 0 to 65535");
        return std::nullopt;
    }
    return config::PortRange{(*value)[0].get<std::uint16_t>(), (*value)[1].get<std::uint16_t>()};
}

const Json::array_t* Args::objects(std::string_view key, std::span<const std::string_view> keys) {
    const Json* value = find(key);
    if (value == nullptr) {
        return nullptr;
    }
    const auto* array = value->get_ptr<const Json::array_t*>();
    if (array == nullptr || array->empty()) {
        wrong(key, *value, "must be an array of objects, and not empty");
        return nullptr;
    }
    for (const Json& entry : *array) {
        if (!entry.is_object()) {
            wrong(key, entry, "must be an object");
            return nullptr;
        }
        for (const auto& item : entry.items()) {
            if (std::ranges::find(keys, item.key()) == keys.end()) {
                wrong(key, entry, fmt::format("has keys other than {}", fmt::join(keys, ", ")));
                return nullptr;
            }
        }
    }
    return array;
}

void Args::must_be_one_of(std::string_view key, std::span<const std::string_view> words) {
    wrong(key, *find(key), fmt::format("must be one of {}", fmt::join(words, ", ")));
}

}  // namespace sluice::control
