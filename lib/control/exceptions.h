// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>

#include "base/id.h"
#include "control/neighbor_table.h"
#include "control/uncached.h"
#include "fib/dst.h"
#include "fib/shared.h"
#include "net/address.h"

namespace sluice::control {

/// What exceptions need of the rest of the control thread.
class ExceptionActions {
public:
    virtual ~ExceptionActions() = default;
    /// The dst that the tables of the routing domain lead packets for `destination` to now, a
    /// group's any member; kNoRoute: nowhere.
    virtual fib::DstIndex lookup(NetdevId domain, const net::IpAddr& destination) = 0;
    /// As of next hops: the dst gets the neighbor's MAC, now and when it changes.
    virtual void attach(const NeighborKey& key, fib::DstIndex dst) = 0;
    virtual void detach(const NeighborKey& key, fib::DstIndex dst) = 0;
    /// What a lookup of `destination` yields has changed and is published: bump its generation.
    virtual void changed(NetdevId domain, const net::IpAddr& destination) = 0;
    /// The dst is neither published nor listed any more; after changed().
    virtual void release(fib::DstIndex dst, net::Family family) = 0;
};

/// A path MTU, another gateway or both, learned for one destination.
struct Exception {
    NetdevId domain;  // VRF master or `lo` of the netns
    net::IpAddr destination;
    NetdevId out{};
    std::optional<net::IpAddr> gateway{};  // as a redirect said
    std::uint16_t mtu = 0;                 // as it was learned; 0: it was not
    bool locked = false;         // less was reported than we believe: the path may need fragments
    std::uint32_t expiry_s = 0;  // worker clock
};

/// Path MTUs and redirects that were learned. Each is a dst of its own that takes the place of what
/// the tables say for one destination, and ends when that changes, when it expires or on request.
/// Times are seconds of the workers' clock. Control thread.
class Exceptions {
public:
    static constexpr std::uint32_t kLifetime_s = 600;  // RFC 1191 6.3, RFC 8201 5.3
    static constexpr std::size_t kMostExceptions = 16384;
    /// What is believed at least: an IPv4 report of less is taken as this and locked, one of IPv6
    /// is ignored (RFC 8201 4).
    static constexpr std::uint16_t kMinMtu4 = 552;
    static constexpr std::uint16_t kMinMtu6 = 1280;

    struct Limits {
        std::uint32_t lifetime_s = kLifetime_s;
        std::size_t most = kMostExceptions;  // of one more the oldest goes
    };

    Exceptions(fib::Shared& shared, UncachedLists& uncached, ExceptionActions& actions, Limits);
    Exceptions(const Exceptions&) = delete;
    Exceptions& operator=(const Exceptions&) = delete;
    Exceptions(Exceptions&&) = delete;
    Exceptions& operator=(Exceptions&&) = delete;
    ~Exceptions() = default;

    /// `mtu` was reported for what `worker` sent; 0: too big, but for what was not said. A lower
    /// one replaces, a higher is ignored until the exception expires. True: something changed.
    bool set_mtu(NetdevId domain,
                 const net::IpAddr& destination,
                 std::uint16_t mtu,
                 std::size_t worker,
                 std::uint32_t now_s);
    /// A redirect from the link of `ingress`, whose neighbor `gateway` must be; of it only
    /// destinations change that leave there anyway (RFC 1122 3.2.2.2).
    bool set_gateway(NetdevId domain,
                     const net::IpAddr& destination,
                     NetdevId ingress,
                     const net::IpAddr& gateway,
                     std::size_t worker,
                     std::uint32_t now_s);

    /// Removes what has expired; cheap when nothing has. How many there were.
    std::size_t expire(std::uint32_t now_s);
    /// After any change of tables, rules or next hops: removes what started from a dst that lookups
    /// do not lead to any more. Of the destinations in `prefix`, in every domain; or of all.
    std::size_t recheck(const net::IpPrefix& prefix);
    std::size_t recheck();
    std::size_t flush();
    /// Of the domain, among its next `limit` from `from` on: adds to `removed`, and says where to
    /// go on; nothing at the end.
    std::optional<net::IpAddr> flush_domain(NetdevId domain,
                                            const net::IpAddr& from,
                                            std::size_t limit,
                                            std::size_t& removed);
    /// Of those that leave by `out`: before it goes down, away or to another domain. At most
    /// `limit`; how many.
    std::size_t flush_netdev(NetdevId out, std::size_t limit = SIZE_MAX);
    /// The MTU of a netdev changed, and is stored in next hops' dsts already. A learned MTU above
    /// the new one becomes it, one that was the old one follows.
    void set_link_mtu(NetdevId out, std::uint16_t old_mtu, std::uint16_t new_mtu);
    /// Every published dst that leaves by `out`, to store another source MAC in.
    template <class Fn>
    void for_each_dst_on(NetdevId out, Fn&& fn) {
        for (auto [it, end] = by_out_.equal_range(out); it != end; ++it) {
            fn(shared_.dsts.writable(it->second->second.dst));
        }
    }

    /// `fn(const Exception&)`, by domain and address.
    template <class Fn>
    void for_each(Fn&& fn) const {
        for (const auto& [key, entry] : entries_) {
            fn(entry.exception);
        }
    }
    std::size_t size() const noexcept { return entries_.size(); }

private:
    struct Key {
        NetdevId domain;
        net::IpAddr destination;
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    struct Entry;
    using Entries = std::map<Key, Entry>;
    using ByOut = std::multimap<NetdevId, Entries::value_type*>;
    struct Entry {
        Exception exception;
        std::size_t worker = 0;
        fib::DstIndex base = fib::kNoRoute;  // what it takes the place of
        fib::DstIndex dst = fib::kNoRoute;
        NeighborKey neighbor{};
        std::list<Entries::iterator>::iterator age{};
        ByOut::iterator by_out{};
    };

    /// What there is for the destination, unless it has expired; else what the tables say. False:
    /// no packet leaves for it.
    bool find(const Key& key, std::uint32_t now_s, Exception& wanted, fib::DstIndex& now);
    /// Publishes a dst for what is wanted in place of what there was.
    bool put(const Key& key, const Exception& wanted, std::size_t worker, std::uint32_t now_s);
    void fill(fib::DstIndex dst, fib::DstIndex base, const Exception& wanted);
    void drop_dst(const Entry& entry);
    void remove(Entries::iterator it);
    template <class Wanted>
    std::size_t remove_if(Entries::iterator from, Entries::iterator to, Wanted&& wanted);
    bool led_elsewhere(const Key& key, const Entry& entry);

    fib::Shared& shared_;
    UncachedLists& uncached_;
    ExceptionActions& actions_;
    Limits limits_;
    Entries entries_;
    std::list<Entries::iterator> ages_;  // those that expire next first
    ByOut by_out_;
};

}  // namespace sluice::control
