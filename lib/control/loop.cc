// SPDX-License-Identifier: BSD-3-Clause
#include "control/loop.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <span>

#include <pthread.h>
#include <rte_mbuf.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "control/notify.h"
#include "dpdk/mbuf.h"

namespace sluice::control {
namespace {

// Bounds of one round, so that neither a flood of events nor of punted packets keeps a client
// waiting: some 100 us each.
constexpr std::size_t kEventsPerRound = 256;
constexpr std::size_t kPuntedPerRound = 64;
constexpr auto kLinkPollInterval = std::chrono::milliseconds(100);
constexpr auto kTickInterval = std::chrono::milliseconds(250);

sigset_t our_signals() {
    sigset_t set{};
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

}  // namespace

void block_signals() {
    const sigset_t set = our_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Result<std::unique_ptr<Loop>> Loop::create(
    Engine& engine, Router& router, DpdkDataplane& plane, dpdk::RcuDomain& rcu, Server& server) {
    std::unique_ptr<Loop> loop(new Loop(engine, router, plane, rcu, server));
    const sigset_t set = our_signals();
    loop->signals_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
    loop->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    for (const int fd : {loop->signals_.get(), server.epoll_fd()}) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = fd;
        if (::epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
            return fail(ErrorCode::kInternal, "event loop: {}", std::strerror(errno));
        }
    }
    return loop;
}

void Loop::run() {
    Time next_link_poll{};
    Time next_tick{};
    bool busy = true;
    while (!stopping_) {
        wait(busy ? 0 : 1);
        const Time now = steady_now();
        busy = rcu_.poll() != 0;
        // Answers before questions: a punted answer often settles what a worker asks.
        busy |= take_punted(now);
        busy |= listen_to_workers(now);
        busy |= engine_.neighbors().table().tick(now) != 0;
        busy |= !engine_.neighbors().flush_backlog();
        busy |= engine_.work();
        if (now >= next_tick) {
            engine_.tick();
            next_tick = now + kTickInterval;
        }
        if (now >= next_link_poll) {
            engine_.poll_links();
            next_link_poll = now + kLinkPollInterval;
        }
    }
}

void Loop::wait(int timeout_ms) {
    std::array<epoll_event, 2> events{};
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
    for (int i = 0; i < count; ++i) {
        if (events[static_cast<std::size_t>(i)].data.fd == signals_.get()) {
            read_signals();
        } else {
            server_.run_once();
        }
    }
}

void Loop::read_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGHUP) {
            spdlog::info("{}: stopping", ::strsignal(static_cast<int>(info.ssi_signo)));
            stopping_ = true;
            continue;
        }
        notify_reloading();
        if (const auto ok = router_.reload({}); !ok) {
            spdlog::error("not reloaded, everything stays as it was:\n{}", ok.error().message);
        }
        notify("READY=1");
    }
}

bool Loop::listen_to_workers(Time now) {
    bool more = false;
    pipeline::WorkerEvent event;
    for (std::size_t worker = 0; worker < plane_.workers(); ++worker) {
        std::size_t taken = 0;
        while (taken < kEventsPerRound && plane_.worker(worker).next_event(event)) {
            engine_.handle(worker, event, now);
            ++taken;
        }
        more |= taken != 0;
    }
    return more;
}

bool Loop::take_punted(Time now) {
    bool more = false;
    std::array<rte_mbuf*, kPuntedPerRound> packets{};
    for (std::size_t worker = 0; worker < plane_.workers(); ++worker) {
        const std::size_t count = plane_.worker(worker).punted().dequeue(packets);
        for (rte_mbuf* m : std::span(packets).first(count)) {
            const dpdk::PacketMeta meta = dpdk::meta(*m);
            std::span<const std::uint8_t> frame;
            if (m->pkt_len <= frame_.size()) {
                frame = dpdk::copy_to_linear(*m, 0, frame_);
            }
            engine_.punted(meta.ingress, frame, meta.l3_offset, now);
            rte_pktmbuf_free(m);
        }
        more |= count != 0;
    }
    return more;
}

}  // namespace sluice::control
