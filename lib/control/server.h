// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::control {

/// A file descriptor and its end.
class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) noexcept : fd_(fd) {}
    Fd(Fd&& other) noexcept;
    Fd& operator=(Fd&& other) noexcept;
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    ~Fd();
    int get() const noexcept { return fd_; }
    bool valid() const noexcept { return fd_ >= 0; }

private:
    int fd_ = -1;
};

/// The answer to one line. A long one comes in slices: `more` appends the next slice to its
/// argument and returns false once that was the last. The server adds the line's end.
struct Reply {
    std::string text;
    std::move_only_function<bool(std::string& out)> more{};  // may be empty: `text` is everything
    bool failed = false;                                     // the client is told of an error
    /// May be empty. Else nothing of the answer is sent, and no later line of this client looked
    /// at, before this says true; it is asked again and again, at least every millisecond.
    std::move_only_function<bool()> ready{};
};

/// Serves lines over a UNIX socket (see protocol.md, Transport), never blocking: it lives inside
/// the control thread's event loop. All members: control thread.
class Server {
public:
    struct Limits {
        std::size_t line_bytes = 256UZ * 1024;
        std::size_t unread_bytes = 256UZ * 1024;  // answers a client may leave unread
        std::size_t connections = 64;
        std::chrono::microseconds slice{1000};  // work in one run_once()
        /// How long an answer that is not ready is asked for in each round of the loop; a grace
        /// period under traffic ends in a fraction of this. Then every millisecond.
        std::chrono::microseconds eager{2000};
    };
    /// `after_failure`: the line before it on this connection failed.
    using Handler = std::move_only_function<Reply(std::string_view line, bool after_failure)>;
    /// The answer to a line that is too long or a connection too many.
    using Refusal = std::move_only_function<std::string(const Error& error)>;

    /// Takes over the socket file of an instance that has died. kBusy: a live one has it; kExists:
    /// the path is no socket; kPermission; kInvalid: longer than a socket address holds.
    static Result<std::unique_ptr<Server>> listen(const std::string& path,
                                                  Handler handler,
                                                  Refusal refusal);
    static Result<std::unique_ptr<Server>> listen(const std::string& path,
                                                  Handler handler,
                                                  Refusal refusal,
                                                  const Limits& limits);
    ~Server();  // removes the socket file
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    Server(Server&&) = delete;
    Server& operator=(Server&&) = delete;

    /// Readable whenever run_once() has something to do.
    int epoll_fd() const noexcept { return epoll_.get(); }
    /// Handles what is ready, for about Limits::slice, without blocking.
    void run_once() noexcept;
    std::size_t connections() const noexcept { return connections_.size(); }

private:
    class Connection;

    Server(std::string path, Handler handler, Refusal refusal, const Limits& limits);
    Result<void> open();
    Result<void> bind_socket();  // with the directory locked
    void accept_all();
    void work();
    void drop_closed();
    void set_pending(bool pending) noexcept;
    void set_timer(bool armed) noexcept;

    std::string path_;
    Handler handler_;
    Refusal refusal_;
    Limits limits_;
    Fd listener_;
    Fd epoll_;
    Fd wake_;   // eventfd: readable while work is left that no socket event announces
    Fd timer_;  // ticks while somebody waits for what is not ready, beyond Limits::eager
    bool pending_ = false;
    bool armed_ = false;
    std::uint64_t device_ = 0;  // of the socket file, to remove no other's
    std::uint64_t inode_ = 0;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::size_t next_ = 0;  // connection that is served first in the next slice
};

}  // namespace sluice::control
