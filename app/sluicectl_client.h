// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <expected>
#include <functional>
#include <streambuf>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace sluicectl {

using Json = nlohmann::ordered_json;

/// The socket as a stream of bytes to read; writing goes past it.
class Socket final : public std::streambuf {
public:
    static std::expected<Socket, std::string> connect(const std::string& path);
    Socket(Socket&& other) noexcept;
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    Socket& operator=(Socket&&) = delete;
    ~Socket() override;

    /// False when the daemon has hung up; what it said before can still be read.
    bool send(std::string_view bytes);
    void end_of_requests();
    /// One answer's line without its end; false when there is none any more.
    bool read_line(std::string& line);

protected:
    int_type underflow() override;

private:
    explicit Socket(int fd) : fd_(fd) {}

    int fd_;
    std::array<char, 65536> buffer_{};
};

/// The socket to talk to: `socket`, or that of `instance`, or of the only instance that runs.
std::expected<std::string, std::string> find_socket(const std::string& socket,
                                                    const std::string& instance);

/// The answer to the only request of `socket`, which is left at its end. When the result is an
/// array, its rows go to `row` as they arrive and the array stays empty: a full table is never
/// kept as a whole. The error is the daemon's message.
std::expected<Json, std::string> read_answer(Socket& socket,
                                             const std::function<void(const Json&)>& row);

/// The result in one answer's line.
std::expected<Json, std::string> parse_answer(std::string_view line);

}  // namespace sluicectl
