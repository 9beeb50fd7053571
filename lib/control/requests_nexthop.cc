// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "config/model.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_table.h"
#include "control/route_labels.h"

namespace sluice::control {
namespace {

constexpr std::uint32_t kMaxWeight = 256;
constexpr std::uint32_t kMaxIdleTimerMs = 86'400'000;  // a day

std::string_view type_of(const config::NextHop& hop) noexcept {
    return hop.blackhole         ? "blackhole"
           : !hop.group.empty()  ? "group"
           : hop.via.has_value() ? "gateway"
                                 : "device";
}

Json nexthop_json(const NextHopInfo& info) {
    const config::NextHop& hop = info.hop;
    const bool group = !hop.group.empty();
    Json members = Json::array();
    for (const NextHopInfo::Member& member : info.members) {
        members.push_back({{"id", member.id},
                           {"weight", member.weight},
                           {"active", member.active},
                           {"buckets", member.buckets},
                           {"packets", member.packets}});
    }
    return {{"id", info.id},
            {"type", type_of(hop)},
            {"via", text_or_null(hop.via)},
            {"dev", text_or_null(hop.dev)},
            {"on_link", hop.on_link},
            {"group", group ? std::move(members) : Json()},
            {"resilient", hop.resilient.has_value()},
            {"buckets", hop.resilient ? Json(hop.resilient->buckets) : Json()},
            {"idle_timer_ms", hop.resilient ? Json(hop.resilient->idle_timer.count()) : Json()},
            {"owner", to_string(info.owner)},
            {"protocol", protocol_name(protocol_of(info.protocol, info.owner))},
            {"active", info.active},
            {"routes", info.routes},
            {"packets", info.packets}};
}

Result<Body> nexthop_show(Context& context, Args& args) {
    const auto id = args.integer<std::uint32_t>("id", 1);
    const auto protocol = args.route_protocol("protocol");
    if (args.error()) {
        return refused(args);
    }
    auto nexthops = context.controller.nexthops(context.netns);
    if (nexthops && protocol) {
        std::erase_if(*nexthops, [&](const NextHopInfo& info) {
            return protocol_of(info.protocol, info.owner) != *protocol;
        });
    }
    if (nexthops && id) {
        std::erase_if(*nexthops, [&](const NextHopInfo& info) { return info.id != *id; });
        if (nexthops->empty()) {
            return fail(ErrorCode::kNotFound, "nexthop {} does not exist", *id);
        }
    }
    return array_of(std::move(nexthops), nexthop_json);
}

/// [{"id": 1, "weight": 3}, ...]
std::map<std::uint32_t, std::uint32_t> read_group(Args& args) {
    static constexpr std::array<std::string_view, 2> kKeys{"id", "weight"};
    std::map<std::uint32_t, std::uint32_t> group;
    const Value* const entries = args.objects("group", kKeys);
    if (entries == nullptr) {
        return group;
    }
    for (const Value& entry : *entries) {
        Args member(entry);
        const auto id = member.need("id", member.integer<std::uint32_t>("id", 1));
        const auto weight = member.integer<std::uint32_t>("weight", 1, kMaxWeight).value_or(1);
        if (member.error()) {
            args.refuse("group: " + member.error()->message);
        } else if (!group.emplace(id, weight).second) {
            args.refuse(fmt::format("group: nexthop {} stands there twice", id));
        }
    }
    return group;
}

void read_resilient(Args& args, config::NextHop& hop) {
    const bool resilient = args.flag("resilient").value_or(false);
    const auto buckets = args.integer<std::uint16_t>("buckets", 1);
    const auto idle = args.integer<std::uint32_t>("idle_timer_ms", 0, kMaxIdleTimerMs);
    if (resilient ? hop.group.empty() : buckets || idle) {
        args.refuse(resilient ? "resilient is said of a group"
                              : "buckets and idle_timer_ms are said of a resilient group");
    }
    if (resilient) {
        config::ResilientGroup& group = hop.resilient.emplace();
        group.buckets = buckets.value_or(group.buckets);
        group.idle_timer = idle ? std::chrono::milliseconds(*idle) : group.idle_timer;
    }
}

config::NextHop read_nexthop(Args& args) {
    config::NextHop hop;
    hop.via = args.address("via");
    hop.dev = args.text("dev").value_or("");
    hop.on_link = args.flag("on_link").value_or(false);
    hop.blackhole = args.flag("blackhole").value_or(false);
    hop.group = read_group(args);
    read_resilient(args, hop);
    const int kinds = (hop.via || !hop.dev.empty() ? 1 : 0) + (hop.blackhole ? 1 : 0) +
                      (hop.group.empty() ? 0 : 1);
    if (kinds != 1) {
        args.refuse("a nexthop has either via or dev (or both), or group, or blackhole");
    }
    if (hop.on_link && (!hop.via || hop.dev.empty())) {
        args.refuse("on_link is said of a gateway (via) on a device (dev)");
    }
    return hop;
}

Result<Body> change_nexthop(Context& context, Args& args, bool replace) {
    const auto id = args.need("id", args.integer<std::uint32_t>("id", 1));
    const config::NextHop hop = read_nexthop(args);
    const std::uint8_t protocol = args.route_protocol("protocol").value_or(0);
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.add_nexthop(context.netns, id, hop, replace, protocol));
}

Result<Body> nexthop_add(Context& context, Args& args) {
    return change_nexthop(context, args, false);
}
Result<Body> nexthop_replace(Context& context, Args& args) {
    return change_nexthop(context, args, true);
}

Result<Body> nexthop_del(Context& context, Args& args) {
    const auto id = args.need("id", args.integer<std::uint32_t>("id", 1));
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.delete_nexthop(context.netns, id));
}

Result<Body> nexthop_flush(Context& context, Args& args) {
    const auto protocol = args.route_protocol("protocol");
    if (args.error()) {
        return refused(args);
    }
    const auto removed =
        context.controller.flush_nexthops(context.netns, {RouteOwner::kCli, protocol});
    if (!removed) {
        return std::unexpected(removed.error());
    }
    return Body::of({{"removed", *removed}});
}

}  // namespace

std::span<const Command> nexthop_commands() {
    static const std::vector<std::string_view> kArgs{"id",
                                                     "via",
                                                     "dev",
                                                     "on_link",
                                                     "blackhole",
                                                     "group",
                                                     "resilient",
                                                     "buckets",
                                                     "idle_timer_ms",
                                                     "protocol"};
    static const std::array<Command, 5> kCommands{{
        {"nexthop", "show", {"id", "protocol"}, nexthop_show},
        {"nexthop", "add", kArgs, nexthop_add},
        {"nexthop", "replace", kArgs, nexthop_replace},
        {"nexthop", "del", {"id"}, nexthop_del},
        {"nexthop", "flush", {"protocol"}, nexthop_flush},
    }};
    return kCommands;
}

}  // namespace sluice::control
