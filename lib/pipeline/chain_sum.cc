// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/chain_sum.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <rte_mbuf.h>

#include "net/checksum.h"

namespace sluice::pipeline {

std::uint32_t sum_chain(const rte_mbuf& m, std::size_t offset, std::size_t length) noexcept {
    std::uint32_t sum = 0;
    std::size_t done = 0;
    for (const rte_mbuf* segment = &m; segment != nullptr && done < length;
         segment = segment->next) {
        if (offset >= segment->data_len) {
            offset -= segment->data_len;
            continue;
        }
        const std::size_t piece = std::min(length - done, segment->data_len - offset);
        const auto* bytes = rte_pktmbuf_mtod_offset(segment, const std::uint8_t*, offset);
        // Complemented twice: folded.
        const auto part =
            static_cast<std::uint16_t>(~net::fold_checksum(net::sum_words({bytes, piece})).raw());
        // RFC 1071 2 (B): from an odd byte on, every byte stands in the other half of its word.
        sum += done % 2 == 0 ? part : std::rotl(part, 8);
        done += piece;
        offset = 0;
    }
    return sum;
}

}  // namespace sluice::pipeline
