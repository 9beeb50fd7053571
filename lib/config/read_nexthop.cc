// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <bit>
#include <charconv>
#include <string>

#include "config/read_parts.h"

namespace sluice::config {
namespace {

constexpr std::uint64_t kMaxWeight = 65'535;
constexpr std::uint64_t kMaxBuckets = 16'384;
constexpr std::uint64_t kMaxTimerMs = 86'400'000;  // a day

/// "120s", "500ms", "2m".
void read_duration(Reader& r, const Node& node, std::chrono::milliseconds& out) {
    std::string word;
    if (!r.text(node, word)) {
        return;
    }
    std::uint64_t value = 0;
    const char* const end = word.data() + word.size();
    const auto [rest, failure] = std::from_chars(word.data(), end, value);
    const std::string_view unit{rest, end};
    const std::uint64_t factor = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60'000 : 0;
    if (failure != std::errc{} || factor == 0 || value > kMaxTimerMs / factor) {
        r.error(
            node.at, "'{}' is not a time: digits and ms, s or m, at most a day, as in 120s", word);
        return;
    }
    out = std::chrono::milliseconds{value * factor};
}

void read_buckets(Reader& r, const Node& node, ResilientGroup& group) {
    std::uint16_t buckets = 0;
    if (!r.integer(node, buckets, 1, kMaxBuckets)) {
        return;
    }
    if (!std::has_single_bit(buckets)) {
        r.error(node.at, "{} is not a power of two: write 64, 128 and so on", buckets);
        return;
    }
    group.buckets = buckets;
}

constexpr std::array kResilientFields{
    Field<ResilientGroup>{"buckets", read_buckets},
    Field<ResilientGroup>{
        "idle-timer",
        [](Reader& r, const Node& n, ResilientGroup& g) { read_duration(r, n, g.idle_timer); }},
};

/// Keys of a mapping whose keys are numbers.
bool read_id(Reader& r, const Node& key, std::uint32_t& id) {
    Node plain = key;
    plain.quoted = false;  // JSON can only quote its keys
    return r.integer(plain, id, 1);
}

void read_group(Reader& r, const Node& node, NextHop& hop) {
    const auto items = r.map(node);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        std::uint32_t id = 0;
        std::uint32_t weight = 0;
        if (read_id(r, items[i], id) && r.integer(items[i + 1], weight, 1, kMaxWeight)) {
            hop.group.emplace(id, weight);
        }
    }
    if (node.kind != Node::Kind::kBad && items.empty()) {
        r.error(node.at, "a group of nobody: write the ids of its members and their weights");
    }
}

enum class NextHopType : std::uint8_t { kUnicast, kBlackhole };
constexpr std::array<Choice<NextHopType>, 2> kNextHopTypes{{
    {"unicast", NextHopType::kUnicast},
    {"blackhole", NextHopType::kBlackhole},
}};

constexpr std::array kNextHopFields{
    Field<NextHop>{"via",
                   [](Reader& r, const Node& n, NextHop& h) {
                       net::IpAddr via;
                       if (read_gateway(r, n, via)) {
                           h.via = via;
                       }
                   }},
    Field<NextHop>{"dev", [](Reader& r, const Node& n, NextHop& h) { r.name(n, h.dev); }},
    Field<NextHop>{"on-link",
                   [](Reader& r, const Node& n, NextHop& h) { r.boolean(n, h.on_link); }},
    Field<NextHop>{"type",
                   [](Reader& r, const Node& n, NextHop& h) {
                       NextHopType type{};
                       if (r.choice(n, type, kNextHopTypes)) {
                           h.blackhole = type == NextHopType::kBlackhole;
                       }
                   }},
    Field<NextHop>{"group", read_group},
    Field<NextHop>{"resilient",
                   [](Reader& r, const Node& n, NextHop& h) {
                       read_map(r, n, "resilient", kResilientFields, h.resilient.emplace());
                   }},
};

void check_nexthop(Reader& r, const NextHop& hop) {
    const bool has_way = hop.via || !hop.dev.empty() || hop.on_link;
    const int kinds = (has_way ? 1 : 0) + (hop.blackhole ? 1 : 0) + (hop.group.empty() ? 0 : 1);
    if (kinds != 1) {
        r.error(hop.at, "a next hop has either via and dev, or a group, or type: blackhole");
        return;
    }
    if (hop.resilient && hop.group.empty()) {
        r.error(hop.at, "resilient is for groups: add group, or leave it out");
    }
    if (hop.on_link && (!hop.via || hop.dev.empty())) {
        r.error(hop.at,
                "on-link says that via can be reached through dev: add both, or leave it out");
    } else if (hop.via && hop.via->is_v6() && hop.via->v6().is_link_local() && hop.dev.empty()) {
        r.error(hop.at,
                "the link-local gateway {} can be on any netdev: add dev",
                hop.via->to_string());
    }
}

}  // namespace

void read_nexthops(Reader& r, const Node& node, Netns& netns) {
    const auto items = r.map(node);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        std::uint32_t id = 0;
        if (!read_id(r, items[i], id)) {
            continue;
        }
        NextHop hop;
        hop.at = items[i].at;
        const auto errors_before = r.error_count();
        read_map(r, items[i + 1], "nexthop", kNextHopFields, hop);
        if (r.error_count() == errors_before) {
            check_nexthop(r, hop);
        }
        netns.nexthops.emplace(id, std::move(hop));
    }
}

void add_nexthop_keys(KeyTables& tables) {
    tables["nexthop"] = keys_of(kNextHopFields);
    tables["resilient"] = keys_of(kResilientFields);
}

}  // namespace sluice::config
