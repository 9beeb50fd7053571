// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace sluicectl {

using Json = nlohmann::ordered_json;

struct Column {
    std::string_view title;
    bool right;  // numbers
    std::function<std::string(const Json& row)> text;
};

/// Aligned columns. Rows are printed in groups, so that a long table costs no more memory than a
/// short one; a later group never gets narrower columns.
class Table {
public:
    Table(std::FILE* out, std::vector<Column> columns);
    void add(const Json& row);
    void end();

private:
    void print_line(const std::vector<std::string>& cells);

    static constexpr std::size_t kGroup = 1000;

    std::FILE* out_;
    std::vector<Column> columns_;
    std::vector<std::size_t> widths_;
    std::vector<std::vector<std::string>> lines_;
    bool titled_ = false;
};

/// Shows the answer to one request: rows first, as they come, then the result that they belong to.
class Printer {
public:
    virtual ~Printer() = default;
    virtual void row(const Json& row) = 0;
    virtual void end(const Json& result) = 0;
};

/// As JSON: one document, one line for each row of an array.
std::unique_ptr<Printer> json_printer(std::FILE* out);
/// For people, by what was asked.
std::unique_ptr<Printer> text_printer(std::FILE* out,
                                      std::string_view object,
                                      std::string_view command);

}  // namespace sluicectl
