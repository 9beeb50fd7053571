// SPDX-License-Identifier: BSD-3-Clause
#include "control/engine.h"

#include <array>
#include <bit>
#include <thread>
#include <utility>

#include "base/check.h"
#include "control/removal.h"

namespace sluice::control {

using fib::NetdevKind;

namespace {

// Connected routes are not what limits.* count, but need room in the table.
constexpr std::size_t kConnectedRoom = 65536;

/// Modulo 2^64, as `held` is.
stats::NetdevCounters difference(const stats::NetdevCounters& now,
                                 const stats::NetdevCounters& then) {
    using Words = std::array<std::uint64_t, sizeof(stats::NetdevCounters) / sizeof(std::uint64_t)>;
    auto words = std::bit_cast<Words>(now);
    const auto before = std::bit_cast<Words>(then);
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] -= before[i];
    }
    return std::bit_cast<stats::NetdevCounters>(words);
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const EngineOptions& options,
                                               fib::Shared& shared,
                                               Changes& changes,
                                               Dataplane& dataplane) {
    std::unique_ptr<Engine> engine(new Engine(options, shared, changes, dataplane));
    const Changes::Scope change(changes);
    auto netns = engine->netns_.create("default");
    if (!netns) {
        return std::unexpected(netns.error());
    }
    engine->default_ = *netns;
    const auto blackhole = engine->make_netdev(**netns, "blackhole", NetdevKind::kBlackhole);
    SLUICE_CHECK(blackhole && (*blackhole)->id == kBlackholeNetdev);
    engine->equip(**netns);
    return engine;
}

Engine::Engine(const EngineOptions& options,
               fib::Shared& shared,
               Changes& changes,
               Dataplane& dataplane)
    : options_(options),
      shared_(shared),
      changes_(changes),
      dataplane_(dataplane),
      netdevs_(shared, changes, options.clock),
      uncached_(dataplane.workers(), shared.dsts.capacity(), options.uncached_lists),
      dsts_(shared, uncached_, changes),
      exceptions_(shared, uncached_, *this, {}),
      neighbors_(shared, netdevs_, dsts_, changes, dataplane, options.neighbors),
      hops_(shared, neighbors_, dsts_),
      next_hop_counters_([this](std::uint32_t counter) { return packets_at(counter); }, changes),
      netns_({options.ipv4_routes + kConnectedRoom, options.ipv6_routes + kConnectedRoom}, changes),
      queues_(dataplane) {
    changes_.set_epoch(shared_.cache_epoch);
    changes_.every_netns = [this](const auto& fn) { netns_.for_each(fn); };
    changes_.on_change = [this](const net::IpPrefix* prefix) { recheck_exceptions(prefix); };
    netdevs_.held = [this](NetdevId id) { return held(id); };
}

Engine::~Engine() {
    changes_.on_change = nullptr;
    changes_.every_netns = nullptr;
    while (work()) {
    }
    // Deferred calls refer to members, and may defer further ones.
    dpdk::RcuDomain& rcu = changes_.rcu();
    while (rcu.pending() != 0) {
        rcu.drain_blocking();
    }
}

Result<Netdev*> Engine::make_netdev(Netns& netns, const std::string& name, NetdevKind kind) {
    auto netdev = netdevs_.create(name, kind, netns);
    if (netdev) {
        start_counting(**netdev);
    }
    return netdev;
}

// --- counters -----------------------------------------------------------------------------------

const stats::Block& Engine::block_of(std::size_t writer) const noexcept {
    return writer < dataplane_.workers() ? dataplane_.block(writer) : block_;
}

void Engine::start_counting(Netdev& netdev) {
    netdev.baseline.clear();
    if (!netdevs_.used_before(netdev.id)) {
        return;  // which saves a page per netns
    }
    std::vector<stats::NetdevCounters> counted;
    for (std::size_t writer = 0; writer <= dataplane_.workers(); ++writer) {
        counted.push_back(counters(netdev, writer));
    }
    netdev.baseline = std::move(counted);
}

stats::NetdevCounters Engine::counters(const Netdev& netdev, std::size_t writer) const {
    stats::NetdevCounters sum{};
    stats::accumulate(sum, block_of(writer).netdev(netdev.id));
    if (writer < netdev.baseline.size()) {
        sum = difference(sum, netdev.baseline[writer]);
    }
    return sum;
}

std::uint64_t Engine::held(NetdevId id) const {
    std::uint64_t sum = 0;
    for (std::size_t writer = 0; writer <= dataplane_.workers(); ++writer) {
        sum += stats::read(block_of(writer).netdev(id).held);
    }
    return sum;
}

std::uint64_t Engine::packets_at(std::uint32_t counter) const {
    std::uint64_t sum = 0;
    for (std::size_t writer = 0; writer <= dataplane_.workers(); ++writer) {
        sum += stats::read(block_of(writer).next_hop(counter));
    }
    return sum;
}

std::vector<DrainInfo> Engine::draining() const {
    std::vector<DrainInfo> list;
    for (const Netdevs::Gone& gone : netdevs_.draining()) {
        const auto since =
            std::chrono::duration_cast<std::chrono::milliseconds>(netdevs_.now() - gone.since);
        list.push_back({.id = gone.id,
                        .name = gone.name,
                        .dsts = netdevs_.dsts(gone.id),
                        .held = held(gone.id),
                        .since_ms = static_cast<std::uint32_t>(since.count())});
    }
    return list;
}

// --- the instance -------------------------------------------------------------------------------

Result<void> Engine::quiesce(const std::string& what) {
    using std::chrono::steady_clock;
    constexpr auto kPatience = std::chrono::milliseconds(200);
    const auto deadline = steady_clock::now() + kPatience;
    dpdk::RcuDomain& rcu = changes_.rcu();
    const auto token = rcu.start();
    while (!rcu.elapsed(token)) {
        if (steady_clock::now() > deadline) {
            return fail(ErrorCode::kBusy, "{}: workers still use it, try again", what);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    rcu.poll();
    return {};
}

void Engine::change_instance(const config::ChangeInstance& change) {
    const Changes::Scope scope(changes_);
    const auto per_worker = [&](std::uint32_t limit) {
        const auto workers = static_cast<std::uint32_t>(dataplane_.workers());
        // Rounded up: a limit of 1 with two workers is not a limit of 0.
        return (limit + workers - 1) / workers;
    };
    shared_.icmp_error_rate.store(per_worker(change.icmp.error_rate), std::memory_order_relaxed);
    shared_.icmp_error_burst.store(per_worker(change.icmp.error_burst), std::memory_order_relaxed);
    shared_.idle_sleep.store(change.idle == config::IdleMode::kAdaptive, std::memory_order_relaxed);
    set_cache_mode(change.cache);
    if (std::exchange(netdevs_.forward_class_e, change.forward_class_e) == change.forward_class_e) {
        return;
    }
    netns_.for_each([&](Netns& netns) {
        netdevs_.publish_all(netns);
        changes_.all(netns);
    });
}

void Engine::set_cache_mode(config::CacheMode mode) {
    static_assert(
        std::to_underlying(config::CacheMode::kOff) == std::to_underlying(fib::CacheMode::kOff) &&
        std::to_underlying(config::CacheMode::kAuto) == std::to_underlying(fib::CacheMode::kAuto) &&
        std::to_underlying(config::CacheMode::kOn) == std::to_underlying(fib::CacheMode::kOn));
    shared_.cache_mode.store(static_cast<fib::CacheMode>(std::to_underlying(mode)),
                             std::memory_order_relaxed);
}

void Engine::flush_cache() {
    const Changes::Scope scope(changes_);
    netns_.for_each([&](Netns& netns) { changes_.all(netns); });
    shared_.cache_epoch.fetch_add(1, std::memory_order_release);
}

void Engine::set_multipath_hash(Netns& netns,
                                net::Family family,
                                const config::MultipathHash& hash) {
    const Changes::Scope scope(changes_);
    (family == net::Family::kIpv4 ? netns.hash4 : netns.hash6) = hash;
    netdevs_.publish_all(netns);
    changes_.all(netns);
}

void Engine::close_ports() {
    netdevs_.for_each([](Netdev& netdev) { netdev.device.reset(); });
    while (!closing_.empty()) {
        changes_.rcu().drain_blocking();
    }
}

}  // namespace sluice::control
