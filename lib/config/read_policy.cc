// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "config/hash_fields.h"
#include "config/protocol.h"
#include "config/read_parts.h"
#include "net/wire.h"

namespace sluice::config {
namespace {

/// A rule being read, and what only its reading needs.
struct RuleDraft {
    Rule rule;
    std::optional<net::Family> family;
    int actions = 0;  // of table, type and set-mark
};

void read_selector(Reader& r, const Node& node, std::optional<net::IpPrefix>& out) {
    net::IpPrefix prefix;
    if (r.parsed(node, prefix, "10.0.0.0/8")) {
        out = prefix;
    }
}

void read_protocol(Reader& r, const Node& node, RuleDraft& draft) {
    std::string word;
    if (!r.text(node, word)) {
        return;
    }
    if (const auto number = protocol_number(word)) {
        draft.rule.protocol = number;
        return;
    }
    std::uint8_t number = 0;
    if (word.find_first_not_of("0123456789") != std::string::npos) {
        r.unknown_word(node.at, word, protocol_names());
    } else if (r.integer(node, number)) {
        draft.rule.protocol = number;
    }
}

/// "80" or "8000-8080".
void read_port_range(Reader& r, const Node& node, std::optional<PortRange>& out) {
    std::string word;
    if (!r.text(node, word)) {
        return;
    }
    const auto port = [](std::string_view text) -> std::optional<std::uint16_t> {
        std::uint16_t value = 0;
        const char* const end = text.data() + text.size();
        const auto [rest, failure] = std::from_chars(text.data(), end, value);
        const bool octal = text.size() > 1 && text.front() == '0';
        return failure == std::errc{} && rest == end && !octal ? std::optional{value}
                                                               : std::nullopt;
    };
    const auto dash = word.find('-');
    const auto first = port(std::string_view{word}.substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : port(std::string_view{word}.substr(dash + 1));
    if (!first || !last || *first > *last) {
        r.error(
            node.at, "'{}' is no port or range of ports: write 80 or 8000-8080, up to 65535", word);
        return;
    }
    out = PortRange{*first, *last};
}

constexpr std::array<Choice<RuleAction>, 3> kRuleTypes{{
    {"blackhole", RuleAction::kBlackhole},
    {"unreachable", RuleAction::kUnreachable},
    {"prohibit", RuleAction::kProhibit},
}};

template <class T>
void read_optional(Reader& r, const Node& node, std::optional<T>& out, std::uint64_t max) {
    T value = 0;
    if (r.integer(node, value, 0, max)) {
        out = value;
    }
}

constexpr std::uint64_t kMax32 = 0xffff'ffff;

constexpr std::array kRuleFields{
    Field<RuleDraft>{"priority",
                     [](Reader& r, const Node& n, RuleDraft& d) { r.integer(n, d.rule.priority); },
                     kRequired},
    Field<RuleDraft>{
        "from", [](Reader& r, const Node& n, RuleDraft& d) { read_selector(r, n, d.rule.from); }},
    Field<RuleDraft>{
        "to", [](Reader& r, const Node& n, RuleDraft& d) { read_selector(r, n, d.rule.to); }},
    Field<RuleDraft>{"iif", [](Reader& r, const Node& n, RuleDraft& d) { r.name(n, d.rule.iif); }},
    // RFC 2474 3: the six bits above the two of ECN.
    Field<RuleDraft>{
        "dscp",
        [](Reader& r, const Node& n, RuleDraft& d) { read_optional(r, n, d.rule.dscp, 63); }},
    Field<RuleDraft>{
        "mark",
        [](Reader& r, const Node& n, RuleDraft& d) { read_optional(r, n, d.rule.mark, kMax32); }},
    Field<RuleDraft>{"protocol", read_protocol},
    Field<RuleDraft>{
        "sport",
        [](Reader& r, const Node& n, RuleDraft& d) { read_port_range(r, n, d.rule.source_ports); }},
    Field<RuleDraft>{"dport",
                     [](Reader& r, const Node& n, RuleDraft& d) {
                         read_port_range(r, n, d.rule.destination_ports);
                     }},
    Field<RuleDraft>{"table",
                     [](Reader& r, const Node& n, RuleDraft& d) {
                         ++d.actions;
                         read_table(r, n, d.rule.table);
                     }},
    Field<RuleDraft>{"type",
                     [](Reader& r, const Node& n, RuleDraft& d) {
                         ++d.actions;
                         r.choice(n, d.rule.action, kRuleTypes);
                     }},
    Field<RuleDraft>{"set-mark",
                     [](Reader& r, const Node& n, RuleDraft& d) {
                         ++d.actions;
                         if (r.integer(n, d.rule.set_mark)) {
                             d.rule.action = RuleAction::kSetMark;
                         }
                     }},
    Field<RuleDraft>{"suppress-prefixlength",
                     [](Reader& r, const Node& n, RuleDraft& d) {
                         read_optional(r, n, d.rule.suppress_prefixlength, 128);
                     }},
    Field<RuleDraft>{"family",
                     [](Reader& r, const Node& n, RuleDraft& d) {
                         net::Family family{};
                         if (read_family(r, n, family)) {
                             d.family = family;
                         }
                     }},
};

void settle_family(Reader& r, RuleDraft& draft) {
    for (const auto& selector : {draft.rule.from, draft.rule.to}) {
        if (selector && draft.family && *draft.family != selector->family()) {
            r.error(draft.rule.at,
                    "{} is {}, another place of this rule says {}: one family a rule",
                    selector->to_string(),
                    net::to_string(selector->family()),
                    net::to_string(*draft.family));
        } else if (selector) {
            draft.family = selector->family();
        }
    }
    const bool icmpv6 = draft.rule.protocol == kProtocolIcmpv6;
    draft.rule.family = draft.family.value_or(icmpv6 ? net::Family::kIpv6 : net::Family::kIpv4);
}

void check_rule(Reader& r, const RuleDraft& draft) {
    const Rule& rule = draft.rule;
    if (draft.actions != 1) {
        r.error(rule.at,
                "a rule does one thing: write table, type: blackhole, unreachable or prohibit, or "
                "set-mark");
    } else if (rule.suppress_prefixlength && rule.action != RuleAction::kTable) {
        r.error(rule.at,
                "suppress-prefixlength is about a table's routes: add table, or leave it out");
    }
    const bool has_ports = rule.source_ports || rule.destination_ports;
    if (has_ports && rule.protocol && !net::has_ports(net::IpProtocol{*rule.protocol})) {
        r.error(rule.at,
                "{} has no ports: leave sport and dport out, or write protocol: tcp, udp, sctp or "
                "dccp",
                protocol_text(*rule.protocol));
    }
    if (rule.suppress_prefixlength && rule.family == net::Family::kIpv4 &&
        *rule.suppress_prefixlength > 32) {
        r.error(rule.at,
                "suppress-prefixlength {} of an ipv4 rule: at most 32",
                *rule.suppress_prefixlength);
    }
}

constexpr std::array<Choice<HashPolicy>, 3> kHashPolicies{{
    {"l3", HashPolicy::kL3},
    {"l4", HashPolicy::kL4},
    {"custom", HashPolicy::kCustom},
}};
void read_hash_fields(Reader& r, const Node& node, MultipathHash& hash) {
    for (const Node& item : r.list(node)) {
        bool HashFields::* field = nullptr;
        if (r.choice(item, field, kHashFields)) {
            if (hash.fields.*field) {
                r.error(item.at, "'{}' is here twice: keep one", item.text);
            }
            hash.fields.*field = true;
        }
    }
}

constexpr std::array kHashKeys{
    Field<MultipathHash>{
        "policy",
        [](Reader& r, const Node& n, MultipathHash& h) { r.choice(n, h.policy, kHashPolicies); }},
    Field<MultipathHash>{"fields", read_hash_fields},
};

void read_hash(Reader& r, const Node& node, net::Family family, MultipathHash& hash) {
    const auto errors_before = r.error_count();
    read_map(r, node, "hash", kHashKeys, hash);
    if (r.error_count() != errors_before) {
        return;
    }
    const bool has_fields = hash.fields != HashFields{};
    if (has_fields != (hash.policy == HashPolicy::kCustom)) {
        r.error(node.at, "policy: custom and fields go together: write both or neither");
    } else if (hash.fields.flow_label && family == net::Family::kIpv4) {
        r.error(node.at, "IPv4 has no flow-label: leave it out");
    }
}

constexpr std::array kMultipathKeys{
    Field<Netns>{"ipv4",
                 [](Reader& r, const Node& n, Netns& netns) {
                     read_hash(r, n, net::Family::kIpv4, netns.multipath_hash4);
                 }},
    Field<Netns>{"ipv6",
                 [](Reader& r, const Node& n, Netns& netns) {
                     read_hash(r, n, net::Family::kIpv6, netns.multipath_hash6);
                 }},
};

}  // namespace

void read_rules(Reader& r, const Node& node, Netns& netns) {
    for (const Node& item : r.list(node)) {
        RuleDraft draft;
        draft.rule.at = item.at;
        const auto errors_before = r.error_count();
        read_map(r, item, "rule", kRuleFields, draft);
        if (r.error_count() != errors_before) {
            continue;
        }
        settle_family(r, draft);
        check_rule(r, draft);
        netns.routing_policy.push_back(std::move(draft.rule));
    }
}

void read_multipath_hash(Reader& r, const Node& node, Netns& netns) {
    read_map(r, node, "multipath-hash", kMultipathKeys, netns);
}

void add_policy_keys(KeyTables& tables) {
    tables["rule"] = keys_of(kRuleFields);
    tables["hash"] = keys_of(kHashKeys);
    tables["multipath-hash"] = keys_of(kMultipathKeys);
}

}  // namespace sluice::config
