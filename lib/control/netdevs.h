// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/reclaimer.h"
#include "base/result.h"
#include "config/model.h"
#include "control/dataplane.h"
#include "control/ingress_classes.h"
#include "fib/lpm.h"
#include "fib/shared.h"
#include "net/address.h"
#include "stats/counters.h"

namespace sluice::control {

class Changes;
struct Netns;
struct Table;

/// A netdev as the control thread knows it.
struct Netdev {
    NetdevId id;
    std::string name;
    fib::NetdevKind kind = fib::NetdevKind::kPort;
    Netns* netns = nullptr;
    config::NetdevSettings settings;
    net::MacAddr mac;                           // in use: configured, the device's or the port's
    std::vector<net::InterfaceAddr> addresses;  // configured, in the order they were added
    std::optional<net::Ipv6Addr> link_local;    // while there is an IPv6 address

    std::string devargs;  // of a port
    std::unique_ptr<PortDevice> device;
    bool promiscuous = false;         // the device, for whatever reason
    dpdk::Link link;                  // as last polled
    std::vector<std::size_t> polled;  // by RX queue: the worker
    std::vector<Netdev*> vlans;       // in whatever netns

    Netdev* parent = nullptr;  // of a vlan
    std::uint16_t vlan_id = 0;

    Netdev* master = nullptr;  // the VRF that it is a member of
    /// Of the head of a routing domain, which a VRF or the loopback of its netns is: the table that
    /// what comes in by its members is looked up in, and the addresses that are the router's own
    /// there.
    Table* table = nullptr;
    std::shared_ptr<const fib::LocalAddresses> local;

    /// MAC changes under way: dsts stay unresolved until no worker reads the old source MAC.
    unsigned rewriting = 0;
    /// By writer: what the id had counted before this netdev got it; empty: nothing.
    std::vector<stats::NetdevCounters> baseline;

    bool stopped = false;  // the device, for a change that it takes in no other way

    bool up() const noexcept {
        return settings.up && !stopped && (parent == nullptr || parent->up());
    }
    bool carrier() const noexcept;
    bool has(net::Family family) const noexcept;
    bool owns(const net::IpAddr& address) const noexcept;
    /// Within a subnet of an own address; link-local IPv6 where there is IPv6.
    bool on_link(const net::IpAddr& address) const noexcept;
    /// The broadcast address of one of its subnets, or 255.255.255.255.
    bool is_broadcast(const net::Ipv4Addr& address) const noexcept;
    /// Why nobody on its link can have the address; empty when somebody can.
    std::string_view never_a_host(const net::IpAddr& address) const noexcept;
    const Netdev& port() const noexcept { return parent == nullptr ? *this : *parent; }

    /// It has a link to others.
    bool is_link() const noexcept {
        return kind == fib::NetdevKind::kPort || kind == fib::NetdevKind::kVlan;
    }
    /// The head of its routing domain.
    Netdev& domain() const noexcept;
    /// Where its connected routes are, and what comes in is looked up.
    Table& routing_table() const noexcept { return *domain().table; }
};

/// All netdevs by id, and their views for the workers. Control thread.
class Netdevs {
public:
    /// Time since any epoch that does not jump.
    using Clock = std::function<std::chrono::nanoseconds()>;

    Netdevs(fib::Shared& shared, Changes& changes, Clock clock);
    Netdevs(const Netdevs&) = delete;
    Netdevs& operator=(const Netdevs&) = delete;
    Netdevs(Netdevs&&) = delete;
    Netdevs& operator=(Netdevs&&) = delete;
    ~Netdevs();

    /// Takes an id that has been free for long, else a new one, else any that is free. kExists,
    /// kLimit. Not published yet.
    Result<Netdev*> create(const std::string& name, fib::NetdevKind kind, Netns& netns);
    /// Unpublishes; the id is free again when no worker can know it any more, no dst leads out of
    /// it and none holds a packet that came in there.
    void destroy(Netdev& netdev);
    /// Takes it to `to` under another id, so that nothing that knows the old one finds it there.
    /// Unpublishes; what was published of it and belongs to the old id is the caller's affair.
    /// There must be room(1), and no netdev of that name.
    void move(Netdev& netdev, Netns& to);
    /// Whether create() and move() have `count` ids.
    Result<void> room(std::size_t count);

    Netdev* find(NetdevId id) const noexcept { return by_id_[id.value].get(); }
    /// In order of id.
    template <class Fn>
    void for_each(Fn&& fn) const {
        for (std::size_t id = 0; id < ids_end_; ++id) {
            if (by_id_[id] != nullptr) {
                fn(*by_id_[id]);
            }
        }
    }
    /// The netdev of a routing domain with that own address; link-local ones belong to a link and
    /// do not count.
    static Netdev* owner_of(const Netdev& domain, const net::IpAddr& address) noexcept;
    /// The netdev of the domain with a subnet that holds the address, the longest prefix first.
    static Netdev* on_link(const Netdev& domain, const net::IpAddr& address) noexcept;
    /// Publishes a new view of it.
    void publish(const Netdev& netdev);
    /// Rebuilds the own addresses of a domain and publishes all its netdevs.
    void publish_domain(Netdev& domain);
    /// Publishes all of a netns.
    void publish_all(const Netns& netns);

    /// A netdev that was destroyed or moved, by its id then.
    struct Gone {
        NetdevId id;
        std::string name;
        std::chrono::nanoseconds since;
        bool unknown = false;  // no worker can know the id any more
    };
    /// Those that something still refers to; the others' ids are free.
    std::vector<Gone> draining() const;
    std::size_t dsts(NetdevId id) const noexcept { return shared_.dsts.leading_out_of(id); }
    std::chrono::nanoseconds now() const { return clock_(); }
    /// By a netdev that is gone.
    bool used_before(NetdevId id) const noexcept { return used_before_[id.value]; }

    bool forward_class_e = true;  // goes into every view
    /// Packets that workers hold of those that came in there.
    std::function<std::uint64_t(NetdevId)> held = [](NetdevId) { return 0; };

private:
    std::unique_ptr<fib::NetdevView> make_view(const Netdev& netdev);
    void swap_view(NetdevId id, const fib::NetdevView* view);
    void retire(Netdev& netdev);
    bool is_free(const Gone& gone) const;
    std::optional<NetdevId> take_id();

    fib::Shared& shared_;
    Changes& changes_;
    Clock clock_;
    IngressClasses classes_;
    std::array<std::unique_ptr<Netdev>, kMaxNetdevs> by_id_{};
    std::deque<Gone> gone_;  // in order of time
    std::bitset<kMaxNetdevs> used_before_;
    std::size_t ids_end_ = 0;  // above the highest id ever used
};

/// The link-local address that a netdev has: none without IPv6, a configured one, else from the
/// MAC.
std::optional<net::Ipv6Addr> link_local_of(const Netdev& netdev);

}  // namespace sluice::control
