// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "net/address.h"

namespace sluice::control {

/// Reads the arguments of a request. The first thing that is wrong is kept in error() and readers
/// then return empty values, so a command reads all it takes and looks at error() once, before it
/// touches anything.
class Args {
public:
    /// `object`: outlives this and is a JSON object. Null values count as left out.
    explicit Args(const nlohmann::json& object) : object_(object) {}

    bool has(std::string_view key) const { return find(key) != nullptr; }

    std::optional<std::string> text(std::string_view key);
    std::optional<std::string> new_name(std::string_view key);  // for what is to be made
    std::optional<bool> flag(std::string_view key);
    std::optional<net::MacAddr> mac(std::string_view key);     // of one station
    std::optional<net::IpAddr> address(std::string_view key);  // of one host
    std::optional<net::InterfaceAddr> interface_address(std::string_view key);
    std::optional<net::Family> family(std::string_view key);
    std::vector<std::string> texts(std::string_view key);  // at least one, at most kMaxTexts
    /// "prefix"; "default" takes its family from "family", else from "via".
    net::IpPrefix prefix();
    /// "table": "main" when left out or 254.
    std::string table();

    template <class T>
    std::optional<T> integer(std::string_view key,
                             T min = std::numeric_limits<T>::min(),
                             T max = std::numeric_limits<T>::max()) {
        const auto value = number(key, min, max);
        return value ? std::optional(static_cast<T>(*value)) : std::nullopt;
    }

    /// What must be there: `args.need("dev", args.text("dev"))`.
    template <class T>
    T need(std::string_view key, std::optional<T> value) {
        if (!value) {
            missing(key);
        }
        return value ? *std::move(value) : T{};
    }

    /// Refuses the request for a reason of the caller's, unless something was wrong before.
    void refuse(Error error);
    const std::optional<Error>& error() const noexcept { return error_; }

    static constexpr std::size_t kMaxTexts = 4096;

private:
    const nlohmann::json* find(std::string_view key) const;
    const std::string* string_at(std::string_view key);
    std::optional<std::uint64_t> number(std::string_view key, std::uint64_t min, std::uint64_t max);
    template <class T>
    std::optional<T> parsed(std::string_view key);
    void missing(std::string_view key);
    void wrong(std::string_view key, const nlohmann::json& value, std::string_view what);

    const nlohmann::json& object_;
    std::optional<Error> error_;
};

}  // namespace sluice::control
