// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/model.h"
#include "control/apply.h"
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
    Result<void> add_netns(const std::string& name) override;
    Result<Ticket> delete_netns(const std::string& name) override;
    std::vector<NetnsInfo> netns() const override;

    Result<void> add_port(const std::string& netns,
                          const std::string& name,
                          const config::Port& port) override;
    Result<void> add_vlan(const std::string& netns,
                          const std::string& name,
                          const config::Vlan& vlan) override;
    Result<void> add_vrf(const std::string& netns,
                         const std::string& name,
                         std::uint32_t table) override;
    Result<Ticket> delete_netdevs(const std::string& netns,
                                  std::span<const std::string> names) override;
    Result<void> change_link(const std::string& netns,
                             const std::string& name,
                             const LinkChange& change) override;
    Result<Ticket> move_link(const std::string& netns,
                             const std::string& name,
                             const std::string& to) override;
    bool settled(Ticket ticket) override { return engine_.settled(ticket); }

    Result<void> add_address(const std::string& netns,
                             const std::string& dev,
                             const net::InterfaceAddr& address) override;
    Result<void> delete_address(const std::string& netns,
                                const std::string& dev,
                                const net::InterfaceAddr& address) override;

    Result<void> add_route(const std::string& netns,
                           const RouteRequest& route,
                           RouteMode mode) override;
    Result<void> delete_route(const std::string& netns, const RouteRequest& route) override;
    Result<Flush> flush_routes(const std::string& netns, const RouteFilter& filter) override;
    Result<RouteLookup> lookup_route(const std::string& netns,
                                     const RouteQuery& query) const override;

    Result<void> add_nexthop(const std::string& netns,
                             std::uint32_t id,
                             const config::NextHop& hop,
                             bool replace,
                             std::uint8_t protocol) override;
    Result<void> delete_nexthop(const std::string& netns, std::uint32_t id) override;
    Result<std::size_t> flush_nexthops(const std::string& netns,
                                       const RouteFilter& filter) override;
    Result<std::vector<NextHopInfo>> nexthops(const std::string& netns) const override;

    Result<void> add_rule(const std::string& netns, const config::Rule& rule) override;
    Result<void> delete_rule(const std::string& netns, const config::Rule& rule) override;
    Result<std::vector<RuleInfo>> rules(const std::string& netns) const override;

    Result<std::vector<ExceptionInfo>> exceptions(const std::string& netns) const override;
    Result<Flush> flush_exceptions(const std::string& netns) override;

    Result<void> add_neighbor(const std::string& netns,
                              const std::string& dev,
                              const net::IpAddr& address,
                              const net::MacAddr& lladdr) override;
    Result<void> delete_neighbor(const std::string& netns,
                                 const std::string& dev,
                                 const net::IpAddr& address) override;
    Result<Flush> flush_neighbors(const std::string& netns, const std::string& dev) override;

    std::vector<LinkInfo> links(const std::string& netns) const override;
    Result<LinkInfo> link(const std::string& netns, const std::string& name) const override;
    Result<std::vector<VrfInfo>> vrfs(const std::string& netns) const override;
    Result<std::vector<AddressInfo>> addresses(const std::string& netns) const override;
    std::optional<net::IpPrefix> routes_after(
        const std::string& netns,
        std::uint32_t table,
        const std::optional<net::IpPrefix>& after,
        std::size_t limit,
        const std::function<void(const RouteInfo&)>& each) const override;
    Result<std::vector<std::uint32_t>> tables(const std::string& netns) const override;
    Result<std::vector<NeighborInfo>> neighbors(const std::string& netns) const override;

    CacheInfo cache() const override;
    void restart_longest_rounds() override;
    void set_cache_mode(config::CacheMode mode) override;
    void flush_cache() override { engine_.flush_cache(); }
    std::vector<UncachedInfo> uncached() const override;
    std::vector<DrainInfo> draining() const override { return engine_.draining(); }

    stats::NetdevCounters netdev_counters(NetdevId netdev) const override;
    stats::NetdevCounters netdev_counters_of(NetdevId netdev, std::size_t writer) const override;
    std::vector<WorkerInfo> workers() const override;
    std::vector<PoolInfo> pools() const override;
    std::string effective_config() const override;
    Result<void> reload(const std::optional<std::string>& file) override;

private:
    template <class T>
    struct AsResult {
        using Type = Result<T>;
    };
    template <class T>
    struct AsResult<Result<T>> {
        using Type = Result<T>;
    };
    /// What `fn` says, as a value or a Result, about the netns of that name; or that there is none.
    template <class Fn>
    AsResult<std::invoke_result_t<Fn, Netns&>>::Type in(const std::string& netns, Fn&& fn) const {
        const auto found = engine_.netns().get(netns);
        if (!found) {
            return std::unexpected(found.error());
        }
        return std::forward<Fn>(fn)(**found);
    }
    config::Netns& config_of(const Netns& netns);
    /// What the running configuration may have over some netdevs: told by the engine while they are
    /// there, which knows each netdev's own, so that nobody looks through what others have (U-06).
    struct Over {
        bool routes = false;
    };
    Over what_is_over(const Netns& netns, std::span<const std::string> names) const;
    /// Takes netdevs that are gone, and what was over them, out of the running configuration.
    static void forget(config::Netns& netns, std::span<const std::string> names, const Over& over);
    /// The running configuration's next hops become those that the engine has.
    void forget_nexthops(const Netns& netns);
    /// A port goes to another netns; the VLANs on it that stay where they are say so.
    void relink(const std::string& port, const std::string& from, const std::string& to);
    void take_rules(const Netns& netns);
    /// The running configuration's neighbors become the engine's permanent ones, in the order that
    /// it has them in, new ones last. Not kept with each change, so that one costs what it changes.
    void take_neighbors() const;
    Result<void> add_addresses(const std::string& netns,
                               const std::string& netdev,
                               std::span<const config::Address> addresses);

    Engine& engine_;
    mutable config::Config running_;  // see take_neighbors()
};

/// The whole of a file. kNotFound, kPermission.
Result<std::string> read_file(const std::string& path);
/// The steady clock.
Time steady_now() noexcept;

}  // namespace sluice::control
