// SPDX-License-Identifier: BSD-3-Clause
#include "control_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace sluice::bench {

namespace {

// Less than the daemon lets a client leave unread in answers, even of the shortest requests.
constexpr std::size_t kAhead = 64;

[[noreturn]] void give_up(const char* what) {
    fmt::print(stderr, "{}: {}\n", what, std::strerror(errno));
    std::exit(1);
}

}  // namespace

ControlClient::ControlClient(const std::string& socket)
    : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket.copy(address.sun_path, sizeof address.sun_path - 1);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what connect() wants
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        give_up(socket.c_str());
    }
}

ControlClient::~ControlClient() {
    ::close(fd_);
}

void ControlClient::send(std::string_view lines) {
    while (!lines.empty()) {
        const ssize_t sent = ::send(fd_, lines.data(), lines.size(), MSG_NOSIGNAL);
        if (sent < 0) {
            give_up("send");
        }
        lines.remove_prefix(static_cast<std::size_t>(sent));
    }
}

bool ControlClient::has_line() const noexcept {
    return buffer_.find('\n', taken_) != std::string::npos;
}

std::string_view ControlClient::receive() {
    if (!has_line()) {
        buffer_.erase(0, taken_);
        taken_ = 0;
    }
    while (!has_line()) {
        std::array<char, 65536> piece;  // filled as far as read
        const ssize_t count = ::recv(fd_, piece.data(), piece.size(), 0);
        if (count <= 0) {
            give_up("the daemon hung up");
        }
        buffer_.append(piece.data(), static_cast<std::size_t>(count));
    }
    const std::size_t end = buffer_.find('\n', taken_);
    const std::string_view line(buffer_.data() + taken_, end - taken_);
    taken_ = end + 1;
    return line;
}

std::size_t ControlClient::pipeline(std::string_view lines) {
    std::size_t outstanding = 0;
    std::size_t refused = 0;
    while (!lines.empty() || outstanding != 0) {
        std::size_t bytes = 0;
        for (; outstanding < kAhead && bytes < lines.size(); ++outstanding) {
            bytes = lines.find('\n', bytes) + 1;
        }
        send(lines.substr(0, bytes));
        lines.remove_prefix(bytes);
        // Half of them, so that the daemon never runs dry.
        const std::size_t wait_for = lines.empty() ? 0 : kAhead / 2;
        for (; outstanding > wait_for; --outstanding) {
            const std::string_view answer = receive();
            if (!is_ok(answer) && refused++ == 0) {
                fmt::print(stderr, "{}\n", answer);
            }
        }
    }
    return refused;
}

std::string request(std::string_view netns,
                    std::string_view object,
                    std::string_view command,
                    std::string_view args) {
    return fmt::format(R"({{"netns":"{}","object":"{}","command":"{}","args":{}}})"
                       "\n",
                       netns,
                       object,
                       command,
                       args);
}

bool is_ok(std::string_view answer) noexcept {
    return answer.find(R"("ok":true)") != std::string_view::npos;
}

}  // namespace sluice::bench
