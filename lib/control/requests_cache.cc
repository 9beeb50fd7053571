// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "config/model.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_table.h"
#include "net/address.h"
#include "stats/counters.h"

namespace sluice::control {
namespace {

using config::CacheMode;

constexpr std::array<Choice<CacheMode>, 3> kModes{
    {{"auto", CacheMode::kAuto}, {"on", CacheMode::kOn}, {"off", CacheMode::kOff}}};

std::string_view word_of(CacheMode mode) noexcept {
    for (const auto& choice : kModes) {
        if (choice.value == mode) {
            return choice.word;
        }
    }
    return "";
}

/// Of what the cache was asked for; null before it was.
Json hit_rate(const stats::CacheCounters& counters) {
    const std::uint64_t asked = counters.hits + counters.misses;
    constexpr double kDigits = 1e4;
    return asked == 0 ? Json()
                      : Json(std::round(static_cast<double>(counters.hits) * kDigits /
                                        static_cast<double>(asked)) /
                             kDigits);
}

Json worker_json(const WorkerInfo& worker, std::size_t family) {
    const stats::CacheCounters& counters = worker.counters.caches[family];
    return {{"worker", worker.id.value},
            {"family", net::to_string(family == 0 ? net::Family::kIpv4 : net::Family::kIpv6)},
            {"hits", counters.hits},
            {"misses", counters.misses},
            {"stale", counters.stale},
            {"inserts", counters.inserts},
            {"bypassed", counters.bypassed},
            {"hit_rate", hit_rate(counters)},
            {"source_hits", counters.source_hits},
            {"source_misses", counters.source_misses}};
}

Result<Body> cache_show(Context& context, Args& /*args*/) {
    const CacheInfo cache = context.controller.cache();
    Json rows = Json::array();
    for (const WorkerInfo& worker : context.controller.workers()) {
        for (std::size_t family = 0; family < worker.counters.caches.size(); ++family) {
            rows.push_back(worker_json(worker, family));
        }
    }
    return Body::of({{"mode", word_of(cache.mode)},
                     {"entries", cache.entries},
                     {"bypassing", cache.bypassing},
                     {"workers", std::move(rows)}});
}

Result<Body> cache_set(Context& context, Args& args) {
    const auto mode = args.need("mode", args.choice<CacheMode>("mode", kModes));
    if (args.error()) {
        return refused(args);
    }
    context.controller.set_cache_mode(mode);
    return Body{};
}

Result<Body> cache_flush(Context& context, Args& /*args*/) {
    context.controller.flush_cache();
    return Body{};
}

Json uncached_json(const UncachedInfo& info) {
    return {{"worker", info.worker},
            {"netns", info.netns},
            {"netdev", info.netdev},
            {"family", net::to_string(info.family)},
            {"dsts", info.dsts}};
}

Result<Body> uncached_show(Context& context, Args& /*args*/) {
    Json draining = Json::array();
    for (const DrainInfo& info : context.controller.draining()) {
        draining.push_back({{"netdev", info.name},
                            {"id", info.id.value},
                            {"dsts", info.dsts},
                            {"held", info.held},
                            {"since_ms", info.since_ms}});
    }
    return Body{.head = R"({"draining":)" + dump(draining) + R"(,"netdevs":[)",
                .rows = rows_of(context.controller.uncached(), uncached_json),
                .tail = "]}"};
}

}  // namespace

std::span<const Command> cache_commands() {
    static const std::array<Command, 4> kCommands{{
        {"cache", "show", {}, cache_show},
        {"cache", "set", {"mode"}, cache_set},
        {"cache", "flush", {}, cache_flush},
        {"uncached", "show", {}, uncached_show},
    }};
    return kCommands;
}

}  // namespace sluice::control
