// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "control/server.h"

/// Inside of control/server.
namespace sluice::control {

/// One client: bytes in, lines answered in order, bytes out.
class Server::Connection {
public:
    using Clock = std::chrono::steady_clock;

    Connection(Fd fd, int epoll, const Limits& limits);

    void on_event(std::uint32_t events);
    /// A slice of an answer, or one line: true when there was something to do.
    /// Not so while its answer is not ready.
    bool step(Handler& handler, Refusal& refusal);
    /// Sends what there is and says what to wait for.
    void flush();
    /// Answers `text` and hears nothing more from the client.
    void refuse(const std::string& text);

    /// Since when the answer is waited for, if it is not ready.
    const std::optional<Clock::time_point>& waits_since() const noexcept { return waits_since_; }
    /// True when step() would find work without any further event.
    bool has_work() const noexcept;
    bool is_over() const noexcept {
        return failed_ || (at_end_ && !more_ && !ready_ && parsed_ == in_.size() && unread() == 0);
    }

private:
    std::size_t unread() const noexcept { return out_.size() - sent_; }
    void receive();
    void send();
    bool unfinished_line(std::string_view rest, Handler& handler, Refusal& refusal);
    void answer(std::string_view line, Handler& handler, Refusal& refusal);
    void begin(std::string_view text, std::move_only_function<bool(std::string&)> more);
    bool is_ready();
    void refuse_line(Refusal& refusal);

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

}  // namespace sluice::control
