// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "pipeline/messages.h"

namespace sluice::pipeline {

/// What a worker does when nothing arrives: it polls on for a while, then sleeps, longer each time
/// up to kIdleSleepMaxUs, or on the devices' interrupts where all its queues have them. The caller
/// takes itself off RCU around sleep().
class IdleSleeper {
public:
    IdleSleeper();
    ~IdleSleeper();
    IdleSleeper(const IdleSleeper&) = delete;
    IdleSleeper& operator=(const IdleSleeper&) = delete;
    IdleSleeper(IdleSleeper&&) = delete;
    IdleSleeper& operator=(IdleSleeper&&) = delete;

    /// A round without (`false`) or with work. True: it is time to sleep.
    bool round(bool worked) noexcept;
    /// True once, when the idle time begins: what was put off for a quiet moment can be done.
    bool began() noexcept;

    /// Before the caller goes offline: takes over what to watch when `queues` is another list than
    /// the last time.
    void prepare(const RxQueueList* queues) noexcept;
    /// Sleeps without touching a device; returns nanoseconds slept. The caller is offline.
    std::uint64_t sleep() noexcept;
    /// Back online: disarms what is still in `queues`; a device that has gone meanwhile is not
    /// touched.
    void wake(const RxQueueList& queues) noexcept;

private:
    static constexpr std::uint32_t kFirstSleepUs = 20;
    RxQueueList watched_;  // a copy: the list itself may go while we sleep
    int epoll_ = -1;
    bool interrupts_ = false;  // every queue has one
    bool began_ = false;
    std::uint32_t empty_rounds_ = 0;
    std::uint32_t sleep_us_ = kFirstSleepUs;
};

}  // namespace sluice::pipeline
