// SPDX-License-Identifier: BSD-3-Clause
// The link layer: MAC filter, VLAN tags, what is not IP.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "net/wire.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {

namespace {

constexpr NetdevId kP0 = StageBench::kP0;
constexpr NetdevId kP1 = StageBench::kP1;
// Sub-interfaces 10 and 20 of p0, 10 of p1; 1 of p0 as any other id.
constexpr NetdevId kP0V10{4}, kP0V20{5}, kP1V10{6}, kP0V1{7};

Packet from_h0() {
    return Packet().eth();
}

class Link : public StageRows {
protected:
    void SetUp() override {
        add_netdev({.port = 0,
                    .vlan = 10,
                    .parent = kP0,
                    .mac = kP0Mac,
                    .addresses = {"10.10.0.1/24", "fd10::1/64"}});
        add_netdev({.port = 0,
                    .vlan = 20,
                    .parent = kP0,
                    .mac = "02:00:00:00:00:20",
                    .addresses = {"10.20.0.1/24"}});
        add_netdev({.port = 1,
                    .vlan = 10,
                    .parent = kP1,
                    .mac = kP1Mac,
                    .addresses = {"10.11.0.1/24", "fd11::1/64"}});
        add_netdev(
            {.port = 0, .vlan = 1, .parent = kP0, .mac = kP0Mac, .addresses = {"10.1.0.1/24"}});
        const Mac host = "02:dd:00:00:00:02";
        for (const auto& [dev, address] :
             {std::pair<NetdevId, net::IpAddr>{kP0V10, V4("10.10.0.2")},
              {kP0V20, V4("10.20.0.2")},
              {kP1V10, V4("10.11.0.2")},
              {kP1V10, V6("fd11::2")},
              {kP0V1, V4("10.1.0.2")}}) {
            add_neighbor(dev, address);
            resolve(dev, address, host);
        }
    }
};
TEST_P(Link, Row) {
    expect(GetParam());
}

Packet by(const Mac& mac, std::uint16_t vlan) {
    return Packet().eth({.dst = "02:dd:00:00:00:02", .src = mac}).vlan(vlan);
}
Case silent(std::string name, const Packet& in, DropReason reason, NetdevId book = kP0) {
    return {.name = std::move(name), .in = in, .want = dropped(reason), .book = book};
}

INSTANTIATE_TEST_SUITE_P(
    Vlan,
    Link,
    testing::Values(
        Case{.name = "Case_G100_untagged_to_tagged",
             .in = from_h0().ipv4({.dst = "10.11.0.2"}).udp().payload(18),
             .want = forwarded(by(StageBench::kP1Mac, 10)
                                   .ipv4({.dst = "10.11.0.2", .ttl = 63})
                                   .udp()
                                   .payload(18))},
        Case{.name = "Case_G100_tagged_to_untagged",
             .in = from_h0().vlan(10).ipv4({.dst = "10.0.1.2"}).udp().payload(18),
             .want = forwarded(by_p1().ipv4({.dst = "10.0.1.2", .ttl = 63}).udp().payload(18)),
             .book = kP0V10},
        Case{
            .name = "Case_G100_tagged_to_tagged",
            .in = from_h0().vlan(10).ipv4({.dst = "10.11.0.2"}).udp().payload(18),
            .want = forwarded(
                by(StageBench::kP1Mac, 10).ipv4({.dst = "10.11.0.2", .ttl = 63}).udp().payload(18)),
            .book = kP0V10},
        Case{
            .name = "tagged_to_tagged_of_the_same_port",
            .in = from_h0().vlan(10).ipv4({.dst = "10.20.0.2"}).udp().payload(18),
            .want = forwarded(
                by("02:00:00:00:00:20", 20).ipv4({.dst = "10.20.0.2", .ttl = 63}).udp().payload(18),
                0),
            .book = kP0V10},
        Case{.name = "Check_8_vlan_1_is_nothing_special",
             .in = from_h0().vlan(1).ipv4({.dst = "10.0.1.2"}).udp().payload(18),
             .want = forwarded(by_p1().ipv4({.dst = "10.0.1.2", .ttl = 63}).udp().payload(18)),
             .book = kP0V1},
        Case{.name = "untagged_to_tagged6",
             .in = from_h0().ipv6({.dst = "fd11::2"}).udp(),
             .want = forwarded(
                 by(StageBench::kP1Mac, 10).ipv6({.dst = "fd11::2", .hop_limit = 63}).udp())},
        Case{.name = "Check_114_Case_G100_priority_tag_is_untagged",
             .in = from_h0().vlan({.id = 0, .priority = 5}).ipv4().udp().payload(18),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().payload(18))},
        Case{.name = "priority_in_a_tag_is_not_the_id",
             .in = from_h0().vlan({.id = 10, .priority = 7}).ipv4().udp().payload(18),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().payload(18)),
             .book = kP0V10},
        Case{.name = "Case_A15_padding_with_a_tag",
             .in = from_h0().vlan(10).ipv4().udp().pad_to(64, 0xaa),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().pad_to(60, 0xaa)),
             .book = kP0V10},
        Case{.name = "padding_towards_a_tag",
             .in = from_h0().ipv4({.dst = "10.11.0.2"}).udp().pad_to(60, 0xaa),
             .want = forwarded(by(StageBench::kP1Mac, 10)
                                   .ipv4({.dst = "10.11.0.2", .ttl = 63})
                                   .udp()
                                   .pad_to(60, 0xaa))},
        Case{.name = "Case_C33_1500_bytes_behind_a_tag",
             .in = from_h0().vlan(10).ipv4({.dst = "10.11.0.2", .df = true}).udp().payload(1472),
             .want = forwarded(by(StageBench::kP1Mac, 10)
                                   .ipv4({.dst = "10.11.0.2", .ttl = 63, .df = true})
                                   .udp()
                                   .payload(1472)),
             .book = kP0V10},
        Case{.name = "echo_comes_back_with_the_tag",
             .in = Packet()
                       .eth({.src = "02:dd:00:00:00:02"})
                       .vlan(10)
                       .ipv4({.src = "10.10.0.2", .dst = "10.10.0.1"})
                       .icmp(net::icmp::kEcho),
             .want = answered(by(StageBench::kP0Mac, 10)
                                  .ipv4({.src = "10.10.0.1", .dst = "10.10.0.2"})
                                  .icmp(net::icmp::kEchoReply)),
             .book = kP0V10},
        silent("Case_G100_unknown_tag", from_h0().vlan(99).ipv4().udp(), DropReason::kVlanUnknown),
        silent("tag_4095", from_h0().vlan(4095).ipv4().udp(), DropReason::kVlanUnknown),
        silent("tag_cut_off", from_h0().vlan(10).truncate(17), DropReason::kVlanTooShort),
        silent("two_tags", from_h0().vlan(10).vlan(20).ipv4().udp(), DropReason::kVlanQinq),
        silent("service_tag",
               from_h0().vlan({.id = 10, .tpid = net::kEtherTypeQinq}).ipv4().udp(),
               DropReason::kVlanQinq),
        silent("tag_behind_a_priority_tag",
               from_h0().vlan(0).vlan(20).ipv4().udp(),
               DropReason::kVlanQinq),
        silent("mac_of_the_port_on_a_vlan_with_its_own",
               from_h0().vlan(20).ipv4().udp(),
               DropReason::kEthOtherHost,
               kP0V20),
        // Case G101: the same with the tag stripped by the device.
        Case{.name = "Case_G101_stripped",
             .in = from_h0().ipv4().udp().payload(18),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().payload(18)),
             .book = kP0V10,
             .offload_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED,
             .vlan_tci = 0xe00a},
        Case{.name = "Case_G101_stripped_priority_tag",
             .in = from_h0().ipv4().udp().payload(18),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().payload(18)),
             .offload_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED,
             .vlan_tci = 0xe000},
        Case{.name = "Case_G101_stripped_unknown",
             .in = from_h0().ipv4().udp(),
             .want = dropped(DropReason::kVlanUnknown),
             .offload_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED,
             .vlan_tci = 99},
        Case{.name = "Case_G101_outer_of_two_stripped",
             .in = from_h0().vlan(20).ipv4().udp(),
             .want = dropped(DropReason::kVlanQinq),
             .offload_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED,
             .vlan_tci = 10},
        Case{.name = "Case_G101_stripped_to_tagged",
             .in = from_h0().ipv4({.dst = "10.11.0.2"}).udp(),
             .want =
                 forwarded(by(StageBench::kP1Mac, 10).ipv4({.dst = "10.11.0.2", .ttl = 63}).udp()),
             .book = kP0V10,
             .offload_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED,
             .vlan_tci = 10},
        // Not stripped: what stands in the mbuf means nothing.
        Case{.name = "Case_G101_tag_seen_but_left",
             .in = from_h0().vlan(10).ipv4().udp().payload(18),
             .want = forwarded(by_p1().ipv4({.ttl = 63}).udp().payload(18)),
             .book = kP0V10,
             .offload_flags = RTE_MBUF_F_RX_VLAN,
             .vlan_tci = 20}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Ethernet,
    Link,
    testing::Values(
        silent("Case_A17_other_host",
               Packet().eth({.dst = "02:00:00:00:00:99"}).ipv4().udp(),
               DropReason::kEthOtherHost),
        silent("mac_of_the_other_port",
               Packet().eth({.dst = StageBench::kP1Mac}).ipv4().udp(),
               DropReason::kEthOtherHost),
        silent("other_host_6",
               Packet().eth({.dst = "02:00:00:00:00:99"}).ipv6().udp(),
               DropReason::kEthOtherHost),
        silent("group_source",
               Packet().eth({.src = "03:aa:00:00:00:02"}).ipv4().udp(),
               DropReason::kEthBadSource),
        silent("Check_9_not_ip",
               from_h0().raw(Bytes(46)).set(12, 0x88).set(13, 0xb5),
               DropReason::kEthUnknownType),
        silent("length_instead_of_type",
               Packet().eth({.type = std::uint16_t{46}}).raw(Bytes(46)),
               DropReason::kEthUnknownType),
        silent("cut_off", from_h0().truncate(13), DropReason::kEthTooShort),
        silent("one_byte", from_h0().truncate(1), DropReason::kEthTooShort),
        silent("Check_128_unicast_in_a_broadcast_frame",
               Packet().eth({.dst = net::kBroadcastMac}).ipv4().udp(),
               DropReason::kL2BroadcastUnicast),
        silent("connected_in_a_broadcast_frame",
               Packet().eth({.dst = net::kBroadcastMac}).ipv4({.dst = "10.0.1.77"}).udp(),
               DropReason::kL2BroadcastUnicast),
        silent("unicast_in_a_multicast_frame",
               Packet().eth({.dst = "01:00:5e:00:00:05"}).ipv4().udp(),
               DropReason::kL2BroadcastUnicast),
        silent("unicast_in_a_multicast_frame6",
               Packet().eth({.dst = "33:33:00:00:00:05"}).ipv6().udp(),
               DropReason::kL2BroadcastUnicast)),
    case_name);

TEST_F(Link, down_netdev) {
    netdev(kP0V10).up = false;
    expect(silent("vlan", from_h0().vlan(10).ipv4().udp(), DropReason::kNetdevDown, kP0V10));
    expect({.name = "port",
            .in = from_h0().ipv4().udp(),
            .want = forwarded(by_p1().ipv4({.ttl = 63}).udp())});
    netdev(kP0).up = false;
    expect(silent("port", from_h0().ipv4().udp(), DropReason::kNetdevDown));
    expect(silent("arp", Packet().eth({.dst = net::kBroadcastMac}).arp(), DropReason::kNetdevDown));
}

TEST_F(Link, vlan_that_goes_away) {
    unpublish(kP0V10);
    expect(silent("gone", from_h0().vlan(10).ipv4().udp(), DropReason::kVlanUnknown));
    publish(kP0V10);
    (*netdev(kP0).vlans)[10] = kBlackholeNetdev;
    expect(silent("removed", from_h0().vlan(10).ipv4().udp(), DropReason::kVlanUnknown));
}

TEST_F(Link, Check_9_nothing_crosses_without_addresses) {
    const NetdevId p2 = add_netdev({.port = 2, .mac = "02:00:00:00:00:03"});
    const Mac mac = "02:00:00:00:00:03";
    for (const Mac& to : {mac, Mac(net::kBroadcastMac), Mac("01:00:5e:00:00:05")}) {
        for (const std::uint16_t vlan : std::initializer_list<std::uint16_t>{0, 1, 2, 4094}) {
            receive(p2,
                    std::vector<Bytes>{Packet().eth({.dst = to}).vlan(vlan).ipv4().udp().bytes(),
                                       Packet().eth({.dst = to}).vlan(vlan).ipv6().udp().bytes(),
                                       Packet().eth({.dst = to}).ipv4().udp().bytes(),
                                       Packet().eth({.dst = to}).ipv6().udp().bytes()});
        }
    }
    EXPECT_EQ(take_sent().size(), 0U);
    EXPECT_EQ(counters(p2).rx_packets, 48U);
    EXPECT_EQ(drops(p2, DropReason::kIpDisabled), 30U);
    EXPECT_EQ(drops(p2, DropReason::kVlanUnknown), 18U);
}

TEST_F(Link, Case_A18_as_many_out_as_in) {
    receive(kP0, std::vector<Bytes>(200, from_h0().ipv4().udp().bytes()));
    EXPECT_EQ(take_sent().size(), 200U);
    EXPECT_EQ(counters(kP0).forwarded, 200U);
    EXPECT_EQ(counters(kP1).tx_packets, 200U);
    EXPECT_EQ(counters(kP1).tx_bytes, 200U * 42U);
}

TEST_F(Link, no_headroom_for_a_longer_header) {
    rte_mbuf* m = mbuf_of(from_h0().ipv4({.dst = "10.11.0.2"}).udp().bytes());
    // As a device without headroom would leave it.
    m->data_off = 0;
    const Bytes bytes = from_h0().ipv4({.dst = "10.11.0.2"}).udp().bytes();
    std::copy(bytes.begin(), bytes.end(), rte_pktmbuf_mtod(m, std::uint8_t*));
    receive(kP0, std::vector{m});
    EXPECT_EQ(drops(kP0, DropReason::kNoBuffer), 1U);
}

}  // namespace

}  // namespace sluice::test
