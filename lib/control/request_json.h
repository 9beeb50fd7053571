// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <nlohmann/json.hpp>

/// Inside of control/requests: the text of answers.
namespace sluice::control {

using Json = nlohmann::ordered_json;  // answers keep the order of protocol.md

inline std::string dump(const Json& value) {
    // Replaces what is no UTF-8: a file name in a message may be anything.
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice::control
