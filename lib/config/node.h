// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.h"

namespace sluice::config {

/// One value of the YAML text. Scalars keep their spelling: nothing has been taken for a number or
/// a boolean.
struct Node {
    enum class Kind : std::uint8_t {
        kEmpty,  // "key:" with nothing behind it
        kScalar,
        kList,
        kMap,
        kBad,  // reported already: a reader passes over it in silence
    };
    Kind kind = Kind::kEmpty;
    bool quoted = false;
    Position at{};
    std::string text{};         // kScalar
    std::vector<Node> items{};  // kList: the items; kMap: key, value, key, value
};

// Values outside the streamed lists: room for a thousand vlans in each of several netns.
inline constexpr std::size_t kMaxNodes = 100'000;
inline constexpr std::size_t kMaxStreamedItems = 10'000'000;

struct TreeEvents {
    /// An item of a list `routes` or `neighbors`, at top level (netns empty) or in a netns. These
    /// lists may have millions of items, so the tree does not hold them. False stops the reading.
    std::function<bool(std::string_view netns, std::string_view list, const Node& item)> on_item;
    /// False stops the reading.
    std::function<bool(Position at, std::string what)> on_error;
};

struct Tree {
    Node root;
    bool complete = true;  // false: reading stopped early, an error says why
};

/// Reads one YAML document. Duplicate keys, anchors, aliases, tags, further documents and hostile
/// texts are errors.
[[nodiscard]] Tree read_tree(std::string_view text, const TreeEvents& events);

}  // namespace sluice::config
