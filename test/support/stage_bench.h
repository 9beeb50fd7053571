// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "base/id.h"
#include "base/reclaimer.h"
#include "dpdk/pool.h"
#include "dpdk/ring.h"
#include "fib/shared.h"
#include "net/address.h"
#include "pipeline/burst.h"
#include "pipeline/context.h"
#include "pipeline/messages.h"
#include "stats/counters.h"
#include "support/no_readers.h"
#include "support/packet.h"

/// The test bench of the cases, in memory: ports p0 and p1 with their addresses, hosts H0 and H1
/// resolved, the routes over H1, and as many workers as a test asks for. Frames go through
/// pipeline::process_burst() as a worker's do; what is sent is caught instead of transmitted. When
/// a test ends, every netdev's books must balance and every mbuf must be back in the pool.
namespace sluice::test {

/// A frame that left, and by which ethdev.
struct Sent {
    std::uint16_t port = 0;
    Bytes bytes;
};

struct NetdevSpec {
    std::uint16_t port = 0;
    std::uint16_t vlan = 0;  // of the sub-interface; 0 is the port itself
    NetdevId parent = {};    // of a sub-interface
    Mac mac = {};
    std::vector<const char*> addresses = {};
    std::uint16_t mtu = 1500;
};

struct RouteSpec {
    fib::DstType type = fib::DstType::kUnicast;
    const char* via = nullptr;
    NetdevId dev = {};
    std::uint16_t mtu = 0;  // 0: the netdev's
};

class StageBench : public testing::Test {
public:
    static constexpr NetdevId kLo{1}, kP0{2}, kP1{3};
    static inline const Mac kH0Mac = "02:aa:00:00:00:02", kH1Mac = "02:bb:00:00:00:02",
                            kP0Mac = "02:00:00:00:00:01", kP1Mac = "02:00:00:00:00:02";

    explicit StageBench(unsigned mbufs = 1024);
    ~StageBench() override;
    StageBench(const StageBench&) = delete;
    StageBench& operator=(const StageBench&) = delete;
    StageBench(StageBench&&) = delete;
    StageBench& operator=(StageBench&&) = delete;
    /// Checks books and pool.
    void TearDown() override;

    // What the control thread would do; between bursts.

    fib::Shared& shared() { return shared_; }
    /// May be changed in place.
    fib::NetdevView& netdev(NetdevId id) { return *views_.at(id); }
    void unpublish(NetdevId id) { shared_.publish(id, nullptr); }
    void publish(NetdevId id) { shared_.publish(id, views_.at(id).get()); }
    NetdevId add_netdev(const NetdevSpec& spec);
    void add_address(NetdevId id, std::string_view address);
    fib::DstIndex add_route(std::string_view prefix, const RouteSpec& route);
    /// What is cached of everything is stale; the calls here that change routes do it themselves.
    void bump();
    fib::GenerationSequence& sequence() { return sequence_; }
    fib::Generations<net::Ipv4Addr>& generations4() { return *generations4_; }
    fib::Generations<net::Ipv6Addr>& generations6() { return *generations6_; }
    fib::Ipv4Lpm& fib4() { return *fib4_; }
    fib::Ipv6Lpm& fib6() { return *fib6_; }
    Reclaimer& reclaimer() { return reclaimer_; }
    /// A dst of its own, as a route would have; not in any table.
    fib::DstIndex add_dst(net::Family family, const RouteSpec& route);
    /// The host's own dst, found through the neighbour map; unresolved.
    void add_neighbor(NetdevId dev, const net::IpAddr& address);
    /// All dsts that mean this neighbour.
    void resolve(NetdevId dev, const net::IpAddr& address, const Mac& mac);
    void unresolve(NetdevId dev, const net::IpAddr& address);
    void report_use(NetdevId dev, const net::IpAddr& address);

    // Workers.

    struct Worker {
        stats::Block block;
        pipeline::EventQueue events;
        dpdk::MbufRing punted;
        pipeline::BurstStorage storage;
        pipeline::Context context;
        Worker(unsigned number, StageBench& bench);
    };
    /// Made when first asked for.
    Worker& worker(unsigned number = 0);
    /// What worker `number` told the control thread since the last call.
    std::vector<pipeline::WorkerEvent> events(unsigned number = 0);
    /// Takes what was punted, books it off and returns the frames.
    std::vector<Bytes> take_punted(unsigned number = 0);
    /// Lets time pass for all workers.
    void advance_ns(std::uint64_t ns);

    // Packets.

    rte_mempool* pool() { return pool_.raw(); }
    unsigned mbufs_in_use() const { return pool_.in_use(); }
    /// `segments`: sizes of the first segments, 0 allowed; the rest follows in full ones.
    rte_mbuf* mbuf_of(const Bytes& bytes, const std::vector<std::size_t>& segments = {});
    /// One segment in a heap block that ends where the frame ends.
    rte_mbuf* exact_mbuf(const Bytes& bytes);
    /// One burst that came in by the port of `port`.
    void receive(NetdevId port, const std::vector<rte_mbuf*>& burst, unsigned number = 0);
    void receive(NetdevId port, const std::vector<Bytes>& frames, unsigned number = 0);
    /// What was sent since the last call, in order.
    std::vector<Sent> take_sent();
    /// False: what is sent is only counted, and nothing here allocates.
    bool keep_sent = true;
    /// How many packets more the devices take.
    std::size_t device_room = std::numeric_limits<std::size_t>::max();

    // Books, summed over workers and the control thread.

    stats::NetdevCounters counters(NetdevId id) const;
    std::uint64_t drops(NetdevId id, DropReason reason) const;
    /// "reason: 3, ..." of a netdev, for messages.
    std::string drops_text(NetdevId id) const;

private:
    fib::DstIndex make_dst(const RouteSpec& route,
                           net::Family family,
                           const net::IpAddr& gateway,
                           const Mac& to);
    void refresh_local();
    static std::uint16_t catch_sent(std::uint16_t port,
                                    std::uint16_t queue,
                                    rte_mbuf** packets,
                                    std::uint16_t count);

    NoReaders reclaimer_;
    dpdk::PktPool pool_;
    fib::Shared shared_;
    fib::GenerationSequence sequence_;
    std::unique_ptr<fib::Generations<net::Ipv4Addr>> generations4_;
    std::unique_ptr<fib::Generations<net::Ipv6Addr>> generations6_;
    std::unique_ptr<fib::Ipv4Lpm> fib4_;
    std::unique_ptr<fib::Ipv6Lpm> fib6_;
    std::map<NetdevId, std::unique_ptr<fib::NetdevView>> views_;
    std::multimap<std::pair<NetdevId, net::IpAddr>, fib::DstIndex> dsts_of_;
    std::map<std::pair<NetdevId, net::IpAddr>, Mac> macs_;
    std::vector<net::Ipv4Addr> own4_, broadcasts4_;
    std::vector<net::Ipv6Addr> own6_;
    std::vector<std::unique_ptr<Worker>> workers_;
    stats::Block control_;
    std::vector<Sent> sent_;
    std::uint64_t sent_count_ = 0;
};

/// How one packet is to end.
struct Want {
    enum class End : std::uint8_t { kForwarded, kDelivered, kHeld, kDropped };
    End end = End::kDropped;
    DropReason drop = DropReason::kNone;
    std::vector<Sent> frames = {};
};
Want forwarded(const Packet& frame, std::uint16_t port = 1);
Want in_fragments(const std::vector<Packet>& frames, std::uint16_t port = 1);
Want dropped(DropReason reason);
Want dropped(DropReason reason, const Packet& error, std::uint16_t port = 0);
Want delivered();
Want answered(const Packet& reply, std::uint16_t port = 0);
/// Waits for a neighbour, or is on its way to the control thread.
Want held();

/// One row of a test: a frame, and what becomes of it, the first time and again.
struct Case {
    std::string name;
    Packet in;
    Want want;
    NetdevId port = StageBench::kP0;
    NetdevId book = {};                      // 0: the port's
    std::vector<std::size_t> segments = {};  // of the mbuf
    std::uint64_t offload_flags = 0;         // as the device would set them
    std::uint16_t vlan_tci = 0;
};
std::ostream& operator<<(std::ostream& out, const Case& row);
/// For INSTANTIATE_TEST_SUITE_P.
std::string case_name(const testing::TestParamInfo<Case>& info);

class StageRows : public StageBench, public testing::WithParamInterface<Case> {
public:
    /// Twice the same packet, alone in its burst: both times it ends as the row says.
    void expect(const Case& row);
};

/// A frame from p1 to H1 up to its link-layer header: what a forwarded packet begins with.
Packet by_p1();
/// A frame from p0 to H0: what an answer begins with.
Packet by_p0();
/// The ICMP error about `about` that leaves p0 for H0 (its source).
Packet error4(const Packet& about,
              std::uint8_t type,
              std::uint8_t code,
              std::uint32_t rest = 0,
              V4 from = "10.0.0.1");
Packet error6(const Packet& about,
              std::uint8_t type,
              std::uint8_t code,
              std::uint32_t rest = 0,
              V6 from = "fd00::1");

}  // namespace sluice::test
