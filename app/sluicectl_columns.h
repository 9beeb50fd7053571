// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluicectl_print.h"

/// What the rows of each answer look like for people.
namespace sluicectl {

inline constexpr int kMainTable = 254;

std::string dump(const Json& value, int indent = -1);
/// A value for people; "-" where there is none.
std::string plain(const Json& value);
/// `row[path[0]][path[1]]...`
std::string at(const Json& row, std::string_view path);
std::string joined(const Json& texts);
Column text(std::string_view title, std::string_view path);
Column figure(std::string_view title, std::string_view path);

std::vector<Column> counter_columns();  // of `stats show`
/// Of answers that are arrays.
std::vector<Column> columns_of(std::string_view object, std::string_view command);

}  // namespace sluicectl
