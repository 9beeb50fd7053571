// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "fib/lpm.h"
#include "fib/lpm_support.h"
#include "support/prefix_generator.h"

namespace sluice::fib::test {
namespace {

/// Prefixes that nest deeply: their addresses differ from a few bases in few places.
template <class Addr>
class NestedPrefixes {
public:
    using Prefix = net::Prefix<Addr>;

    NestedPrefixes(std::mt19937_64& random, unsigned min_length)
        : random_(random), min_length_(min_length) {
        for (Addr& base : bases_) {
            for (std::uint8_t& byte : base.bytes) {
                byte = static_cast<std::uint8_t>(random_());
            }
        }
    }
    Addr address() {
        Addr address = bases_[random_() % std::size(bases_)];
        for (auto changes = random_() % 3; changes > 0; --changes) {
            const auto bit = static_cast<unsigned>(random_() % (sizeof(Addr) * 8));
            address.bytes[bit / 8] ^= static_cast<std::uint8_t>(0x80U >> bit % 8);
        }
        return address;
    }
    Prefix prefix() {
        // Short ones touch millions of words of the IPv4 trie: rare, for the run's time.
        const unsigned least = random_() % 2000 == 0 ? 0 : min_length_;
        const unsigned span = sizeof(Addr) * 8 - least + 1;
        return Prefix::of(address(), static_cast<std::uint8_t>(least + random_() % span));
    }

private:
    std::mt19937_64& random_;
    unsigned min_length_;
    Addr bases_[12];
};

struct ModelCase {
    std::string name;
    std::uint64_t seed;
    unsigned operations;
    unsigned most;  // the number of routes swings between these
    unsigned least;
    unsigned least_swings;
};
std::ostream& operator<<(std::ostream& out, const ModelCase& c) {
    return out << c.name << " seed " << c.seed;
}

template <class Addr>
void run_model(const ModelCase& c) {
    SCOPED_TRACE(testing::Message() << c);
    std::mt19937_64 random(c.seed);
    ManualReclaimer reclaimer;
    Tables<Addr> tables(reclaimer);
    NestedPrefixes<Addr> nested(random, sizeof(Addr) == 4 ? 12 : 3);
    std::vector<net::Prefix<Addr>> present;
    bool filling = true;
    bool was_big = false;
    unsigned swings = 0;
    for (unsigned i = 0; i < c.operations; ++i) {
        const auto value = static_cast<std::uint32_t>(1 + random() % kMaxLpmValue);
        const bool add = present.empty() || (random() % 4 != 0) == filling;
        net::Prefix<Addr> changed;
        if (add) {
            changed = nested.prefix();
            if (!tables.oracle().routes().contains(changed)) {
                present.push_back(changed);
            }
            tables.set(changed, value);
        } else {
            const std::size_t at = random() % present.size();
            changed = present[at];
            present[at] = present.back();
            present.pop_back();
            tables.erase(changed);
        }
        ASSERT_FALSE(testing::Test::HasFatalFailure());
        std::vector<Addr> probes = edges(changed);
        for (auto more = random() % 12; more > 0; --more) {
            probes.push_back(nested.address());
        }
        tables.check(probes);
        if (i % 8192 == 0) {
            tables.check_edges_of_all();
        }
        ASSERT_FALSE(testing::Test::HasFatalFailure());
        if (random() % 16 == 0) {
            reclaimer.finish();
        }
        if (present.size() >= c.most || present.size() <= c.least) {
            swings += filling == (present.size() >= c.most) ? 1 : 0;
            filling = present.size() <= c.least;
        }
        was_big = was_big || tables.first().memory_bytes() > 256U << 10U;
    }
    tables.check_edges_of_all();
    EXPECT_EQ(was_big, c.most > 600) << "the case means to be in the trie, or not";
    EXPECT_GE(swings, c.least_swings);
    reclaimer.finish();
}

class LpmModel : public testing::TestWithParam<ModelCase> {};

TEST_P(LpmModel, Ipv4MatchesPlainTrie) {
    run_model<net::Ipv4Addr>(GetParam());
}
TEST_P(LpmModel, Ipv6MatchesPlainTrie) {
    run_model<net::Ipv6Addr>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Random,
    LpmModel,
    testing::Values(ModelCase{"few_routes", 1, 10'000, 40, 0, 20},
                    ModelCase{"intervals_in_and_out_of_registers", 2, 5'000, 24, 4, 20},
                    ModelCase{"grows_and_shrinks", 3, 10'000, 800, 60, 4},
                    ModelCase{"stays_big", 4, 10'000, 20'000, 0, 0}),
    [](const auto& row) { return row.param.name; });

// VPP #3042: crash when deleting from a small table; 1e5 nested prefixes in random order.
TEST(LpmModel, Case_71_AddAndDeleteOf1e5NestedPrefixes) {
    run_model<net::Ipv4Addr>({"case_71", 71, 100'000, 3'000, 0, 4});
    run_model<net::Ipv6Addr>({"case_71", 72, 100'000, 3'000, 0, 4});
}

template <class Addr>
void internet_table(std::size_t count) {
    ManualReclaimer reclaimer;
    Tables<Addr> tables(reclaimer);
    const auto prefixes = sluice::test::internet_prefixes<Addr>(count, 42);
    std::uint32_t value = 0;
    for (const auto& prefix : prefixes) {
        tables.set(prefix, ++value);
    }
    tables.check_edges_of_all();
    for (std::size_t i = 0; i < prefixes.size(); i += 2) {
        tables.erase(prefixes[i]);
    }
    tables.check_edges_of_all();
    for (std::size_t i = 1; i < prefixes.size(); i += 2) {
        tables.erase(prefixes[i]);
    }
    EXPECT_EQ(tables.first().size(), 0U);
    tables.check({edges(prefixes.front()).front()});
}

TEST(LpmModel, InternetTableIpv4) {
    internet_table<net::Ipv4Addr>(20'000);
}
TEST(LpmModel, InternetTableIpv6) {
    internet_table<net::Ipv6Addr>(20'000);
}

}  // namespace
}  // namespace sluice::fib::test
