// SPDX-License-Identifier: BSD-3-Clause
#include "control/controller.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::control {

std::string_view to_string(RouteOwner owner) noexcept {
    switch (owner) {
        case RouteOwner::kConnected:
            return "connected";
        case RouteOwner::kFile:
            return "file";
        case RouteOwner::kCli:
            return "cli";
        case RouteOwner::kFpm:
            return "fpm";
    }
    return "cli";
}

Result<LinkInfo> Controller::link(const std::string& netns, const std::string& name) const {
    for (LinkInfo& link : links(netns)) {
        if (link.name == name) {
            return std::move(link);
        }
    }
    if (std::ranges::none_of(this->netns(),
                             [&](const NetnsInfo& info) { return info.name == netns; })) {
        return fail(ErrorCode::kNotFound, "netns {:.80} does not exist", netns);
    }
    return fail(ErrorCode::kNotFound, "link {:.80} does not exist", name);
}

}  // namespace sluice::control
