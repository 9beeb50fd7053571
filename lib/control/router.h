// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "config/model.h"
#include "control/controller.h"
#include "control/engine.h"

namespace sluice::control {

/// The Controller: the engine, and the configuration that describes it. What is changed over the
/// socket is part of the running configuration, so a reload brings back what the file says; routes
/// are not, for each has an owner, and a reload is about the file's.
class Router final : public Controller {
public:
    /// `running`: what `engine` is like now (config::starting_point).
    Router(Engine& engine, config::Config running);

    /// From the running to the wanted configuration; on error it stays the running one.
    Result<void> apply(config::Config wanted);

public:  // Controller
    Result<void> add_port(const std::string& name, const config::Port& port) override;
    Result<void> add_vlan(const std::string& name, const config::Vlan& vlan) override;
    Result<void> delete_netdevs(std::span<const std::string> names) override;
    Result<void> change_link(const std::string& name, const LinkChange& change) override;
    Result<void> add_address(const std::string& dev, const net::InterfaceAddr& address) override;
    Result<void> delete_address(const std::string& dev, const net::InterfaceAddr& address) override;
    Result<void> add_route(const RouteRequest& route, RouteMode mode) override;
    Result<void> delete_route(const RouteRequest& route) override;
    std::size_t flush_routes(RouteOwner owner) override;
    RouteLookup lookup_route(const net::IpAddr& destination) const override;
    Result<void> add_neighbor(const std::string& dev,
                              const net::IpAddr& address,
                              const net::MacAddr& lladdr) override;
    Result<void> delete_neighbor(const std::string& dev, const net::IpAddr& address) override;
    Result<std::size_t> flush_neighbors(const std::string& dev) override;

    std::vector<LinkInfo> links() const override;
    std::vector<AddressInfo> addresses() const override;
    void for_each_route(const std::function<void(const RouteInfo&)>& each) const override;
    std::optional<net::IpPrefix> routes_after(
        const std::optional<net::IpPrefix>& after,
        std::size_t limit,
        const std::function<void(const RouteInfo&)>& each) const override;
    std::vector<NeighborInfo> neighbors() const override;
    stats::NetdevCounters netdev_counters(NetdevId netdev) const override;
    stats::NetdevCounters netdev_counters_of(NetdevId netdev, std::size_t writer) const override;
    std::vector<WorkerInfo> workers() const override;
    std::vector<PoolInfo> pools() const override;
    std::string effective_config() const override;
    Result<void> reload(const std::optional<std::string>& file) override;

private:
    config::NetdevSettings* settings_of(const std::string& name);
    std::vector<config::Address>* addresses_of(const std::string& name);
    /// Takes what the file had over a deleted netdev out of the running configuration.
    void forget(const std::string& name);

    Engine& engine_;
    config::Config running_;
};

/// The whole of a file. kNotFound, kPermission.
Result<std::string> read_file(const std::string& path);
/// The steady clock.
Time steady_now() noexcept;

}  // namespace sluice::control
