// SPDX-License-Identifier: BSD-3-Clause
#include "control/flow_member.h"

#include <array>
#include <cstdint>
#include <cstring>

#include <rte_mbuf.h>

#include "net/wire.h"
#include "pipeline/context.h"
#include "pipeline/flow_hash.h"

namespace sluice::control {
namespace {

struct Ports {
    net::Be16 source, destination;
};

/// Of the packet asked about, as far as the hash reads one.
template <class Header, class Hash>
std::uint32_t hash_of(const Header& header, const RouteQuery& query, Hash&& hash) {
    const Ports ports{net::Be16::from_host(query.source_port),
                      net::Be16::from_host(query.destination_port)};
    std::array<std::uint8_t, sizeof header + sizeof ports> bytes{};
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &ports, sizeof ports);
    rte_mbuf mbuf{};
    mbuf.data_len = static_cast<std::uint16_t>(bytes.size());
    mbuf.pkt_len = mbuf.data_len;
    pipeline::Packet packet;
    packet.m = &mbuf;
    packet.l3 = bytes.data();
    return hash(packet);
}

}  // namespace

std::uint32_t flow_hash(std::uint64_t seed,
                        const fib::FlowHashFields& fields,
                        const RouteQuery& query) noexcept {
    if (query.destination.is_v4()) {
        net::Ipv4Header header{};
        header.version_ihl = net::Ipv4Header::kNoOptions;
        header.protocol = net::IpProtocol{query.protocol};
        header.source = query.from ? query.from->v4() : net::Ipv4Addr{};
        header.destination = query.destination.v4();
        return hash_of(header, query, [&](const pipeline::Packet& packet) {
            return pipeline::flow_hash4(seed, fields, packet);
        });
    }
    net::Ipv6Header header{};
    // Zero would be hop-by-hop options.
    header.next_header =
        query.protocol != 0 ? net::IpProtocol{query.protocol} : net::IpProtocol::kNoNext;
    header.source = query.from ? query.from->v6() : net::Ipv6Addr{};
    header.destination = query.destination.v6();
    return hash_of(header, query, [&](const pipeline::Packet& packet) {
        return pipeline::flow_hash6(seed, fields, packet);
    });
}

}  // namespace sluice::control
