// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "config_testing.h"

namespace sluice::config {

/// One word per action, to compare whole sequences.
struct Describe {
    std::string operator()(const ChangeInstance&) const { return "change instance"; }
    std::string operator()(const AddPort& a) const { return "add port " + a.name; }
    std::string operator()(const RemovePort& a) const { return "remove port " + a.name; }
    std::string operator()(const AddVlan& a) const { return "add vlan " + a.name; }
    std::string operator()(const RemoveVlan& a) const { return "remove vlan " + a.name; }
    std::string operator()(const ChangeNetdev& a) const { return "change " + a.name; }
    std::string operator()(const AddAddress& a) const {
        return "add " + a.address.to_string() + " on " + a.netdev;
    }
    std::string operator()(const RemoveAddress& a) const {
        return "remove " + a.address.to_string() + " on " + a.netdev;
    }
    std::string operator()(const AddRoute& a) const { return "add route " + text(a.route); }
    std::string operator()(const RemoveRoute& a) const { return "remove route " + text(a.route); }
    std::string operator()(const ReplaceRoute& a) const {
        return "replace route " + text(a.from) + " by " + text(a.to);
    }
    std::string operator()(const SetNeighbor& a) const {
        return "set neighbor " + a.neighbor.to.to_string() + " " + a.neighbor.lladdr.to_string();
    }
    std::string operator()(const RemoveNeighbor& a) const {
        return "remove neighbor " + a.neighbor.to.to_string();
    }

    std::string operator()(const AddNetns&) const { return "add netns"; }
    std::string operator()(const RemoveNetns&) const { return "remove netns"; }
    std::string operator()(const MovePort& a) const { return "move " + a.name + " to " + a.to; }
    std::string operator()(const AddVrf& a) const {
        return "add vrf " + a.name + " " + std::to_string(a.table);
    }
    std::string operator()(const RemoveVrf& a) const { return "remove vrf " + a.name; }
    std::string operator()(const SetVrf& a) const {
        return a.netdev + (a.vrf.empty() ? " leaves its vrf" : " enters " + a.vrf);
    }
    std::string operator()(const AddNextHop& a) const {
        return "add nexthop " + std::to_string(a.id) + text(a.hop);
    }
    std::string operator()(const RemoveNextHop& a) const {
        return "remove nexthop " + std::to_string(a.id);
    }
    std::string operator()(const ReplaceNextHop& a) const {
        return "replace nexthop " + std::to_string(a.id) + text(a.from) + " by" + text(a.to);
    }
    std::string operator()(const AddRule& a) const { return "add rule " + text(a.rule); }
    std::string operator()(const RemoveRule& a) const { return "remove rule " + text(a.rule); }
    std::string operator()(const SetMultipathHash& a) const {
        return "hash " + std::string{net::to_string(a.family)};
    }

    static std::string text(const NextHop& hop) {
        std::string text = hop.via ? " " + hop.via->to_string() : "";
        text += hop.dev.empty() ? "" : " " + hop.dev;
        text += hop.blackhole ? " blackhole" : "";
        for (const auto& [id, weight] : hop.group) {
            text += fmt::format(" {}x{}", id, weight);
        }
        return text;
    }
    static std::string text(const Rule& rule) {
        return fmt::format("{} table {}", rule.priority, rule.table);
    }
    static std::string text(const Route& route) {
        return route.to.to_string() + " " + (route.via ? route.via->to_string() : "-") + " " +
               std::to_string(route.metric);
    }
};

inline std::vector<std::string> steps(const Config& running, const Config& wanted) {
    const auto found = diff(running, wanted);
    if (!found) {
        ADD_FAILURE() << all_of(found.error());
        return {};
    }
    std::vector<std::string> result;
    for (const auto& step : *found) {
        const std::string where = step.netns == "default" ? "" : step.netns + ": ";
        result.push_back(where + std::visit(Describe{}, step.action));
    }
    return result;
}

}  // namespace sluice::config
