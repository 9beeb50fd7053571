// SPDX-License-Identifier: BSD-3-Clause
#include "fib/lpm.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "fib/lpm_intervals.h"
#include "fib/lpm_routes.h"
#include "fib/lpm_trie.h"
#include "fib/lpm_words.h"

namespace sluice::fib {
namespace {

// Group numbers and the root must fit the payload, and word indices the 31 bits of a vector gather.
constexpr std::size_t kMaxGroups = std::size_t{1} << 22U;

/// More routes than this go into the trie. IPv4: what a table without 64 MiB can hold while a
/// lookup stays under 20 cycles and the table under 64 KiB; the trie takes 2 cycles. IPv6: where
/// the trie becomes the faster one. See test/bench/lpm_bench.cc.
template <class Addr>
constexpr std::size_t kMaxIntervalRoutes = 512;
template <>
constexpr std::size_t kMaxIntervalRoutes<net::Ipv6Addr> = 256;
/// Back from the trie with this few, so that one route more or less does not change the form.
template <class Addr>
constexpr std::size_t kMinTrieRoutes = kMaxIntervalRoutes<Addr> / 4;

}  // namespace

/// One of the two, published together with its views so that a reader follows one pointer.
template <class Addr>
struct LpmForm {
    explicit LpmForm(const SortedRoutes<Addr>& routes)
        : intervals(std::in_place, routes), interval_view(intervals->view()) {}
    explicit LpmForm(std::unique_ptr<Trie<Addr>> built)
        : trie(std::move(built)), trie_view(trie->view()) {}

    std::size_t memory_bytes() const noexcept {
        return sizeof(*this) + (trie ? trie->memory_bytes() : intervals->memory_bytes());
    }

    std::unique_ptr<Trie<Addr>> trie;
    std::optional<IntervalForm<Addr>> intervals;
    IntervalView<Addr> interval_view;
    TrieView<Addr> trie_view;
};

template <class Addr>
LpmTable<Addr>::LpmTable(const LpmOptions& options, Reclaimer& reclaimer)
    : options_(options),
      reclaimer_(&reclaimer),
      routes_(std::make_unique<RouteStore<Addr>>()),
      form_(std::make_unique<LpmForm<Addr>>(sorted_)) {
    published_.store(form_.get(), std::memory_order_release);
}

template <class Addr>
LpmTable<Addr>::~LpmTable() = default;

template <class Addr>
Result<std::unique_ptr<LpmTable<Addr>>> LpmTable<Addr>::create(const LpmOptions& options,
                                                               Reclaimer& reclaimer) {
    if (options.max_groups > kMaxGroups) {
        return fail(
            ErrorCode::kInvalid, "max_groups {} is more than {}", options.max_groups, kMaxGroups);
    }
    if (options.lookup == nullptr || !options.lookup->supported()) {
        return fail(ErrorCode::kUnsupported, "this machine cannot run the chosen lookup");
    }
    return std::unique_ptr<LpmTable>(new LpmTable(options, reclaimer));
}

template <class Addr>
void LpmTable<Addr>::publish(std::unique_ptr<LpmForm<Addr>> form) {
    std::unique_ptr<LpmForm<Addr>> old = std::exchange(form_, std::move(form));
    published_.store(form_.get(), std::memory_order_release);
    reclaimer_->defer([old = std::move(old)]() mutable { old.reset(); });
}

template <class Addr>
Result<void> LpmTable<Addr>::set(const Prefix& prefix, std::uint32_t value) {
    if (value == kNoRoute || value > kMaxLpmValue) {
        return fail(ErrorCode::kInvalid, "value {} is not in 1..{}", value, kMaxLpmValue);
    }
    if (prefix.length > Prefix::kBits || Prefix::of(prefix.address, prefix.length) != prefix) {
        return fail(ErrorCode::kInvalid, "prefix with host bits set or too long");
    }
    const std::optional<std::uint32_t> before = routes_->find(prefix);
    if (!before && routes_->size() >= options_.max_routes) {
        return fail(ErrorCode::kLimit,
                    "limit max_routes reached: {} routes, no room for {}",
                    routes_->size(),
                    prefix.to_string());
    }
    if (small()) {
        return set_small(prefix, value);
    }
    if (auto done = form_->trie->set(prefix, value); !done) {
        return done;
    }
    routes_->put(prefix, value);
    return {};
}

template <class Addr>
bool LpmTable<Addr>::small() const noexcept {
    return !form_->trie;
}

template <class Addr>
Result<void> LpmTable<Addr>::set_small(const Prefix& prefix, std::uint32_t value) {
    const auto at =
        std::ranges::lower_bound(sorted_, prefix, {}, &std::pair<Prefix, std::uint32_t>::first);
    if (at != sorted_.end() && at->first == prefix) {
        at->second = value;
    } else if (sorted_.size() < kMaxIntervalRoutes<Addr>) {
        sorted_.insert(at, {prefix, value});
    } else {
        routes_->put(prefix, value);
        auto grown = grow();
        if (!grown) {
            routes_->erase(prefix);
        }
        return grown;
    }
    routes_->put(prefix, value);
    publish(std::make_unique<LpmForm<Addr>>(sorted_));
    return {};
}

/// From intervals to the trie.
template <class Addr>
Result<void> LpmTable<Addr>::grow() {
    auto trie = Trie<Addr>::create(options_.max_routes, options_.max_groups, *reclaimer_);
    if (!trie) {
        return fail(ErrorCode::kInternal, "out of memory for a table of {} routes", size());
    }
    Result<void> done;
    routes_->for_each([&](const Prefix& prefix, std::uint32_t value) {
        if (done) {
            done = trie->set(prefix, value);
        }
    });
    if (done) {
        publish(std::make_unique<LpmForm<Addr>>(std::move(trie)));
        sorted_ = {};
    }
    return done;
}

template <class Addr>
void LpmTable<Addr>::shrink() {
    routes_->for_each(
        [&](const Prefix& prefix, std::uint32_t value) { sorted_.emplace_back(prefix, value); });
    std::ranges::sort(sorted_);
    publish(std::make_unique<LpmForm<Addr>>(sorted_));
}

template <class Addr>
Result<void> LpmTable<Addr>::erase(const Prefix& prefix) {
    if (!get(prefix)) {
        return fail(ErrorCode::kNotFound, "no route to {}", prefix.to_string());
    }
    routes_->erase(prefix);
    if (small()) {
        sorted_.erase(std::ranges::lower_bound(
            sorted_, prefix, {}, &std::pair<Prefix, std::uint32_t>::first));
        publish(std::make_unique<LpmForm<Addr>>(sorted_));
    } else if (routes_->size() < kMinTrieRoutes<Addr>) {
        shrink();
    } else {
        form_->trie->erase(prefix, routes_->covering_leaf(prefix));
    }
    return {};
}

template <class Addr>
std::optional<std::uint32_t> LpmTable<Addr>::get(const Prefix& prefix) const {
    return prefix.length > Prefix::kBits ? std::nullopt : routes_->find(prefix);
}

template <class Addr>
std::size_t LpmTable<Addr>::size() const noexcept {
    return routes_->size();
}

template <class Addr>
std::size_t LpmTable<Addr>::memory_bytes() const noexcept {
    return sizeof(*this) + sizeof(*routes_) + routes_->memory_bytes() +
           sorted_.capacity() * sizeof(sorted_[0]) + form_->memory_bytes();
}

template <class Addr>
void LpmTable<Addr>::for_each(const std::function<void(const Prefix&, std::uint32_t)>& fn) const {
    routes_->for_each(fn);
}

template <class Addr>
void LpmTable<Addr>::lookup(std::span<const Addr> addresses, std::uint32_t* values) const noexcept {
    const LpmForm<Addr>& form = *published_.load(std::memory_order_acquire);
    // A few are found sooner one by one: vectors wait for themselves.
    constexpr std::size_t kFew = 3;
    const LookupImpl& impl = addresses.size() > kFew ? *options_.lookup : lookup_impls().back();
    if constexpr (std::is_same_v<Addr, net::Ipv4Addr>) {
        form.trie ? impl.trie4(form.trie_view, addresses, values)
                  : impl.intervals4(form.interval_view, addresses, values);
    } else {
        form.trie ? impl.trie6(form.trie_view, addresses, values)
                  : impl.intervals6(form.interval_view, addresses, values);
    }
}

template class LpmTable<net::Ipv4Addr>;
template class LpmTable<net::Ipv6Addr>;

}  // namespace sluice::fib
