// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// sluicectl's words as tables: one row adds a word, its abbreviations and its help.
namespace sluicectl {

enum class Kind : std::uint8_t {
    kText,
    kNumber,
    kTable,    // a number, or a name
    kOnOff,    // on, off → true, false
    kTrue,     // no value: true
    kFalse,    // no value: false
    kLiteral,  // iproute2 says it, here it is the only choice: `nud permanent`; "a|b": one of these
    kNoise,    // no value and no meaning of its own: `link add blue vrf table 100`
    kSelf,     // no value: the word itself, `blackhole`
    kEmpty,    // no value: "", `novrf`
    kCommand,  // no value: the key is the protocol's command, `route show cache`
    kAny,      // "all", "any" or "default" say nothing, anything else is text
    kTos,      // a DSCP as the byte that it stands in
    kPorts,    // N or N-M
    kSeconds,  // N, Ns or Nms → milliseconds
    kMembers,  // 1,1/2,3 → ids and weights
};

struct Keyword {
    std::string_view word;
    std::string_view key;  // of kLiteral: the word that must follow
    Kind kind = Kind::kText;
};

/// A word and how much of it is enough: the letters that iproute2 asks for.
struct Word {
    std::string_view full;
    std::size_t shortest;
    std::string_view canonical;
};

inline constexpr std::array<Word, 17> kObjects{{
    {"link", 1, "link"},
    {"address", 1, "addr"},
    {"route", 1, "route"},
    {"neighbor", 1, "neigh"},
    {"neighbour", 1, "neigh"},
    {"stats", 1, "stats"},
    {"config", 2, "config"},
    {"version", 1, "version"},
    {"nexthop", 3, "nexthop"},
    {"rule", 2, "rule"},
    {"netns", 3, "netns"},
    {"vrf", 2, "vrf"},
    {"cache", 3, "cache"},
    {"uncached", 1, "uncached"},
    {"trace", 1, "trace"},
    {"capture", 3, "capture"},
    {"help", 1, "help"},
}};

struct Form {
    std::string_view object;
    std::string_view command;
    std::size_t shortest;  // letters of `command` that are enough
    std::string_view usage;
    std::string_view positional;          // key of the word that stands alone; empty: none does
    std::vector<Keyword> keywords;        // in any order
    std::vector<std::string_view> needs;  // keys
    bool many = false;                    // the positional word may come often: an array
    bool typed = false;                   // a route's type may stand before the prefix
    bool family = false;                  // -4 and -6 are an argument of it
    bool legs = false;                    // `nexthop via ...` may come often: an array
};

const std::vector<Form>& forms();

}  // namespace sluicectl
