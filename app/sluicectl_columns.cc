// SPDX-License-Identifier: BSD-3-Clause
#include "sluicectl_columns.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluicectl {

std::string dump(const Json& value, int indent) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string plain(const Json& value) {
    if (value.is_null() || value == "") {
        return "-";
    }
    return value.is_string() ? value.get<std::string>() : dump(value);
}

std::string at(const Json& row, std::string_view path) {
    const Json* value = &row;
    for (std::size_t dot = 0; dot != std::string_view::npos && value->is_object();) {
        dot = path.find('.');
        const auto next = value->find(std::string(path.substr(0, dot)));
        if (next == value->end()) {
            return "-";
        }
        value = &*next;
        path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
    }
    return plain(*value);
}

Column text(std::string_view title, std::string_view path) {
    return {title, false, [path](const Json& row) { return at(row, path); }};
}
Column figure(std::string_view title, std::string_view path) {
    return {title, true, [path](const Json& row) { return at(row, path); }};
}

std::string joined(const Json& texts) {
    std::string all;
    for (const Json& text : texts) {
        all += fmt::format("{}{}", all.empty() ? "" : " ", plain(text));
    }
    return all.empty() ? "-" : all;
}
namespace {

std::string link_state(const Json& row) {
    return row["up"] != true ? "down" : row["running"] == true ? "up" : "no-carrier";
}
std::string link_below(const Json& row) {
    return !row["table"].is_null() ? fmt::format("table {}", at(row, "table"))
           : row["vlan_id"].is_null()
               ? at(row, "device")
               : fmt::format("{} vlan {}", at(row, "link"), at(row, "vlan_id"));
}
std::string link_addresses(const Json& row) {
    return joined(row["addresses"]);
}
/// What every route of its owner is said to be of.
bool is_usual(const Json& row) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kUsual{
        {{"connected", "kernel"}, {"file", "static"}, {"cli", "boot"}, {"fpm", "zebra"}}};
    return std::ranges::any_of(kUsual, [&](const auto& usual) {
        return row["owner"] == usual.first && row["protocol"] == usual.second;
    });
}

std::string route_flags(const Json& row) {
    std::string flags;
    flags += row["on_link"] == true ? "onlink " : "";
    flags += row["active"] != true ? "inactive " : "";
    flags += row["mtu"].is_null() ? "" : fmt::format("mtu {} ", at(row, "mtu"));
    flags += row["nexthop"].is_null() ? "" : fmt::format("nexthop {} ", at(row, "nexthop"));
    for (const Json& leg : row["nexthops"]) {
        flags += fmt::format("nexthop {}{}weight {} {}{}",
                             leg["via"].is_null() ? "" : fmt::format("via {} ", at(leg, "via")),
                             leg["dev"].is_null() ? "" : fmt::format("dev {} ", at(leg, "dev")),
                             at(leg, "weight"),
                             leg["on_link"] == true ? "onlink " : "",
                             leg["active"] == true ? "" : "dead ");
    }
    flags += is_usual(row) ? "" : fmt::format("proto {} ", at(row, "protocol"));
    flags += row["table"] == kMainTable ? "" : fmt::format("table {} ", at(row, "table"));
    return flags.empty() ? "-" : flags.substr(0, flags.size() - 1);
}

std::string nexthop_leads_to(const Json& row) {
    if (row["group"].is_array()) {
        std::string all;
        for (const Json& member : row["group"]) {
            all += fmt::format("{}{},{}{}",
                               all.empty() ? "" : "/",
                               at(member, "id"),
                               at(member, "weight"),
                               member["active"] == true ? "" : "(dead)");
        }
        return all;
    }
    return fmt::format("{}{}{}{}",
                       row["via"].is_null() ? "" : "via " + at(row, "via") + " ",
                       row["dev"].is_null() ? "" : "dev " + at(row, "dev"),
                       row["on_link"] == true ? " onlink" : "",
                       row["type"] == "blackhole" ? "-" : "");
}
std::string nexthop_flags(const Json& row) {
    std::string flags = row["active"] == true ? "" : "inactive ";
    flags += is_usual(row) ? "" : fmt::format("proto {} ", at(row, "protocol"));
    if (row["resilient"] == true) {
        flags += fmt::format(
            "resilient buckets {} idle_timer {}ms ", at(row, "buckets"), at(row, "idle_timer_ms"));
    }
    return flags.empty() ? "-" : flags.substr(0, flags.size() - 1);
}

std::string port_range(const Json& ports) {
    return ports[0] == ports[1] ? plain(ports[0])
                                : fmt::format("{}-{}", plain(ports[0]), plain(ports[1]));
}
std::string rule_selects(const Json& row) {
    std::string text = "from " + (row["from"].is_null() ? "all" : at(row, "from"));
    for (const auto& [word, key] :
         std::initializer_list<std::pair<const char*, const char*>>{{"to", "to"},
                                                                    {"iif", "iif"},
                                                                    {"dscp", "dscp"},
                                                                    {"fwmark", "mark"},
                                                                    {"ipproto", "protocol"}}) {
        text += row[key].is_null() ? "" : fmt::format(" {} {}", word, at(row, key));
    }
    text += row["source_ports"].is_null() ? "" : " sport " + port_range(row["source_ports"]);
    text +=
        row["destination_ports"].is_null() ? "" : " dport " + port_range(row["destination_ports"]);
    return text;
}
std::string rule_does(const Json& row) {
    if (row["action"] == "set-mark") {
        return "set-mark " + at(row, "set_mark");
    }
    if (row["action"] != "table") {
        return at(row, "action");
    }
    return fmt::format("table {}{}",
                       row["table"] == kMainTable ? "main" : at(row, "table"),
                       row["suppress_prefixlength"].is_null()
                           ? ""
                           : " suppress_prefixlength " + at(row, "suppress_prefixlength"));
}

}  // namespace

std::vector<Column> counter_columns() {
    return {text("NETDEV", "name"),
            figure("RECEIVED", "rx_packets"),
            figure("FORWARDED", "forwarded"),
            figure("DELIVERED", "delivered"),
            figure("HELD", "held"),
            figure("DROPPED", "dropped"),
            figure("IMBALANCE", "imbalance"),
            figure("SENT", "tx_packets"),
            figure("RX-BYTES", "rx_bytes"),
            figure("TX-BYTES", "tx_bytes"),
            figure("ICMP-ERRORS", "icmp_errors_sent"),
            figure("SUPPRESSED", "icmp_errors_suppressed")};
}

std::vector<Column> columns_of(std::string_view object, std::string_view command) {
    if (object == "link") {
        return {figure("ID", "id"),
                text("NAME", "name"),
                text("KIND", "kind"),
                text("NETNS", "netns"),
                text("VRF", "vrf"),
                {"STATE", false, link_state},
                figure("MTU", "mtu"),
                text("MAC", "mac"),
                figure("RX-PACKETS", "counters.rx_packets"),
                figure("TX-PACKETS", "counters.tx_packets"),
                {"ON", false, link_below},
                {"ADDRESSES", false, link_addresses}};
    }
    if (object == "nexthop") {
        return {figure("ID", "id"),
                text("TYPE", "type"),
                {"TO", false, nexthop_leads_to},
                figure("ROUTES", "routes"),
                figure("PACKETS", "packets"),
                text("OWNER", "owner"),
                {"FLAGS", false, nexthop_flags}};
    }
    if (object == "rule") {
        return {figure("PRIORITY", "priority"),
                text("FAMILY", "family"),
                {"PACKETS", false, rule_selects},
                {"ACTION", false, rule_does},
                text("OWNER", "owner")};
    }
    if (object == "netns") {
        return {text("NAME", "name"),
                figure("NETDEVS", "netdevs"),
                figure("IPV4-ROUTES", "ipv4_routes"),
                figure("IPV6-ROUTES", "ipv6_routes")};
    }
    if (object == "vrf") {
        return {text("NAME", "name"),
                figure("TABLE", "table"),
                {"INTERFACES", false, [](const Json& row) { return joined(row["interfaces"]); }}};
    }
    if (object == "route" && command == "exceptions") {
        return {text("DESTINATION", "destination"),
                text("VRF", "vrf"),
                text("DEV", "dev"),
                text("VIA", "via"),
                figure("MTU", "mtu"),
                figure("EXPIRES-S", "expires_s")};
    }
    if (object == "addr") {
        return {text("DEV", "dev"), text("ADDRESS", "address"), text("SCOPE", "scope")};
    }
    if (object == "route") {
        return {text("PREFIX", "prefix"),
                text("TYPE", "type"),
                text("VIA", "via"),
                text("DEV", "dev"),
                figure("METRIC", "metric"),
                text("OWNER", "owner"),
                {"FLAGS", false, route_flags}};
    }
    if (object == "neigh") {
        return {text("ADDRESS", "address"),
                text("DEV", "dev"),
                text("LLADDR", "lladdr"),
                text("STATE", "state")};
    }
    if (object == "stats" && command == "drops") {
        return {text("NETDEV", "netdev"),
                text("WORKER", "worker"),
                figure("PACKETS", "packets"),
                text("REASON", "reason"),
                text("SOURCE", "source")};
    }
    if (object == "stats" && command == "workers") {
        return {figure("WORKER", "worker"),
                figure("LCORE", "lcore"),
                figure("PACKETS", "packets"),
                figure("BUSY%", "busy_percent"),
                figure("CYCLES/PKT", "cycles_per_packet"),
                figure("RECEIVE", "stages.receive"),
                figure("CLASSIFY", "stages.classify"),
                figure("INPUT", "stages.input"),
                figure("LOOKUP", "stages.lookup"),
                figure("FORWARD", "stages.forward"),
                figure("TRANSMIT", "stages.transmit"),
                figure("ROUNDS", "rounds"),
                figure("LONGEST-US", "longest_round_us"),
                figure("SLEEPS", "sleeps"),
                {"SLEPT-S", true, [](const Json& row) {
                     return fmt::format("{:.1f}", row["sleep_seconds"].get<double>());
                 }}};
    }
    return {};
}

}  // namespace sluicectl
