// SPDX-License-Identifier: BSD-3-Clause
// Latency of a running daemon between two net_tap ports whose kernel ends are in namespaces: a UDP
// socket in the one sends, one in the other receives, both from this thread. Prints a JSON object;
// scripts/bench latency starts it.
//
//   tap_latency FROM-NETNS FROM-ADDRESS TO-NETNS TO-ADDRESS DAEMON-PID max|wakeup|RATE SECONDS
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "latency.h"
#include "preemptions.h"

namespace sluice::test {

namespace {

constexpr std::uint16_t kUdpPort = 9000;
constexpr std::size_t kPayload = 18;  // 60-byte frames

[[noreturn]] void give_up(const std::string& what) {
    std::perror(what.c_str());
    std::exit(1);
}

/// A socket stays in the namespace that it was made in.
int udp_socket(const std::string& netns, const std::string& address) {
    const int there = ::open(("/run/netns/" + netns).c_str(), O_RDONLY | O_CLOEXEC);
    if (there < 0 || ::setns(there, CLONE_NEWNET) != 0) {
        give_up(netns);
    }
    ::close(there);
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_port = htons(kUdpPort);
    constexpr int kBuffer = 4 << 20;
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &kBuffer, sizeof kBuffer);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &kBuffer, sizeof kBuffer);
    if (::inet_pton(AF_INET, address.c_str(), &own.sin_addr) != 1 ||
        ::bind(fd, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) {
        give_up(address);
    }
    return fd;
}

class TapWire {
public:
    TapWire(const std::string& from_netns,
            const std::string& from,
            const std::string& to_netns,
            const std::string& to)
        : out_(udp_socket(from_netns, from)), in_(udp_socket(to_netns, to)) {
        sockaddr_in peer{};
        peer.sin_family = AF_INET;
        peer.sin_port = htons(kUdpPort);
        if (::inet_pton(AF_INET, to.c_str(), &peer.sin_addr) != 1 ||
            ::connect(out_, reinterpret_cast<sockaddr*>(&peer), sizeof peer) != 0) {
            give_up(to);
        }
        for (std::size_t i = 0; i < kMostAtOnce; ++i) {
            vectors_[i] = {.iov_base = payloads_[i].data(), .iov_len = kPayload};
            messages_[i].msg_hdr.msg_iov = &vectors_[i];
            messages_[i].msg_hdr.msg_iovlen = 1;
        }
    }

    std::size_t send(std::size_t count, std::uint64_t now) {
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(payloads_[i].data(), &now, sizeof now);
        }
        const int sent = ::sendmmsg(out_, messages_.data(), static_cast<unsigned>(count), 0);
        return sent < 0 ? 0 : static_cast<std::size_t>(sent);
    }

    template <class Fn>
    void receive(Fn fn) {
        const int count = ::recvmmsg(in_, messages_.data(), kMostAtOnce, MSG_DONTWAIT, nullptr);
        if (count <= 0) {
            return;
        }
        const std::uint64_t now = now_ns();
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            std::uint64_t sent = 0;
            std::memcpy(&sent, payloads_[i].data(), sizeof sent);
            fn(sent, now);
        }
    }

private:
    int out_;
    int in_;
    std::array<std::array<char, kPayload>, kMostAtOnce> payloads_{};
    std::array<iovec, kMostAtOnce> vectors_{};
    std::array<mmsghdr, kMostAtOnce> messages_{};
};

}  // namespace

}  // namespace sluice::test

int main(int argc, char** argv) {
    using namespace sluice::test;
    if (argc != 8) {
        fmt::print(stderr,
                   "tap_latency FROM-NETNS FROM-ADDRESS TO-NETNS TO-ADDRESS DAEMON-PID "
                   "max|wakeup|RATE SECONDS\n");
        return 2;
    }
    TapWire wire(argv[1], argv[2], argv[3], argv[4]);
    // The daemon's control thread shares this core, and the kernel's own threads, which come in for
    // each frame, are part of the way.
    constexpr Preemptions::Allowed kKernel{
        .switches = 100'000, .waited_ns = 200'000, .waited_per_switch_ns = 15'000};
    Preemptions preemptions;
    preemptions.watch("/proc/thread-self");
    preemptions.watch_workers(argv[5]);
    const std::string_view level = argv[6];
    Load load{.per_second = 0, .seconds = std::stod(argv[7])};
    if (level == "wakeup") {
        load = wakeup_load(load.seconds);
    } else if (level != "max") {
        load.per_second = std::stod(argv[6]);
    }
    fmt::print("{{{}}}\n", measure(wire, load, preemptions, kKernel).json());
}
