// SPDX-License-Identifier: BSD-3-Clause
// Random configurations, and each step between them tried on a model that refuses what the engine
// must: the order of the steps is right when none is refused, and complete when the model then is
// what was wanted.
#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "config/netns.h"
#include "config/nexthops.h"
#include "config_testing.h"
#include "diff_testing.h"

namespace sluice::config {
namespace {

class Replay {
public:
    explicit Replay(Config running) : config_(std::move(running)) {}

    void run(const std::vector<Step>& found) {
        for (const Step& step : found) {
            SCOPED_TRACE(step.netns + ": " + std::visit(Describe{}, step.action));
            here_ = step.netns;
            std::visit([this](const auto& action) { apply(action); }, step.action);
            check_mtus();
        }
    }
    const Config& config() const { return config_; }

private:
    Netns& netns() {
        EXPECT_TRUE(here_ == kDefaultNetns || config_.netns.contains(here_));
        return here_ == kDefaultNetns ? config_.default_netns : config_.netns[here_];
    }

    bool is_taken(const Netns& n, const std::string& name) {
        return n.ports.contains(name) || n.vlans.contains(name) || n.vrfs.contains(name);
    }
    std::vector<Address>* addresses(const std::string& name) {
        Netns& n = netns();
        if (const auto port = n.ports.find(name); port != n.ports.end()) {
            return &port->second.addresses;
        }
        const auto vlan = n.vlans.find(name);
        return vlan == n.vlans.end() ? nullptr : &vlan->second.addresses;
    }
    std::string vrf_of(const std::string& name) {
        const Masters masters = masters_of(netns());
        const auto it = masters.find(name);
        return it == masters.end() ? "" : std::string{it->second};
    }
    void expect_bare(const std::string& name) {
        const Netns& n = netns();
        EXPECT_EQ(vrf_of(name), "");
        for (const Route& route : n.routes) {
            EXPECT_NE(route.dev, name);
        }
        for (const auto& [id, hop] : n.nexthops) {
            EXPECT_NE(hop.dev, name) << id;
        }
        for (const Neighbor& neighbor : n.neighbors) {
            EXPECT_NE(neighbor.dev, name);
        }
        if (const auto* own = addresses(name); own != nullptr) {
            EXPECT_TRUE(own->empty());
        }
    }
    void expect_no_vlans(const std::string& port) {
        for_each_netns(config_, [&](std::string_view own, const Netns& n) {
            for (const auto& [name, vlan] : n.vlans) {
                EXPECT_FALSE(vlan.link == port && netns_of_port(vlan, own) == here_) << name;
            }
        });
    }
    void check_mtus() {
        for_each_netns(config_, [&](std::string_view own, const Netns& n) {
            for (const auto& [name, vlan] : n.vlans) {
                const Netns* there = find_netns(config_, netns_of_port(vlan, own));
                ASSERT_NE(there, nullptr);
                const Port* port = find_port(*there, vlan.link);
                ASSERT_NE(port, nullptr) << name;
                EXPECT_LE(vlan.settings.mtu, port->settings.mtu) << name;
            }
        });
    }
    void expect_valid_hops() {
        const Netns& n = netns();
        const auto ipv4_only = ipv4_gateways(n.nexthops);
        for (const auto& [id, hop] : n.nexthops) {
            EXPECT_TRUE(hop.dev.empty() || addresses(hop.dev) != nullptr) << id;
            for (const auto& [member, weight] : hop.group) {
                ASSERT_TRUE(n.nexthops.contains(member)) << id << " has " << member;
                EXPECT_FALSE(is_group(n.nexthops.at(member)));
                EXPECT_TRUE(hop.group.size() == 1 || !n.nexthops.at(member).blackhole) << id;
            }
        }
        for (const Route& route : n.routes) {
            if (route.nexthop) {
                ASSERT_TRUE(n.nexthops.contains(*route.nexthop)) << route.to.to_string();
                EXPECT_TRUE(route.to.is_v4() || !ipv4_only.contains(*route.nexthop));
            }
        }
    }

    void apply(const ChangeInstance& a) {
        config_.icmp = a.icmp;
        config_.forward_class_e = a.forward_class_e;
        config_.workers.idle = a.idle;
        config_.workers.cache = a.cache;
    }
    void apply(const AddNetns&) { EXPECT_TRUE(config_.netns.emplace(here_, Netns{}).second); }
    void apply(const RemoveNetns&) {
        Netns gone = netns();
        gone.multipath_hash4 = gone.multipath_hash6 = {};
        EXPECT_EQ(gone, Netns{});
        config_.netns.erase(here_);
    }
    void apply(const MovePort& a) {
        expect_bare(a.name);
        expect_no_vlans(a.name);
        auto port = netns().ports.extract(a.name);
        ASSERT_FALSE(port.empty());
        here_ = a.to;
        EXPECT_FALSE(is_taken(netns(), a.name));
        netns().ports.insert(std::move(port));
    }
    void apply(const AddVrf& a) {
        EXPECT_FALSE(is_taken(netns(), a.name));
        for (const auto& [name, vrf] : netns().vrfs) {
            EXPECT_NE(vrf.table, a.table);
        }
        netns().vrfs[a.name].table = a.table;
    }
    void apply(const RemoveVrf& a) {
        expect_bare(a.name);
        ASSERT_TRUE(netns().vrfs.contains(a.name));
        EXPECT_TRUE(netns().vrfs.at(a.name).interfaces.empty());
        netns().vrfs.erase(a.name);
    }
    void apply(const SetVrf& a) {
        ASSERT_NE(addresses(a.netdev), nullptr);
        EXPECT_TRUE(addresses(a.netdev)->empty());
        EXPECT_NE(vrf_of(a.netdev), a.vrf);
        for (auto& [name, vrf] : netns().vrfs) {
            std::erase(vrf.interfaces, a.netdev);
        }
        if (!a.vrf.empty()) {
            ASSERT_TRUE(netns().vrfs.contains(a.vrf));
            netns().vrfs.at(a.vrf).interfaces.push_back(a.netdev);
        }
    }
    void apply(const AddPort& a) {
        EXPECT_FALSE(is_taken(netns(), a.name));
        for_each_netns(config_, [&](std::string_view, const Netns& n) {
            for (const auto& [name, port] : n.ports) {
                EXPECT_NE(port.device, a.port.device);
            }
        });
        netns().ports[a.name] = a.port;
    }
    void apply(const RemovePort& a) {
        expect_bare(a.name);
        expect_no_vlans(a.name);
        EXPECT_EQ(netns().ports.erase(a.name), 1U);
    }
    void apply(const AddVlan& a) {
        EXPECT_FALSE(is_taken(netns(), a.name));
        for_each_netns(config_, [&](std::string_view own, const Netns& n) {
            for (const auto& [name, vlan] : n.vlans) {
                EXPECT_FALSE(vlan.id == a.vlan.id && vlan.link == a.vlan.link &&
                             netns_of_port(vlan, own) == netns_of_port(a.vlan, here_));
            }
        });
        netns().vlans[a.name] = a.vlan;
    }
    void apply(const RemoveVlan& a) {
        expect_bare(a.name);
        EXPECT_EQ(netns().vlans.erase(a.name), 1U);
    }
    void apply(const ChangeNetdev& a) {
        Netns& n = netns();
        const auto port = n.ports.find(a.name);
        auto& settings =
            port == n.ports.end() ? n.vlans.at(a.name).settings : port->second.settings;
        EXPECT_EQ(settings, a.from);
        settings = a.to;
    }
    void apply(const AddAddress& a) {
        auto* own = addresses(a.netdev);
        ASSERT_NE(own, nullptr);
        const auto check = [&](const std::string& name, const std::vector<Address>& taken) {
            for (const Address& address : taken) {
                EXPECT_FALSE(address.value.address == a.address.address &&
                             vrf_of(name) == vrf_of(a.netdev))
                    << name;
            }
        };
        for (const auto& [name, port] : netns().ports) {
            check(name, port.addresses);
        }
        for (const auto& [name, vlan] : netns().vlans) {
            check(name, vlan.addresses);
        }
        own->push_back({a.address, {}});
    }
    void apply(const RemoveAddress& a) {
        ASSERT_NE(addresses(a.netdev), nullptr);
        EXPECT_EQ(std::erase(*addresses(a.netdev), Address{a.address, {}}), 1U);
    }
    void apply(const SetNeighbor& a) {
        ASSERT_NE(addresses(a.neighbor.dev), nullptr);
        std::erase_if(netns().neighbors, [&](const Neighbor& n) {
            return n.to == a.neighbor.to && n.dev == a.neighbor.dev;
        });
        netns().neighbors.push_back(a.neighbor);
    }
    void apply(const RemoveNeighbor& a) {
        EXPECT_EQ(std::erase(netns().neighbors, a.neighbor), 1U);
    }
    void apply(const AddNextHop& a) {
        EXPECT_TRUE(netns().nexthops.emplace(a.id, a.hop).second);
        expect_valid_hops();
    }
    void apply(const RemoveNextHop& a) {
        EXPECT_EQ(netns().nexthops.erase(a.id), 1U);
        expect_valid_hops();
    }
    void apply(const ReplaceNextHop& a) {
        ASSERT_TRUE(netns().nexthops.contains(a.id));
        EXPECT_EQ(netns().nexthops.at(a.id), a.from);
        EXPECT_EQ(is_group(a.from), is_group(a.to));
        EXPECT_EQ(a.from.resilient ? a.from.resilient->buckets : 0,
                  a.to.resilient ? a.to.resilient->buckets : 0);
        netns().nexthops[a.id] = a.to;
        expect_valid_hops();
    }
    void apply(const AddRoute& a) {
        for (const Route& route : netns().routes) {
            EXPECT_FALSE(route.to == a.route.to && route.metric == a.route.metric &&
                         route.table == a.route.table);
        }
        EXPECT_TRUE(a.route.dev.empty() || addresses(a.route.dev) != nullptr ||
                    netns().vrfs.contains(a.route.dev));
        netns().routes.push_back(a.route);
        expect_valid_hops();
    }
    void apply(const RemoveRoute& a) { EXPECT_EQ(std::erase(netns().routes, a.route), 1U); }
    void apply(const ReplaceRoute& a) {
        EXPECT_EQ(std::erase(netns().routes, a.from), 1U);
        apply(AddRoute{a.to});
    }
    void apply(const AddRule& a) {
        auto& rules = netns().routing_policy;
        EXPECT_EQ(std::count(rules.begin(), rules.end(), a.rule), 0);
        rules.push_back(a.rule);
    }
    void apply(const RemoveRule& a) { EXPECT_EQ(std::erase(netns().routing_policy, a.rule), 1U); }
    void apply(const SetMultipathHash& a) {
        Netns& n = netns();
        auto& hash = a.family == net::Family::kIpv4 ? n.multipath_hash4 : n.multipath_hash6;
        EXPECT_EQ(hash, a.from);
        hash = a.to;
    }

    Config config_;
    std::string here_;
};

/// What a model says, without the orders that mean nothing.
void normalize(Netns& n) {
    for (auto& [name, port] : n.ports) {
        std::ranges::sort(port.addresses, {}, &Address::value);
    }
    for (auto& [name, vlan] : n.vlans) {
        std::ranges::sort(vlan.addresses, {}, &Address::value);
    }
    for (auto& [name, vrf] : n.vrfs) {
        std::ranges::sort(vrf.interfaces);
    }
    std::ranges::sort(
        n.routes, {}, [](const Route& r) { return std::tuple{r.to, r.table, r.metric}; });
    std::ranges::sort(n.neighbors, {}, [](const Neighbor& v) { return std::tuple{v.dev, v.to}; });
    std::ranges::stable_sort(
        n.routing_policy, {}, [](const Rule& r) { return std::tuple{r.family, r.priority}; });
}

Config normalized(Config config) {
    normalize(config.default_netns);
    for (auto& [name, netns] : config.netns) {
        normalize(netns);
    }
    return config;
}

/// Draws texts out of few names, so that two of them have much in common and much in each other's
/// way.
class RandomText {
public:
    explicit RandomText(std::uint32_t seed) : engine_(seed) {}

    std::string run() {
        for (unsigned d = 0; d < 5; ++d) {
            devices_[d] = below(4);  // the netns that has it; 3: none
        }
        std::string text = "version: 1\n" + netns(0, "");
        text += "netns:\n";
        for (unsigned n = 1; n < 3; ++n) {
            if (below(4) != 0 || std::ranges::find(devices_, n) != devices_.end()) {
                text += fmt::format("  {}:\n    multipath-hash: {{ipv4: {{policy: l{}}}}}\n",
                                    n == 1 ? "a" : "b",
                                    3 + below(2)) +
                        netns(n, "    ");
            }
        }
        return text;
    }

private:
    unsigned below(unsigned limit) { return static_cast<unsigned>(engine_() % limit); }

    std::string netns(unsigned n, std::string_view indent) {
        text_.clear();
        indent_ = indent;
        netdevs_.clear();
        std::set<std::string> ports;
        line("ports:");
        for (unsigned d = 0; d < 5; ++d) {
            const auto name = fmt::format("p{}", (d + (below(8) == 0 ? 1 : 0)) % 3);
            if (devices_[d] == n && ports.insert(name).second) {
                netdev(name, fmt::format("device: d{}, mtu: {}", d, 1400 + 100 * below(2)), d);
            }
        }
        line("vlans:");
        unsigned number = 10;
        for (const std::string& port : ports) {
            for (unsigned v = 1; v < 3; ++v) {
                if (below(2) == 0) {
                    const auto id = v + 2 * below(2);
                    netdev(fmt::format("{}.v{}", port, v),
                           fmt::format(
                               "link: {}, id: {}{}", port, id, below(2) == 0 ? ", mtu: 1400" : ""),
                           number);
                }
                ++number;
            }
        }
        vrfs();
        if (!netdevs_.empty()) {
            hops_and_routes();
        }
        rules();
        return text_;
    }
    void line(std::string_view text) { text_ += fmt::format("{}{}\n", indent_, text); }
    void netdev(const std::string& name, std::string_view keys, unsigned number) {
        // The third octet is the device's or the vlan's, so that subnets come and go together.
        const auto host = 1 + below(2);
        const auto addresses =
            below(4) == 0
                ? fmt::format("10.0.{}.{}/24", number, host)
                : fmt::format("10.0.{}.{}/24, \"fd00:{}::{}/64\"", number, host, number, host);
        line(fmt::format("  {}: {{{}, addresses: [{}]}}", name, keys, addresses));
        netdevs_.push_back(name);
    }
    std::string any_netdev() { return netdevs_[below(static_cast<unsigned>(netdevs_.size()))]; }
    void vrfs() {
        line("vrfs:");
        auto free = netdevs_;
        vrfs_.clear();
        for (const std::string name : {"blue", "red"}) {
            if (below(3) == 0) {
                continue;
            }
            std::string members;
            for (unsigned i = 0; i < below(3) && !free.empty(); ++i) {
                const auto which = free.begin() + below(static_cast<unsigned>(free.size()));
                members += (members.empty() ? "" : ", ") + *which;
                free.erase(which);
            }
            const auto table = (name == "blue" ? 100 : 200) + below(2);
            line(fmt::format("  {}: {{table: {}, interfaces: [{}]}}", name, table, members));
            vrfs_.push_back(name);
        }
    }
    void hops_and_routes() {
        line("nexthops:");
        std::string v4;
        std::string v6;
        std::string blackholes;
        std::vector<unsigned> safe;  // for IPv6 routes
        std::vector<unsigned> ids;
        const auto member = [&](std::string& group, unsigned id) {
            group += fmt::format("{}{}: {}", group.empty() ? "" : ", ", id, 1 + below(2));
        };
        for (unsigned id = 1; id < 6; ++id) {
            switch (below(5)) {
                case 0:
                    break;
                case 1:
                    line(fmt::format("  {}: {{type: blackhole}}", id));
                    blackholes = fmt::format("{}: 1", id);
                    safe.push_back(id);
                    ids.push_back(id);
                    break;
                case 2:
                    line(fmt::format("  {}: {{via: \"fe80::9\", dev: {}}}", id, any_netdev()));
                    member(v6, id);
                    safe.push_back(id);
                    ids.push_back(id);
                    break;
                default:
                    line(fmt::format(
                        "  {}: {{via: 9.9.9.9, dev: {}, on-link: true}}", id, any_netdev()));
                    member(v4, id);
                    ids.push_back(id);
            }
        }
        for (unsigned id = 5; id < 9; ++id) {
            const auto kind = below(4);
            const auto& group = kind == 0 ? v4 : kind == 1 ? v6 : blackholes;
            if (group.empty() || std::ranges::find(ids, id) != ids.end()) {
                continue;
            }
            const auto resilient =
                below(3) == 0 ? fmt::format(", resilient: {{buckets: {}}}", 64 * (1 + below(2)))
                              : "";
            line(fmt::format("  {}: {{group: {{{}}}{}}}", id, group, resilient));
            ids.push_back(id);
            if (kind != 0) {
                safe.push_back(id);
            }
        }
        line("routes:");
        for (unsigned r = 0; r < 6; ++r) {
            const auto place = fmt::format("metric: {}, table: {}", below(2), r < 3 ? 254 : 7);
            if (!ids.empty() && below(3) != 0) {
                line(fmt::format("  - {{to: 20.{}.0.0/16, nexthop: {}, {}}}",
                                 r,
                                 ids[below(static_cast<unsigned>(ids.size()))],
                                 place));
            } else if (!vrfs_.empty() && below(2) == 0) {
                line(fmt::format("  - {{to: 20.{}.0.0/16, vrf: {}, {}}}",
                                 r,
                                 vrfs_[below(static_cast<unsigned>(vrfs_.size()))],
                                 place));
            } else {
                line(fmt::format("  - {{to: 20.{}.0.0/16, dev: {}, {}}}", r, any_netdev(), place));
            }
            if (!safe.empty() && below(2) == 0) {
                line(fmt::format("  - {{to: \"2001:db8:{}::/48\", nexthop: {}, {}}}",
                                 r,
                                 safe[below(static_cast<unsigned>(safe.size()))],
                                 place));
            }
        }
        line(fmt::format("neighbors: [{{to: 10.77.0.9, dev: {}, lladdr: 02:00:00:00:00:0{}}}]",
                         any_netdev(),
                         below(9)));
    }
    void rules() {
        line("routing-policy:");
        std::set<std::string> drawn;
        for (unsigned r = 0; r < below(6); ++r) {
            const auto rule = fmt::format("  - {{priority: {}, family: {}, table: {}}}",
                                          below(2),
                                          below(4) == 0 ? "ipv6" : "ipv4",
                                          7 + below(3));
            if (drawn.insert(rule).second) {
                line(rule);
            }
        }
    }

    std::mt19937 engine_;
    std::array<unsigned, 5> devices_{};
    std::string text_;
    std::string_view indent_;
    std::vector<std::string> netdevs_;
    std::vector<std::string> vrfs_;
};

class Replayed : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Replayed, StepsBetweenRandomConfigurationsArePossibleAndComplete) {
    std::size_t loadable = 0;
    std::size_t moves = 0;
    std::size_t shrunk = 0;
    Config running = starting_point(loaded("version: 1\n"));
    for (std::uint32_t i = 0; i < 400; ++i) {
        const std::uint32_t seed = GetParam() * 1000 + i;
        SCOPED_TRACE(seed);
        const auto wanted = load(RandomText{seed}.run(), "t.yaml");
        if (!wanted) {
            continue;  // two vlans drew one id, say
        }
        ++loadable;
        const auto found = diff(running, *wanted);
        ASSERT_TRUE(found.has_value());
        Replay replay{running};
        replay.run(*found);
        ASSERT_EQ(normalized(replay.config()), normalized(*wanted));
        ASSERT_FALSE(HasFailure());
        EXPECT_TRUE(diff(*wanted, *wanted)->empty());
        EXPECT_EQ(loaded(emit(*wanted)), *wanted);
        for (const Step& step : *found) {
            moves += std::holds_alternative<MovePort>(step.action) ? 1 : 0;
            shrunk += std::holds_alternative<ReplaceNextHop>(step.action) ? 1 : 0;
        }
        running = *wanted;
    }
    EXPECT_GT(loadable, 200U);
    EXPECT_GT(moves, 20U);
    EXPECT_GT(shrunk, 50U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Replayed, testing::Range(1U, 5U));

}  // namespace
}  // namespace sluice::config
