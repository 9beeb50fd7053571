// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/drop_reason.h"
#include "base/result.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_table.h"
#include "stats/counters.h"

namespace sluice::control {
namespace {

/// The counters of a netdev, or of all together, appended to what `json` says already.
Json with_counters(Json json, const stats::NetdevCounters& counters) {
    Json drops = Json::object();
    for (std::size_t i = 0; i < kDropReasons; ++i) {
        if (counters.drops[i] != 0) {
            drops[std::string(kDropInfo[i].name)] = counters.drops[i];
        }
    }
    const std::uint64_t dropped =
        std::accumulate(counters.drops.begin(), counters.drops.end(), std::uint64_t{0});
    json["rx_packets"] = counters.rx_packets;
    json["rx_bytes"] = counters.rx_bytes;
    json["tx_packets"] = counters.tx_packets;
    json["tx_bytes"] = counters.tx_bytes;
    json["forwarded"] = counters.forwarded;
    json["delivered"] = counters.delivered;
    json["held"] = counters.held;
    json["dropped"] = dropped;
    json["drops"] = std::move(drops);
    json["icmp_errors_sent"] = counters.icmp_errors_sent;
    json["icmp_errors_suppressed"] = counters.icmp_errors_suppressed;
    // Modulo 2^64; a difference below zero reads better as such.
    json["imbalance"] = static_cast<std::int64_t>(stats::imbalance(counters));
    return json;
}

struct NetdevRow {
    std::string name;
    std::uint16_t id = 0;
    std::string netns;
    stats::NetdevCounters counters{};
};

/// Those of every netns unless the request names one: the books are the whole instance's.
Result<std::vector<LinkInfo>> read_links(Context& context) {
    if (!context.netns_given) {
        return context.controller.links("");
    }
    if (!netns_exists(context.controller, context.netns)) {
        return no_netns(context.netns);
    }
    return context.controller.links(context.netns);
}

Result<Body> stats_show(Context& context, Args& /*args*/) {
    auto links = read_links(context);
    if (!links) {
        return std::unexpected(std::move(links.error()));
    }
    // All read in one go: what comes in slices later is one moment's picture.
    std::vector<NetdevRow> rows;
    rows.reserve(links->size());
    stats::NetdevCounters total{};
    for (LinkInfo& link : *links) {
        const auto counters = context.controller.netdev_counters(link.id);
        stats::accumulate(total, counters);
        rows.push_back({std::move(link.name), link.id.value, std::move(link.netns), counters});
    }
    Json pools = Json::array();
    for (const PoolInfo& pool : context.controller.pools()) {
        pools.push_back({{"name", pool.name}, {"size", pool.size}, {"in_use", pool.in_use}});
    }
    return Body{.head = R"({"total":)" + dump(with_counters(Json::object(), total)) +
                        R"(,"pools":)" + dump(pools) + R"(,"netdevs":[)",
                .rows = rows_of(std::move(rows),
                                [](const NetdevRow& row) {
                                    return with_counters(
                                        {{"name", row.name}, {"id", row.id}, {"netns", row.netns}},
                                        row.counters);
                                }),
                .tail = "]}"};
}

struct DropRow {
    std::uint32_t netdev = 0;  // index of a link
    std::uint32_t writer = 0;
    std::size_t reason = 0;
    std::uint64_t packets = 0;
};

Result<Body> stats_drops(Context& context, Args& args) {
    const bool all = args.flag("all").value_or(false);
    const auto dev = args.text("dev");
    if (args.error()) {
        return refused(args);
    }
    const Controller& controller = context.controller;
    auto links = read_links(context);
    if (!links) {
        return std::unexpected(std::move(links.error()));
    }
    const std::size_t workers = controller.workers().size();
    std::vector<LinkInfo> shown;
    std::vector<DropRow> rows;
    for (LinkInfo& link : *links) {
        if (dev && link.name != *dev) {
            continue;
        }
        for (std::size_t writer = 0; writer <= workers; ++writer) {
            const auto counters = controller.netdev_counters_of(link.id, writer);
            // Reason 0 is "not a drop".
            for (std::size_t reason = 1; reason < kDropReasons; ++reason) {
                if (all || counters.drops[reason] != 0) {
                    rows.push_back({static_cast<std::uint32_t>(shown.size()),
                                    static_cast<std::uint32_t>(writer),
                                    reason,
                                    counters.drops[reason]});
                }
            }
        }
        shown.push_back(std::move(link));
    }
    if (dev && shown.empty()) {
        return fail(ErrorCode::kNotFound, "link {} does not exist", *dev);
    }
    return array_of(std::move(rows), [shown = std::move(shown), workers](const DropRow& row) {
        return Json{{"netdev", shown[row.netdev].name},
                    {"worker", row.writer < workers ? std::to_string(row.writer) : "control"},
                    {"reason", kDropInfo[row.reason].name},
                    {"source", kDropInfo[row.reason].source},
                    {"packets", row.packets},
                    {"netns", shown[row.netdev].netns}};
    });
}

/// Null for 0/0: nothing was measured. Two decimals are more than any of these is exact to.
Json ratio(double of, double by) {
    return by > 0 ? Json(std::round(of / by * 100) / 100) : Json();
}

Json worker_json(const WorkerInfo& worker) {
    const stats::WorkerCounters& counters = worker.counters;
    const auto busy = static_cast<double>(counters.cycles_busy);
    const auto idle = static_cast<double>(counters.cycles_idle);
    const double hz = worker.tsc_hz > 0 ? worker.tsc_hz : 1;
    const double sleep_seconds = static_cast<double>(counters.sleep_ns) / 1e9;
    Json stages = Json::object();
    for (std::size_t i = 0; i < stats::kStages; ++i) {
        stages[stats::kStageNames[i]] = ratio(static_cast<double>(counters.stage_cycles[i]),
                                              static_cast<double>(counters.sampled_packets));
    }
    return {{"worker", worker.id.value},
            {"lcore", worker.lcore},
            {"tsc_hz", worker.tsc_hz},
            {"packets", counters.packets},
            {"rounds", counters.rounds},
            {"busy_rounds", counters.busy_rounds},
            {"busy_percent", ratio(busy * 100, busy + idle + sleep_seconds * hz)},
            {"cycles_per_packet", ratio(busy, static_cast<double>(counters.packets))},
            {"stages", std::move(stages)},
            {"sampled_packets", counters.sampled_packets},
            {"sleeps", counters.sleeps},
            {"longest_round_us", ratio(static_cast<double>(counters.longest_round) * 1e6, hz)},
            {"busy_seconds", busy / hz},
            {"idle_seconds", idle / hz},
            {"sleep_seconds", sleep_seconds}};
}

Result<Body> stats_workers(Context& context, Args& args) {
    const bool reset = args.flag("reset").value_or(false);
    if (args.error()) {
        return refused(args);
    }
    auto workers = context.controller.workers();
    if (reset) {
        context.controller.restart_longest_rounds();
    }
    return array_of(std::move(workers), worker_json);
}

}  // namespace

std::span<const Command> stats_commands() {
    static const std::array<Command, 3> kCommands{{
        {"stats", "show", {}, stats_show},
        {"stats", "drops", {"all", "dev"}, stats_drops},
        {"stats", "workers", {"reset"}, stats_workers},
    }};
    return kCommands;
}

}  // namespace sluice::control
