// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "control/controller.h"

namespace sluice::control {

/// Changes are expectations; what is shown comes from plain data. There are the netns "default" and
/// those in netns_.
class MockController : public Controller {
public:
    using Text = std::string;
    using Names = std::span<const std::string>;
    using Each = std::function<void(const RouteInfo&)>;

    MOCK_METHOD(Result<void>, add_netns, (const Text&), (override));
    MOCK_METHOD(Result<Ticket>, delete_netns, (const Text&), (override));
    MOCK_METHOD(Result<void>,
                add_port,
                (const Text&, const Text&, const config::Port&),
                (override));
    MOCK_METHOD(Result<void>,
                add_vlan,
                (const Text&, const Text&, const config::Vlan&),
                (override));
    MOCK_METHOD(Result<void>, add_vrf, (const Text&, const Text&, std::uint32_t), (override));
    MOCK_METHOD(Result<Ticket>, delete_netdevs, (const Text&, Names), (override));
    MOCK_METHOD(Result<void>,
                change_link,
                (const Text&, const Text&, const LinkChange&),
                (override));
    MOCK_METHOD(Result<Ticket>, move_link, (const Text&, const Text&, const Text&), (override));
    MOCK_METHOD(Result<void>,
                add_address,
                (const Text&, const Text&, const net::InterfaceAddr&),
                (override));
    MOCK_METHOD(Result<void>,
                delete_address,
                (const Text&, const Text&, const net::InterfaceAddr&),
                (override));
    MOCK_METHOD(Result<void>, add_route, (const Text&, const RouteRequest&, RouteMode), (override));
    MOCK_METHOD(Result<void>, delete_route, (const Text&, const RouteRequest&), (override));
    MOCK_METHOD(Result<Flush>, flush_routes, (const Text&, const RouteFilter&), (override));
    MOCK_METHOD(Result<RouteLookup>,
                lookup_route,
                (const Text&, const RouteQuery&),
                (const, override));
    MOCK_METHOD(Result<void>,
                add_nexthop,
                (const Text&, std::uint32_t, const config::NextHop&, bool, std::uint8_t),
                (override));
    MOCK_METHOD(Result<std::size_t>, flush_nexthops, (const Text&, const RouteFilter&), (override));
    MOCK_METHOD(Result<void>, delete_nexthop, (const Text&, std::uint32_t), (override));
    MOCK_METHOD(Result<void>, add_rule, (const Text&, const config::Rule&), (override));
    MOCK_METHOD(Result<void>, delete_rule, (const Text&, const config::Rule&), (override));
    MOCK_METHOD(Result<Flush>, flush_exceptions, (const Text&), (override));
    MOCK_METHOD(Result<void>,
                add_neighbor,
                (const Text&, const Text&, const net::IpAddr&, const net::MacAddr&),
                (override));
    MOCK_METHOD(Result<void>,
                delete_neighbor,
                (const Text&, const Text&, const net::IpAddr&),
                (override));
    MOCK_METHOD(Result<Flush>, flush_neighbors, (const Text&, const Text&), (override));
    MOCK_METHOD(void, restart_longest_rounds, (), (override));
    MOCK_METHOD(void, set_cache_mode, (config::CacheMode), (override));
    MOCK_METHOD(void, flush_cache, (), (override));
    MOCK_METHOD(std::string, effective_config, (), (const, override));
    MOCK_METHOD(Result<void>, reload, (const std::optional<std::string>&), (override));

    bool settled(Ticket ticket) override {
        ++asked_settled_;
        return !unsettled_.contains(ticket);
    }
    std::vector<NetnsInfo> netns() const override { return netns_; }
    std::vector<LinkInfo> links(const Text& netns) const override {
        std::vector<LinkInfo> found;
        for (const LinkInfo& link : links_) {
            if (netns.empty() || link.netns == netns) {
                found.push_back(link);
            }
        }
        return found;
    }
    Result<std::vector<VrfInfo>> vrfs(const Text& netns) const override { return in(netns, vrfs_); }
    Result<std::vector<AddressInfo>> addresses(const Text& netns) const override {
        return in(netns, addresses_);
    }
    Result<std::vector<std::uint32_t>> tables(const Text& netns) const override {
        std::vector<std::uint32_t> found;
        for (const auto& [table, routes] : routes_) {
            found.push_back(table);
        }
        return in(netns, found);
    }
    std::optional<net::IpPrefix> routes_after(const Text& netns,
                                              std::uint32_t table,
                                              const std::optional<net::IpPrefix>& after,
                                              std::size_t limit,
                                              const Each& each) const override {
        const auto routes = routes_.find(table);
        if (netns != "default" || routes == routes_.end()) {
            return std::nullopt;
        }
        auto at = after ? routes->second.upper_bound(*after) : routes->second.begin();
        std::optional<net::IpPrefix> last;
        for (std::size_t i = 0; i < limit && at != routes->second.end(); ++i, ++at) {
            each(at->second);
            last = at->first;
        }
        return at == routes->second.end() ? std::nullopt : last;
    }
    Result<std::vector<NextHopInfo>> nexthops(const Text& netns) const override {
        return in(netns, nexthops_);
    }
    Result<std::vector<RuleInfo>> rules(const Text& netns) const override {
        return in(netns, rules_);
    }
    Result<std::vector<ExceptionInfo>> exceptions(const Text& netns) const override {
        return in(netns, exceptions_);
    }
    Result<std::vector<NeighborInfo>> neighbors(const Text& netns) const override {
        return in(netns, neighbors_);
    }
    CacheInfo cache() const override { return cache_; }
    std::vector<UncachedInfo> uncached() const override { return uncached_; }
    std::vector<DrainInfo> draining() const override { return draining_; }
    stats::NetdevCounters netdev_counters(NetdevId netdev) const override {
        stats::NetdevCounters sum{};
        for (std::size_t writer = 0; writer <= workers_.size(); ++writer) {
            stats::accumulate(sum, netdev_counters_of(netdev, writer));
        }
        return sum;
    }
    stats::NetdevCounters netdev_counters_of(NetdevId netdev, std::size_t writer) const override {
        const auto at = counters_.find({netdev.value, writer});
        return at == counters_.end() ? stats::NetdevCounters{} : at->second;
    }
    std::vector<WorkerInfo> workers() const override { return workers_; }
    std::vector<PoolInfo> pools() const override { return pools_; }

    std::set<Ticket> unsettled_;
    std::size_t asked_settled_ = 0;
    std::vector<NetnsInfo> netns_{{.name = "default"}, {.name = "empty"}};
    std::vector<LinkInfo> links_;
    // All of "default".
    std::vector<VrfInfo> vrfs_;
    std::vector<AddressInfo> addresses_;
    std::map<std::uint32_t, std::map<net::IpPrefix, RouteInfo>> routes_;  // by table
    std::vector<NextHopInfo> nexthops_;
    std::vector<RuleInfo> rules_;
    std::vector<ExceptionInfo> exceptions_;
    std::vector<NeighborInfo> neighbors_;

    CacheInfo cache_;
    std::vector<UncachedInfo> uncached_;
    std::vector<DrainInfo> draining_;
    std::map<std::pair<std::uint16_t, std::size_t>, stats::NetdevCounters> counters_;
    std::vector<WorkerInfo> workers_;
    std::vector<PoolInfo> pools_;

private:
    template <class T>
    Result<std::vector<T>> in(const Text& netns, const std::vector<T>& all) const {
        if (netns == "default") {
            return all;
        }
        if (netns == "empty") {
            return std::vector<T>();
        }
        return fail(ErrorCode::kNotFound, "netns {} does not exist", netns);
    }
};

}  // namespace sluice::control
