// SPDX-License-Identifier: BSD-3-Clause
// Workers write no cache line in common, nor any of what the control thread publishes: what a
// packet costs does not depend on how many workers there are.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dpdk/pool.h"
#include "dpdk/rcu.h"
#include "fib/dst.h"
#include "fib/shared.h"
#include "net/wire.h"
#include "pipeline/burst.h"
#include "pipeline/context.h"
#include "pipeline/stage_timer.h"
#include "pipeline/worker.h"
#include "stats/counters.h"
#include "support/every_kind.h"
#include "support/packet.h"
#include "support/stage_bench.h"

namespace sluice::test {

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;

struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
    bool holds(std::uintptr_t a) const { return a >= begin && a < end; }
};
template <class T>
Range range_of(const T& object) {
    const auto begin = reinterpret_cast<std::uintptr_t>(&object);
    return {begin, begin + sizeof(T)};
}

/// The stack's top and what the C library and the kernel note down about the calling thread.
Range own_places() {
    const auto at = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()) & ~(kPage - 1);
    return {at - 16 * kPage, at + 2 * kPage};
}

/// All memory of the process that is there now and can be written, but for `without`.
class Memory {
public:
    explicit Memory(std::vector<Range> without) : without_(std::move(without)) {
        std::ifstream maps("/proc/self/maps");
        std::string line;
        const int pagemap = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        while (std::getline(maps, line)) {
            Range r{};
            std::array<char, 5> rights{};
            if (std::sscanf(line.c_str(), "%lx-%lx %4s", &r.begin, &r.end, rights.data()) == 3 &&
                std::string_view(rights.data()) == "rw-p" &&
                line.find("[stack]") == std::string::npos) {
                add_present(r, pagemap);
            }
        }
        ::close(pagemap);
        for (std::byte*& picture : pictures_) {
            picture = static_cast<std::byte*>(::mmap(
                nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        }
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    Memory(Memory&&) = delete;
    Memory& operator=(Memory&&) = delete;
    ~Memory() {
        for (std::byte* picture : pictures_) {
            ::munmap(picture, bytes_);
        }
    }

    /// Allocates nothing.
    void take(std::size_t picture) {
        std::byte* to = pictures_[picture];
        for (const Range& r : ranges_) {
            std::memcpy(to, reinterpret_cast<const void*>(r.begin), r.end - r.begin);
            to += r.end - r.begin;
        }
    }
    /// Lines that differ between picture `a` and `a` + 1.
    std::vector<std::uintptr_t> changed(std::size_t a) const {
        std::vector<std::uintptr_t> lines;
        std::size_t at = 0;
        for (const Range& r : ranges_) {
            for (std::uintptr_t line = r.begin; line < r.end; line += kLine, at += kLine) {
                if (std::memcmp(pictures_[a] + at, pictures_[a + 1] + at, kLine) != 0) {
                    lines.push_back(line);
                }
            }
        }
        return lines;
    }

private:
    void add_present(const Range& r, int pagemap) {
        std::vector<std::uint64_t> entries((r.end - r.begin) / kPage);
        const auto wanted = static_cast<ssize_t>(entries.size() * sizeof(std::uint64_t));
        ASSERT_EQ(::pread(pagemap,
                          entries.data(),
                          static_cast<std::size_t>(wanted),
                          static_cast<off_t>(r.begin / kPage * sizeof(std::uint64_t))),
                  wanted);
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const std::uintptr_t page = r.begin + i * kPage;
            if (entries[i] >> 63U == 0 ||
                std::ranges::any_of(without_, [&](const Range& w) { return w.holds(page); })) {
                continue;
            }
            if (!ranges_.empty() && ranges_.back().end == page) {
                ranges_.back().end += kPage;
            } else {
                ranges_.push_back({page, page + kPage});
            }
            bytes_ += kPage;
        }
    }

    std::vector<Range> without_;
    std::vector<Range> ranges_;
    std::size_t bytes_ = 0;
    std::array<std::byte*, 3> pictures_{};
};

std::uint16_t send_and_free(std::uint16_t /*port*/,
                            std::uint16_t /*queue*/,
                            rte_mbuf** packets,
                            std::uint16_t count) {
    rte_pktmbuf_free_bulk(packets, count);
    return count;
}

/// A thread that does what it is told, as an lcore of its own: mempools have a cache for each.
class alignas(kLine) Thread {
public:
    Thread() : thread_([this] { run(); }) {}
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;
    Thread(Thread&&) = delete;
    Thread& operator=(Thread&&) = delete;
    ~Thread() {
        order_ = kEnd;
        thread_.join();
    }
    void set(std::function<void()> work) { work_ = std::move(work); }
    /// After the first work().
    Range places() const { return places_; }
    void work() {
        order_ = kWork;
        while (order_ != kIdle) {
            std::this_thread::yield();
        }
    }

private:
    static constexpr int kIdle = 0, kWork = 1, kEnd = 2;
    void run() {
        EXPECT_EQ(rte_thread_register(), 0);
        places_ = own_places();
        for (int order = kIdle; order != kEnd; order = order_) {
            if (order == kWork) {
                work_();
                order_ = kIdle;
            }
            std::this_thread::yield();
        }
        rte_thread_unregister();
    }
    std::atomic<int> order_{kIdle};
    std::function<void()> work_;
    Range places_{};
    std::jthread thread_;  // last: it uses the others
};

/// One worker's side, as Worker::Impl has it.
struct alignas(kLine) Side {
    stats::Block block;
    pipeline::EventQueue events;
    dpdk::MbufRing punted;
    pipeline::Context context;
    pipeline::BurstStorage storage;
    std::array<rte_mbuf*, 32> burst{};
    std::optional<dpdk::RcuReader> reader;  // of the worker's thread
    Side(StageBench& bench, unsigned number)
        : punted(dpdk::MbufRing::create(fmt::format("sharing-{}", number), 64).value()),
          context{.shared = bench.shared(),
                  .stats = block,
                  .pool = bench.pool(),
                  .transmit = pipeline::Transmitter(
                      static_cast<std::uint16_t>(number), block, &send_and_free),
                  .holds = pipeline::HoldTable(number),
                  .icmp_limit = {},
                  .events = events,
                  .punted = punted,
                  .caches = pipeline::Caches(fib::Ipv4DstCache::kDefaultEntries, number + 1),
                  .redirects = {},
                  .now_ns = 1'000'000'000'000} {}
};

class FalseSharing : public StageBench {
protected:
    FalseSharing() : StageBench(4096) {}

    void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
        GTEST_SKIP() << "a sanitizer's own memory is too much to look at";
#endif
        add_route("198.51.100.0/24", {.via = "10.0.1.2", .dev = kP1, .mtu = 576});
        add_route("203.0.113.0/24", {.type = fib::DstType::kUnreachable});
        for (std::size_t i = 0; i < 2; ++i) {
            sides_[i] = std::make_unique<Side>(*this, static_cast<unsigned>(i));
            threads_[i] = std::make_unique<Thread>();
            // Its mempool cache is to hold what it needs.
            threads_[i]->set([this, i] {
                sides_[i]->reader.emplace(rcu_, WorkerId{static_cast<std::uint16_t>(i)});
                std::array<rte_mbuf*, 128> mbufs{};
                ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool(), mbufs.data(), mbufs.size()), 0);
                rte_pktmbuf_free_bulk(mbufs.data(), mbufs.size());
            });
            threads_[i]->work();
        }
    }
    void TearDown() override {
        for (const auto& side : sides_) {
            if (side != nullptr) {
                pipeline::drop_all_held(side->context);
            }
        }
    }

    /// Each worker's way of a burst of these, in its own thread.
    void prepare(const std::vector<Bytes>& frames) {
        for (std::size_t i = 0; i < 2; ++i) {
            threads_[i]->set([this, i, &frames] {
                Side& side = *sides_[i];
                for (std::size_t n = 0; n < frames.size(); ++n) {
                    rte_mbuf* m = rte_pktmbuf_alloc(pool());
                    std::memcpy(rte_pktmbuf_mtod(m, void*), frames[n].data(), frames[n].size());
                    m->data_len = static_cast<std::uint16_t>(frames[n].size());
                    m->pkt_len = m->data_len;
                    side.burst[n] = m;
                }
                side.context.now_ns += 1'000'000'000;  // what is limited by time may happen again
                pipeline::StageTimer timer(side.block.worker(), true);
                timer.count(frames.size());
                pipeline::process_burst(side.context,
                                        side.storage,
                                        netdev(kP0),
                                        {side.burst.data(), frames.size()},
                                        timer);
                side.reader->quiescent();
            });
        }
    }

    struct Found {
        std::array<std::vector<std::uintptr_t>, 2> changed;  // by each
        std::vector<std::uintptr_t> common() const {
            std::vector<std::uintptr_t> both;
            std::ranges::set_intersection(changed[0], changed[1], std::back_inserter(both));
            return both;
        }
    };
    Found observe() {
        for (int warm = 0; warm < 3; ++warm) {
            threads_[0]->work();
            threads_[1]->work();
        }
        Memory memory({own_places(), threads_[0]->places(), threads_[1]->places()});
        rcu_.start();  // what quiescent states are told of
        memory.take(0);
        threads_[0]->work();
        memory.take(1);
        threads_[1]->work();
        memory.take(2);
        return {{memory.changed(0), memory.changed(1)}};
    }

    /// What the control thread publishes.
    std::vector<Range> published() {
        std::vector<Range> all{range_of(shared()),
                               range_of(generations4()),
                               range_of(generations6()),
                               range_of(fib4()),
                               range_of(fib6())};
        for (const NetdevId id : {kLo, kP0, kP1}) {
            all.push_back(range_of(netdev(id)));
        }
        const auto dsts = reinterpret_cast<std::uintptr_t>(&shared().dsts[0]);
        all.push_back({dsts, dsts + shared().dsts.capacity() * sizeof(fib::Dst)});
        return all;
    }

    dpdk::RcuDomain rcu_;
    std::array<std::unique_ptr<Side>, 2> sides_;
    std::array<std::unique_ptr<Thread>, 2> threads_;
};

std::string text_of(const std::vector<std::uintptr_t>& lines) {
    std::string text;
    for (const std::uintptr_t line : lines) {
        text += fmt::format(" {:#x}", line);
    }
    return text;
}

TEST_F(FalseSharing, workers_write_no_line_in_common_and_nothing_published) {
    std::vector<Bytes> frames = frames_of_every_kind();
    frames.push_back(Packet().eth().ipv4({.dst = "203.0.113.9"}).udp().bytes());
    frames.push_back(Packet().eth().ipv4({.src = "127.0.0.1"}).udp().bytes());
    for (const fib::CacheMode mode : {fib::CacheMode::kOff, fib::CacheMode::kOn}) {
        SCOPED_TRACE(mode == fib::CacheMode::kOn ? "cache on" : "cache off");
        shared().cache_mode = mode;
        prepare(frames);
        const Found found = observe();
        for (std::size_t i = 0; i < 2; ++i) {
            // Both did everything, and were seen.
            const stats::NetdevCounters& book = sides_[i]->block.netdev(kP0);
            EXPECT_GE(book.forwarded, 12U);
            EXPECT_GE(book.delivered, 8U);
            EXPECT_GE(book.icmp_errors_sent, 12U);
            EXPECT_GE(book.held, 8U);
            const auto counters = range_of(book);
            EXPECT_TRUE(std::ranges::any_of(
                found.changed[i], [&](std::uintptr_t line) { return counters.holds(line); }));
            for (const Range& range : published()) {
                std::vector<std::uintptr_t> inside;
                std::ranges::copy_if(found.changed[i],
                                     std::back_inserter(inside),
                                     [&](std::uintptr_t line) { return range.holds(line); });
                EXPECT_EQ(text_of(inside), "")
                    << "worker " << i << " wrote into what begins at " << text_of({range.begin});
            }
        }
        EXPECT_EQ(text_of(found.common()), "");
    }
}

TEST_F(FalseSharing, a_line_of_two_writers_is_found) {
    struct alignas(kLine) Line {
        std::array<std::uint64_t, 2> counters{};
    };
    const auto shared_line = std::make_unique<Line>();
    for (std::size_t i = 0; i < 2; ++i) {
        threads_[i]->set([&line = *shared_line, i] { ++line.counters[i]; });
    }
    EXPECT_EQ(text_of(observe().common()), text_of({range_of(*shared_line).begin}));
}

// What Worker makes for itself, where the test above had structures of its own.
TEST_F(FalseSharing, whole_workers_begin_at_lines_of_their_own) {
    static_assert(alignof(stats::Block) % kLine == 0 && sizeof(stats::Block) % kLine == 0);
    dpdk::RcuDomain rcu;
    auto packets = dpdk::PktPool::create("sharing", 64);
    ASSERT_TRUE(packets);
    std::vector<std::unique_ptr<pipeline::Worker>> workers;
    for (std::uint16_t i = 0; i < 2; ++i) {
        auto made = pipeline::Worker::create(
            {.id = WorkerId{i}, .workers = 2, .cache_entries = 64}, shared(), rcu, *packets);
        ASSERT_TRUE(made) << made.error().message;
        workers.push_back(std::move(*made));
        const auto block = range_of(workers.back()->block());
        EXPECT_EQ(block.begin % kLine, 0U);
        EXPECT_EQ(range_of(workers.back()->block().worker()).begin % kLine, 0U);
        for (const dpdk::MbufRing* ring : {&workers.back()->punted(), &workers.back()->inject()}) {
            // Who fills and who empties it write a line each.
            const auto prod = reinterpret_cast<std::uintptr_t>(&ring->raw()->prod);
            const auto cons = reinterpret_cast<std::uintptr_t>(&ring->raw()->cons);
            EXPECT_EQ(prod % kLine, 0U);
            EXPECT_EQ(cons % kLine, 0U);
            EXPECT_NE(prod, cons);
        }
    }
    rcu.drain_blocking();
}

// A worker's quiescent states are stores to its own line (dpdk/rcu.h).
static_assert(sizeof(rte_rcu_qsbr_cnt) % kLine == 0);

// A worker reads what the control thread stores; the words of one dst are in one line, and no two
// dsts share one: a MAC that changes disturbs no other next hop.
static_assert(sizeof(fib::Dst) == kLine && alignof(fib::Dst) == kLine);

}  // namespace

}  // namespace sluice::test
