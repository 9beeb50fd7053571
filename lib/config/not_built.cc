// SPDX-License-Identifier: BSD-3-Clause
#include "config/not_built.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace sluice::config {
namespace {

/// A key whose feature this release lacks. Its syntax is read and checked like any other.
struct NotBuilt {
    std::string_view map;
    std::string_view key;
    std::array<std::string_view, 2> built{};  // values that it may have all the same
};

// Whoever builds one of these features takes its row out.
constexpr std::array kNotBuilt{
    NotBuilt{"control", "metrics"},
    NotBuilt{"control", "fpm"},
    NotBuilt{"port", "accept-ra", {"false"}},
    NotBuilt{"vlan", "accept-ra", {"false"}},
};

const NotBuilt* find(std::string_view map, std::string_view key) {
    const auto row = std::find_if(kNotBuilt.begin(), kNotBuilt.end(), [&](const NotBuilt& n) {
        return n.map == map && n.key == key;
    });
    return row == kNotBuilt.end() ? nullptr : &*row;
}

}  // namespace

bool is_not_built(std::string_view map, std::string_view key, const Node& value) {
    const NotBuilt* row = find(map, key);
    if (row == nullptr) {
        return false;
    }
    switch (value.kind) {
        case Node::Kind::kEmpty:
        case Node::Kind::kBad:
            return false;  // says nothing, or is refused already
        case Node::Kind::kList:
        case Node::Kind::kMap:
            return !value.items.empty();
        case Node::Kind::kScalar:
            return std::find(row->built.begin(), row->built.end(), value.text) == row->built.end();
    }
    return true;
}

std::string not_built_message(std::string_view map, std::string_view key, const Node& value) {
    const NotBuilt* row = find(map, key);
    if (row == nullptr || row->built.front().empty()) {
        return fmt::format("{}: not built yet in this release: leave it out", key);
    }
    return fmt::format("{}: '{}' is not built yet in this release: write {} or leave it out",
                       key,
                       value.text,
                       row->built.front());
}

}  // namespace sluice::config
