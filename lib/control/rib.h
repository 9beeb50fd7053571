// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/intrusive/set.hpp>

#include "base/reclaimer.h"
#include "base/result.h"
#include "control/controller.h"
#include "control/next_hops.h"
#include "fib/lpm.h"
#include "net/address.h"

namespace sluice::control {

/// One route of one owner. A full table has a million: 64 bytes (IPv4) or 80.
template <class Addr>
struct Route : RouteHook, boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>> {
    /// Ordered by prefix, then by preference. The members stand so that they leave no gaps.
    struct Key {
        net::Prefix<Addr> prefix;
        RouteOwner owner = RouteOwner::kCli;
        std::uint16_t tie = 0;  // netdev of a connected route: several may have one subnet
        std::uint32_t metric = 0;
        friend bool operator==(const Key&, const Key&) = default;
        friend bool operator<(const Key& a, const Key& b) noexcept {
            // An IPv4 address in one comparison rather than by memcmp: this is what a million
            // insertions spend most of their time on.
            if constexpr (std::is_same_v<Addr, net::Ipv4Addr>) {
                return std::tuple(
                           a.prefix.address.host(), a.prefix.length, a.metric, a.owner, a.tie) <
                       std::tuple(
                           b.prefix.address.host(), b.prefix.length, b.metric, b.owner, b.tie);
            } else {
                return std::tie(a.prefix, a.metric, a.owner, a.tie) <
                       std::tie(b.prefix, b.metric, b.owner, b.tie);
            }
        }
    };
    Key key;
    bool active = false;        // what the lookup table holds for its prefix
    std::uint8_t protocol = 0;  // see RouteRequest
    std::uint16_t table = 0;    // Rib::index()
};

/// All routes of one table and family, and the lookup table that holds the best usable one of each
/// prefix. Control thread.
template <class Addr>
class Rib {
public:
    using Prefix = net::Prefix<Addr>;
    using Key = typename Route<Addr>::Key;

    /// `index`: by which its owner finds it among others, from a route.
    explicit Rib(std::unique_ptr<fib::LpmTable<Addr>> lpm, std::uint16_t index = 0)
        : lpm_(std::move(lpm)), index_(index) {}
    Rib(const Rib&) = delete;
    Rib& operator=(const Rib&) = delete;
    Rib(Rib&&) = delete;
    Rib& operator=(Rib&&) = delete;
    ~Rib();

    /// `key` must not be there. On error (a limit of the lookup table) nothing is changed.
    Result<void> add(const Key& key, RouteTarget& hop, std::uint8_t protocol = 0);
    /// Another next hop for a route; lookups find one or the other.
    Result<void> replace(Route<Addr>& route, RouteTarget& hop);
    /// Also frees `route`. Returns the hop that it was on, which may be unused now.
    RouteTarget* remove(Route<Addr>& route);

    /// Makes the lookup table right for `prefix` after the usability or dst of a hop changed.
    Result<void> update(const Prefix& prefix);

    Route<Addr>* find(const Key& key);
    /// First route of `prefix`, null if none; the others follow it in order.
    Route<Addr>* first(const Prefix& prefix);
    Route<Addr>* next(Route<Addr>& route);
    /// The first that does not come before `key`; null: none.
    Route<Addr>* from(const Key& key);
    /// The next of all, of another prefix too; null: none.
    Route<Addr>* after(Route<Addr>& route);
    /// The first of all; null: none.
    Route<Addr>* front() noexcept { return routes_.empty() ? nullptr : &*routes_.begin(); }
    /// The active route of the longest prefix that holds `address`.
    const Route<Addr>* match(const Addr& address) const { return match(address, 0); }
    /// The same among prefixes of at least `shortest`.
    const Route<Addr>* match(const Addr& address, unsigned shortest) const;
    /// In order of prefix, then preference.
    template <class Fn>
    void for_each(Fn&& fn) const {
        for (const Route<Addr>& route : routes_) {
            fn(route);
        }
    }
    /// The routes of the next `limit` prefixes behind `after`; the last prefix, none at the end.
    template <class Fn>
    std::optional<Prefix> for_each_after(const std::optional<Prefix>& after,
                                         std::size_t limit,
                                         Fn&& fn) const {
        constexpr auto kHighest = std::numeric_limits<std::uint32_t>::max();
        auto it = after ? routes_.upper_bound(Key{*after, RouteOwner::kFpm, 0xffff, kHighest})
                        : routes_.begin();
        std::optional<Prefix> last;
        std::size_t prefixes = 0;
        for (; it != routes_.end(); ++it) {
            if (it->key.prefix != last) {
                if (prefixes++ == limit) {
                    break;
                }
                last = it->key.prefix;
            }
            fn(*it);
        }
        return last;
    }
    std::size_t size() const noexcept { return routes_.size(); }
    /// Of one owner.
    std::size_t count(RouteOwner owner) const noexcept {
        return counts_[std::to_underlying(owner)];
    }
    const fib::LpmTable<Addr>& lpm() const noexcept { return *lpm_; }

    /// The same table without prefixes of at most `length`, for a rule that suppresses these. Each
    /// call counts as one user; the first makes it, at the cost of a second table.
    Result<const fib::LpmTable<Addr>*> suppressed(std::uint8_t length, Reclaimer& reclaimer);
    /// One user less. With the last it is taken out of step, and is the caller's to destroy once no
    /// worker knows it.
    std::unique_ptr<fib::LpmTable<Addr>> drop_suppressed(std::uint8_t length);
    std::uint16_t index() const noexcept { return index_; }

private:
    struct ByKey {
        using type = Key;
        const Key& operator()(const Route<Addr>& route) const noexcept { return route.key; }
    };
    using Set = boost::intrusive::set<Route<Addr>,
                                      boost::intrusive::key_of_value<ByKey>,
                                      boost::intrusive::constant_time_size<true>>;

    struct Suppressed {
        std::uint8_t length;
        std::size_t users;
        std::unique_ptr<fib::LpmTable<Addr>> lpm;
    };

    bool is_only(Set::const_iterator it) const;
    /// The only one of its prefix.
    Result<void> activate(Route<Addr>& route);
    /// In every table that is to have the prefix, or none.
    Result<void> set(const Prefix& prefix, std::uint32_t value);
    void erase(const Prefix& prefix);

    Set routes_;
    std::array<std::size_t, 4> counts_{};  // by owner
    std::unique_ptr<fib::LpmTable<Addr>> lpm_;
    std::vector<Suppressed> suppressed_;
    std::uint16_t index_;
};

extern template class Rib<net::Ipv4Addr>;
extern template class Rib<net::Ipv6Addr>;

}  // namespace sluice::control
