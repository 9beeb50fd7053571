// SPDX-License-Identifier: BSD-3-Clause
#include "net/address.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

namespace sluice::net {
namespace {

struct Good {
    std::string_view in;
    std::string_view out;  // as printed; empty: as read
};

template <class T>
void expect_good(const std::vector<Good>& rows) {
    for (const auto& row : rows) {
        SCOPED_TRACE(row.in);
        const auto parsed = T::parse(row.in);
        if (!parsed) {
            ADD_FAILURE() << parsed.error();
            continue;
        }
        const std::string printed = parsed->to_string();
        EXPECT_EQ(printed, row.out.empty() ? row.in : row.out);
        // What is printed is read back as the same.
        const auto again = T::parse(printed);
        ASSERT_TRUE(again) << again.error();
        EXPECT_EQ(*again, *parsed);
    }
}

struct Bad {
    std::string_view in;
    std::string_view error;
};

template <class T>
void expect_bad(const std::vector<Bad>& rows) {
    for (const auto& row : rows) {
        SCOPED_TRACE(row.in);
        const auto parsed = T::parse(row.in);
        if (parsed) {
            ADD_FAILURE() << "taken as " << parsed->to_string();
        } else {
            EXPECT_EQ(parsed.error(), row.error);
        }
    }
}

TEST(MacAddr, ReadsAndPrints) {
    expect_good<MacAddr>({{"02:00:00:00:00:01", ""},
                          {"52:54:00:12:34:56", ""},
                          {"Aa:bB:CC:dd:EE:ff", "aa:bb:cc:dd:ee:ff"}});
}

TEST(MacAddr, RefusesWhatIsNone) {
    constexpr std::string_view kNot = "not a MAC address, as in 02:00:00:00:00:01";
    expect_bad<MacAddr>({{"", kNot},
                         {"02:00:00:00:00", kNot},
                         {"02:00:00:00:00:0", kNot},
                         {"02:00:00:00:00:01:", kNot},
                         {"2:0:0:0:0:1", kNot},
                         {"02-00-00-00-00-01", kNot},
                         {"02:00:00:00:00:0g", kNot},
                         {"02:00:00:00:00:+1", kNot},
                         {"02:00:00:00:00 01", kNot},
                         {"0x:00:00:00:00:01", kNot},
                         {"41135085296", kNot},
                         {std::string_view("02:00:00:00:00:0\0", 17), kNot}});
}

TEST(MacAddr, KnowsGroups) {
    EXPECT_TRUE(kBroadcastMac.is_group());
    EXPECT_TRUE(MacAddr::parse("33:33:00:00:00:01")->is_group());
    EXPECT_FALSE(MacAddr::parse("02:00:00:00:00:01")->is_group());
    EXPECT_TRUE(MacAddr{}.is_zero());
}

TEST(Ipv4Addr, ReadsAndPrints) {
    expect_good<Ipv4Addr>(
        {{"0.0.0.0", ""}, {"10.0.0.1", ""}, {"255.255.255.255", ""}, {"192.0.2.100", ""}});
    EXPECT_EQ(Ipv4Addr::parse("1.2.3.4")->host(), 0x01020304U);
    EXPECT_EQ(Ipv4Addr::from_host(0x01020304U).to_string(), "1.2.3.4");
}

TEST(Ipv4Addr, RefusesWhatIsNone) {
    constexpr std::string_view kNot = "not an IPv4 address";
    expect_bad<Ipv4Addr>({{"", kNot},
                          {"10", kNot},
                          {"10.0.1", kNot},
                          {"10.0.0.1.", kNot},
                          {"10.0.0.1.2", kNot},
                          {".10.0.0.1", kNot},
                          {"10..0.1", kNot},
                          {"10.0.0.256", kNot},
                          {"10.0.0.1000", kNot},
                          {"10.0.0.4294967297", kNot},
                          {"10.0.0.-1", kNot},
                          {"10.0.0.+1", kNot},
                          {"10.0.0. 1", kNot},
                          {"10.0.0.1 ", kNot},
                          {"10.0.0.0x1", "not an IPv4 address"},
                          {"10.0.0.01", "not an IPv4 address: leading zero"},
                          {"010.0.0.1", "not an IPv4 address: leading zero"},
                          {"10.0.0.00", "not an IPv4 address: leading zero"},
                          {std::string_view("10.0.0.1\0", 9), kNot}});
}

TEST(Ipv4Addr, KnowsItsKinds) {
    const auto at = [](std::string_view text) { return *Ipv4Addr::parse(text); };
    EXPECT_TRUE(at("0.1.2.3").is_this_network());
    EXPECT_FALSE(at("1.0.0.0").is_this_network());
    EXPECT_TRUE(at("127.25.3.4").is_loopback());
    EXPECT_FALSE(at("128.0.0.1").is_loopback());
    EXPECT_TRUE(at("224.0.0.0").is_multicast());
    EXPECT_TRUE(at("239.255.255.255").is_multicast());
    EXPECT_FALSE(at("223.255.255.255").is_multicast());
    EXPECT_FALSE(at("240.0.0.0").is_multicast());
    EXPECT_TRUE(at("240.0.0.0").is_reserved());
    EXPECT_TRUE(at("255.255.255.255").is_limited_broadcast());
    EXPECT_FALSE(at("255.255.255.254").is_limited_broadcast());
    EXPECT_TRUE(at("169.254.1.1").is_link_local());
    EXPECT_FALSE(at("169.253.1.1").is_link_local());
}

// RFC 4291 2.2 for what is read, RFC 5952 4 and 5 for what is printed.
TEST(Ipv6Addr, ReadsAndPrints) {
    expect_good<Ipv6Addr>({{"::", ""},
                           {"::1", ""},
                           {"1::", ""},
                           {"2001:db8::1", ""},
                           {"fe80::ff:fe00:1", ""},
                           {"1:2:3:4:5:6:7:8", ""},
                           {"0:0:0:0:0:0:0:0", "::"},
                           {"2001:0DB8:0000:0000:0000:0000:0000:00AB", "2001:db8::ab"},
                           {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
                           {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
                           {"2001:db8:0:1:1:1:1:1", ""},
                           {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
                           {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
                           {"1:0:0:2:3:0:0:0", "1:0:0:2:3::"},
                           {"::ffff:192.0.2.1", ""},
                           {"::ffff:c000:201", "::ffff:192.0.2.1"},
                           {"::192.0.2.1", "::c000:201"},
                           {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
                           {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"}});
}

TEST(Ipv6Addr, RefusesWhatIsNone) {
    constexpr std::string_view kNot = "not an IPv6 address";
    constexpr std::string_view kTwice = "not an IPv6 address: \"::\" stands in it twice";
    constexpr std::string_view kZone = "an IPv6 address with a zone, which is not taken here";
    expect_bad<Ipv6Addr>({{"", kNot},
                          {":", kNot},
                          {":::", kNot},
                          {"1", kNot},
                          {"1:2:3:4:5:6:7", kNot},
                          {"1:2:3:4:5:6:7:", kNot},
                          {":1:2:3:4:5:6:7", kNot},
                          {"1:2:3:4:5:6:7:8:9", kNot},
                          {"1:2:3:4:5:6:7:8::", kNot},
                          {"::1:2:3:4:5:6:7:8", kNot},
                          {"1:2:3:4::5:6:7:8", kNot},
                          {"1::2::3", kTwice},
                          {"::1::", kTwice},
                          {"1:::2", kNot},
                          {"12345::", kNot},
                          {"::g", kNot},
                          {"::1 ", kNot},
                          {"::-1", kNot},
                          {"fe80::1%eth0", kZone},
                          {"::1.2.3", kNot},
                          {"::1.2.3.4.5", kNot},
                          {"::1.2.3.256", kNot},
                          {"::1.2.3.04", kNot},
                          {"::1.2.3.4:5", kNot},
                          {"1:2:3:4:5:6:7:1.2.3.4", kNot},
                          {"1:2:3:4:5:1.2.3.4", kNot},
                          {"1.2.3.4", kNot},
                          {"::/0", kNot}});
}

TEST(Ipv6Addr, KnowsItsKinds) {
    const auto at = [](std::string_view text) { return *Ipv6Addr::parse(text); };
    EXPECT_TRUE(at("::").is_unspecified());
    EXPECT_TRUE(at("::1").is_loopback());
    EXPECT_FALSE(at("::2").is_loopback());
    EXPECT_TRUE(at("ff02::1").is_multicast());
    EXPECT_TRUE(at("fe80::1").is_link_local());
    EXPECT_TRUE(at("febf::1").is_link_local());
    EXPECT_FALSE(at("fec0::1").is_link_local());
    EXPECT_FALSE(at("fe7f::1").is_link_local());
}

// Case 63; RFC 4291 2.5.1 and appendix A.
TEST(Ipv6Addr, Case_63_LinkLocalFromMac) {
    EXPECT_EQ(link_local_from_mac(*MacAddr::parse("02:00:00:00:00:01")).to_string(),
              "fe80::ff:fe00:1");
    EXPECT_EQ(link_local_from_mac(*MacAddr::parse("34:56:78:9a:bc:de")).to_string(),
              "fe80::3656:78ff:fe9a:bcde");
}

TEST(Ipv6Addr, GroupsOfAnAddress) {
    const auto target = *Ipv6Addr::parse("4037::1:800:200e:8c6c");
    EXPECT_EQ(solicited_node(target).to_string(), "ff02::1:ff0e:8c6c");  // RFC 4291 2.7.1
    EXPECT_EQ(multicast_mac(solicited_node(target)).to_string(), "33:33:ff:0e:8c:6c");
    EXPECT_EQ(kAllNodes.to_string(), "ff02::1");
    EXPECT_EQ(kAllRouters.to_string(), "ff02::2");
}

TEST(IpAddr, ReadsBothFamilies) {
    expect_good<IpAddr>({{"10.0.0.1", ""}, {"fd00::1", ""}});
    EXPECT_EQ(IpAddr::parse("10.0.0.1")->family(), Family::kIpv4);
    EXPECT_EQ(IpAddr::parse("fd00::1")->family(), Family::kIpv6);
    expect_bad<IpAddr>({{"", "not an IPv4 or IPv6 address"},
                        {"host", "not an IPv4 or IPv6 address"},
                        {"10.0.0.300", "not an IPv4 address"},
                        {"fd00::1::", "not an IPv6 address: \"::\" stands in it twice"}});
}

TEST(Prefix, ReadsAndPrints) {
    expect_good<Ipv4Prefix>({{"0.0.0.0/0", ""}, {"10.0.0.0/8", ""}, {"10.0.0.1/32", ""}});
    expect_good<Ipv6Prefix>({{"::/0", ""}, {"2001:db8::/32", ""}, {"fd00::1/128", ""}});
    expect_good<IpPrefix>({{"10.9.9.0/31", ""}, {"fd00:9::/127", ""}});
}

TEST(Prefix, RefusesWhatIsNone) {
    expect_bad<Ipv4Prefix>(
        {{"10.0.0.1/24", "host bits set; did you mean 10.0.0.0/24?"},
         {"10.0.0.1/0", "host bits set; did you mean 0.0.0.0/0?"},
         {"10.0.0.0/33", "prefix length is not a number from 0 to 32"},
         {"10.0.0.0/", "prefix length is not a number from 0 to 32"},
         {"10.0.0.0/08", "prefix length is not a number from 0 to 32"},
         {"10.0.0.0/-1", "prefix length is not a number from 0 to 32"},
         {"10.0.0.0/8/8", "prefix length is not a number from 0 to 32"},
         {"10.0.0.0/255.0.0.0", "prefix length is not a number from 0 to 32"},
         {"10/8", "not an IPv4 address"},
         {"/8", "not an IPv4 address"},
         {"10.0.0.1", "no prefix length, as in 192.0.2.0/24 (for this one address: 10.0.0.1/32)"}});
    expect_bad<Ipv6Prefix>(
        {{"fd00::1/64", "host bits set; did you mean fd00::/64?"},
         {"fd00::/129", "prefix length is not a number from 0 to 128"},
         {"fd00::1", "no prefix length, as in 2001:db8::/32 (for this one address: fd00::1/128)"}});
    expect_bad<IpPrefix>(
        {{"default", "not an IPv4 or IPv6 prefix, as in 192.0.2.0/24 or 2001:db8::/32"},
         {"", "not an IPv4 or IPv6 prefix, as in 192.0.2.0/24 or 2001:db8::/32"},
         {"fd00::1/64", "host bits set; did you mean fd00::/64?"},
         {"10.0.0.1/24", "host bits set; did you mean 10.0.0.0/24?"}});
}

TEST(Prefix, ClearsHostBitsAtEveryLength) {
    for (unsigned length = 0; length <= 32; ++length) {
        const auto prefix =
            Ipv4Prefix::of(Ipv4Addr::from_host(0xffffffffU), static_cast<std::uint8_t>(length));
        const std::uint32_t mask = length == 0 ? 0 : 0xffffffffU << (32 - length);
        EXPECT_EQ(prefix.address.host(), mask) << length;
    }
}

TEST(Prefix, Contains) {
    struct Case {
        std::string_view name, prefix, address;
        bool want;
    };
    for (const Case& c : {Case{"first address", "10.0.0.0/8", "10.0.0.0", true},
                          Case{"last address", "10.0.0.0/8", "10.255.255.255", true},
                          Case{"next address", "10.0.0.0/8", "11.0.0.0", false},
                          Case{"bits within a byte", "10.9.9.0/31", "10.9.9.2", false},
                          Case{"default route has all", "0.0.0.0/0", "255.255.255.255", true},
                          Case{"other family", "0.0.0.0/0", "::", false},
                          Case{"IPv6", "fd00:9::/127", "fd00:9::1", true},
                          Case{"IPv6, out", "fd00:9::/127", "fd00:9::2", false}}) {
        EXPECT_EQ(IpPrefix::parse(c.prefix)->contains(*IpAddr::parse(c.address)), c.want) << c.name;
    }
    const auto wide = *Ipv4Prefix::parse("10.0.0.0/8");
    EXPECT_TRUE(wide.contains(*Ipv4Prefix::parse("10.1.0.0/16")));
    EXPECT_TRUE(wide.contains(wide));
    EXPECT_FALSE(wide.contains(*Ipv4Prefix::parse("0.0.0.0/0")));
}

TEST(IpPrefix, MadeOfAnAddress) {
    EXPECT_EQ(IpPrefix::of(*IpAddr::parse("10.0.0.9"), 24).to_string(), "10.0.0.0/24");
    EXPECT_EQ(IpPrefix::of(*IpAddr::parse("fd00::9"), 64).to_string(), "fd00::/64");
    EXPECT_EQ(IpPrefix::default_route(Family::kIpv4).to_string(), "0.0.0.0/0");
    EXPECT_EQ(IpPrefix::default_route(Family::kIpv6).to_string(), "::/0");
    EXPECT_EQ(IpPrefix::parse("fd00::/64")->address(), *IpAddr::parse("fd00::"));
    EXPECT_EQ(IpPrefix::parse("fd00::/64")->length(), 64);
}

TEST(InterfaceAddr, KeepsHostBits) {
    expect_good<InterfaceAddr>({{"10.0.0.1/24", ""}, {"fd00::1/64", ""}, {"fe80::1/128", ""}});
    EXPECT_EQ(InterfaceAddr::parse("10.0.0.1/24")->network().to_string(), "10.0.0.0/24");
    expect_bad<InterfaceAddr>(
        {{"10.0.0.1", "no prefix length, as in 192.0.2.0/24 (for this one address: 10.0.0.1/32)"},
         {"10.0.0.1/40", "prefix length is not a number from 0 to 32"},
         {"p0", "not an IPv4 or IPv6 address with its length, as in 192.0.2.1/24"}});
}

// Case 106; RFC 3021 2.1.
TEST(InterfaceAddr, Case_106_Broadcast) {
    const auto broadcast = [](std::string_view text) {
        const auto b = InterfaceAddr::parse(text)->broadcast();
        return b ? b->to_string() : "none";
    };
    EXPECT_EQ(broadcast("10.0.0.1/24"), "10.0.0.255");
    EXPECT_EQ(broadcast("10.0.0.1/30"), "10.0.0.3");
    EXPECT_EQ(broadcast("10.9.9.0/31"), "none");
    EXPECT_EQ(broadcast("10.9.9.0/32"), "none");
    EXPECT_EQ(broadcast("fd00::1/64"), "none");
}

TEST(Hash, TellsNeighborsApart) {
    std::unordered_set<IpPrefix> prefixes;
    std::set<std::size_t> low_bits;
    for (std::uint32_t i = 0; i < 4096; ++i) {
        const auto address = IpAddr(Ipv4Addr::from_host(0x0a000000U + (i << 8U)));
        prefixes.insert(IpPrefix::of(address, 24));
        low_bits.insert(std::hash<IpAddr>{}(address) % 4096);
    }
    EXPECT_EQ(prefixes.size(), 4096U);
    // A fair hash fills 1 - 1/e = 63 % of as many buckets as there are keys.
    EXPECT_GT(low_bits.size(), 4096U / 2);
    EXPECT_NE(std::hash<IpPrefix>{}(*IpPrefix::parse("10.0.0.0/8")),
              std::hash<IpPrefix>{}(*IpPrefix::parse("10.0.0.0/9")));
    EXPECT_NE(std::hash<Ipv6Addr>{}(*Ipv6Addr::parse("fd00::1")),
              std::hash<Ipv6Addr>{}(*Ipv6Addr::parse("fd00::2")));
}

}  // namespace
}  // namespace sluice::net
