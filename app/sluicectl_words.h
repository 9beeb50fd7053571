// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

/// The words of a sluicectl command line → a request of lib/control/protocol.md. Pure: knows the
/// grammar only; whether values make sense is the daemon's to say, in one place.
namespace sluicectl {

struct Defaults {
    std::string netns;              // empty: the daemon's default
    std::string family;             // "ipv4", "ipv6" or empty
    std::string working_directory;  // for file names: the daemon has another
};

struct Request {
    std::string object;
    std::string command;
    nlohmann::ordered_json args = nlohmann::ordered_json::object();
    std::string netns;

    /// Appends one line of the protocol. `if_ok`: not to be done if the request before it failed.
    void append_line(std::string& out, bool if_ok) const;
    std::string to_line(bool if_ok) const {
        std::string line;
        append_line(line, if_ok);
        return line;
    }
};

/// Options that a line of a batch begins with (`-n NETNS`, `-4`, `-6`, as with ip), into
/// `defaults`; what is left is the command.
std::expected<std::span<const std::string>, std::string> take_options(
    std::span<const std::string> words, Defaults& defaults);

/// The error is one line: which word is wrong and what would be right.
std::expected<Request, std::string> parse_words(std::span<const std::string> words,
                                                const Defaults& defaults);

/// Splits at blanks; "..." and '...' keep them; # starts a comment.
std::expected<std::vector<std::string>, std::string> split_words(std::string_view line);

/// Every command with its arguments, one a line: of all objects, or of the one that `word` means.
std::string command_summary(std::string_view word = {});

}  // namespace sluicectl
