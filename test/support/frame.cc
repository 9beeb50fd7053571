// SPDX-License-Identifier: BSD-3-Clause
#include "support/frame.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "net/checksum.h"
#include "net/validate.h"

namespace sluice::test {
namespace {

using net::IpProtocol;

template <class T>
std::optional<T> read(std::span<const std::uint8_t> bytes, std::size_t at = 0) {
    const T* header = net::header_at<T>(bytes, at);
    return header != nullptr ? std::optional(*header) : std::nullopt;
}

void cut(Bytes& bytes, std::size_t size) {
    bytes.resize(std::min(bytes.size(), size));
}

/// Reads the upper layer, which begins at `at` of frame.l3.
void read_upper(Frame& frame, IpProtocol protocol, std::size_t at) {
    const std::span<const std::uint8_t> l3 = frame.l3;
    std::size_t header = 0;
    if (protocol == IpProtocol::kIcmp || protocol == IpProtocol::kIcmpv6) {
        frame.icmp = read<net::IcmpHeader>(l3, at);
        header = frame.icmp ? sizeof(net::IcmpHeader) : 0;
    } else if (protocol == IpProtocol::kUdp) {
        frame.udp = read<net::UdpHeader>(l3, at);
        header = frame.udp ? sizeof(net::UdpHeader) : 0;
    } else if (protocol == IpProtocol::kTcp) {
        frame.tcp = read<net::TcpHeader>(l3, at);
        header = frame.tcp ? (frame.tcp->offset_flags.host() >> 12U) * std::size_t{4} : 0;
    }
    const std::size_t payload_at = std::min(at + header, l3.size());
    frame.payload.assign(l3.begin() + static_cast<std::ptrdiff_t>(payload_at), l3.end());
}

void read_ipv4(Frame& frame) {
    frame.ipv4 = read<net::Ipv4Header>(frame.l3);
    if (!frame.ipv4) {
        return;
    }
    cut(frame.l3, frame.ipv4->total_length.host());
    const bool later = frame.ipv4->fragment_offset_bytes() != 0;
    read_upper(
        frame, later ? IpProtocol::kNoNext : frame.ipv4->protocol, frame.ipv4->header_bytes());
}

void read_ipv6(Frame& frame) {
    frame.ipv6 = read<net::Ipv6Header>(frame.l3);
    if (!frame.ipv6) {
        return;
    }
    cut(frame.l3, sizeof(net::Ipv6Header) + frame.ipv6->payload_length.host());
    const net::UpperLayer upper = net::find_upper_layer(frame.l3);
    if (upper.reason != DropReason::kNone) {
        return;
    }
    if (upper.fragment) {
        // Ours are made with the fragment header last.
        frame.fragment = read<net::Ipv6FragmentHeader>(frame.l3, upper.next_header_at);
    }
    read_upper(frame, upper.first_fragment ? upper.protocol : IpProtocol::kNoNext, upper.offset);
}

void read_l3(Frame& frame, std::uint16_t type) {
    if (type == net::kEtherTypeIpv4) {
        read_ipv4(frame);
    } else if (type == net::kEtherTypeIpv6) {
        read_ipv6(frame);
    } else if (type == net::kEtherTypeArp) {
        frame.arp = read<net::ArpHeader>(frame.l3);
        cut(frame.l3, sizeof(net::ArpHeader));
    }
}

/// `bytes` include the checksum `have`.
std::string check(std::string_view what,
                  std::span<const std::uint8_t> bytes,
                  std::uint32_t initial,
                  net::Be16 have) {
    if (net::fold_checksum(net::sum_words(bytes, initial)).raw() == 0) {
        return {};
    }
    // Takes the wrong one out of the sum (RFC 1624 eqn. 3).
    const std::uint32_t without =
        net::sum_words(bytes, initial) + static_cast<std::uint16_t>(~have.raw());
    return fmt::format("{} checksum is {:#06x}, should be {:#06x}\n",
                       what,
                       have.host(),
                       net::fold_checksum(without).host());
}

}  // namespace

std::optional<net::Ipv4Header> Frame::quoted_ipv4() const {
    return read<net::Ipv4Header>(payload);
}
std::optional<net::Ipv6Header> Frame::quoted_ipv6() const {
    return read<net::Ipv6Header>(payload);
}

Frame parse_frame(std::span<const std::uint8_t> bytes) {
    Frame frame;
    frame.eth = read<net::EthernetHeader>(bytes);
    if (!frame.eth) {
        return frame;
    }
    std::uint16_t type = frame.eth->type.host();
    frame.l3_offset = sizeof(net::EthernetHeader);
    if (type == net::kEtherTypeVlan) {
        frame.vlan = read<net::VlanTag>(bytes, frame.l3_offset);
        if (!frame.vlan) {
            return frame;
        }
        type = frame.vlan->type.host();
        frame.l3_offset += sizeof(net::VlanTag);
    }
    const auto l3 = bytes.subspan(frame.l3_offset);
    frame.l3.assign(l3.begin(), l3.end());
    read_l3(frame, type);
    return frame;
}

Frame parse_l3(std::span<const std::uint8_t> bytes) {
    Frame frame;
    frame.l3.assign(bytes.begin(), bytes.end());
    const unsigned version = bytes.empty() ? 0U : bytes[0] >> 4U;
    read_l3(frame,
            version == 4   ? net::kEtherTypeIpv4
            : version == 6 ? net::kEtherTypeIpv6
                           : std::uint16_t{0});
    return frame;
}

namespace {
std::string verify(const Frame& frame) {
    const std::span<const std::uint8_t> l3 = frame.l3;
    std::string wrong;
    std::size_t at = 0;
    bool fragment = false;
    if (frame.ipv4) {
        at = std::min<std::size_t>(frame.ipv4->header_bytes(), l3.size());
        fragment = frame.ipv4->is_fragment();
        wrong += check("IPv4", l3.first(at), 0, frame.ipv4->checksum);
    } else if (frame.ipv6) {
        const net::UpperLayer upper = net::find_upper_layer(l3);
        at = upper.offset;
        fragment = upper.fragment;
    }
    if (fragment) {
        return wrong;
    }
    const auto upper = l3.subspan(at);
    const auto pseudo = [&](IpProtocol protocol) {
        const auto size = static_cast<std::uint32_t>(upper.size());
        return frame.ipv4 ? net::pseudo_header_sum(frame.ipv4->source,
                                                   frame.ipv4->destination,
                                                   static_cast<std::uint16_t>(size),
                                                   protocol)
                          : net::pseudo_header_sum(
                                frame.ipv6->source, frame.ipv6->destination, size, protocol);
    };
    if (frame.icmp) {
        wrong += check(
            "ICMP", upper, frame.ipv6 ? pseudo(IpProtocol::kIcmpv6) : 0, frame.icmp->checksum);
    } else if (frame.udp && frame.udp->checksum.raw() != 0) {
        wrong += check("UDP", upper, pseudo(IpProtocol::kUdp), frame.udp->checksum);
    } else if (frame.tcp) {
        wrong += check("TCP", upper, pseudo(IpProtocol::kTcp), frame.tcp->checksum);
    }
    return wrong;
}

}  // namespace

std::string verify_checksums(std::span<const std::uint8_t> frame) {
    return verify(parse_frame(frame));
}

std::string verify_checksums_l3(std::span<const std::uint8_t> l3) {
    return verify(parse_l3(l3));
}

}  // namespace sluice::test
