// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/reclaimer.h"
#include "fib/lpm.h"
#include "net/address.h"

namespace sluice::fib::test {

/// Grace periods end when the test says so.
class ManualReclaimer final : public Reclaimer {
public:
    void defer(std::move_only_function<void()> fn) override {
        deferred_.emplace_back(++last_, std::move(fn));
    }
    Token start() override { return ++last_; }
    bool elapsed(Token token) override { return token <= done_; }

    /// Ends every grace period begun so far.
    void finish() {
        done_ = last_;
        while (!deferred_.empty()) {
            deferred_.front().second();
            deferred_.pop_front();
        }
    }
    std::size_t deferred() const { return deferred_.size(); }

private:
    Token last_ = 0;
    Token done_ = 0;
    std::deque<std::pair<Token, std::move_only_function<void()>>> deferred_;
};

/// No grace period at all: right while nobody looks up, and the hole itself when somebody does.
class ImmediateReclaimer final : public Reclaimer {
public:
    void defer(std::move_only_function<void()> fn) override { fn(); }
    Token start() override { return 0; }
    bool elapsed(Token) override { return true; }
};

/// The plain binary trie that everything is compared with.
template <class Addr>
class Oracle {
public:
    using Prefix = net::Prefix<Addr>;

    void set(const Prefix& prefix, std::uint32_t value) {
        Node* node = &root_;
        for (unsigned bit = 0; bit < prefix.length; ++bit) {
            std::unique_ptr<Node>& next = node->child[bit_of(prefix.address, bit)];
            if (!next) {
                next = std::make_unique<Node>();
            }
            node = next.get();
        }
        node->value = value;
        routes_[prefix] = value;
    }
    void erase(const Prefix& prefix) {
        Node* node = &root_;
        for (unsigned bit = 0; bit < prefix.length; ++bit) {
            node = node->child[bit_of(prefix.address, bit)].get();
        }
        node->value = kNoRoute;
        routes_.erase(prefix);
    }
    std::uint32_t lookup(const Addr& address) const {
        std::uint32_t best = root_.value;
        const Node* node = &root_;
        for (unsigned bit = 0; bit < Prefix::kBits; ++bit) {
            node = node->child[bit_of(address, bit)].get();
            if (node == nullptr) {
                break;
            }
            best = node->value == kNoRoute ? best : node->value;
        }
        return best;
    }
    const std::map<Prefix, std::uint32_t>& routes() const { return routes_; }

private:
    struct Node {
        std::unique_ptr<Node> child[2];
        std::uint32_t value = kNoRoute;
    };
    static unsigned bit_of(const Addr& address, unsigned bit) {
        return address.bytes[bit / 8] >> (7 - bit % 8) & 1U;
    }

    Node root_;
    std::map<Prefix, std::uint32_t> routes_;
};

/// The address before or after, wrapping round.
template <class Addr>
Addr neighbor(Addr address, bool up) {
    for (std::size_t i = sizeof(Addr); i-- > 0;) {
        const std::uint8_t old = address.bytes[i];
        address.bytes[i] = static_cast<std::uint8_t>(up ? old + 1 : old - 1);
        if (old != (up ? 0xff : 0)) {
            break;
        }
    }
    return address;
}

/// First and last address of the prefix and the ones just outside.
template <class Addr>
std::vector<Addr> edges(const net::Prefix<Addr>& prefix) {
    Addr last = prefix.address;
    for (unsigned bit = prefix.length; bit < sizeof(Addr) * 8; ++bit) {
        last.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80U >> bit % 8);
    }
    return {prefix.address, last, neighbor(prefix.address, false), neighbor(last, true)};
}

template <class Addr>
std::map<net::Prefix<Addr>, std::uint32_t> dump(const LpmTable<Addr>& table) {
    std::map<net::Prefix<Addr>, std::uint32_t> out;
    table.for_each([&](const auto& prefix, std::uint32_t value) { out[prefix] = value; });
    return out;
}

/// Every supported lookup of `addresses` at once against the oracle. The implementation is chosen
/// when a table is made, so there is one table for each and all get the same changes.
template <class Addr>
class Tables {
public:
    using Prefix = net::Prefix<Addr>;

    explicit Tables(Reclaimer& reclaimer, LpmOptions options = {}) {
        for (const LookupImpl& impl : lookup_impls()) {
            if (impl.supported()) {
                options.lookup = &impl;
                tables_.push_back(LpmTable<Addr>::create(options, reclaimer).value());
                names_.emplace_back(impl.name);
            }
        }
    }
    void set(const Prefix& prefix, std::uint32_t value) {
        for (auto& table : tables_) {
            const auto done = table->set(prefix, value);
            ASSERT_TRUE(done) << done.error().message;
        }
        oracle_.set(prefix, value);
    }
    void erase(const Prefix& prefix) {
        for (auto& table : tables_) {
            const auto done = table->erase(prefix);
            ASSERT_TRUE(done) << done.error().message;
        }
        oracle_.erase(prefix);
    }
    void check(const std::vector<Addr>& addresses) const {
        std::vector<std::uint32_t> want;
        for (const Addr& address : addresses) {
            want.push_back(oracle_.lookup(address));
        }
        for (std::size_t t = 0; t < tables_.size(); ++t) {
            std::vector<std::uint32_t> got(addresses.size() + 1, kUntouched);
            tables_[t]->lookup(addresses, got.data());
            for (std::size_t i = 0; i < addresses.size(); ++i) {
                ASSERT_EQ(got[i], want[i]) << names_[t] << ": " << addresses[i].to_string();
            }
            ASSERT_EQ(got.back(), kUntouched) << names_[t] << " wrote past the end";
        }
    }
    void check_edges_of_all() const {
        std::vector<Addr> addresses;
        for (const auto& [prefix, value] : oracle_.routes()) {
            for (const Addr& address : edges(prefix)) {
                addresses.push_back(address);
            }
        }
        check(addresses);
        for (const auto& table : tables_) {
            ASSERT_EQ(dump(*table), oracle_.routes());
            ASSERT_EQ(table->size(), oracle_.routes().size());
        }
    }
    const Oracle<Addr>& oracle() const { return oracle_; }
    LpmTable<Addr>& first() { return *tables_.front(); }

private:
    static constexpr std::uint32_t kUntouched = 0xdeadbeef;
    std::vector<std::unique_ptr<LpmTable<Addr>>> tables_;
    std::vector<std::string> names_;
    Oracle<Addr> oracle_;
};

inline net::Ipv4Prefix p4(std::string_view text) {
    return net::Ipv4Prefix::parse(text).value();
}
inline net::Ipv6Prefix p6(std::string_view text) {
    return net::Ipv6Prefix::parse(text).value();
}
inline net::Ipv4Addr a4(std::string_view text) {
    return net::Ipv4Addr::parse(text).value();
}
inline net::Ipv6Addr a6(std::string_view text) {
    return net::Ipv6Addr::parse(text).value();
}

}  // namespace sluice::fib::test
