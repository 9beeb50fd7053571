// SPDX-License-Identifier: BSD-3-Clause
#include "control/server.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "test_client.h"

namespace sluice::control {
namespace {

std::string say_error(const Error& error) {
    return fmt::format("error {}", to_string(error.code));
}

class ServerTest : public testing::Test {
protected:
    void start(Server::Handler handler, const Server::Limits& limits = {}) {
        auto server = Server::listen(place_.path(), std::move(handler), say_error, limits);
        ASSERT_TRUE(server) << server.error().message;
        server_ = *std::move(server);
    }
    /// Answers with the line itself and counts.
    Server::Handler echo() {
        return [this](std::string_view line, bool /*after_failure*/) {
            ++handled_;
            return Reply{.text = fmt::format("<{}>", line), .more = {}};
        };
    }
    std::string exchange(TestClient& client, std::string_view bytes) {
        EXPECT_EQ(client.send(bytes), bytes.size());
        EXPECT_GE(run_until_idle(*server_), 0);
        return client.receive();
    }

    SocketPlace place_;
    std::size_t handled_ = 0;
    std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, AnswersLinesInOrderHoweverTheyAreCut) {
    struct Case {
        const char* name;
        std::vector<std::string_view> pieces;
        const char* want;
    };
    const std::vector<Case> cases{
        {.name = "one line", .pieces = {"a\n"}, .want = "<a>\n"},
        {.name = "three at once", .pieces = {"a\nb\nc\n"}, .want = "<a>\n<b>\n<c>\n"},
        {.name = "byte by byte", .pieces = {"a", "b", "\n", "c", "\n"}, .want = "<ab>\n<c>\n"},
        {.name = "cut inside", .pieces = {"a\nb", "c\nd"}, .want = "<a>\n<bc>\n"},
        {.name = "empty lines", .pieces = {"\n\n"}, .want = "<>\n<>\n"},
        {.name = "zero bytes", .pieces = {std::string_view("\0\n", 2)}, .want = nullptr},
    };
    start(echo());
    for (const Case& row : cases) {
        TestClient client(place_.path());
        std::string got;
        for (const std::string_view piece : row.pieces) {
            got += exchange(client, piece);
        }
        EXPECT_EQ(got, row.want == nullptr ? std::string("<\0>\n", 4) : row.want) << row.name;
    }
}

TEST_F(ServerTest, LastLineNeedsNoEndAndTheStreamEndsAfterItsAnswer) {
    start(echo());
    TestClient client(place_.path());
    client.send("a\nb");
    client.end();
    run_until_idle(*server_);
    EXPECT_EQ(client.receive(), "<a>\n<b>\n");
    EXPECT_TRUE(client.ended());
    EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(ServerTest, ALineTooLongIsRefusedOnceAndTheNextOneIsServed) {
    start(echo(), {.line_bytes = 1000});
    const std::string longest(1000, 'x');
    TestClient client(place_.path());
    EXPECT_EQ(exchange(client, longest + "\n"), fmt::format("<{}>\n", longest));
    EXPECT_EQ(exchange(client, longest + "y\nb\n"), "error limit\n<b>\n");
    // Without its end in sight.
    EXPECT_EQ(exchange(client, longest + "y"), "error limit\n");
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(exchange(client, longest), "");
    }
    EXPECT_EQ(exchange(client, "end\nc\n"), "<c>\n");
    EXPECT_EQ(handled_, 3U);
}

TEST_F(ServerTest, TellsTheHandlerThatTheLineBeforeFailed) {
    start([](std::string_view line, bool after_failure) {
        return Reply{.text = fmt::format("{}{}", line, after_failure ? " after failure" : ""),
                     .more = {},
                     .failed = line == "bad"};
    });
    TestClient client(place_.path());
    TestClient other(place_.path());
    EXPECT_EQ(exchange(client, "a\nbad\n"), "a\nbad\n");
    EXPECT_EQ(exchange(other, "x\n"), "x\n");
    EXPECT_EQ(exchange(client, "b\nc\n"), "b after failure\nc\n");
}

TEST_F(ServerTest, AClientThatDoesNotReadIsNotWorkedForAndLosesNothing) {
    constexpr std::size_t kUnread = 64UZ * 1024;
    constexpr std::size_t kAnswer = 1000;
    start(
        [this](std::string_view line, bool /*after_failure*/) {
            ++handled_;
            return Reply{.text = std::string(line) + std::string(kAnswer, '.'), .more = {}};
        },
        {.unread_bytes = kUnread});
    TestClient lazy(place_.path());
    // As much as the buffers between the two take.
    std::size_t sent = 0;
    std::string line;
    for (bool room = true; room;) {
        for (int i = 0; i < 100 && room; ++i) {
            line = fmt::format("{:07}\n", sent);
            room = lazy.send(line) == line.size();
            sent += room ? 1 : 0;
        }
        ASSERT_GE(run_until_idle(*server_), 0) << "spins";
    }
    const std::size_t while_lazy = handled_;
    EXPECT_LT(while_lazy * kAnswer, kUnread + 300'000) << "beyond a socket's buffer";
    EXPECT_LT(while_lazy, sent);

    TestClient other(place_.path());
    EXPECT_EQ(exchange(other, "hello\n").substr(0, 5), "hello");

    std::string got;
    for (std::size_t i = 0; i < 1'000'000 && got.size() < sent * (kAnswer + 8); ++i) {
        got += lazy.receive();
        server_->run_once();
    }
    ASSERT_EQ(got.size(), sent * (kAnswer + 8));
    for (std::size_t i = 0; i < sent; ++i) {
        ASSERT_EQ(got.substr(i * (kAnswer + 8), 7), fmt::format("{:07}", i));
    }
}

TEST_F(ServerTest, ALongAnswerIsSentInSlicesAndOthersAreServedBetween) {
    constexpr int kSlices = 2000;
    start([](std::string_view line, bool /*after_failure*/) {
        Reply reply{.text = std::string(line), .more = {}};
        if (line == "long") {
            reply.more = [left = kSlices](std::string& out) mutable {
                std::this_thread::sleep_for(std::chrono::microseconds(20));
                out += '.';
                return --left > 0;
            };
        }
        return reply;
    });
    TestClient reader(place_.path());
    TestClient other(place_.path());
    reader.send("long\nnext\n");
    server_->run_once();
    server_->run_once();
    ASSERT_TRUE(is_readable(*server_)) << "work is left, the loop must come back";
    other.send("hello\n");
    server_->run_once();
    server_->run_once();
    EXPECT_EQ(other.receive(), "hello\n");
    EXPECT_TRUE(is_readable(*server_)) << "the long answer must not be done yet";
    std::string got = reader.receive();
    EXPECT_GE(run_until_idle(*server_), 0);
    got += reader.receive();
    EXPECT_EQ(got, "long" + std::string(kSlices, '.') + "\nnext\n");
}

TEST_F(ServerTest, AFloodLeavesOthersTheirTurnAndEndsWithItsSlice) {
    using std::chrono::steady_clock;
    start([](std::string_view line, bool /*after_failure*/) {
        const auto end = steady_clock::now() + std::chrono::microseconds(100);
        while (line == "slow" && steady_clock::now() < end) {
        }
        return Reply{.text = std::string(line), .more = {}};
    });
    TestClient flood(place_.path());
    TestClient other(place_.path());
    std::string lines;
    for (int i = 0; i < 5000; ++i) {
        lines += "slow\n";
    }
    flood.send(lines);
    server_->run_once();
    server_->run_once();
    other.send("hello\n");
    const auto start_time = steady_clock::now();
    server_->run_once();
    const auto took = steady_clock::now() - start_time;
    EXPECT_EQ(other.receive(), "hello\n");
    EXPECT_LT(took, std::chrono::milliseconds(20)) << "5000 requests take 500 ms";
    EXPECT_TRUE(is_readable(*server_));
}

TEST_F(ServerTest, AConnectionTooManyIsToldAndClosed) {
    start(echo(), {.connections = 2});
    TestClient first(place_.path());
    TestClient second(place_.path());
    TestClient third(place_.path());
    third.send("x\n");
    run_until_idle(*server_);
    EXPECT_EQ(third.receive(), "error limit\n");
    third.receive();
    EXPECT_TRUE(third.ended());
    EXPECT_EQ(exchange(second, "a\n"), "<a>\n");
    first.close();
    run_until_idle(*server_);
    TestClient fourth(place_.path());
    EXPECT_EQ(exchange(fourth, "b\n"), "<b>\n");
}

TEST_F(ServerTest, AClientThatVanishesIsForgotten) {
    start([](std::string_view /*line*/, bool /*after_failure*/) {
        return Reply{.text = "", .more = [](std::string& out) {
                         out += std::string(10'000, '.');
                         return true;  // never ends by itself
                     }};
    });
    TestClient client(place_.path());
    client.send("a\n");
    ASSERT_GE(run_until_idle(*server_), 0);
    EXPECT_EQ(server_->connections(), 1U);
    client.close();
    ASSERT_GE(run_until_idle(*server_), 0);
    EXPECT_EQ(server_->connections(), 0U);
}

/// Lines "wait..." are answered once `ready` says so.
Server::Handler when(const bool& ready, std::size_t& asked) {
    return [&](std::string_view line, bool /*after_failure*/) {
        Reply reply{.text = fmt::format("<{}>", line)};
        if (line.starts_with("wait")) {
            reply.ready = [&] {
                ++asked;
                return ready;
            };
        }
        return reply;
    };
}

TEST_F(ServerTest, U_09_WhoWaitsIsAnsweredInOrderAndOthersMeanwhile) {
    bool ready = false;
    std::size_t asked = 0;
    start(when(ready, asked));
    TestClient waiter(place_.path());
    TestClient other(place_.path());
    waiter.send("before\nwait\nafter\n");
    server_->run_once();
    server_->run_once();
    EXPECT_EQ(waiter.receive(), "<before>\n");
    for (int i = 0; i < 5; ++i) {
        other.send(fmt::format("{}\n", i));
        server_->run_once();
        EXPECT_EQ(other.receive(), fmt::format("<{}>\n", i));
    }
    waiter.send("last\n");
    server_->run_once();
    EXPECT_EQ(waiter.receive(), "") << "nothing overtakes the answer that is not ready";
    ready = true;
    ASSERT_GE(run_until_idle(*server_), 0);
    EXPECT_EQ(waiter.receive(), "<wait>\n<after>\n<last>\n");
}

TEST_F(ServerTest, M_02_AWaitingAnswerIsAskedForAtOnceFirstAndThenEveryMillisecond) {
    using std::chrono::milliseconds;
    bool ready = false;
    std::size_t asked = 0;
    start(when(ready, asked), {.eager = milliseconds(5)});
    TestClient waiter(place_.path());
    waiter.send("wait\n");
    server_->run_once();
    server_->run_once();
    EXPECT_TRUE(is_readable(*server_)) << "a grace period is short: the loop must come back";
    std::this_thread::sleep_for(milliseconds(10));
    server_->run_once();
    // From here on as often as the timer says, not as often as the loop can.
    asked = 0;
    std::size_t rounds = 0;
    const auto end = std::chrono::steady_clock::now() + milliseconds(50);
    while (std::chrono::steady_clock::now() < end) {
        if (is_readable(*server_)) {
            server_->run_once();
            ++rounds;
        }
    }
    EXPECT_GE(asked, 2U) << "it is forgotten";
    EXPECT_LE(rounds, 60U) << "it spins";
    EXPECT_LE(asked, 2 * rounds + 1) << "in each round once or twice";
    ready = true;
    std::this_thread::sleep_for(milliseconds(3));
    ASSERT_GE(run_until_idle(*server_), 0);
    EXPECT_EQ(waiter.receive(), "<wait>\n");
    std::this_thread::sleep_for(milliseconds(3));
    EXPECT_FALSE(is_readable(*server_)) << "the timer still ticks";
}

TEST_F(ServerTest, AClientThatGoesWhileItWaitsIsForgotten) {
    const bool ready = false;
    std::size_t asked = 0;
    start(when(ready, asked), {.eager = std::chrono::microseconds(0)});
    TestClient waiter(place_.path());
    waiter.send("wait\n");
    server_->run_once();
    server_->run_once();
    EXPECT_EQ(server_->connections(), 1U);
    waiter.close();
    server_->run_once();
    EXPECT_EQ(server_->connections(), 0U);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    run_until_idle(*server_);
    EXPECT_FALSE(is_readable(*server_));
}

TEST_F(ServerTest, AnAnswerThatIsReadyAtOnceCostsNoRound) {
    const bool ready = true;
    std::size_t asked = 0;
    start(when(ready, asked));
    TestClient client(place_.path());
    EXPECT_EQ(exchange(client, "wait\nnext\n"), "<wait>\n<next>\n");
    EXPECT_EQ(asked, 1U);
    // The client has said all that it will: the answer still comes.
    TestClient last(place_.path());
    last.send("wait");
    last.end();
    run_until_idle(*server_);
    EXPECT_EQ(last.receive(), "<wait>\n");
}

TEST_F(ServerTest, AThrowingHandlerCostsItsClientsOnly) {
    start([](std::string_view line, bool /*after_failure*/) -> Reply {
        if (line == "bad") {
            throw std::bad_alloc();
        }
        return {.text = std::string(line), .more = {}};
    });
    TestClient bad(place_.path());
    exchange(bad, "bad\n");
    EXPECT_TRUE(bad.ended());
    TestClient good(place_.path());
    EXPECT_EQ(exchange(good, "good\n"), "good\n");
}

TEST_F(ServerTest, TheSocketFileIsMadeWithItsDirectoryAndRemovedAtTheEnd) {
    start(echo());
    struct stat made{};
    ASSERT_EQ(::stat(place_.path().c_str(), &made), 0);
    EXPECT_TRUE(S_ISSOCK(made.st_mode));
    EXPECT_EQ(made.st_mode & 07777U, 0660U);
    EXPECT_FALSE(is_readable(*server_)) << "nothing to do, so no spinning";
    server_.reset();
    EXPECT_FALSE(std::filesystem::exists(place_.path()));
}

TEST_F(ServerTest, TheFileOfADeadInstanceIsTakenOverThatOfALiveOneIsNot) {
    start(echo());
    const auto second = Server::listen(place_.path(), echo(), say_error);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kBusy);
    EXPECT_NE(second.error().message.find(place_.path()), std::string::npos);
    TestClient client(place_.path());
    EXPECT_EQ(exchange(client, "still\n"), "<still>\n");

    // As kill -9 leaves it: a file that nobody listens on.
    const std::string dead = place_.path("dead.sock");
    {
        auto dying = Server::listen(dead, echo(), say_error);
        ASSERT_TRUE(dying);
        std::filesystem::create_hard_link(dead, dead + ".kept");
    }
    std::filesystem::rename(dead + ".kept", dead);
    ASSERT_FALSE(TestClient(dead).connected());
    const auto heir = Server::listen(dead, echo(), say_error);
    ASSERT_TRUE(heir) << heir.error().message;
    EXPECT_TRUE(TestClient(dead).connected());
}

TEST_F(ServerTest, AServerRemovesNoFileButItsOwn) {
    start(echo());
    std::filesystem::remove(place_.path());
    std::ofstream(place_.path()) << "somebody else's";
    server_.reset();
    EXPECT_TRUE(std::filesystem::exists(place_.path()));
    const auto over_a_file = Server::listen(place_.path(), echo(), say_error);
    ASSERT_FALSE(over_a_file);
    EXPECT_EQ(over_a_file.error().code, ErrorCode::kExists);
}

TEST_F(ServerTest, APathThatNoSocketCanHaveIsRefused) {
    for (const std::string& path : {std::string(), "/tmp/" + std::string(200, 'x')}) {
        const auto server = Server::listen(path, echo(), say_error);
        ASSERT_FALSE(server);
        EXPECT_EQ(server.error().code, ErrorCode::kInvalid);
    }
    EXPECT_FALSE(Server::listen("/proc/none/a.sock", echo(), say_error));
}

}  // namespace
}  // namespace sluice::control
