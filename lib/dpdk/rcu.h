// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>

#include <rte_rcu_qsbr.h>

#include "base/check.h"
#include "base/id.h"
#include "base/reclaimer.h"

namespace sluice::dpdk {

/// Quiescent-state RCU over rte_rcu_qsbr, for up to kMaxWorkers readers. Needs no EAL.
/// A worker costs one store per loop round; the control thread never waits for one.
class RcuDomain final : public Reclaimer {
public:  // control thread
    RcuDomain();
    /// Runs what is pending: every reader must be gone.
    ~RcuDomain() override;

    void defer(std::move_only_function<void()> fn) override;
    Token start() override;
    bool elapsed(Token token) override;

    /// Runs the callbacks whose grace period is over, oldest first; returns how many. Never waits.
    /// A callback may defer() more; that waits for a later poll.
    std::size_t poll();
    std::size_t pending() const noexcept { return deferred_.size(); }
    /// For shutdown: runs all callbacks, waiting for readers that are online.
    void drain_blocking();

private:
    friend class RcuReader;
    struct Deferred {
        Token token;
        std::move_only_function<void()> fn;
    };
    struct Free {
        void operator()(rte_rcu_qsbr* v) const noexcept { std::free(v); }
    };
    std::unique_ptr<rte_rcu_qsbr, Free> qsbr_;
    std::deque<Deferred> deferred_;
};

/// One worker's side: registered for its lifetime and online at first. What was read from a
/// published structure must not be used past the next quiescent() or offline().
class RcuReader {
public:  // the worker's thread
    RcuReader(RcuDomain& domain, WorkerId worker)
        : qsbr_(domain.qsbr_.get()), thread_(worker.value) {
        SLUICE_CHECK(rte_rcu_qsbr_thread_register(qsbr_, thread_) == 0);
        online();
    }
    ~RcuReader() {
        offline();
        rte_rcu_qsbr_thread_unregister(qsbr_, thread_);
    }
    RcuReader(const RcuReader&) = delete;
    RcuReader& operator=(const RcuReader&) = delete;
    RcuReader(RcuReader&&) = delete;
    RcuReader& operator=(RcuReader&&) = delete;

    /// Once per loop round.
    void quiescent() noexcept { rte_rcu_qsbr_quiescent(qsbr_, thread_); }
    /// Before anything that may sleep.
    void offline() noexcept { rte_rcu_qsbr_thread_offline(qsbr_, thread_); }
    /// After it. A full barrier: what is read later is at least as new as what was published
    /// before.
    void online() noexcept { rte_rcu_qsbr_thread_online(qsbr_, thread_); }

private:
    rte_rcu_qsbr* qsbr_;
    unsigned thread_;
};

}  // namespace sluice::dpdk
