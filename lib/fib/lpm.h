// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/reclaimer.h"
#include "base/result.h"
#include "fib/lpm_lookup.h"
#include "net/address.h"

namespace sluice::fib {

/// What lookup() says where no prefix matches; no prefix can have it as its value.
inline constexpr std::uint32_t kNoRoute = 0;
/// Values are dst indices: 24 bits, so that a word of the table has room for a tag.
inline constexpr std::uint32_t kMaxLpmValue = (1U << 24U) - 1;

struct LpmOptions {
    /// set() of one prefix more fails with kLimit.
    std::size_t max_routes = 1'000'000;
    /// 1-KiB groups of the big form, which prefixes past its root need. Address space for them is
    /// reserved, memory is used only as they are. At most 4 Mi.
    std::size_t max_groups = std::size_t{1} << 20U;
    /// How worker threads look up; tests and benchmarks force others.
    const LookupImpl* lookup = &best_lookup();
};

template <class Addr>
class RouteStore;
template <class Addr>
struct LpmForm;

/// Longest-prefix match, prefix to 24-bit value. Two forms: a sorted array of address intervals
/// while there are few routes (a dozen cost about a kilobyte), a multibit trie beyond that (IPv4:
/// 64 MiB and one or two loads a lookup). The change of form is built aside and published by one
/// store.
///
/// One control thread writes, any number of workers look up meanwhile. A lookup that runs during
/// one set() or erase() yields for each address the answer before it or the answer after it. What
/// readers may still see is freed or reused only when the Reclaimer says so; the table itself is to
/// be unpublished by its owner and destroyed through the same Reclaimer.
template <class Addr>
class LpmTable {
public:
    using Prefix = net::Prefix<Addr>;

    // Control thread.

    /// kInvalid for options out of range. `reclaimer` must outlive the table.
    static Result<std::unique_ptr<LpmTable>> create(const LpmOptions& options,
                                                    Reclaimer& reclaimer);
    ~LpmTable();
    LpmTable(const LpmTable&) = delete;
    LpmTable& operator=(const LpmTable&) = delete;
    LpmTable(LpmTable&&) = delete;
    LpmTable& operator=(LpmTable&&) = delete;

    /// Adds the prefix or replaces its value, which must be in 1..kMaxLpmValue. Length 0 is the
    /// default route. kLimit, with the limit's name, when max_routes or max_groups is reached;
    /// kBusy when everything freed still waits for workers; kInternal when the system is out of
    /// memory. The table is then as it was.
    Result<void> set(const Prefix& prefix, std::uint32_t value);
    /// Addresses fall back to the next shorter prefix. kNotFound if it is not there.
    Result<void> erase(const Prefix& prefix);
    /// The value set for exactly this prefix.
    std::optional<std::uint32_t> get(const Prefix& prefix) const;
    std::size_t size() const noexcept;
    /// Everything this table keeps allocated, the control side included; of the big form the part
    /// of the reserved address space that has been used.
    std::size_t memory_bytes() const noexcept;
    /// In no particular order. `fn` must not change the table.
    void for_each(const std::function<void(const Prefix&, std::uint32_t)>& fn) const;

    // Worker threads, between two quiescent states.

    /// values[i] becomes the value of the longest prefix that holds addresses[i], or kNoRoute.
    void lookup(std::span<const Addr> addresses, std::uint32_t* values) const noexcept;
    std::uint32_t lookup_one(const Addr& address) const noexcept {
        std::uint32_t value = kNoRoute;
        lookup({&address, 1}, &value);
        return value;
    }

private:
    LpmTable(const LpmOptions& options, Reclaimer& reclaimer);
    bool small() const noexcept;  // the form is intervals
    Result<void> set_small(const Prefix& prefix, std::uint32_t value);
    Result<void> grow();
    void shrink();
    void publish(std::unique_ptr<LpmForm<Addr>> form);

    LpmOptions options_;
    Reclaimer* reclaimer_;
    std::unique_ptr<RouteStore<Addr>> routes_;
    std::vector<std::pair<Prefix, std::uint32_t>> sorted_;  // the same, while the form is intervals
    std::unique_ptr<LpmForm<Addr>> form_;                   // what published_ points to
    std::atomic<const LpmForm<Addr>*> published_{nullptr};
};

using Ipv4Lpm = LpmTable<net::Ipv4Addr>;
using Ipv6Lpm = LpmTable<net::Ipv6Addr>;

}  // namespace sluice::fib
