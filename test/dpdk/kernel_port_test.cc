// SPDX-License-Identifier: BSD-3-Clause
// Ports whose other end is an interface of this machine's kernel: net_tap, net_af_packet.
// Everything happens in namespaces that the test makes.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <rte_ethdev.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dpdk/port.h"
#include "environment.h"

namespace sluice::dpdk {
namespace {

/// A network namespace of its own, deleted with all that is in it.
class Netns {
public:
    explicit Netns(std::string name) : name_(std::move(name)) {
        made_ = test::shell("ip netns add " + name_);
    }
    ~Netns() {
        if (made_) {
            test::shell("ip netns del " + name_);
        }
    }
    Netns(const Netns&) = delete;
    Netns& operator=(const Netns&) = delete;
    Netns(Netns&&) = delete;
    Netns& operator=(Netns&&) = delete;

    bool made() const { return made_; }
    bool ip(const std::string& words) const { return test::shell("ip -n " + name_ + " " + words); }
    const std::string& name() const { return name_; }

    /// A packet socket on `interface` in there; -1 without.
    int packet_socket(const std::string& interface) const {
        const int here = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        const int there = ::open(("/run/netns/" + name_).c_str(), O_RDONLY | O_CLOEXEC);
        int fd = -1;
        if (setns(there, CLONE_NEWNET) == 0) {
            fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
            sockaddr_ll address{};
            address.sll_family = AF_PACKET;
            address.sll_protocol = htons(ETH_P_ALL);
            address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
            if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
                close(fd);
                fd = -1;
            }
            if (setns(here, CLONE_NEWNET) != 0) {
                std::abort();
            }
        }
        close(here);
        close(there);
        return fd;
    }

private:
    std::string name_;
    bool made_ = false;
};

/// Waits for the test frame among whatever else the kernel says there.
bool arrives(int socket, const std::vector<std::uint8_t>& frame) {
    return test::eventually([&] {
        std::array<std::uint8_t, 65536> buffer{};
        pollfd waiting{.fd = socket, .events = POLLIN, .revents = 0};
        while (poll(&waiting, 1, 0) > 0) {
            const ssize_t n = recv(socket, buffer.data(), buffer.size(), 0);
            if (n == static_cast<ssize_t>(frame.size()) &&
                std::equal(frame.begin(), frame.end(), buffer.begin())) {
                return true;
            }
        }
        return false;
    });
}

class KernelPort : public testing::Test {
protected:
    void SetUp() override {
        if (geteuid() != 0) {
            GTEST_SKIP() << "needs root for interfaces and namespaces";
        }
        host_.emplace(test::unique("slt"));
        if (!host_->made()) {
            GTEST_SKIP() << "this machine makes no network namespaces";
        }
        auto pool = PktPool::create("kernel-port-test", 4096);
        ASSERT_TRUE(pool) << pool.error().message;
        pool_.emplace(std::move(*pool));
    }
    void TearDown() override {
        if (pool_) {
            EXPECT_EQ(pool_->in_use(), 0U) << "mbufs are lost";
        }
    }
    Result<Port> open(const PortOptions& options) {
        const std::array<PktPool*, 1> pools{&*pool_};
        return Port::open(options, pools);
    }
    PortOptions tap_options() const { return {.device = "net_tap0,iface=" + tap_}; }
    /// Moves the kernel's end into the host's namespace and brings it up there.
    void plug_in() {
        ASSERT_TRUE(test::shell("ip link set " + tap_ + " netns " + host_->name()));
        ASSERT_TRUE(host_->ip("link set " + tap_ + " up"));
    }
    std::optional<Netns> host_;
    std::optional<PktPool> pool_;
    std::string tap_ = test::unique("slt");
};

TEST_F(KernelPort, TapCarriesFramesBothWaysAfterItsEndWasMoved) {
    auto port = open(tap_options());
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_TRUE(port->start());
    plug_in();
    const int host = host_->packet_socket(tap_);
    ASSERT_GE(host, 0);
    const auto frame = test::test_frame(1514);
    ASSERT_TRUE(test::send(*port, test::packet_of(*pool_, frame)));
    EXPECT_TRUE(arrives(host, frame));
    ASSERT_EQ(write(host, frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
    EXPECT_EQ(test::receive(*port), frame);
    close(host);
}

TEST_F(KernelPort, TapSendsSegmentedFrames) {
    auto small = PktPool::create("kernel-port-small", 256, RTE_PKTMBUF_HEADROOM + 200);
    ASSERT_TRUE(small) << small.error().message;
    auto port = open(tap_options());
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_TRUE(port->start());
    plug_in();
    const int host = host_->packet_socket(tap_);
    const auto frame = test::test_frame(1514);
    rte_mbuf* packet = test::packet_of(*small, frame);
    ASSERT_GT(packet->nb_segs, 5);
    ASSERT_TRUE(test::send(*port, packet));
    EXPECT_TRUE(arrives(host, frame));
    close(host);
}

TEST_F(KernelPort, TapFollowsTheLinkWhereverItsEndIs) {
    auto port = open(tap_options());
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_TRUE(port->start());
    EXPECT_TRUE(port->link().up);
    plug_in();
    EXPECT_TRUE(test::eventually([&] { return port->link().up; }));
    ASSERT_TRUE(host_->ip("link set " + tap_ + " down"));
    EXPECT_TRUE(test::eventually([&] { return !port->link().up; }));
    ASSERT_TRUE(host_->ip("link set " + tap_ + " name host0"));
    ASSERT_TRUE(host_->ip("link set host0 up"));
    EXPECT_TRUE(test::eventually([&] { return port->link().up; })) << "under its new name";
    host_.reset();
    EXPECT_TRUE(test::eventually([&] { return !port->link().up; }))
        << "asking must not keep the namespace alive";
}

TEST_F(KernelPort, TapChangesMtuAndMacAndStartsAgainAfterItsEndWasMoved) {
    auto port = open(tap_options());
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_TRUE(port->start());
    plug_in();
    const auto mtu = port->set_mtu(1400);
    EXPECT_TRUE(mtu) << mtu.error().message;
    EXPECT_EQ(port->mtu(), 1400);
    EXPECT_TRUE(port->set_mtu(1500));
    EXPECT_TRUE(port->set_mac({{2, 0, 0, 0, 0, 9}}));
    EXPECT_TRUE(port->set_promiscuous(true));
    port->stop();
    EXPECT_FALSE(port->link().up);

    const int host = host_->packet_socket(tap_);
    auto stale = test::test_frame(100);
    stale[60] = 0;
    ASSERT_GT(write(host, stale.data(), stale.size()), 0);
    ASSERT_TRUE(port->start());
    EXPECT_TRUE(port->link().up);
    const auto frame = test::test_frame(1514);
    ASSERT_GT(write(host, frame.data(), frame.size()), 0);
    EXPECT_EQ(test::receive(*port), frame) << "not what came while it was stopped";
    ASSERT_TRUE(test::send(*port, test::packet_of(*pool_, frame)));
    EXPECT_TRUE(arrives(host, frame));
    close(host);
}

TEST_F(KernelPort, TapHasAnotherMacThanItsEndAndSetsTheMtuOfIt) {
    for (const std::optional<net::MacAddr> mac :
         {std::optional<net::MacAddr>{}, std::optional(net::MacAddr{{2, 0, 0, 0, 0, 7}})}) {
        PortOptions options = tap_options();
        options.mac = mac;
        options.mtu = 1300;
        auto port = open(options);
        ASSERT_TRUE(port) << port.error().message;
        ASSERT_TRUE(port->start());
        EXPECT_FALSE(port->mac().is_group());
        EXPECT_FALSE(port->mac().is_zero());
        EXPECT_EQ(mac.value_or(port->mac()), port->mac());
        EXPECT_FALSE(test::shell("ip link show " + tap_ + " | grep -q " + port->mac().to_string()));
        EXPECT_TRUE(test::shell("ip link show " + tap_ + " | grep -q 'mtu 1300'"));
    }
}

TEST_F(KernelPort, TapSpreadsFlowsOverItsQueuesAndHasThemInPairs) {
    PortOptions options = tap_options();
    options.rx_queues = 1;
    options.tx_queues = 2;
    auto port = open(options);
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_EQ(port->rx_queues(), 2);
    EXPECT_EQ(port->tx_queues(), 2);
    EXPECT_EQ(port->notes().size(), 1U);
    ASSERT_TRUE(port->start());
    plug_in();
    const int host = host_->packet_socket(tap_);
    // UDP to many ports; the kernel hashes the flow.
    std::array<int, 2> seen{};
    EXPECT_TRUE(test::eventually([&] {
        for (std::uint8_t i = 0; i < 64; ++i) {
            std::vector<std::uint8_t> udp(60);
            std::ranges::copy(
                std::to_array<std::uint8_t>({2,    0, 0,  0,  0, 9, 2, 0, 0,  0,  0, 8, 8,  0,
                                             0x45, 0, 0,  46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0,
                                             0,    1, 10, 0,  0, 2, 9, i, 9,  i,  0, 26}),
                udp.begin());
            EXPECT_GT(write(host, udp.data(), udp.size()), 0);
        }
        for (std::uint16_t queue = 0; queue < 2; ++queue) {
            std::array<rte_mbuf*, 64> packets{};
            const auto n = rte_eth_rx_burst(port->id().value, queue, packets.data(), 64);
            seen[queue] += n;
            rte_pktmbuf_free_bulk(packets.data(), n);
        }
        return seen[0] > 0 && seen[1] > 0;
    })) << seen[0]
        << " and " << seen[1];
    close(host);
}

TEST_F(KernelPort, TapWakesASleeper) {
    PortOptions options = tap_options();
    options.rx_interrupts = true;
    auto port = open(options);
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_FALSE(port->rx_interrupt_supported()) << "not started";
    ASSERT_TRUE(port->start());
    ASSERT_TRUE(port->rx_interrupt_supported());
    plug_in();
    const auto wakeup = port->rx_wakeup(0);
    ASSERT_TRUE(wakeup);
    const int host = host_->packet_socket(tap_);
    // The kernel says things of its own when an interface comes up; wait until it has.
    pollfd sleeper{.fd = wakeup->fd, .events = POLLIN, .revents = 0};
    ASSERT_TRUE(test::eventually([&] {
        std::array<rte_mbuf*, 32> packets{};
        const auto n = rte_eth_rx_burst(port->id().value, 0, packets.data(), 32);
        rte_pktmbuf_free_bulk(packets.data(), n);
        EXPECT_TRUE(wakeup->arm());
        return poll(&sleeper, 1, 200) == 0;
    }));
    const auto frame = test::test_frame(60);
    ASSERT_GT(write(host, frame.data(), frame.size()), 0);
    EXPECT_EQ(poll(&sleeper, 1, 5000), 1);
    wakeup->disarm();
    EXPECT_EQ(test::receive(*port), frame) << "waking reads nothing";
    close(host);
}

TEST_F(KernelPort, Case_85_tap_deleted_and_created_a_hundred_times) {
    std::size_t files = 0;
    for (int round = 0; round < 100; ++round) {
        auto port = open(tap_options());
        ASSERT_TRUE(port) << round << ": " << port.error().message;
        ASSERT_TRUE(port->start());
        port = fail(ErrorCode::kInternal, "gone");
        if (round == 0) {
            files = test::open_files();
        }
    }
    EXPECT_EQ(test::open_files(), files);
    EXPECT_FALSE(test::shell("ip link show " + tap_ + " >/dev/null 2>&1"));
}

TEST_F(KernelPort, Case_42_tap_names_its_highest_mtu) {
    PortOptions options = tap_options();
    options.mtu = 65535;
    const auto port = open(options);
    ASSERT_FALSE(port);
    EXPECT_EQ(port.error().code, ErrorCode::kInvalid);
    EXPECT_NE(port.error().message.find("port net_tap0: MTU 65535"), std::string::npos)
        << port.error().message;
    EXPECT_FALSE(test::shell("ip link show " + tap_ + " >/dev/null 2>&1")) << "taken back";
}

TEST_F(KernelPort, AfPacketJoinsAVeth) {
    const std::string here = test::unique("sva");
    const std::string there = test::unique("svb");
    if (!test::shell("ip link add " + here + " type veth peer name " + there + " netns " +
                     host_->name())) {
        GTEST_SKIP() << "this kernel has no veth";
    }
    ASSERT_TRUE(test::shell("ip link set " + here + " up"));
    ASSERT_TRUE(host_->ip("link set " + there + " up"));
    {
        const net::MacAddr mac{{2, 0, 0, 0, 0, 0x77}};
        auto port = open({.device = "net_af_packet0,iface=" + here, .mac = mac});
        ASSERT_TRUE(port) << port.error().message;
        ASSERT_TRUE(port->start());
        EXPECT_TRUE(test::shell("ip link show " + here + " | grep -q " + mac.to_string()));
        EXPECT_TRUE(test::eventually([&] { return port->link().up; }));
        const int host = host_->packet_socket(there);
        const auto frame = test::test_frame(1514);
        ASSERT_TRUE(test::send(*port, test::packet_of(*pool_, frame)));
        EXPECT_TRUE(arrives(host, frame));
        ASSERT_GT(write(host, frame.data(), frame.size()), 0);
        EXPECT_EQ(test::receive(*port), frame);
        EXPECT_TRUE(port->set_mtu(1400));
        EXPECT_TRUE(test::shell("ip link show " + here + " | grep -q 'mtu 1400'"));
        close(host);
    }
    test::shell("ip link del " + here);
}

}  // namespace
}  // namespace sluice::dpdk
