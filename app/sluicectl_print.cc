// SPDX-License-Identifier: BSD-3-Clause
#include "sluicectl_print.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluicectl {
namespace {

std::string dump(const Json& value, int indent = -1) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// A value for people; "-" where there is none.
std::string plain(const Json& value) {
    if (value.is_null() || value == "") {
        return "-";
    }
    return value.is_string() ? value.get<std::string>() : dump(value);
}

/// `row[path[0]][path[1]]...`
std::string at(const Json& row, std::string_view path) {
    const Json* value = &row;
    for (std::size_t dot = 0; dot != std::string_view::npos && value->is_object();) {
        dot = path.find('.');
        const auto next = value->find(std::string(path.substr(0, dot)));
        if (next == value->end()) {
            return "-";
        }
        value = &*next;
        path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
    }
    return plain(*value);
}

Column text(std::string_view title, std::string_view path) {
    return {title, false, [path](const Json& row) { return at(row, path); }};
}
Column figure(std::string_view title, std::string_view path) {
    return {title, true, [path](const Json& row) { return at(row, path); }};
}

std::string link_state(const Json& row) {
    return row["up"] != true ? "down" : row["running"] == true ? "up" : "no-carrier";
}
std::string link_below(const Json& row) {
    return row["vlan_id"].is_null()
               ? at(row, "device")
               : fmt::format("{} vlan {}", at(row, "link"), at(row, "vlan_id"));
}
std::string link_addresses(const Json& row) {
    std::string all;
    for (const Json& address : row["addresses"]) {
        all += fmt::format("{}{}", all.empty() ? "" : " ", plain(address));
    }
    return all.empty() ? "-" : all;
}
std::string route_flags(const Json& row) {
    std::string flags;
    flags += row["on_link"] == true ? "onlink " : "";
    flags += row["active"] != true ? "inactive " : "";
    flags += row["mtu"].is_null() ? "" : fmt::format("mtu {} ", at(row, "mtu"));
    return flags.empty() ? "-" : flags.substr(0, flags.size() - 1);
}

std::vector<Column> counter_columns() {
    return {text("NETDEV", "name"),
            figure("RECEIVED", "rx_packets"),
            figure("FORWARDED", "forwarded"),
            figure("DELIVERED", "delivered"),
            figure("HELD", "held"),
            figure("DROPPED", "dropped"),
            figure("IMBALANCE", "imbalance"),
            figure("SENT", "tx_packets"),
            figure("RX-BYTES", "rx_bytes"),
            figure("TX-BYTES", "tx_bytes"),
            figure("ICMP-ERRORS", "icmp_errors_sent"),
            figure("SUPPRESSED", "icmp_errors_suppressed")};
}

std::vector<Column> columns_of(std::string_view object, std::string_view command) {
    if (object == "link") {
        return {figure("ID", "id"),
                text("NAME", "name"),
                text("KIND", "kind"),
                {"STATE", false, link_state},
                figure("MTU", "mtu"),
                text("MAC", "mac"),
                figure("RX-PACKETS", "counters.rx_packets"),
                figure("TX-PACKETS", "counters.tx_packets"),
                {"ON", false, link_below},
                {"ADDRESSES", false, link_addresses}};
    }
    if (object == "addr") {
        return {text("DEV", "dev"), text("ADDRESS", "address"), text("SCOPE", "scope")};
    }
    if (object == "route") {
        return {text("PREFIX", "prefix"),
                text("TYPE", "type"),
                text("VIA", "via"),
                text("DEV", "dev"),
                figure("METRIC", "metric"),
                text("OWNER", "owner"),
                {"FLAGS", false, route_flags}};
    }
    if (object == "neigh") {
        return {text("ADDRESS", "address"),
                text("DEV", "dev"),
                text("LLADDR", "lladdr"),
                text("STATE", "state")};
    }
    if (object == "stats" && command == "drops") {
        return {text("NETDEV", "netdev"),
                text("WORKER", "worker"),
                figure("PACKETS", "packets"),
                text("REASON", "reason"),
                text("SOURCE", "source")};
    }
    if (object == "stats" && command == "workers") {
        return {figure("WORKER", "worker"),
                figure("LCORE", "lcore"),
                figure("PACKETS", "packets"),
                figure("BUSY%", "busy_percent"),
                figure("CYCLES/PKT", "cycles_per_packet"),
                figure("RECEIVE", "stages.receive"),
                figure("CLASSIFY", "stages.classify"),
                figure("INPUT", "stages.input"),
                figure("LOOKUP", "stages.lookup"),
                figure("FORWARD", "stages.forward"),
                figure("TRANSMIT", "stages.transmit"),
                figure("ROUNDS", "rounds"),
                figure("SLEEPS", "sleeps"),
                {"SLEPT-S", true, [](const Json& row) {
                     return fmt::format("{:.1f}", row["sleep_seconds"].get<double>());
                 }}};
    }
    return {};
}

class JsonPrinter final : public Printer {
public:
    explicit JsonPrinter(std::FILE* out) : out_(out) {}
    void row(const Json& row) override {
        fmt::print(out_, "{}\n {}", rows_++ == 0 ? "[" : ",", dump(row));
    }
    void end(const Json& result) override {
        if (rows_ > 0) {
            fmt::print(out_, "\n]\n");
        } else if (!result.is_null()) {
            fmt::print(out_, "{}\n", dump(result, 2));
        }
    }

private:
    std::FILE* out_;
    std::size_t rows_ = 0;
};

class TextPrinter final : public Printer {
public:
    TextPrinter(std::FILE* out, std::string_view object, std::string_view command)
        : out_(out), table_(out, columns_of(object, command)) {}
    void row(const Json& row) override { table_.add(row); }
    void end(const Json& result) override {
        table_.end();
        if (result.is_object()) {
            print_object(result);
        }
    }

private:
    void print_object(const Json& result) {
        if (result.contains("netdevs")) {
            print_counters(result);
        } else if (result.contains("yaml")) {
            fmt::print(out_, "{}", result["yaml"].get<std::string>());
        } else if (result.contains("removed")) {
            fmt::print(out_, "removed {}\n", at(result, "removed"));
        } else if (result.contains("protocol")) {
            fmt::print(out_,
                       "{} {}, instance {}, pid {}\n",
                       at(result, "name"),
                       at(result, "version"),
                       at(result, "instance"),
                       at(result, "pid"));
        } else if (result.contains("address")) {
            print_lookup(result);
        } else {
            fmt::print(out_, "{}\n", dump(result, 2));
        }
    }

    void print_counters(const Json& result) {
        Table counters(out_, counter_columns());
        for (const Json& netdev : result["netdevs"]) {
            counters.add(netdev);
        }
        Json total = result["total"];
        total["name"] = "(total)";
        counters.add(total);
        counters.end();
        Table pools(out_,
                    {text("POOL", "name"), figure("BUFFERS", "size"), figure("IN-USE", "in_use")});
        for (const Json& pool : result["pools"]) {
            pools.add(pool);
        }
        if (!result["pools"].empty()) {
            fmt::print(out_, "\n");
        }
        pools.end();
    }

    void print_lookup(const Json& result) {
        std::string line = at(result, "address");
        const bool routed = !result["prefix"].is_null();
        if (result["type"] != "unicast" && routed) {
            line += fmt::format(" {}", at(result, "type"));
        }
        for (const std::string_view key : {"via", "dev", "source", "mtu"}) {
            const Json& value = result[std::string(key)];
            line += value.is_null() ? "" : fmt::format(" {} {}", key, plain(value));
        }
        fmt::print(out_,
                   "{} ({})\n",
                   line,
                   routed ? fmt::format("route {}", at(result, "prefix")) : "no route");
    }

    std::FILE* out_;
    Table table_;
};

}  // namespace

Table::Table(std::FILE* out, std::vector<Column> columns)
    : out_(out), columns_(std::move(columns)), widths_(columns_.size()) {}

void Table::add(const Json& row) {
    std::vector<std::string> cells;
    for (const Column& column : columns_) {
        cells.push_back(column.text(row));
    }
    lines_.push_back(std::move(cells));
    if (lines_.size() == kGroup) {
        end();
    }
}

void Table::end() {
    if (!std::exchange(titled_, titled_ || !lines_.empty()) && !lines_.empty()) {
        std::vector<std::string> titles;
        for (const Column& column : columns_) {
            titles.emplace_back(column.title);
        }
        lines_.insert(lines_.begin(), std::move(titles));
    }
    for (const auto& cells : lines_) {
        for (std::size_t i = 0; i < cells.size(); ++i) {
            widths_[i] = std::max(widths_[i], cells[i].size());
        }
    }
    for (const auto& cells : lines_) {
        print_line(cells);
    }
    lines_.clear();
}

void Table::print_line(const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const bool last = i + 1 == cells.size();
        line += columns_[i].right ? fmt::format("{:>{}}", cells[i], widths_[i])
                : last            ? cells[i]
                                  : fmt::format("{:<{}}", cells[i], widths_[i]);
        line += last ? "\n" : "  ";
    }
    fmt::print(out_, "{}", line);
}

std::unique_ptr<Printer> json_printer(std::FILE* out) {
    return std::make_unique<JsonPrinter>(out);
}

std::unique_ptr<Printer> text_printer(std::FILE* out,
                                      std::string_view object,
                                      std::string_view command) {
    return std::make_unique<TextPrinter>(out, object, command);
}

}  // namespace sluicectl
