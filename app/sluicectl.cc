// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <exception>
#include <expected>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "sluicectl_client.h"
#include "sluicectl_print.h"
#include "sluicectl_words.h"

namespace sluicectl {
namespace {

// interface.md section 3.
constexpr int kRuntimeFailure = 1;
constexpr int kUsage = 2;

struct Options {
    std::string instance;
    std::string socket;
    std::string batch;
    bool json = false;
    bool timed = false;
    std::vector<std::string> words;
    Defaults defaults;
};

int say(int status, std::string_view what) {
    fmt::print(stderr, "sluicectl: {}\n", what);
    return status;
}

std::unique_ptr<Printer> printer_of(const Options& options,
                                    const std::string& object,
                                    const std::string& command) {
    return options.json ? json_printer(stdout) : text_printer(stdout, object, command);
}

/// What is printed must have arrived: a full disk is a failure, too.
int flushed() {
    return std::fflush(stdout) == 0 && std::ferror(stdout) == 0
               ? 0
               : say(kRuntimeFailure, "cannot write the output");
}

/// `sluice --check FILE` needs no daemon; the one beside this program is of the same release.
int check_config(const std::string& file) {
    std::error_code failed;
    const std::string beside =
        (std::filesystem::read_symlink("/proc/self/exe", failed).parent_path() / "sluice").string();
    ::execl(beside.c_str(), "sluice", "--check", file.c_str(), nullptr);
    ::execlp("sluice", "sluice", "--check", file.c_str(), nullptr);
    return say(kRuntimeFailure,
               fmt::format("config check: cannot run sluice, neither {} nor from PATH", beside));
}

int run_words(const Options& options) {
    const auto request = parse_words(options.words, options.defaults);
    if (!request) {
        return say(kUsage, request.error());
    }
    if (request->object == "config" && request->command == "check") {
        return check_config(request->args["file"].get<std::string>());
    }
    const auto path = find_socket(options.socket, options.instance);
    if (!path) {
        return say(kRuntimeFailure, path.error());
    }
    auto socket = Socket::connect(*path);
    if (!socket) {
        return say(kRuntimeFailure, socket.error());
    }
    socket->send(request->to_line(false));
    socket->end_of_requests();
    const auto printer = printer_of(options, request->object, request->command);
    const auto result = read_answer(*socket, [&](const Json& row) { printer->row(row); });
    if (!result) {
        return say(kRuntimeFailure, result.error());
    }
    printer->end(*result);
    return flushed();
}

/// Sends commands ahead of their answers; each is marked so that the daemon skips what follows the
/// first one that fails.
class Batch {
public:
    Batch(const Options& options, Socket& socket, std::string name)
        : options_(options), socket_(socket), name_(std::move(name)) {}

    int run(std::istream& input) {
        const auto start = std::chrono::steady_clock::now();
        int status = 0;
        std::string line;
        while (status == 0 && std::getline(input, line)) {
            ++line_number_;
            status = take(line);
        }
        // A line that is wrong here may come after one that the daemon refuses: the first counts.
        const std::string wrong_here = std::exchange(error_, {});
        const int answered = status == kRuntimeFailure ? status : drain(0);
        status = answered != 0 ? answered : status;
        if (const std::string& error = error_.empty() ? wrong_here : error_; !error.empty()) {
            say(status, error);
        }
        if (options_.timed) {
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
            fmt::print(stderr,
                       "{} commands in {:.3f} s, {:.0f} a second\n",
                       done_,
                       took.count(),
                       static_cast<double>(done_) / took.count());
        }
        return status != 0 ? status : flushed();
    }

private:
    /// Changes, whose answers are some 36 bytes. Far below what the daemon holds unread, so that
    /// neither side waits for the other.
    static constexpr std::size_t kAhead = 2048;
    static constexpr std::size_t kSendBytes = 32768;

    struct Sent {
        std::size_t line;
        std::string object;
        std::string command;
    };

    int take(const std::string& line) {
        const auto words = split_words(line);
        if (!words) {
            return fail(kUsage, line_number_, words.error());
        }
        if (words->empty()) {
            return 0;
        }
        Defaults defaults = options_.defaults;
        const auto command = take_options(*words, defaults);
        if (!command) {
            return fail(kUsage, line_number_, command.error());
        }
        auto request = parse_words(*command, defaults);
        if (!request) {
            return fail(kUsage, line_number_, request.error());
        }
        if (request->object == "config" && request->command == "check") {
            return fail(kUsage, line_number_, "config check has no place in a batch");
        }
        request->append_line(to_send_, true);
        const bool shows = request->command == "show" || request->object == "stats";
        sent_.push_back({line_number_, std::move(request->object), std::move(request->command)});
        // Answers of unknown length are waited for before anything else is sent.
        return drain(shows ? 0 : kAhead);
    }

    /// Reads answers until at most `left` are outstanding.
    int drain(std::size_t left) {
        if ((to_send_.size() >= kSendBytes || left == 0 || sent_.size() > left) &&
            !to_send_.empty()) {
            socket_.send(std::exchange(to_send_, {}));
        }
        // Half of the window at a time: fewer and longer reads and writes.
        const std::size_t until = sent_.size() > left ? left / 2 : sent_.size();
        std::string line;
        while (sent_.size() > until) {
            const Sent sent = std::move(sent_.front());
            sent_.pop_front();
            if (!socket_.read_line(line)) {
                return fail(
                    kRuntimeFailure, sent.line, "the daemon hung up before it had answered");
            }
            const auto result = parse_answer(line);
            if (!result) {
                return fail(kRuntimeFailure, sent.line, result.error());
            }
            ++done_;
            print(sent, *result);
        }
        return 0;
    }

    void print(const Sent& request, const Json& result) {
        if (result.is_null()) {
            return;  // a printer has its columns made first
        }
        const auto printer = printer_of(options_, request.object, request.command);
        if (!result.is_array()) {
            printer->end(result);
            return;
        }
        for (const Json& row : result) {
            printer->row(row);
        }
        printer->end(Json::array());
    }

    int fail(int status, std::size_t line, std::string_view what) {
        error_ = fmt::format("{}:{}: {}", name_, line, what);
        return status;
    }

    const Options& options_;
    Socket& socket_;
    std::string name_;
    std::size_t line_number_ = 0;
    std::size_t done_ = 0;
    std::deque<Sent> sent_;
    std::string to_send_;
    std::string error_;
};

int run_batch(const Options& options) {
    std::ifstream file;
    if (options.batch != "-") {
        file.open(options.batch);
        if (!file) {
            return say(kRuntimeFailure, fmt::format("{}: cannot be read", options.batch));
        }
    }
    const auto path = find_socket(options.socket, options.instance);
    if (!path) {
        return say(kRuntimeFailure, path.error());
    }
    auto socket = Socket::connect(*path);
    if (!socket) {
        return say(kRuntimeFailure, socket.error());
    }
    const bool standard_input = options.batch == "-";
    Batch batch(options, *socket, standard_input ? "(stdin)" : options.batch);
    return batch.run(standard_input ? std::cin : file);
}

std::string footer() {
    return "Commands (words may be shortened as with ip: r s, a add, l set; \"show\" may be left "
           "out):\n" +
           command_summary() +
           "\nTYPE: unicast, blackhole, unreachable, prohibit, local. PREFIX: 192.0.2.0/24, "
           "2001:db8::/32, default.\n"
           "-n NETNS goes with every command; stats shows all netns without it, link show all does "
           "so, too.\n"
           "sluicectl OBJECT help shows one object's commands.\n"
           "A batch has one command a line, which may begin with -n NETNS, -4 or -6; # starts a "
           "comment; it stops at the first error.\n\n"
           "Exit status: 0 done, 1 refused or not reachable, 2 wrong usage.\n";
}

int run(int argc, char** argv) {
    Options options;
    bool v4 = false;
    bool v6 = false;
    CLI::App app("Shows and changes a running sluice.", "sluicectl");
    auto* instance = app.add_option(
        "-i,--instance", options.instance, "which instance (default: the only one that runs)");
    app.add_option("-s,--socket", options.socket, "its control socket")->excludes(instance);
    app.add_option("-n,--netns", options.defaults.netns, "which netns of the instance");
    auto* batch =
        app.add_option("-b,--batch", options.batch, "read commands from a file, - is stdin");
    app.add_flag("-j,--json", options.json, "print JSON");
    app.add_flag("-4", v4, "IPv4 only");
    app.add_flag("-6", v6, "IPv6 only; \"default\" is ::/0");
    app.add_flag("--time", options.timed, "say how long a batch took");
    app.set_version_flag("-V,--version", SLUICE_VERSION);
    app.add_option("words", options.words, "OBJECT [COMMAND [ARGUMENT...]]")->excludes(batch);
    app.footer(footer());
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
        return app.exit(asked);
    } catch (const CLI::ParseError& error) {
        return say(kUsage, error.what());
    }
    if (v4 && v6) {
        return say(kUsage, "-4 and -6 exclude each other");
    }
    options.defaults.family = v4 ? "ipv4" : v6 ? "ipv6" : "";
    std::error_code failed;
    options.defaults.working_directory = std::filesystem::current_path(failed).string();
    if (!options.batch.empty()) {
        return run_batch(options);
    }
    const std::vector<std::string>& words = options.words;
    if (!words.empty() && words[0] == "help") {
        fmt::print("{}", app.help());
        return flushed();
    }
    if (words.size() == 2 && words[1] == "help") {
        const std::string commands = command_summary(words[0]);
        fmt::print("{}", commands.empty() ? app.help() : commands);
        return flushed();
    }
    return run_words(options);
}

}  // namespace
}  // namespace sluicectl

int main(int argc, char** argv) {
    try {
        return sluicectl::run(argc, argv);
    } catch (const std::exception& exception) {
        return sluicectl::say(sluicectl::kRuntimeFailure, exception.what());
    }
}
