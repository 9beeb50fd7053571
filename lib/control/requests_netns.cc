// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/result.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_table.h"

namespace sluice::control {
namespace {

Json netns_json(const NetnsInfo& netns) {
    return {{"name", netns.name},
            {"netdevs", netns.netdevs},
            {"ipv4_routes", netns.routes4},
            {"ipv6_routes", netns.routes6},
            {"ipv4_generation", netns.generation4},
            {"ipv6_generation", netns.generation6}};
}

Result<Body> netns_show(Context& context, Args& /*args*/) {
    return array_of(context.controller.netns(), netns_json);
}

Result<Body> netns_add(Context& context, Args& args) {
    const auto name = args.need("name", args.new_name("name"));
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.add_netns(name));
}

Result<Body> netns_del(Context& context, Args& args) {
    const auto name = args.need("name", args.text("name"));
    if (args.error()) {
        return refused(args);
    }
    return settled(context, context.controller.delete_netns(name));
}

Result<Body> vrf_show(Context& context, Args& /*args*/) {
    return array_of(context.controller.vrfs(context.netns), [](const VrfInfo& vrf) {
        return Json{{"name", vrf.name}, {"table", vrf.table}, {"interfaces", vrf.interfaces}};
    });
}

}  // namespace

bool netns_exists(const Controller& controller, std::string_view netns) {
    return std::ranges::any_of(controller.netns(),
                               [&](const NetnsInfo& info) { return info.name == netns; });
}

std::unexpected<Error> no_netns(std::string_view netns) {
    return fail(ErrorCode::kNotFound, "netns {:.80} does not exist", netns);
}

std::optional<std::uint32_t> table_or_vrf(Context& context, Args& args) {
    const auto table = args.table("table");
    const auto name = args.text("vrf");
    if (args.error() || !name) {
        return table;
    }
    if (table) {
        args.refuse("give either table or vrf");
        return table;
    }
    const auto vrfs = context.controller.vrfs(context.netns);
    if (!vrfs) {
        args.refuse(vrfs.error());
        return table;
    }
    const auto at = std::ranges::find(*vrfs, *name, &VrfInfo::name);
    if (at == vrfs->end()) {
        args.refuse({ErrorCode::kNotFound, fmt::format("vrf {:.80} does not exist", *name)});
        return table;
    }
    return at->table;
}

std::span<const Command> netns_commands() {
    static const std::array<Command, 4> kCommands{{
        {"netns", "show", {}, netns_show},
        {"netns", "add", {"name"}, netns_add},
        {"netns", "del", {"name"}, netns_del},
        {"vrf", "show", {}, vrf_show},
    }};
    return kCommands;
}

}  // namespace sluice::control
