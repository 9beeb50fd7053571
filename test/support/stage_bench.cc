// SPDX-License-Identifier: BSD-3-Clause
#include "support/stage_bench.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <rte_mempool.h>

#include "base/check.h"
#include "dpdk/mbuf.h"
#include "fib/dst.h"
#include "fib/lpm.h"
#include "fib/neighbor_map.h"
#include "fib/netdev_view.h"
#include "net/icmp.h"
#include "net/wire.h"
#include "pipeline/stage_timer.h"
#include "pipeline/stages.h"
#include "support/frame.h"
#include "support/mbuf_chain.h"

namespace sluice::test {

namespace {

// Transmitter::Send has no argument of its own; one bench lives at a time.
thread_local StageBench* t_bench = nullptr;

constexpr std::uint64_t kStartNs = 1'000'000'000'000;

dpdk::PktPool make_pool(unsigned mbufs) {
    auto pool = dpdk::PktPool::create("stage-bench", mbufs);
    SLUICE_CHECK(pool.has_value());
    return std::move(*pool);
}

dpdk::MbufRing make_ring(unsigned number) {
    auto ring = dpdk::MbufRing::create(fmt::format("stage-punt-{}", number), 64);
    SLUICE_CHECK(ring.has_value());
    return std::move(*ring);
}

net::IpAddr ip(std::string_view text) {
    return net::IpAddr::parse(text).value();
}

Bytes bytes_of(const rte_mbuf& packet) {
    Bytes bytes;
    for (const rte_mbuf* m = &packet; m != nullptr; m = m->next) {
        const auto* data = rte_pktmbuf_mtod(m, const std::uint8_t*);
        bytes.insert(bytes.end(), data, data + m->data_len);
    }
    EXPECT_EQ(bytes.size(), packet.pkt_len);
    return bytes;
}

struct HeapBlock {
    rte_mbuf_ext_shared_info info;
    std::uint8_t* bytes;
};
void free_heap_block(void* /*address*/, void* opaque) {
    auto* block = static_cast<HeapBlock*>(opaque);
    std::free(block->bytes);
    delete block;
}

}  // namespace

StageBench::Worker::Worker(unsigned number, StageBench& bench)
    : punted(make_ring(number)),
      context{.shared = bench.shared_,
              .stats = block,
              .pool = bench.pool_.raw(),
              .transmit = pipeline::Transmitter(
                  static_cast<std::uint16_t>(number), block, &StageBench::catch_sent),
              .holds = pipeline::HoldTable(0x9e3779b97f4a7c15U),
              .icmp_limit = {},
              .events = events,
              .punted = punted,
              .caches = pipeline::Caches(fib::Ipv4DstCache::kDefaultEntries, 0x9e3779b97f4a7c15U),
              .redirects = {},
              .now_ns = kStartNs} {}

StageBench::StageBench(unsigned mbufs)
    : pool_(make_pool(mbufs)), shared_(8192, 4096, 0x2545f4914f6cdd1dU, reclaimer_) {
    t_bench = this;
    // Every test runs twice: with the cache and without.
    const char* mode = std::getenv("SLUICE_TEST_CACHE");
    shared_.cache_mode = mode != nullptr && std::string_view(mode) == "off" ? fib::CacheMode::kOff
                                                                            : fib::CacheMode::kOn;
    shared_.flow_seed = 0x8ebc6af09c88c6e3U;
    generations4_ = std::make_unique<fib::Generations<net::Ipv4Addr>>();
    generations6_ = std::make_unique<fib::Generations<net::Ipv6Addr>>();
    fib4_ = fib::Ipv4Lpm::create({}, reclaimer_).value();
    fib6_ = fib::Ipv6Lpm::create({}, reclaimer_).value();
    const NetdevId lo = add_netdev({});
    const NetdevId p0 =
        add_netdev({.port = 0, .mac = kP0Mac, .addresses = {"10.0.0.1/24", "fd00::1/64"}});
    const NetdevId p1 =
        add_netdev({.port = 1, .mac = kP1Mac, .addresses = {"10.0.1.1/24", "fd00:1::1/64"}});
    SLUICE_CHECK(lo == kLo && p0 == kP0 && p1 == kP1);
    netdev(kLo).kind = fib::NetdevKind::kLoopback;
    for (const auto& [dev, address, mac] : {std::tuple{kP0, ip("10.0.0.2"), kH0Mac},
                                            {kP0, ip("fd00::2"), kH0Mac},
                                            {kP1, ip("10.0.1.2"), kH1Mac},
                                            {kP1, ip("fd00:1::2"), kH1Mac}}) {
        add_neighbor(dev, address);
        resolve(dev, address, mac);
    }
    add_route("192.0.2.0/24", {.via = "10.0.1.2", .dev = kP1});
    add_route("2001:db8:2::/48", {.via = "fd00:1::2", .dev = kP1});
    worker();
}

StageBench::~StageBench() {
    t_bench = nullptr;
}

void StageBench::TearDown() {
    for (unsigned number = 0; number < workers_.size(); ++number) {
        take_punted(number);
    }
    for (const auto& [id, view] : views_) {
        EXPECT_EQ(stats::imbalance(counters(id)), 0U)
            << "books of netdev " << id.value << ": " << drops_text(id);
    }
    std::uint64_t held = 0;
    std::uint64_t transmitted = 0;
    for (const auto& [id, view] : views_) {
        held += counters(id).held;
        transmitted += counters(id).tx_packets;
    }
    std::uint64_t in_tables = 0;
    for (const auto& worker : workers_) {
        in_tables += worker->context.holds.packets();
    }
    EXPECT_EQ(held, in_tables) << "packets booked as held";
    EXPECT_EQ(transmitted, sent_count_) << "packets booked as transmitted";
    for (const auto& worker : workers_) {
        pipeline::drop_all_held(worker->context);
    }
    for (const auto& [id, view] : views_) {
        EXPECT_EQ(stats::imbalance(counters(id)), 0U) << "books of netdev " << id.value;
        EXPECT_EQ(counters(id).held, 0U) << "netdev " << id.value;
    }
    EXPECT_EQ(mbufs_in_use(), 0U) << "mbufs leaked";
}

NetdevId StageBench::add_netdev(const NetdevSpec& spec) {
    const NetdevId id{static_cast<std::uint16_t>(views_.size() + 1)};
    auto view = std::make_unique<fib::NetdevView>();
    view->id = id;
    view->kind = spec.vlan == 0 ? fib::NetdevKind::kPort : fib::NetdevKind::kVlan;
    view->loopback = kLo;
    view->domain = kLo;
    view->generations4 = generations4_.get();
    view->generations6 = generations6_.get();
    view->up = true;
    view->port = spec.port;
    view->vlan_id = spec.vlan;
    view->mtu = spec.mtu;
    view->mac = spec.mac;
    view->fib4 = fib4_.get();
    view->fib6 = fib6_.get();
    view->local = std::make_shared<const fib::LocalAddresses>(own4_, own6_, broadcasts4_);
    view->link_local = net::link_local_from_mac(spec.mac);
    if (spec.vlan != 0) {
        auto& table = netdev(spec.parent).vlans;
        if (table == nullptr) {
            table = std::make_unique<std::array<NetdevId, 4096>>();
        }
        (*table)[spec.vlan] = id;
    }
    views_[id] = std::move(view);
    publish(id);
    for (const char* address : spec.addresses) {
        add_address(id, address);
    }
    return id;
}

void StageBench::refresh_local() {
    const auto local = std::make_shared<const fib::LocalAddresses>(own4_, own6_, broadcasts4_);
    for (const auto& [id, view] : views_) {
        view->local = local;
    }
}

void StageBench::add_address(NetdevId id, std::string_view text) {
    const auto address = net::InterfaceAddr::parse(text).value();
    fib::NetdevView& view = netdev(id);
    const std::string host = address.address.to_string();
    if (address.address.is_v4()) {
        view.has_ipv4 = true;
        view.addresses4.push_back({address.address.v4(), address.length});
        own4_.push_back(address.address.v4());
        add_route(host + "/32", {.type = fib::DstType::kLocal, .dev = id});
        if (const auto broadcast = address.broadcast()) {
            broadcasts4_.push_back(*broadcast);
            add_route(broadcast->to_string() + "/32",
                      {.type = fib::DstType::kBroadcast, .dev = id});
        }
        if (address.length < 32) {
            add_route(address.network().to_string(), {.type = fib::DstType::kConnected, .dev = id});
        }
    } else {
        view.has_ipv6 = true;
        view.addresses6.push_back({address.address.v6(), address.length});
        own6_.push_back(address.address.v6());
        add_route(host + "/128", {.type = fib::DstType::kLocal, .dev = id});
        add_route(address.network().to_string(), {.type = fib::DstType::kConnected, .dev = id});
    }
    refresh_local();
}

fib::DstIndex StageBench::make_dst(const RouteSpec& route,
                                   net::Family family,
                                   const net::IpAddr& gateway,
                                   const Mac& to) {
    const fib::DstIndex index = shared_.dsts.allocate().value();
    fib::Dst& dst = shared_.dsts.writable(index);
    dst.type = route.type;
    dst.out = route.dev;
    dst.set_gateway(gateway);
    if (route.dev != NetdevId{}) {
        const fib::NetdevView& out = netdev(route.dev);
        dst.port = out.port;
        dst.mtu = route.mtu != 0 ? route.mtu : out.mtu;
        Packet header;
        header.eth(
            {.dst = to,
             .src = out.mac,
             .type = family == net::Family::kIpv4 ? net::kEtherTypeIpv4 : net::kEtherTypeIpv6});
        Bytes bytes = header.bytes();
        if (out.vlan_id != 0) {
            bytes = Packet()
                        .eth({.dst = to, .src = out.mac})
                        .vlan({.id = out.vlan_id,
                               .type = family == net::Family::kIpv4 ? net::kEtherTypeIpv4
                                                                    : net::kEtherTypeIpv6})
                        .bytes();
        }
        dst.rewrite_bytes = static_cast<std::uint8_t>(bytes.size());
        std::ranges::copy(bytes, dst.rewrite.begin());
    }
    return index;
}

fib::DstIndex StageBench::add_route(std::string_view text, const RouteSpec& route) {
    const auto prefix = net::IpPrefix::parse(text).value();
    const net::IpAddr gateway = route.via != nullptr ? ip(route.via) : net::IpAddr{};
    const bool broadcast = route.type == fib::DstType::kBroadcast;
    const fib::DstIndex index =
        make_dst(route, prefix.family(), gateway, broadcast ? Mac(net::kBroadcastMac) : Mac{});
    if (broadcast) {
        fib::resolve(shared_.dsts.writable(index), net::kBroadcastMac);
    }
    if (route.via != nullptr) {
        dsts_of_.emplace(std::pair{route.dev, gateway}, index);
        const auto known = macs_.find({route.dev, gateway});
        if (known != macs_.end()) {
            fib::resolve(shared_.dsts.writable(index), known->second);
        }
    }
    const auto done =
        prefix.is_v4() ? fib4_->set(prefix.v4(), index) : fib6_->set(prefix.v6(), index);
    SLUICE_CHECK(done.has_value());
    bump();
    return index;
}

fib::DstIndex StageBench::add_dst(net::Family family, const RouteSpec& route) {
    const net::IpAddr gateway = route.via != nullptr ? ip(route.via) : net::IpAddr{};
    const fib::DstIndex index = make_dst(route, family, gateway, Mac{});
    const auto known = macs_.find({route.dev, gateway});
    if (route.via != nullptr) {
        dsts_of_.emplace(std::pair{route.dev, gateway}, index);
    }
    if (known != macs_.end()) {
        fib::resolve(shared_.dsts.writable(index), known->second);
    }
    return index;
}

void StageBench::bump() {
    generations4_->bump_all(sequence_.next());
    generations6_->bump_all(sequence_.next());
}

void StageBench::add_neighbor(NetdevId dev, const net::IpAddr& address) {
    const fib::DstIndex index = make_dst({.dev = dev}, address.family(), address, Mac{});
    shared_.neighbors.insert(fib::NeighborKeyWords::of(dev, address), index);
    dsts_of_.emplace(std::pair{dev, address}, index);
    bump();
}

void StageBench::resolve(NetdevId dev, const net::IpAddr& address, const Mac& mac) {
    const auto [first, last] = dsts_of_.equal_range({dev, address});
    SLUICE_CHECK(first != last);
    macs_[{dev, address}] = mac;
    std::for_each(first, last, [&](const auto& entry) {
        fib::resolve(shared_.dsts.writable(entry.second), mac);
    });
}

void StageBench::unresolve(NetdevId dev, const net::IpAddr& address) {
    macs_.erase({dev, address});
    const auto [first, last] = dsts_of_.equal_range({dev, address});
    std::for_each(first, last, [&](const auto& entry) {
        fib::unresolve(shared_.dsts.writable(entry.second));
    });
}

void StageBench::report_use(NetdevId dev, const net::IpAddr& address) {
    const auto [first, last] = dsts_of_.equal_range({dev, address});
    std::for_each(first, last, [&](const auto& entry) {
        fib::set_report_use(shared_.dsts.writable(entry.second), true);
    });
}

StageBench::Worker& StageBench::worker(unsigned number) {
    while (workers_.size() <= number) {
        workers_.push_back(std::make_unique<Worker>(static_cast<unsigned>(workers_.size()), *this));
    }
    return *workers_[number];
}

std::vector<pipeline::WorkerEvent> StageBench::events(unsigned number) {
    std::vector<pipeline::WorkerEvent> all;
    pipeline::WorkerEvent event;
    while (worker(number).events.pop(event)) {
        all.push_back(event);
    }
    return all;
}

std::vector<Bytes> StageBench::take_punted(unsigned number) {
    std::vector<Bytes> frames;
    std::array<rte_mbuf*, 1> m{};
    while (worker(number).punted.dequeue(m) == 1) {
        frames.push_back(bytes_of(*m[0]));
        const NetdevId in = dpdk::meta(*m[0]).ingress;
        stats::bump(control_.netdev(in).held, ~std::uint64_t{0});
        stats::bump(control_.netdev(in).delivered);
        rte_pktmbuf_free(m[0]);
    }
    return frames;
}

void StageBench::advance_ns(std::uint64_t ns) {
    for (const auto& worker : workers_) {
        worker->context.now_ns += ns;
    }
}

rte_mbuf* StageBench::mbuf_of(const Bytes& bytes, const std::vector<std::size_t>& segments) {
    return mbuf_chain(pool(), bytes, segments);
}

rte_mbuf* StageBench::exact_mbuf(const Bytes& bytes) {
    constexpr std::size_t kHeadroom = RTE_PKTMBUF_HEADROOM;
    rte_mbuf* m = rte_pktmbuf_alloc(pool());
    SLUICE_CHECK(m != nullptr);
    const std::size_t size = kHeadroom + bytes.size();
    auto* block = new HeapBlock{};
    block->bytes = static_cast<std::uint8_t*>(std::malloc(size));
    block->info.free_cb = free_heap_block;
    block->info.fcb_opaque = block;
    rte_mbuf_ext_refcnt_set(&block->info, 1);
    std::ranges::copy(bytes, block->bytes + kHeadroom);
    rte_pktmbuf_attach_extbuf(
        m, block->bytes, RTE_BAD_IOVA, static_cast<std::uint16_t>(size), &block->info);
    m->data_off = static_cast<std::uint16_t>(kHeadroom);
    m->data_len = static_cast<std::uint16_t>(bytes.size());
    m->pkt_len = static_cast<std::uint32_t>(bytes.size());
    return m;
}

void StageBench::receive(NetdevId port, const std::vector<rte_mbuf*>& burst, unsigned number) {
    Worker& w = worker(number);
    pipeline::StageTimer timer(w.block.worker(), true);
    pipeline::process_burst(w.context, w.storage, netdev(port), burst, timer);
}

void StageBench::receive(NetdevId port, const std::vector<Bytes>& frames, unsigned number) {
    std::vector<rte_mbuf*> burst;
    for (const Bytes& frame : frames) {
        burst.push_back(mbuf_of(frame));
    }
    receive(port, burst, number);
}

std::uint16_t StageBench::catch_sent(std::uint16_t port,
                                     std::uint16_t /*queue*/,
                                     rte_mbuf** packets,
                                     std::uint16_t count) {
    const std::size_t taken = std::min<std::size_t>(count, t_bench->device_room);
    for (std::size_t i = 0; i < taken; ++i) {
        if (t_bench->keep_sent) {
            t_bench->sent_.push_back({port, bytes_of(*packets[i])});
        }
        rte_pktmbuf_free(packets[i]);
    }
    t_bench->device_room -= taken;
    t_bench->sent_count_ += taken;
    return static_cast<std::uint16_t>(taken);
}

std::vector<Sent> StageBench::take_sent() {
    return std::exchange(sent_, {});
}

stats::NetdevCounters StageBench::counters(NetdevId id) const {
    stats::NetdevCounters sum{};
    for (const auto& worker : workers_) {
        stats::accumulate(sum, worker->block.netdev(id));
    }
    stats::accumulate(sum, control_.netdev(id));
    return sum;
}

std::uint64_t StageBench::drops(NetdevId id, DropReason reason) const {
    return counters(id).drops[std::to_underlying(reason)];
}

std::string StageBench::drops_text(NetdevId id) const {
    const stats::NetdevCounters sum = counters(id);
    std::string text = fmt::format("rx {}, forwarded {}, delivered {}, held {}",
                                   sum.rx_packets,
                                   sum.forwarded,
                                   sum.delivered,
                                   static_cast<std::int64_t>(sum.held));
    for (std::size_t i = 0; i < kDropReasons; ++i) {
        if (sum.drops[i] != 0) {
            text += fmt::format(", {}: {}", kDropInfo[i].name, sum.drops[i]);
        }
    }
    return text;
}

Want forwarded(const Packet& frame, std::uint16_t port) {
    return {.end = Want::End::kForwarded, .frames = {{port, frame.bytes()}}};
}
Want in_fragments(const std::vector<Packet>& frames, std::uint16_t port) {
    Want want{.end = Want::End::kForwarded};
    for (const Packet& frame : frames) {
        want.frames.push_back({port, frame.bytes()});
    }
    return want;
}
Want dropped(DropReason reason) {
    return {.end = Want::End::kDropped, .drop = reason};
}
Want dropped(DropReason reason, const Packet& error, std::uint16_t port) {
    return {.end = Want::End::kDropped, .drop = reason, .frames = {{port, error.bytes()}}};
}
Want delivered() {
    return {.end = Want::End::kDelivered};
}
Want answered(const Packet& reply, std::uint16_t port) {
    return {.end = Want::End::kDelivered, .frames = {{port, reply.bytes()}}};
}
Want held() {
    return {.end = Want::End::kHeld};
}

std::ostream& operator<<(std::ostream& out, const Case& row) {
    return out << row.name << ": " << row.in;
}
std::string case_name(const testing::TestParamInfo<Case>& info) {
    return info.param.name;
}

void StageRows::expect(const Case& row) {
    const NetdevId book = row.book == NetdevId{} ? row.port : row.book;
    for (const char* when : {"cold", "again"}) {
        SCOPED_TRACE(when);
        // Ours would count up; rows expect the builder's default.
        worker().context.ipv4_id = 1;
        advance_ns(1'000'000'000);
        const stats::NetdevCounters before = counters(book);
        rte_mbuf* m = mbuf_of(row.in.bytes(), row.segments);
        m->ol_flags |= row.offload_flags;
        m->vlan_tci = row.vlan_tci;
        receive(row.port, std::vector{m});

        const stats::NetdevCounters after = counters(book);
        const auto is = [&](Want::End end) { return row.want.end == end ? 1U : 0U; };
        EXPECT_EQ(after.rx_packets - before.rx_packets, 1U);
        EXPECT_EQ(after.rx_bytes - before.rx_bytes, row.in.bytes().size());
        EXPECT_EQ(after.forwarded - before.forwarded, is(Want::End::kForwarded));
        EXPECT_EQ(after.delivered - before.delivered, is(Want::End::kDelivered));
        EXPECT_EQ(after.held - before.held, is(Want::End::kHeld));
        for (std::size_t i = 0; i < kDropReasons; ++i) {
            const bool wanted =
                row.want.end == Want::End::kDropped && i == std::to_underlying(row.want.drop);
            EXPECT_EQ(after.drops[i] - before.drops[i], wanted ? 1U : 0U) << kDropInfo[i].name;
        }
        const std::vector<Sent> sent = take_sent();
        ASSERT_EQ(sent.size(), row.want.frames.size())
            << (sent.empty() ? "" : to_hex(sent.front().bytes)) << '\n'
            << drops_text(book) << "\nlo: " << drops_text(kLo);
        for (std::size_t i = 0; i < sent.size(); ++i) {
            EXPECT_EQ(sent[i].port, row.want.frames[i].port);
            EXPECT_EQ(difference(row.want.frames[i].bytes, sent[i].bytes), "") << "frame " << i;
            EXPECT_EQ(verify_checksums(sent[i].bytes), "") << "frame " << i;
        }
    }
}

Packet by_p1() {
    return Packet().eth({.dst = StageBench::kH1Mac, .src = StageBench::kP1Mac});
}
Packet by_p0() {
    return Packet().eth({.dst = StageBench::kH0Mac, .src = StageBench::kP0Mac});
}

namespace {
/// The IP packet of a frame without its padding, as far as `room` goes.
Bytes quote(const Packet& about, std::size_t room) {
    Bytes l3 = parse_frame(about.bytes()).l3;
    l3.resize(std::min(l3.size(), room));
    return l3;
}
}  // namespace

Packet error4(
    const Packet& about, std::uint8_t type, std::uint8_t code, std::uint32_t rest, V4 from) {
    return by_p0()
        .ipv4({.src = from, .dst = "10.0.0.2", .tos = 0xc0})
        .icmp(type, code, rest)
        .raw(quote(about, net::kIcmpErrorMax - 28));
}

Packet error6(
    const Packet& about, std::uint8_t type, std::uint8_t code, std::uint32_t rest, V6 from) {
    return by_p0()
        .ipv6({.src = from, .dst = "fd00::2"})
        .icmp6(type, code, rest)
        .raw(quote(about, net::kIcmp6ErrorMax - 48));
}

}  // namespace sluice::test
