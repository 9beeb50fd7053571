// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/forwarder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>

#include <fmt/format.h>

#include "base/check.h"
#include "base/drop_reason.h"
#include "dpdk/mbuf.h"
#include "pipeline/stage_timer.h"
#include "pipeline/stages.h"
#include "pipeline/straight.h"
#include "support/mbuf_chain.h"

namespace sluice::test::fuzz {

namespace {

constexpr std::uint64_t kSecret = 0x9e3779b97f4a7c15U;
constexpr unsigned kPuntRing = 1024;
constexpr std::uint32_t kNextHops = 512;  // counters that a run gets to at most

// Transmitter::Send has no argument of its own.
thread_local Forwarder* t_forwarder = nullptr;

dpdk::MbufRing make_ring(std::uint16_t number) {
    auto ring = dpdk::MbufRing::create(fmt::format("fuzz-{}", number), kPuntRing);
    SLUICE_CHECK(ring.has_value());
    return std::move(*ring);
}

Bytes bytes_of(const rte_mbuf& packet) {
    Bytes bytes;
    bytes.reserve(packet.pkt_len);
    for (const rte_mbuf* m = &packet; m != nullptr; m = m->next) {
        const auto* data = rte_pktmbuf_mtod(m, const std::uint8_t*);
        bytes.insert(bytes.end(), data, data + m->data_len);
    }
    SLUICE_CHECK(bytes.size() == packet.pkt_len);
    return bytes;
}

bool equal(const pipeline::WorkerEvent& a, const pipeline::WorkerEvent& b) {
    return a.kind == b.kind && a.mtu == b.mtu && a.ingress == b.ingress && a.key == b.key &&
           a.gateway == b.gateway;
}

std::string text_of(const pipeline::WorkerEvent& event) {
    static constexpr const char* kKinds[]{"resolve", "used", "path-mtu", "redirect"};
    return fmt::format("{} netdev {} {} mtu {} gateway {}",
                       kKinds[static_cast<std::size_t>(event.kind)],
                       event.key.netdev().value,
                       event.key.address().to_string(),
                       event.mtu,
                       event.gateway.to_string());
}

std::string text_of(const Output::Frame& frame) {
    return fmt::format("port {}\n{}", frame.port, to_hex(frame.bytes));
}

std::string text_of(const Output::Punted& punted) {
    return fmt::format("netdev {}\n{}", punted.ingress.value, to_hex(punted.bytes));
}

template <class List, class Equal>
std::string compare_lists(
    const char* what, const List& a, const List& b, const std::string& a_name, Equal&& same) {
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        if (i < a.size() && i < b.size() && same(a[i], b[i])) {
            continue;
        }
        return fmt::format(
            "{} number {} of {} by {}, {} by the one without a cache\n{}: {}\noff: {}\n",
            what,
            i,
            a.size(),
            a_name,
            b.size(),
            a_name,
            i < a.size() ? text_of(a[i]) : "none",
            i < b.size() ? text_of(b[i]) : "none");
    }
    return {};
}

std::string compare_counters(const Forwarder& a, const Forwarder& b, std::uint16_t id) {
    const stats::NetdevCounters& x = a.block.netdev(NetdevId{id});
    const stats::NetdevCounters& y = b.block.netdev(NetdevId{id});
    if (std::memcmp(&x, &y, sizeof x) == 0) {
        return {};
    }
    std::string text = fmt::format("counters of netdev {}, {} against off:", id, a.name);
    const auto line = [&](std::string_view name, std::uint64_t one, std::uint64_t other) {
        if (one != other) {
            text += fmt::format(" {}: {} {}", name, one, other);
        }
    };
    line("rx_packets", x.rx_packets, y.rx_packets);
    line("rx_bytes", x.rx_bytes, y.rx_bytes);
    line("tx_packets", x.tx_packets, y.tx_packets);
    line("tx_bytes", x.tx_bytes, y.tx_bytes);
    line("forwarded", x.forwarded, y.forwarded);
    line("delivered", x.delivered, y.delivered);
    line("held", x.held, y.held);
    line("icmp_errors_sent", x.icmp_errors_sent, y.icmp_errors_sent);
    line("icmp_errors_suppressed", x.icmp_errors_suppressed, y.icmp_errors_suppressed);
    line("fragments_lost", x.fragments_lost, y.fragments_lost);
    for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
        line(kDropInfo[reason].name, x.drops[reason], y.drops[reason]);
    }
    return text + "\n";
}

}  // namespace

Forwarder::Forwarder(std::string its_name,
                     std::uint16_t number,
                     fib::CacheMode its_mode,
                     fib::Shared& shared,
                     rte_mempool* pool,
                     std::size_t cache_entries,
                     std::uint64_t start_ns)
    : name(std::move(its_name)),
      mode(its_mode),
      punted(make_ring(number)),
      context{.shared = shared,
              .stats = block,
              .pool = pool,
              // One queue for all: they stand for the same worker.
              .transmit = pipeline::Transmitter(0, block, &Forwarder::catch_sent),
              .holds = pipeline::HoldTable(kSecret),
              .icmp_limit = {},
              .events = events,
              .punted = punted,
              .caches = pipeline::Caches(cache_entries, kSecret),
              .redirects = {},
              .now_ns = start_ns,
              .straight = its_mode == fib::CacheMode::kOn ? &pipeline::best_straight()
                                                          : &pipeline::straight_impls().back()},
      in_two_(its_mode == fib::CacheMode::kOff) {}

Forwarder::~Forwarder() {
    begin();
    pipeline::drop_all_held(context);
    context.transmit.flush();
    end();
}

void Forwarder::begin() {
    t_forwarder = this;
    output.clear();
}

void Forwarder::end() {
    pipeline::WorkerEvent event;
    while (events.pop(event)) {
        output.events.push_back(event);
    }
    std::array<rte_mbuf*, 1> m{};
    while (punted.dequeue(m) == 1) {
        const dpdk::PacketMeta& meta = dpdk::meta(*m[0]);
        output.punted.push_back(
            {.ingress = meta.ingress, .l3_offset = meta.l3_offset, .bytes = bytes_of(*m[0])});
        ++punted_[meta.ingress.value];
        rte_pktmbuf_free(m[0]);
    }
    t_forwarder = nullptr;
}

rte_mbuf* Forwarder::mbuf_of(const Input& input) {
    std::size_t first = input.first_segment;
    if (first == 0 && in_two_) {
        first = input.bytes.size() - 1;
    }
    const std::array segments{first};
    return mbuf_chain(context.pool, input.bytes, std::span(segments).first(first != 0 ? 1 : 0));
}

void Forwarder::receive(const fib::NetdevView& port, const std::vector<Input>& burst) {
    begin();
    std::vector<rte_mbuf*> mbufs;
    for (const Input& input : burst) {
        mbufs.push_back(mbuf_of(input));
    }
    context.shared.cache_mode.store(mode, std::memory_order_relaxed);
    pipeline::StageTimer timer(block.worker(), false);
    pipeline::process_burst(context, storage, port, mbufs, timer);
    end();
}

void Forwarder::obey(const std::vector<pipeline::WorkerCommand>& commands) {
    begin();
    context.shared.cache_mode.store(mode, std::memory_order_relaxed);
    for (const pipeline::WorkerCommand& command : commands) {
        pipeline::release_held(context, command);
    }
    context.transmit.flush();
    end();
}

void Forwarder::housekeeping() {
    begin();
    context.reported = {};
    pipeline::drop_overdue(context);
    context.transmit.flush();
    end();
}

void Forwarder::let_go() {
    begin();
    pipeline::drop_all_held(context);
    context.transmit.flush();
    end();
    lose_output();
    context.icmp_limit = {};
    context.redirects = {};
    context.reported = {};
    context.reported_next = 0;
}

void Forwarder::lose_output() {
    for (const Output::Punted& lost : output.punted) {
        --block.netdev(lost.ingress).held;
        --punted_[lost.ingress.value];
        block.drop(lost.ingress, DropReason::kStopped, 0);
    }
    output.clear();
}

void Forwarder::take_counters(const Forwarder& other, std::size_t netdevs) {
    for (std::size_t id = 0; id < netdevs; ++id) {
        const NetdevId netdev{static_cast<std::uint16_t>(id)};
        block.netdev(netdev) = other.block.netdev(netdev);
    }
    punted_ = other.punted_;
    for (std::uint32_t i = 1; i < kNextHops; ++i) {
        block.next_hop(i) = other.block.next_hop(i);
    }
    const auto of_caches = block.worker().caches;
    block.worker() = other.block.worker();
    block.worker().caches = of_caches;
    context.ipv4_id = other.context.ipv4_id;
}

std::uint16_t Forwarder::catch_sent(std::uint16_t port,
                                    std::uint16_t /*queue*/,
                                    rte_mbuf** packets,
                                    std::uint16_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        t_forwarder->output.sent.push_back({.port = port, .bytes = bytes_of(*packets[i])});
        rte_pktmbuf_free(packets[i]);
    }
    return count;
}

std::string compare(const Forwarder& a, const Forwarder& b, std::size_t netdevs) {
    std::string text =
        compare_lists("frame", a.output.sent, b.output.sent, a.name, std::equal_to<>{});
    text += compare_lists("event", a.output.events, b.output.events, a.name, equal);
    text += compare_lists("punted", a.output.punted, b.output.punted, a.name, std::equal_to<>{});
    for (std::size_t id = 0; id < netdevs; ++id) {
        text += compare_counters(a, b, static_cast<std::uint16_t>(id));
    }
    const stats::WorkerCounters& x = a.block.worker();
    const stats::WorkerCounters& y = b.block.worker();
    if (x.drops_by_family != y.drops_by_family) {
        text += "drops by family differ\n";
    }
    if (x.redirects_sent != y.redirects_sent) {
        text += fmt::format("redirects sent: {} {}\n", x.redirects_sent, y.redirects_sent);
    }
    for (std::uint32_t i = 1; i < kNextHops; ++i) {
        if (a.block.next_hop(i) != b.block.next_hop(i)) {
            text += fmt::format(
                "packets of next hop {}: {} {}\n", i, a.block.next_hop(i), b.block.next_hop(i));
        }
    }
    if (a.context.holds.packets() != b.context.holds.packets() ||
        a.context.holds.neighbors() != b.context.holds.neighbors()) {
        text += fmt::format("held: {} {}\n", a.context.holds.packets(), b.context.holds.packets());
    }
    if (a.context.ipv4_id != b.context.ipv4_id) {
        text += "ids of packets of our own differ\n";
    }
    return text;
}

}  // namespace sluice::test::fuzz
