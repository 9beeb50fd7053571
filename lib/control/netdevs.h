// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
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
#include "fib/lpm.h"
#include "fib/shared.h"
#include "net/address.h"
#include "stats/counters.h"

namespace sluice::control {

/// A routing instance: what its netdevs share.
struct Netns {
    NetnsId id;
    std::string name;
    NetdevId loopback;
    const fib::Ipv4Lpm* fib4 = nullptr;  // main table
    const fib::Ipv6Lpm* fib6 = nullptr;
    std::shared_ptr<const fib::LocalAddresses> local;
};

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
    dpdk::Link link;                  // as last polled
    std::vector<std::size_t> polled;  // by RX queue: the worker
    std::vector<Netdev*> vlans;

    Netdev* parent = nullptr;  // of a vlan
    std::uint16_t vlan_id = 0;

    /// MAC changes under way: dsts stay unresolved until no worker reads the old source MAC.
    unsigned rewriting = 0;
    /// By writer: what the id had counted before this netdev got it.
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
};

/// All netdevs by name and id, and their views for the workers. Control thread.
class Netdevs {
public:
    /// Time since any epoch that does not jump.
    using Clock = std::function<std::chrono::nanoseconds()>;

    Netdevs(fib::Shared& shared, Reclaimer& reclaimer, Clock clock);
    Netdevs(const Netdevs&) = delete;
    Netdevs& operator=(const Netdevs&) = delete;
    Netdevs(Netdevs&&) = delete;
    Netdevs& operator=(Netdevs&&) = delete;
    ~Netdevs();

    /// Takes the id that has been free for longest, else a new one. kExists, kLimit. Not published
    /// yet.
    Result<Netdev*> create(const std::string& name, fib::NetdevKind kind, Netns& netns);
    /// Unpublishes; the id is free again when no worker can know it any more and none still holds a
    /// packet that came in there.
    void destroy(Netdev& netdev);

    Netdev* find(std::string_view name) const noexcept;
    Netdev* find(NetdevId id) const noexcept { return by_id_[id.value]; }
    /// kNotFound names it.
    Result<Netdev*> get(std::string_view name) const;
    /// In order of id.
    template <class Fn>
    void for_each(Fn&& fn) const {
        for (std::size_t id = 0; id < ids_end_; ++id) {
            if (by_id_[id] != nullptr) {
                fn(*by_id_[id]);
            }
        }
    }
    /// The netdev with that own address; link-local ones belong to a link and do not count.
    Netdev* owner_of(const net::IpAddr& address) const noexcept;
    /// The netdev with a subnet that holds the address, the longest prefix first.
    Netdev* on_link(const net::IpAddr& address) const noexcept;

    /// Publishes a new view of it.
    void publish(const Netdev& netdev);
    /// Rebuilds the own addresses of a netns and publishes all its netdevs.
    void publish_all(Netns& netns);

    bool forward_class_e = true;  // goes into every view

private:
    std::unique_ptr<fib::NetdevView> make_view(const Netdev& netdev) const;
    void swap_view(NetdevId id, const fib::NetdevView* view);
    std::optional<NetdevId> take_id();

    struct FreeId {
        NetdevId id;
        std::chrono::nanoseconds destroyed;
    };

    fib::Shared& shared_;
    Reclaimer& reclaimer_;
    Clock clock_;
    std::map<std::string, std::unique_ptr<Netdev>, std::less<>> by_name_;
    std::array<Netdev*, kMaxNetdevs> by_id_{};
    std::deque<FreeId> free_ids_;  // in order of destroy()
    std::size_t ids_end_ = 0;      // above the highest id ever used
};

/// The link-local address that a netdev has: none without IPv6, a configured one, else from the
/// MAC.
std::optional<net::Ipv6Addr> link_local_of(const Netdev& netdev);

}  // namespace sluice::control
