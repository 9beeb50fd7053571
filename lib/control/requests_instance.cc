// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <span>

#include <fmt/format.h>
#include <unistd.h>

#include "base/result.h"
#include "control/controller.h"
#include "control/request_args.h"
#include "control/request_table.h"
#include "control/requests.h"

namespace sluice::control {
namespace {

constexpr int kProtocol = 1;

Result<Body> config_show(Context& context, Args& /*args*/) {
    return Body::of({{"yaml", context.controller.effective_config()}});
}

Result<Body> config_reload(Context& context, Args& args) {
    const auto file = args.text("file");
    if (file && !file->starts_with('/')) {
        // The daemon's working directory is not the client's.
        args.refuse({ErrorCode::kInvalid,
                     fmt::format("file \"{:.200}\": must be an absolute path", *file)});
    }
    if (args.error()) {
        return refused(args);
    }
    return done(context.controller.reload(file));
}

Result<Body> version_show(Context& context, Args& /*args*/) {
    return Body::of({{"name", "sluice"},
                     {"version", context.identity.version},
                     {"protocol", kProtocol},
                     {"instance", context.identity.instance},
                     {"pid", ::getpid()}});
}

}  // namespace

std::span<const Command> instance_commands() {
    static const std::array<Command, 3> kCommands{{
        {"config", "show", {}, config_show},
        {"config", "reload", {"file"}, config_reload},
        {"version", "show", {}, version_show},
    }};
    return kCommands;
}

}  // namespace sluice::control
