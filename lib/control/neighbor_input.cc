// SPDX-License-Identifier: BSD-3-Clause
#include "control/neighbor_input.h"

#include <optional>

#include "net/neighbor_message.h"
#include "net/validate.h"
#include "net/wire.h"

namespace sluice::control {
namespace {

using config::LearnUnsolicited;

/// `other`: the reason when there is no such entry.
DropReason to_reason(Observed observed, DropReason unknown, DropReason bad) noexcept {
    switch (observed) {
        case Observed::kUnknown:
            return unknown;
        case Observed::kBadMac:
            return bad;
        case Observed::kTableFull:
            return DropReason::kNeighborTableFull;
        default:
            return DropReason::kNone;
    }
}

bool accepts(LearnUnsolicited policy, bool on_link) noexcept {
    return policy == LearnUnsolicited::kAlways ||
           (policy == LearnUnsolicited::kSameSubnet && on_link);
}

/// RFC 5227 3: it tells its own address to everybody, unasked.
DropReason gratuitous(const NeighborInput& input, const net::Arp& arp, bool belongs) {
    const auto policy = input.in.settings.arp_accept;
    if (!belongs && policy != LearnUnsolicited::kAlways) {
        return DropReason::kArpBadSender;
    }
    const Observation observation{.mac = arp.sender_mac,
                                  .override = true,
                                  .is_router = {},
                                  .create = accepts(policy, belongs)};
    return to_reason(
        input.neighbors.table().observe({input.in.id, arp.sender_ip}, observation, input.now),
        DropReason::kArpUnknownSender,
        DropReason::kArpBadSender);
}

DropReason arp_request(const NeighborInput& input, const net::Arp& arp) {
    const bool for_us = input.in.owns(arp.target_ip);
    const bool probe = arp.sender_ip.is_zero();  // RFC 5227 2.1.1: answered, nothing to learn
    if (!probe) {
        const Observation observation{
            .mac = arp.sender_mac, .override = true, .is_router = {}, .create = for_us};
        const Observed observed =
            input.neighbors.table().observe({input.in.id, arp.sender_ip}, observation, input.now);
        if (observed == Observed::kBadMac) {
            return DropReason::kArpBadSender;
        }
    }
    if (!for_us) {
        return DropReason::kArpNotForUs;
    }
    const auto reply =
        net::make_arp_reply(input.in.mac, arp.target_ip, arp.sender_mac, arp.sender_ip);
    input.dataplane.transmit(input.in.id, reply.view());
    return DropReason::kNone;
}

/// RFC 4861 7.2.3, 7.2.4.
DropReason solicitation(const NeighborInput& input,
                        const net::NeighborDiscovery& message,
                        const net::MacAddr& frame_source) {
    const Netdev& in = input.in;
    if (!in.owns(message.target)) {
        return DropReason::kNdpNotForUs;
    }
    net::AdvertisementFlags flags{
        .router = in.settings.forwarding, .solicited = true, .override = true};
    if (message.source.is_unspecified()) {
        flags.solicited = false;
        const auto reply = net::make_neighbor_advertisement(in.mac,
                                                            message.target,
                                                            message.target,
                                                            net::multicast_mac(net::kAllNodes),
                                                            net::kAllNodes,
                                                            flags);
        input.dataplane.transmit(in.id, reply.view());
        return DropReason::kNone;
    }
    const NeighborKey key{in.id, message.source};
    const Neighbor* known = input.neighbors.table().find(key);
    if (in.owns(message.source) ||
        (!input.neighbors.on_link(in, message.source) && known == nullptr)) {
        return DropReason::kNdpBadSender;
    }
    net::MacAddr to = frame_source;
    if (message.source_link) {
        to = *message.source_link;
        const Observation observation{
            .mac = message.source_link, .override = true, .is_router = {}, .create = true};
        if (input.neighbors.table().observe(key, observation, input.now) == Observed::kBadMac) {
            return DropReason::kNdpBadSender;
        }
    } else if (known != nullptr && known->mac) {
        to = *known->mac;
    }
    const auto reply = net::make_neighbor_advertisement(
        in.mac, message.target, message.target, to, message.source, flags);
    input.dataplane.transmit(in.id, reply.view());
    return DropReason::kNone;
}

/// RFC 4861 7.2.5; RFC 9131 and checks 106, 107 for those that nobody asked for.
DropReason advertisement(const NeighborInput& input, const net::NeighborDiscovery& message) {
    const Netdev& in = input.in;
    if (in.owns(message.target)) {
        return DropReason::kNdpBadSender;
    }
    if (!message.solicited && in.settings.drop_unsolicited_na) {
        return DropReason::kNdpUnknownSender;
    }
    const bool create = !message.solicited && in.settings.forwarding &&
                        accepts(in.settings.accept_untracked_na, in.on_link(message.target));
    const Observation observation{.mac = message.target_link,
                                  .solicited = message.solicited,
                                  .override = message.override,
                                  .is_router = message.router,
                                  .create = create};
    return to_reason(
        input.neighbors.table().observe({in.id, message.target}, observation, input.now),
        DropReason::kNdpUnknownSender,
        DropReason::kNdpBadSender);
}

}  // namespace

DropReason arp_input(const NeighborInput& input,
                     std::span<const std::uint8_t> frame,
                     std::size_t l3_offset) {
    const auto* ethernet = net::header_at<net::EthernetHeader>(frame);
    if (ethernet == nullptr || l3_offset > frame.size()) {
        return DropReason::kArpMalformed;
    }
    const auto arp = net::parse_arp(frame.subspan(l3_offset));
    if (!arp) {
        return arp.error();
    }
    const Netdev& in = input.in;
    if (arp->sender_mac != ethernet->source || in.owns(arp->sender_ip) ||
        in.is_broadcast(arp->sender_ip)) {
        return DropReason::kArpBadSender;
    }
    const bool belongs = !arp->sender_ip.is_zero() &&
                         (input.neighbors.on_link(in, arp->sender_ip) ||
                          input.neighbors.table().find({in.id, arp->sender_ip}) != nullptr);
    if (arp->sender_ip == arp->target_ip && !arp->sender_ip.is_zero()) {
        return gratuitous(input, *arp, belongs);
    }
    const bool probe = arp->sender_ip.is_zero() && arp->operation == net::ArpHeader::kRequest;
    if (!belongs && !probe) {
        return DropReason::kArpBadSender;
    }
    if (arp->operation == net::ArpHeader::kRequest) {
        return arp_request(input, *arp);
    }
    const Observation observation{.mac = arp->sender_mac,
                                  .solicited = in.owns(arp->target_ip),
                                  .override = true,
                                  .is_router = {}};
    return to_reason(
        input.neighbors.table().observe({in.id, arp->sender_ip}, observation, input.now),
        DropReason::kArpUnknownSender,
        DropReason::kArpBadSender);
}

DropReason ndp_input(const NeighborInput& input,
                     std::span<const std::uint8_t> frame,
                     std::size_t l3_offset) {
    const auto* ethernet = net::header_at<net::EthernetHeader>(frame);
    const auto* ip = net::header_at<net::Ipv6Header>(frame, l3_offset);
    if (ethernet == nullptr || ip == nullptr) {
        return DropReason::kNdpMalformed;
    }
    const std::size_t total = sizeof(net::Ipv6Header) + ip->payload_length.host();
    if (total > frame.size() - l3_offset) {
        return DropReason::kNdpMalformed;
    }
    const auto packet = frame.subspan(l3_offset, total);
    const net::UpperLayer upper = net::find_upper_layer(packet);
    if (upper.reason != DropReason::kNone || upper.protocol != net::IpProtocol::kIcmpv6) {
        return DropReason::kNdpMalformed;
    }
    const auto message = net::parse_neighbor_discovery(packet, upper.offset);
    if (!message) {
        return message.error();
    }
    switch (message->type) {
        case net::icmp6::kNeighborSolicitation:
            return solicitation(input, *message, ethernet->source);
        case net::icmp6::kNeighborAdvertisement:
            return advertisement(input, *message);
        default:
            return DropReason::kNdpIgnored;
    }
}

}  // namespace sluice::control
