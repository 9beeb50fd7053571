// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/id.h"
#include "base/result.h"
#include "config/model.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_table.h"
#include "net/address.h"
#include "stats/counters.h"

namespace sluice::control {
namespace {

using config::SourceValidation;

constexpr std::uint16_t kMaxVlanId = 4094;  // IEEE 802.1Q 9.6: 0 and 4095 are reserved

constexpr std::array<Choice<SourceValidation>, 3> kValidations{{
    {"off", SourceValidation::kOff},
    {"loose", SourceValidation::kLoose},
    {"strict", SourceValidation::kStrict},
}};

std::string_view word_of(SourceValidation validation) noexcept {
    for (const auto& choice : kValidations) {
        if (choice.value == validation) {
            return choice.word;
        }
    }
    return "";
}

Json link_json(const LinkInfo& link, const stats::NetdevCounters& counters) {
    const bool port = link.kind == "port";
    const bool vlan = link.kind == "vlan";
    Json json{
        {"name", link.name},
        {"id", link.id.value},
        {"kind", link.kind},
        {"netns", link.netns},
        {"mac", link.mac ? Json(link.mac->to_string()) : Json()},
        {"mtu", link.mtu},
        {"up", link.up},
        {"running", link.running},
        {"forwarding", link.forwarding},
        {"device", port ? Json(link.device) : Json()},
        {"driver", port ? Json(link.driver) : Json()},
        {"rx_queues", port ? Json(link.rx_queues) : Json()},
        {"speed_mbps", port && link.speed_mbps != 0 ? Json(link.speed_mbps) : Json()},
        {"link", vlan ? Json(link.link) : Json()},
        {"vlan_id", vlan ? Json(link.vlan_id) : Json()},
        {"vrf", text_or_null(link.vrf)},
        {"table", link.kind == "vrf" ? Json(link.table) : Json()},
        {"promiscuous", link.settings.promiscuous},
        {"send_redirects", link.settings.send_redirects},
        {"source_validation", word_of(link.settings.source_validation)},
        {"route_localnet", link.settings.route_localnet},
        {"bc_forwarding", link.settings.bc_forwarding},
        {"mark", link.settings.mark},
        {"dsts", link.dsts},
        {"addresses", Json::array()},
        {"counters",
         {{"rx_packets", counters.rx_packets},
          {"rx_bytes", counters.rx_bytes},
          {"tx_packets", counters.tx_packets},
          {"tx_bytes", counters.tx_bytes}}},
    };
    for (const net::InterfaceAddr& address : link.addresses) {
        json["addresses"].push_back(address.to_string());
    }
    return json;
}

/// What `link set` changes in place.
constexpr std::array<std::string_view, 11> kSettings{"up",
                                                     "mtu",
                                                     "mac",
                                                     "promiscuous",
                                                     "vrf",
                                                     "forwarding",
                                                     "send_redirects",
                                                     "source_validation",
                                                     "route_localnet",
                                                     "bc_forwarding",
                                                     "mark"};

Result<std::vector<LinkInfo>> read_links(Context& context, Args& args) {
    const auto name = args.text("name");
    const bool all = args.flag("all").value_or(false);
    if (name && all) {
        args.refuse("give either name or all");
    }
    if (args.error()) {
        return refused(args);
    }
    if (name) {
        auto link = context.controller.link(context.netns, *name);
        return link ? Result<std::vector<LinkInfo>>({*std::move(link)})
                    : std::unexpected(std::move(link.error()));
    }
    if (!all && !netns_exists(context.controller, context.netns)) {
        return no_netns(context.netns);
    }
    return context.controller.links(all ? "" : context.netns);
}

Result<Body> link_show(Context& context, Args& args) {
    auto links = read_links(context, args);
    if (!links) {
        return std::unexpected(std::move(links.error()));
    }
    // Counters are read here, not while rows are made: a link may be gone by then.
    using Row = std::pair<LinkInfo, stats::NetdevCounters>;
    std::vector<Row> rows;
    rows.reserve(links->size());
    for (LinkInfo& link : *links) {
        const auto counters = context.controller.netdev_counters(link.id);
        rows.emplace_back(std::move(link), counters);
    }
    return array_of(std::move(rows),
                    [](const Row& row) { return link_json(row.first, row.second); });
}

Result<Body> link_set(Context& context, Args& args) {
    const auto name = args.need("name", args.text("name"));
    const auto netns = args.text("netns");
    const LinkChange change{
        .up = args.flag("up"),
        .mtu = args.integer<std::uint16_t>("mtu", config::kMinMtu, config::kMaxMtu),
        .mac = args.mac("mac"),
        .promiscuous = args.flag("promiscuous"),
        .vrf = args.text_or_empty("vrf"),
        .forwarding = args.flag("forwarding"),
        .send_redirects = args.flag("send_redirects"),
        .source_validation = args.choice<SourceValidation>("source_validation", kValidations),
        .route_localnet = args.flag("route_localnet"),
        .bc_forwarding = args.flag("bc_forwarding"),
        .mark = args.integer<std::uint32_t>("mark"),
    };
    const bool changes =
        std::ranges::any_of(kSettings, [&](std::string_view key) { return args.has(key); });
    if (!changes && !netns) {
        args.refuse(fmt::format("link set: nothing to set; give netns, or at least one of {}",
                                fmt::join(kSettings, ", ")));
    }
    if (changes && netns) {
        args.refuse("link set: netns goes alone: a move is one change, all or nothing");
    }
    if (args.error()) {
        return refused(args);
    }
    if (netns) {
        return settled(context, context.controller.move_link(context.netns, name, *netns));
    }
    return done(context.controller.change_link(context.netns, name, change));
}

Result<Body> add_vlan(Context& context,
                      const std::string& name,
                      config::Vlan vlan,
                      std::optional<std::uint16_t> mtu) {
    if (!mtu) {
        const auto port = context.controller.link(context.netns, vlan.link);
        if (!port) {
            return std::unexpected(port.error());
        }
        mtu = port->mtu;
    }
    vlan.settings.mtu = *mtu;
    return done(context.controller.add_vlan(context.netns, name, vlan));
}

Result<Body> link_add(Context& context, Args& args) {
    const auto name = args.need("name", args.new_name("name"));
    const auto device = args.text("device");
    const auto link = args.text("link");
    const auto vlan_id = args.integer<std::uint16_t>("vlan_id", 1, kMaxVlanId);
    const auto table = args.table("table");
    const auto rx_queues = args.integer<std::uint16_t>("rx_queues", 1, kMaxWorkers);
    const auto mtu = args.integer<std::uint16_t>("mtu", config::kMinMtu, config::kMaxMtu);
    config::NetdevSettings settings;
    settings.mac = args.mac("mac");
    const bool vlan = link && vlan_id;
    if ((device ? 1 : 0) + (vlan ? 1 : 0) + (table ? 1 : 0) != 1 ||
        link.has_value() != vlan_id.has_value() || (rx_queues && !device) ||
        (table && (mtu || settings.mac))) {
        args.refuse(
            "link add: takes either device (a port, with rx_queues), or link and vlan_id (a "
            "VLAN), both with mtu and mac, or table (a VRF)");
    }
    if (args.error()) {
        return refused(args);
    }
    if (table) {
        return done(context.controller.add_vrf(context.netns, name, *table));
    }
    if (vlan) {
        config::Vlan wanted;
        wanted.link = *link;
        wanted.id = *vlan_id;
        wanted.settings = settings;
        return add_vlan(context, name, std::move(wanted), mtu);
    }
    settings.mtu = mtu.value_or(config::kDefaultMtu);
    config::Port port;
    port.device = *device;
    port.rx_queues = rx_queues;
    port.settings = settings;
    return done(context.controller.add_port(context.netns, name, port));
}

Result<Body> link_del(Context& context, Args& args) {
    const std::vector<std::string> names = args.texts("names");
    if (args.error()) {
        return refused(args);
    }
    return settled(context, context.controller.delete_netdevs(context.netns, names));
}

Json address_json(const AddressInfo& info) {
    return {{"dev", info.netdev},
            {"address", info.address.to_string()},
            {"family", net::to_string(info.address.address.family())},
            {"scope", info.link_local ? "link" : "global"}};
}

Result<Body> addr_show(Context& context, Args& args) {
    const auto dev = args.text("dev");
    const auto family = args.family("family");
    if (args.error()) {
        return refused(args);
    }
    if (dev) {
        if (const auto link = context.controller.link(context.netns, *dev); !link) {
            return std::unexpected(link.error());
        }
    }
    auto addresses = context.controller.addresses(context.netns);
    if (addresses) {
        std::erase_if(*addresses, [&](const AddressInfo& info) {
            return (dev && info.netdev != *dev) ||
                   (family && info.address.address.family() != *family);
        });
    }
    return array_of(std::move(addresses), address_json);
}

Result<Body> addr_add(Context& context, Args& args) {
    const auto address = args.need("address", args.interface_address("address"));
    const auto dev = args.need("dev", args.text("dev"));
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.add_address(context.netns, dev, address));
}

Result<Body> addr_del(Context& context, Args& args) {
    const auto address = args.need("address", args.interface_address("address"));
    const auto dev = args.need("dev", args.text("dev"));
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.delete_address(context.netns, dev, address));
}

}  // namespace

std::span<const Command> link_commands() {
    static const std::vector<std::string_view> kSetArgs = [] {
        std::vector<std::string_view> args{"name", "netns"};
        args.insert(args.end(), kSettings.begin(), kSettings.end());
        return args;
    }();
    static const std::array<Command, 7> kCommands{{
        {"link", "show", {"name", "all"}, link_show},
        {"link", "set", kSetArgs, link_set},
        {"link",
         "add",
         {"name", "device", "rx_queues", "link", "vlan_id", "table", "mtu", "mac"},
         link_add},
        {"link", "del", {"names"}, link_del},
        {"addr", "show", {"dev", "family"}, addr_show},
        {"addr", "add", {"address", "dev"}, addr_add},
        {"addr", "del", {"address", "dev"}, addr_del},
    }};
    return kCommands;
}

}  // namespace sluice::control
