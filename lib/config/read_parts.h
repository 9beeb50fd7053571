// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.h"
#include "config/reader.h"

namespace sluice::config {

// read_netdev.cc
void read_ports(Reader& r, const Node& node, Netns& netns);
void read_vlans(Reader& r, const Node& node, Netns& netns);
void read_vrfs(Reader& r, const Node& node, Netns& netns);

// read_nexthop.cc
void read_nexthops(Reader& r, const Node& node, Netns& netns);

// read_policy.cc
void read_multipath_hash(Reader& r, const Node& node, Netns& netns);
void read_rules(Reader& r, const Node& node, Netns& netns);

// read_route.cc: one item of the list.
void read_route(Reader& r, const Node& node, Netns& netns);
void read_neighbor(Reader& r, const Node& node, Netns& netns);
/// What a route leaves to the rest of its netns, when all of that has been read.
void resolve_routes(Reader& r, Netns& netns);

/// A table number that routes may have, or "main".
bool read_table(Reader& r, const Node& node, std::uint32_t& table);
/// An address that packets can be sent to.
bool read_gateway(Reader& r, const Node& node, net::IpAddr& address);
bool read_family(Reader& r, const Node& node, net::Family& family);
bool read_unicast_mac(Reader& r, const Node& node, net::MacAddr& mac);

/// The keys of one mapping, by the mapping's name: what conf/sluice.schema.json must list.
using KeyTables = std::map<std::string_view, std::vector<std::string_view>>;
void add_netdev_keys(KeyTables& tables);
void add_nexthop_keys(KeyTables& tables);
void add_policy_keys(KeyTables& tables);
void add_route_keys(KeyTables& tables);
void add_config_keys(KeyTables& tables);
KeyTables key_tables();

}  // namespace sluice::config
