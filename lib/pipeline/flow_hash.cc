// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/flow_hash.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "net/icmp.h"
#include "net/validate.h"
#include "net/wire.h"

namespace sluice::pipeline {

namespace {

struct Ports {
    net::Be16 source;
    net::Be16 destination;
};

fib::Transport transport_at(std::span<const std::uint8_t> l3,
                            std::size_t offset,
                            net::IpProtocol protocol) noexcept {
    fib::Transport transport{.protocol = static_cast<std::uint8_t>(protocol)};
    const Ports* ports = net::has_ports(protocol) ? net::header_at<Ports>(l3, offset) : nullptr;
    if (ports != nullptr) {
        transport.has_ports = true;
        transport.source_port = ports->source.host();
        transport.destination_port = ports->destination.host();
    }
    return transport;
}

struct Upper {
    net::IpProtocol protocol = net::IpProtocol::kNoNext;
    std::size_t offset = 0;
    bool fragment = false;
};

Upper upper_of(std::span<const std::uint8_t> l3, const net::Ipv4Header& ip) noexcept {
    static_cast<void>(l3);
    return {.protocol = ip.protocol, .offset = ip.header_bytes(), .fragment = ip.is_fragment()};
}

Upper upper_of(std::span<const std::uint8_t> l3, const net::Ipv6Header& ip) noexcept {
    // What nearly every packet has behind the fixed header needs no walk.
    if (net::has_ports(ip.next_header) || ip.next_header == net::IpProtocol::kIcmpv6) [[likely]] {
        return {.protocol = ip.next_header, .offset = sizeof ip};
    }
    const net::UpperLayer upper = net::find_upper_layer(l3);
    return {.protocol = upper.protocol, .offset = upper.offset, .fragment = upper.fragment};
}

std::uint64_t words_of(const net::Ipv4Addr& a) noexcept {
    std::uint32_t word = 0;
    std::memcpy(&word, a.bytes.data(), sizeof word);
    return word;
}
// Folded with a rotation, or addresses with equal halves would all be alike.
std::uint64_t words_of(const net::Ipv6Addr& a) noexcept {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    std::memcpy(&high, a.bytes.data(), sizeof high);
    std::memcpy(&low, a.bytes.data() + 8, sizeof low);
    return high * 0x9e3779b97f4a7c15U ^ low;
}

std::uint32_t label_of(const net::Ipv4Header& /*ip*/) noexcept {
    return 0;
}
std::uint32_t label_of(const net::Ipv6Header& ip) noexcept {
    return ip.flow_label();
}

std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

bool is_error(const net::Ipv4Header& /*ip*/, net::IpProtocol protocol, std::uint8_t type) noexcept {
    return protocol == net::IpProtocol::kIcmp && net::quotes_a_packet(type);
}
bool is_error(const net::Ipv6Header& /*ip*/, net::IpProtocol protocol, std::uint8_t type) noexcept {
    return protocol == net::IpProtocol::kIcmpv6 && net::quotes_a_packet6(type);
}

struct HashInput {
    std::uint64_t source = 0, destination = 0;
    std::uint8_t protocol = 0;
    std::uint32_t ports = 0;  // source << 16 | destination
    std::uint32_t label = 0;
};

/// Which bits of the input count.
class Mixer {
public:
    Mixer(std::uint64_t seed, const fib::FlowHashFields& fields) noexcept
        : seed_(seed),
          source_(all_if(fields.source)),
          destination_(all_if(fields.destination)),
          rest_((all_if(fields.protocol) & kProtocol) | (all_if(fields.source_port) & kSourcePort) |
                (all_if(fields.destination_port) & kDestinationPort) |
                (all_if(fields.flow_label) & kLabel)) {}

    std::uint32_t mix(const HashInput& in) const noexcept {
        const std::uint64_t rest =
            (std::uint64_t{in.label} << 40U | std::uint64_t{in.protocol} << 32U | in.ports) & rest_;
        // Odd constants between the words: swapped addresses are another flow.
        const std::uint64_t a = fold((in.source & source_) ^ seed_,
                                     (in.destination & destination_) ^ 0xa0761d6478bd642fU);
        return static_cast<std::uint32_t>(fold(a ^ rest, seed_ ^ 0xe7037ed1a0b428dbU) >> 16U);
    }

private:
    static constexpr std::uint64_t kDestinationPort = 0xffff, kSourcePort = 0xffff'0000;
    static constexpr std::uint64_t kProtocol = 0xff'0000'0000, kLabel = 0xffff'ff00'0000'0000;
    static constexpr std::uint64_t all_if(bool field) noexcept {
        return field ? ~std::uint64_t{0} : 0;
    }

    std::uint64_t seed_, source_, destination_, rest_;
};

/// Ports in one load, for what nearly every packet is: unfragmented UDP or TCP without options or
/// extension headers.
bool is_plain(const net::Ipv4Header& ip) noexcept {
    return ip.version_ihl == net::Ipv4Header::kNoOptions && !ip.is_fragment() &&
           (ip.protocol == net::IpProtocol::kUdp || ip.protocol == net::IpProtocol::kTcp);
}
bool is_plain(const net::Ipv6Header& ip) noexcept {
    return ip.next_header == net::IpProtocol::kUdp || ip.next_header == net::IpProtocol::kTcp;
}
std::uint8_t protocol_of(const net::Ipv4Header& ip) noexcept {
    return static_cast<std::uint8_t>(ip.protocol);
}
std::uint8_t protocol_of(const net::Ipv6Header& ip) noexcept {
    return static_cast<std::uint8_t>(ip.next_header);
}

template <class Header>
const net::Be32* plain_ports(std::span<const std::uint8_t> l3) noexcept {
    const auto* ip = net::header_at<Header>(l3);
    return ip != nullptr && is_plain(*ip) ? net::header_at<net::Be32>(l3, sizeof(Header)) : nullptr;
}

template <class Header>
std::uint32_t hash(const Mixer& mixer,
                   const fib::FlowHashFields& fields,
                   std::span<const std::uint8_t> l3,
                   bool quoted = false) noexcept {
    const auto* ip = net::header_at<Header>(l3);
    if (ip == nullptr) {
        return 0;
    }
    const Upper upper = upper_of(l3, *ip);
    if (!fields.custom && !quoted && !upper.fragment) {
        const auto* icmp = net::header_at<net::IcmpHeader>(l3, upper.offset);
        if (icmp != nullptr && is_error(*ip, upper.protocol, icmp->type)) [[unlikely]] {
            const auto inner = l3.subspan(upper.offset + sizeof *icmp);
            if (inner.size() >= sizeof(Header)) {
                return hash<Header>(mixer, fields, inner, true);
            }
        }
    }
    HashInput in{.source = words_of(ip->source), .destination = words_of(ip->destination)};
    if (fields.custom || !upper.fragment) {
        const fib::Transport transport =
            upper.fragment ? fib::Transport{} : transport_at(l3, upper.offset, upper.protocol);
        in.protocol = static_cast<std::uint8_t>(upper.protocol);
        in.ports = std::uint32_t{transport.source_port} << 16U | transport.destination_port;
        in.label = label_of(*ip);
    }
    return mixer.mix(in);
}

template <class Header>
std::uint32_t packet_hash(const Mixer& mixer,
                          const fib::FlowHashFields& fields,
                          std::span<const std::uint8_t> l3) noexcept {
    const net::Be32* ports = plain_ports<Header>(l3);
    if (ports == nullptr) [[unlikely]] {
        return hash<Header>(mixer, fields, l3);
    }
    const auto& ip = *net::header_at<Header>(l3);
    return mixer.mix({.source = words_of(ip.source),
                      .destination = words_of(ip.destination),
                      .protocol = protocol_of(ip),
                      .ports = ports->host(),
                      .label = label_of(ip)});
}

template <class Header>
fib::Transport packet_transport(std::span<const std::uint8_t> l3) noexcept {
    const net::Be32* ports = plain_ports<Header>(l3);
    if (ports != nullptr) [[likely]] {
        const std::uint32_t both = ports->host();
        return {.protocol = protocol_of(*net::header_at<Header>(l3)),
                .has_ports = true,
                .source_port = static_cast<std::uint16_t>(both >> 16U),
                .destination_port = static_cast<std::uint16_t>(both)};
    }
    const auto* ip = net::header_at<Header>(l3);
    if (ip == nullptr) {
        return {};
    }
    const Upper upper = upper_of(l3, *ip);
    return upper.fragment ? fib::Transport{.protocol = static_cast<std::uint8_t>(upper.protocol)}
                          : transport_at(l3, upper.offset, upper.protocol);
}

std::size_t length_of(const net::Ipv4Header& ip) noexcept {
    return ip.total_length.host();
}
std::size_t length_of(const net::Ipv6Header& ip) noexcept {
    return sizeof ip + ip.payload_length.host();
}
/// The packet without padding, as far as it is contiguous.
template <class Header>
std::span<const std::uint8_t> l3_of(const Packet& p) noexcept {
    const auto l3 = p.l3_span();
    const auto* ip = net::header_at<Header>(l3);
    return l3.first(std::min(l3.size(), ip == nullptr ? 0 : length_of(*ip)));
}
/// Calls fn(i, l3) for each.
template <class Header, class Fn>
void for_each_l3(std::span<const Packet> packets, const std::uint32_t* lengths, Fn&& fn) noexcept {
    for (std::size_t i = 0; i < packets.size(); ++i) {
        if (lengths != nullptr) {
            fn(i, std::span<const std::uint8_t>(packets[i].l3, lengths[i]));
        } else {
            fn(i, l3_of<Header>(packets[i]));
        }
    }
}

template <class Header>
void transports_of(std::span<const Packet> packets,
                   const std::uint32_t* lengths,
                   fib::Transport* transports) noexcept {
    for_each_l3<Header>(packets, lengths, [transports](std::size_t i, auto l3) {
        transports[i] = packet_transport<Header>(l3);
    });
}

template <class Header>
void flow_hashes(std::uint64_t seed,
                 const fib::FlowHashFields& fields,
                 std::span<const Packet> packets,
                 const std::uint32_t* lengths,
                 std::uint32_t* hashes) noexcept {
    const Mixer mixer(seed, fields);
    for_each_l3<Header>(packets, lengths, [&mixer, &fields, hashes](std::size_t i, auto l3) {
        hashes[i] = packet_hash<Header>(mixer, fields, l3);
    });
}

}  // namespace

void transports_of4(std::span<const Packet> packets,
                    const std::uint32_t* lengths,
                    fib::Transport* transports) noexcept {
    transports_of<net::Ipv4Header>(packets, lengths, transports);
}
void transports_of6(std::span<const Packet> packets,
                    const std::uint32_t* lengths,
                    fib::Transport* transports) noexcept {
    transports_of<net::Ipv6Header>(packets, lengths, transports);
}

std::uint32_t flow_hash4(std::uint64_t seed,
                         const fib::FlowHashFields& fields,
                         std::span<const std::uint8_t> l3) noexcept {
    return packet_hash<net::Ipv4Header>(Mixer(seed, fields), fields, l3);
}
std::uint32_t flow_hash6(std::uint64_t seed,
                         const fib::FlowHashFields& fields,
                         std::span<const std::uint8_t> l3) noexcept {
    return packet_hash<net::Ipv6Header>(Mixer(seed, fields), fields, l3);
}

void flow_hashes4(std::uint64_t seed,
                  const fib::FlowHashFields& fields,
                  std::span<const Packet> packets,
                  const std::uint32_t* lengths,
                  std::uint32_t* hashes) noexcept {
    flow_hashes<net::Ipv4Header>(seed, fields, packets, lengths, hashes);
}
void flow_hashes6(std::uint64_t seed,
                  const fib::FlowHashFields& fields,
                  std::span<const Packet> packets,
                  const std::uint32_t* lengths,
                  std::uint32_t* hashes) noexcept {
    flow_hashes<net::Ipv6Header>(seed, fields, packets, lengths, hashes);
}

}  // namespace sluice::pipeline
