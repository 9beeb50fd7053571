// SPDX-License-Identifier: BSD-3-Clause
#include "sluicectl_client.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <expected>
#include <filesystem>
#include <functional>
#include <istream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace sluicectl {
namespace {

constexpr const char* kSocketDirectory = "/run/sluice";

std::expected<Json, std::string> result_of(Json answer) {
    constexpr const char* kStrange = "the daemon's answer is none of the protocol's";
    if (!answer.is_object() || !answer.contains("ok")) {
        return std::unexpected(kStrange);
    }
    if (answer["ok"] == true) {
        return std::move(answer["result"]);
    }
    const auto message = answer.find("error");
    if (message == answer.end() || !message->contains("message")) {
        return std::unexpected(kStrange);
    }
    return std::unexpected((*message)["message"].get<std::string>());
}

}  // namespace

std::expected<Socket, std::string> Socket::connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
        return std::unexpected(fmt::format("{}: too long for the path of a socket", path));
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);  // the socket API's own cast
    if (socket.fd_ < 0 || ::connect(socket.fd_, generic, sizeof(address)) != 0) {
        const int number = errno;
        return std::unexpected(
            fmt::format("{}: {}{}",
                        path,
                        std::generic_category().message(number),
                        number == ECONNREFUSED || number == ENOENT ? "; is sluice running?" : ""));
    }
    return socket;
}

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket::~Socket() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

bool Socket::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR) {
            return false;
        }
        bytes.remove_prefix(count < 0 ? 0 : static_cast<std::size_t>(count));
    }
    return true;
}

void Socket::end_of_requests() {
    ::shutdown(fd_, SHUT_WR);
}

Socket::int_type Socket::underflow() {
    ssize_t count = 0;
    do {
        count = ::recv(fd_, buffer_.data(), buffer_.size(), 0);
    } while (count < 0 && errno == EINTR);
    if (count <= 0) {
        return traits_type::eof();
    }
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return traits_type::to_int_type(*gptr());
}

bool Socket::read_line(std::string& line) {
    line.clear();
    while (true) {
        if (gptr() == egptr() && underflow() == traits_type::eof()) {
            return false;
        }
        char* const end = std::find(gptr(), egptr(), '\n');
        line.append(gptr(), end);
        const bool complete = end != egptr();
        setg(eback(), complete ? end + 1 : end, egptr());
        if (complete) {
            return true;
        }
    }
}

std::expected<std::string, std::string> find_socket(const std::string& socket,
                                                    const std::string& instance) {
    if (!socket.empty()) {
        return socket;
    }
    if (!instance.empty()) {
        return fmt::format("{}/{}.sock", kSocketDirectory, instance);
    }
    std::vector<std::string> names;
    std::string found;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(kSocketDirectory, failed)) {
        const std::filesystem::path& path = entry.path();
        // A file whose instance died is no choice.
        if (path.extension() == ".sock" && Socket::connect(path.string())) {
            names.push_back(path.stem().string());
            found = path.string();
        }
    }
    if (names.size() > 1) {
        std::ranges::sort(names);
        return std::unexpected(
            fmt::format("several instances run; choose one with -i: {}", fmt::join(names, ", ")));
    }
    if (names.empty()) {
        return std::unexpected(fmt::format(
            "no instance of sluice that can be reached has its socket in {}; is it running? "
            "(-s SOCKET names one elsewhere)",
            kSocketDirectory));
    }
    return found;
}

std::expected<Json, std::string> read_answer(Socket& socket,
                                             const std::function<void(const Json&)>& row) {
    using enum Json::parse_event_t;
    std::istream stream(&socket);
    // {"id": ..., "ok": ..., "result": [row, ...]}: the only array at depth 1 is the result.
    bool in_rows = false;
    const auto take_row = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (depth == 1 && (event == array_start || event == array_end)) {
            in_rows = event == array_start;
        }
        if (!in_rows || depth != 2 || event != object_end) {
            return true;
        }
        row(parsed);
        return false;
    };
    try {
        return result_of(Json::parse(stream, take_row));
    } catch (const Json::parse_error&) {
        return std::unexpected("the daemon hung up before it had answered");
    }
}

std::expected<Json, std::string> parse_answer(std::string_view line) {
    // A batch of changes gets nothing but these.
    if (line == R"({"id":null,"ok":true,"result":null})") {
        return Json();
    }
    try {
        return result_of(Json::parse(line));
    } catch (const Json::parse_error&) {
        return std::unexpected("the daemon's answer is not JSON");
    }
}

}  // namespace sluicectl
