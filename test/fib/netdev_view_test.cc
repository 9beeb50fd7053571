// SPDX-License-Identifier: BSD-3-Clause
#include "fib/netdev_view.h"

#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fib/lpm_support.h"
#include "fib/shared.h"
#include "net/address.h"

namespace sluice::fib::test {

namespace {

TEST(LocalAddresses, holds_what_it_was_given_and_nothing_else) {
    std::mt19937 random(11);
    std::vector<net::Ipv4Addr> v4;
    std::vector<net::Ipv6Addr> v6;
    for (int i = 0; i < 3000; ++i) {
        v4.push_back(net::Ipv4Addr::from_host(static_cast<std::uint32_t>(random()) | 1U));
        net::Ipv6Addr a;
        for (auto& byte : a.bytes) {
            byte = static_cast<std::uint8_t>(random());
        }
        a.bytes[15] |= 1U;
        v6.push_back(a);
    }
    const LocalAddresses local(v4, v6);
    for (const auto& a : v4) {
        ASSERT_TRUE(local.contains(a)) << a.to_string();
        ASSERT_FALSE(local.contains(net::Ipv4Addr::from_host(a.host() & ~1U)));
    }
    for (auto a : v6) {
        ASSERT_TRUE(local.contains(a)) << a.to_string();
        a.bytes[15] &= 0xfeU;
        ASSERT_FALSE(local.contains(a));
    }
}

TEST(LocalAddresses, any_of_a_family) {
    const LocalAddresses none;
    EXPECT_FALSE(none.contains(a4("0.0.0.0")));
    EXPECT_FALSE(none.contains(a6("::")));
    EXPECT_EQ(none.any4(), nullptr);
    EXPECT_EQ(none.any6(), nullptr);
    const LocalAddresses link_local({}, {a6("fe80::1"), a6("febf::1")});
    EXPECT_EQ(link_local.any6(), nullptr) << "means nothing on another link";
    const LocalAddresses both({a4("10.0.0.1")}, {a6("fe80::1"), a6("fd00::1")});
    EXPECT_EQ(*both.any4(), a4("10.0.0.1"));
    EXPECT_EQ(*both.any6(), a6("fd00::1"));
}

NetdevView view() {
    NetdevView v;
    v.has_ipv4 = v.has_ipv6 = true;
    v.addresses4 = {
        {a4("10.0.0.1"), 24}, {a4("10.7.7.1"), 24}, {a4("10.9.9.0"), 31}, {a4("10.8.8.8"), 32}};
    v.addresses6 = {{a6("fd00::1"), 64}, {a6("2001:db8::1"), 64}};
    v.link_local = a6("fe80::ff:fe00:1");
    return v;
}

TEST(NetdevView, Check_138_source_of_the_peer_s_subnet) {
    const NetdevView v = view();
    EXPECT_EQ(*v.source_for(a4("10.7.7.9")), a4("10.7.7.1"));
    EXPECT_EQ(*v.source_for(a4("10.9.9.1")), a4("10.9.9.0"));
    EXPECT_EQ(*v.source_for(a4("192.0.2.1")), a4("10.0.0.1")) << "else the first";
    EXPECT_EQ(*v.source_for(a6("2001:db8::9")), a6("2001:db8::1"));
    EXPECT_EQ(*v.source_for(a6("2001:db8:9::9")), a6("fd00::1"));
    EXPECT_EQ(*v.source_for(a6("fe80::9")), v.link_local);
    NetdevView bare;
    EXPECT_EQ(bare.source_for(a4("10.0.0.9")), nullptr);
    EXPECT_EQ(bare.source_for(a6("fe80::9")), nullptr);
    bare.has_ipv6 = true;
    bare.link_local = a6("fe80::1");
    EXPECT_EQ(*bare.source_for(a6("2001:db8::9")), a6("fe80::1"));
}

TEST(NetdevView, broadcast_addresses) {
    const NetdevView v = view();
    EXPECT_TRUE(v.is_broadcast(a4("10.0.0.255")));
    EXPECT_TRUE(v.is_broadcast(a4("10.7.7.255")));
    EXPECT_FALSE(v.is_broadcast(a4("10.0.0.0")));
    EXPECT_FALSE(v.is_broadcast(a4("10.9.9.1"))) << "Case H106: a /31 has none";
    EXPECT_FALSE(v.is_broadcast(a4("10.8.8.8")));
    EXPECT_FALSE(v.is_broadcast(a4("255.255.255.255"))) << "not a directed one";
}

TEST(NetdevView, what_is_on_the_link_and_what_is_its_own) {
    const NetdevView v = view();
    EXPECT_TRUE(v.on_link(a4("10.0.0.200")));
    EXPECT_FALSE(v.on_link(a4("10.0.1.1")));
    EXPECT_TRUE(v.on_link(a6("fd00::abcd")));
    EXPECT_TRUE(v.on_link(a6("fe80::abcd")));
    EXPECT_FALSE(v.on_link(a6("fd00:1::1")));
    EXPECT_TRUE(v.owns(a4("10.8.8.8")));
    EXPECT_FALSE(v.owns(a4("10.0.0.2")));
    EXPECT_TRUE(v.owns(a6("2001:db8::1")));
    EXPECT_TRUE(v.owns(a6("fe80::ff:fe00:1")));
    EXPECT_FALSE(v.owns(a6("fe80::ff:fe00:2")));
}

TEST(NetdevView, groups) {
    NetdevView v = view();
    EXPECT_TRUE(v.in_group(a6("ff02::1")));
    EXPECT_TRUE(v.in_group(a6("ff02::2")));
    EXPECT_TRUE(v.in_group(a6("ff02::1:ff00:1"))) << "solicited-node of all three";
    EXPECT_FALSE(v.in_group(a6("ff02::1:ff00:2")));
    EXPECT_FALSE(v.in_group(a6("ff01::1")));
    EXPECT_FALSE(v.in_group(a6("ff05::2")));
    v.forwarding = false;
    EXPECT_FALSE(v.in_group(a6("ff02::2"))) << "a host is no router";
    v.has_ipv6 = false;
    EXPECT_FALSE(v.in_group(a6("ff02::1")));
}

TEST(Shared, netdevs_are_published_by_pointer) {
    ManualReclaimer reclaimer;
    Shared shared(16, 16, 1, reclaimer);
    const NetdevView first = view();
    const NetdevView second = view();
    EXPECT_EQ(shared.netdev(NetdevId{7}), nullptr);
    EXPECT_EQ(shared.publish(NetdevId{7}, &first), nullptr);
    EXPECT_EQ(shared.netdev(NetdevId{7}), &first);
    EXPECT_EQ(shared.publish(NetdevId{7}, &second), &first) << "the old one is the caller's";
    EXPECT_EQ(shared.netdev(NetdevId{static_cast<std::uint16_t>(kMaxNetdevs - 1)}), nullptr);
}

}  // namespace

}  // namespace sluice::fib::test
