// SPDX-License-Identifier: BSD-3-Clause
#include "sluicectl_grammar.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

namespace sluicectl {
namespace {

using enum Kind;

std::vector<Keyword> route_keywords() {
    return {{"to", "prefix"},
            {"via", "via"},
            {"dev", "dev"},
            {"metric", "metric", kNumber},
            {"preference", "metric", kNumber},
            {"mtu", "mtu", kNumber},
            {"onlink", "on_link", kTrue},
            {"type", "type"},
            {"table", "table", kTable},
            {"vrf", "vrf"},
            {"nexthop", "nexthop", kNumber},
            {"nhid", "nexthop", kNumber},
            {"protocol", "protocol", kTable},
            {"proto", "protocol", kTable},
            {"scope", "scope"}};
}

Form route_change(std::string_view command) {
    return {.object = "route",
            .command = command,
            .shortest = 1,
            .usage =
                "[TYPE] PREFIX {via ADDR [dev NAME] [onlink] | dev NAME | nexthop ID} "
                "[metric N] [mtu N] [table N | vrf NAME] [proto P] [scope global|link|host] "
                "[nexthop via ADDR [dev NAME] [onlink] [weight N]]...",
            .positional = "prefix",
            .keywords = route_keywords(),
            .needs = {"prefix"},
            .typed = true,
            .family = true,
            .legs = true};
}

Form nexthop_change(std::string_view command) {
    return {
        .object = "nexthop",
        .command = command,
        .shortest = 1,
        .usage =
            "[id] ID {via ADDR [dev NAME] [onlink] | dev NAME | blackhole | "
            "group ID[,WEIGHT][/...] [type resilient [buckets N] [idle_timer SECONDS]]} [proto P]",
        .positional = "id",
        .keywords = {{"id", "id", kNumber},
                     {"via", "via"},
                     {"dev", "dev"},
                     {"onlink", "on_link", kTrue},
                     {"blackhole", "blackhole", kTrue},
                     {"group", "group", kMembers},
                     {"type", "mpath|resilient", kLiteral},
                     {"buckets", "buckets", kNumber},
                     {"idle_timer", "idle_timer_ms", kSeconds},
                     {"protocol", "protocol", kTable},
                     {"proto", "protocol", kTable}},
        .needs = {"id"}};
}

Form rule_change(std::string_view command) {
    return {.object = "rule",
            .command = command,
            .shortest = 1,
            .usage =
                "priority N [from PREFIX] [to PREFIX] [iif NAME] [dscp N | tos N] [fwmark N] "
                "[ipproto P] [sport N[-M]] [dport N[-M]] {table N [suppress_prefixlength N] | "
                "vrf NAME | blackhole | unreachable | prohibit | set-mark N}",
            .positional = "",
            .keywords = {{"priority", "priority", kNumber},
                         {"pref", "priority", kNumber},
                         {"preference", "priority", kNumber},
                         {"order", "priority", kNumber},
                         {"family", "family"},
                         {"from", "from", kAny},
                         {"to", "to", kAny},
                         {"iif", "iif"},
                         {"dev", "iif"},
                         {"dscp", "dscp", kNumber},
                         {"tos", "dscp", kTos},
                         {"dsfield", "dscp", kTos},
                         {"fwmark", "mark", kNumber},
                         {"ipproto", "protocol", kTable},
                         {"sport", "source_ports", kPorts},
                         {"dport", "destination_ports", kPorts},
                         {"table", "table", kTable},
                         {"lookup", "table", kTable},
                         {"vrf", "vrf"},
                         {"type", "action"},
                         {"blackhole", "action", kSelf},
                         {"unreachable", "action", kSelf},
                         {"prohibit", "action", kSelf},
                         {"suppress_prefixlength", "suppress_prefixlength", kNumber},
                         {"set-mark", "set_mark", kNumber}},
            .needs = {"priority"},
            .family = true};
}

std::vector<Form> link_forms() {
    return {
        {.object = "link",
         .command = "show",
         .shortest = 2,
         .usage = "[NAME | all]",
         .positional = "name",
         .keywords = {{"dev", "name"}, {"all", "all", kTrue}},
         .needs = {}},
        {.object = "link",
         .command = "set",
         .shortest = 1,
         .usage =
             "NAME {[up | down] [mtu N] [address MAC] [promisc on|off] [vrf V | novrf] "
             "[forwarding on|off] [send-redirects on|off] [source-validation off|loose|strict] "
             "[route-localnet on|off] [bc-forwarding on|off] [mark N] | netns NETNS}",
         .positional = "name",
         .keywords = {{"dev", "name"},
                      {"up", "up", kTrue},
                      {"down", "up", kFalse},
                      {"mtu", "mtu", kNumber},
                      {"address", "mac"},
                      {"promisc", "promiscuous", kOnOff},
                      {"netns", "netns"},
                      {"vrf", "vrf"},
                      {"master", "vrf"},
                      {"novrf", "vrf", kEmpty},
                      {"nomaster", "vrf", kEmpty},
                      {"forwarding", "forwarding", kOnOff},
                      {"send-redirects", "send_redirects", kOnOff},
                      {"source-validation", "source_validation"},
                      {"route-localnet", "route_localnet", kOnOff},
                      {"bc-forwarding", "bc_forwarding", kOnOff},
                      {"mark", "mark", kNumber}},
         .needs = {"name"}},
        {.object = "link",
         .command = "add",
         .shortest = 1,
         .usage = "NAME {device DEVARGS [rx-queues N] | link PARENT vlan ID} [mtu N] [address MAC] "
                  "| NAME vrf table N",
         .positional = "name",
         .keywords = {{"name", "name"},
                      {"device", "device"},
                      {"rx-queues", "rx_queues", kNumber},
                      {"link", "link"},
                      {"vlan", "vlan_id", kNumber},
                      {"vrf", "", kNoise},
                      {"table", "table", kTable},
                      {"type", "vlan|vrf", kLiteral},
                      {"id", "vlan_id", kNumber},
                      {"mtu", "mtu", kNumber},
                      {"address", "mac"}},
         .needs = {"name"}},
        {.object = "link",
         .command = "del",
         .shortest = 1,
         .usage = "NAME...",
         .positional = "names",
         .keywords = {{"dev", "names"}},
         .needs = {"names"},
         .many = true},
        {.object = "addr",
         .command = "show",
         .shortest = 1,
         .usage = "[[dev] NAME]",
         .positional = "dev",
         .keywords = {{"dev", "dev"}},
         .needs = {},
         .family = true},
        {"addr", "add", 1, "ADDR/LENGTH dev NAME", "address", {{"dev", "dev"}}, {"address", "dev"}},
        {"addr", "del", 1, "ADDR/LENGTH dev NAME", "address", {{"dev", "dev"}}, {"address", "dev"}},
    };
}

std::vector<Form> route_forms() {
    return {
        {.object = "route",
         .command = "show",
         .shortest = 1,
         .usage = "[table N|main|local|all | vrf NAME | cache] [proto P]",
         .positional = "",
         .keywords = {{"table", "table", kTable},
                      {"vrf", "vrf"},
                      {"protocol", "protocol", kTable},
                      {"proto", "protocol", kTable},
                      {"cache", "exceptions", kCommand}},
         .needs = {},
         .family = true},
        route_change("add"),
        route_change("replace"),
        route_change("del"),
        {.object = "route",
         .command = "get",
         .shortest = 1,
         .usage = "ADDR [from ADDR] [iif NAME] [dscp N | tos N] [ipproto P] [sport N] [dport N]",
         .positional = "address",
         .keywords = {{"to", "address"},
                      {"from", "from"},
                      {"iif", "iif"},
                      {"dscp", "dscp", kNumber},
                      {"tos", "dscp", kTos},
                      {"ipproto", "protocol", kTable},
                      {"sport", "source_port", kNumber},
                      {"dport", "destination_port", kNumber}},
         .needs = {"address"}},
        {"route",
         "flush",
         1,
         "[proto P | cache]",
         "",
         {{"cache", "flush_exceptions", kCommand},
          {"protocol", "protocol", kTable},
          {"proto", "protocol", kTable}},
         {}},
        {"nexthop",
         "show",
         1,
         "[[id] ID] [proto P]",
         "id",
         {{"id", "id", kNumber}, {"protocol", "protocol", kTable}, {"proto", "protocol", kTable}},
         {}},
        nexthop_change("add"),
        nexthop_change("replace"),
        {"nexthop", "del", 1, "[id] ID", "id", {{"id", "id", kNumber}}, {"id"}},
        {"nexthop",
         "flush",
         1,
         "[proto P]",
         "",
         {{"protocol", "protocol", kTable}, {"proto", "protocol", kTable}},
         {}},
        {.object = "rule",
         .command = "show",
         .shortest = 1,
         .usage = "",
         .positional = "",
         .keywords = {},
         .needs = {},
         .family = true},
        rule_change("add"),
        rule_change("del"),
    };
}

std::vector<Form> other_forms() {
    return {
        {.object = "neigh",
         .command = "show",
         .shortest = 1,
         .usage = "[dev NAME]",
         .positional = "",
         .keywords = {{"dev", "dev"}},
         .needs = {},
         .family = true},
        {"neigh",
         "add",
         1,
         "ADDR lladdr MAC dev NAME",
         "address",
         {{"to", "address"}, {"lladdr", "lladdr"}, {"dev", "dev"}, {"nud", "permanent", kLiteral}},
         {"address", "lladdr", "dev"}},
        {"neigh", "del", 1, "ADDR dev NAME", "address", {{"dev", "dev"}}, {"address", "dev"}},
        {"neigh", "flush", 1, "[dev NAME]", "", {{"dev", "dev"}}, {}},
        {"netns", "show", 1, "", "", {}, {}},
        {"netns", "add", 1, "NAME", "name", {}, {"name"}},
        {"netns", "del", 1, "NAME", "name", {}, {"name"}},
        {"vrf", "show", 1, "", "", {}, {}},
        {"cache", "show", 1, "", "", {}, {}},
        {"cache", "set", 2, "auto|on|off", "mode", {}, {"mode"}},
        {"cache", "flush", 1, "", "", {}, {}},
        {"uncached", "show", 1, "", "", {}, {}},
        {"stats", "show", 1, "", "", {}, {}},
        {"stats", "drops", 1, "[all] [dev NAME]", "", {{"all", "all", kTrue}, {"dev", "dev"}}, {}},
        {"stats", "workers", 1, "[reset]", "", {{"reset", "reset", kTrue}}, {}},
        {"config", "show", 1, "", "", {}, {}},
        {"config", "check", 1, "FILE", "file", {}, {"file"}},
        {"config", "reload", 1, "[FILE]", "file", {}, {}},
        {"version", "show", 1, "", "", {}, {}},
    };
}

}  // namespace

const std::vector<Form>& forms() {
    static const std::vector<Form> kForms = [] {
        std::vector<Form> all = link_forms();
        std::ranges::move(route_forms(), std::back_inserter(all));
        std::ranges::move(other_forms(), std::back_inserter(all));
        return all;
    }();
    return kForms;
}

}  // namespace sluicectl
