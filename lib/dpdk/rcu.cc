// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/rcu.h"

#include <thread>
#include <utility>

namespace sluice::dpdk {

RcuDomain::RcuDomain() {
    const std::size_t bytes = rte_rcu_qsbr_get_memsize(kMaxWorkers);
    qsbr_.reset(static_cast<rte_rcu_qsbr*>(std::aligned_alloc(alignof(rte_rcu_qsbr), bytes)));
    SLUICE_CHECK(qsbr_ != nullptr);
    SLUICE_CHECK(rte_rcu_qsbr_init(qsbr_.get(), kMaxWorkers) == 0);
}

RcuDomain::~RcuDomain() {
    drain_blocking();
}

void RcuDomain::defer(std::move_only_function<void()> fn) {
    deferred_.push_back({start(), std::move(fn)});
}

Reclaimer::Token RcuDomain::start() {
    return rte_rcu_qsbr_start(qsbr_.get());
}

bool RcuDomain::elapsed(Token token) {
    return rte_rcu_qsbr_check(qsbr_.get(), token, /*wait=*/false) == 1;
}

std::size_t RcuDomain::poll() {
    std::size_t run = 0;
    // The count is taken first: what callbacks defer waits for the next poll.
    for (std::size_t left = deferred_.size(); left > 0; --left) {
        if (!elapsed(deferred_.front().token)) {
            break;
        }
        auto fn = std::move(deferred_.front().fn);
        deferred_.pop_front();
        fn();
        ++run;
    }
    return run;
}

void RcuDomain::drain_blocking() {
    while (!deferred_.empty()) {
        if (poll() == 0) {
            std::this_thread::yield();
        }
    }
}

}  // namespace sluice::dpdk
