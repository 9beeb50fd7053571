// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/error.h"
#include "config/model.h"

namespace sluice::config {

/// Collects what is wrong with a model.
class Findings {
public:
    explicit Findings(const Config& config) : file_(config.origin.file) {}

    template <class... Args>
    void add(Position at, fmt::format_string<Args...> format, Args&&... args) {
        errors_.push_back(
            {file_, at.line, at.column, fmt::format(format, std::forward<Args>(args)...)});
    }
    std::vector<ConfigError> take();  // sorted

private:
    std::string file_;
    std::vector<ConfigError> errors_;
};

void sort_errors(std::vector<ConfigError>& errors);

/// What routes and neighbors ask about the netdevs of their netns.
struct NetdevFacts {
    std::vector<net::InterfaceAddr> addresses;
    std::uint16_t mtu = 0;
};

class NetdevIndex {
public:
    explicit NetdevIndex(const Netns& netns);
    const NetdevFacts* find(const std::string& name) const;
    bool owns(const net::IpAddr& address) const { return own_.contains(address); }
    /// The netdev with the longest subnet that has `address`, the first by name of equals; empty
    /// when none has.
    std::string_view on_link(const net::IpAddr& address) const;
    std::vector<std::string_view> names() const;

private:
    std::unordered_map<std::string, NetdevFacts> netdevs_;
    std::vector<std::pair<net::IpPrefix, std::string>> subnets_;  // longest first
    std::unordered_set<net::IpAddr> own_;
};

/// "'p9' is no port or vlan here", with a guess at what was meant.
std::string no_netdev(std::string_view name, const NetdevIndex& index);

/// Fills in the dev of unicast routes that have only a gateway.
void resolve_gateways(Config& config);

// The parts of validate(). The others take for granted that the first finds nothing wrong.
std::vector<ConfigError> validate_netdevs(const Config& config);
void check_netdevs(const Config& config, Findings& findings);
void check_routes(const Netns& netns, Findings& findings);
void check_references(const Netns& netns, Findings& findings);
void check_limits(const Config& config, Findings& findings);

}  // namespace sluice::config
