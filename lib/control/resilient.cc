// SPDX-License-Identifier: BSD-3-Clause
#include "control/resilient.h"

#include <numeric>

namespace sluice::control {

std::vector<std::size_t> bucket_shares(std::span<const std::uint32_t> weights,
                                       std::size_t buckets) {
    const auto total = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
    std::vector<std::size_t> shares;
    std::uint64_t sum = 0;
    std::size_t given = 0;
    for (const std::uint32_t weight : weights) {
        sum += weight;
        // Rounding the running sum rather than each share leaves none over.
        const std::size_t end = (sum * buckets + total / 2) / total;
        shares.push_back(end - given);
        given = end;
    }
    return shares;
}

bool assign_buckets(std::vector<std::uint32_t>& owners,
                    std::span<const std::uint32_t> weights,
                    const std::function<bool(std::size_t bucket)>& may_move) {
    const auto shares = bucket_shares(weights, owners.size());
    std::vector<std::size_t> has(weights.size(), 0);
    for (const std::uint32_t owner : owners) {
        if (owner != kNobody) {
            ++has[owner];
        }
    }
    std::size_t poor = 0;  // all members before this one have their share
    const auto give = [&](std::uint32_t& owner) {
        while (poor < has.size() && has[poor] >= shares[poor]) {
            ++poor;
        }
        if (poor == has.size()) {
            return;
        }
        owner = static_cast<std::uint32_t>(poor);
        ++has[poor];
    };
    for (std::uint32_t& owner : owners) {
        if (owner == kNobody) {
            give(owner);
        }
    }
    bool settled = true;
    for (std::size_t bucket = 0; bucket < owners.size(); ++bucket) {
        std::uint32_t& owner = owners[bucket];
        if (has[owner] <= shares[owner]) {
            continue;
        }
        if (!may_move(bucket)) {
            settled = false;
            continue;
        }
        --has[owner];
        give(owner);
    }
    return settled;
}

bool bucket_idle(std::uint32_t used_s, std::uint32_t now_s, std::chrono::milliseconds timer) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(timer).count();
    // Signed: a worker's clock may be a moment ahead of the control thread's.
    return seconds == 0 || static_cast<std::int32_t>(now_s - used_s) > seconds;
}

}  // namespace sluice::control
