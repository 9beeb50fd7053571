// SPDX-License-Identifier: BSD-3-Clause
#include "control/server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/result.h"
#include "control/server_connection.h"

namespace sluice::control {
namespace {

using Clock = std::chrono::steady_clock;

constexpr mode_t kSocketMode = 0660;
constexpr int kBacklog = 128;

std::unexpected<Error> system_error(std::string_view doing, const std::string& path) {
    const int number = errno;
    const ErrorCode code = number == EACCES || number == EPERM || number == EROFS
                               ? ErrorCode::kPermission
                               : ErrorCode::kInternal;
    return fail(code, "{} {}: {}", doing, path, std::generic_category().message(number));
}

sockaddr_un address_of(const std::string& path) noexcept {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

const sockaddr* generic(const sockaddr_un& address) noexcept {
    return reinterpret_cast<const sockaddr*>(&address);  // NOLINT: the socket API's own cast
}

/// Nothing listens on a socket file whose instance died; anything but a refusal is a sign of life.
bool is_dead(const sockaddr_un& address) noexcept {
    const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    return probe.valid() && ::connect(probe.get(), generic(address), sizeof(address)) != 0 &&
           errno == ECONNREFUSED;
}

}  // namespace

Fd::Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Fd& Fd::operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}
Fd::~Fd() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

Server::Server(std::string path, Handler handler, Refusal refusal, const Limits& limits)
    : path_(std::move(path)),
      handler_(std::move(handler)),
      refusal_(std::move(refusal)),
      limits_(limits) {}

Server::~Server() {
    struct stat now{};
    if (inode_ != 0 && ::lstat(path_.c_str(), &now) == 0 && now.st_dev == device_ &&
        now.st_ino == inode_) {
        ::unlink(path_.c_str());
    }
}

Result<std::unique_ptr<Server>> Server::listen(const std::string& path,
                                               Handler handler,
                                               Refusal refusal) {
    return listen(path, std::move(handler), std::move(refusal), Limits{});
}

Result<std::unique_ptr<Server>> Server::listen(const std::string& path,
                                               Handler handler,
                                               Refusal refusal,
                                               const Limits& limits) {
    std::unique_ptr<Server> server(
        new Server(path, std::move(handler), std::move(refusal), limits));
    if (auto opened = server->open(); !opened) {
        return std::unexpected(std::move(opened.error()));
    }
    return server;
}

Result<void> Server::open() {
    constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
    if (path_.empty() || path_.size() > kLongest) {
        return fail(ErrorCode::kInvalid,
                    "control socket \"{}\": a path has 1 to {} bytes",
                    path_,
                    kLongest);
    }
    std::filesystem::path parent = std::filesystem::path(path_).parent_path();
    parent = parent.empty() ? "." : parent;
    std::error_code failed;
    std::filesystem::create_directories(parent, failed);
    // Two instances that start at once must not take each other's fresh socket for a dead one.
    const Fd directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.valid() || ::flock(directory.get(), LOCK_EX) != 0) {
        return system_error("open directory", parent.string());
    }
    if (auto bound = bind_socket(); !bound) {
        return bound;
    }
    epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    timer_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    epoll_event listener{.events = EPOLLIN, .data = {.ptr = &listener_}};
    epoll_event wake{.events = EPOLLIN, .data = {.ptr = &wake_}};
    epoll_event timer{.events = EPOLLIN, .data = {.ptr = &timer_}};
    if (!epoll_.valid() || !wake_.valid() || !timer_.valid() ||
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &listener) != 0 ||
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &wake) != 0 ||
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &timer) != 0) {
        return system_error("watch", path_);
    }
    return {};
}

Result<void> Server::bind_socket() {
    const sockaddr_un address = address_of(path_);
    struct stat found{};
    if (::lstat(path_.c_str(), &found) == 0) {
        if (!S_ISSOCK(found.st_mode)) {
            return fail(ErrorCode::kExists,
                        "control socket {}: a file that is no socket is there; remove it",
                        path_);
        }
        if (!is_dead(address)) {
            return fail(ErrorCode::kBusy,
                        "control socket {}: another instance is running; stop it, or give this one "
                        "another name (instance: in the YAML)",
                        path_);
        }
        if (::unlink(path_.c_str()) != 0) {
            return system_error("remove", path_);
        }
    }
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener_.valid() || ::bind(listener_.get(), generic(address), sizeof(address)) != 0) {
        return system_error("bind", path_);
    }
    // Before listen() nobody can connect, so nobody slips in under a wider mode.
    if (::lstat(path_.c_str(), &found) != 0 || ::chmod(path_.c_str(), kSocketMode) != 0) {
        return system_error("set the mode of", path_);
    }
    device_ = found.st_dev;
    inode_ = found.st_ino;
    if (::listen(listener_.get(), kBacklog) != 0) {
        return system_error("listen on", path_);
    }
    return {};
}

void Server::accept_all() {
    for (;;) {
        Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!client.valid()) {
            return;
        }
        const bool full = connections_.size() >= limits_.connections;
        auto connection = std::make_unique<Connection>(std::move(client), epoll_.get(), limits_);
        if (full) {
            // Too short to fill a fresh socket's buffer: this sends it and hangs up.
            connection->refuse(refusal_(
                Error{ErrorCode::kLimit,
                      fmt::format("more than {} connections at a time", limits_.connections)}));
            connection->flush();
            continue;
        }
        connection->flush();
        connections_.push_back(std::move(connection));
    }
}

void Server::run_once() noexcept {
    try {
        std::array<epoll_event, 80> events;  // NOLINT: not read before it is written
        const int ready =
            ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
        bool accepts = false;
        for (int i = 0; i < ready; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            if (event.data.ptr == &listener_) {
                accepts = true;
            } else if (event.data.ptr == &timer_) {
                std::uint64_t ticks = 0;
                [[maybe_unused]] const ssize_t count =
                    ::read(timer_.get(), &ticks, sizeof(ticks));  // not readable until the next
            } else if (event.data.ptr != &wake_) {
                static_cast<Connection*>(event.data.ptr)->on_event(event.events);
            }
        }
        if (accepts) {
            accept_all();
        }
        work();
        drop_closed();
    } catch (const std::exception&) {
        // Out of memory with big requests under way: their clients are what can be given up.
        connections_.clear();
        set_pending(false);
        set_timer(false);
    }
}

/// One step of each connection in turn until nothing is left or the slice is over.
void Server::work() {
    const auto end = Clock::now() + limits_.slice;
    const std::size_t count = connections_.size();
    std::size_t idle = 0;
    auto now = end;
    while (idle < count) {
        next_ = next_ < count ? next_ : 0;
        idle = connections_[next_]->step(handler_, refusal_) ? 0 : idle + 1;
        ++next_;
        now = Clock::now();
        if (now >= end) {
            break;
        }
    }
    for (const auto& connection : connections_) {
        connection->flush();
    }
    bool pending = false;
    bool waits = false;
    for (const auto& connection : connections_) {
        const auto& since = connection->waits_since();
        const bool eager = since && now - *since < limits_.eager;
        pending |= eager || connection->has_work();
        waits |= since && !eager;
    }
    set_pending(pending);
    set_timer(waits && !pending);
}

void Server::drop_closed() {
    std::erase_if(connections_, [](const auto& c) { return c->is_over(); });
}

void Server::set_timer(bool armed) noexcept {
    if (armed == armed_) {
        return;
    }
    constexpr long kMillisecond = 1'000'000;
    itimerspec every{};
    every.it_value.tv_nsec = armed ? kMillisecond : 0;
    every.it_interval = every.it_value;
    armed_ = ::timerfd_settime(timer_.get(), 0, &every, nullptr) == 0 ? armed : armed_;
}

void Server::set_pending(bool pending) noexcept {
    if (pending == pending_) {
        return;
    }
    std::uint64_t one = 1;
    const ssize_t done =
        pending ? ::write(wake_.get(), &one, sizeof(one)) : ::read(wake_.get(), &one, sizeof(one));
    pending_ = done == sizeof(one) ? pending : pending_;
}

}  // namespace sluice::control
