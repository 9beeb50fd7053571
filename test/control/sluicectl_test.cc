// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/wait.h>

#include "control/requests.h"
#include "control/server.h"
#include "mock_controller.h"
#include "test_client.h"

namespace sluice::control {
namespace {

using testing::_;
using testing::HasSubstr;
using testing::NiceMock;
using testing::Return;
using Json = nlohmann::json;

struct Outcome {
    int status = -1;
    std::string out;
    std::string err;
};

std::string contents(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Runs of blanks as one: how wide a column is does not matter.
std::string squeezed(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c != ' ' || (!out.empty() && out.back() != ' ' && out.back() != '\n')) {
            out += c;
        }
    }
    return out;
}

/// The program itself against a server in a thread.
class Sluicectl : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_NE(std::getenv("SLUICECTL"), nullptr) << "set SLUICECTL to the program's path";
        for (std::uint32_t i = 0; i < 3000; ++i) {
            const net::IpPrefix to = net::Ipv4Prefix::of(net::Ipv4Addr::from_host(i << 8U), 24);
            controller_.routes_[config::kMainTable][to] = {
                .prefix = to, .type = "unicast", .via = {}, .dev = "p0"};
        }
        controller_.links_.resize(1);
        controller_.links_[0].name = "p0";
        controller_.links_[0].netns = "default";
        controller_.links_[0].kind = "port";
        show_something();
        ON_CALL(controller_, add_route(_, _, _))
            .WillByDefault([this](const std::string& /*netns*/,
                                  const RouteRequest& route,
                                  RouteMode /*mode*/) -> Result<void> {
                if (route.prefix.length() == 31) {
                    return fail(ErrorCode::kExists, "route {} exists", route.prefix.to_string());
                }
                ++added_;
                return {};
            });
        auto server = Server::listen(
            place_.path(),
            [this](std::string_view line, bool after) { return requests_.handle(line, after); },
            Requests::refusal);
        ASSERT_TRUE(server) << server.error().message;
        server_ = *std::move(server);
        loop_ = std::jthread([this](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                pollfd wanted{.fd = server_->epoll_fd(), .events = POLLIN, .revents = 0};
                ::poll(&wanted, 1, 1);
                server_->run_once();
            }
        });
    }
    void show_something() {
        controller_.vrfs_ = {{"blue", 100, {"p0", "p1"}}};
        NextHopInfo gateway;
        gateway.id = 1;
        gateway.hop.via = net::IpAddr::parse("10.0.1.2").value();
        gateway.hop.dev = "p1";
        gateway.active = true;
        gateway.packets = 30;
        NextHopInfo group;
        group.id = 10;
        group.hop.group = {{1, 3}, {2, 1}};
        group.hop.resilient.emplace();
        group.members = {{.id = 1, .weight = 3, .active = true}, {.id = 2}};
        controller_.nexthops_ = {gateway, group};
        RuleInfo first;
        first.rule.priority = 100;
        first.rule.from = net::IpPrefix::parse("10.0.0.0/8").value();
        first.rule.source_ports = {1, 9};
        first.rule.table = 100;
        RuleInfo second;
        second.rule.priority = 200;
        second.rule.mark = 7;
        second.rule.destination_ports = {53, 53};
        second.rule.suppress_prefixlength = 0;
        controller_.rules_ = {first, second};
        controller_.cache_ = {.mode = config::CacheMode::kOn, .entries = 512, .bypassing = {"red"}};
        controller_.workers_.resize(1);
        controller_.uncached_ = {{.worker = 1,
                                  .netns = "red",
                                  .netdev = "p0",
                                  .family = net::Family::kIpv6,
                                  .dsts = 80'000}};
        controller_.draining_ = {
            {.id = NetdevId{9}, .name = "p0.9", .dsts = 3, .held = 1, .since_ms = 250}};
        controller_.exceptions_ = {{.destination = net::IpAddr::parse("192.0.2.9").value(),
                                    .domain = "",
                                    .dev = "p1",
                                    .via = std::nullopt,
                                    .mtu = 1300,
                                    .expires_s = 599}};
    }
    void TearDown() override {
        loop_ = {};
        server_.reset();
    }

    Outcome run(const std::string& arguments, bool with_socket = true) {
        const std::string out = place_.path("out");
        const std::string err = place_.path("err");
        const std::string command = "timeout 20 " + std::string(std::getenv("SLUICECTL")) +
                                    (with_socket ? " -s " + place_.path() : "") + " " + arguments +
                                    " >" + out + " 2>" + err;
        const int status = std::system(command.c_str());  // NOLINT: words of this test's own
        return {.status = WEXITSTATUS(status), .out = contents(out), .err = contents(err)};
    }
    std::string file(std::string_view name, std::string_view text) {
        std::ofstream(place_.path(name)) << text;
        return place_.path(name);
    }

    SocketPlace place_;
    NiceMock<MockController> controller_;
    Requests requests_{controller_, {.instance = "demo", .version = "1"}};
    std::unique_ptr<Server> server_;
    std::atomic<int> added_ = 0;
    std::jthread loop_;
};

TEST_F(Sluicectl, ExitStatusAndOneLineOfError) {
    struct Case {
        const char* name;
        const char* arguments;
        int status;
        const char* err;
    };
    for (const Case& row : {
             Case{"fine", "route add 10.0.0.0/8 via 10.0.0.1", 0, ""},
             Case{"refused", "route add 10.0.0.0/31 via 10.0.0.1", 1, "route 10.0.0.0/31 exists"},
             Case{"value", "route add 10.0.0.1/8 via 10.0.0.1", 1, "host bits set"},
             Case{"not built", "trace show", 1, "not built yet: trace"},
             Case{"netns", "-n red link show", 1, "netns red does not exist"},
             Case{"word", "route ad3", 2, "route has no command"},
             Case{"option", "-q route", 2, "-q"},
             Case{"nothing", "", 2, "no command given"},
             Case{"both families", "-4 -6 route", 2, "exclude"},
         }) {
        const Outcome outcome = run(row.arguments);
        EXPECT_EQ(outcome.status, row.status) << row.name << ": " << outcome.err;
        EXPECT_EQ(outcome.out, "") << row.name;
        EXPECT_THAT(outcome.err, HasSubstr(row.err)) << row.name;
        EXPECT_EQ(std::ranges::count(outcome.err, '\n'), row.status == 0 ? 0 : 1) << row.name;
    }
    const Outcome unreachable = run("-s /nonexistent/a.sock link show", false);
    EXPECT_EQ(unreachable.status, 1);
    EXPECT_THAT(unreachable.err, HasSubstr("is sluice running?"));
}

TEST_F(Sluicectl, JsonIsOneDocumentWithEveryRow) {
    const Outcome routes = run("-j route show");
    EXPECT_EQ(routes.status, 0) << routes.err;
    const Json rows = Json::parse(routes.out);
    ASSERT_EQ(rows.size(), 3000U);
    EXPECT_EQ(rows[2999]["prefix"], "0.11.183.0/24");
    EXPECT_EQ(Json::parse(run("-j neigh show").out), Json::array());
    EXPECT_TRUE(Json::parse(run("-j stats show").out).contains("netdevs"));
    EXPECT_EQ(Json::parse(run("-j link show").out)[0]["addresses"], Json::array());
}

TEST_F(Sluicectl, TablesAreAligned) {
    const Outcome routes = run("r s");
    EXPECT_EQ(std::ranges::count(routes.out, '\n'), 3001);
    EXPECT_TRUE(
        routes.out.starts_with("PREFIX        TYPE     VIA  DEV  METRIC  OWNER  FLAGS\n"
                               "0.0.0.0/24    unicast  -    p0        0  cli    inactive\n"))
        << routes.out.substr(0, 200);
    const Outcome stats = run("stats");
    EXPECT_THAT(stats.out, HasSubstr("\n(total) "));
    EXPECT_EQ(run("neigh").out, "");
}

TEST_F(Sluicectl, NewObjectsAsTables) {
    struct Case {
        const char* arguments;
        const char* want;
    };
    for (const Case& row : {
             Case{"netns", "NAME     NETDEVS  IPV4-ROUTES  IPV6-ROUTES\ndefault        0"},
             Case{"vrf", "NAME  TABLE  INTERFACES\nblue    100  p0 p1\n"},
             Case{"nexthop",
                  "ID  TYPE     TO                        ROUTES  PACKETS  OWNER  FLAGS\n"
                  " 1  gateway  via 10.0.1.2 dev p1            0       30  cli    -\n"
                  "10  group    1,3/2,1(dead)                  0        0  cli    inactive "
                  "resilient buckets 128 idle_timer 120000ms\n"},
             Case{"rule",
                  "PRIORITY  FAMILY  PACKETS                        ACTION           OWNER\n"
                  "     100  ipv4    from 10.0.0.0/8 sport 1-9      table 100        cli\n"
                  "     200  ipv4    from all fwmark 7 dport 53     table main "
                  "suppress_prefixlength 0  cli\n"},
             Case{"cache",
                  "mode on, 512 entries per worker and family\n"
                  "bypassed because of their rules: red\n"
                  "WORKER  FAMILY  HITS  MISSES"},
             Case{"uncached",
                  "WORKER  NETNS  NETDEV  FAMILY  DSTS\n1       red    p0      ipv6    80000\n\n"
                  "removed, with references not yet given up:\n"
                  "NETDEV  ID  DSTS  HELD  SINCE-MS\np0.9     9     3     1       250\n"},
             Case{"route show cache",
                  "DESTINATION  VRF  DEV  VIA   MTU  EXPIRES-S\n192.0.2.9    -    p1   -    1300"
                  "        599\n"},
         }) {
        const Outcome outcome = run(row.arguments);
        EXPECT_EQ(outcome.status, 0) << row.arguments << ": " << outcome.err;
        EXPECT_EQ(squeezed(outcome.out).substr(0, squeezed(row.want).size()), squeezed(row.want));
        EXPECT_EQ(Json::accept(run(std::string("-j ") + row.arguments).out), true);
    }
}

TEST_F(Sluicectl, HelpOfOneObject) {
    const Outcome outcome = run("rule help");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.out, HasSubstr("suppress_prefixlength"));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("nexthop add")));
    EXPECT_THAT(run("help").out, HasSubstr("uncached show"));
}

TEST_F(Sluicectl, ABatchIsDoneInOrder) {
    std::string text = "# comment\n\n";
    for (int i = 0; i < 5000; ++i) {
        text += "r a 10.0.0.0/8 via 10.0.0.1\n";
    }
    const Outcome outcome = run("-b " + file("good.batch", text + "-"));
    EXPECT_EQ(outcome.status, 2) << "\"-\" is no object";
    EXPECT_THAT(outcome.err, HasSubstr("good.batch:5003: unknown object"));
    EXPECT_EQ(added_, 5000);
    const Outcome from_stdin = run("-b - <" + file("short.batch", "version\nr a 10.0.0.0/8 dev x"));
    EXPECT_EQ(from_stdin.status, 0) << from_stdin.err;
    EXPECT_THAT(from_stdin.out, HasSubstr("sluice 1, instance demo"));
    EXPECT_EQ(added_, 5001);
}

TEST_F(Sluicectl, ALineOfABatchMaySayWhichNetns) {
    EXPECT_EQ(run("-n red -b " + file("own.batch", "-n blue netns\n-6 version\nversion\n")).status,
              0);
    struct Case {
        const char* line;
        int status;
        const char* err;
    };
    for (const Case& row : {
             Case{"-n red link show", 1, "netns red does not exist"},
             Case{"--netns red link show", 1, "netns red does not exist"},
             Case{"-n", 2, "a line may begin with -n NETNS"},
             Case{"-j link show", 2, "a line may begin with -n NETNS"},
             Case{"-4", 2, "no command given"},
         }) {
        const Outcome outcome = run("-b " + file("netns.batch", row.line));
        EXPECT_EQ(outcome.status, row.status) << row.line;
        EXPECT_THAT(outcome.err, HasSubstr(row.err)) << row.line;
    }
}

TEST_F(Sluicectl, ABatchStopsAtItsFirstErrorAndSaysWhere) {
    std::string text;
    for (int i = 0; i < 1000; ++i) {
        text += i == 300 ? "r a 10.0.0.0/31 via 10.0.0.1\n" : "r a 10.0.0.0/8 via 10.0.0.1\n";
    }
    const Outcome outcome = run("-b " + file("bad.batch", text));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err,
              "sluicectl: " + place_.path("bad.batch") + ":301: route 10.0.0.0/31 exists\n");
    EXPECT_EQ(added_, 300) << "what was sent ahead must not be done";
}

TEST_F(Sluicectl, OfTwoErrorsInABatchTheFirstCounts) {
    const Outcome outcome =
        run("-b " + file("two.batch",
                         "r a 10.0.0.0/8 via 10.0.0.1\nr a 10.0.0.0/31 via 10.0.0.1\n"
                         "r a 10.0.0.0/8 via 10.0.0.1\nnonsense\n"));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("two.batch:2: route 10.0.0.0/31 exists"));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1);
    EXPECT_EQ(added_, 1);
}

TEST_F(Sluicectl, ABatchWithLongAnswersDoesNotHang) {
    std::string text;
    for (int i = 0; i < 20; ++i) {
        text += "route show\nr a 10.0.0.0/8 via 10.0.0.1\n";
    }
    const Outcome outcome = run("-b " + file("long.batch", text));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 20 * 3001);
}

}  // namespace
}  // namespace sluice::control
