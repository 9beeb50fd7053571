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

namespace sluice::control {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 64UZ * 1024;
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

/// One client: bytes in, lines answered in order, bytes out.
class Server::Connection {
public:
    Connection(Fd fd, int epoll, const Limits& limits)
        : fd_(std::move(fd)), epoll_(epoll), limits_(limits) {
        epoll_event event{.events = 0, .data = {.ptr = this}};
        failed_ = ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_.get(), &event) != 0;
    }

    void on_event(std::uint32_t events) {
        if ((events & (EPOLLIN | EPOLLHUP)) != 0) {
            receive();
        }
        // Who has gone cannot be answered; one that waits would say so in every round.
        if ((events & EPOLLERR) != 0 || ((events & EPOLLHUP) != 0 && ready_)) {
            failed_ = true;
        }
    }

    /// A slice of an answer, or one line: true when there was something to do.
    /// Not so while its answer is not ready.
    bool step(Handler& handler, Refusal& refusal) {
        if (failed_ || unread() >= limits_.unread_bytes || (ready_ && !is_ready())) {
            return false;
        }
        if (more_) {
            if (!more_(out_)) {
                more_ = nullptr;
                out_ += '\n';
            }
            return true;
        }
        const std::string_view rest = std::string_view(in_).substr(parsed_);
        std::size_t end = rest.find('\n', searched_);
        if (end == std::string_view::npos) {
            searched_ = rest.size();
            return unfinished_line(rest, handler, refusal);
        }
        answer(rest.substr(0, end), handler, refusal);
        searched_ = 0;
        parsed_ += end + 1;
        return true;
    }

    /// Since when the answer is waited for, if it is not ready.
    const std::optional<Clock::time_point>& waits_since() const noexcept { return waits_since_; }

    /// Sends what there is and says what to wait for.
    void flush() {
        send();
        if (failed_) {
            return;
        }
        const bool reads = !at_end_ && in_.size() - parsed_ <= limits_.line_bytes &&
                           unread() < limits_.unread_bytes && !more_ && !ready_;
        const std::uint32_t wanted = (reads ? EPOLLIN : 0U) | (unread() > 0 ? EPOLLOUT : 0U);
        if (wanted != waits_for_) {
            epoll_event event{.events = wanted, .data = {.ptr = this}};
            failed_ = ::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd_.get(), &event) != 0;
            waits_for_ = wanted;
        }
    }

    /// True when step() would find work without any further event.
    bool has_work() const noexcept {
        const std::size_t rest = in_.size() - parsed_;
        return !failed_ && !ready_ && unread() < limits_.unread_bytes &&
               (more_ || rest > limits_.line_bytes || (at_end_ && rest > 0) ||
                in_.find('\n', parsed_ + searched_) != std::string::npos);
    }
    bool is_over() const noexcept {
        return failed_ || (at_end_ && !more_ && !ready_ && parsed_ == in_.size() && unread() == 0);
    }
    /// Answers `text` and hears nothing more from the client.
    void refuse(const std::string& text) {
        out_ = text + '\n';
        at_end_ = true;
    }

private:
    std::size_t unread() const noexcept { return out_.size() - sent_; }

    void receive() {
        in_.erase(0, parsed_);
        parsed_ = 0;
        std::array<char, kReadBytes> bytes;  // NOLINT: not read before it is written
        const ssize_t count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
        if (count > 0) {
            in_.append(bytes.data(), static_cast<std::size_t>(count));
        } else if (count == 0) {
            at_end_ = true;
        } else if (errno != EAGAIN && errno != EINTR) {
            failed_ = true;
        }
    }

    bool unfinished_line(std::string_view rest, Handler& handler, Refusal& refusal) {
        if (rest.size() > limits_.line_bytes) {
            // Said once; what follows up to the line's end is skipped as it comes.
            if (!std::exchange(skipping_, true)) {
                refuse_line(refusal);
            }
            parsed_ = in_.size();
            searched_ = 0;
            return true;
        }
        if (!at_end_ || rest.empty()) {
            return false;
        }
        answer(rest, handler, refusal);
        parsed_ = in_.size();
        searched_ = 0;
        return true;
    }

    void answer(std::string_view line, Handler& handler, Refusal& refusal) {
        if (std::exchange(skipping_, false)) {
            return;
        }
        if (line.size() > limits_.line_bytes) {
            refuse_line(refusal);
            return;
        }
        Reply reply = handler(line, after_failure_);
        after_failure_ = reply.failed;
        if (reply.ready && !reply.ready()) {
            ready_ = std::move(reply.ready);
            waits_since_ = Clock::now();
            kept_ = std::move(reply.text);
            more_ = std::move(reply.more);
            return;
        }
        begin(reply.text, std::move(reply.more));
    }

    void begin(std::string_view text, std::move_only_function<bool(std::string&)> more) {
        out_ += text;
        more_ = std::move(more);
        if (!more_) {
            out_ += '\n';
        }
    }

    bool is_ready() {
        if (!ready_()) {
            return false;
        }
        ready_ = nullptr;
        waits_since_.reset();
        begin(std::exchange(kept_, {}), std::move(more_));
        return true;
    }

    void refuse_line(Refusal& refusal) {
        after_failure_ = true;
        out_ += refusal(Error{ErrorCode::kLimit,
                              fmt::format("request longer than {} bytes", limits_.line_bytes)});
        out_ += '\n';
    }

    void send() {
        while (!failed_ && unread() > 0) {
            const ssize_t count =
                ::send(fd_.get(), out_.data() + sent_, unread(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (count < 0) {
                failed_ = errno != EAGAIN && errno != EINTR;
                break;
            }
            sent_ += static_cast<std::size_t>(count);
        }
        out_.erase(0, sent_);
        sent_ = 0;
    }

    Fd fd_;
    int epoll_;
    const Limits& limits_;
    std::string in_;
    std::size_t parsed_ = 0;    // bytes of in_ that are answered
    std::size_t searched_ = 0;  // bytes after that which hold no line end
    std::string out_;
    std::size_t sent_ = 0;
    std::move_only_function<bool(std::string&)> more_;
    std::move_only_function<bool()> ready_;  // of the answer in kept_ and more_
    std::string kept_;
    std::optional<Clock::time_point> waits_since_;
    std::uint32_t waits_for_ = 0;
    bool after_failure_ = false;
    bool skipping_ = false;
    bool at_end_ = false;
    bool failed_ = false;
};

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
