// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::bench {

/// One connection to a daemon's socket, blocking: latencies of some 50 us are measured with it.
/// Ends the program with a message when the daemon goes away.
class ControlClient {
public:
    explicit ControlClient(const std::string& socket);
    ~ControlClient();
    ControlClient(const ControlClient&) = delete;
    ControlClient& operator=(const ControlClient&) = delete;
    ControlClient(ControlClient&&) = delete;
    ControlClient& operator=(ControlClient&&) = delete;

    /// Whole lines.
    void send(std::string_view lines);
    /// The next answer, without its line's end; valid until the next call.
    std::string_view receive();
    /// Sends as many lines as `lines` has, reading answers meanwhile, so that neither side waits
    /// for the other. Returns how many were refused; the first refusal goes to stderr.
    std::size_t pipeline(std::string_view lines);

private:
    bool has_line() const noexcept;

    int fd_;
    std::string buffer_;
    std::size_t taken_ = 0;  // of buffer_: answers that were handed out
};

/// A request line; `args` is a JSON object.
std::string request(std::string_view netns,
                    std::string_view object,
                    std::string_view command,
                    std::string_view args);

bool is_ok(std::string_view answer) noexcept;

}  // namespace sluice::bench
