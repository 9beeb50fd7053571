// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "control/requests.h"
#include "control/server.h"
#include "mock_controller.h"

namespace sluice::control {

using testing::_;
using testing::AllOf;
using testing::Field;
using testing::Return;
using testing::StrictMock;

inline net::IpAddr ip(std::string_view text) {
    return net::IpAddr::parse(text).value();
}
inline net::IpPrefix prefix(std::string_view text) {
    return net::IpPrefix::parse(text).value();
}
inline net::InterfaceAddr with_length(std::string_view text) {
    return net::InterfaceAddr::parse(text).value();
}
inline net::MacAddr mac(std::string_view text) {
    return net::MacAddr::parse(text).value();
}
inline LinkInfo link(std::uint16_t id,
                     std::string name,
                     std::string kind,
                     std::string netns = "default") {
    LinkInfo info;
    info.id = NetdevId{id};
    info.name = std::move(name);
    info.kind = std::move(kind);
    info.netns = std::move(netns);
    info.mtu = 1500;
    info.up = true;
    return info;
}

/// What a flush gives that has removed so many.
inline Result<Flush> flushed(std::size_t count) {
    return Flush{.ticket = 1, .removed = std::make_shared<const std::size_t>(count)};
}

using TestJson = nlohmann::ordered_json;

inline std::string request(std::string_view object,
                           std::string_view command,
                           std::string_view args) {
    return fmt::format(R"({{"object":"{}","command":"{}","args":{}}})", object, command, args);
}

class RequestsTest : public testing::Test {
protected:
    std::string raw(std::string_view line, bool after_failure = false) {
        Reply reply = requests_.handle(line, after_failure);
        while (reply.more && reply.more(reply.text)) {
        }
        EXPECT_EQ(reply.text.find('\n'), std::string::npos) << "an answer is one line";
        return reply.text;
    }
    TestJson ask(std::string_view line) { return TestJson::parse(raw(line)); }
    /// The result of `object command`, which must be fine.
    TestJson result(std::string_view object,
                    std::string_view command,
                    std::string_view args = "{}") {
        const TestJson answer = ask(
            fmt::format(R"({{"object":"{}","command":"{}","args":{}}})", object, command, args));
        EXPECT_EQ(answer["ok"], true) << answer;
        return answer["result"];
    }

    TestJson in_netns(std::string_view netns,
                      std::string_view object,
                      std::string_view command,
                      std::string_view args = "{}") {
        const TestJson answer =
            ask(fmt::format(R"({{"netns":"{}","object":"{}","command":"{}","args":{}}})",
                            netns,
                            object,
                            command,
                            args));
        EXPECT_EQ(answer["ok"], true) << answer;
        return answer["result"];
    }

    StrictMock<MockController> controller_;
    Requests requests_{controller_, {.instance = "demo", .version = "1.2.3"}};
};

}  // namespace sluice::control
