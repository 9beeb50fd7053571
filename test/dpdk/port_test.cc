// SPDX-License-Identifier: BSD-3-Clause
// Ports on virtual devices that need neither rights nor the kernel; net_tap and net_af_packet are
// in kernel_port_test.cc.
#include "dpdk/port.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <unistd.h>

#include "dpdk/mbuf.h"
#include "dpdk/pool.h"
#include "environment.h"

namespace sluice::dpdk {
namespace {

constexpr net::MacAddr kMac{{2, 0, 0, 0, 0, 0x42}};

class PortTest : public testing::Test {
protected:
    PortTest() {
        auto pool = PktPool::create("port-test", 8192);
        EXPECT_TRUE(pool) << pool.error().message;
        pool_.emplace(std::move(*pool));
        pools_ = {&*pool_};
    }
    ~PortTest() override { EXPECT_EQ(pool_->in_use(), 0U) << "mbufs are lost"; }
    PortTest(const PortTest&) = delete;
    PortTest& operator=(const PortTest&) = delete;
    PortTest(PortTest&&) = delete;
    PortTest& operator=(PortTest&&) = delete;

    Result<Port> open(PortOptions options) { return Port::open(options, pools_); }
    std::optional<PktPool> pool_;
    std::vector<PktPool*> pools_;
};

bool has_note(const Port& port, std::string_view text) {
    for (const auto& note : port.notes()) {
        if (note.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

std::string pcap_with(const std::vector<std::uint8_t>& frame) {
    const std::string path = std::filesystem::temp_directory_path() / test::unique("sluice-port-");
    std::ofstream file(path, std::ios::binary);
    const auto put = [&](auto value) {
        file.write(reinterpret_cast<const char*>(&value), sizeof(value));
    };
    put(std::uint32_t{0xa1b2c3d4});
    put(std::uint16_t{2});
    put(std::uint16_t{4});
    put(std::uint64_t{0});
    put(std::uint32_t{65535});
    put(std::uint32_t{1});  // Ethernet
    put(std::uint64_t{0});
    put(static_cast<std::uint32_t>(frame.size()));
    put(static_cast<std::uint32_t>(frame.size()));
    file.write(reinterpret_cast<const char*>(frame.data()),
               static_cast<std::streamsize>(frame.size()));
    return path;
}

struct DriverCase {
    std::string name;
    std::string device;
    std::string driver;
    bool link_at_once = true;
    bool keeps_files = true;  // constant when opened and closed
};
class Drivers : public PortTest, public testing::WithParamInterface<DriverCase> {
protected:
    ~Drivers() override {
        std::error_code ignored;
        std::filesystem::remove("/tmp/" + test::unique("sluice") + ".pcap", ignored);
        std::filesystem::remove("/tmp/" + test::unique("sluice") + ".sock", ignored);
    }
    Drivers() = default;
    Drivers(const Drivers&) = delete;
    Drivers& operator=(const Drivers&) = delete;
    Drivers(Drivers&&) = delete;
    Drivers& operator=(Drivers&&) = delete;
    std::string device() const {
        std::string text = GetParam().device;
        if (const auto at = text.find("UNIQUE"); at != std::string::npos) {
            text.replace(at, 6, test::unique("sluice"));
        }
        return text;
    }
};

TEST_P(Drivers, OpensStartsStopsStartsAndCloses) {
    auto port = open({.device = device(), .mac = kMac});
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_EQ(port->driver(), GetParam().driver);
    EXPECT_EQ(port->name(), GetParam().device.substr(0, GetParam().device.find(',')));
    EXPECT_EQ(port->mac(), kMac);
    EXPECT_EQ(port->mtu(), 1500);
    EXPECT_FALSE(port->link().up) << "not started";
    for (int round = 0; round < 2; ++round) {
        const auto started = port->start();
        ASSERT_TRUE(started) << started.error().message;
        EXPECT_TRUE(port->started());
        EXPECT_EQ(port->link().up, GetParam().link_at_once);
        port->stop();
        EXPECT_FALSE(port->started());
        EXPECT_FALSE(port->link().up);
    }
}

TEST_P(Drivers, Case_41_jumbo_frames_never_with_fast_free) {
    const std::uint16_t mtu = GetParam().driver == "net_memif" ? 1500 : 9000;
    auto port = open({.device = device(), .mtu = mtu});
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_TRUE(port->start());
    EXPECT_EQ(port->mtu(), mtu);
    rte_eth_dev_info info{};
    ASSERT_EQ(rte_eth_dev_info_get(port->id().value, &info), 0);
    EXPECT_EQ(port->tx_offloads(), info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
    EXPECT_EQ(port->rx_offloads() & ~info.rx_offload_capa, 0U);
}

TEST_P(Drivers, Case_85_deleted_and_created_a_hundred_times) {
    std::size_t files = 0;
    std::optional<PortId> id;
    for (int round = 0; round < 100; ++round) {
        auto port = open({.device = device(), .rx_queues = 2, .tx_queues = 2});
        ASSERT_TRUE(port) << round << ": " << port.error().message;
        ASSERT_TRUE(port->start());
        EXPECT_EQ(id.value_or(port->id()), port->id()) << "ids are not used up";
        id = port->id();
        port = fail(ErrorCode::kInternal, "gone");
        if (round == 0) {
            files = test::open_files();
        }
    }
    if (GetParam().keeps_files) {
        EXPECT_EQ(test::open_files(), files);
    }
    EXPECT_EQ(rte_eth_dev_count_avail(), 0);
}

TEST_P(Drivers, Case_94_more_queues_than_there_are_are_reduced_and_told) {
    auto port = open({.device = device(), .rx_queues = 2000, .tx_queues = 2000});
    if (!port) {  // the driver's own limit is lower than what it says: refused, nothing left
        EXPECT_EQ(rte_eth_dev_count_avail(), 0);
        EXPECT_EQ(GetParam().driver, "net_null") << port.error().message;
        return;
    }
    EXPECT_LE(port->rx_queues(), port->max_rx_queues());
    EXPECT_TRUE(has_note(
        *port, "2000 RX queues asked for, the device has " + std::to_string(port->rx_queues())));
    EXPECT_TRUE(has_note(*port, "2000 TX queues asked for"));
    EXPECT_TRUE(port->start());
}

TEST_P(Drivers, Case_123_descriptor_limits_are_kept_to) {
    auto port = open({.device = device(), .rx_descriptors = 65535, .tx_descriptors = 1});
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_TRUE(port->start());
}

TEST_P(Drivers, IsThereOnceOnly) {
    const auto first = open({.device = device()});
    ASSERT_TRUE(first) << first.error().message;
    const auto second = open({.device = device()});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kExists);
    EXPECT_EQ(rte_eth_dev_count_avail(), 1) << "the first is untouched";
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Drivers,
    testing::Values(
        DriverCase{.name = "null", .device = "net_null0", .driver = "net_null"},
        DriverCase{.name = "ring", .device = "net_ring0", .driver = "net_ring"},
        DriverCase{
            .name = "pcap", .device = "net_pcap0,tx_pcap=/tmp/UNIQUE.pcap", .driver = "net_pcap"},
        // The server's listening socket stays open until exit: the driver's own leak (22.11).
        DriverCase{.name = "memif",
                   .device = "net_memif0,role=server,socket=/tmp/UNIQUE.sock,socket-abstract=no",
                   .driver = "net_memif",
                   .link_at_once = false,
                   .keeps_files = false}),
    [](const auto& row) { return row.param.name; });

TEST_F(PortTest, RingCarriesFramesOfOneAndSeveralSegments) {
    auto port = open({.device = "net_ring0", .mtu = 9000});
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_TRUE(port->start());
    for (const std::size_t bytes : {60UZ, 1514UZ, 9014UZ}) {
        const auto frame = test::test_frame(bytes);
        ASSERT_TRUE(test::send(*port, test::packet_of(*pool_, frame)));
        EXPECT_EQ(test::receive(*port), frame);
    }
    const PortStats stats = port->stats();
    EXPECT_EQ(stats.tx_packets, 3U);
    EXPECT_EQ(stats.rx_packets, 3U);
}

TEST_F(PortTest, PcapRepeatsItsFileForEver) {
    const auto frame = test::test_frame(60);
    const std::string path = pcap_with(frame);
    {
        auto port = open({.device = "net_pcap0,rx_pcap=" + path + ",infinite_rx=1"});
        ASSERT_TRUE(port) << port.error().message;
        ASSERT_TRUE(port->start());
        for (int i = 0; i < 100; ++i) {
            ASSERT_EQ(test::receive(*port), frame);
        }
    }
    std::filesystem::remove(path);
}

TEST_F(PortTest, PcapTakesJumboFramesApart) {
    const auto frame = test::test_frame(9014);
    const std::string path = pcap_with(frame);
    {
        auto port = open({.device = "net_pcap0,rx_pcap=" + path, .mtu = 9000});
        ASSERT_TRUE(port) << port.error().message;
        ASSERT_TRUE(port->start());
        EXPECT_EQ(test::receive(*port), frame);
    }
    std::filesystem::remove(path);
}

TEST_F(PortTest, MemifJoinsTwoPorts) {
    const std::string path = std::filesystem::temp_directory_path() / test::unique("sluice-memif-");
    const std::string tail = ",id=7,socket-abstract=no,socket=" + path;
    {
        auto server = open({.device = "net_memif0,role=server" + tail});
        ASSERT_TRUE(server) << server.error().message;
        ASSERT_TRUE(server->start());
        auto client = open({.device = "net_memif1,role=client" + tail});
        ASSERT_TRUE(client) << client.error().message;
        ASSERT_TRUE(client->start());
        ASSERT_TRUE(test::eventually([&] { return server->link().up && client->link().up; }));
        const auto frame = test::test_frame(600);
        ASSERT_TRUE(test::send(*client, test::packet_of(*pool_, frame)));
        EXPECT_EQ(test::receive(*server), frame);
        // The client lends the buffers for this direction, when it polls.
        std::array<rte_mbuf*, 1> nothing{};
        ASSERT_EQ(rte_eth_rx_burst(client->id().value, 0, nothing.data(), 1), 0);
        ASSERT_TRUE(test::send(*server, test::packet_of(*pool_, frame)));
        EXPECT_EQ(test::receive(*client), frame);
        client = fail(ErrorCode::kInternal, "gone");
        EXPECT_TRUE(test::eventually([&] { return !server->link().up; })) << "link is followed";
    }
    std::filesystem::remove(path);
}

TEST_F(PortTest, Case_42_an_mtu_past_the_device_names_port_value_and_maximum) {
    const auto port = open({.device = "net_memif0", .mtu = 9000});
    ASSERT_FALSE(port);
    EXPECT_EQ(port.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(port.error().message,
              "port net_memif0: MTU 9000 is outside what net_memif takes, 46 to 1500");
    EXPECT_EQ(rte_eth_dev_count_avail(), 0) << "detached again";
}

TEST_F(PortTest, MtuChangesAtRunTimeAndAfterAnErrorTheOldOneHolds) {
    auto port = open({.device = "net_null0"});
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_TRUE(port->start());
    EXPECT_TRUE(port->set_mtu(1280));
    EXPECT_EQ(port->mtu(), 1280);
    const auto bad = port->set_mtu(20);
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(port->mtu(), 1280);
}

TEST_F(PortTest, AnMtuLongerThanASegmentWantsThePortStopped) {
    auto port = open({.device = "net_ring0"});
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_TRUE(port->start());
    const auto busy = port->set_mtu(9000);
    ASSERT_FALSE(busy);
    EXPECT_EQ(busy.error().code, ErrorCode::kBusy);
    EXPECT_EQ(port->mtu(), 1500);
    port->stop();
    const auto ok = port->set_mtu(9000);
    ASSERT_TRUE(ok) << ok.error().message;
    ASSERT_TRUE(port->start());
    EXPECT_EQ(port->mtu(), 9000);
    const auto frame = test::test_frame(9014);
    ASSERT_TRUE(test::send(*port, test::packet_of(*pool_, frame)));
    EXPECT_EQ(test::receive(*port), frame);
}

TEST_F(PortTest, MacsThatAreNoPortsAreRefused) {
    auto port = open({.device = "net_null0"});
    ASSERT_TRUE(port) << port.error().message;
    const auto own = port->mac();
    for (const auto& mac :
         {net::kBroadcastMac, net::MacAddr{}, net::MacAddr{{1, 0, 0x5e, 0, 0, 1}}}) {
        const auto result = port->set_mac(mac);
        ASSERT_FALSE(result) << mac.to_string();
        EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
    }
    EXPECT_EQ(port->mac(), own);
    EXPECT_TRUE(port->set_mac(kMac));
    EXPECT_EQ(port->mac(), kMac);
}

struct BadDevice {
    const char* name;
    const char* device;
};
class BadDevices : public PortTest, public testing::WithParamInterface<BadDevice> {};

TEST_P(BadDevices, IsAnErrorThatNamesItAndLeavesNothing) {
    const std::size_t files = test::open_files();
    for (int round = 0; round < 3; ++round) {
        const auto port = open({.device = GetParam().device});
        ASSERT_FALSE(port);
        EXPECT_EQ(port.error().code, ErrorCode::kDevice) << port.error().message;
        EXPECT_NE(port.error().message.find(GetParam().device), std::string::npos);
    }
    EXPECT_EQ(rte_eth_dev_count_avail(), 0);
    EXPECT_EQ(test::open_files(), files);
}

INSTANTIATE_TEST_SUITE_P(All,
                         BadDevices,
                         testing::Values(BadDevice{"no_such_driver", "net_nonsense0"},
                                         BadDevice{"empty", ""},
                                         BadDevice{"no_such_file", "net_pcap0,rx_pcap=/no/such"},
                                         BadDevice{"no_such_argument", "net_null0,colour=red"},
                                         BadDevice{"no_such_pci", "0000:ff:1f.7"},
                                         BadDevice{"no_such_interface",
                                                   "net_af_packet0,iface=no-such"}),
                         [](const auto& row) { return row.param.name; });

std::size_t heap_allocations() {
    rte_malloc_socket_stats stats{};
    EXPECT_EQ(rte_malloc_get_socket_stats(0, &stats), 0);
    return stats.alloc_count;
}

/// Takes all of the heap, to be given back piece by piece.
class FullHeap {
public:
    FullHeap() {
        for (std::size_t bytes = 64UZ << 20U; bytes >= 64; bytes /= 2) {
            while (void* block = rte_malloc(nullptr, bytes, 0)) {
                blocks_.push_back(block);
            }
        }
    }
    ~FullHeap() {
        while (give_back()) {
        }
    }
    FullHeap(const FullHeap&) = delete;
    FullHeap& operator=(const FullHeap&) = delete;
    FullHeap(FullHeap&&) = delete;
    FullHeap& operator=(FullHeap&&) = delete;

    /// The smallest block that is left.
    bool give_back() {
        if (blocks_.empty()) {
            return false;
        }
        rte_free(blocks_.back());
        blocks_.pop_back();
        return true;
    }

private:
    std::vector<void*> blocks_;
};

class Exhaustion : public PortTest, public testing::WithParamInterface<const char*> {};

// (net_memif of 22.11 crashes there by itself.) With a little more memory each time, every
// allocation of the way is once the first to fail.
TEST_P(Exhaustion, Case_98_a_failure_half_way_leaves_nothing) {
    const PortOptions options{.device = GetParam(), .rx_queues = 4, .tx_queues = 4};
    // What drivers and ethdev allocate once and keep, then what net_null keeps each time.
    ASSERT_TRUE(open(options));
    const std::size_t first = heap_allocations();
    ASSERT_TRUE(open(options));
    const std::size_t second = heap_allocations();
    const std::size_t files = test::open_files();
    std::size_t failures = 0;
    {
        FullHeap heap;
        for (;;) {
            const std::size_t full = heap_allocations();
            auto port = open(options);
            if (port) {
                break;
            }
            ++failures;
            ASSERT_EQ(rte_eth_dev_count_avail(), 0) << port.error().message;
            ASSERT_EQ(heap_allocations(), full) << port.error().message;
            ASSERT_TRUE(heap.give_back());
        }
    }
    EXPECT_GT(failures, 2U) << "else this tests nothing";
    EXPECT_EQ(heap_allocations() - second, second - first);
    EXPECT_EQ(test::open_files(), files);
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         Exhaustion,
                         testing::Values("net_null0", "net_pcap0,tx_pcap=/dev/null"),
                         [](const auto& row) {
                             return std::string(row.param).substr(0, 8) == "net_null" ? "null"
                                                                                      : "pcap";
                         });

TEST_F(PortTest, Case_98_a_failure_in_the_last_step_leaves_nothing) {
    const auto port = open({.device = "net_null0", .mac = net::kBroadcastMac});
    ASSERT_FALSE(port);
    EXPECT_EQ(rte_eth_dev_count_avail(), 0);
    EXPECT_TRUE(open({.device = "net_null0"})) << "the name is free";
}

TEST_F(PortTest, APoolPerQueueIsUsedByItsQueue) {
    auto second = PktPool::create("port-test-2", 1024);
    ASSERT_TRUE(second) << second.error().message;
    pools_.push_back(&*second);
    auto port = open({.device = "net_null0,size=60", .rx_queues = 2, .tx_queues = 2});
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_TRUE(port->start());
    for (std::uint16_t queue = 0; queue < 2; ++queue) {
        std::array<rte_mbuf*, 1> packet{};
        ASSERT_EQ(rte_eth_rx_burst(port->id().value, queue, packet.data(), 1), 1);
        EXPECT_EQ(packet[0]->pool, pools_[queue]->raw());
        rte_pktmbuf_free(packet[0]);
    }
    EXPECT_EQ(second->in_use(), 0U);
}

TEST_F(PortTest, Case_95_a_device_without_a_node_starts) {
    auto port = open({.device = "net_memif0,role=server"});
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_EQ(port->socket(), SOCKET_ID_ANY) << "else this tests nothing";
    EXPECT_TRUE(port->start());
}

}  // namespace
}  // namespace sluice::dpdk
