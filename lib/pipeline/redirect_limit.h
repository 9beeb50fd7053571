// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::pipeline {

/// Redirects per source (dst.md C-25): one a second, and after kMost of them silence until the
/// source has been quiet for a while: one that does not listen need not be told for ever (RFC
/// 1812 4.3.2.8, RFC 4861 8.2). A source whose place another one took is told again.
class RedirectLimiter {
public:
    static constexpr std::uint64_t kIntervalNs = 1'000'000'000;
    static constexpr std::uint64_t kForgetNs = 20'000'000'000;
    static constexpr std::uint32_t kMost = 9;

    /// `source`: a hash of netdev and source.
    bool allow(std::uint64_t source, std::uint64_t now_ns) noexcept {
        Entry& entry = entries_[source % entries_.size()];
        const bool other = entry.source != source || now_ns - entry.seen_ns > kForgetNs;
        if (other) {
            entry = {.source = source};
        }
        entry.seen_ns = now_ns;
        if (entry.sent >= kMost || (entry.sent != 0 && now_ns - entry.sent_ns < kIntervalNs)) {
            return false;
        }
        entry.sent_ns = now_ns;
        ++entry.sent;
        return true;
    }

private:
    struct Entry {
        std::uint64_t source = 0;
        std::uint64_t seen_ns = 0;
        std::uint64_t sent_ns = 0;
        std::uint32_t sent = 0;
    };
    std::array<Entry, 1024> entries_{};
};

}  // namespace sluice::pipeline
