// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <string>

#include "config/read_parts.h"

namespace sluice::config {
namespace {

constexpr std::array<Choice<SourceValidation>, 3> kSourceValidation{{
    {"off", SourceValidation::kOff},
    {"loose", SourceValidation::kLoose},
    {"strict", SourceValidation::kStrict},
}};

constexpr std::size_t kMaxDeviceBytes = 1024;
constexpr std::uint16_t kMaxRxQueues = 64;

/// What an interface cannot be called by: the rest follows from what the address is in its network.
std::string_view wrong_with(const net::InterfaceAddr& a) {
    if (a.address.is_v6()) {
        const auto& v6 = a.address.v6();
        if (v6.is_unspecified()) {
            return "the unspecified address";
        }
        return v6.is_multicast()  ? "a multicast address"
               : v6.is_loopback() ? "the loopback address"
                                  : "";
    }
    const auto& v4 = a.address.v4();
    if (v4.is_this_network()) {
        return "in 0.0.0.0/8";
    }
    if (v4.is_multicast()) {
        return "a multicast address";
    }
    if (v4.is_limited_broadcast() || a.broadcast() == v4) {
        return "the broadcast address";
    }
    return a.length < 31 && a.network().v4().address == v4 ? "the network's own address" : "";
}

void read_addresses(Reader& r, const Node& node, std::vector<Address>& out) {
    for (const Node& item : r.list(node)) {
        Address address{{}, item.at};
        if (!r.parsed(item, address.value, "10.0.0.1/24 or \"fd00::1/64\"")) {
            continue;
        }
        if (address.value.length == 0) {
            r.error(item.at,
                    "{}: a prefix length of 0 makes everything on-link: write the subnet's",
                    address.value.to_string());
        } else if (const auto wrong = wrong_with(address.value); !wrong.empty()) {
            r.error(item.at,
                    "{} is {}: write a host's unicast address",
                    address.value.to_string(),
                    wrong);
        } else {
            out.push_back(address);
        }
    }
}

void read_learn(Reader& r, const Node& node, LearnUnsolicited& out) {
    std::uint8_t value = 0;
    if (r.integer(node, value, 0, 2)) {
        out = static_cast<LearnUnsolicited>(value);
    }
}

/// T is Port or Vlan.
template <class T>
constexpr std::array kNetdevFields{
    Field<T>{"addresses",
             [](Reader& r, const Node& n, T& t) { read_addresses(r, n, t.addresses); }},
    Field<T>{
        "mtu",
        [](Reader& r, const Node& n, T& t) { r.integer(n, t.settings.mtu, kMinMtu, kMaxMtu); }},
    Field<T>{"mac",
             [](Reader& r, const Node& n, T& t) {
                 net::MacAddr mac;
                 if (read_unicast_mac(r, n, mac)) {
                     t.settings.mac = mac;
                 }
             }},
    Field<T>{"up", [](Reader& r, const Node& n, T& t) { r.boolean(n, t.settings.up); }},
    Field<T>{"forwarding",
             [](Reader& r, const Node& n, T& t) { r.boolean(n, t.settings.forwarding); }},
    Field<T>{"send-redirects",
             [](Reader& r, const Node& n, T& t) { r.boolean(n, t.settings.send_redirects); }},
    Field<T>{"source-validation",
             [](Reader& r, const Node& n, T& t) {
                 r.choice(n, t.settings.source_validation, kSourceValidation);
             }},
    Field<T>{"route-localnet",
             [](Reader& r, const Node& n, T& t) { r.boolean(n, t.settings.route_localnet); }},
    Field<T>{"bc-forwarding",
             [](Reader& r, const Node& n, T& t) { r.boolean(n, t.settings.bc_forwarding); }},
    Field<T>{"accept-ra",
             [](Reader& r, const Node& n, T& t) { r.boolean(n, t.settings.accept_ra); }},
    Field<T>{"arp-accept",
             [](Reader& r, const Node& n, T& t) { read_learn(r, n, t.settings.arp_accept); }},
    Field<T>{
        "accept-untracked-na",
        [](Reader& r, const Node& n, T& t) { read_learn(r, n, t.settings.accept_untracked_na); }},
    Field<T>{"drop-unsolicited-na",
             [](Reader& r, const Node& n, T& t) { r.boolean(n, t.settings.drop_unsolicited_na); }},
    Field<T>{"promiscuous",
             [](Reader& r, const Node& n, T& t) { r.boolean(n, t.settings.promiscuous); }},
    Field<T>{"mark", [](Reader& r, const Node& n, T& t) { r.integer(n, t.settings.mark); }},
};

void read_device(Reader& r, const Node& node, Port& port) {
    std::string device;
    if (!r.text(node, device)) {
        return;
    }
    const bool printable =
        std::all_of(device.begin(), device.end(), [](char c) { return c > ' ' && c < 0x7f; });
    if (!printable || device.size() > kMaxDeviceBytes || device.front() == ',') {
        r.error(node.at,
                "'{}' is no device: write a PCI address like 0000:03:00.0 or devargs like "
                "net_tap0,iface=tap0, without blanks",
                device);
        return;
    }
    port.device = device;
}

constexpr std::array kPortFields = concat(
    std::array{
        Field<Port>{"device", read_device, kRequired},
        Field<Port>{"rx-queues",
                    [](Reader& r, const Node& n, Port& p) {
                        std::uint16_t queues = 0;
                        if (r.integer(n, queues, 1, kMaxRxQueues)) {
                            p.rx_queues = queues;
                        }
                    }},
    },
    kNetdevFields<Port>);

constexpr std::array kVlanFields = concat(
    std::array{
        Field<Vlan>{
            "link", [](Reader& r, const Node& n, Vlan& v) { r.name(n, v.link); }, kRequired},
        Field<Vlan>{"link-netns",
                    [](Reader& r, const Node& n, Vlan& v) { r.name(n, v.link_netns); }},
        // IEEE 802.1Q 9.6: 0 is a priority tag, 4095 is reserved.
        Field<Vlan>{"id",
                    [](Reader& r, const Node& n, Vlan& v) { r.integer(n, v.id, 1, 4094); },
                    kRequired},
    },
    kNetdevFields<Vlan>);

constexpr std::array kVrfFields{
    Field<Vrf>{
        "table", [](Reader& r, const Node& n, Vrf& v) { read_table(r, n, v.table); }, kRequired},
    Field<Vrf>{"interfaces",
               [](Reader& r, const Node& n, Vrf& v) {
                   for (const Node& item : r.list(n)) {
                       std::string name;
                       if (r.name(item, name)) {
                           v.interfaces.push_back(name);
                       }
                   }
               }},
};

/// Reads a mapping of names to things. An item with errors stays in, so that its name is known.
template <class T, std::size_t N>
void read_named(Reader& r,
                const Node& node,
                std::string_view kind,
                const std::array<Field<T>, N>& fields,
                const T& blank,
                std::map<std::string, T>& out) {
    const auto errors_before = r.error_count();
    const auto items = r.map(node);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        std::string name;
        if (!r.name(items[i], name)) {
            continue;
        }
        T item = blank;
        item.at = items[i].at;
        // "device is missing" is best said at the name.
        Node body = items[i + 1];
        body.at = items[i].at;
        const auto outer = r.swap_key(name);
        read_map(r, body, kind, fields, item);
        r.swap_key(outer);
        out.emplace(std::move(name), std::move(item));
    }
    if (r.error_count() != errors_before) {
        r.netdevs_complete = false;
    }
}

}  // namespace

bool read_unicast_mac(Reader& r, const Node& node, net::MacAddr& mac) {
    net::MacAddr value;
    if (!r.parsed(node, value, "02:00:00:00:00:01")) {
        return false;
    }
    if (value.is_group() || value.is_zero()) {
        r.error(node.at,
                "{} is {}: write a host's, its first byte even",
                value.to_string(),
                value.is_zero() ? "all zero" : "a group address");
        return false;
    }
    mac = value;
    return true;
}

void read_ports(Reader& r, const Node& node, Netns& netns) {
    read_named(r, node, "port", kPortFields, Port{}, netns.ports);
}

void read_vlans(Reader& r, const Node& node, Netns& netns) {
    Vlan blank;
    blank.settings.mtu = 0;  // until it is known what the port's is
    read_named(r, node, "vlan", kVlanFields, blank, netns.vlans);
}

void read_vrfs(Reader& r, const Node& node, Netns& netns) {
    read_named(r, node, "vrf", kVrfFields, Vrf{}, netns.vrfs);
}

void add_netdev_keys(KeyTables& tables) {
    tables["port"] = keys_of(kPortFields);
    tables["vlan"] = keys_of(kVlanFields);
    tables["vrf"] = keys_of(kVrfFields);
}

}  // namespace sluice::config
