// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include <rte_mbuf.h>

namespace sluice::pipeline {

/// Ones' complement sum of `length` bytes from `offset` on, over all segments, to pass to
/// net::fold_checksum(). The packet holds that many. rte_raw_cksum_mbuf() loses carries where a
/// segment begins at an odd byte.
std::uint32_t sum_chain(const rte_mbuf& m, std::size_t offset, std::size_t length) noexcept;

}  // namespace sluice::pipeline
