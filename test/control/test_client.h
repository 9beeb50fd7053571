// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/server.h"

namespace sluice::control {

/// A directory of this process's own, for sockets.
class SocketPlace {
public:
    SocketPlace()
        : directory_(std::filesystem::temp_directory_path() /
                     ("sluice-test-" + std::to_string(::getpid()))) {
        std::filesystem::remove_all(directory_);
    }
    SocketPlace(const SocketPlace&) = delete;
    SocketPlace& operator=(const SocketPlace&) = delete;
    SocketPlace(SocketPlace&&) = delete;
    SocketPlace& operator=(SocketPlace&&) = delete;
    ~SocketPlace() { std::filesystem::remove_all(directory_); }

    const std::filesystem::path& directory() const { return directory_; }
    std::string path(std::string_view name = "a.sock") const {
        return (directory_ / "run" / name).string();
    }

private:
    std::filesystem::path directory_;
};

/// True when the daemon's loop would call run_once().
inline bool is_readable(const Server& server) {
    pollfd wanted{.fd = server.epoll_fd(), .events = POLLIN, .revents = 0};
    return ::poll(&wanted, 1, 0) == 1;
}

/// As the daemon's loop does; the number of calls, or -1 when it never ends.
inline int run_until_idle(Server& server) {
    for (int rounds = 0; rounds < 100'000; ++rounds) {
        if (!is_readable(server)) {
            return rounds;
        }
        server.run_once();
    }
    return -1;
}

/// A client that never blocks.
class TestClient {
public:
    explicit TestClient(const std::string& path)
        : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
        connected_ =
            ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    }
    bool connected() const { return connected_; }

    /// How much of `bytes` went away; the rest found the buffers full.
    std::size_t send(std::string_view bytes) {
        const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        return count < 0 ? 0 : static_cast<std::size_t>(count);
    }
    void end() { ::shutdown(fd_.get(), SHUT_WR); }
    void close() { fd_ = Fd(); }

    /// What has arrived.
    std::string receive() {
        std::string all;
        std::array<char, 65536> bytes{};
        ssize_t count = 0;
        while ((count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0)) > 0) {
            all.append(bytes.data(), static_cast<std::size_t>(count));
        }
        ended_ = count == 0 || (errno != EAGAIN && errno != EINTR);
        return all;
    }
    /// receive() has met the end of the stream.
    bool ended() const { return ended_; }

private:
    Fd fd_;
    bool connected_ = false;
    bool ended_ = false;
};

}  // namespace sluice::control
