// SPDX-License-Identifier: BSD-3-Clause
#include "control/request_args.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "config/model.h"
#include "config/spelling.h"
#include "net/address.h"

namespace sluice::control {
namespace {

/// A value as an error message repeats it: short, whatever the client sent.
std::string quoted(const nlohmann::json& value) {
    constexpr std::size_t kLongest = 80;
    std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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

const nlohmann::json* Args::find(std::string_view key) const {
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

void Args::wrong(std::string_view key, const nlohmann::json& value, std::string_view what) {
    refuse({ErrorCode::kInvalid, fmt::format("{} {}: {}", key, quoted(value), what)});
}

const std::string* Args::string_at(std::string_view key) {
    const nlohmann::json* value = find(key);
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
    const nlohmann::json* value = find(key);
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
    const nlohmann::json* value = find(key);
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
    const nlohmann::json* value = find(key);
    if (value == nullptr) {
        missing(key);
        return texts;
    }
    if (!value->is_array() || value->empty() || value->size() > kMaxTexts) {
        wrong(key, *value, fmt::format("must be an array of 1 to {} strings", kMaxTexts));
        return texts;
    }
    for (const nlohmann::json& entry : *value) {
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

std::string Args::table() {
    const nlohmann::json* value = find("table");
    if (value == nullptr || *value == config::kMainTable) {
        return "main";
    }
    if (value->is_number_unsigned()) {
        refuse({ErrorCode::kUnsupported,
                fmt::format("not built yet: table {}; there is only main ({})",
                            quoted(*value),
                            config::kMainTable)});
        return {};
    }
    return text("table").value_or("");
}

}  // namespace sluice::control
