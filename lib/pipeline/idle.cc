// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/idle.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "pipeline/messages.h"
#include "pipeline/worker.h"

namespace sluice::pipeline {

namespace {

// About 100 us of empty polling on an idle queue: shorter than a LAN's round trip, so that a
// request and its answer meet an awake worker.
constexpr std::uint32_t kEmptyRoundsBeforeSleep = 1000;

std::uint64_t monotonic_ns() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(t.tv_nsec);
}

timespec to_timespec(std::uint32_t us) noexcept {
    return {.tv_sec = 0, .tv_nsec = static_cast<long>(us) * 1000};
}

}  // namespace

IdleSleeper::IdleSleeper() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    // The default slack of 50 us would more than double the first sleeps.
    ::prctl(PR_SET_TIMERSLACK, 1UL);
}

IdleSleeper::~IdleSleeper() {
    if (epoll_ >= 0) {
        ::close(epoll_);
    }
}

bool IdleSleeper::round(bool worked) noexcept {
    if (worked) {
        empty_rounds_ = 0;
        sleep_us_ = kFirstSleepUs;
        return false;
    }
    if (empty_rounds_ < kEmptyRoundsBeforeSleep) {
        ++empty_rounds_;
        began_ = empty_rounds_ == kEmptyRoundsBeforeSleep;
    }
    return empty_rounds_ == kEmptyRoundsBeforeSleep;
}

bool IdleSleeper::began() noexcept {
    const bool was = began_;
    began_ = false;
    return was;
}

void IdleSleeper::prepare(const RxQueueList* queues) noexcept {
    // Not by address: a new list may lie where a freed one did.
    if (*queues != watched_) {
        watched_ = *queues;
        ::close(epoll_);
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        interrupts_ = epoll_ >= 0 && !watched_.empty();
        for (const RxQueue& queue : watched_) {
            epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
            interrupts_ = interrupts_ && queue.wakeup.fd >= 0 &&
                          ::epoll_ctl(epoll_, EPOLL_CTL_ADD, queue.wakeup.fd, &event) == 0;
        }
    }
    if (interrupts_) {
        // Armed late, a packet may have slipped in: the sleep's own bound limits what that costs.
        for (const RxQueue& queue : watched_) {
            queue.wakeup.arm();
        }
    }
}

std::uint64_t IdleSleeper::sleep() noexcept {
    const std::uint64_t before = monotonic_ns();
    const timespec time = to_timespec(sleep_us_);
    if (interrupts_) {
        epoll_event event{};
        ::epoll_pwait2(epoll_, &event, 1, &time, nullptr);
    } else {
        ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
    }
    sleep_us_ = std::min(sleep_us_ * 2, kIdleSleepMaxUs);
    return monotonic_ns() - before;
}

void IdleSleeper::wake(const RxQueueList& queues) noexcept {
    if (!interrupts_) {
        return;
    }
    for (const RxQueue& queue : watched_) {
        if (std::ranges::find(queues, queue) != queues.end()) {
            queue.wakeup.disarm();
        }
    }
}

}  // namespace sluice::pipeline
