// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/reclaimer.h"
#include "dpdk/rcu.h"
#include "fib/generation.h"
#include "net/address.h"

namespace sluice::control {

struct Netns;

/// Keeps every change in the order that caches rely on: what is published comes first, then the
/// generations of what it can have changed, once for the whole change (G-03), and only then does
/// the grace period of what was unpublished begin. A worker that finds an index in its cache has
/// thus either read the old generation before the grace period began, or does not believe the
/// cache. Control thread.
class Changes final : public Reclaimer {
public:
    /// Tests narrow the stamps, to see them wrap.
    explicit Changes(dpdk::RcuDomain& rcu, fib::Stamp last_stamp = ~fib::Stamp{0})
        : rcu_(rcu), sequence4_(last_stamp), sequence6_(last_stamp) {}

    /// One change; the end of the outermost bumps and lets go.
    class [[nodiscard]] Scope {
    public:
        explicit Scope(Changes& changes) : changes_(changes) { ++changes_.depth_; }
        ~Scope() {
            if (changes_.depth_ == 1) {
                changes_.finish();
            }
            --changes_.depth_;
        }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
        Scope(Scope&&) = delete;
        Scope& operator=(Scope&&) = delete;

    private:
        Changes& changes_;
    };

    /// Something of the netns changed that every destination may depend on; or only those of one
    /// prefix. Within a Scope.
    void all(Netns& netns);
    void prefix(Netns& netns, const net::IpPrefix& prefix);
    /// At once, for what must be stale before the next thing is published.
    void all_now(Netns& netns);

    /// Calls its argument for every netns: when a sequence of stamps enters its other half, all of
    /// them get stamps of that (see fib::GenerationSequence).
    std::function<void(const std::function<void(Netns&)>&)> every_netns;
    /// `*epoch` is raised at the same time.
    void set_epoch(std::atomic<std::uint32_t>& epoch) noexcept { epoch_ = &epoch; }
    /// Called at the end of a change, before anything is bumped, for each prefix that it touched;
    /// null: all.
    std::function<void(const net::IpPrefix* prefix)> on_change;
    dpdk::RcuDomain& rcu() noexcept { return rcu_; }
    /// How many stamps were drawn, of both families.
    std::uint64_t bumps() const noexcept { return sequence4_.bumps() + sequence6_.bumps(); }

public:  // Reclaimer
    /// Within a Scope the grace period begins at its end.
    void defer(std::move_only_function<void()> fn) override;
    /// For memory of tables, which no cache refers to: begins now.
    Token start() override { return rcu_.start(); }
    bool elapsed(Token token) override { return rcu_.elapsed(token); }

private:
    struct Touched {
        Netns* netns;
        bool all = false;
        std::vector<net::IpPrefix> prefixes;
    };
    Touched& touched(Netns& netns);
    void report();
    void finish();
    void bump(Touched& touched);
    template <class Addr>
    fib::Stamp draw(fib::GenerationSequence& sequence, fib::Generations<Addr> Netns::* generations);

    dpdk::RcuDomain& rcu_;
    std::atomic<std::uint32_t>* epoch_ = nullptr;
    fib::GenerationSequence sequence4_;
    fib::GenerationSequence sequence6_;
    unsigned depth_ = 0;
    std::vector<Touched> touched_;
    std::vector<std::move_only_function<void()>> deferred_;
};

}  // namespace sluice::control
