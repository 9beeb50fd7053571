// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "net/address.h"
#include "support/prefix_generator.h"

/// A generated table as text, a prefix a line, for programs that are not of this build.
namespace {

constexpr std::uint64_t kSeed = 20261130;

template <class Addr>
void print(std::size_t count) {
    std::string out;
    for (const auto& prefix : sluice::test::internet_prefixes<Addr>(count, kSeed)) {
        out += prefix.to_string();
        out += '\n';
    }
    std::fwrite(out.data(), 1, out.size(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view family = argc == 3 ? argv[1] : "";
    const std::size_t count = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 0;
    if (count == 0 || (family != "v4" && family != "v6")) {
        std::fputs("usage: print_prefixes v4|v6 COUNT\n", stderr);
        return 2;
    }
    family == "v4" ? print<sluice::net::Ipv4Addr>(count) : print<sluice::net::Ipv6Addr>(count);
}
