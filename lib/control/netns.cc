// SPDX-License-Identifier: BSD-3-Clause
#include "control/netns.h"

#include <utility>

#include "base/check.h"
#include "control/multipath.h"
#include "control/nexthop_objects.h"
#include "control/policies.h"

namespace sluice::control {
namespace {

constexpr std::size_t kMaxTables = 65535;
constexpr std::uint16_t kMaxNetns = 4095;

}  // namespace

Netns::Netns() = default;
Netns::~Netns() = default;

Result<Netdev*> Netns::get(std::string_view netdev) const {
    Netdev* found = find(netdev);
    if (found == nullptr) {
        return fail(ErrorCode::kNotFound, "no netdev {}", netdev);
    }
    return found;
}

NetnsSet::~NetnsSet() {
    // Rules know tables, whose routes know next-hop objects.
    for (const auto& [name, netns] : by_name_) {
        netns->policies.reset();
    }
    tables_.clear();
}

Result<Netns*> NetnsSet::create(const std::string& name) {
    if (by_name_.contains(name)) {
        return fail(ErrorCode::kExists, "netns {} is there already", name);
    }
    if (free_ids_.empty() && ids_end_ == kMaxNetns) {
        return fail(ErrorCode::kLimit, "all {} netns are in use", kMaxNetns);
    }
    auto netns = std::make_unique<Netns>();
    netns->name = name;
    auto main = table(*netns, config::kMainTable);
    if (!main) {
        return std::unexpected(main.error());
    }
    netns->main = *main;
    if (free_ids_.empty()) {
        netns->id = NetnsId{ids_end_++};
    } else {
        netns->id = free_ids_.front();
        free_ids_.pop_front();
    }
    return by_name_.emplace(name, std::move(netns)).first->second.get();
}

Netns* NetnsSet::find(std::string_view name) const noexcept {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second.get();
}

Result<Netns*> NetnsSet::get(std::string_view name) const {
    Netns* found = find(name);
    if (found == nullptr) {
        return fail(ErrorCode::kNotFound, "no netns {}", name);
    }
    return found;
}

std::unique_ptr<Netns> NetnsSet::detach(Netns& netns) {
    const auto it = by_name_.find(netns.name);
    SLUICE_CHECK(it != by_name_.end() && it->second.get() == &netns);
    auto taken = std::move(it->second);
    by_name_.erase(it);
    return taken;
}

void NetnsSet::destroy(std::unique_ptr<Netns> netns) {
    netns->policies->clear();
    netns->nexthops->clear();
    netns->multipath->clear();
    for (const auto& [id, table] : netns->tables) {
        const std::uint16_t index = table->v4.index();
        tables_[index].reset();
        free_tables_.push_back(index);
    }
    free_ids_.push_back(netns->id);
}

Result<Table*> NetnsSet::table(Netns& netns, std::uint32_t id) {
    if (Table* there = find_table(netns, id); there != nullptr) {
        return there;
    }
    if (free_tables_.empty() && tables_.size() == kMaxTables) {
        return fail(ErrorCode::kLimit, "all {} routing tables are in use", kMaxTables);
    }
    fib::LpmOptions options4;
    options4.max_routes = limits_.ipv4_routes;
    auto lpm4 = fib::Ipv4Lpm::create(options4, reclaimer_);
    if (!lpm4) {
        return std::unexpected(lpm4.error());
    }
    fib::LpmOptions options6;
    options6.max_routes = limits_.ipv6_routes;
    auto lpm6 = fib::Ipv6Lpm::create(options6, reclaimer_);
    if (!lpm6) {
        return std::unexpected(lpm6.error());
    }
    std::uint16_t index = 0;
    if (free_tables_.empty()) {
        index = static_cast<std::uint16_t>(tables_.size());
        tables_.emplace_back();
    } else {
        index = free_tables_.back();
        free_tables_.pop_back();
    }
    tables_[index].reset(new Table{.netns = &netns,
                                   .id = id,
                                   .v4 = Rib<net::Ipv4Addr>(std::move(*lpm4), index),
                                   .v6 = Rib<net::Ipv6Addr>(std::move(*lpm6), index)});
    netns.tables.emplace(id, tables_[index].get());
    return tables_[index].get();
}

}  // namespace sluice::control
