// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/eal.h"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "environment.h"

namespace sluice::dpdk {
namespace {

using Args = std::vector<std::string>;

struct ArgumentsCase {
    std::string name;
    EalOptions options;
    Args want;
};
class EalArguments : public testing::TestWithParam<ArgumentsCase> {};

TEST_P(EalArguments, AreThese) {
    EXPECT_EQ(eal_arguments(GetParam().options), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Rows,
    EalArguments,
    testing::Values(ArgumentsCase{.name = "Case_119_no_hugepages_no_socket_mem",
                                  .options = {.instance = "demo",
                                              .lcores = {0, 1},
                                              .hugepages = false,
                                              .memory_mb = 512,
                                              .devices = {"net_tap0,iface=tap0"},
                                              .extra_args = {}},
                                  .want = {"--file-prefix=sluice-demo",
                                           "-l",
                                           "0,1",
                                           "--main-lcore=0",
                                           "--no-huge",
                                           "--no-shconf",
                                           "-m",
                                           "512",
                                           "--no-pci",
                                           "--log-level=*:warning"}},
                    ArgumentsCase{.name = "Case_117_prefix_of_the_instance",
                                  .options = {.instance = "other",
                                              .lcores = {3, 2},
                                              .hugepages = true,
                                              .memory_mb = 1024,
                                              .devices = {},
                                              .extra_args = {}},
                                  .want = {"--file-prefix=sluice-other",
                                           "-l",
                                           "3,2",
                                           "--main-lcore=3",
                                           "--in-memory",
                                           "-m",
                                           "1024",
                                           "--no-pci",
                                           "--log-level=*:warning"}},
                    ArgumentsCase{
                        .name = "pci_devices_only_are_let_in_and_extra_args_are_last",
                        .options = {.instance = "nic",
                                    .lcores = {0},
                                    .hugepages = true,
                                    .memory_mb = 64,
                                    .devices = {"0000:03:00.0", "net_null0", "03:00.1,x=1"},
                                    .extra_args = {"--huge-dir", "/x"}},
                        .want = {"--file-prefix=sluice-nic",
                                 "-l",
                                 "0",
                                 "--main-lcore=0",
                                 "--in-memory",
                                 "-m",
                                 "64",
                                 "-a",
                                 "0000:03:00.0",
                                 "-a",
                                 "03:00.1,x=1",
                                 "--log-level=*:warning",
                                 "--huge-dir",
                                 "/x"}}),
    [](const auto& row) { return row.param.name; });

TEST(IsPciDevice, Rows) {
    for (const char* yes : {"0000:03:00.0", "03:00.1", "af:1f.7,foo=1", "10000:e1:00.0"}) {
        EXPECT_TRUE(is_pci_device(yes)) << yes;
    }
    for (const char* no : {"",
                           "net_tap0",
                           "net_pcap0,rx_pcap=a:b.c",
                           "03:00",
                           "03:00.",
                           "3:00.0",
                           "0000:03:0.0",
                           "000:03:00.0",
                           "zz:00.0",
                           "0000:0000:03:00.0"}) {
        EXPECT_FALSE(is_pci_device(no)) << no;
    }
}

TEST(EalStart, AnLcoreThatIsNotThereIsNamed) {
    auto options = test::eal_options("never");
    const std::string own = std::to_string(options.lcores.front());
    options.lcores.push_back(1000);
    const auto eal = Eal::start(options, "test");
    ASSERT_FALSE(eal);
    EXPECT_EQ(eal.error().code, ErrorCode::kInvalid);
    EXPECT_NE(eal.error().message.find("dpdk.lcores: CPU 1000 "), std::string::npos);
    EXPECT_NE(eal.error().message.find(own), std::string::npos) << "names those that are there";
}

TEST(EalStart, MissingHugepagesNameTheSysctlAndTheKey) {
    auto options = test::eal_options("never");
    options.hugepages = true;
    options.memory_mb = 1U << 30U;  // more than any machine has
    const auto eal = Eal::start(options, "test");
    ASSERT_FALSE(eal);
    EXPECT_EQ(eal.error().code, ErrorCode::kDevice);
    EXPECT_NE(eal.error().message.find("vm.nr_hugepages=536870912"), std::string::npos);
    EXPECT_NE(eal.error().message.find("dpdk.hugepages: false"), std::string::npos);
}

/// Another process of this program with an EAL of its own.
class Child {
public:
    explicit Child(const std::string& instance) {
        std::array<int, 2> in{};
        std::array<int, 2> out{};
        if (pipe(in.data()) != 0 || pipe(out.data()) != 0) {
            return;
        }
        pid_ = fork();
        if (pid_ == 0) {
            dup2(in[0], STDIN_FILENO);
            dup2(out[1], STDOUT_FILENO);
            for (int fd = 3; fd < 256; ++fd) {
                close(fd);
            }
            execl("/proc/self/exe", "test_dpdk", "--child", instance.c_str(), nullptr);
            _exit(127);
        }
        close(in[0]);
        close(out[1]);
        in_ = in[1];
        std::array<char, 6> line{};
        std::size_t got = 0;
        for (ssize_t n = 0;
             got < line.size() && (n = read(out[0], line.data() + got, line.size() - got)) > 0;) {
            got += static_cast<std::size_t>(n);
        }
        ready_ = std::string_view(line.data(), got) == "ready\n";
        close(out[0]);
    }
    ~Child() { finish(SIGKILL); }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    Child(Child&&) = delete;
    Child& operator=(Child&&) = delete;

    bool ready() const { return ready_; }
    void kill() { finish(SIGKILL); }
    /// Exit status.
    int end() { return finish(0); }

private:
    int finish(int signal) {
        if (pid_ <= 0) {
            return -1;
        }
        if (signal != 0) {
            ::kill(pid_, signal);
        }
        close(in_);
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    pid_t pid_ = -1;
    int in_ = -1;
    bool ready_ = false;
};

std::filesystem::path runtime_dir(const std::string& instance) {
    const char* xdg = std::getenv("XDG_RUNTIME_DIR");
    const std::string base = geteuid() == 0 ? "/var/run" : xdg != nullptr ? xdg : "/tmp";
    return base + "/dpdk/sluice-" + instance;
}

TEST(EalProcess, Case_117_two_instances_side_by_side_leave_nothing) {
    const std::string a = test::unique("a");
    const std::string b = test::unique("b");
    {
        Child first(a);
        Child second(b);
        EXPECT_TRUE(first.ready());
        EXPECT_TRUE(second.ready());
        EXPECT_TRUE(std::filesystem::exists(runtime_dir(a))) << "else the test looks elsewhere";
        EXPECT_EQ(first.end(), 0);
        EXPECT_FALSE(std::filesystem::exists(runtime_dir(a)));
        EXPECT_TRUE(std::filesystem::exists(runtime_dir(b))) << "is the other one's";
        EXPECT_EQ(second.end(), 0);
    }
    EXPECT_FALSE(std::filesystem::exists(runtime_dir(b)));
}

TEST(EalProcess, a_second_run_after_kill_9_works_and_cleans_up) {
    const std::string name = test::unique("k");
    Child first(name);
    ASSERT_TRUE(first.ready());
    first.kill();
    Child second(name);
    EXPECT_TRUE(second.ready());
    EXPECT_EQ(second.end(), 0);
    EXPECT_FALSE(std::filesystem::exists(runtime_dir(name)));
}

}  // namespace
}  // namespace sluice::dpdk
