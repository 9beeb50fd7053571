// SPDX-License-Identifier: BSD-3-Clause
#include "sluicectl_grammar.h"

#include <vector>

namespace sluicectl {
namespace {

using enum Kind;

std::vector<Keyword> route_keywords() {
    return {{"to", "prefix"},
            {"via", "via"},
            {"dev", "dev"},
            {"metric", "metric", kNumber},
            {"mtu", "mtu", kNumber},
            {"onlink", "on_link", kTrue},
            {"type", "type"},
            {"table", "table", kTable},
            {"nexthop", "nexthop", kNumber},
            {"nhid", "nexthop", kNumber}};
}

constexpr std::string_view kRouteUsage =
    "[TYPE] PREFIX [via ADDR] [dev NAME] [metric N] [mtu N] [onlink]";

std::vector<Form> make_forms() {
    return {
        {"link", "show", 2, "[NAME]", "name", {{"dev", "name"}}, {}},
        {"link",
         "set",
         1,
         "NAME [up | down] [mtu N] [address MAC] [promisc on|off]",
         "name",
         {{"dev", "name"},
          {"up", "up", kTrue},
          {"down", "up", kFalse},
          {"mtu", "mtu", kNumber},
          {"address", "mac"},
          {"promisc", "promiscuous", kOnOff},
          {"netns", "netns"},
          {"vrf", "vrf"}},
         {"name"}},
        {"link",
         "add",
         1,
         "NAME {device DEVARGS [rx-queues N] | link PARENT vlan ID} [mtu N] [address MAC]",
         "name",
         {{"name", "name"},
          {"device", "device"},
          {"rx-queues", "rx_queues", kNumber},
          {"link", "link"},
          {"vlan", "vlan_id", kNumber},
          {"type", "vlan", kLiteral},
          {"id", "vlan_id", kNumber},
          {"mtu", "mtu", kNumber},
          {"address", "mac"}},
         {"name"}},
        {.object = "link",
         .command = "del",
         .shortest = 1,
         .usage = "NAME...",
         .positional = "names",
         .keywords = {{"dev", "names"}},
         .needs = {"names"},
         .many = true},
        {"addr", "show", 1, "[[dev] NAME]", "dev", {{"dev", "dev"}}, {}},
        {"addr", "add", 1, "ADDR/LENGTH dev NAME", "address", {{"dev", "dev"}}, {"address", "dev"}},
        {"addr", "del", 1, "ADDR/LENGTH dev NAME", "address", {{"dev", "dev"}}, {"address", "dev"}},
        {"route", "show", 1, "[table main|local|all]", "", {{"table", "table", kTable}}, {}},
        {.object = "route",
         .command = "add",
         .shortest = 1,
         .usage = kRouteUsage,
         .positional = "prefix",
         .keywords = route_keywords(),
         .needs = {"prefix"},
         .typed = true},
        {.object = "route",
         .command = "replace",
         .shortest = 1,
         .usage = kRouteUsage,
         .positional = "prefix",
         .keywords = route_keywords(),
         .needs = {"prefix"},
         .typed = true},
        {.object = "route",
         .command = "del",
         .shortest = 1,
         .usage = kRouteUsage,
         .positional = "prefix",
         .keywords = route_keywords(),
         .needs = {"prefix"},
         .typed = true},
        {"route",
         "get",
         1,
         "ADDR",
         "address",
         {{"to", "address"}, {"from", "from"}, {"iif", "iif"}, {"dscp", "dscp", kNumber}},
         {"address"}},
        {"route", "flush", 1, "", "", {}, {}},
        {"neigh", "show", 1, "[dev NAME]", "", {{"dev", "dev"}}, {}},
        {"neigh",
         "add",
         1,
         "ADDR lladdr MAC dev NAME",
         "address",
         {{"to", "address"}, {"lladdr", "lladdr"}, {"dev", "dev"}, {"nud", "permanent", kLiteral}},
         {"address", "lladdr", "dev"}},
        {"neigh", "del", 1, "ADDR dev NAME", "address", {{"dev", "dev"}}, {"address", "dev"}},
        {"neigh", "flush", 1, "[dev NAME]", "", {{"dev", "dev"}}, {}},
        {"stats", "show", 1, "", "", {}, {}},
        {"stats", "drops", 1, "[all] [dev NAME]", "", {{"all", "all", kTrue}, {"dev", "dev"}}, {}},
        {"stats", "workers", 1, "", "", {}, {}},
        {"config", "show", 1, "", "", {}, {}},
        {"config", "check", 1, "FILE", "file", {}, {"file"}},
        {"config", "reload", 1, "[FILE]", "file", {}, {}},
        {"version", "show", 1, "", "", {}, {}},
    };
}

}  // namespace

const std::vector<Form>& forms() {
    static const std::vector<Form> kForms = make_forms();
    return kForms;
}

}  // namespace sluicectl
