// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "control/request_value.h"
#include "control/server.h"

namespace sluice::control {

struct Body;
struct Command;
class Controller;

/// What `version show` says.
struct Identity {
    std::string instance;
    std::string version;
};

/// One line of protocol.md → calls on the Controller → the answer's line. Replies under way refer
/// to this object and its Controller, so the Server goes first. All members: control thread.
class Requests {
public:
    Requests(Controller& controller, Identity identity);

    Reply handle(std::string_view line, bool after_failure);
    /// The answer to what the server itself turns down.
    static std::string refusal(const Error& error);

private:
    Result<Body> run(std::string_view line, bool after_failure, std::string& id);

    Controller& controller_;
    Identity identity_;
    Document document_;
    const Command* last_ = nullptr;
};

}  // namespace sluice::control
