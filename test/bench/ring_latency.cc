// SPDX-License-Identifier: BSD-3-Clause
// Latency of one worker between two net_ring ports: this thread puts packets into the ring of the
// one and takes them out of the ring of the other. Prints a JSON object a line; scripts/bench
// latency reads it.
//
//   ring_latency [--rounds N] [--seconds S]
//
// Per round and idle mode: level "max" measures the rate, 10, 50 and 90 are percentages of it (the
// lower of both modes', so that they face the same), "wakeup" sends so seldom that a worker that
// may sleep does.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/check.h"
#include "latency.h"
#include "pipeline/worker.h"
#include "preemptions.h"
#include "stats/counters.h"
#include "support/packet.h"
#include "worker_bench.h"

namespace sluice::test {

namespace {

constexpr std::size_t kStampOffset = 14 + 20 + 8;

class RingWire {
public:
    explicit RingWire(WorkerBench& bench)
        : pool_(bench.packets().raw()),
          // As the driver names the rings of its ports.
          in_(rte_ring_lookup("ETH_RXTX0_net_ring0")),
          out_(rte_ring_lookup("ETH_RXTX0_net_ring1")) {
        SLUICE_CHECK(in_ != nullptr && out_ != nullptr);
        for (unsigned i = 0; i < kFrames; ++i) {
            const V4 to(fmt::format("198.18.{}.{}", i * 16 % 160, i).c_str());
            frames_[i] = Packet().eth().ipv4({.dst = to}).udp().payload(22).bytes();
        }
    }

    std::size_t send(std::size_t count, std::uint64_t now) {
        std::array<rte_mbuf*, kMostAtOnce> packets;  // filled as far as used
        if (rte_ring_free_count(in_) < count ||
            rte_pktmbuf_alloc_bulk(pool_, packets.data(), static_cast<unsigned>(count)) != 0) {
            return 0;
        }
        for (rte_mbuf* m : std::span(packets).first(count)) {
            const Bytes& frame = frames_[next_++ % kFrames];
            auto* bytes = rte_pktmbuf_mtod(m, std::uint8_t*);
            std::memcpy(bytes, frame.data(), frame.size());
            std::memcpy(bytes + kStampOffset, &now, sizeof now);
            m->data_len = static_cast<std::uint16_t>(frame.size());
            m->pkt_len = m->data_len;
        }
        void** const objects = static_cast<void**>(static_cast<void*>(packets.data()));
        return rte_ring_enqueue_burst(in_, objects, static_cast<unsigned>(count), nullptr);
    }

    template <class Fn>
    void receive(Fn fn) {
        std::array<rte_mbuf*, 2 * kMostAtOnce> packets;  // filled as far as used
        void** const objects = static_cast<void**>(static_cast<void*>(packets.data()));
        const unsigned count =
            rte_ring_dequeue_burst(out_, objects, static_cast<unsigned>(packets.size()), nullptr);
        if (count == 0) {
            return;
        }
        const std::uint64_t now = now_ns();
        for (rte_mbuf* m : std::span(packets).first(count)) {
            std::uint64_t sent = 0;
            std::memcpy(&sent, rte_pktmbuf_mtod(m, std::uint8_t*) + kStampOffset, sizeof sent);
            fn(sent, now);
        }
        rte_pktmbuf_free_bulk(packets.data(), count);
    }

private:
    static constexpr unsigned kFrames = 64;
    rte_mempool* pool_;
    rte_ring* in_;
    rte_ring* out_;
    std::array<Bytes, kFrames> frames_;
    unsigned next_ = 0;
};

class Bench {
public:
    Bench() : router_({"net_ring0"}, "net_ring1"), wire_(router_) {
        preemptions_.watch("/proc/thread-self");
        preemptions_.watch_workers("self");
        router_.poll(0, true);
        router_.launch(0, 1);
    }

    /// Packets per second that arrived.
    double run(bool adaptive, const std::string& level, const Load& load) {
        router_.shared().idle_sleep = adaptive;
        drive(wire_, load);
        const stats::WorkerCounters& worker = router_.block(0).worker();
        const std::uint64_t sleeps = stats::read(worker.sleeps);
        const Measured found = measure(wire_, load, preemptions_);
        fmt::print(
            R"({{"level": "{}", "mode": "{}", "round": {}, "rate": {:.0f}, {}, "sleeps": {}, "bound_us": {}}})"
            "\n",
            level,
            adaptive ? "adaptive" : "poll",
            round,
            load.per_second,
            found.json(),
            stats::read(worker.sleeps) - sleeps,
            pipeline::kIdleSleepMaxUs);
        std::fflush(stdout);
        return found.pps();
    }

    unsigned round = 0;

private:
    WorkerBench router_;
    RingWire wire_;
    Preemptions preemptions_;
};

}  // namespace

}  // namespace sluice::test

int main(int argc, char** argv) {
    using namespace sluice::test;
    unsigned rounds = 5;
    double seconds = 0.5;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view word = argv[i];
        if (word == "--rounds") {
            rounds = static_cast<unsigned>(std::stoul(argv[i + 1]));
        } else if (word == "--seconds") {
            seconds = std::stod(argv[i + 1]);
        } else {
            fmt::print(stderr, "ring_latency [--rounds N] [--seconds S]\n");
            return 2;
        }
    }
    start_eal({"ring_latency", "-l", "0,1", "-m", "128"});
    Bench bench;
    for (; bench.round < rounds; ++bench.round) {
        const bool first = bench.round % 2 == 0;
        double most = 1e12;
        for (const bool adaptive : {first, !first}) {
            most =
                std::min(most, bench.run(adaptive, "max", {.per_second = 0, .seconds = seconds}));
        }
        for (const int percent : {10, 50, 90}) {
            for (const bool adaptive : {first, !first}) {
                bench.run(adaptive,
                          std::to_string(percent),
                          {.per_second = most * percent / 100, .seconds = seconds});
            }
        }
        bench.run(true, "wakeup", wakeup_load(2 * seconds));
    }
    std::_Exit(0);  // the worker has its core until the end
}
