// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fib/lpm.h"
#include "fib/lpm_support.h"
#include "fib/lpm_trie.h"

namespace sluice::fib::test {
namespace {

// A lookup reads a word that leads to a group, is interrupted, the group's last route goes away and
// another route takes a group: what does the lookup read when it goes on?
struct Interrupted4 {
    explicit Interrupted4(Reclaimer& reclaimer)
        : trie(Trie<net::Ipv4Addr>::create(100, 8, reclaimer)) {
        EXPECT_TRUE(trie->set(p4("10.0.0.0/8"), 1));
        EXPECT_TRUE(trie->set(p4("10.0.0.1/32"), 2));
        word = trie->view().words[root_index(address)];
        EXPECT_TRUE(is_group(word));
        trie->erase(p4("10.0.0.1/32"), make_word(8, 1));
        EXPECT_TRUE(trie->set(p4("20.0.0.0/24"), 3));
        EXPECT_TRUE(trie->set(p4("20.0.0.1/32"), 4));
    }
    std::uint32_t resume() const { return search_from(trie->view(), word, 3, address); }

    std::unique_ptr<Trie<net::Ipv4Addr>> trie;
    net::Ipv4Addr address = a4("10.0.0.1");
    std::uint32_t word = 0;
};

TEST(LpmReclaim, FreedGroupIsNotReusedBeforeItsGracePeriod) {
    ManualReclaimer reclaimer;
    Interrupted4 lookup(reclaimer);
    EXPECT_EQ(lookup.resume(), 1U) << "the answer after the erase";
    reclaimer.finish();
    EXPECT_TRUE(lookup.trie->set(p4("30.0.0.0/24"), 5));
    EXPECT_TRUE(lookup.trie->set(p4("30.0.0.1/32"), 6));
    EXPECT_EQ(lookup.resume(), 6U) << "the freed group was never used again";
}

TEST(LpmReclaim, WithoutGracePeriodTheLookupReadsAForeignValue) {
    ImmediateReclaimer reclaimer;
    const Interrupted4 lookup(reclaimer);
    EXPECT_EQ(lookup.resume(), 4U) << "this test no longer shows the hole that the other closes";
}

// The same for tails.
struct Interrupted6 {
    explicit Interrupted6(Reclaimer& reclaimer)
        : trie(Trie<net::Ipv6Addr>::create(100, 8, reclaimer)) {
        EXPECT_TRUE(trie->set(p6("2001:db8::/32"), 1));
        EXPECT_TRUE(trie->set(p6("2001:db8::1/128"), 2));
        for (word = trie->view().words[root_index(address)]; is_group(word); ++byte) {
            word = trie->view().words[payload_of(word) * kGroupWords + address.bytes[byte]];
        }
        EXPECT_FALSE(is_leaf(word));
        trie->erase(p6("2001:db8::1/128"), make_word(32, 1));
        EXPECT_TRUE(trie->set(p6("3001:db8::1/128"), 4));
    }
    std::uint32_t resume() const { return search_from(trie->view(), word, byte, address); }

    std::unique_ptr<Trie<net::Ipv6Addr>> trie;
    net::Ipv6Addr address = a6("2001:db8::1");
    std::uint32_t word = 0;
    std::size_t byte = 2;
};

TEST(LpmReclaim, FreedTailIsNotReusedBeforeItsGracePeriod) {
    ManualReclaimer reclaimer;
    Interrupted6 lookup(reclaimer);
    EXPECT_EQ(lookup.resume(), 2U) << "the answer before the erase";
    reclaimer.finish();
    EXPECT_TRUE(lookup.trie->set(p6("3002:db8::1/128"), 5));
    EXPECT_NE(lookup.resume(), 2U) << "the freed tail was never used again";
}

TEST(LpmReclaim, WithoutGracePeriodTheLookupMissesTheRoute) {
    ImmediateReclaimer reclaimer;
    const Interrupted6 lookup(reclaimer);
    EXPECT_EQ(lookup.resume(), kNoRoute) << "neither the old answer nor the new one";
}

TEST(LpmReclaim, FormsAreFreedByTheReclaimerOnly) {
    ManualReclaimer reclaimer;
    auto table = Ipv4Lpm::create({}, reclaimer).value();
    ASSERT_TRUE(table->set(p4("10.0.0.0/8"), 1));
    ASSERT_TRUE(table->set(p4("10.0.0.0/8"), 2));
    EXPECT_EQ(reclaimer.deferred(), 2U) << "the empty form and the first";
    table.reset();  // what waits does not need the table any more
    reclaimer.finish();
}

/// Quiescent states of two readers, as small as can be.
class EpochReclaimer final : public Reclaimer {
public:
    static constexpr std::size_t kReaders = 2;

    void defer(std::move_only_function<void()> fn) override {
        deferred_.emplace_back(start(), std::move(fn));
    }
    Token start() override { return epoch_.fetch_add(1) + 1; }
    bool elapsed(Token token) override {
        return std::ranges::all_of(seen_, [&](const auto& seen) { return seen.load() >= token; });
    }
    void poll() {
        while (!deferred_.empty() && elapsed(deferred_.front().first)) {
            deferred_.front().second();
            deferred_.pop_front();
        }
    }
    void quiescent(std::size_t reader) { seen_[reader].store(epoch_.load()); }
    void finish() {
        for (auto& seen : seen_) {
            seen.store(epoch_.load());
        }
        poll();
    }

private:
    std::atomic<Token> epoch_{0};
    std::array<std::atomic<Token>, kReaders> seen_{};
    std::deque<std::pair<Token, std::move_only_function<void()>>> deferred_;
};

/// Readers look the same addresses up all the time while routes around them come and go. The value
/// of a route tells which prefix it is, so an answer is legal if that prefix holds the address; the
/// outermost prefix stays, so kNoRoute never is.
template <class Addr>
void churn(const LookupImpl& impl, const std::vector<net::Prefix<Addr>>& nested, bool big) {
    using Prefix = net::Prefix<Addr>;
    const std::uint64_t seed = 7;
    SCOPED_TRACE(testing::Message()
                 << impl.name << (big ? " trie" : " intervals") << " seed " << seed);
    EpochReclaimer reclaimer;
    auto table = LpmTable<Addr>::create({.max_groups = 4096, .lookup = &impl}, reclaimer).value();
    for (std::uint32_t i = 0; big && i < 600; ++i) {
        Addr address{};
        address.bytes = {0x3f, static_cast<std::uint8_t>(i >> 8U), static_cast<std::uint8_t>(i)};
        ASSERT_TRUE(table->set({address, 24}, kMaxLpmValue));
    }
    ASSERT_TRUE(table->set(nested.front(), 1));

    std::vector<Addr> addresses;
    for (const Prefix& prefix : nested) {
        for (const Addr& address : edges(prefix)) {
            if (nested.front().contains(address)) {
                addresses.push_back(address);
            }
        }
    }
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> lookups{0};
    std::atomic<std::uint64_t> illegal{0};
    std::vector<std::thread> readers;
    for (std::size_t reader = 0; reader < EpochReclaimer::kReaders; ++reader) {
        readers.emplace_back([&, reader] {
            std::vector<std::uint32_t> values(addresses.size());
            while (!stop.load()) {
                table->lookup(addresses, values.data());
                for (std::size_t i = 0; i < addresses.size(); ++i) {
                    const std::uint32_t value = values[i];
                    if (value == kNoRoute || value > nested.size() ||
                        !nested[value - 1].contains(addresses[i])) {
                        illegal.fetch_add(1);
                    }
                }
                lookups.fetch_add(addresses.size());
                reclaimer.quiescent(reader);
            }
        });
    }
    std::mt19937_64 random(seed);
    std::uint64_t updates = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    while (std::chrono::steady_clock::now() < end || lookups.load() < 1000) {
        const std::size_t which = 1 + random() % (nested.size() - 1);
        if (table->get(nested[which]) && random() % 4 != 0) {
            EXPECT_TRUE(table->erase(nested[which]));
        } else {
            const auto done = table->set(nested[which], static_cast<std::uint32_t>(which + 1));
            EXPECT_TRUE(done || done.error().code == ErrorCode::kLimit) << done.error().message;
        }
        ++updates;
        reclaimer.poll();
    }
    stop.store(true);
    for (std::thread& reader : readers) {
        reader.join();
    }
    reclaimer.finish();
    EXPECT_EQ(illegal.load(), 0U) << "in " << lookups.load() << " lookups, " << updates
                                  << " updates";
}

TEST(LpmReclaim, ThreadsSeeOnlyLegalAnswersIpv4) {
    const std::vector nested{p4("10.0.0.0/8"),
                             p4("10.1.0.0/16"),
                             p4("10.1.2.0/23"),
                             p4("10.1.2.0/24"),
                             p4("10.1.2.128/25"),
                             p4("10.1.2.130/31"),
                             p4("10.1.2.130/32"),
                             p4("10.1.3.0/28"),
                             p4("10.1.3.7/32"),
                             p4("10.200.0.0/13"),
                             p4("10.201.255.0/24"),
                             p4("10.201.255.255/32")};
    for (const LookupImpl& impl : lookup_impls()) {
        if (impl.supported()) {
            churn(impl, nested, false);
            churn(impl, nested, true);
        }
    }
}

TEST(LpmReclaim, ThreadsSeeOnlyLegalAnswersIpv6) {
    const std::vector nested{p6("2001:db8::/32"),
                             p6("2001:db8::/48"),
                             p6("2001:db8:0:1::/64"),
                             p6("2001:db8:0:1::1/128"),
                             p6("2001:db8:0:1::2/128"),
                             p6("2001:db8:0:1:8000::/65"),
                             p6("2001:db8:0:2::/63"),
                             p6("2001:db8:8000::/33"),
                             p6("2001:db8:fffe::/47"),
                             p6("2001:db8:fffe::77/128"),
                             p6("2001:db8:fffe:7::/64")};
    for (const LookupImpl& impl : lookup_impls()) {
        if (impl.supported()) {
            churn(impl, nested, false);
            churn(impl, nested, true);
        }
    }
}

/// The table grows into the trie and back while readers look up.
TEST(LpmReclaim, ThreadsSeeOnlyLegalAnswersAcrossForms) {
    std::vector<net::Ipv6Prefix> nested{p6("2001:db8::/32")};
    for (std::uint32_t i = 0; i < 700; ++i) {
        net::Ipv6Addr address = nested.front().address;
        address.bytes[4] = static_cast<std::uint8_t>(i >> 8U);
        address.bytes[5] = static_cast<std::uint8_t>(i);
        nested.push_back({address, 48});
    }
    EpochReclaimer reclaimer;
    auto table = Ipv6Lpm::create({}, reclaimer).value();
    ASSERT_TRUE(table->set(nested.front(), 1));
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> illegal{0};
    std::vector<std::thread> readers;
    for (std::size_t reader = 0; reader < EpochReclaimer::kReaders; ++reader) {
        readers.emplace_back([&, reader] {
            const std::vector addresses{nested[0].address, nested[1].address, nested[700].address};
            std::uint32_t values[3];
            while (!stop.load()) {
                table->lookup(addresses, values);
                illegal.fetch_add((values[0] != 1 && values[0] != 2) +
                                  (values[1] != 1 && values[1] != 2) +
                                  (values[2] != 1 && values[2] != 701));
                reclaimer.quiescent(reader);
            }
        });
    }
    unsigned rounds = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (std::chrono::steady_clock::now() < end || rounds < 2) {
        for (std::uint32_t i = 1; i < nested.size(); ++i) {
            EXPECT_TRUE(table->set(nested[i], i + 1));
        }
        EXPECT_GT(table->memory_bytes(), 256U << 10U) << "not in the trie";
        reclaimer.poll();
        for (std::uint32_t i = 1; i < nested.size(); ++i) {
            EXPECT_TRUE(table->erase(nested[i]));
        }
        EXPECT_LT(table->memory_bytes(), 64U << 10U) << "still in the trie";
        reclaimer.poll();
        ++rounds;
    }
    stop.store(true);
    for (std::thread& reader : readers) {
        reader.join();
    }
    reclaimer.finish();
    EXPECT_EQ(illegal.load(), 0U) << rounds << " rounds";
}

}  // namespace
}  // namespace sluice::fib::test
