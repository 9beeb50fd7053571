// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace sluice::test {

/// How often threads had to make room for others on their core: what is measured while that
/// happens is the scheduler's.
class Preemptions {
public:
    /// By the thread's directory in /proc.
    void watch(const std::filesystem::path& task) { tasks_.push_back(task / "status"); }
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
    std::uint64_t count() const {
        std::uint64_t sum = 0;
        for (const auto& task : tasks_) {
            std::ifstream file(task);
            std::string word;
            while (file >> word) {
                if (word == "nonvoluntary_ctxt_switches:") {
                    std::uint64_t switches = 0;
                    file >> switches;
                    sum += switches;
                }
            }
        }
        return sum;
    }

private:
    std::vector<std::filesystem::path> tasks_;
};

}  // namespace sluice::test
