// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/id.h"
#include "dpdk/ring.h"
#include "fib/shared.h"
#include "pipeline/burst.h"
#include "pipeline/context.h"
#include "pipeline/messages.h"
#include "stats/counters.h"
#include "support/packet.h"

namespace sluice::test::fuzz {

/// A frame of a burst: its bytes, and how they lie in an mbuf.
struct Input {
    Bytes bytes;
    std::size_t first_segment = 0;  // bytes of it; 0: all in one
    friend bool operator==(const Input&, const Input&) = default;
};

/// Everything that one burst, or one batch of commands, did that somebody can see.
struct Output {
    struct Frame {
        std::uint16_t port = 0;
        Bytes bytes;
        friend bool operator==(const Frame&, const Frame&) = default;
    };
    struct Punted {
        NetdevId ingress;
        std::uint16_t l3_offset = 0;
        Bytes bytes;
        friend bool operator==(const Punted&, const Punted&) = default;
    };
    std::vector<Frame> sent;
    std::vector<pipeline::WorkerEvent> events;
    std::vector<Punted> punted;
    void clear() {
        sent.clear();
        events.clear();
        punted.clear();
    }
};

/// One worker without a thread: what it is given goes the way of a worker's bursts, what it does is
/// kept for comparison. The one without a cache gets every frame in two segments, which keeps it
/// off the straight way (pipeline/straight.h): so the two are compared as well, and on `auto` its
/// implementations.
class Forwarder {
public:
    Forwarder(std::string name,
              std::uint16_t number,
              fib::CacheMode mode,
              fib::Shared& shared,
              rte_mempool* pool,
              std::size_t cache_entries,
              std::uint64_t start_ns);
    ~Forwarder();
    Forwarder(const Forwarder&) = delete;
    Forwarder& operator=(const Forwarder&) = delete;
    Forwarder(Forwarder&&) = delete;
    Forwarder& operator=(Forwarder&&) = delete;

    void receive(const fib::NetdevView& port, const std::vector<Input>& burst);
    void obey(const std::vector<pipeline::WorkerCommand>& commands);
    /// As a worker does ten times a second.
    void housekeeping();
    /// Drops what is held and forgets whom it told what; what it put out meanwhile is lost.
    void let_go();
    /// Counts from here on as if it had done what `other` did; of the netdevs below `netdevs`.
    void take_counters(const Forwarder& other, std::size_t netdevs);
    /// What it put out is lost; so are packets on the way to the control thread.
    void lose_output();
    /// How many packets that came in by that netdev it holds.
    std::uint64_t held(NetdevId netdev) const noexcept {
        return block.netdev(netdev).held - punted_[netdev.value];
    }

    const std::string name;
    fib::CacheMode mode;
    stats::Block block;
    pipeline::EventQueue events;
    dpdk::MbufRing punted;
    pipeline::BurstStorage storage;
    pipeline::Context context;
    Output output;

private:
    void begin();
    void end();
    rte_mbuf* mbuf_of(const Input& input);
    static std::uint16_t catch_sent(std::uint16_t port,
                                    std::uint16_t queue,
                                    rte_mbuf** packets,
                                    std::uint16_t count);

    bool in_two_;  // every frame
    // By ingress, so far: the control thread takes these off in a block of its own.
    std::vector<std::uint64_t> punted_ = std::vector<std::uint64_t>(kMaxNetdevs);
};

/// Empty when two forwarders did the same and have counted the same, for netdevs below `netdevs`;
/// else what differs.
std::string compare(const Forwarder& a, const Forwarder& b, std::size_t netdevs);

}  // namespace sluice::test::fuzz
