// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "config/model.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_table.h"
#include "net/address.h"

namespace sluice::control {
namespace {

using config::RuleAction;

constexpr std::uint8_t kMaxDscp = 63;

constexpr std::array<Choice<RuleAction>, 5> kActions{{
    {"table", RuleAction::kTable},
    {"blackhole", RuleAction::kBlackhole},
    {"unreachable", RuleAction::kUnreachable},
    {"prohibit", RuleAction::kProhibit},
    {"set-mark", RuleAction::kSetMark},
}};

Json ports_json(const std::optional<config::PortRange>& ports) {
    return ports ? Json::array({ports->first, ports->last}) : Json();
}

Json rule_json(const RuleInfo& info) {
    const config::Rule& rule = info.rule;
    const auto action = std::ranges::find(kActions, rule.action, &Choice<RuleAction>::value);
    const bool table = rule.action == RuleAction::kTable;
    return {{"priority", rule.priority},
            {"family", net::to_string(rule.family)},
            {"from", text_or_null(rule.from)},
            {"to", text_or_null(rule.to)},
            {"iif", text_or_null(rule.iif)},
            {"dscp", number_or_null(rule.dscp)},
            {"mark", number_or_null(rule.mark)},
            {"protocol", number_or_null(rule.protocol)},
            {"source_ports", ports_json(rule.source_ports)},
            {"destination_ports", ports_json(rule.destination_ports)},
            {"action", action->word},
            {"table", table ? Json(rule.table) : Json()},
            {"suppress_prefixlength", number_or_null(rule.suppress_prefixlength)},
            {"set_mark", rule.action == RuleAction::kSetMark ? Json(rule.set_mark) : Json()},
            {"owner", to_string(info.owner)}};
}

Result<Body> rule_show(Context& context, Args& args) {
    const auto family = args.family("family");
    if (args.error()) {
        return refused(args);
    }
    auto rules = context.controller.rules(context.netns);
    if (rules && family) {
        std::erase_if(*rules, [&](const RuleInfo& info) { return info.rule.family != *family; });
    }
    return array_of(std::move(rules), rule_json);
}

void read_family(Args& args, config::Rule& rule) {
    std::optional<net::Family> family = args.family("family");
    for (const auto& selector : {rule.from, rule.to}) {
        if (selector && family && selector->family() != *family) {
            args.refuse(fmt::format("{} is not of family {}: one family a rule",
                                    selector->to_string(),
                                    net::to_string(*family)));
        } else if (selector) {
            family = selector->family();
        }
    }
    rule.family = family.value_or(net::Family::kIpv4);
}

void read_action(Context& context, Args& args, config::Rule& rule) {
    const auto table = table_or_vrf(context, args);
    const auto set_mark = args.integer<std::uint32_t>("set_mark");
    rule.action = args.choice<RuleAction>("action", kActions)
                      .value_or(set_mark ? RuleAction::kSetMark : RuleAction::kTable);
    const std::uint8_t longest = rule.family == net::Family::kIpv4 ? 32 : 128;
    rule.suppress_prefixlength = args.integer<std::uint8_t>("suppress_prefixlength", 0, longest);
    if (rule.action != RuleAction::kTable && (table || rule.suppress_prefixlength)) {
        args.refuse("table and suppress_prefixlength go with the action table only");
    }
    if (set_mark.has_value() != (rule.action == RuleAction::kSetMark)) {
        args.refuse("set_mark goes with the action set-mark, and that with set_mark");
    }
    rule.table = table.value_or(rule.table);
    rule.set_mark = set_mark.value_or(0);
}

config::Rule read_rule(Context& context, Args& args) {
    config::Rule rule;
    rule.priority = args.need("priority", args.integer<std::uint32_t>("priority"));
    rule.from = args.selector("from");
    rule.to = args.selector("to");
    rule.iif = args.text("iif").value_or("");
    rule.dscp = args.integer<std::uint8_t>("dscp", 0, kMaxDscp);
    rule.mark = args.integer<std::uint32_t>("mark");
    rule.protocol = args.protocol("protocol");
    rule.source_ports = args.ports("source_ports");
    rule.destination_ports = args.ports("destination_ports");
    read_family(args, rule);
    read_action(context, args, rule);
    return rule;
}

Result<Body> rule_add(Context& context, Args& args) {
    const config::Rule rule = read_rule(context, args);
    if (rule.action == RuleAction::kTable && !args.has("table") && !args.has("vrf")) {
        args.refuse("a rule says what to do: table, vrf, set_mark or an action");
    }
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.add_rule(context.netns, rule));
}

Result<Body> rule_del(Context& context, Args& args) {
    const config::Rule rule = read_rule(context, args);
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.delete_rule(context.netns, rule));
}

}  // namespace

std::span<const Command> rule_commands() {
    static const std::vector<std::string_view> kArgs{"priority",
                                                     "family",
                                                     "from",
                                                     "to",
                                                     "iif",
                                                     "dscp",
                                                     "mark",
                                                     "protocol",
                                                     "source_ports",
                                                     "destination_ports",
                                                     "action",
                                                     "table",
                                                     "vrf",
                                                     "suppress_prefixlength",
                                                     "set_mark"};
    static const std::array<Command, 3> kCommands{{
        {"rule", "show", {"family"}, rule_show},
        {"rule", "add", kArgs, rule_add},
        {"rule", "del", kArgs, rule_del},
    }};
    return kCommands;
}

}  // namespace sluice::control
