// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "control/controller.h"

namespace sluice::control {

/// Changes are expectations; what is shown comes from plain data.
class MockController : public Controller {
public:
    using Names = std::span<const std::string>;
    using Each = std::function<void(const RouteInfo&)>;

    MOCK_METHOD(Result<void>, add_port, (const std::string&, const config::Port&), (override));
    MOCK_METHOD(Result<void>, add_vlan, (const std::string&, const config::Vlan&), (override));
    MOCK_METHOD(Result<void>, delete_netdevs, (Names), (override));
    MOCK_METHOD(Result<void>, change_link, (const std::string&, const LinkChange&), (override));
    MOCK_METHOD(Result<void>,
                add_address,
                (const std::string&, const net::InterfaceAddr&),
                (override));
    MOCK_METHOD(Result<void>,
                delete_address,
                (const std::string&, const net::InterfaceAddr&),
                (override));
    MOCK_METHOD(Result<void>, add_route, (const RouteRequest&, RouteMode), (override));
    MOCK_METHOD(Result<void>, delete_route, (const RouteRequest&), (override));
    MOCK_METHOD(std::size_t, flush_routes, (RouteOwner), (override));
    MOCK_METHOD(RouteLookup, lookup_route, (const net::IpAddr&), (const, override));
    MOCK_METHOD(Result<void>,
                add_neighbor,
                (const std::string&, const net::IpAddr&, const net::MacAddr&),
                (override));
    MOCK_METHOD(Result<void>,
                delete_neighbor,
                (const std::string&, const net::IpAddr&),
                (override));
    MOCK_METHOD(Result<std::size_t>, flush_neighbors, (const std::string&), (override));
    MOCK_METHOD(std::string, effective_config, (), (const, override));
    MOCK_METHOD(Result<void>, reload, (const std::optional<std::string>&), (override));

    std::vector<LinkInfo> links() const override { return links_; }
    std::vector<AddressInfo> addresses() const override { return addresses_; }
    void for_each_route(const Each& each) const override {
        for (const auto& [prefix, route] : routes_) {
            each(route);
        }
    }
    std::optional<net::IpPrefix> routes_after(const std::optional<net::IpPrefix>& after,
                                              std::size_t limit,
                                              const Each& each) const override {
        auto at = after ? routes_.upper_bound(*after) : routes_.begin();
        std::optional<net::IpPrefix> last;
        for (std::size_t i = 0; i < limit && at != routes_.end(); ++i, ++at) {
            each(at->second);
            last = at->first;
        }
        return at == routes_.end() ? std::nullopt : last;
    }
    std::vector<NeighborInfo> neighbors() const override { return neighbors_; }
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

    std::vector<LinkInfo> links_;
    std::vector<AddressInfo> addresses_;
    std::map<net::IpPrefix, RouteInfo> routes_;
    std::vector<NeighborInfo> neighbors_;
    std::map<std::pair<std::uint16_t, std::size_t>, stats::NetdevCounters> counters_;
    std::vector<WorkerInfo> workers_;
    std::vector<PoolInfo> pools_;
};

}  // namespace sluice::control
