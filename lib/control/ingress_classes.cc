// SPDX-License-Identifier: BSD-3-Clause
#include "control/ingress_classes.h"

#include "base/check.h"
#include "fib/dst_cache.h"

namespace sluice::control {

IngressClasses::Taken IngressClasses::take(const fib::NetdevView& view) {
    const Key key{.fib4 = view.fib4,
                  .fib6 = view.fib6,
                  .policy4 = view.policy4,
                  .policy6 = view.policy6,
                  .netns = view.netns,
                  .forwarding = view.forwarding,
                  .route_localnet = view.route_localnet,
                  .bc_forwarding = view.bc_forwarding};
    const auto [it, fresh] = classes_.try_emplace(key);
    Class& found = it->second;
    ++found.views;
    if (!fresh) {
        return {found.number, false};
    }
    // New numbers first: no cache has ever seen them.
    if (by_number_.size() <= fib::CacheTail::kMaxIngressClass) {
        found.number = static_cast<std::uint16_t>(by_number_.size());
        by_number_.push_back(it);
        return {found.number, false};
    }
    // There are four times as many numbers as netdevs, each with one view: some are free, or were
    // given up since the last grace period.
    std::deque<std::uint16_t>& from = free_.empty() ? waiting_ : free_;
    SLUICE_CHECK(!from.empty());
    found.number = from.front();
    from.pop_front();
    by_number_[found.number] = it;
    return {found.number, true};
}

void IngressClasses::drop(std::uint16_t number) {
    const auto it = by_number_[number];
    if (--it->second.views > 0) {
        return;
    }
    classes_.erase(it);
    // Until then a worker with the old view may write cache entries of the old meaning.
    waiting_.push_back(number);
    reclaimer_.defer([this] {
        if (!waiting_.empty()) {
            free_.push_back(waiting_.front());
            waiting_.pop_front();
        }
    });
}

}  // namespace sluice::control
