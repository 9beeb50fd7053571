// SPDX-License-Identifier: BSD-3-Clause
#include "fib/dst.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "fib/lpm_support.h"
#include "net/address.h"

namespace sluice::fib::test {

namespace {

constexpr net::MacAddr kOne{{0x02, 0x11, 0x11, 0x11, 0x11, 0x11}};
constexpr net::MacAddr kOther{{0x06, 0xee, 0xee, 0xee, 0xee, 0xee}};
constexpr std::array<std::uint8_t, 12> kTail{0x02, 0, 0, 0, 0, 1, 0x81, 0, 0, 10, 8, 0};

void write_rest(Dst& dst) {
    dst.rewrite_bytes = 18;
    std::ranges::copy(kTail, dst.rewrite.begin() + 6);
}

TEST(DstPool, index_zero_is_the_answer_without_a_route) {
    ManualReclaimer reclaimer;
    const DstPool pool(8, reclaimer);
    EXPECT_EQ(pool[kNoRoute].type, DstType::kNone);
    EXPECT_EQ(pool[kSourceInvalidDst].type, DstType::kSourceInvalid);
    EXPECT_EQ(pool[kRouteLoopDst].type, DstType::kRouteLoop);
    EXPECT_EQ(pool[kGroupEmptyDst].type, DstType::kGroupEmpty);
    EXPECT_EQ(pool.in_use(), std::size_t{kFirstDst});
}

TEST(DstPool, slots_are_reused_after_the_grace_period_only) {
    ManualReclaimer reclaimer;
    DstPool pool(kFirstDst + 2, reclaimer);
    const DstIndex a = pool.allocate().value();
    const DstIndex b = pool.allocate().value();
    EXPECT_NE(a, kNoRoute);
    EXPECT_NE(a, b);
    const auto full = pool.allocate();
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, ErrorCode::kLimit);
    EXPECT_NE(full.error().message.find("6"), std::string::npos) << full.error().message;

    pool.writable(a).type = DstType::kUnicast;
    resolve(pool.writable(a), kOne);
    pool.release(a);
    EXPECT_FALSE(pool.allocate()) << "a reader may still be at it";
    EXPECT_EQ(pool[a].type, DstType::kUnicast);
    EXPECT_EQ(pool.in_use(), std::size_t{kFirstDst} + 2);
    reclaimer.finish();
    EXPECT_EQ(pool.in_use(), std::size_t{kFirstDst} + 1);
    EXPECT_EQ(pool.allocate().value(), a);
    EXPECT_EQ(pool[a].type, DstType::kNone);
    EXPECT_EQ(pool[a].state.load(), 0U);
}

TEST(Dst, gateway_of_either_family) {
    ManualReclaimer reclaimer;
    DstPool pool(8, reclaimer);
    Dst& dst = pool.writable(pool.allocate().value());
    dst.set_gateway(a6("fe80::1234"));
    EXPECT_EQ(dst.gateway_is_v6, 1U);
    EXPECT_EQ(dst.gateway6(), a6("fe80::1234"));
    dst.set_gateway(a4("10.0.1.2"));
    EXPECT_EQ(dst.gateway_is_v6, 0U);
    EXPECT_EQ(dst.gateway4(), a4("10.0.1.2"));
}

TEST(Dst, states_of_its_neighbor) {
    ManualReclaimer reclaimer;
    DstPool pool(8, reclaimer);
    Dst& dst = pool.writable(pool.allocate().value());
    resolve(dst, kOne);
    EXPECT_EQ(dst.state.load(), Dst::kResolved);
    set_report_use(dst, true);
    EXPECT_EQ(dst.state.load(), Dst::kResolved | Dst::kReportUse);
    resolve(dst, kOther);
    EXPECT_EQ(dst.state.load(), Dst::kResolved | Dst::kReportUse);
    set_report_use(dst, false);
    EXPECT_EQ(dst.state.load(), Dst::kResolved);
    unresolve(dst);
    EXPECT_EQ(dst.state.load(), 0U);
}

TEST(Dst, rewrite_has_the_mac_and_the_rest) {
    ManualReclaimer reclaimer;
    DstPool pool(8, reclaimer);
    Dst& dst = pool.writable(pool.allocate().value());
    write_rest(dst);
    resolve(dst, kOne);
    std::array<std::uint8_t, 20> out{};
    out.fill(0x55);
    dst.write_rewrite(out.data() + 18);
    EXPECT_TRUE(std::equal(kOne.bytes.begin(), kOne.bytes.end(), out.begin()));
    EXPECT_TRUE(std::equal(kTail.begin(), kTail.end(), out.begin() + 6));
    EXPECT_EQ(out[18], 0x55);
    dst.rewrite_bytes = 14;
    out.fill(0x55);
    dst.write_rewrite(out.data() + 14);
    EXPECT_EQ(out[13], kTail[7]);
    EXPECT_EQ(out[14], 0x55);
}

// D2: readers copy a rewrite while the MAC changes under them, and never see half of each.
TEST(Dst, Case_D55_mac_changes_in_one_piece) {
    ManualReclaimer reclaimer;
    DstPool pool(8, reclaimer);
    Dst& dst = pool.writable(pool.allocate().value());
    write_rest(dst);
    resolve(dst, kOne);
    std::atomic<bool> stop = false;
    std::atomic<bool> ready = false;
    std::uint64_t torn = 0;
    std::array<std::uint64_t, 2> seen{};
    std::thread reader([&] {
        std::array<std::uint8_t, 18> out{};
        ready = true;
        while (!stop.load(std::memory_order_relaxed)) {
            dst.write_rewrite(out.data() + out.size());
            if (std::equal(kOne.bytes.begin(), kOne.bytes.end(), out.begin())) {
                ++seen[0];
            } else if (std::equal(kOther.bytes.begin(), kOther.bytes.end(), out.begin())) {
                ++seen[1];
            } else {
                ++torn;
            }
            torn += std::equal(kTail.begin(), kTail.end(), out.begin() + 6) ? 0U : 1U;
        }
    });
    while (!ready) {
        std::this_thread::yield();
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    while (std::chrono::steady_clock::now() < end) {
        for (int i = 0; i < 1000; ++i) {
            resolve(dst, i % 2 == 0 ? kOther : kOne);
        }
        std::this_thread::yield();
    }
    stop = true;
    reader.join();
    EXPECT_EQ(torn, 0U);
    EXPECT_GT(seen[0] + seen[1], 0U);
}

}  // namespace

}  // namespace sluice::fib::test
