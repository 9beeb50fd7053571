// SPDX-License-Identifier: BSD-3-Clause
#include "control/notify.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace sluice::control {

void notify(std::string_view state) noexcept {
    const char* path = std::getenv("NOTIFY_SOCKET");
    sockaddr_un address{};
    const std::size_t length = path == nullptr ? 0 : std::strlen(path);
    if (length < 2 || length >= sizeof(address.sun_path)) {
        return;
    }
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path, length);
    if (path[0] == '@') {
        address.sun_path[0] = '\0';  // an abstract name
    }
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    // A manager that does not listen loses a message; that is its affair.
    static_cast<void>(
        ::sendto(fd,
                 state.data(),
                 state.size(),
                 MSG_NOSIGNAL | MSG_DONTWAIT,
                 reinterpret_cast<const sockaddr*>(&address),  // NOLINT: the sockets API
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length)));
    ::close(fd);
}

void notify_reloading() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    const auto us = static_cast<long long>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1'000;
    notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", us));
}

}  // namespace sluice::control
