// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <rte_mbuf.h>

#include "base/id.h"

namespace sluice::dpdk {

/// What the stages know about a packet on its way; written by classify, never initialized by
/// drivers.
struct PacketMeta {
    std::uint32_t dst = 0;        // dst index, after lookup
    NetdevId ingress{};           // after classify
    std::uint16_t flags = 0;      // pipeline's own bits
    std::uint16_t l3_offset = 0;  // of the IP or ARP header in the first segment
    std::uint16_t l4_offset = 0;  // 0: not looked for
    std::uint32_t extra = 0;      // stage to stage
};
static_assert(sizeof(PacketMeta) == 16 && std::is_trivially_copyable_v<PacketMeta>);

/// PacketMeta's place: the last 16 bytes of the mbuf. A fixed place lets the accessor be one
/// address computation; Eal::start() registers it as a dynamic field, so no driver gets the same
/// bytes.
inline constexpr std::size_t kPacketMetaOffset = sizeof(rte_mbuf) - sizeof(PacketMeta);
static_assert(kPacketMetaOffset >= offsetof(rte_mbuf, dynfield1));
static_assert(kPacketMetaOffset % alignof(PacketMeta) == 0);

inline PacketMeta& meta(rte_mbuf& m) noexcept {
    return *reinterpret_cast<PacketMeta*>(reinterpret_cast<std::byte*>(&m) + kPacketMetaOffset);
}
inline const PacketMeta& meta(const rte_mbuf& m) noexcept {
    return *reinterpret_cast<const PacketMeta*>(reinterpret_cast<const std::byte*>(&m) +
                                                kPacketMetaOffset);
}

/// The bytes of the first segment.
inline std::span<std::uint8_t> first_segment(rte_mbuf& m) noexcept {
    return {rte_pktmbuf_mtod(&m, std::uint8_t*), m.data_len};
}
inline std::span<const std::uint8_t> first_segment(const rte_mbuf& m) noexcept {
    return {rte_pktmbuf_mtod(&m, const std::uint8_t*), m.data_len};
}

/// Behind the data of a packet of one segment that is being written.
inline std::span<std::uint8_t> tail_room(rte_mbuf& m) noexcept {
    return {rte_pktmbuf_mtod_offset(&m, std::uint8_t*, m.data_len), rte_pktmbuf_tailroom(&m)};
}
/// What was written there belongs to the packet.
inline void append_written(rte_mbuf& m, std::size_t bytes) noexcept {
    m.data_len = static_cast<std::uint16_t>(m.data_len + bytes);
    m.pkt_len += static_cast<std::uint32_t>(bytes);
}

/// The wire structure T at `offset`; nullptr when the first segment ends before it does. The only
/// place that casts packet bytes; T is packed and may alias (net/wire.h), so any offset is fine.
template <class T>
T* header_at(rte_mbuf& m, std::size_t offset) noexcept {
    static_assert(alignof(T) == 1 && std::is_trivially_copyable_v<T>);
    if (m.data_len < sizeof(T) || offset > m.data_len - sizeof(T)) {
        return nullptr;
    }
    return rte_pktmbuf_mtod_offset(&m, T*, offset);
}
template <class T>
const T* header_at(const rte_mbuf& m, std::size_t offset) noexcept {
    static_assert(alignof(T) == 1 && std::is_trivially_copyable_v<T>);
    if (m.data_len < sizeof(T) || offset > m.data_len - sizeof(T)) {
        return nullptr;
    }
    return rte_pktmbuf_mtod_offset(&m, const T*, offset);
}

/// The first out.size() bytes from `offset` on, across segments; what of them exists. For packets
/// whose bytes are contiguous nothing is copied: the span returned then points into the mbuf.
inline std::span<const std::uint8_t> copy_to_linear(const rte_mbuf& m,
                                                    std::size_t offset,
                                                    std::span<std::uint8_t> out) noexcept {
    if (offset >= m.pkt_len) {
        return {};
    }
    const std::size_t there = m.pkt_len - offset;
    const auto length = static_cast<std::uint32_t>(out.size() < there ? out.size() : there);
    const void* bytes =
        rte_pktmbuf_read(&m, static_cast<std::uint32_t>(offset), length, out.data());
    return {static_cast<const std::uint8_t*>(bytes), bytes == nullptr ? 0 : length};
}

}  // namespace sluice::dpdk
