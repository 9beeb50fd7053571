// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "net/checksum.h"
#include "support/packet.h"

namespace sluice::test {
namespace {

using net::Be16;
using net::Be32;
using net::IpProtocol;

// RFC 3692: what no protocol here claims.
constexpr auto kExperimental = static_cast<IpProtocol>(253);
constexpr std::uint16_t kExperimentalEtherType = 0x88b5;  // IEEE 802 local experimental

Be16 be(std::size_t host) {
    return Be16::from_host(static_cast<std::uint16_t>(host));
}
std::uint8_t u8(std::size_t n) {
    return static_cast<std::uint8_t>(n);
}

template <class T>
T& prepend(Bytes& out, const T& header) {
    out.insert(out.begin(), sizeof(T), 0);
    T& placed = *net::mutable_header_at<T>(out);
    placed = header;
    return placed;
}

}  // namespace

std::uint16_t Packet::ether_type(std::size_t next) const {
    if (next < layers_.size()) {
        const Layer& layer = layers_[next];
        if (const auto* vlan = std::get_if<Vlan>(&layer)) {
            return vlan->tpid;
        }
        if (std::holds_alternative<Ipv4>(layer)) {
            return net::kEtherTypeIpv4;
        }
        if (std::holds_alternative<Ipv6>(layer)) {
            return net::kEtherTypeIpv6;
        }
        if (std::holds_alternative<Arp>(layer)) {
            return net::kEtherTypeArp;
        }
    }
    return kExperimentalEtherType;
}

IpProtocol Packet::protocol(std::size_t next) const {
    if (next == layers_.size()) {
        return IpProtocol::kNoNext;
    }
    const Layer& layer = layers_[next];
    if (const auto* extension = std::get_if<Extension>(&layer)) {
        return extension->kind;
    }
    if (const auto* icmp = std::get_if<Icmp>(&layer)) {
        return icmp->v6 ? IpProtocol::kIcmpv6 : IpProtocol::kIcmp;
    }
    if (std::holds_alternative<Udp>(layer)) {
        return IpProtocol::kUdp;
    }
    return std::holds_alternative<Tcp>(layer) ? IpProtocol::kTcp : kExperimental;
}

/// Of layer `upper` with all behind it, its own checksum zero.
Be16 Packet::upper_checksum(std::size_t upper, const Bytes& bytes, bool pseudo_header) const {
    std::uint32_t sum = 0;
    for (std::size_t i = upper; pseudo_header && i-- > 0;) {
        const auto length = static_cast<std::uint32_t>(bytes.size());
        if (const auto* v4 = std::get_if<Ipv4>(&layers_[i])) {
            sum = net::pseudo_header_sum(
                v4->src, v4->dst, static_cast<std::uint16_t>(length), protocol(upper));
            break;
        }
        if (const auto* v6 = std::get_if<Ipv6>(&layers_[i])) {
            sum = net::pseudo_header_sum(v6->src, v6->dst, length, protocol(upper));
            break;
        }
        if (!std::holds_alternative<Extension>(layers_[i])) {
            break;
        }
    }
    return net::fold_checksum(net::sum_words(bytes, sum));
}

void Packet::put(const Eth& l, std::size_t next, Bytes& out) const {
    prepend(out, net::EthernetHeader{l.dst, l.src, be(l.type.value_or(ether_type(next)))});
}

void Packet::put(const Vlan& l, std::size_t next, Bytes& out) const {
    const std::size_t tci = std::size_t{l.priority} << 13U | l.id;
    prepend(out, net::VlanTag{be(tci), be(l.type.value_or(ether_type(next)))});
}

void Packet::put(const Ipv4& l, std::size_t next, Bytes& out) const {
    Bytes options = l.options;
    options.resize((options.size() + 3) / 4 * 4);
    const std::size_t header_bytes = sizeof(net::Ipv4Header) + options.size();
    const std::size_t ihl = l.ihl.value_or(u8(header_bytes / 4));
    const std::size_t total =
        l.total_length.value_or(static_cast<std::uint16_t>(header_bytes + out.size()));
    const std::size_t flags = (l.df ? net::Ipv4Header::kDontFragment : 0U) |
                              (l.mf ? net::Ipv4Header::kMoreFragments : 0U) | l.frag_offset / 8U;
    out.insert(out.begin(), options.begin(), options.end());
    auto& ip =
        prepend(out,
                net::Ipv4Header{.version_ihl = u8(std::size_t{l.version.value_or(4)} << 4U | ihl),
                                .tos = l.tos,
                                .total_length = be(total),
                                .id = be(l.id),
                                .flags_fragment = be(flags),
                                .ttl = l.ttl,
                                .protocol = l.protocol.value_or(protocol(next)),
                                .checksum = {},
                                .source = l.src,
                                .destination = l.dst});
    // Over what IHL claims, so that a packet with a wrong IHL is wrong in nothing else.
    const std::size_t summed = std::min(std::max(ihl * 4, sizeof(ip)), out.size());
    ip.checksum =
        l.checksum ? be(*l.checksum) : net::internet_checksum(std::span(out).first(summed));
}

void Packet::put(const Ipv6& l, std::size_t next, Bytes& out) const {
    const std::uint32_t word = std::uint32_t{l.version.value_or(6)} << 28U |
                               std::uint32_t{l.traffic_class} << 20U | l.flow_label;
    const std::size_t length = l.payload_length.value_or(static_cast<std::uint16_t>(out.size()));
    prepend(out,
            net::Ipv6Header{.version_class_flow = Be32::from_host(word),
                            .payload_length = be(length),
                            .next_header = l.next_header.value_or(protocol(next)),
                            .hop_limit = l.hop_limit,
                            .source = l.src,
                            .destination = l.dst});
}

void Packet::put(const Extension& l, std::size_t next, Bytes& out) const {
    out.insert(out.begin(), l.body.begin(), l.body.end());
    prepend(out, l.next_header.value_or(protocol(next)));
}

void Packet::put(const Arp& l, std::size_t /*next*/, Bytes& out) const {
    prepend(out,
            net::ArpHeader{.hardware = be(l.hardware),
                           .protocol = be(l.protocol),
                           .hardware_bytes = l.hardware_bytes,
                           .protocol_bytes = l.protocol_bytes,
                           .operation = be(l.operation),
                           .sender_mac = l.sender_mac,
                           .sender_ip = l.sender_ip,
                           .target_mac = l.target_mac,
                           .target_ip = l.target_ip});
}

void Packet::put(const Icmp& l, std::size_t next, Bytes& out) const {
    auto& icmp = prepend(out, net::IcmpHeader{l.type, l.code, {}, Be32::from_host(l.rest)});
    icmp.checksum = l.checksum ? be(*l.checksum) : upper_checksum(next - 1, out, l.v6);
}

void Packet::put(const Udp& l, std::size_t next, Bytes& out) const {
    const std::size_t length =
        l.length.value_or(static_cast<std::uint16_t>(sizeof(net::UdpHeader) + out.size()));
    auto& udp = prepend(out, net::UdpHeader{be(l.sport), be(l.dport), be(length), {}});
    const Be16 sum = upper_checksum(next - 1, out, true);
    // RFC 768: zero says that there is none, so a sum of zero is sent as all ones.
    udp.checksum = l.checksum ? be(*l.checksum) : sum.raw() == 0 ? be(0xffff) : sum;
}

void Packet::put(const Tcp& l, std::size_t next, Bytes& out) const {
    constexpr std::size_t kFiveWords = 5U << 12U;
    auto& tcp = prepend(out,
                        net::TcpHeader{.source_port = be(l.sport),
                                       .destination_port = be(l.dport),
                                       .sequence = Be32::from_host(l.seq),
                                       .acknowledgement = Be32::from_host(l.ack),
                                       .offset_flags = be(kFiveWords | l.flags),
                                       .window = be(l.window),
                                       .checksum = {},
                                       .urgent = {}});
    tcp.checksum = l.checksum ? be(*l.checksum) : upper_checksum(next - 1, out, true);
}

void Packet::put(const Bytes& l, std::size_t /*next*/, Bytes& out) const {
    out.insert(out.begin(), l.begin(), l.end());
}

Bytes Packet::bytes() const {
    Bytes out;
    for (std::size_t i = layers_.size(); i-- > 0;) {
        std::visit([&](const auto& layer) { put(layer, i + 1, out); }, layers_[i]);
    }
    for (const auto& change : changes_) {
        change(out);
    }
    return out;
}

}  // namespace sluice::test
