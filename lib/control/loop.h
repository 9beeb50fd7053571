// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "control/dpdk_dataplane.h"
#include "control/engine.h"
#include "control/router.h"
#include "control/server.h"
#include "dpdk/rcu.h"

namespace sluice::control {

/// The control thread's one loop. It sleeps in one place, a millisecond at most, because workers
/// may not make the system call that would wake it (ARCHITECTURE.md D5).
class Loop {
public:
    /// Takes SIGTERM, SIGINT and SIGHUP, which block_signals() must have blocked.
    static Result<std::unique_ptr<Loop>> create(
        Engine& engine, Router& router, DpdkDataplane& plane, dpdk::RcuDomain& rcu, Server& server);

    /// Until SIGTERM or SIGINT.
    void run();

private:
    Loop(Engine& engine, Router& router, DpdkDataplane& plane, dpdk::RcuDomain& rcu, Server& server)
        : engine_(engine), router_(router), plane_(plane), rcu_(rcu), server_(server) {}

    /// Each returns whether there may be more to do at once.
    bool listen_to_workers(Time now);
    bool take_punted(Time now);
    void wait(int timeout_ms);
    void read_signals();

    Engine& engine_;
    Router& router_;
    DpdkDataplane& plane_;
    dpdk::RcuDomain& rcu_;
    Server& server_;
    Fd epoll_;
    Fd signals_;
    bool stopping_ = false;
    /// Longer than the largest frame that a port takes.
    std::array<std::uint8_t, 10240> frame_{};
};

/// Before any thread is started: they inherit it.
void block_signals();

}  // namespace sluice::control
