// SPDX-License-Identifier: BSD-3-Clause
#include "control/host_address.h"

#include <string_view>

namespace sluice::control {

Result<void> check_own_address(const net::InterfaceAddr& own) {
    const auto refuse = [&](std::string_view why) {
        return fail(ErrorCode::kInvalid, "{} is {}", own.to_string(), why);
    };
    if (own.address.is_v6()) {
        const auto& a = own.address.v6();
        if (a.is_multicast() || a.is_unspecified() || a.is_loopback()) {
            return refuse("no unicast address that a netdev can have");
        }
        return {};
    }
    const auto& a = own.address.v4();
    if (a.is_multicast() || a.is_this_network() || a.is_reserved()) {
        return refuse("no unicast address that a netdev can have");
    }
    if (own.length == 0) {
        return refuse("without a subnet: give it a length of 1 to 32");
    }
    if (own.length < 31 && own.network().address() == own.address) {
        return refuse("the network's own address");
    }
    if (own.broadcast() == a) {
        return refuse("the broadcast address of its subnet");
    }
    return {};
}

}  // namespace sluice::control
