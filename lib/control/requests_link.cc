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

constexpr std::uint16_t kMaxVlanId = 4094;  // IEEE 802.1Q 9.6: 0 and 4095 are reserved

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

Result<Body> link_show(Context& context, Args& args) {
    const auto name = args.text("name");
    if (args.error()) {
        return refused(args);
    }
    std::vector<LinkInfo> links = context.controller.links();
    if (name) {
        std::erase_if(links, [&](const LinkInfo& link) { return link.name != *name; });
        if (links.empty()) {
            return fail(ErrorCode::kNotFound, "link {} does not exist", *name);
        }
    }
    // Counters are read here, not while rows are made: a link may be gone by then.
    using Row = std::pair<LinkInfo, stats::NetdevCounters>;
    std::vector<Row> rows;
    rows.reserve(links.size());
    for (LinkInfo& link : links) {
        const auto counters = context.controller.netdev_counters(link.id);
        rows.emplace_back(std::move(link), counters);
    }
    return array_of(std::move(rows),
                    [](const Row& row) { return link_json(row.first, row.second); });
}

Result<Body> link_set(Context& context, Args& args) {
    const auto name = args.need("name", args.text("name"));
    const LinkChange change{
        .up = args.flag("up"),
        .mtu = args.integer<std::uint16_t>("mtu", config::kMinMtu, config::kMaxMtu),
        .mac = args.mac("mac"),
        .promiscuous = args.flag("promiscuous"),
    };
    if (!change.up && !change.mtu && !change.mac && !change.promiscuous) {
        args.refuse({ErrorCode::kInvalid,
                     "link set: nothing to set; give at least one of up, mtu, mac, promiscuous"});
    }
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.change_link(name, change));
}

Result<Body> link_add(Context& context, Args& args) {
    const auto name = args.need("name", args.new_name("name"));
    const auto device = args.text("device");
    const auto link = args.text("link");
    const auto vlan_id = args.integer<std::uint16_t>("vlan_id", 1, kMaxVlanId);
    const auto rx_queues = args.integer<std::uint16_t>("rx_queues", 1, kMaxWorkers);
    const auto mtu = args.integer<std::uint16_t>("mtu", config::kMinMtu, config::kMaxMtu);
    config::NetdevSettings settings;
    settings.mac = args.mac("mac");
    if (device ? link.has_value() || vlan_id.has_value()
               : !link || !vlan_id || rx_queues.has_value()) {
        args.refuse({ErrorCode::kInvalid,
                     "link add: takes either device (a port, with rx_queues) or link and vlan_id "
                     "(a VLAN)"});
    }
    if (args.error()) {
        return refused(args);
    }
    if (device) {
        settings.mtu = mtu.value_or(config::kDefaultMtu);
        config::Port port;
        port.device = *device;
        port.rx_queues = rx_queues;
        port.settings = settings;
        return done(context.controller.add_port(name, port));
    }
    if (!mtu) {
        for (const LinkInfo& parent : context.controller.links()) {
            settings.mtu = parent.name == *link ? parent.mtu : settings.mtu;
        }
    }
    settings.mtu = mtu.value_or(settings.mtu);
    config::Vlan vlan;
    vlan.link = *link;
    vlan.id = *vlan_id;
    vlan.settings = settings;
    return done(context.controller.add_vlan(name, vlan));
}

Result<Body> link_del(Context& context, Args& args) {
    const std::vector<std::string> names = args.texts("names");
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.delete_netdevs(names));
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
    if (dev && !link_exists(context.controller, *dev)) {
        return fail(ErrorCode::kNotFound, "link {} does not exist", *dev);
    }
    std::vector<AddressInfo> addresses = context.controller.addresses();
    std::erase_if(addresses, [&](const AddressInfo& info) {
        return (dev && info.netdev != *dev) || (family && info.address.address.family() != *family);
    });
    return array_of(std::move(addresses), address_json);
}

Result<Body> addr_add(Context& context, Args& args) {
    const auto address = args.need("address", args.interface_address("address"));
    const auto dev = args.need("dev", args.text("dev"));
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.add_address(dev, address));
}

Result<Body> addr_del(Context& context, Args& args) {
    const auto address = args.need("address", args.interface_address("address"));
    const auto dev = args.need("dev", args.text("dev"));
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.delete_address(dev, address));
}

}  // namespace

bool link_exists(const Controller& controller, std::string_view name) {
    return std::ranges::any_of(controller.links(),
                               [&](const LinkInfo& link) { return link.name == name; });
}

std::span<const Command> link_commands() {
    static const std::array<Command, 7> kCommands{{
        {"link", "show", {"name"}, link_show},
        {"link", "set", {"name", "up", "mtu", "mac", "promiscuous"}, link_set},
        {"link", "add", {"name", "device", "rx_queues", "link", "vlan_id", "mtu", "mac"}, link_add},
        {"link", "del", {"names"}, link_del},
        {"addr", "show", {"dev", "family"}, addr_show},
        {"addr", "add", {"address", "dev"}, addr_add},
        {"addr", "del", {"address", "dev"}, addr_del},
    }};
    return kCommands;
}

}  // namespace sluice::control
