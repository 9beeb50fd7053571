// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "config/validate.h"

namespace sluice::config {
namespace {

bool is_link_local(const net::IpAddr& address) {
    return address.is_v6() && address.v6().is_link_local();
}

std::string subnets_of(const NetdevFacts& facts) {
    constexpr std::size_t kMaxListed = 8;
    std::vector<std::string> subnets;
    for (const auto& address : facts.addresses) {
        if (subnets.size() == kMaxListed) {
            subnets.emplace_back("...");
            break;
        }
        subnets.push_back(address.network().to_string());
    }
    return subnets.empty() ? "it has no address" : fmt::format("{}", fmt::join(subnets, ", "));
}

}  // namespace

std::string_view never_a_host(const net::IpAddr& address, const NetdevFacts& facts) {
    for (const auto& own : facts.addresses) {
        if (const auto why = own.never_a_host(address); !why.empty()) {
            return why;
        }
    }
    return {};
}

void check_way(const Way& way, const NetdevIndex& index, Findings& findings) {
    if (!way.via) {
        return;
    }
    const auto& via = *way.via;
    const NetdevFacts* facts = index.find(way.dev);
    // An address of another vrf is another host's here (check 73).
    const bool own = index.owns(facts == nullptr ? way.domain : facts->domain, via) ||
                     (facts != nullptr && via.is_v6() && facts->link_local == via.v6());
    if (own) {
        findings.add(way.at,
                     "{}the gateway {} is an address of this router: write the next router's",
                     way.prefix,
                     via.to_string());
        return;
    }
    if (facts == nullptr) {
        if (!way.on_link && !is_link_local(via)) {
            findings.add(way.at,
                         "{}the gateway {} is in no netdev's subnet{}: add dev and on-link: true, "
                         "or an address there",
                         way.prefix,
                         via.to_string(),
                         way.domain == kDefaultDomain ? "" : " of its vrf");
        }
        return;
    }
    const auto reaches = [&](const net::InterfaceAddr& a) { return a.network().contains(via); };
    if (!way.on_link && !is_link_local(via) &&
        std::none_of(facts->addresses.begin(), facts->addresses.end(), reaches)) {
        findings.add(
            way.at,
            "{}the gateway {} is in no subnet of {} ({}): correct it, or add on-link: true",
            way.prefix,
            via.to_string(),
            way.dev,
            subnets_of(*facts));
    } else if (const auto wrong = never_a_host(via, *facts); !wrong.empty()) {
        findings.add(way.at,
                     "{}the gateway {} is {} on {}: write a host's",
                     way.prefix,
                     via.to_string(),
                     wrong,
                     way.dev);
    }
}

}  // namespace sluice::config
