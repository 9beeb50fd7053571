// SPDX-License-Identifier: BSD-3-Clause
//
// insert_bench [insert|flush] [--rounds=N]
//
// Uncached dsts (U-02, U-06, U-07) in one unhashed list, 64 lists hashed by netdev and one list per
// netdev, the variants alternating in every round.
//
//   insert  ns to add and delete one dst: 80,000 of them over 256 netdevs, in random order.
//   flush   256 netdevs own 80,000 dsts, 6 of them 4,000 to 20,000 each; 6, 36 or 256 netdevs that
//           own none are removed, one by one and as one batch: us and dsts visited.
//
// One JSON object per line and round on standard output; a summary on standard error.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "control/uncached.h"
#include "fib/dst.h"
#include "net/address.h"

namespace sluice::control {
namespace {

constexpr std::size_t kNetdevs = 256;
constexpr std::size_t kDsts = 80'000;
constexpr std::size_t kWorkers = 2;

struct Variant {
    const char* name;
    std::size_t lists;
};
constexpr std::array kVariants{
    Variant{"list", 1}, Variant{"hash", 64}, Variant{"netdev", kMaxNetdevs}};
constexpr std::array kFamilies{net::Family::kIpv4, net::Family::kIpv6};

const char* name_of(net::Family family) {
    return family == net::Family::kIpv4 ? "v4" : "v6";
}

NetdevId id(std::size_t value) {
    return NetdevId{static_cast<std::uint16_t>(value)};
}

double now_ns() {
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// The netdev of each dst: 6 netdevs with 4,000 to 20,000, about 100 on each of the others.
std::vector<NetdevId> owners(std::mt19937& random) {
    std::vector<NetdevId> out;
    for (const std::size_t many : {4'000, 5'000, 6'000, 8'000, 12'000, 20'000}) {
        out.insert(out.end(), many, id(out.empty() ? 1 : out.back().value + 1U));
    }
    const std::size_t few = kNetdevs - 6;
    for (std::size_t i = 0; out.size() < kDsts; ++i) {
        out.push_back(id(7 + i % few));
    }
    std::ranges::shuffle(out, random);
    return out;
}

/// Median, least and most of every row, for people.
class Summary {
public:
    void add(const std::string& row, double value) { rows_[row].push_back(value); }
    void print(const char* unit) {
        std::fprintf(stderr, "%-24s %12s %12s %12s  %s\n", "", "median", "min", "max", unit);
        for (auto& [name, values] : rows_) {
            std::ranges::sort(values);
            std::fprintf(stderr,
                         "%-24s %12.1f %12.1f %12.1f\n",
                         name.c_str(),
                         values[values.size() / 2],
                         values.front(),
                         values.back());
        }
    }

private:
    std::map<std::string, std::vector<double>> rows_;
};

void insert(unsigned rounds) {
    std::mt19937 random(1);
    const std::vector<NetdevId> owner = owners(random);
    std::vector<fib::DstIndex> order(kDsts);
    std::iota(order.begin(), order.end(), fib::DstIndex{1});
    std::vector<UncachedLists> lists;
    for (const Variant& variant : kVariants) {
        lists.emplace_back(kWorkers, kDsts + 1, variant.lists);
    }
    Summary summary;
    for (unsigned round = 0; round <= rounds; ++round) {
        std::vector<fib::DstIndex> adds = order;
        std::vector<fib::DstIndex> removes = order;
        std::ranges::shuffle(adds, random);
        std::ranges::shuffle(removes, random);
        for (std::size_t turn = 0; turn < kVariants.size(); ++turn) {
            const std::size_t v = (turn + round) % kVariants.size();
            for (const net::Family family : kFamilies) {
                const double start = now_ns();
                for (const fib::DstIndex dst : adds) {
                    const NetdevId netdev = owner[dst - 1];
                    lists[v].add(dst, dst % kWorkers, family, netdev, netdev);
                }
                for (const fib::DstIndex dst : removes) {
                    lists[v].remove(dst);
                }
                const double ns = (now_ns() - start) / kDsts;
                if (round == 0) {
                    continue;  // pages are touched for the first time
                }
                std::printf("{\"variant\": \"%s\", \"family\": \"%s\", \"ns\": %.2f}\n",
                            kVariants[v].name,
                            name_of(family),
                            ns);
                summary.add(std::string(name_of(family)) + " " + kVariants[v].name, ns);
            }
        }
    }
    summary.print("ns per dst added and deleted");
}

void flush(unsigned rounds) {
    std::mt19937 random(1);
    const std::vector<NetdevId> owner = owners(random);
    std::vector<UncachedLists> lists;
    for (const Variant& variant : kVariants) {
        lists.emplace_back(kWorkers, kDsts + 1, variant.lists);
        for (std::size_t i = 0; i < kDsts; ++i) {
            lists.back().add(static_cast<fib::DstIndex>(i + 1),
                             i % kWorkers,
                             kFamilies[i / kWorkers % 2],
                             owner[i],
                             owner[i]);
        }
    }
    std::vector<NetdevId> others;
    for (std::size_t i = 0; i < kNetdevs; ++i) {
        others.push_back(id(1 + kNetdevs + i));
    }
    const auto one_flush = [](UncachedLists& in, std::span<const NetdevId> gone) {
        while (in.flush(gone, 1'000, [](fib::DstIndex, bool) {})) {
        }
    };
    Summary summary;
    for (unsigned round = 0; round < rounds; ++round) {
        for (std::size_t turn = 0; turn < kVariants.size(); ++turn) {
            const std::size_t v = (turn + round) % kVariants.size();
            for (const std::size_t removed : {6U, 36U, 256U}) {
                for (const bool batch : {false, true}) {
                    const std::span gone(others.data(), removed);
                    const std::size_t visits = lists[v].visits();
                    const double start = now_ns();
                    if (batch) {
                        one_flush(lists[v], gone);
                    } else {
                        for (std::size_t i = 0; i < removed; ++i) {
                            one_flush(lists[v], gone.subspan(i, 1));
                        }
                    }
                    const double us = (now_ns() - start) / 1e3;
                    const std::size_t visited = lists[v].visits() - visits;
                    std::printf(
                        "{\"variant\": \"%s\", \"removed\": %zu, \"batch\": %s, \"visits\": %zu, "
                        "\"us\": %.2f}\n",
                        kVariants[v].name,
                        removed,
                        batch ? "true" : "false",
                        visited,
                        us);
                    summary.add(std::to_string(removed) + " " + kVariants[v].name +
                                    (batch ? " batch" : " one by one"),
                                us);
                }
            }
        }
    }
    summary.print("us to remove that many other netdevs");
}

}  // namespace
}  // namespace sluice::control

int main(int argc, char** argv) {
    std::string_view mode = "insert";
    unsigned rounds = 21;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        constexpr std::string_view kRounds = "--rounds=";
        bool known = word == "insert" || word == "flush";
        if (known) {
            mode = word;
        } else if (word.starts_with(kRounds)) {
            const char* end = word.data() + word.size();
            const auto read = std::from_chars(word.data() + kRounds.size(), end, rounds);
            known = read.ec == std::errc() && read.ptr == end && rounds != 0;
        }
        if (!known) {
            std::fprintf(stderr, "usage: insert_bench [insert|flush] [--rounds=N]\n");
            return 2;
        }
    }
    if (mode == "flush") {
        sluice::control::flush(rounds);
    } else {
        sluice::control::insert(rounds);
    }
    return 0;
}
