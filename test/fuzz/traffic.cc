// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/traffic.h"

#include <algorithm>
#include <utility>

#include "fuzz/plan.h"
#include "net/wire.h"

namespace sluice::test::fuzz {

namespace {

constexpr std::uint32_t kFlows = 48;
constexpr std::uint64_t kFlowsStream = 0x666c6f77;

net::Ipv4Addr remote4(Dice& dice) {
    return ip(dice.of(kRemote4)).v4();
}
net::Ipv6Addr remote6(Dice& dice) {
    return ip(dice.of(kRemote6)).v6();
}

/// From whom a packet of the link `in` may plausibly come.
net::Ipv4Addr near4(const fib::NetdevView& in, Dice& dice) {
    if (in.addresses4.empty()) {
        return host4(dice.below(kLinks), dice.from(2, 6));
    }
    net::Ipv4Addr address = dice.of(in.addresses4).address;
    address.bytes[3] = static_cast<std::uint8_t>(dice.from(2, 6));
    return address;
}
net::Ipv6Addr near6(const fib::NetdevView& in, Dice& dice) {
    if (in.addresses6.empty()) {
        return host6(dice.below(kLinks), dice.from(2, 6));
    }
    net::Ipv6Addr address = dice.of(in.addresses6).address;
    address.bytes[15] = static_cast<std::uint8_t>(dice.from(2, 6));
    return address;
}
const net::Ipv4Addr* own4(const fib::NetdevView& in, Dice& dice) {
    return in.addresses4.empty() ? nullptr : &dice.of(in.addresses4).address;
}
const net::Ipv6Addr* own6(const fib::NetdevView& in, Dice& dice) {
    return in.addresses6.empty() ? nullptr : &dice.of(in.addresses6).address;
}

std::size_t payload(Dice& dice) {
    if (dice.percent(88)) {
        return dice.from(2, 40);
    }
    return dice.one_in(2) ? dice.from(200, 600) : dice.from(1100, 1480);
}

}  // namespace

Traffic::Traffic(std::uint64_t seed) : seed_(seed) {
    Dice dice(seed, kFlowsStream);
    for (std::uint32_t i = 0; i < kFlows; ++i) {
        Flow flow;
        const std::uint32_t from = dice.below(kLinks);
        const std::uint32_t to = dice.below(kLinks);
        flow.source_link = from;
        flow.source4 = dice.one_in(4) ? remote4(dice) : host4(from, dice.from(2, 4));
        flow.source6 = dice.one_in(4) ? remote6(dice) : host6(from, dice.from(2, 4));
        // To somebody far away, on another link, to the router, or to a whole link.
        const std::uint32_t kind = dice.below(20);
        if (kind < 12) {
            flow.destination4 = remote4(dice);
            flow.destination6 = remote6(dice);
        } else {
            const std::uint32_t host = kind < 17 ? dice.from(2, 6) : kind < 19 ? 1 : 255;
            flow.destination4 = host4(to, host);
            flow.destination6 = host6(to, host);
        }
        flow.dscp = dice.of(kDscps);
        flow.source_port = static_cast<std::uint16_t>(dice.from(1000, 1003));
        flow.destination_port = dice.one_in(3) ? 53 : 443;
        flow.tcp = dice.one_in(2);
        flows_.push_back(flow);
    }
}

std::vector<Input> Traffic::burst(World& world,
                                  const fib::NetdevView& port,
                                  std::uint32_t phase,
                                  Dice& dice) {
    std::vector<Input> burst = std::exchange(world.answers[port.port], {});
    const std::uint32_t sizes[]{1, 4, 16, 32, 64, 64, 128, 256};
    const std::size_t size =
        std::min<std::size_t>(burst.size() + dice.from(1, dice.of(sizes)), 256);
    burst.resize(std::min<std::size_t>(burst.size(), 256));
    const auto ingresses = world.ingresses(port);
    std::vector<std::uint32_t> hot;
    Dice chosen(seed_ + port.port, kFlowsStream + 1 + phase);
    for (std::uint32_t i = chosen.from(1, 6); i > 0; --i) {
        hot.push_back(chosen.below(kFlows));
    }
    while (burst.size() < size) {
        burst.push_back(frame(world, ingresses, hot, dice));
    }
    return burst;
}

Input Traffic::frame(const World& /*world*/,
                     const std::vector<const fib::NetdevView*>& ingresses,
                     const std::vector<std::uint32_t>& hot,
                     Dice& dice) {
    const fib::NetdevView* chosen = dice.percent(75) ? ingresses[0] : dice.of(ingresses);
    if (!chosen->has_ipv4 && !chosen->has_ipv6 && !dice.one_in(10)) {
        chosen = dice.of(ingresses);
    }
    const fib::NetdevView& in = *chosen;
    const Flow& flow = flows_[dice.percent(95) ? dice.of(hot) : dice.below(kFlows)];
    Packet p;
    Eth eth{.dst = in.mac, .src = Mac("02:aa:00:00:00:02")};
    switch (dice.below(100)) {
        case 0:
            eth.dst = net::kBroadcastMac;
            break;
        case 1:
            eth.dst = Mac("01:00:5e:00:00:01");
            break;
        case 2:
            eth.dst = Mac("02:99:00:00:00:01");
            break;
        case 3:
            eth.src = Mac("03:00:00:00:00:01");
            break;
        default:
            break;
    }
    ++number_;
    if (dice.one_in(200)) {  // nothing that anybody speaks
        Bytes noise(dice.from(1, 100));
        std::ranges::generate(noise, [&] { return static_cast<std::uint8_t>(dice.next()); });
        return {.bytes = noise};
    }
    p.eth(eth);
    if (in.vlan_id != 0) {
        p.vlan(in.vlan_id);
    } else if (dice.one_in(50)) {
        p.vlan(static_cast<std::uint16_t>(dice.of({0, 10, 13, 99})));
    }
    if (dice.one_in(60)) {
        p.arp({.sender_ip = near4(in, dice),
               .target_ip = own4(in, dice) != nullptr ? V4(*own4(in, dice)) : V4("10.0.0.1")});
        return {.bytes = p.bytes()};
    }
    p = dice.percent(55) ? packet4(in, flow, p, dice) : packet6(in, flow, p, dice);
    if (dice.one_in(60)) {
        p.pad_to(60);
    }
    Input input{.bytes = p.bytes()};
    if (dice.one_in(80)) {
        input.bytes.resize(1 + dice.below(input.bytes.size()));
    }
    if (dice.one_in(60)) {  // after the Ethernet header, so that not all end at once
        const std::size_t at = 12 + dice.below(std::max<std::size_t>(input.bytes.size(), 13) - 12);
        if (at < input.bytes.size()) {
            input.bytes[at] = static_cast<std::uint8_t>(dice.next());
        }
    }
    if (dice.one_in(40)) {
        input.first_segment = 1 + dice.below(input.bytes.size());
    }
    return input;
}

Packet Traffic::packet4(const fib::NetdevView& in, const Flow& flow, Packet p, Dice& dice) {
    Ipv4 ip4{.src = flow.source4, .dst = flow.destination4};
    const std::uint32_t source = dice.below(20);
    if (source < 9) {
        ip4.src = near4(in, dice);
    } else if (source == 9) {  // spoofed
        ip4.src = remote4(dice);
    } else if (source == 10 && dice.one_in(3)) {
        ip4.src = ip(dice.of(kMartian4)).v4();
    } else if (source == 11 && dice.one_in(4) && own4(in, dice) != nullptr) {
        ip4.src = *own4(in, dice);
    }
    if (dice.one_in(40)) {
        ip4.dst = ip(dice.of(kMartian4)).v4();
    } else if (dice.one_in(25) && own4(in, dice) != nullptr) {
        ip4.dst = *own4(in, dice);
    } else if (dice.one_in(25)) {
        ip4.dst = near4(in, dice);
        if (dice.one_in(2)) {
            ip4.dst.bytes[3] = 255;
        }
    }
    ip4.tos = static_cast<std::uint8_t>(flow.dscp << 2U | dice.below(4));
    if (dice.one_in(60)) {
        ip4.tos = static_cast<std::uint8_t>(dice.next());
    }
    ip4.ttl = static_cast<std::uint8_t>(dice.one_in(25) ? dice.below(3) : 64);
    ip4.id = number_;
    ip4.df = dice.one_in(2);
    if (dice.one_in(30)) {
        ip4.mf = dice.one_in(2);
        ip4.df = false;
        ip4.frag_offset = static_cast<std::uint16_t>(8 * dice.below(200));
    }
    if (dice.one_in(30)) {
        static const Bytes kOptions[]{{7, 7, 4, 0, 0, 0, 0},
                                      {0x94, 4, 0, 0},
                                      {0x83, 7, 4, 10, 0, 1, 2},
                                      {0x44, 1},
                                      {1, 1, 1, 0}};
        ip4.options = dice.of(kOptions);
    }
    p.ipv4(ip4);
    const std::uint32_t kind = dice.below(30);
    if (kind == 0) {
        p.icmp(8, 0, std::uint32_t{number_} << 16U);
    } else if (kind == 1) {  // about something of ours, or of others
        const std::pair<std::uint8_t, std::uint8_t> types[]{{3, 4}, {3, 1}, {5, 1}, {11, 0}};
        const auto [type, code] = dice.of(types);
        const std::uint32_t rest = type == 5 ? near4(in, dice).host() : dice.from(0, 1600);
        const net::Ipv4Addr* own = own4(in, dice);
        p.icmp(type, code, rest);
        const Bytes quoted = Packet()
                                 .ipv4({.src = own != nullptr ? V4(*own) : V4(flow.destination4),
                                        .dst = dice.one_in(2) ? flow.source4 : flow.destination4,
                                        .protocol = net::IpProtocol::kIcmp})
                                 .icmp(0)
                                 .payload(8)
                                 .bytes();
        p.raw(quoted);
        return p;
    } else if (flow.tcp) {
        p.tcp({.sport = flow.source_port, .dport = flow.destination_port});
    } else {
        p.udp({.sport = flow.source_port, .dport = flow.destination_port});
    }
    return p.payload(payload(dice));
}

Packet Traffic::packet6(const fib::NetdevView& in, const Flow& flow, Packet p, Dice& dice) {
    Ipv6 ip6{.src = flow.source6, .dst = flow.destination6};
    const std::uint32_t source = dice.below(20);
    if (source < 9) {
        ip6.src = near6(in, dice);
    } else if (source == 9) {
        ip6.src = remote6(dice);
    } else if (source == 10 && dice.one_in(3)) {
        ip6.src = ip(dice.of(kMartian6)).v6();
    } else if (source == 11 && dice.one_in(4) && own6(in, dice) != nullptr) {
        ip6.src = *own6(in, dice);
    } else if (source == 12 && dice.one_in(3)) {
        ip6.src = link_local(2);
    }
    if (dice.one_in(40)) {
        ip6.dst = ip(dice.of(kMartian6)).v6();
    } else if (dice.one_in(25) && own6(in, dice) != nullptr) {
        ip6.dst = *own6(in, dice);
    } else if (dice.one_in(25)) {
        ip6.dst = near6(in, dice);
    } else if (dice.one_in(60)) {
        ip6.dst = in.link_local;
    }
    ip6.traffic_class = static_cast<std::uint8_t>(flow.dscp << 2U | dice.below(4));
    if (dice.one_in(60)) {
        ip6.traffic_class = static_cast<std::uint8_t>(dice.next());
    }
    ip6.hop_limit = static_cast<std::uint8_t>(dice.one_in(25) ? dice.below(3) : 64);
    ip6.flow_label = number_ & 3U;
    const std::uint32_t kind = dice.below(30);
    if (kind == 0) {
        p.ipv6(ip6).icmp6(128, 0, std::uint32_t{number_} << 16U);
    } else if (kind == 1) {
        const net::Ipv6Addr* own = own6(in, dice);
        const Bytes quoted = Packet()
                                 .ipv6({.src = own != nullptr ? V6(*own) : V6(flow.destination6),
                                        .dst = dice.one_in(2) ? flow.source6 : flow.destination6})
                                 .icmp6(129)
                                 .payload(8)
                                 .bytes();
        p.ipv6(ip6).icmp6(dice.one_in(3) ? 1 : 2, 0, dice.from(1200, 1600)).raw(quoted);
        return p;
    } else if (kind == 2) {
        p.ipv6(ip6)
            .fragment({.offset = static_cast<std::uint16_t>(8 * dice.below(3)),
                       .more = dice.one_in(2),
                       .id = number_})
            .udp({.sport = flow.source_port, .dport = flow.destination_port});
    } else if (kind == 3) {
        p.ipv6(ip6);
        if (dice.one_in(2)) {
            p.hop_by_hop({.options = {5, 2, 0, 0}});
        } else {
            p.routing({.segments_left = static_cast<std::uint8_t>(dice.below(2))});
        }
        p.udp({.sport = flow.source_port, .dport = flow.destination_port});
    } else if (kind == 4) {
        ip6.hop_limit = 255;
        const net::Ipv6Addr* own = own6(in, dice);
        ip6.dst = net::solicited_node(own != nullptr ? *own : flow.destination6);
        p.ipv6(ip6).ndp_ns({.target = own != nullptr ? V6(*own) : V6(flow.destination6),
                            .source_link = Mac("02:aa:00:00:00:02")});
        return p;
    } else if (flow.tcp) {
        p.ipv6(ip6).tcp({.sport = flow.source_port, .dport = flow.destination_port});
    } else {
        p.ipv6(ip6).udp({.sport = flow.source_port, .dport = flow.destination_port});
    }
    p.payload(2 + number_ % 7)
        .raw({static_cast<std::uint8_t>(number_ >> 8U), static_cast<std::uint8_t>(number_)});
    return p.payload(payload(dice));
}

}  // namespace sluice::test::fuzz
