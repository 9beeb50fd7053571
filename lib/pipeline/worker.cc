// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/worker.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_random.h>

#include "base/drop_reason.h"
#include "dpdk/mbuf.h"
#include "fib/netdev_view.h"
#include "net/wire.h"
#include "pipeline/burst.h"
#include "pipeline/context.h"
#include "pipeline/idle.h"
#include "pipeline/stage_timer.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

static_assert(kMaxBatch == kMaxBurst);

namespace {

constexpr unsigned kPuntRingPackets = 1024;
constexpr unsigned kInjectRingPackets = 4096;
constexpr std::uint64_t kHousekeepingNs = 100'000'000;
// A worker under load still answers for the neighbours it waits for; bounded per round.
constexpr std::size_t kCommandsPerRound = 64;

}  // namespace

struct Worker::Impl {
    WorkerOptions options;
    fib::Shared& shared;
    dpdk::RcuDomain& rcu;
    stats::Block block;
    EventQueue events;
    CommandQueue commands;
    dpdk::MbufRing punted;
    dpdk::MbufRing inject;
    Context context;
    BurstStorage storage;
    std::atomic<const RxQueueList*> queues{nullptr};
    std::atomic<bool> stopping{false};
    std::uint64_t ns_per_tsc_q32;
    std::uint64_t next_housekeeping_ns = 0;
    std::uint32_t bursts = 0;
    std::uint32_t longest_round_epoch = 0;

    Impl(const WorkerOptions& o,
         fib::Shared& s,
         dpdk::RcuDomain& r,
         dpdk::PktPool& pool,
         dpdk::MbufRing punt_ring,
         dpdk::MbufRing inject_ring)
        : options(o),
          shared(s),
          rcu(r),
          punted(std::move(punt_ring)),
          inject(std::move(inject_ring)),
          context{.shared = s,
                  .stats = block,
                  .pool = pool.raw(),
                  .transmit = Transmitter(o.id.value, block),
                  .holds = HoldTable(rte_rand()),
                  .icmp_limit = {},
                  .events = events,
                  .punted = punted,
                  .caches = Caches(o.cache_entries, rte_rand()),
                  .redirects = {},
                  .ipv4_id = static_cast<std::uint16_t>(rte_rand())},
          ns_per_tsc_q32((std::uint64_t{1'000'000'000} << 32U) / rte_get_tsc_hz()) {}

    void tell_time(std::uint64_t tsc) noexcept {
        __extension__ using Wide = unsigned __int128;
        context.now_ns = static_cast<std::uint64_t>((Wide{tsc} * ns_per_tsc_q32) >> 32U);
    }
    std::size_t receive(const RxQueueList& list) noexcept;
    void drop_of_nobody(std::span<rte_mbuf*> burst) noexcept;
    std::size_t transmit_injected() noexcept;
    std::size_t obey() noexcept;
    void housekeeping() noexcept;
    void note_round(std::uint64_t cycles) noexcept;
    void reclaim_transmitted(const RxQueueList& list) const noexcept;
    void finish() noexcept;
};

void Worker::Impl::drop_of_nobody(std::span<rte_mbuf*> burst) noexcept {
    stats::bump(block.netdev(kBlackholeNetdev).rx_packets, burst.size());
    for (rte_mbuf* m : burst) {
        stats::bump(block.netdev(kBlackholeNetdev).rx_bytes, m->pkt_len);
        block.drop(kBlackholeNetdev, DropReason::kNetdevGone, 0);
        rte_pktmbuf_free(m);
    }
}

std::size_t Worker::Impl::receive(const RxQueueList& list) noexcept {
    std::array<rte_mbuf*, kMaxBurst> burst;  // filled by the driver
    std::size_t total = 0;
    for (const RxQueue& queue : list) {
        StageTimer timer(block.worker(), bursts % stats::kStageSampling == 0);
        const std::uint16_t count =
            rte_eth_rx_burst(queue.port, queue.queue, burst.data(), options.burst);
        if (count == 0) {
            continue;
        }
        ++bursts;
        total += count;
        timer.stage_done(stats::Stage::kReceive);
        timer.count(count);
        const fib::NetdevView* port = shared.netdev(queue.netdev);
        if (port != nullptr) [[likely]] {
            process_burst(context, storage, *port, {burst.data(), count}, timer);
        } else {
            // Between the view's end and the queue list's.
            drop_of_nobody({burst.data(), count});
        }
    }
    return total;
}

// Frames from the control thread: ARP and neighbour discovery, on the book of `lo`.
std::size_t Worker::Impl::transmit_injected() noexcept {
    std::array<rte_mbuf*, 64> frames;  // filled as far as used
    const std::size_t count = inject.dequeue(frames);
    for (std::size_t i = 0; i < count; ++i) {
        rte_mbuf* m = frames[i];
        const fib::NetdevView* out = shared.netdev(dpdk::meta(*m).ingress);
        const NetdevId book = out != nullptr ? out->loopback : kBlackholeNetdev;
        stats::NetdevCounters& lo = block.netdev(book);
        stats::bump(lo.rx_packets);
        stats::bump(lo.rx_bytes, m->pkt_len);
        if (out == nullptr || !out->up) {
            block.drop(book, out == nullptr ? DropReason::kNetdevGone : DropReason::kNetdevDown, 0);
            rte_pktmbuf_free(m);
            continue;
        }
        if (out->vlan_id != 0) {
            m->vlan_tci = out->vlan_id;
            if (rte_vlan_insert(&m) != 0) {
                block.drop(book, DropReason::kNoBuffer, 0);
                rte_pktmbuf_free(m);
                continue;
            }
        }
        context.transmit.enqueue(out->port, m, book, out->id, 0);
    }
    return count;
}

std::size_t Worker::Impl::obey() noexcept {
    std::size_t count = 0;
    WorkerCommand command;
    while (count < kCommandsPerRound && commands.pop(command)) {
        release_held(context, command);
        ++count;
    }
    return count;
}

void Worker::Impl::housekeeping() noexcept {
    if (context.now_ns < next_housekeeping_ns) {
        return;
    }
    next_housekeeping_ns = context.now_ns + kHousekeepingNs;
    context.reported = {};
    drop_overdue(context);
}

// The longest pause between two looks at the queues: what a change of the control thread's adds to
// it shows here (U-08).
void Worker::Impl::note_round(std::uint64_t cycles) noexcept {
    std::uint64_t& longest = block.worker().longest_round;
    const std::uint32_t epoch = shared.longest_round_epoch.load(std::memory_order_relaxed);
    if (cycles > longest || epoch != longest_round_epoch) [[unlikely]] {
        longest_round_epoch = epoch;
        std::atomic_ref<std::uint64_t>(longest).store(cycles, std::memory_order_relaxed);
    }
}

// A device frees sent mbufs when it sends more; one that falls silent would keep them.
void Worker::Impl::reclaim_transmitted(const RxQueueList& list) const noexcept {
    for (const RxQueue& queue : list) {
        rte_eth_tx_done_cleanup(queue.port, options.id.value, 0);
    }
}

void Worker::Impl::finish() noexcept {
    drop_all_held(context);
    context.transmit.flush();
}

Worker::Worker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Worker::~Worker() {
    delete impl_->queues.load(std::memory_order_relaxed);
}

Result<std::unique_ptr<Worker>> Worker::create(const WorkerOptions& options,
                                               fib::Shared& shared,
                                               dpdk::RcuDomain& rcu,
                                               dpdk::PktPool& pool) {
    auto punted =
        dpdk::MbufRing::create(fmt::format("punt-{}", options.id.value), kPuntRingPackets);
    if (!punted) {
        return std::unexpected(punted.error());
    }
    auto inject =
        dpdk::MbufRing::create(fmt::format("inject-{}", options.id.value), kInjectRingPackets);
    if (!inject) {
        return std::unexpected(inject.error());
    }
    auto impl =
        std::make_unique<Impl>(options, shared, rcu, pool, std::move(*punted), std::move(*inject));
    impl->queues.store(new RxQueueList, std::memory_order_release);
    return std::unique_ptr<Worker>(new Worker(std::move(impl)));
}

void Worker::publish_queues(std::unique_ptr<const RxQueueList> queues) {
    const RxQueueList* old = impl_->queues.exchange(queues.release(), std::memory_order_acq_rel);
    impl_->rcu.defer([old] { delete old; });
}

bool Worker::next_event(WorkerEvent& event) {
    return impl_->events.pop(event);
}
bool Worker::send(const WorkerCommand& command) {
    return impl_->commands.push(command);
}
dpdk::MbufRing& Worker::punted() noexcept {
    return impl_->punted;
}
dpdk::MbufRing& Worker::inject() noexcept {
    return impl_->inject;
}
stats::Block& Worker::block() noexcept {
    return impl_->block;
}
const stats::Block& Worker::block() const noexcept {
    return impl_->block;
}
void Worker::stop() noexcept {
    impl_->stopping.store(true, std::memory_order_release);
}

void Worker::run() noexcept {
    Impl& w = *impl_;
    dpdk::RcuReader reader(w.rcu, w.options.id);
    IdleSleeper sleeper;
    stats::WorkerCounters& counters = w.block.worker();
    std::uint64_t before = rte_rdtsc();
    while (!w.stopping.load(std::memory_order_relaxed)) {
        w.tell_time(before);
        const RxQueueList* queues = w.queues.load(std::memory_order_acquire);
        const std::size_t received = w.receive(*queues);
        const std::size_t other = w.transmit_injected() + w.obey();
        if (other != 0) {
            w.context.transmit.flush();
        }
        w.housekeeping();

        const std::uint64_t now = rte_rdtsc();
        w.note_round(now - before);
        stats::bump(counters.rounds);
        if (received != 0) {
            stats::bump(counters.busy_rounds);
            stats::bump(counters.packets, received);
            stats::bump(counters.cycles_busy, now - before);
        } else {
            stats::bump(counters.cycles_idle, now - before);
        }
        before = now;

        const bool idle = sleeper.round(received + other != 0);
        if (idle && sleeper.began()) {
            w.reclaim_transmitted(*queues);
        }
        const bool sleeps = idle && w.shared.idle_sleep.load(std::memory_order_relaxed);
        if (sleeps) {
            sleeper.prepare(queues);
        }
        reader.quiescent();
        if (sleeps) {
            reader.offline();
            const std::uint64_t ns = sleeper.sleep();
            reader.online();
            sleeper.wake(*w.queues.load(std::memory_order_acquire));
            stats::bump(counters.sleeps);
            stats::bump(counters.sleep_ns, ns);
            before = rte_rdtsc();
        }
    }
    w.finish();
}

}  // namespace sluice::pipeline
