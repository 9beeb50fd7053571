// SPDX-License-Identifier: BSD-3-Clause
#include "stats/counters.h"

#include <cstddef>
#include <cstdint>
#include <numeric>

namespace sluice::stats {

void accumulate(NetdevCounters& into, const NetdevCounters& from) noexcept {
    into.rx_packets += read(from.rx_packets);
    into.rx_bytes += read(from.rx_bytes);
    into.tx_packets += read(from.tx_packets);
    into.tx_bytes += read(from.tx_bytes);
    into.forwarded += read(from.forwarded);
    into.delivered += read(from.delivered);
    into.held += read(from.held);
    into.icmp_errors_sent += read(from.icmp_errors_sent);
    into.icmp_errors_suppressed += read(from.icmp_errors_suppressed);
    into.fragments_lost += read(from.fragments_lost);
    for (std::size_t i = 0; i < kDropReasons; ++i) {
        into.drops[i] += read(from.drops[i]);
    }
}

std::uint64_t imbalance(const NetdevCounters& sum) noexcept {
    const std::uint64_t drops =
        std::accumulate(sum.drops.begin(), sum.drops.end(), std::uint64_t{0});
    return sum.rx_packets - (sum.forwarded + sum.delivered + sum.held + drops);
}

}  // namespace sluice::stats
