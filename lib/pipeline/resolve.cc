// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "base/id.h"
#include "dpdk/mbuf.h"
#include "fib/neighbor_map.h"
#include "fib/netdev_view.h"
#include "net/icmp.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

namespace {

// An answer takes at most the solicitations' time (3 s); past this it was lost.
constexpr std::uint64_t kHoldMaxNs = 10'000'000'000;
constexpr unsigned kOverdueNeighborsPerCall = 32;

// What a held packet needs to go on travels in its mbuf. `extra`: the netdev whose book it is on.
void remember(const Packet& p) noexcept {
    dpdk::meta(*p.m) = {
        .ingress = p.in->id, .flags = p.flags, .l3_offset = p.l2_bytes, .extra = p.book.value};
}

Packet recall(const Context& c, rte_mbuf* m) noexcept {
    const dpdk::PacketMeta& meta = dpdk::meta(*m);
    return {.m = m,
            .in = c.shared.netdev(meta.ingress),
            .l3 = rte_pktmbuf_mtod_offset(m, std::uint8_t*, meta.l3_offset),
            .book = NetdevId{static_cast<std::uint16_t>(meta.extra)},
            .l2_bytes = static_cast<std::uint8_t>(meta.l3_offset),
            .flags = static_cast<std::uint8_t>(meta.flags)};
}

void book_held(Context& c, NetdevId book, std::int64_t by) noexcept {
    stats::bump(c.stats.netdev(book).held, static_cast<std::uint64_t>(by));
}

// Ends a packet that was held.
void drop_held(Context& c, rte_mbuf* m, DropReason reason) noexcept {
    const Packet p = recall(c, m);
    book_held(c, p.book, -1);
    c.drop(p, reason);
}

// Looks the packet up again: while it was held, its route or its ingress may have changed.
void resume(Context& c, rte_mbuf* m) noexcept {
    Packet p = recall(c, m);
    book_held(c, p.book, -1);
    if (p.in == nullptr) {
        c.drop(p, DropReason::kNetdevGone);
    } else if (p.is(Packet::kIpv6)) {
        ip6_route(c, p);
    } else {
        ip4_route(c, p);
    }
}

void fail(Context& c, rte_mbuf* m) noexcept {
    const Packet p = recall(c, m);
    if (p.in != nullptr && p.is(Packet::kIpv6)) {
        ip6_error(c, p, {.type = net::icmp6::kUnreachable, .code = net::icmp6::kAddress});
    } else if (p.in != nullptr) {
        ip4_error(c, p, {.type = net::icmp::kUnreachable, .code = net::icmp::kHost});
    }
    drop_held(c, m, DropReason::kNeighborFailed);
}

}  // namespace

void hold(Context& c, Packet& p, const fib::NeighborKeyWords& key) noexcept {
    remember(p);
    HoldTable::Added added{};
    if (!c.holds.add(key, p.m, c.now_ns, added)) {
        c.drop(p, DropReason::kHoldTableFull);
        return;
    }
    book_held(c, p.book, 1);
    if (added.outcome == HoldTable::Outcome::kDisplaced) {
        drop_held(c, added.displaced, DropReason::kHoldQueueFull);
    } else if (added.outcome == HoldTable::Outcome::kFirst &&
               !c.events.push({.kind = WorkerEvent::Kind::kResolve, .key = key})) {
        HoldTable::Batch taken{};
        c.holds.take(key, taken);
        drop_held(c, taken[0], DropReason::kHoldTableFull);
    }
}

void release_held(Context& c, const WorkerCommand& command) noexcept {
    HoldTable::Batch batch{};
    const std::size_t count = c.holds.take(command.key, batch);
    for (std::size_t i = 0; i < count; ++i) {
        switch (command.kind) {
            case WorkerCommand::Kind::kReady:
                resume(c, batch[i]);
                break;
            case WorkerCommand::Kind::kFailed:
                fail(c, batch[i]);
                break;
            case WorkerCommand::Kind::kTableFull:
                drop_held(c, batch[i], DropReason::kNeighborTableFull);
                break;
            case WorkerCommand::Kind::kGone:
                drop_held(c, batch[i], DropReason::kNetdevGone);
                break;
        }
    }
}

void drop_overdue(Context& c) noexcept {
    if (c.now_ns < kHoldMaxNs) {
        return;
    }
    for (unsigned neighbor = 0; neighbor < kOverdueNeighborsPerCall; ++neighbor) {
        HoldTable::Batch batch{};
        const std::size_t count = c.holds.take_overdue(c.now_ns - kHoldMaxNs, batch);
        for (std::size_t i = 0; i < count; ++i) {
            drop_held(c, batch[i], DropReason::kNeighborFailed);
        }
        if (count == 0) {
            return;
        }
    }
}

void drop_all_held(Context& c) noexcept {
    HoldTable::Batch batch{};
    std::size_t count = 0;
    while ((count = c.holds.take_overdue(~std::uint64_t{0}, batch)) != 0) {
        for (std::size_t i = 0; i < count; ++i) {
            drop_held(c, batch[i], DropReason::kStopped);
        }
    }
}

void report_use(Context& c, const fib::NeighborKeyWords& key) noexcept {
    if (std::ranges::find(c.reported, key) != c.reported.end()) {
        return;
    }
    if (c.events.push({.kind = WorkerEvent::Kind::kUsed, .key = key})) {
        c.reported[c.reported_next++ % c.reported.size()] = key;
    }
}

}  // namespace sluice::pipeline
