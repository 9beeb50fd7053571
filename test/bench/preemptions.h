// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace sluice::test {

/// What others took of threads' cores: what is measured meanwhile is the scheduler's.
class Preemptions {
public:
    struct Seen {
        std::uint64_t switches = 0;   // away from a thread that would have gone on
        std::uint64_t waited_ns = 0;  // for a core, after such a switch or after a sleep
    };
    struct Allowed {
        std::uint64_t switches = 0;
        std::uint64_t waited_ns = 10'000;  // what it takes to switch to a thread that wakes up
        std::uint64_t waited_per_switch_ns = 0;

        bool by(const Seen& before, const Seen& after) const {
            const std::uint64_t made = after.switches - before.switches;
            return made <= switches &&
                   after.waited_ns - before.waited_ns <= waited_ns + made * waited_per_switch_ns;
        }
    };

    /// By the thread's directory in /proc.
    void watch(const std::filesystem::path& task) { tasks_.push_back(task); }
    /// All DPDK workers of a process.
    void watch_workers(const std::string& pid) {
        for (const auto& task : std::filesystem::directory_iterator("/proc/" + pid + "/task")) {
            std::string name;
            std::ifstream(task.path() / "comm") >> name;
            if (name.find("worker") != std::string::npos) {
                watch(task.path());
            }
        }
    }
    /// All of them together, since they began.
    Seen now() const {
        Seen sum;
        for (const auto& task : tasks_) {
            std::ifstream status(task / "status");
            std::string word;
            while (status >> word) {
                if (word == "nonvoluntary_ctxt_switches:") {
                    std::uint64_t switches = 0;
                    status >> switches;
                    sum.switches += switches;
                }
            }
            std::uint64_t ran = 0;
            std::uint64_t waited = 0;
            std::ifstream(task / "schedstat") >> ran >> waited;
            sum.waited_ns += waited;
        }
        return sum;
    }

private:
    std::vector<std::filesystem::path> tasks_;
};

}  // namespace sluice::test
