// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <rte_mbuf.h>

#include "base/drop_reason.h"
#include "dpdk/mbuf.h"
#include "fib/dst.h"
#include "net/checksum.h"
#include "net/wire.h"
#include "pipeline/stages.h"

/// RFC 791 3.2 (fragmentation example), RFC 1812 5.2.6. Fragments are copies: their link-layer
/// header needs room in front, and the sender's buffer is free at once.
namespace sluice::pipeline {

namespace {

constexpr std::size_t kMaxHeader = 60;
constexpr std::size_t kMaxOffset = 65'535;
// 65,515 bytes of payload in pieces of 8, the least that an MTU of 68 and a full header leave.
constexpr std::size_t kMaxFragments = 65'535 / 8 + 1;

struct Header {
    std::array<std::uint8_t, kMaxHeader> bytes;
    std::size_t size;
};

// RFC 791 3.1: only options with the copied bit go into every fragment; padded to 4 bytes.
Header header_of_later(std::span<const std::uint8_t> first) noexcept {
    Header h{.bytes = {}, .size = sizeof(net::Ipv4Header)};
    std::memcpy(h.bytes.data(), first.data(), h.size);
    std::size_t at = h.size;
    while (at < first.size() && first[at] != 0) {
        const std::size_t length = first[at] == 1 ? 1 : first[at + 1];  // options were checked
        if ((first[at] & 0x80U) != 0) {
            std::memcpy(h.bytes.data() + h.size, first.data() + at, length);
            h.size += length;
        }
        at += length;
    }
    h.size = (h.size + 3) & ~std::size_t{3};
    h.bytes[0] = static_cast<std::uint8_t>(0x40U | (h.size / 4));
    return h;
}

// Appends `length` bytes of `from`, beginning at `offset`, to `to`, adding segments. False: no
// mbuf.
bool append(rte_mempool* pool,
            rte_mbuf& to,
            const rte_mbuf& from,
            std::size_t offset,
            std::size_t length) noexcept {
    rte_mbuf* last = rte_pktmbuf_lastseg(&to);
    while (length > 0) {
        if (rte_pktmbuf_tailroom(last) == 0) {
            rte_mbuf* more = rte_pktmbuf_alloc(pool);
            if (more == nullptr) {
                return false;
            }
            last->next = more;
            last = more;
            ++to.nb_segs;
        }
        const std::size_t piece = std::min<std::size_t>(length, rte_pktmbuf_tailroom(last));
        std::uint8_t* place = rte_pktmbuf_mtod_offset(last, std::uint8_t*, last->data_len);
        const auto bytes = dpdk::copy_to_linear(from, offset, {place, piece});
        if (bytes.data() != place) {
            std::memcpy(place, bytes.data(), bytes.size());
        }
        last->data_len = static_cast<std::uint16_t>(last->data_len + piece);
        to.pkt_len += static_cast<std::uint32_t>(piece);
        offset += piece;
        length -= piece;
    }
    return true;
}

void seal(std::span<std::uint8_t> header,
          std::size_t payload,
          std::size_t offset,
          bool more) noexcept {
    auto& ip = *reinterpret_cast<net::Ipv4Header*>(header.data());  // NOLINT: own bytes, may alias
    ip.total_length = net::Be16::from_host(static_cast<std::uint16_t>(header.size() + payload));
    ip.flags_fragment = net::Be16::from_host(
        static_cast<std::uint16_t>(offset / 8 | (more ? net::Ipv4Header::kMoreFragments : 0U)));
    ip.checksum = {};
    ip.checksum = net::internet_checksum(header);
}

// One fragment that starts with its IP header; null: no mbuf.
rte_mbuf* make_fragment(Context& c,
                        const Packet& p,
                        std::span<const std::uint8_t> header,
                        std::size_t from,
                        std::size_t payload) noexcept {
    rte_mbuf* m = rte_pktmbuf_alloc(c.pool);
    if (m == nullptr) {
        return nullptr;
    }
    std::memcpy(rte_pktmbuf_append(m, static_cast<std::uint16_t>(header.size())),
                header.data(),
                header.size());
    if (!append(c.pool, *m, *p.m, p.l2_bytes + from, payload)) {
        rte_pktmbuf_free(m);
        return nullptr;
    }
    return m;
}

}  // namespace

void ip4_fragment(Context& c, Packet& p, const fib::Dst& dst, std::uint16_t mtu) noexcept {
    const net::Ipv4Header& ip = p.ip4();
    const std::size_t first_header = ip.header_bytes();
    const std::size_t payload = ip.total_length.host() - first_header;
    const std::size_t base = ip.fragment_offset_bytes();
    const bool more_after = ip.more_fragments();
    if (base + payload > kMaxOffset) {
        // A datagram longer than any can be: the offset of a later piece would not fit its field.
        c.drop(p, DropReason::kIpv4BadTotalLength);
        return;
    }

    Header header{.bytes = {}, .size = first_header};
    std::memcpy(header.bytes.data(), p.l3, first_header);
    const Header later = header_of_later({p.l3, first_header});

    std::array<rte_mbuf*, kMaxFragments> fragments;  // filled as far as used
    std::size_t count = 0;
    for (std::size_t done = 0; done < payload;) {
        const std::size_t room = (mtu - header.size) & ~std::size_t{7};
        // The last one may fill the MTU to the byte.
        const bool last = payload - done <= mtu - header.size;
        const std::size_t piece = last ? payload - done : room;
        seal({header.bytes.data(), header.size}, piece, base + done, !last || more_after);
        rte_mbuf* m =
            make_fragment(c, p, {header.bytes.data(), header.size}, first_header + done, piece);
        if (m == nullptr) {
            rte_pktmbuf_free_bulk(fragments.data(), static_cast<unsigned>(count));
            c.drop(p, DropReason::kFragmentationFailed);
            return;
        }
        fragments[count++] = m;
        done += piece;
        header = later;
    }
    for (std::size_t i = 0; i < count; ++i) {
        rte_mbuf* m = fragments[i];
        const Packet fragment{.m = m,
                              .in = p.in,
                              .l3 = rte_pktmbuf_mtod(m, std::uint8_t*),
                              .book = p.book,
                              .flags = p.flags};
        transmit(c, fragment, dst, m->pkt_len, i == 0);
    }
    rte_pktmbuf_free(p.m);
}

}  // namespace sluice::pipeline
