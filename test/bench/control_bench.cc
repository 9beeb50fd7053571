// SPDX-License-Identifier: BSD-3-Clause
// Clients of a running daemon, for scripts/bench removal and netns-move. Prints one JSON object.
//
//   control_bench SOCKET batch < LINES             sends request lines as they are
//   control_bench SOCKET removal NETDEV NAME...    deletes the netdevs NAME one after the other
//   control_bench SOCKET removal-batch NETDEV NAME...   the same in one request
//       while another client changes NETDEV's MTU to what it is, over and over
//   control_bench SOCKET netns CLIENTS FIRST COUNT PORT   makes COUNT netns with a VLAN of PORT
//   each control_bench SOCKET netns-del FIRST COUNT
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <latch>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "control_client.h"

namespace sluice::bench {

namespace {

using Clock = std::chrono::steady_clock;
// Before and after what is measured, so that what is normal is seen, too.
constexpr auto kMargin = std::chrono::milliseconds(20);
constexpr unsigned kRoutes = 12;

double us_since(Clock::time_point start) {
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

int batch(const std::string& socket) {
    ControlClient client(socket);
    const std::string lines(std::istreambuf_iterator<char>(std::cin), {});
    const auto start = Clock::now();
    const std::size_t refused = client.pipeline(lines);
    fmt::print(R"({{"requests": {}, "refused": {}, "us": {:.1f}}})"
               "\n",
               std::ranges::count(lines, '\n'),
               refused,
               us_since(start));
    return refused == 0 ? 0 : 1;
}

// --- removal ------------------------------------------------------------------------------------

/// How long the daemon takes to answer a request that changes nothing, again and again.
std::vector<double> probe(const std::string& socket,
                          std::string_view netdev,
                          std::latch& started,
                          const std::atomic<bool>& stop) {
    ControlClient client(socket);
    const std::string line =
        request("default", "link", "set", fmt::format(R"({{"name":"{}","mtu":1500}})", netdev));
    std::vector<double> latencies;
    latencies.reserve(100'000);
    started.count_down();
    while (!stop) {
        const auto start = Clock::now();
        client.send(line);
        if (!is_ok(client.receive())) {
            fmt::print(stderr, "link set was refused\n");
            std::exit(1);
        }
        latencies.push_back(us_since(start));
    }
    return latencies;
}

std::string deletion(std::span<const std::string_view> names) {
    return request(
        "default", "link", "del", fmt::format(R"({{"names":["{}"]}})", fmt::join(names, R"(",")")));
}

int removal(const std::string& socket,
            bool as_batch,
            std::string_view netdev,
            std::span<const std::string_view> names) {
    ControlClient client(socket);
    std::latch started(1);
    std::atomic<bool> stop{false};
    std::vector<double> latencies;
    std::jthread other([&] { latencies = probe(socket, netdev, started, stop); });
    started.wait();
    std::this_thread::sleep_for(kMargin);
    bool fine = true;
    const auto remove = [&](std::span<const std::string_view> which) {
        client.send(deletion(which));
        const std::string_view answer = client.receive();
        if (!is_ok(answer)) {
            fmt::print(stderr, "{}\n", answer);
            fine = false;
        }
    };
    const auto start = Clock::now();
    if (as_batch) {
        remove(names);
    } else {
        for (std::size_t i = 0; i < names.size(); ++i) {
            remove(names.subspan(i, 1));
        }
    }
    const double took = us_since(start);
    std::this_thread::sleep_for(kMargin);
    stop = true;
    other.join();
    std::ranges::sort(latencies);
    fmt::print(R"({{"removed": {}, "us": {:.1f}, "requests": {}, "median_us": {:.1f}, )"
               R"("p99_us": {:.1f}, "worst_us": {:.1f}}})"
               "\n",
               names.size(),
               took,
               latencies.size(),
               latencies[latencies.size() / 2],
               latencies[latencies.size() * 99 / 100],
               latencies.back());
    return fine ? 0 : 1;
}

// --- netns --------------------------------------------------------------------------------------

/// Everything for the `n`-th netns: 17 requests.
std::string netns_lines(unsigned n, std::string_view port) {
    const std::string name = fmt::format("n{}", n);
    const std::string vlan = fmt::format("v{}", n);
    std::string lines = request("default", "netns", "add", fmt::format(R"({{"name":"{}"}})", name));
    lines += request("default",
                     "link",
                     "add",
                     fmt::format(R"({{"name":"{}","link":"{}","vlan_id":{}}})", vlan, port, n + 1));
    lines += request(
        "default", "link", "set", fmt::format(R"({{"name":"{}","netns":"{}"}})", vlan, name));
    // Every netns has the same addresses: they are instances of their own.
    for (const char* address : {"10.1.0.1/24", "fd01::1/64"}) {
        lines += request(
            name, "addr", "add", fmt::format(R"({{"address":"{}","dev":"{}"}})", address, vlan));
    }
    for (unsigned i = 0; i < kRoutes; ++i) {
        const bool v4 = i % 2 == 0;
        const std::string prefix =
            v4 ? fmt::format("198.18.{}.0/24", i) : fmt::format("2001:db8:{:x}::/48", i);
        lines += request(
            name,
            "route",
            "add",
            fmt::format(R"({{"prefix":"{}","via":"{}"}})", prefix, v4 ? "10.1.0.2" : "fd01::2"));
    }
    return lines;
}

/// Each client takes the next netns that nobody has, sends its requests in one go and waits for the
/// answers.
int netns(const std::string& socket,
          unsigned clients,
          unsigned first,
          unsigned count,
          std::string_view port) {
    std::vector<std::string> lines;
    for (unsigned n = 0; n < count; ++n) {
        lines.push_back(netns_lines(first + n, port));
    }
    std::atomic<unsigned> next{0};
    std::atomic<std::size_t> refused{0};
    std::latch ready(clients + 1);
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < clients; ++i) {
        threads.emplace_back([&] {
            ControlClient client(socket);
            ready.arrive_and_wait();
            for (unsigned n = next++; n < count; n = next++) {
                refused += client.pipeline(lines[n]);
            }
        });
    }
    ready.arrive_and_wait();
    const auto start = Clock::now();
    threads.clear();
    const double us = us_since(start);
    fmt::print(R"({{"clients": {}, "netns": {}, "refused": {}, "us": {:.1f}}})"
               "\n",
               clients,
               count,
               refused.load(),
               us);
    return refused == 0 ? 0 : 1;
}

int delete_netns(const std::string& socket, unsigned first, unsigned count) {
    ControlClient client(socket);
    std::string lines;
    for (unsigned n = first; n < first + count; ++n) {
        lines += request("default", "netns", "del", fmt::format(R"({{"name":"n{}"}})", n));
    }
    const auto start = Clock::now();
    const std::size_t refused = client.pipeline(lines);
    fmt::print(R"({{"netns": {}, "refused": {}, "us": {:.1f}}})"
               "\n",
               count,
               refused,
               us_since(start));
    return refused == 0 ? 0 : 1;
}

unsigned number(std::string_view text) {
    unsigned value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

int run(std::span<const std::string_view> words) {
    if (words.size() >= 2) {
        const std::string socket(words[0]);
        const std::string_view what = words[1];
        if (what == "batch" && words.size() == 2) {
            return batch(socket);
        }
        if ((what == "removal" || what == "removal-batch") && words.size() >= 4) {
            return removal(socket, what == "removal-batch", words[2], words.subspan(3));
        }
        if (what == "netns" && words.size() == 6 && number(words[2]) != 0) {
            return netns(socket, number(words[2]), number(words[3]), number(words[4]), words[5]);
        }
        if (what == "netns-del" && words.size() == 4) {
            return delete_netns(socket, number(words[2]), number(words[3]));
        }
    }
    fmt::print(stderr,
               "usage: control_bench SOCKET batch|removal|removal-batch|netns|netns-del ...\n");
    return 2;
}

}  // namespace

}  // namespace sluice::bench

int main(int argc, char** argv) {
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    return sluice::bench::run(words);
}
