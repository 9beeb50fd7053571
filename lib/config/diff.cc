// SPDX-License-Identifier: BSD-3-Clause
#include "config/diff.h"

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "config/netns_diff.h"
#include "config/validate.h"

namespace sluice::config {
namespace {

std::vector<ConfigError> restart_needed(const Config& running, const Config& wanted) {
    Findings findings{wanted};
    const auto check = [&](bool same, Position at, std::string_view key) {
        if (!same) {
            findings.add(
                at, "{}: a change needs a restart: put it back, or restart the instance", key);
        }
    };
    check(running.instance == wanted.instance, wanted.instance_at, "instance");
    check(running.dpdk.lcores == wanted.dpdk.lcores, wanted.dpdk.at, "dpdk.lcores");
    check(running.dpdk.hugepages == wanted.dpdk.hugepages, wanted.dpdk.at, "dpdk.hugepages");
    check(running.dpdk.memory_mb == wanted.dpdk.memory_mb, wanted.dpdk.at, "dpdk.memory-mb");
    check(running.dpdk.extra_args == wanted.dpdk.extra_args, wanted.dpdk.at, "dpdk.extra-args");
    check(running.workers.burst == wanted.workers.burst, wanted.workers.at, "workers.burst");
    check(running.workers.cache_entries == wanted.workers.cache_entries,
          wanted.workers.at,
          "workers.cache-entries");
    check(running.control.socket == wanted.control.socket, wanted.control.at, "control.socket");
    check(running.limits == wanted.limits, wanted.limits.at, "limits");
    return findings.take();
}

class Differ {
public:
    Differ(const Config& running, const Config& wanted)
        : running_(running), wanted_(wanted), lifetimes_(running, wanted) {
        const auto take = [&](std::string_view name, const Netns& /*netns*/) {
            netns_.try_emplace(name,
                               name,
                               find_netns(running_, name),
                               find_netns(wanted_, name),
                               lifetimes_,
                               steps_);
        };
        for_each_netns(running, take);
        for_each_netns(wanted, take);
    }

    std::vector<Step> run() {
        using N = NetnsDiffer;
        for_all({&N::remove_rules,
                 &N::remove_routes,
                 &N::remove_nexthops,
                 &N::remove_neighbors,
                 &N::remove_addresses,
                 &N::leave_vrfs,
                 &N::remove_vrfs,
                 &N::remove_vlans,
                 &N::remove_ports});
        move();
        change_instance();
        for_all({&N::lower_vlans, &N::change_ports});
        change_arrived();
        for_all({&N::raise_vlans, &N::change_hash});
        for_all({&N::add_ports,
                 &N::add_vlans,
                 &N::add_vrfs,
                 &N::enter_vrfs,
                 &N::add_addresses,
                 &N::add_neighbors,
                 &N::add_nexthops,
                 &N::add_routes,
                 &N::add_rules,
                 &N::remove_late_nexthops});
        return std::move(steps_);
    }

private:
    void for_all(std::initializer_list<void (NetnsDiffer::*)()> pieces) {
        for (const auto piece : pieces) {
            for (auto& [name, netns] : netns_) {
                (netns.*piece)();
            }
        }
    }

    void move() {
        for (const auto& [name, netns] : wanted_.netns) {
            if (!running_.netns.contains(name)) {
                steps_.push_back({name, AddNetns{}});
            }
        }
        for (const PortMove& move : lifetimes_.moves()) {
            steps_.push_back(
                {std::string{move.from}, MovePort{std::string{move.name}, std::string{move.to}}});
        }
        for (const auto& [name, netns] : running_.netns) {
            if (!wanted_.netns.contains(name)) {
                steps_.push_back({name, RemoveNetns{}});
            }
        }
    }

    void change_instance() {
        if (instance_of(running_) != instance_of(wanted_)) {
            steps_.push_back({std::string{kDefaultNetns}, instance_of(wanted_)});
        }
    }

    void change_arrived() {
        for (const PortMove& move : lifetimes_.moves()) {
            const std::string name{move.name};
            netns_.at(move.to).change_arrived(
                name, find_netns(running_, move.from)->ports.at(name).settings);
        }
    }

    const Config& running_;
    const Config& wanted_;
    Lifetimes lifetimes_;
    std::map<std::string_view, NetnsDiffer> netns_;
    std::vector<Step> steps_;
};

}  // namespace

std::expected<std::vector<Step>, std::vector<ConfigError>> diff(const Config& running,
                                                                const Config& wanted) {
    if (auto errors = restart_needed(running, wanted); !errors.empty()) {
        return std::unexpected(std::move(errors));
    }
    return Differ{running, wanted}.run();
}

ChangeInstance instance_of(const Config& config) {
    return {.icmp = config.icmp,
            .forward_class_e = config.forward_class_e,
            .idle = config.workers.idle,
            .cache = config.workers.cache};
}

Config starting_point(const Config& wanted) {
    Config blank;
    blank.origin = wanted.origin;
    blank.instance = wanted.instance;
    blank.dpdk = wanted.dpdk;
    blank.workers = wanted.workers;
    blank.control = wanted.control;
    blank.limits = wanted.limits;
    blank.icmp = wanted.icmp;
    blank.forward_class_e = wanted.forward_class_e;
    return blank;
}

}  // namespace sluice::config
