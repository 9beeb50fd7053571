// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <string>
#include <tuple>
#include <utility>

#include "config/config.h"
#include "config/netns.h"
#include "config/read_parts.h"
#include "config/spelling.h"
#include "config/validate.h"

namespace sluice::config {
namespace {

constexpr std::uint64_t kMaxLcore = 1023;
constexpr std::uint64_t kMaxMemoryMb = 1'048'576;
constexpr std::size_t kMaxSocketBytes = 107;  // sun_path, with its NUL, is 108
constexpr std::uint64_t kMaxRoutes = 100'000'000;

constexpr std::array<Choice<IdleMode>, 2> kIdleModes{{
    {"poll", IdleMode::kPoll},
    {"adaptive", IdleMode::kAdaptive},
}};
constexpr std::array<Choice<CacheMode>, 3> kCacheModes{{
    {"auto", CacheMode::kAuto},
    {"on", CacheMode::kOn},
    {"off", CacheMode::kOff},
}};

void read_lcores(Reader& r, const Node& node, Dpdk& dpdk) {
    dpdk.lcores.clear();
    for (const Node& item : r.list(node)) {
        std::uint16_t lcore = 0;
        if (!r.integer(item, lcore, 0, kMaxLcore)) {
            continue;
        }
        if (std::find(dpdk.lcores.begin(), dpdk.lcores.end(), lcore) != dpdk.lcores.end()) {
            r.error(item.at, "lcore {} is here twice: each thread needs its own", lcore);
        }
        dpdk.lcores.push_back(lcore);
    }
    if (dpdk.lcores.size() < 2) {
        r.error(node.at,
                "at least two lcores: the first for the control thread, the others for workers");
    }
    if (dpdk.lcores.size() > kMaxWorkers + 1) {
        r.error(node.at, "more than {} lcores for workers", kMaxWorkers);
    }
}

constexpr std::array kDpdkFields{
    Field<Dpdk>{"lcores", read_lcores},
    Field<Dpdk>{"hugepages", [](Reader& r, const Node& n, Dpdk& d) { r.boolean(n, d.hugepages); }},
    Field<Dpdk>{
        "memory-mb",
        [](Reader& r, const Node& n, Dpdk& d) { r.integer(n, d.memory_mb, 64, kMaxMemoryMb); }},
    Field<Dpdk>{"extra-args",
                [](Reader& r, const Node& n, Dpdk& d) {
                    for (const Node& item : r.list(n)) {
                        std::string argument;
                        if (r.text(item, argument)) {
                            d.extra_args.push_back(argument);
                        }
                    }
                }},
};

void read_cache_entries(Reader& r, const Node& node, Workers& workers) {
    std::uint16_t entries = 0;
    if (!r.integer(node, entries, 4, 16384)) {
        return;
    }
    if ((entries & (entries - 1U)) != 0) {
        r.error(node.at, "{} is not a power of two: write 512, 1024 and so on", entries);
        return;
    }
    workers.cache_entries = entries;
}

constexpr std::array kWorkersFields{
    Field<Workers>{"idle",
                   [](Reader& r, const Node& n, Workers& w) { r.choice(n, w.idle, kIdleModes); }},
    Field<Workers>{
        "burst", [](Reader& r, const Node& n, Workers& w) { r.integer(n, w.burst, 1, kMaxBurst); }},
    Field<Workers>{"cache",
                   [](Reader& r, const Node& n, Workers& w) { r.choice(n, w.cache, kCacheModes); }},
    Field<Workers>{"cache-entries", read_cache_entries},
};

void read_endpoint(Reader& r, const Node& node, std::optional<Endpoint>& out) {
    std::string word;
    if (!r.text(node, word)) {
        return;
    }
    const auto colon = word.rfind(':');
    std::string_view host = std::string_view{word}.substr(0, colon);
    const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (brackets) {
        host = host.substr(1, host.size() - 2);
    }
    const auto address = net::IpAddr::parse(host);
    std::uint16_t port = 0;
    const char* const end = word.data() + word.size();
    const char* const begin = colon == std::string::npos ? end : word.data() + colon + 1;
    const auto [rest, failure] = std::from_chars(begin, end, port);
    if (!address || address->is_v6() != brackets || failure != std::errc{} || rest != end ||
        port == 0) {
        r.error(node.at,
                "'{}' is not an address and port: write 127.0.0.1:9110 or \"[::1]:9110\"",
                word);
        return;
    }
    out = Endpoint{*address, port};
}

void read_socket(Reader& r, const Node& node, Control& control) {
    std::string path;
    if (!r.text(node, path)) {
        return;
    }
    if (path.front() != '/' || path.size() > kMaxSocketBytes) {
        r.error(node.at,
                "'{}' is no socket: write an absolute path of at most {} bytes",
                path,
                kMaxSocketBytes);
        return;
    }
    control.socket = path;
}

constexpr std::array kControlFields{
    Field<Control>{"socket", read_socket},
    Field<Control>{"metrics",
                   [](Reader& r, const Node& n, Control& c) { read_endpoint(r, n, c.metrics); }},
    Field<Control>{"fpm", [](Reader& r, const Node& n, Control& c) { read_endpoint(r, n, c.fpm); }},
};

void read_uncached_lists(Reader& r, const Node& node, Limits& limits) {
    std::uint16_t lists = 0;
    if (!r.integer(node, lists, 1, kMaxNetdevs)) {
        return;
    }
    if (!std::has_single_bit(lists)) {
        r.error(node.at, "{} is not a power of two: write 1, 64, 4096 and so on", lists);
        return;
    }
    limits.uncached_lists = lists;
}

constexpr std::array kLimitsFields{
    Field<Limits>{
        "ipv4-routes",
        [](Reader& r, const Node& n, Limits& l) { r.integer(n, l.ipv4_routes, 1, kMaxRoutes); }},
    Field<Limits>{
        "ipv6-routes",
        [](Reader& r, const Node& n, Limits& l) { r.integer(n, l.ipv6_routes, 1, kMaxRoutes); }},
    Field<Limits>{
        "neighbors",
        [](Reader& r, const Node& n, Limits& l) { r.integer(n, l.neighbors, 1, kMaxRoutes); }},
    Field<Limits>{"uncached-lists", read_uncached_lists},
};

constexpr std::array kIcmpFields{
    Field<Icmp>{
        "error-rate",
        [](Reader& r, const Node& n, Icmp& i) { r.integer(n, i.error_rate, 0, 1'000'000); }},
    Field<Icmp>{
        "error-burst",
        [](Reader& r, const Node& n, Icmp& i) { r.integer(n, i.error_burst, 1, 1'000'000); }},
};

/// routes and neighbors are there already when the rest of their netns is read (see TreeEvents).
void expect_list(Reader& r, const Node& node, Netns& /*netns*/) {
    r.list(node);
}

constexpr std::array kNetnsFields{
    Field<Netns>{"ports", read_ports},
    Field<Netns>{"vlans", read_vlans},
    Field<Netns>{"vrfs", read_vrfs},
    Field<Netns>{"nexthops", read_nexthops},
    Field<Netns>{"routes", expect_list},
    Field<Netns>{"routing-policy", read_rules},
    Field<Netns>{"multipath-hash", read_multipath_hash},
    Field<Netns>{"neighbors", expect_list},
};

void read_netns(Reader& r, const Node& node, Config& config) {
    const auto items = r.map(node);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        std::string name;
        if (r.name(items[i], name)) {
            if (name == "default") {
                r.error(items[i].at,
                        "'default' is the netns of the top level: choose another name");
                continue;
            }
            Netns& netns = config.netns[name];
            netns.at = items[i].at;
            read_map(r, items[i + 1], "netns", kNetnsFields, netns);
        }
    }
}

void read_version(Reader& r, const Node& node, Config& /*config*/) {
    std::uint32_t version = 0;
    r.integer(node, version, 1, 1);
}

/// The keys of the top level's netns.
template <std::size_t... kIndexes>
constexpr std::array<Field<Config>, sizeof...(kIndexes)> in_default(
    std::index_sequence<kIndexes...> /*of kNetnsFields*/) {
    return {Field<Config>{kNetnsFields[kIndexes].key, [](Reader& r, const Node& n, Config& c) {
                              kNetnsFields[kIndexes].read(r, n, c.default_netns);
                          }}...};
}

constexpr std::array kInstanceFields{
    Field<Config>{"version", read_version, kRequired},
    Field<Config>{"instance",
                  [](Reader& r, const Node& n, Config& c) {
                      c.instance_at = n.at;
                      r.name(n, c.instance);
                  }},
    Field<Config>{"dpdk",
                  [](Reader& r, const Node& n, Config& c) {
                      c.dpdk.at = n.at;
                      read_map(r, n, "dpdk", kDpdkFields, c.dpdk);
                  }},
    Field<Config>{"workers",
                  [](Reader& r, const Node& n, Config& c) {
                      c.workers.at = n.at;
                      read_map(r, n, "workers", kWorkersFields, c.workers);
                  }},
    Field<Config>{"control",
                  [](Reader& r, const Node& n, Config& c) {
                      c.control.at = n.at;
                      read_map(r, n, "control", kControlFields, c.control);
                  }},
    Field<Config>{"limits",
                  [](Reader& r, const Node& n, Config& c) {
                      c.limits.at = n.at;
                      read_map(r, n, "limits", kLimitsFields, c.limits);
                  }},
    Field<Config>{
        "icmp",
        [](Reader& r, const Node& n, Config& c) { read_map(r, n, "icmp", kIcmpFields, c.icmp); }},
    Field<Config>{"forward-class-e",
                  [](Reader& r, const Node& n, Config& c) { r.boolean(n, c.forward_class_e); }},
    Field<Config>{"netns", read_netns},
};
constexpr auto kConfigFields =
    concat(kInstanceFields, in_default(std::make_index_sequence<kNetnsFields.size()>{}));

std::string_view stem(std::string_view path) {
    const auto slash = path.rfind('/');
    path = slash == std::string_view::npos ? path : path.substr(slash + 1);
    return path.substr(0, path.rfind('.'));
}

void resolve_names(Reader& r, Config& config, std::string_view file_name) {
    if (config.instance.empty() && config.instance_at.line == 0) {
        config.instance = stem(file_name);
        if (!is_name(config.instance)) {
            r.error({}, "no instance name can be made of the file's: add instance: NAME");
        }
    }
    if (config.control.socket.empty()) {
        config.control.socket = "/run/sluice/" + config.instance + ".sock";
    }
}

/// Simple items come before all others of their list.
template <class T>
void sort_by_position(std::vector<T>& items) {
    const auto earlier = [](const T& a, const T& b) {
        return std::tie(a.at.line, a.at.column) < std::tie(b.at.line, b.at.column);
    };
    if (!std::is_sorted(items.begin(), items.end(), earlier)) {
        std::sort(items.begin(), items.end(), earlier);
    }
}

void resolve_vlans(Config& config, std::string_view own, Netns& netns) {
    for (auto& [name, vlan] : netns.vlans) {
        if (vlan.link_netns == own) {
            vlan.link_netns.clear();
        }
        if (vlan.settings.mtu == 0) {
            const Netns* there = find_netns(config, netns_of_port(vlan, own));
            const Port* port = there == nullptr ? nullptr : find_port(*there, vlan.link);
            vlan.settings.mtu = port == nullptr ? kDefaultMtu : port->settings.mtu;
        }
    }
}

void resolve_netns(Reader& r, Config& config, std::string_view name, Netns& netns) {
    sort_by_position(netns.routes);
    sort_by_position(netns.neighbors);
    resolve_vlans(config, name, netns);
    resolve_routes(r, netns);
}

/// What was read, and what is wrong with it.
struct Outcome {
    Config config;
    std::vector<ConfigError> errors;
    bool netdevs_complete = true;
};

Outcome read(std::string_view text, std::string_view file_name) {
    Outcome outcome;
    Config& config = outcome.config;
    Reader r{file_name};
    const TreeEvents events{
        .on_item =
            [&](std::string_view netns, std::string_view list, const Node& item) {
                Netns& target =
                    netns.empty() ? config.default_netns : config.netns[std::string{netns}];
                const auto outer = r.swap_key(list);
                list == "routes" ? read_route(r, item, target) : read_neighbor(r, item, target);
                r.swap_key(outer);
                return !r.full();
            },
        .on_error = [&](Position at,
                        std::string what) { return r.report_plain(at, std::move(what)); },
    };
    const Tree tree = read_tree(text, events);
    if (!tree.complete) {
        r.stopped_early();
        r.netdevs_complete = false;
    }
    read_map(r, tree.root, "netns", kConfigFields, config);
    resolve_names(r, config, file_name);
    resolve_netns(r, config, kDefaultNetns, config.default_netns);
    for (auto& [name, netns] : config.netns) {
        resolve_netns(r, config, name, netns);
    }
    config.origin.file = file_name;
    outcome.netdevs_complete = r.netdevs_complete;
    outcome.errors = r.take_errors();
    return outcome;
}

}  // namespace

std::string Endpoint::to_string() const {
    return fmt::format(
        fmt::runtime(address.is_v6() ? "[{}]:{}" : "{}:{}"), address.to_string(), port);
}

Checked<Config> parse(std::string_view text, std::string_view file_name) {
    auto outcome = read(text, file_name);
    if (!outcome.errors.empty()) {
        return std::unexpected(std::move(outcome.errors));
    }
    return std::move(outcome.config);
}

Checked<Config> load(std::string_view text, std::string_view file_name) {
    auto outcome = read(text, file_name);
    resolve_gateways(outcome.config);
    auto more =
        outcome.netdevs_complete ? validate(outcome.config) : validate_netdevs(outcome.config);
    auto& errors = outcome.errors;
    errors.insert(
        errors.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    sort_errors(errors);
    if (errors.size() > kMaxErrors) {
        const ConfigError last = errors[kMaxErrors];
        errors.resize(kMaxErrors);
        errors.push_back({last.file,
                          last.line,
                          last.column,
                          fmt::format("more than {} errors: the rest is left out", kMaxErrors)});
    }
    if (!errors.empty()) {
        return std::unexpected(std::move(errors));
    }
    return std::move(outcome.config);
}

void add_config_keys(KeyTables& tables) {
    tables["config"] = keys_of(kConfigFields);
    tables["netns"] = keys_of(kNetnsFields);
    tables["dpdk"] = keys_of(kDpdkFields);
    tables["workers"] = keys_of(kWorkersFields);
    tables["control"] = keys_of(kControlFields);
    tables["limits"] = keys_of(kLimitsFields);
    tables["icmp"] = keys_of(kIcmpFields);
}

KeyTables key_tables() {
    KeyTables tables;
    add_config_keys(tables);
    add_netdev_keys(tables);
    add_nexthop_keys(tables);
    add_policy_keys(tables);
    add_route_keys(tables);
    return tables;
}

}  // namespace sluice::config
