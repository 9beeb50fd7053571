// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "fuzz/dice.h"
#include "net/address.h"
#include "support/packet.h"

/// The names and addresses that changes and packets are made of: few, so that they meet.
namespace sluice::test::fuzz {

inline constexpr const char* kNetns[]{"default", "default", "blue", "red"};
inline constexpr std::uint32_t kLinks = 10;  // p0 to p3, then v4 to v9
inline constexpr const char* kVrfs[]{"vrf0", "vrf1", "vrf2"};
inline constexpr std::uint32_t kTables[]{254, 254, 254, 100, 101, 102, 200, 201};
inline constexpr std::uint32_t kHops = 6;       // next-hop objects 1 to 6
inline constexpr std::uint32_t kGroups = 4;     // 11 to 14
inline constexpr std::uint32_t kResilient = 2;  // 21 and 22

inline std::string link_name(std::uint32_t link) {
    return fmt::format("{}{}", link < 4 ? "p" : "v", link);
}
/// A VLAN's port is always the same.
inline std::string parent_name(std::uint32_t link) {
    return fmt::format("p{}", link % 3);
}
/// p0 and p3 have overlapping subnets: in two VRFs or netns that is fine.
inline std::uint32_t subnet_of(std::uint32_t link) {
    return link == 3 ? 0 : link;
}
inline net::IpAddr ip(std::string_view text) {
    return *net::IpAddr::parse(text);
}
/// Host 1 is the router, 2 to 6 are others, 255 the broadcast address.
inline net::Ipv4Addr host4(std::uint32_t link, std::uint32_t host) {
    return net::Ipv4Addr::from_host(0x0a000000U | subnet_of(link) << 8U | host);
}
inline net::Ipv6Addr host6(std::uint32_t link, std::uint32_t host) {
    net::Ipv6Addr address{{0xfd, 0}};
    address.bytes[3] = static_cast<std::uint8_t>(subnet_of(link));
    address.bytes[15] = static_cast<std::uint8_t>(host);
    return address;
}
/// Of hosts; few, so that a neighbor's change may change nothing.
inline net::MacAddr host_mac(Dice& dice) {
    return {{2, 0xaa, 0, 0, 0, static_cast<std::uint8_t>(dice.from(1, 3))}};
}
inline net::Ipv6Addr link_local(std::uint32_t host) {
    net::Ipv6Addr address{{0xfe, 0x80}};
    address.bytes[15] = static_cast<std::uint8_t>(host);
    return address;
}

inline constexpr const char* kPrefixes4[]{"0.0.0.0/0",
                                          "192.0.2.0/24",
                                          "192.0.2.0/24",
                                          "192.0.2.0/25",
                                          "192.0.2.8/29",
                                          "192.0.2.9/32",
                                          "198.51.100.0/24",
                                          "198.51.100.128/25",
                                          "198.51.100.130/32",
                                          "203.0.113.0/24",
                                          "203.0.0.0/8",
                                          "10.0.0.0/8",
                                          "10.1.0.0/16",
                                          "10.2.0.0/25",
                                          "10.0.1.2/32",
                                          "172.16.0.0/12",
                                          "240.0.0.0/4",
                                          "127.1.0.0/16"};
inline constexpr const char* kPrefixes6[]{"::/0",
                                          "2001:db8:1::/48",
                                          "2001:db8:1::/48",
                                          "2001:db8:1:1::/64",
                                          "2001:db8:1:1::8/125",
                                          "2001:db8:1:1::9/128",
                                          "2001:db8:2::/48",
                                          "2001:db8:2::/49",
                                          "2001:db8:2::9/128",
                                          "2001:db8:3::/48",
                                          "2001:db8::/32",
                                          "2001::/16",
                                          "fd00::/8",
                                          "fd00:1::/32",
                                          "fd00:1::2/128"};
inline constexpr const char* kRemote4[]{"192.0.2.9",
                                        "192.0.2.10",
                                        "192.0.2.77",
                                        "192.0.2.200",
                                        "198.51.100.4",
                                        "198.51.100.130",
                                        "198.51.100.131",
                                        "203.0.113.1",
                                        "203.0.113.2",
                                        "172.16.9.9",
                                        "8.8.0.90",
                                        "240.0.0.9"};
inline constexpr const char* kRemote6[]{"2001:db8:1::1",
                                        "2001:db8:1:1::9",
                                        "2001:db8:1:1::a",
                                        "2001:db8:1:1::77",
                                        "2001:db8:2::9",
                                        "2001:db8:2::a",
                                        "2001:db8:2:8000::9",
                                        "2001:db8:3::1",
                                        "2001:db8:9::1",
                                        "2a00::5a"};
inline constexpr const char* kMartian4[]{"0.0.0.0",
                                         "0.1.2.3",
                                         "127.0.0.1",
                                         "127.1.2.3",
                                         "224.0.0.1",
                                         "239.1.2.3",
                                         "255.255.255.255",
                                         "240.1.1.1"};
inline constexpr const char* kMartian6[]{
    "::", "::1", "ff02::1", "ff05::2", "fe80::99", "::ffff:10.0.0.1"};
inline constexpr std::uint8_t kDscps[]{0, 0, 0, 10, 46};

}  // namespace sluice::test::fuzz
