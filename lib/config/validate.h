// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/error.h"
#include "config/model.h"
#include "config/netdev_index.h"

namespace sluice::config {

/// Collects what is wrong with a model.
class Findings {
public:
    explicit Findings(const Config& config) : file_(config.origin.file) {}

    template <class... Args>
    void add(Position at, fmt::format_string<Args...> format, Args&&... args) {
        if (!full()) {
            errors_.push_back(
                {file_, at.line, at.column, fmt::format(format, std::forward<Args>(args)...)});
        }
    }
    /// Another would not be told.
    bool full() const { return errors_.size() > kMaxErrors; }
    std::vector<ConfigError> take();  // sorted

private:
    std::string file_;
    std::vector<ConfigError> errors_;
};

void sort_errors(std::vector<ConfigError>& errors);

/// Why nobody can be at `address` on the netdev with these `facts`; empty when somebody can.
std::string_view never_a_host(const net::IpAddr& address, const NetdevFacts& facts);

/// A way that a route or a next hop goes by itself.
struct Way {
    Position at;
    std::string prefix;  // of what is said about it: "7: " of next hop 7
    std::optional<net::IpAddr> via;
    const std::string& dev;  // empty: none was found
    bool on_link = false;
    Domain domain = kDefaultDomain;  // that `via` was looked for in
};
void check_way(const Way& way, const NetdevIndex& index, Findings& findings);

/// Fills in the dev of unicast routes and of next hops that have only a gateway.
void resolve_gateways(Config& config);

// The parts of validate(). The others take for granted that the first finds nothing wrong.
std::vector<ConfigError> validate_netdevs(const Config& config);
void check_netdevs(const Config& config, Findings& findings);
void check_routes(const Netns& netns, Findings& findings);
void check_references(const Netns& netns, Findings& findings);
void check_rules(const Netns& netns, Findings& findings);
void check_limits(const Config& config, Findings& findings);

}  // namespace sluice::config
