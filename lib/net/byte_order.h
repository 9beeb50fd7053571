// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

namespace sluice::net {

/// An unsigned integer as it lies in a packet: network byte order, no alignment. It converts to and
/// from host order only by name, so a forgotten swap does not compile.
template <std::unsigned_integral T>
class [[gnu::packed]] Be {
public:
    constexpr Be() = default;
    static constexpr Be from_host(T value) noexcept {
        Be be;
        be.raw_ = swap(value);
        return be;
    }
    /// `raw` as loaded from a packet.
    static constexpr Be from_raw(T raw) noexcept {
        Be be;
        be.raw_ = raw;
        return be;
    }
    constexpr T host() const noexcept { return swap(raw_); }
    constexpr T raw() const noexcept { return raw_; }
    friend constexpr bool operator==(Be a, Be b) noexcept { return a.raw_ == b.raw_; }

private:
    static constexpr T swap(T value) noexcept {
        if constexpr (std::endian::native == std::endian::little) {
            return std::byteswap(value);
        } else {
            return value;
        }
    }
    T raw_{};
};

using Be16 = Be<std::uint16_t>;
using Be32 = Be<std::uint32_t>;
static_assert(sizeof(Be16) == 2 && alignof(Be16) == 1);
static_assert(sizeof(Be32) == 4 && alignof(Be32) == 1);

}  // namespace sluice::net
