// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/config.h"
#include "config/hash_fields.h"
#include "config/protocol.h"
#include "config/spelling.h"

namespace sluice::config {
namespace {

/// Always in quotes, so that other YAML readers, too, take MACs, names like `no` and IPv6 addresses
/// for strings.
std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            result += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
        } else {
            result += c;
        }
    }
    return result + '"';
}

/// In quotes only where other YAML readers would not see a string.
std::string name_of(std::string_view text) {
    const bool letter =
        !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0;
    const bool special =
        boolean_of_other_yaml(text) || text == "null" || text == "Null" || text == "NULL";
    return letter && !special && is_name(text) ? std::string{text} : quoted(text);
}

template <class Range, class Fn>
std::string list_of(const Range& range, Fn&& text) {
    std::vector<std::string> items;
    for (const auto& item : range) {
        items.push_back(text(item));
    }
    return fmt::format("[{}]", fmt::join(items, ", "));
}

constexpr std::array<std::string_view, 3> kSourceValidationWords{"off", "loose", "strict"};
constexpr std::array<std::string_view, 5> kRouteTypeWords{
    "unicast", "blackhole", "unreachable", "prohibit", "local"};

constexpr std::array<std::string_view, 3> kCacheWords{"off", "auto", "on"};
constexpr std::array<std::string_view, 4> kRuleTypeWords{
    "table", "blackhole", "unreachable", "prohibit"};
constexpr std::array<std::string_view, 3> kHashPolicyWords{"l3", "l4", "custom"};
/// The keys and values of a mapping on one line.
class Pairs {
public:
    template <class... Args>
    void add(fmt::format_string<Args...> format, Args&&... args) {
        inner_ += inner_.empty() ? "" : ", ";
        fmt::format_to(std::back_inserter(inner_), format, std::forward<Args>(args)...);
    }
    const std::string& inner() const { return inner_; }
    std::string text() const { return "{" + inner_ + "}"; }

private:
    std::string inner_;
};

class Emitter {
public:
    std::string run(const Config& config) {
        instance(config);
        netns(config.default_netns);
        line("netns:{}", config.netns.empty() ? " {}" : "");
        for (const auto& [name, content] : config.netns) {
            indent_ = "  ";
            line("{}:", name_of(name));
            indent_ = "    ";
            netns(content);
        }
        return std::move(text_);
    }

private:
    template <class... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
        text_ += indent_;
        fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
        text_ += '\n';
    }

    void instance(const Config& c) {
        line("version: 1");
        line("instance: {}", name_of(c.instance));
        line("dpdk:");
        line("  lcores: [{}]", fmt::join(c.dpdk.lcores, ", "));
        line("  hugepages: {}", c.dpdk.hugepages);
        line("  memory-mb: {}", c.dpdk.memory_mb);
        line("  extra-args: {}", list_of(c.dpdk.extra_args, quoted));
        line("workers:");
        line("  idle: {}", c.workers.idle == IdleMode::kPoll ? "poll" : "adaptive");
        line("  burst: {}", c.workers.burst);
        line("  cache: {}", kCacheWords[std::to_underlying(c.workers.cache)]);
        line("  cache-entries: {}", c.workers.cache_entries);
        line("control:");
        line("  socket: {}", quoted(c.control.socket));
        line("limits:");
        line("  ipv4-routes: {}", c.limits.ipv4_routes);
        line("  ipv6-routes: {}", c.limits.ipv6_routes);
        line("  neighbors: {}", c.limits.neighbors);
        line("  uncached-lists: {}", c.limits.uncached_lists);
        line("icmp:");
        line("  error-rate: {}", c.icmp.error_rate);
        line("  error-burst: {}", c.icmp.error_burst);
        line("forward-class-e: {}", c.forward_class_e);
    }

    void netns(const Netns& n) {
        line("ports:{}", n.ports.empty() ? " {}" : "");
        for (const auto& [name, port] : n.ports) {
            line("  {}:", name_of(name));
            line("    device: {}", quoted(port.device));
            if (port.rx_queues) {
                line("    rx-queues: {}", *port.rx_queues);
            }
            netdev(port.settings, port.addresses);
        }
        line("vlans:{}", n.vlans.empty() ? " {}" : "");
        for (const auto& [name, vlan] : n.vlans) {
            line("  {}:", name_of(name));
            line("    link: {}", name_of(vlan.link));
            if (!vlan.link_netns.empty()) {
                line("    link-netns: {}", name_of(vlan.link_netns));
            }
            line("    id: {}", vlan.id);
            netdev(vlan.settings, vlan.addresses);
        }
        line("vrfs:{}", n.vrfs.empty() ? " {}" : "");
        for (const auto& [name, vrf] : n.vrfs) {
            line("  {}: {{table: {}, interfaces: {}}}",
                 name_of(name),
                 vrf.table,
                 list_of(vrf.interfaces, name_of));
        }
        line("nexthops:{}", n.nexthops.empty() ? " {}" : "");
        for (const auto& [id, hop] : n.nexthops) {
            nexthop(id, hop);
        }
        line("routes:{}", n.routes.empty() ? " []" : "");
        for (const Route& r : n.routes) {
            route(r);
        }
        line("routing-policy:{}", n.routing_policy.empty() ? " []" : "");
        for (const Rule& r : n.routing_policy) {
            rule(r);
        }
        line("multipath-hash:");
        hash("ipv4", n.multipath_hash4);
        hash("ipv6", n.multipath_hash6);
        line("neighbors:{}", n.neighbors.empty() ? " []" : "");
        for (const Neighbor& v : n.neighbors) {
            line("  - {{to: {}, dev: {}, lladdr: {}}}",
                 quoted(v.to.to_string()),
                 name_of(v.dev),
                 quoted(v.lladdr.to_string()));
        }
    }

    void netdev(const NetdevSettings& s, const std::vector<Address>& addresses) {
        if (s.mac) {
            line("    mac: {}", quoted(s.mac->to_string()));
        }
        line("    mtu: {}", s.mtu);
        line("    up: {}", s.up);
        line("    addresses: {}",
             list_of(addresses, [](const Address& a) { return quoted(a.value.to_string()); }));
        line("    forwarding: {}", s.forwarding);
        line("    send-redirects: {}", s.send_redirects);
        line("    source-validation: {}",
             kSourceValidationWords[std::to_underlying(s.source_validation)]);
        line("    route-localnet: {}", s.route_localnet);
        line("    bc-forwarding: {}", s.bc_forwarding);
        line("    accept-ra: {}", s.accept_ra);
        line("    arp-accept: {}", std::to_underlying(s.arp_accept));
        line("    accept-untracked-na: {}", std::to_underlying(s.accept_untracked_na));
        line("    drop-unsolicited-na: {}", s.drop_unsolicited_na);
        line("    promiscuous: {}", s.promiscuous);
        line("    mark: {}", s.mark);
    }

    void nexthop(std::uint32_t id, const NextHop& hop) {
        Pairs pairs;
        if (hop.blackhole) {
            pairs.add("type: blackhole");
        }
        if (!hop.group.empty()) {
            pairs.add("group: {{{}}}", list_of_group(hop.group));
        }
        if (hop.resilient) {
            pairs.add("resilient: {{buckets: {}, idle-timer: {}ms}}",
                      hop.resilient->buckets,
                      hop.resilient->idle_timer.count());
        }
        way(pairs, hop.via, hop.dev, hop.on_link);
        line("  {}: {}", id, pairs.text());
    }

    static std::string list_of_group(const std::map<std::uint32_t, std::uint32_t>& group) {
        Pairs members;
        for (const auto& [id, weight] : group) {
            members.add("{}: {}", id, weight);
        }
        return members.inner();
    }

    static void way(Pairs& pairs,
                    const std::optional<net::IpAddr>& via,
                    const std::string& dev,
                    bool on_link) {
        if (via) {
            pairs.add("via: {}", quoted(via->to_string()));
        }
        if (!dev.empty()) {
            pairs.add("dev: {}", name_of(dev));
        }
        if (on_link) {
            pairs.add("on-link: true");
        }
    }

    void route(const Route& r) {
        Pairs pairs;
        pairs.add("to: {}", quoted(r.to.to_string()));
        if (r.type != RouteType::kUnicast) {
            pairs.add("type: {}", kRouteTypeWords[std::to_underlying(r.type)]);
        }
        if (r.nexthop) {
            pairs.add("nexthop: {}", *r.nexthop);
        }
        way(pairs, r.via, r.dev, r.on_link);
        if (r.mtu != 0) {
            pairs.add("mtu: {}", r.mtu);
        }
        pairs.add("metric: {}", r.metric);
        if (r.table != kMainTable) {
            pairs.add("table: {}", r.table);
        }
        line("  - {}", pairs.text());
    }

    void rule(const Rule& r) {
        Pairs pairs;
        pairs.add("priority: {}", r.priority);
        pairs.add("family: {}", net::to_string(r.family));
        if (r.from) {
            pairs.add("from: {}", quoted(r.from->to_string()));
        }
        if (r.to) {
            pairs.add("to: {}", quoted(r.to->to_string()));
        }
        if (!r.iif.empty()) {
            pairs.add("iif: {}", name_of(r.iif));
        }
        if (r.dscp) {
            pairs.add("dscp: {}", *r.dscp);
        }
        if (r.mark) {
            pairs.add("mark: {}", *r.mark);
        }
        if (r.protocol) {
            pairs.add("protocol: {}", protocol_text(*r.protocol));
        }
        if (r.source_ports) {
            pairs.add("sport: {}-{}", r.source_ports->first, r.source_ports->last);
        }
        if (r.destination_ports) {
            pairs.add("dport: {}-{}", r.destination_ports->first, r.destination_ports->last);
        }
        switch (r.action) {
            case RuleAction::kTable:
                pairs.add("table: {}", r.table);
                break;
            case RuleAction::kBlackhole:
            case RuleAction::kUnreachable:
            case RuleAction::kProhibit:
                pairs.add("type: {}", kRuleTypeWords[std::to_underlying(r.action)]);
                break;
            case RuleAction::kSetMark:
                pairs.add("set-mark: {}", r.set_mark);
                break;
        }
        if (r.suppress_prefixlength) {
            pairs.add("suppress-prefixlength: {}", *r.suppress_prefixlength);
        }
        line("  - {}", pairs.text());
    }

    void hash(std::string_view family, const MultipathHash& hash) {
        Pairs pairs;
        pairs.add("policy: {}", kHashPolicyWords[std::to_underlying(hash.policy)]);
        std::vector<std::string_view> fields;
        for (const auto& [word, field] : kHashFields) {
            if (hash.fields.*field) {
                fields.push_back(word);
            }
        }
        if (!fields.empty()) {
            pairs.add("fields: [{}]", fmt::join(fields, ", "));
        }
        line("  {}: {}", family, pairs.text());
    }

    std::string indent_;
    std::string text_;
};

}  // namespace

std::string emit(const Config& config) {
    return Emitter{}.run(config);
}

}  // namespace sluice::config
