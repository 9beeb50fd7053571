// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/result.h"

/// Inside of control/requests: the text of requests and answers.
namespace sluice::control {

using Json = nlohmann::ordered_json;  // answers keep the order of protocol.md

/// One line; bounds what it can cost before it costs it, and refuses keys that stand there twice
/// (the library would keep one of them silently).
Result<Json> parse_line(std::string_view line);

inline std::string dump(const Json& value) {
    // Replaces what is no UTF-8: a file name in a message may be anything.
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice::control
