// SPDX-License-Identifier: BSD-3-Clause
// VRFs: routing domains inside a netns, each with a table of its own.
#include <algorithm>
#include <set>
#include <utility>

#include "control/engine.h"
#include "control/names.h"
#include "control/policies.h"

namespace sluice::control {

using fib::NetdevKind;

namespace {

// iproute2's names for tables: local, main, default. They are no VRF's.
constexpr std::uint32_t kFirstOwnTable = 253;
constexpr std::uint32_t kLastOwnTable = 255;

}  // namespace

Result<void> Engine::add_vrf(Netns& netns, const std::string& name, std::uint32_t table) {
    if (auto ok = check_name(name); !ok) {
        return ok;
    }
    if (netns.find(name) != nullptr) {
        return fail(ErrorCode::kExists, "netdev {} is there already", name);
    }
    if (table == 0 || (table >= kFirstOwnTable && table <= kLastOwnTable)) {
        return fail(ErrorCode::kInvalid,
                    "table {} is no VRF's: 0 is none, and 253 to 255 have names of their own",
                    table);
    }
    for (const auto& [other, netdev] : netns.netdevs) {
        if (netdev->kind == NetdevKind::kVrf && netdev->table->id == table) {
            return fail(ErrorCode::kExists, "table {} is that of VRF {} already", table, other);
        }
    }
    const Changes::Scope change(changes_);
    const auto made_table = netns_.table(netns, table);
    if (!made_table) {
        return std::unexpected(made_table.error());
    }
    const auto made = make_netdev(netns, name, NetdevKind::kVrf);
    if (!made) {
        return std::unexpected(made.error());
    }
    (*made)->table = *made_table;
    netdevs_.publish_domain(**made);
    changes_.all(netns);
    return {};
}

Result<void> Engine::check_master(const Netdev& netdev, const Netdev* master) const {
    if (!netdev.is_link()) {
        return fail(ErrorCode::kUnsupported, "{} cannot be a member of a VRF", netdev.name);
    }
    const Netdev& domain = master != nullptr ? *master : *netdev.netns->lo;
    if (&domain == &netdev.domain()) {
        return {};
    }
    const std::string_view where =
        master != nullptr ? std::string_view{domain.name} : "the default domain";
    for (const auto& own : netdev.addresses) {
        if (const Netdev* other = Netdevs::owner_of(domain, own.address); other != nullptr) {
            return fail(ErrorCode::kExists,
                        "{} has the address {}, which {} has in {}",
                        netdev.name,
                        own.address.to_string(),
                        other->name,
                        where);
        }
    }
    return {};
}

Result<void> Engine::set_vrf(Netns& netns, const std::string& name, const std::string& vrf) {
    const auto netdev = netns.get(name);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    Netdev* master = nullptr;
    if (!vrf.empty()) {
        const auto found = netns.get(vrf);
        if (!found) {
            return std::unexpected(found.error());
        }
        if ((*found)->kind != NetdevKind::kVrf) {
            return fail(ErrorCode::kInvalid, "{} is no VRF", vrf);
        }
        master = *found;
    }
    if (auto ok = check_master(**netdev, master); !ok) {
        return ok;
    }
    return change_master(**netdev, master);
}

Result<void> Engine::change_master(Netdev& netdev, Netdev* master) {
    if (netdev.master == master) {
        return {};
    }
    const Changes::Scope change(changes_);
    Netdev& before = netdev.domain();
    const auto enter = [&](Netdev* into) {
        // Nothing is left in the table where it was: a removal does not fail.
        static_cast<void>(sync_connected(netdev, netdev.addresses, {}));
        netdev.master = into;
        return sync_connected(netdev, {}, netdev.addresses);
    };
    Netdev* const old = netdev.master;
    if (auto ok = enter(master); !ok) {
        static_cast<void>(enter(old));  // it had room there
        return ok;
    }
    exceptions_.flush_netdev(netdev.id);
    neighbors_.table().flush(netdev.id, true);
    netdevs_.publish_domain(before);
    netdevs_.publish_domain(netdev.domain());
    reassess(netdev);
    changes_.all(*netdev.netns);
    netdev.netns->policies->collect();
    return {};
}

Result<void> Engine::release_members(Netns& netns, const std::set<Netdev*>& going) {
    std::vector<std::pair<Netdev*, Netdev*>> members;  // with their VRFs
    for (const auto& [name, netdev] : netns.netdevs) {
        if (going.contains(netdev->master) && !going.contains(netdev)) {
            members.emplace_back(netdev, netdev->master);
        }
    }
    for (auto it = members.begin(); it != members.end(); ++it) {
        auto ok = check_master(*it->first, nullptr);
        if (ok) {
            ok = change_master(*it->first, nullptr);
        }
        if (!ok) {
            while (it != members.begin()) {
                --it;
                static_cast<void>(change_master(*it->first, it->second));
            }
            return ok;
        }
    }
    return {};
}

}  // namespace sluice::control
