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

#include "sluicectl_columns.h"

namespace sluicectl {
namespace {

std::string hit_rate(const Json& row) {
    constexpr double kPercent = 100;
    return row["hit_rate"].is_null()
               ? "-"
               : fmt::format("{:.2f}%", row["hit_rate"].get<double>() * kPercent);
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
        if (result.contains("draining")) {
            print_uncached(result);
        } else if (result.contains("mode")) {
            print_cache(result);
        } else if (result.contains("netdevs")) {
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

    void print_cache(const Json& result) {
        fmt::print(out_,
                   "mode {}, {} entries per worker and family\n",
                   at(result, "mode"),
                   at(result, "entries"));
        if (!result["bypassing"].empty()) {
            fmt::print(out_, "bypassed because of their rules: {}\n", joined(result["bypassing"]));
        }
        print_table({figure("WORKER", "worker"),
                     text("FAMILY", "family"),
                     figure("HITS", "hits"),
                     figure("MISSES", "misses"),
                     figure("STALE", "stale"),
                     figure("INSERTS", "inserts"),
                     figure("BYPASSED", "bypassed"),
                     {"HIT-RATE", true, hit_rate},
                     figure("SOURCE-HITS", "source_hits"),
                     figure("SOURCE-MISSES", "source_misses")},
                    result["workers"]);
    }

    void print_uncached(const Json& result) {
        print_table({text("WORKER", "worker"),
                     text("NETNS", "netns"),
                     text("NETDEV", "netdev"),
                     text("FAMILY", "family"),
                     figure("DSTS", "dsts")},
                    result["netdevs"]);
        if (!result["draining"].empty()) {
            fmt::print(out_, "\nremoved, with references not yet given up:\n");
        }
        print_table({text("NETDEV", "netdev"),
                     figure("ID", "id"),
                     figure("DSTS", "dsts"),
                     figure("HELD", "held"),
                     figure("SINCE-MS", "since_ms")},
                    result["draining"]);
    }

    void print_table(std::vector<Column> columns, const Json& rows) {
        Table table(out_, std::move(columns));
        for (const Json& row : rows) {
            table.add(row);
        }
        table.end();
    }

    void print_lookup(const Json& result) {
        std::string line = at(result, "address");
        const std::string type = at(result, "type");
        const std::string how = !result["prefix"].is_null()
                                    ? fmt::format("route {}", at(result, "prefix"))
                                : type == "none" ? "no route"
                                : type == "loop" ? "VRFs that send to each other"
                                                 : "by a rule";
        if (type != "unicast" && type != "none") {
            line += fmt::format(" {}", type);
        }
        for (const std::string_view key :
             {"via", "dev", "table", "nexthop", "member", "source", "mtu"}) {
            const Json& value = result[std::string(key)];
            const bool usual = key == "table" && value == kMainTable;
            line += value.is_null() || usual ? "" : fmt::format(" {} {}", key, plain(value));
        }
        fmt::print(out_, "{} ({})\n", line, how);
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
