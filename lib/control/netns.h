// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/reclaimer.h"
#include "base/result.h"
#include "config/model.h"
#include "control/rib.h"
#include "fib/generation.h"
#include "net/address.h"

namespace sluice::control {

class Multipath;
class NextHopObjects;
class Policies;
struct Netdev;
struct Netns;

/// A main or other routing table.
struct Table {
    Netns* netns = nullptr;
    std::uint32_t id = config::kMainTable;
    Rib<net::Ipv4Addr> v4;
    Rib<net::Ipv6Addr> v6;
};

/// A routing instance.
struct Netns {
    Netns();
    Netns(const Netns&) = delete;
    Netns& operator=(const Netns&) = delete;
    Netns(Netns&&) = delete;
    Netns& operator=(Netns&&) = delete;
    ~Netns();

    NetnsId id;
    std::string name;
    Netdev* lo = nullptr;
    std::map<std::string, Netdev*, std::less<>> netdevs;  // by name
    std::map<std::uint32_t, Table*> tables;               // the main one always
    Table* main = nullptr;
    fib::Generations<net::Ipv4Addr> generations4;
    fib::Generations<net::Ipv6Addr> generations6;
    config::MultipathHash hash4;
    config::MultipathHash hash6;
    std::unique_ptr<NextHopObjects> nexthops;
    std::unique_ptr<Multipath> multipath;
    std::unique_ptr<Policies> policies;

    Netdev* find(std::string_view netdev) const noexcept {
        const auto it = netdevs.find(netdev);
        return it == netdevs.end() ? nullptr : it->second;
    }
    /// kNotFound names it.
    Result<Netdev*> get(std::string_view netdev) const;
};

/// All netns and their tables. Control thread.
class NetnsSet {
public:
    struct Limits {
        std::size_t ipv4_routes, ipv6_routes;  // of one table, connected ones too
    };
    NetnsSet(Limits limits, Reclaimer& reclaimer) : limits_(limits), reclaimer_(reclaimer) {}
    NetnsSet(const NetnsSet&) = delete;
    NetnsSet& operator=(const NetnsSet&) = delete;
    NetnsSet(NetnsSet&&) = delete;
    NetnsSet& operator=(NetnsSet&&) = delete;
    ~NetnsSet();

    /// With an empty main table; no netdev yet. kExists, kLimit.
    Result<Netns*> create(const std::string& name);
    Netns* find(std::string_view name) const noexcept;
    /// kNotFound names it.
    Result<Netns*> get(std::string_view name) const;
    /// In order of name.
    template <class Fn>
    void for_each(Fn&& fn) const {
        for (const auto& [name, netns] : by_name_) {
            fn(*netns);
        }
    }
    std::size_t size() const noexcept { return by_name_.size(); }

    /// No longer found by its name, which another may take.
    std::unique_ptr<Netns> detach(Netns& netns);
    /// Of a detached one without routes, after the grace period of all that was published of it.
    void destroy(std::unique_ptr<Netns> netns);

    /// Makes it if it is not there. kLimit.
    Result<Table*> table(Netns& netns, std::uint32_t id);
    static Table* find_table(const Netns& netns, std::uint32_t id) noexcept {
        const auto it = netns.tables.find(id);
        return it == netns.tables.end() ? nullptr : it->second;
    }
    Table& table_of(std::uint16_t index) const noexcept { return *tables_[index]; }

private:
    Limits limits_;
    Reclaimer& reclaimer_;
    std::map<std::string, std::unique_ptr<Netns>, std::less<>> by_name_;
    std::vector<std::unique_ptr<Table>> tables_;  // by Rib::index()
    std::vector<std::uint16_t> free_tables_;
    std::deque<NetnsId> free_ids_;
    std::uint16_t ids_end_ = 0;
};

}  // namespace sluice::control
