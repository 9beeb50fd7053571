// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/flow_hash.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "net/validate.h"
#include "net/wire.h"

namespace sluice::pipeline {

namespace {

constexpr std::uint8_t kDccp = 33;
constexpr std::uint8_t kSctp = 132;

bool has_ports(net::IpProtocol protocol) noexcept {
    const auto number = static_cast<std::uint8_t>(protocol);
    return protocol == net::IpProtocol::kUdp || protocol == net::IpProtocol::kTcp ||
           number == kSctp || number == kDccp;
}

struct Ports {
    net::Be16 source;
    net::Be16 destination;
};

fib::Transport transport_at(std::span<const std::uint8_t> l3,
                            std::size_t offset,
                            net::IpProtocol protocol) noexcept {
    fib::Transport transport{.protocol = static_cast<std::uint8_t>(protocol)};
    const Ports* ports = has_ports(protocol) ? net::header_at<Ports>(l3, offset) : nullptr;
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
    if (has_ports(ip.next_header) || ip.next_header == net::IpProtocol::kIcmpv6) [[likely]] {
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
    return protocol == net::IpProtocol::kIcmp &&
           (type == net::icmp::kUnreachable || type == net::icmp::kTimeExceeded ||
            type == net::icmp::kParameterProblem || type == net::icmp::kSourceQuench ||
            type == net::icmp::kRedirect);
}
bool is_error(const net::Ipv6Header& /*ip*/, net::IpProtocol protocol, std::uint8_t type) noexcept {
    constexpr std::uint8_t kFirstInformational = 128;  // RFC 4443 2.1
    return protocol == net::IpProtocol::kIcmpv6 && type < kFirstInformational;
}

template <class Header>
std::uint32_t hash(std::uint64_t seed,
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
                return hash<Header>(seed, fields, inner, true);
            }
        }
    }
    const bool whole = fields.custom || !upper.fragment;
    const fib::Transport transport =
        upper.fragment ? fib::Transport{} : transport_at(l3, upper.offset, upper.protocol);
    const std::uint64_t source = fields.source ? words_of(ip->source) : 0;
    const std::uint64_t destination = fields.destination ? words_of(ip->destination) : 0;
    std::uint64_t rest = 0;
    if (fields.protocol && whole) {
        rest |= std::uint64_t{static_cast<std::uint8_t>(upper.protocol)} << 32U;
    }
    if (fields.source_port && whole) {
        rest |= std::uint64_t{transport.source_port} << 16U;
    }
    if (fields.destination_port && whole) {
        rest |= transport.destination_port;
    }
    if (fields.flow_label && whole) {
        rest |= std::uint64_t{label_of(*ip)} << 40U;
    }
    // Odd constants between the words: swapped addresses are another flow.
    const std::uint64_t a = fold(source ^ seed, destination ^ 0xa0761d6478bd642fU);
    return static_cast<std::uint32_t>(fold(a ^ rest, seed ^ 0xe7037ed1a0b428dbU) >> 16U);
}

}  // namespace

fib::Transport transport_of4(const Packet& p) noexcept {
    const Upper upper = upper_of(p.l3_span(), p.ip4());
    return upper.fragment ? fib::Transport{.protocol = static_cast<std::uint8_t>(upper.protocol)}
                          : transport_at(p.l3_span(), upper.offset, upper.protocol);
}

fib::Transport transport_of6(const Packet& p) noexcept {
    const Upper upper = upper_of(p.l3_span(), p.ip6());
    return upper.fragment ? fib::Transport{.protocol = static_cast<std::uint8_t>(upper.protocol)}
                          : transport_at(p.l3_span(), upper.offset, upper.protocol);
}

std::uint32_t flow_hash4(std::uint64_t seed,
                         const fib::FlowHashFields& fields,
                         const Packet& p) noexcept {
    return hash<net::Ipv4Header>(seed, fields, p.l3_span());
}

std::uint32_t flow_hash6(std::uint64_t seed,
                         const fib::FlowHashFields& fields,
                         const Packet& p) noexcept {
    return hash<net::Ipv6Header>(seed, fields, p.l3_span());
}

}  // namespace sluice::pipeline
