// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "config/model.h"

namespace sluice::config {

/// What becomes of the ports, vlans and vrfs of one netns between two configurations.
struct Fates {
    std::set<std::string_view> stays;    // here, under this name, without being removed in between
    std::set<std::string_view> goes;     // from here: is removed, or moves
    std::set<std::string_view> departs;  // of those that go: moves to another netns
    std::set<std::string_view> arrives;  // from another netns
    std::set<std::string_view> rehomed;  // of those that stay: into, out of or between vrfs
};

struct PortMove {
    std::string_view name;
    std::string_view from;
    std::string_view to;
};

/// Refers to both configurations.
class Lifetimes {
public:
    Lifetimes(const Config& running, const Config& wanted);

    const Fates& of(std::string_view netns) const;
    /// In an order in which no name is taken in its new netns.
    const std::vector<PortMove>& moves() const { return moves_; }

private:
    void find_ports(const Config& running, const Config& wanted);
    void order_moves(std::vector<PortMove> pending);
    void find_others(const Config& running, const Config& wanted);

    std::map<std::string_view, Fates> fates_;
    std::vector<PortMove> moves_;
};

}  // namespace sluice::config
