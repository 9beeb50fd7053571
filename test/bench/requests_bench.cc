// SPDX-License-Identifier: BSD-3-Clause
// What a request costs the control thread outside of the Engine: a line read, dispatched and
// answered, over a Controller that does nothing; then the same through a socket, many at a time.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/controller.h"
#include "control/requests.h"
#include "control/server.h"

namespace sluice::control {
namespace {

class NullController final : public Controller {
public:
    using Text = std::string;
    Result<void> add_netns(const Text&) override { return {}; }
    Result<Ticket> delete_netns(const Text&) override { return 1; }
    std::vector<NetnsInfo> netns() const override { return {}; }
    Result<void> add_port(const Text&, const Text&, const config::Port&) override { return {}; }
    Result<void> add_vlan(const Text&, const Text&, const config::Vlan&) override { return {}; }
    Result<void> add_vrf(const Text&, const Text&, std::uint32_t) override { return {}; }
    Result<Ticket> delete_netdevs(const Text&, std::span<const Text>) override { return 1; }
    Result<void> change_link(const Text&, const Text&, const LinkChange&) override { return {}; }
    Result<Ticket> move_link(const Text&, const Text&, const Text&) override { return 1; }
    bool settled(Ticket) override { return true; }
    Result<void> add_address(const Text&, const Text&, const net::InterfaceAddr&) override {
        return {};
    }
    Result<void> delete_address(const Text&, const Text&, const net::InterfaceAddr&) override {
        return {};
    }
    Result<void> add_route(const Text&, const RouteRequest&, RouteMode) override { return {}; }
    Result<void> delete_route(const Text&, const RouteRequest&) override { return {}; }
    Result<Flush> flush_routes(const Text&, const RouteFilter&) override { return Flush{}; }
    Result<RouteLookup> lookup_route(const Text&, const RouteQuery&) const override {
        return RouteLookup{};
    }
    Result<void> add_nexthop(
        const Text&, std::uint32_t, const config::NextHop&, bool, std::uint8_t) override {
        return {};
    }
    Result<std::size_t> flush_nexthops(const Text&, const RouteFilter&) override { return 0; }
    Result<void> delete_nexthop(const Text&, std::uint32_t) override { return {}; }
    Result<std::vector<NextHopInfo>> nexthops(const Text&) const override { return {}; }
    Result<void> add_rule(const Text&, const config::Rule&) override { return {}; }
    Result<void> delete_rule(const Text&, const config::Rule&) override { return {}; }
    Result<std::vector<RuleInfo>> rules(const Text&) const override { return {}; }
    Result<std::vector<ExceptionInfo>> exceptions(const Text&) const override { return {}; }
    Result<Flush> flush_exceptions(const Text&) override { return Flush{}; }
    Result<void> add_neighbor(const Text&,
                              const Text&,
                              const net::IpAddr&,
                              const net::MacAddr&) override {
        return {};
    }
    Result<void> delete_neighbor(const Text&, const Text&, const net::IpAddr&) override {
        return {};
    }
    Result<Flush> flush_neighbors(const Text&, const Text&) override { return Flush{}; }
    std::vector<LinkInfo> links(const Text&) const override { return {}; }
    Result<LinkInfo> link(const Text&, const Text&) const override { return LinkInfo{}; }
    Result<std::vector<VrfInfo>> vrfs(const Text&) const override { return {}; }
    Result<std::vector<AddressInfo>> addresses(const Text&) const override { return {}; }
    std::optional<net::IpPrefix> routes_after(
        const Text&,
        std::uint32_t,
        const std::optional<net::IpPrefix>&,
        std::size_t,
        const std::function<void(const RouteInfo&)>&) const override {
        return {};
    }
    Result<std::vector<std::uint32_t>> tables(const Text&) const override { return {}; }
    Result<std::vector<NeighborInfo>> neighbors(const Text&) const override { return {}; }
    CacheInfo cache() const override { return {}; }
    void restart_longest_rounds() override {}
    void set_cache_mode(config::CacheMode) override {}
    void flush_cache() override {}
    std::vector<UncachedInfo> uncached() const override { return {}; }
    std::vector<DrainInfo> draining() const override { return {}; }
    stats::NetdevCounters netdev_counters(NetdevId) const override { return {}; }
    std::vector<WorkerInfo> workers() const override { return {}; }
    std::vector<PoolInfo> pools() const override { return {}; }
    stats::NetdevCounters netdev_counters_of(NetdevId, std::size_t) const override { return {}; }
    std::string effective_config() const override { return {}; }
    Result<void> reload(const std::optional<std::string>&) override { return {}; }
};

// What a new netns asks for, as a client writes it.
constexpr std::array<std::string_view, 5> kLines{
    R"({"object":"netns","command":"add","if_ok":true,"args":{"name":"tenant-17"}})",
    R"({"object":"link","command":"add","if_ok":true,"args":{"name":"p0.17","link":"p0","vlan_id":17}})",
    R"({"object":"link","command":"set","if_ok":true,"args":{"name":"p0.17","netns":"tenant-17"}})",
    R"({"object":"addr","command":"add","netns":"tenant-17","if_ok":true,"args":{"address":"10.0.17.1/24","dev":"p0.17"}})",
    R"({"object":"route","command":"add","netns":"tenant-17","if_ok":true,"args":{"prefix":"192.0.2.0/24","via":"10.0.17.2","dev":"p0.17"}})",
};

void handle(benchmark::State& state) {
    NullController controller;
    Requests requests(controller, {.instance = "bench", .version = "1"});
    const std::string_view line = kLines[static_cast<std::size_t>(state.range(0))];
    for (auto _ : state) {
        Reply reply = requests.handle(line, false);
        if (reply.failed) {
            state.SkipWithError(reply.text.c_str());
            return;
        }
        benchmark::DoNotOptimize(reply.text.data());
    }
}
BENCHMARK(handle)->DenseRange(0, std::ssize(kLines) - 1);

/// `range(0)` requests sent ahead of their answers; 1 is a client that waits for each.
void through_socket(benchmark::State& state) {
    NullController controller;
    Requests requests(controller, {.instance = "bench", .version = "1"});
    const std::string path = fmt::format("/tmp/sluice-requests-bench-{}.sock", ::getpid());
    auto server = Server::listen(
        path,
        [&](std::string_view line, bool after) { return requests.handle(line, after); },
        Requests::refusal);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const Fd client(::socket(AF_UNIX, SOCK_STREAM, 0));
    if (!server || ::connect(client.get(),
                             reinterpret_cast<const sockaddr*>(&address),  // NOLINT: socket API
                             sizeof(address)) != 0) {
        state.SkipWithError("cannot listen");
        return;
    }
    std::string lines;
    for (std::int64_t i = 0; i < state.range(0); ++i) {
        lines += fmt::format("{}\n", kLines.back());
    }
    std::array<char, 65536> answers{};
    for (auto _ : state) {
        if (::send(client.get(), lines.data(), lines.size(), 0) < 0) {
            state.SkipWithError("cannot send");
            return;
        }
        // In one thread: what the client costs is in it, what waking it costs is not.
        for (std::int64_t got = 0; got < state.range(0);) {
            (*server)->run_once();
            const ssize_t count =
                ::recv(client.get(), answers.data(), answers.size(), MSG_DONTWAIT);
            for (ssize_t i = 0; i < count; ++i) {
                got += answers[static_cast<std::size_t>(i)] == '\n' ? 1 : 0;
            }
        }
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(through_socket)->Arg(1)->Arg(17)->Arg(256);

}  // namespace
}  // namespace sluice::control

BENCHMARK_MAIN();
