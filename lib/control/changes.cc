// SPDX-License-Identifier: BSD-3-Clause
#include "control/changes.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "control/netns.h"

namespace sluice::control {
namespace {

// More prefixes than this in one change are as good as all.
constexpr std::size_t kMaxPrefixes = 32;

}  // namespace

Changes::Touched& Changes::touched(Netns& netns) {
    SLUICE_CHECK(depth_ > 0);
    const auto it = std::ranges::find(touched_, &netns, &Touched::netns);
    return it != touched_.end() ? *it : touched_.emplace_back(Touched{&netns, false, {}});
}

void Changes::all(Netns& netns) {
    touched(netns).all = true;
}

void Changes::prefix(Netns& netns, const net::IpPrefix& prefix) {
    Touched& entry = touched(netns);
    if (entry.all) {
        return;
    }
    if (entry.prefixes.size() == kMaxPrefixes) {
        entry.all = true;
        return;
    }
    entry.prefixes.push_back(prefix);
}

void Changes::all_now(Netns& netns) {
    Touched entry{&netns, true, {}};
    bump(entry);
}

template <class Addr>
fib::Stamp Changes::draw(fib::GenerationSequence& sequence,
                         fib::Generations<Addr> Netns::* generations) {
    const std::uint64_t wraps = sequence.wraps();
    const fib::Stamp stamp = sequence.next();
    if (sequence.wraps() != wraps) {
        // Stamps that come next were drawn before: whoever carries one must have another first.
        if (epoch_ != nullptr) {
            epoch_->fetch_add(1, std::memory_order_release);
        }
        if (every_netns) {
            every_netns([&](Netns& netns) { (netns.*generations).bump_all(sequence.next()); });
        }
    }
    return stamp;
}

void Changes::bump(Touched& touched) {
    Netns& netns = *touched.netns;
    if (touched.all) {
        netns.generations4.bump_all(draw(sequence4_, &Netns::generations4));
        netns.generations6.bump_all(draw(sequence6_, &Netns::generations6));
        return;
    }
    const auto of = [&](net::Family family) {
        return std::ranges::any_of(touched.prefixes,
                                   [&](const auto& prefix) { return prefix.family() == family; });
    };
    const fib::Stamp stamp4 =
        of(net::Family::kIpv4) ? draw(sequence4_, &Netns::generations4) : fib::Stamp{};
    const fib::Stamp stamp6 =
        of(net::Family::kIpv6) ? draw(sequence6_, &Netns::generations6) : fib::Stamp{};
    for (const net::IpPrefix& prefix : touched.prefixes) {
        if (prefix.is_v4()) {
            netns.generations4.bump(prefix.v4(), stamp4);
        } else {
            netns.generations6.bump(prefix.v6(), stamp6);
        }
    }
}

void Changes::report() {
    if (!on_change) {
        return;
    }
    if (std::ranges::any_of(touched_, &Touched::all)) {
        on_change(nullptr);
        return;
    }
    // What is called may touch more, behind these. By value: the vectors may move.
    for (std::size_t i = 0, end = touched_.size(); i < end; ++i) {
        for (std::size_t j = 0, last = touched_[i].prefixes.size(); j < last; ++j) {
            const net::IpPrefix prefix = touched_[i].prefixes[j];
            on_change(&prefix);
        }
    }
}

void Changes::finish() {
    report();
    for (Touched& entry : touched_) {
        bump(entry);
    }
    touched_.clear();
    for (auto& fn : deferred_) {
        rcu_.defer(std::move(fn));
    }
    deferred_.clear();
}

void Changes::defer(std::move_only_function<void()> fn) {
    if (depth_ > 0) {
        deferred_.push_back(std::move(fn));
    } else {
        rcu_.defer(std::move(fn));
    }
}

}  // namespace sluice::control
