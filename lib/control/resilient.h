// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

/// Which member of a resilient group has which bucket. A plain group's flows all follow a change of
/// its weights; here a bucket changes hands only while no flow uses it, or when its member is gone.
namespace sluice::control {

inline constexpr std::uint32_t kNobody = ~std::uint32_t{0};

/// How many of `buckets` each weight is to get: its share, rounded up or down, all of them in
/// total. `weights` must not be empty, and none is zero.
std::vector<std::size_t> bucket_shares(std::span<const std::uint32_t> weights, std::size_t buckets);

/// `owners` are members by their index in `weights`, or kNobody. Buckets of nobody get a member;
/// buckets of members that have too many go to those that have too few, where `may_move` says so.
/// True when each member has its share now.
bool assign_buckets(std::vector<std::uint32_t>& owners,
                    std::span<const std::uint32_t> weights,
                    const std::function<bool(std::size_t bucket)>& may_move);

/// `used_s` and `now_s` are full seconds: what looks like a second may have been a moment, so one
/// more than the timer has to go by. A timer of zero means that no flow is waited for.
bool bucket_idle(std::uint32_t used_s, std::uint32_t now_s, std::chrono::milliseconds timer);

}  // namespace sluice::control
