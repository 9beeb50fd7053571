// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/config.h"
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

class Emitter {
public:
    std::string run(const Config& config) {
        instance(config);
        netns(config.default_netns);
        return std::move(text_);
    }

private:
    template <class... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
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
        line("control:");
        line("  socket: {}", quoted(c.control.socket));
        line("limits:");
        line("  ipv4-routes: {}", c.limits.ipv4_routes);
        line("  ipv6-routes: {}", c.limits.ipv6_routes);
        line("  neighbors: {}", c.limits.neighbors);
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
            line("    id: {}", vlan.id);
            netdev(vlan.settings, vlan.addresses);
        }
        line("routes:{}", n.routes.empty() ? " []" : "");
        for (const Route& r : n.routes) {
            route(r);
        }
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
    }

    void route(const Route& r) {
        std::string rest;
        const auto out = std::back_inserter(rest);
        if (r.type != RouteType::kUnicast) {
            fmt::format_to(out, ", type: {}", kRouteTypeWords[std::to_underlying(r.type)]);
        }
        if (r.via) {
            fmt::format_to(out, ", via: {}", quoted(r.via->to_string()));
        }
        if (!r.dev.empty()) {
            fmt::format_to(out, ", dev: {}", name_of(r.dev));
        }
        if (r.on_link) {
            rest += ", on-link: true";
        }
        if (r.mtu != 0) {
            fmt::format_to(out, ", mtu: {}", r.mtu);
        }
        line("  - {{to: {}{}, metric: {}}}", quoted(r.to.to_string()), rest, r.metric);
    }

    std::string text_;
};

}  // namespace

std::string emit(const Config& config) {
    return Emitter{}.run(config);
}

}  // namespace sluice::config
