// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/churn.h"

#include <chrono>
#include <string>
#include <vector>

#include "fuzz/plan.h"

namespace sluice::test::fuzz {

namespace {

using control::RouteMode;
using control::RouteRequest;

// --- what changes are made of -------------------------------------------------------------------

/// A link that is there, if luck will have it, and its netns.
struct Place {
    std::uint32_t link = 0;
    std::string name;
    std::string netns;
};
Place some_link(const World& world, Dice& dice) {
    Place place;
    for (unsigned attempt = 0; attempt < 4; ++attempt) {
        place.link = dice.below(kLinks);
        place.name = link_name(place.link);
        place.netns = world.netns_of(place.name);
        if (!place.netns.empty()) {
            break;
        }
    }
    if (place.netns.empty()) {
        place.netns = dice.of(kNetns);
    }
    world.where = place.name + " of " + place.netns;
    return place;
}

/// One in the place's netns, to lead to.
std::string link_in(const World& world, const std::string& netns, Dice& dice) {
    for (unsigned attempt = 0; attempt < 6; ++attempt) {
        const std::string name = link_name(dice.below(kLinks));
        if (world.netns_of(name) == netns) {
            return name;
        }
    }
    return link_name(dice.below(kLinks));
}

config::NetdevSettings settings(Dice& dice) {
    config::NetdevSettings s;
    s.forwarding = !dice.one_in(16);
    s.send_redirects = dice.one_in(3);
    s.source_validation = dice.one_in(3)   ? config::SourceValidation::kStrict
                          : dice.one_in(4) ? config::SourceValidation::kLoose
                                           : config::SourceValidation::kOff;
    s.route_localnet = dice.one_in(6);
    s.bc_forwarding = dice.one_in(3);
    s.mark = dice.one_in(4) ? dice.from(1, 2) : 0;
    return s;
}

net::MacAddr link_mac(std::uint32_t link) {
    return {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(link + 1)}};
}

std::vector<net::InterfaceAddr> addresses_for(std::uint32_t link) {
    return {{host4(link, 1), 24}, {host6(link, 1), 64}};
}

net::InterfaceAddr some_address(std::uint32_t link, Dice& dice) {
    switch (dice.below(5)) {
        case 0:
            return {host6(link, 1), 64};
        case 1:
            return {host6(link, 9), 120};
        case 2:
            return {host4(link, 9), 28};
        case 3:
            return {host4(dice.below(kLinks), 1), 24};
        default:
            return {host4(link, 1), 24};
    }
}

net::IpPrefix some_prefix(Dice& dice) {
    return *net::IpPrefix::parse(dice.one_in(2) ? dice.of(kPrefixes4) : dice.of(kPrefixes6));
}

net::IpAddr some_gateway(net::Family family, std::uint32_t link, Dice& dice) {
    if (family == net::Family::kIpv4) {
        return host4(link, dice.from(2, 4));
    }
    return dice.one_in(4) ? net::IpAddr{link_local(2)} : net::IpAddr{host6(link, dice.from(2, 4))};
}

std::uint32_t link_number(const std::string& name) {
    return static_cast<std::uint32_t>(name[1] - '0');
}

std::uint32_t some_object(net::Family family, Dice& dice) {
    const bool v4 = dice.one_in(10) || family == net::Family::kIpv4;
    if (dice.one_in(3)) {
        return (v4 ? 1 : 4) + dice.below(3);
    }
    return dice.one_in(3) ? v4 ? 21 : 22 : (v4 ? 11 : 13) + dice.below(2);
}

RouteRequest some_route(const World& world, const std::string& netns, Dice& dice) {
    RouteRequest route;
    route.prefix = some_prefix(dice);
    route.table = dice.of(kTables);
    if (dice.one_in(3)) {
        route.metric = dice.below(3);
    }
    const std::string dev = link_in(world, netns, dice);
    static constexpr const char* kTypes[]{"blackhole", "unreachable", "prohibit", "local"};
    switch (dice.below(12)) {
        case 0:
        case 1:
            route.type = dice.of(kTypes);
            break;
        case 2:
            route.dev = dev;  // everybody behind it is a neighbor
            break;
        case 3:
            route.dev = dice.of(kVrfs);
            break;
        case 4:
        case 5:
        case 6:
            route.nexthop = some_object(route.prefix.family(), dice);
            break;
        default:
            route.via = some_gateway(route.prefix.family(), link_number(dev), dice);
            if (dice.one_in(2) || (route.via->is_v6() && route.via->v6().is_link_local())) {
                route.dev = dev;
                route.on_link = dice.one_in(8);
            }
            if (dice.one_in(6)) {
                route.mtu = static_cast<std::uint16_t>(dice.of({1280, 1300, 1400}));
            }
            break;
    }
    return route;
}

/// Objects 1 to 3 and their groups are of IPv4, as long as they have a gateway, the others of IPv6.
bool is_v4_id(std::uint32_t id) {
    return id <= 3 || id == 11 || id == 12 || id == 21;
}

config::NextHop some_hop(const World& world,
                         const std::string& netns,
                         std::uint32_t id,
                         Dice& dice) {
    config::NextHop hop;
    const std::string dev = link_in(world, netns, dice);
    switch (dice.below(12)) {
        case 0:
            hop.blackhole = true;
            return hop;
        case 1:
            hop.dev = dev;
            return hop;
        default:
            hop.via = some_gateway(
                is_v4_id(id) ? net::Family::kIpv4 : net::Family::kIpv6, link_number(dev), dice);
            hop.dev = dev;
            hop.on_link = dice.one_in(8);
            return hop;
    }
}

config::NextHop some_group(std::uint32_t id, Dice& dice) {
    config::NextHop group;
    for (std::uint32_t members = dice.from(1, 3); members > 0; --members) {
        group.group[(is_v4_id(id) ? 1 : 4) + dice.below(3)] = dice.one_in(2) ? 1 : dice.from(1, 60);
    }
    if (id > 20) {
        group.resilient = {.buckets = static_cast<std::uint16_t>(8U << dice.below(4)),
                           .idle_timer = std::chrono::seconds(dice.from(1, 10))};
    }
    return group;
}

config::Rule some_rule(const World& world, const std::string& netns, Dice& dice) {
    config::Rule rule;
    rule.priority = dice.of({10, 20, 30, 500, 1500, 1600});
    rule.family = dice.one_in(2) ? net::Family::kIpv4 : net::Family::kIpv6;
    const bool v4 = rule.family == net::Family::kIpv4;
    const auto prefix = [&] {
        return *net::IpPrefix::parse(v4 ? dice.of(kPrefixes4) : dice.of(kPrefixes6));
    };
    if (dice.one_in(3)) {
        rule.from = dice.one_in(3) ? prefix()
                    : v4           ? net::IpPrefix::of(host4(dice.below(kLinks), 0), 24)
                                   : net::IpPrefix::of(host6(dice.below(kLinks), 0), 64);
    }
    if (dice.one_in(4)) {
        rule.to = prefix();
    }
    if (dice.one_in(4)) {
        rule.iif = dice.one_in(4) ? std::string(dice.of(kVrfs)) : link_in(world, netns, dice);
    }
    if (dice.one_in(4)) {
        rule.dscp = dice.of(kDscps);
    }
    if (dice.one_in(6)) {
        rule.mark = dice.below(4);
    }
    if (dice.one_in(6)) {
        rule.protocol = static_cast<std::uint8_t>(dice.of({6, 17, 1}));
    }
    if (dice.one_in(8)) {
        rule.source_ports = {1000, static_cast<std::uint16_t>(dice.from(1000, 1003))};
    }
    if (dice.one_in(6)) {
        rule.destination_ports = {53, static_cast<std::uint16_t>(dice.of({53, 443}))};
    }
    switch (dice.below(8)) {
        case 0:
            rule.action = config::RuleAction::kBlackhole;
            break;
        case 1:
            rule.action =
                dice.one_in(2) ? config::RuleAction::kUnreachable : config::RuleAction::kProhibit;
            break;
        case 2:
            rule.action = config::RuleAction::kSetMark;
            rule.set_mark = dice.below(4);
            break;
        default:
            rule.table = dice.of(kTables);
            if (dice.one_in(3)) {
                rule.suppress_prefixlength = static_cast<std::uint8_t>(dice.of({0, 8, 24}));
            }
            break;
    }
    return rule;
}

// --- changes ------------------------------------------------------------------------------------

void add_link(World& world, Dice& dice, std::uint32_t link) {
    const std::string name = link_name(link);
    std::string netns = dice.of(kNetns);
    bool made = false;
    if (link < 4) {
        config::Port port;
        port.device = fmt::format("dev-{}", link);
        port.settings = settings(dice);
        port.settings.mac = link_mac(link);
        made = world.note("add_port", world.router->add_port(netns, name, port));
    } else {
        config::Vlan vlan;
        vlan.link = parent_name(link);
        const std::string parent = world.netns_of(vlan.link);
        vlan.link_netns = parent;
        netns = parent.empty() || dice.one_in(5) ? netns : parent;
        vlan.id = static_cast<std::uint16_t>(10 + link);
        vlan.settings = settings(dice);
        made = world.note("add_vlan", world.router->add_vlan(netns, name, vlan));
    }
    for (const auto& address : addresses_for(link)) {
        if (made) {
            world.note("add_address", world.router->add_address(netns, name, address));
        }
    }
}

/// More than a slice of a removal takes; now and then the bigger form of tables.
void add_many(World& world, const std::string& netns, const RouteRequest& model, Dice& dice) {
    std::size_t added = 0;
    const std::uint32_t count = dice.one_in(10) ? 600 : 100;
    for (std::uint32_t i = 0; i < count; ++i) {
        RouteRequest route = model;
        const std::uint32_t spread = dice.one_in(2) ? i : i << 8U;
        if (route.prefix.is_v4()) {
            route.prefix = net::IpPrefix::of(net::Ipv4Addr::from_host(0x08080000U + spread), 32);
        } else {
            net::Ipv6Addr address = ip("2a00::").v6();
            address.bytes[14] = static_cast<std::uint8_t>(i >> 8U);
            address.bytes[15] = static_cast<std::uint8_t>(i);
            route.prefix = net::IpPrefix::of(address, 128);
        }
        added += world.router->add_route(netns, route, RouteMode::kReplace) ? 1 : 0;
    }
    world.count("many routes", added);
}

void delete_links(World& world, Dice& dice) {
    const Place place = some_link(world, dice);
    if (dice.one_in(8)) {
        const std::vector<std::string> vrf{dice.of(kVrfs)};
        world.note("delete_netdevs", world.router->delete_netdevs(place.netns, vrf));
        return;
    }
    if (dice.one_in(2)) {
        load_link(world, dice, place.name);
    }
    delete_link(world, dice, place.name);
}

void change_link(World& world, Dice& dice) {
    const Place place = some_link(world, dice);
    control::LinkChange change;
    const config::NetdevSettings to = settings(dice);
    switch (dice.below(12)) {
        case 0:
            change.up = dice.one_in(3);
            break;
        case 1:
            change.up = true;
            break;
        case 2:
            change.mtu = static_cast<std::uint16_t>(dice.of({1500, 1500, 1280, 1400, 600}));
            break;
        case 3:
            change.mac = dice.one_in(2) ? link_mac(place.link) : net::MacAddr{{2, 1, 0, 0, 0, 1}};
            break;
        case 4:
        case 5:
            change.vrf = dice.one_in(2) ? "" : dice.of(kVrfs);
            break;
        case 6:
            change.forwarding = to.forwarding;
            break;
        case 7:
            change.send_redirects = to.send_redirects;
            break;
        case 8:
            change.source_validation = to.source_validation;
            break;
        case 9:
            change.route_localnet = to.route_localnet;
            break;
        case 10:
            change.bc_forwarding = to.bc_forwarding;
            break;
        default:
            change.mark = to.mark;
            break;
    }
    world.note("change_link", world.router->change_link(place.netns, place.name, change));
}

void change_netns(World& world, Dice& dice) {
    const char* name = dice.one_in(2) ? "blue" : "red";
    if (dice.one_in(3)) {
        world.note("delete_netns", world.router->delete_netns(name));
    } else {
        world.note("add_netns", world.router->add_netns(name));
    }
}

void change_address(World& world, Dice& dice) {
    const Place place = some_link(world, dice);
    const net::InterfaceAddr address = some_address(place.link, dice);
    if (dice.one_in(3)) {
        world.note("delete_address",
                   world.router->delete_address(place.netns, place.name, address));
    } else {
        world.note("add_address", world.router->add_address(place.netns, place.name, address));
    }
}

void change_route(World& world, Dice& dice) {
    const std::string netns = some_link(world, dice).netns;
    const RouteRequest route = some_route(world, netns, dice);
    if (dice.one_in(4)) {
        RouteRequest gone;
        gone.prefix = route.prefix;
        gone.table = route.table;
        world.note("delete_route", world.router->delete_route(netns, gone));
    } else {
        const bool replace = dice.one_in(2);
        world.note(
            replace ? "replace_route" : "add_route",
            world.router->add_route(netns, route, replace ? RouteMode::kReplace : RouteMode::kAdd));
    }
}

void many_routes(World& world, Dice& dice) {
    const std::string netns = some_link(world, dice).netns;
    add_many(world, netns, some_route(world, netns, dice), dice);
}

/// Tables that send to each other, and a route of every type.
void loop(World& world, Dice& dice) {
    for (const char* prefix : {"203.0.113.0/24", "2001:db8:3::/48"}) {
        for (std::uint32_t vrf = 0; vrf < 3; ++vrf) {
            RouteRequest route;
            route.prefix = *net::IpPrefix::parse(prefix);
            route.table = 100 + vrf;
            route.dev = kVrfs[(vrf + 1) % 3];
            world.note(
                "leak",
                world.router->add_route(world.netns_of(kVrfs[vrf]), route, RouteMode::kReplace));
        }
    }
    for (const char* type : {"blackhole", "unreachable", "prohibit"}) {
        RouteRequest route;
        route.prefix = some_prefix(dice);
        route.type = type;
        world.note(
            "replace_route",
            world.router->add_route(some_link(world, dice).netns, route, RouteMode::kReplace));
    }
}

void flush_routes(World& world, Dice& dice) {
    world.note("flush_routes",
               world.router->flush_routes(dice.of(kNetns), control::RouteOwner::kCli));
}

constexpr std::uint8_t kOneProtocol = 77;  // of every other next hop

void set_nexthop(World& world, const std::string& netns, std::uint32_t id, Dice& dice) {
    const config::NextHop hop =
        id <= kHops ? some_hop(world, netns, id, dice) : some_group(id, dice);
    const char* what = id <= kHops ? "add_nexthop" : id > 20 ? "add_resilient" : "add_group";
    const std::uint8_t protocol = id % 2 == 0 ? kOneProtocol : std::uint8_t{0};
    world.note(what, world.router->add_nexthop(netns, id, hop, !dice.one_in(4), protocol));
}

void change_nexthop(World& world, Dice& dice) {
    const std::string netns = some_link(world, dice).netns;
    const std::uint32_t kind = dice.below(4);
    const std::uint32_t id = kind < 2    ? 1 + dice.below(kHops)
                             : kind == 2 ? 11 + dice.below(kGroups)
                                         : 21 + dice.below(kResilient);
    if (dice.one_in(8)) {
        world.note("delete_nexthop", world.router->delete_nexthop(netns, id));
    } else if (dice.one_in(40)) {
        world.note("flush_nexthops",
                   world.router->flush_nexthops(netns, {control::RouteOwner::kCli, kOneProtocol}));
    } else {
        set_nexthop(world, netns, id, dice);
    }
}

void change_rule(World& world, Dice& dice) {
    const std::string netns = some_link(world, dice).netns;
    config::Rule rule = some_rule(world, netns, dice);
    if (dice.percent(60)) {
        config::Rule gone;
        gone.priority = rule.priority;
        gone.family = rule.family;
        world.note("delete_rule", world.router->delete_rule(netns, gone));
    } else {
        world.note("add_rule", world.router->add_rule(netns, rule));
    }
}

void change_neighbor(World& world, Dice& dice) {
    const Place place = some_link(world, dice);
    const net::IpAddr host =
        some_gateway(dice.one_in(2) ? net::Family::kIpv4 : net::Family::kIpv6, place.link, dice);
    switch (dice.below(8)) {
        case 0:
        case 1:
            world.note("delete_neighbor",
                       world.router->delete_neighbor(place.netns, place.name, host));
            break;
        case 2:
            world.note(
                "flush_neighbors",
                world.router->flush_neighbors(place.netns, dice.one_in(2) ? place.name : ""));
            break;
        default:
            world.note("add_neighbor",
                       world.router->add_neighbor(place.netns, place.name, host, host_mac(dice)));
            break;
    }
}

/// As workers report them; most say nothing new.
void learn(World& world, Dice& dice) {
    const Place place = some_link(world, dice);
    const fib::NetdevView* view = world.view(place.name);
    if (view == nullptr) {
        return;
    }
    const bool v4 = dice.one_in(2);
    const bool far = dice.one_in(2);
    const net::IpAddr destination =
        v4 ? far ? ip(dice.of(kRemote4)) : net::IpAddr{host4(dice.below(kLinks), dice.from(2, 4))}
        : far ? ip(dice.of(kRemote6))
              : net::IpAddr{host6(dice.below(kLinks), dice.from(2, 4))};
    pipeline::WorkerEvent event{.kind = pipeline::WorkerEvent::Kind::kPathMtu,
                                .mtu = static_cast<std::uint16_t>(dice.from(1280, 1500)),
                                .ingress = view->id,
                                .key = fib::NeighborKeyWords::of(view->domain, destination)};
    if (dice.one_in(3)) {
        event.kind = pipeline::WorkerEvent::Kind::kRedirect;
        event.gateway = some_gateway(destination.family(), place.link, dice);
    }
    world.engine->handle(0, event, world.now());
    world.count("learned");
}

void flush_exceptions(World& world, Dice& dice) {
    world.note("flush_exceptions", world.router->flush_exceptions(dice.of(kNetns)));
}

void change_cache(World& world, Dice& dice) {
    if (dice.one_in(3)) {
        world.router->flush_cache();
    } else if (dice.one_in(2)) {
        // With a cache that was not asked for a while.
        world.cached().mode = dice.one_in(3) ? fib::CacheMode::kOff : fib::CacheMode::kOn;
    } else {
        world.router->set_cache_mode(dice.one_in(2) ? config::CacheMode::kOn
                                                    : config::CacheMode::kAuto);
        world.cached().mode = fib::CacheMode::kOn;
    }
    world.count("cache");
}

void change_instance(World& world, Dice& dice) {
    if (dice.one_in(3)) {
        world.engine->change_instance(
            {.icmp = {.error_rate = dice.from(0, 1000), .error_burst = dice.from(1, 50)},
             .forward_class_e = !dice.one_in(3),
             .idle = config::IdleMode::kPoll,
             .cache = config::CacheMode::kAuto});
        world.count("instance");
        return;
    }
    control::Netns* netns = world.engine->netns().find(dice.of(kNetns));
    if (netns == nullptr) {
        return;
    }
    config::MultipathHash hash;
    hash.policy = dice.one_in(2)   ? config::HashPolicy::kL4
                  : dice.one_in(2) ? config::HashPolicy::kL3
                                   : config::HashPolicy::kCustom;
    hash.fields = {.source = dice.one_in(2),
                   .destination = dice.one_in(2),
                   .protocol = dice.one_in(2),
                   .source_port = dice.one_in(2),
                   .destination_port = true,
                   .flow_label = dice.one_in(2)};
    world.engine->set_multipath_hash(
        *netns, dice.one_in(2) ? net::Family::kIpv4 : net::Family::kIpv6, hash);
    world.count("multipath hash");
}

void change_carrier(World& world, Dice& dice) {
    bool& link = world.plane->links[dice.below(kDevices)];
    link = !link || dice.one_in(2);
    world.engine->poll_links();
    world.count("carrier");
}

void move_link(World& world, Dice& dice) {
    const Place place = some_link(world, dice);
    world.note("move_link", world.router->move_link(place.netns, place.name, dice.of(kNetns)));
}

void add_some_link(World& world, Dice& dice) {
    const std::uint32_t first = dice.below(kLinks);
    for (std::uint32_t i = 0; i < kLinks; ++i) {
        const std::uint32_t link = (first + i) % kLinks;
        if (world.netns_of(link_name(link)).empty()) {
            add_link(world, dice, link);
            return;
        }
    }
}

void add_vrf(World& world, Dice& dice) {
    const std::uint32_t vrf = dice.below(3);
    world.note("add_vrf", world.router->add_vrf(dice.of(kNetns), kVrfs[vrf], 100 + vrf));
}

/// Gives a link what it lacks to carry packets, so that a world does not run dry.
void repair(World& world, Dice& dice) {
    Place place = some_link(world, dice);
    for (std::uint32_t i = 0; i < kLinks; ++i) {
        const std::string name = link_name((place.link + i) % kLinks);
        const fib::NetdevView* view = world.view(name);
        if (view != nullptr && !view->has_ipv4 && !view->has_ipv6) {
            place = {(place.link + i) % kLinks, name, world.netns_of(name)};
            break;
        }
    }
    control::LinkChange up;
    up.up = true;
    world.note("change_link", world.router->change_link(place.netns, place.name, up));
    for (const auto& address : addresses_for(place.link)) {
        world.note("add_address", world.router->add_address(place.netns, place.name, address));
    }
    for (std::uint32_t host = 2; host <= 4; ++host) {
        if (dice.one_in(2)) {
            const net::IpAddr neighbor = dice.one_in(2) ? net::IpAddr{host4(place.link, host)}
                                                        : net::IpAddr{host6(place.link, host)};
            world.note(
                "add_neighbor",
                world.router->add_neighbor(place.netns, place.name, neighbor, host_mac(dice)));
        }
    }
    for (unsigned i = 0; i < 3; ++i) {
        RouteRequest route;
        route.prefix = some_prefix(dice);
        if (dice.one_in(2)) {
            route.prefix = net::IpPrefix::default_route(route.prefix.family());
        }
        route.via = route.prefix.is_v4() ? net::IpAddr{host4(place.link, dice.from(2, 4))}
                                         : net::IpAddr{host6(place.link, dice.from(2, 4))};
        if (dice.one_in(3)) {
            route.table = dice.of(kTables);
        }
        world.note("replace_route",
                   world.router->add_route(place.netns, route, RouteMode::kReplace));
    }
    set_nexthop(world, place.netns, 1 + dice.below(kHops), dice);
    RouteRequest over;
    over.prefix = some_prefix(dice);
    over.nexthop = some_object(over.prefix.family(), dice);
    set_nexthop(world, place.netns, *over.nexthop, dice);
    world.note("replace_route", world.router->add_route(place.netns, over, RouteMode::kReplace));
}

struct Kind {
    std::uint32_t weight;
    void (*make)(World&, Dice&);
};
constexpr Kind kKinds[]{{14, repair},         {8, add_some_link},   {2, delete_links},
                        {10, change_link},    {2, change_netns},    {4, change_address},
                        {24, change_route},   {2, many_routes},     {2, loop},
                        {1, flush_routes},    {14, change_nexthop}, {8, change_rule},
                        {8, change_neighbor}, {8, learn},           {1, flush_exceptions},
                        {3, change_cache},    {3, change_instance}, {1, change_carrier},
                        {2, move_link},       {2, add_vrf}};

}  // namespace

void load_link(World& world, Dice& dice, const std::string& name) {
    const std::uint32_t link = link_number(name);
    RouteRequest route;
    const bool v4 = dice.one_in(2);
    route.prefix = net::IpPrefix::default_route(v4 ? net::Family::kIpv4 : net::Family::kIpv6);
    route.via = v4 ? net::IpAddr{host4(link, 2)} : net::IpAddr{host6(link, 2)};
    add_many(world, world.netns_of(name), route, dice);
}

void delete_link(World& world, Dice& dice, const std::string& name) {
    const std::string netns = world.netns_of(name);
    std::vector<std::string> names{name};
    for (std::uint32_t link = 4; link < kLinks; ++link) {
        const std::string other = link_name(link);
        if (other != name && world.netns_of(other) == netns &&
            (parent_name(link) == name || dice.one_in(3))) {
            names.push_back(other);
        }
    }
    world.note("delete_netdevs", world.router->delete_netdevs(netns, names));
}

void bring_back(World& world, Dice& dice) {
    add_some_link(world, dice);
    repair(world, dice);
}

void set_up(World& world, Dice& dice) {
    for (const char* netns : {"blue", "red"}) {
        world.note("add_netns", world.router->add_netns(netns));
    }
    const std::string together = dice.of(kNetns);
    for (std::uint32_t vrf = 0; vrf < 3; ++vrf) {
        const std::string netns = dice.one_in(4) ? std::string(dice.of(kNetns)) : together;
        world.note("add_vrf", world.router->add_vrf(netns, kVrfs[vrf], 100 + vrf));
    }
    for (std::uint32_t link = 0; link < kLinks; ++link) {
        add_link(world, dice, link);
    }
    for (const char* netns : {"default", "blue", "red"}) {
        for (const std::uint32_t id : {1U, 2U, 3U, 4U, 5U, 6U, 11U, 13U, 21U, 22U}) {
            set_nexthop(world, netns, id, dice);
        }
    }
    for (unsigned i = 0; i < 40; ++i) {
        change_neighbor(world, dice);
        change_nexthop(world, dice);
        change_route(world, dice);
        repair(world, dice);
    }
    loop(world, dice);
}

void change(World& world, Dice& dice) {
    std::uint32_t total = 0;
    for (const Kind& kind : kKinds) {
        total += kind.weight;
    }
    std::uint32_t at = dice.below(total);
    for (const Kind& kind : kKinds) {
        if (at < kind.weight) {
            kind.make(world, dice);
            return;
        }
        at -= kind.weight;
    }
}

}  // namespace sluice::test::fuzz
