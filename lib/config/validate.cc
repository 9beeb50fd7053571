// SPDX-License-Identifier: BSD-3-Clause
#include "config/validate.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "config/config.h"
#include "config/netns.h"
#include "config/spelling.h"

namespace sluice::config {
namespace {

/// "net_tap0" of "net_tap0,iface=tap0"; a PCI address with its domain.
std::string device_identity(std::string_view device) {
    const auto id = device.substr(0, device.find(','));
    const bool short_pci = id.size() == 7 && id[2] == ':' && id[5] == '.';
    return (short_pci ? "0000:" : "") + std::string{id};
}

constexpr std::array<std::string_view, 2> kReservedNames{"lo", "blackhole"};

void check_names(const Netns& netns, Findings& findings) {
    std::map<std::string_view, Position> taken;
    const auto claim = [&](std::string_view name, Position at) {
        if (std::find(kReservedNames.begin(), kReservedNames.end(), name) != kReservedNames.end()) {
            findings.add(at, "'{}' is a netdev that every netns has: choose another name", name);
        }
        const auto [first, is_new] = taken.try_emplace(name, at);
        if (!is_new) {
            findings.add(at,
                         "the name '{}' is taken at line {} column {}: choose another",
                         name,
                         first->second.line,
                         first->second.column);
        }
    };
    for (const auto& [name, port] : netns.ports) {
        claim(name, port.at);
    }
    for (const auto& [name, vlan] : netns.vlans) {
        claim(name, vlan.at);
    }
    for (const auto& [name, vrf] : netns.vrfs) {
        claim(name, vrf.at);
    }
}

/// The port of a vlan; null, and a finding, when there is none.
const Port* port_of(const std::string& name,
                    const Vlan& vlan,
                    std::string_view own,
                    const Config& config,
                    Findings& findings) {
    const Netns* netns = find_netns(config, netns_of_port(vlan, own));
    if (netns == nullptr) {
        findings.add(vlan.at,
                     "{}: link-netns '{}' is no netns here: write default, or one under netns",
                     name,
                     vlan.link_netns);
        return nullptr;
    }
    const Port* port = find_port(*netns, vlan.link);
    if (port == nullptr) {
        std::vector<std::string_view> ports;
        for (const auto& [other, value] : netns->ports) {
            if (ports.size() < kMaxGuessed) {
                ports.push_back(other);
            }
        }
        const auto close = nearest(vlan.link, ports);
        findings.add(vlan.at,
                     "{}: link '{}' is no port {}{}",
                     name,
                     vlan.link,
                     vlan.link_netns.empty() ? "here" : "of " + vlan.link_netns,
                     close.empty() ? ": add it, or name another"
                                   : fmt::format(": did you mean '{}'?", close));
    }
    return port;
}

/// Over all netns, as a vlan's port may be in another.
void check_vlans(const Config& config, Findings& findings) {
    std::map<std::pair<const Port*, std::uint16_t>, Position> ids;
    for_each_netns(config, [&](std::string_view own, const Netns& netns) {
        for (const auto& [name, vlan] : netns.vlans) {
            const Port* port = port_of(name, vlan, own, config, findings);
            if (port == nullptr) {
                continue;
            }
            const auto [first, is_new] = ids.try_emplace({port, vlan.id}, vlan.at);
            if (!is_new) {
                findings.add(vlan.at,
                             "{}: {} has vlan {} already, at line {} column {}: choose another id",
                             name,
                             vlan.link,
                             vlan.id,
                             first->second.line,
                             first->second.column);
            }
            const auto limit = port->settings.mtu;
            if (vlan.settings.mtu > limit) {
                findings.add(vlan.at,
                             "{}: mtu {} is more than its port {} has: at most {}",
                             name,
                             vlan.settings.mtu,
                             vlan.link,
                             limit);
            }
        }
    });
}

void check_addresses(const Netns& netns, Findings& findings) {
    struct Place {
        std::string_view netdev;
        Position at;
    };
    const Masters masters = masters_of(netns);
    // In another vrf, an address is another host's (check 73).
    std::map<std::pair<std::string_view, net::IpAddr>, Place> taken;
    const auto check = [&](std::string_view name,
                           Position at,
                           const NetdevSettings& settings,
                           const std::vector<Address>& addresses) {
        bool has_v6 = false;
        const auto master = masters.find(name);
        const auto vrf = master == masters.end() ? std::string_view{} : master->second;
        for (const Address& address : addresses) {
            has_v6 = has_v6 || address.value.address.is_v6();
            if (address.value.address.is_v4() && address.value.address.v4().is_loopback() &&
                !settings.route_localnet) {
                findings.add(address.at,
                             "{} is a loopback address: write a host's unicast address, or "
                             "route-localnet: true on {}",
                             address.value.to_string(),
                             name);
            }
            const auto [first, is_new] =
                taken.try_emplace({vrf, address.value.address}, Place{name, address.at});
            if (!is_new) {
                findings.add(address.at,
                             "{} is on {} already, at line {} column {}: one place for an address",
                             address.value.address.to_string(),
                             first->second.netdev,
                             first->second.at.line,
                             first->second.at.column);
            }
        }
        if (has_v6 && settings.mtu < kMinIpv6Mtu) {
            findings.add(at,
                         "{}: mtu {} with an IPv6 address: at least {} (RFC 8200 5)",
                         name,
                         settings.mtu,
                         kMinIpv6Mtu);
        }
    };
    for (const auto& [name, port] : netns.ports) {
        check(name, port.at, port.settings, port.addresses);
    }
    for (const auto& [name, vlan] : netns.vlans) {
        check(name, vlan.at, vlan.settings, vlan.addresses);
    }
}

/// Devices and MACs are the machine's, whatever netns a port is in.
void check_devices(const Config& config, Findings& findings) {
    std::map<std::string, Position> devices;
    std::map<net::MacAddr, Position> macs;
    const auto workers = std::max<std::size_t>(config.dpdk.lcores.size(), 2) - 1;
    for_each_netns(config, [&](std::string_view /*name*/, const Netns& netns) {
        for (const auto& [name, port] : netns.ports) {
            const auto id = device_identity(port.device);
            const auto [first, is_new] = devices.try_emplace(id, port.at);
            if (!is_new && !id.empty()) {
                findings.add(
                    port.at,
                    "{}: the device {} is a port already, at line {} column {}: one port a device",
                    name,
                    id,
                    first->second.line,
                    first->second.column);
            }
            if (port.settings.mac) {
                const auto [owner, fresh] = macs.try_emplace(*port.settings.mac, port.at);
                if (!fresh) {
                    findings.add(
                        port.at,
                        "{}: the mac {} is another port's, at line {} column {}: give each its own",
                        name,
                        port.settings.mac->to_string(),
                        owner->second.line,
                        owner->second.column);
                }
            }
            if (port.rx_queues && *port.rx_queues > workers) {
                findings.add(port.at,
                             "{}: rx-queues {} for {} worker(s): at most one queue a worker; add "
                             "lcores or lower it",
                             name,
                             *port.rx_queues,
                             workers);
            }
        }
    });
}

}  // namespace

std::vector<ConfigError> Findings::take() {
    sort_errors(errors_);
    return std::move(errors_);
}

void sort_errors(std::vector<ConfigError>& errors) {
    std::stable_sort(errors.begin(), errors.end(), [](const auto& a, const auto& b) {
        return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    });
}

void check_netdevs(const Config& config, Findings& findings) {
    check_devices(config, findings);
    check_vlans(config, findings);
    for_each_netns(config, [&](std::string_view /*name*/, const Netns& netns) {
        check_names(netns, findings);
        check_addresses(netns, findings);
    });
}

void check_limits(const Config& config, Findings& findings) {
    std::size_t v4 = 0;
    std::size_t v6 = 0;
    std::size_t neighbors = 0;
    for_each_netns(config, [&](std::string_view /*name*/, const Netns& netns) {
        for (const Route& route : netns.routes) {
            ++(route.to.is_v4() ? v4 : v6);
        }
        neighbors += netns.neighbors.size();
    });
    const auto check = [&](std::size_t count, std::uint32_t limit, std::string_view key) {
        if (count > limit) {
            findings.add(config.limits.at,
                         "limits: {} {} are in this file, the limit is {}: raise limits.{}",
                         count,
                         key,
                         limit,
                         key);
        }
    };
    check(v4, config.limits.ipv4_routes, "ipv4-routes");
    check(v6, config.limits.ipv6_routes, "ipv6-routes");
    check(neighbors, config.limits.neighbors, "neighbors");
}

std::vector<ConfigError> validate_netdevs(const Config& config) {
    Findings findings{config};
    check_netdevs(config, findings);
    return findings.take();
}

std::vector<ConfigError> validate(const Config& config) {
    Findings findings{config};
    check_netdevs(config, findings);
    check_limits(config, findings);
    for_each_netns(config, [&](std::string_view /*name*/, const Netns& netns) {
        check_routes(netns, findings);
        check_references(netns, findings);
    });
    return findings.take();
}

}  // namespace sluice::config
