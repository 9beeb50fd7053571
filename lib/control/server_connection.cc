// SPDX-License-Identifier: BSD-3-Clause
#include "control/server_connection.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/result.h"

namespace sluice::control {
namespace {

constexpr std::size_t kReadBytes = 64UZ * 1024;

}  // namespace

Server::Connection::Connection(Fd fd, int epoll, const Limits& limits)
    : fd_(std::move(fd)), epoll_(epoll), limits_(limits) {
    epoll_event event{.events = 0, .data = {.ptr = this}};
    failed_ = ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_.get(), &event) != 0;
}

void Server::Connection::on_event(std::uint32_t events) {
    if ((events & (EPOLLIN | EPOLLHUP)) != 0) {
        receive();
    }
    // Who has gone cannot be answered; one that waits would say so in every round.
    if ((events & EPOLLERR) != 0 || ((events & EPOLLHUP) != 0 && ready_)) {
        failed_ = true;
    }
}

bool Server::Connection::step(Handler& handler, Refusal& refusal) {
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

void Server::Connection::flush() {
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

bool Server::Connection::has_work() const noexcept {
    const std::size_t rest = in_.size() - parsed_;
    return !failed_ && !ready_ && unread() < limits_.unread_bytes &&
           (more_ || rest > limits_.line_bytes || (at_end_ && rest > 0) ||
            in_.find('\n', parsed_ + searched_) != std::string::npos);
}

void Server::Connection::refuse(const std::string& text) {
    out_ = text + '\n';
    at_end_ = true;
}

void Server::Connection::receive() {
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

bool Server::Connection::unfinished_line(std::string_view rest,
                                         Handler& handler,
                                         Refusal& refusal) {
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

void Server::Connection::answer(std::string_view line, Handler& handler, Refusal& refusal) {
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

void Server::Connection::begin(std::string_view text,
                               std::move_only_function<bool(std::string&)> more) {
    out_ += text;
    more_ = std::move(more);
    if (!more_) {
        out_ += '\n';
    }
}

bool Server::Connection::is_ready() {
    if (!ready_()) {
        return false;
    }
    ready_ = nullptr;
    waits_since_.reset();
    begin(std::exchange(kept_, {}), std::move(more_));
    return true;
}

void Server::Connection::refuse_line(Refusal& refusal) {
    after_failure_ = true;
    out_ += refusal(
        Error{ErrorCode::kLimit, fmt::format("request longer than {} bytes", limits_.line_bytes)});
    out_ += '\n';
}

void Server::Connection::send() {
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

}  // namespace sluice::control
