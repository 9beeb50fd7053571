// SPDX-License-Identifier: BSD-3-Clause
#include "control/flow_member.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "net/wire.h"
#include "pipeline/flow_hash.h"

namespace sluice::control {
namespace {

struct Ports {
    net::Be16 source, destination;
};

/// The packet asked about, as far as the hash reads one.
template <class Header>
auto packet_of(const Header& header, const RouteQuery& query) {
    const Ports ports{net::Be16::from_host(query.source_port),
                      net::Be16::from_host(query.destination_port)};
    std::array<std::uint8_t, sizeof header + sizeof ports> bytes{};
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &ports, sizeof ports);
    return bytes;
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
        return pipeline::flow_hash4(seed, fields, packet_of(header, query));
    }
    net::Ipv6Header header{};
    // Zero would be hop-by-hop options.
    header.next_header =
        query.protocol != 0 ? net::IpProtocol{query.protocol} : net::IpProtocol::kNoNext;
    header.source = query.from ? query.from->v6() : net::Ipv6Addr{};
    header.destination = query.destination.v6();
    return pipeline::flow_hash6(seed, fields, packet_of(header, query));
}

}  // namespace sluice::control
