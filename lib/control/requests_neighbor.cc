// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_table.h"
#include "net/address.h"

namespace sluice::control {
namespace {

Json neighbor_json(const NeighborInfo& neighbor) {
    return {{"address", neighbor.address.to_string()},
            {"family", net::to_string(neighbor.address.family())},
            {"dev", neighbor.netdev},
            {"lladdr", neighbor.lladdr ? Json(neighbor.lladdr->to_string()) : Json()},
            {"state", neighbor.state}};
}

Result<Body> neigh_show(Context& context, Args& args) {
    const auto dev = args.text("dev");
    const auto family = args.family("family");
    if (args.error()) {
        return refused(args);
    }
    if (dev) {
        if (const auto link = context.controller.link(context.netns, *dev); !link) {
            return std::unexpected(link.error());
        }
    }
    auto neighbors = context.controller.neighbors(context.netns);
    if (neighbors) {
        std::erase_if(*neighbors, [&](const NeighborInfo& neighbor) {
            return (dev && neighbor.netdev != *dev) ||
                   (family && neighbor.address.family() != *family);
        });
    }
    return array_of(std::move(neighbors), neighbor_json);
}

Result<Body> neigh_add(Context& context, Args& args) {
    const auto address = args.need("address", args.address("address"));
    const auto dev = args.need("dev", args.text("dev"));
    const auto lladdr = args.need("lladdr", args.mac("lladdr"));
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.add_neighbor(context.netns, dev, address, lladdr));
}

Result<Body> neigh_del(Context& context, Args& args) {
    const auto address = args.need("address", args.address("address"));
    const auto dev = args.need("dev", args.text("dev"));
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.delete_neighbor(context.netns, dev, address));
}

Result<Body> neigh_flush(Context& context, Args& args) {
    const auto dev = args.text("dev");
    if (args.error()) {
        return refused(args);
    }
    return removed(context, context.controller.flush_neighbors(context.netns, dev.value_or("")));
}

}  // namespace

std::span<const Command> neighbor_commands() {
    static const std::array<Command, 4> kCommands{{
        {"neigh", "show", {"dev", "family"}, neigh_show},
        {"neigh", "add", {"address", "dev", "lladdr"}, neigh_add},
        {"neigh", "del", {"address", "dev"}, neigh_del},
        {"neigh", "flush", {"dev"}, neigh_flush},
    }};
    return kCommands;
}

}  // namespace sluice::control
