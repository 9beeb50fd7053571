// SPDX-License-Identifier: BSD-3-Clause
#include "support/packet.h"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace sluice::test {
namespace {

using net::IpProtocol;

[[noreturn]] void give_up(std::string_view what) {
    fmt::print(stderr, "test packet: {}\n", what);
    std::abort();
}

template <class T>
T parse_or_abort(std::string_view text) {
    const auto parsed = T::parse(text);
    if (!parsed) {
        give_up(fmt::format("{}: {}", text, parsed.error()));
    }
    return *parsed;
}

std::uint8_t u8(std::size_t n) {
    return static_cast<std::uint8_t>(n);
}

void append(Bytes& out, std::span<const std::uint8_t> more) {
    out.insert(out.end(), more.begin(), more.end());
}

Bytes counting(std::size_t n) {
    Bytes bytes(n);
    std::size_t value = 0;
    std::ranges::generate(bytes, [&value] { return u8(value++); });
    return bytes;
}

/// "{.a = 1, .b = 2}", only of fields that differ from the layer's defaults.
class Fields {
public:
    template <class T>
    Fields& add(std::string_view name, const T& value, const T& unless) {
        return value == unless ? *this : put(name, print(value));
    }
    template <class T>
    Fields& add(std::string_view name, const std::optional<T>& value) {
        return value ? put(name, print(*value)) : *this;
    }
    std::string str() const { return text_.empty() ? "" : fmt::format("{{{}}}", text_); }

private:
    static std::string print(bool value) { return value ? "true" : "false"; }
    static std::string print(const Bytes& bytes) {
        return fmt::format("{{{}}}", fmt::join(bytes, ", "));
    }
    static std::string print(IpProtocol value) {
        return fmt::format("IpProtocol{{{}}}", std::to_underlying(value));
    }
    template <std::unsigned_integral T>
    static std::string print(T value) {
        return fmt::format("{}", value);
    }
    template <class T>
        requires requires(const T& a) { a.to_string(); }
    static std::string print(const T& address) {
        return fmt::format("\"{}\"", address.to_string());
    }
    Fields& put(std::string_view name, std::string_view value) {
        text_ += fmt::format("{}.{} = {}", text_.empty() ? "" : ", ", name, value);
        return *this;
    }
    std::string text_;
};

}  // namespace

Mac::Mac(const char* text) : net::MacAddr(parse_or_abort<net::MacAddr>(text)) {}
V4::V4(const char* text) : net::Ipv4Addr(parse_or_abort<net::Ipv4Addr>(text)) {}
V6::V6(const char* text) : net::Ipv6Addr(parse_or_abort<net::Ipv6Addr>(text)) {}

Packet& Packet::add(Layer layer, std::string_view text) {
    layers_.push_back(std::move(layer));
    text_ += '.';
    text_ += text;
    return *this;
}

Packet& Packet::change(std::function<void(Bytes&)> fn, std::string_view text) {
    changes_.push_back(std::move(fn));
    text_ += '.';
    text_ += text;
    return *this;
}

Packet& Packet::eth(Eth l) {
    const Eth d;
    const auto f = Fields().add("dst", l.dst, d.dst).add("src", l.src, d.src).add("type", l.type);
    return add(l, fmt::format("eth({})", f.str()));
}

Packet& Packet::vlan(Vlan l) {
    const Vlan d;
    const auto f = Fields()
                       .add("id", l.id, d.id)
                       .add("priority", l.priority, d.priority)
                       .add("tpid", l.tpid, d.tpid)
                       .add("type", l.type);
    return add(l, fmt::format("vlan({})", f.str()));
}

Packet& Packet::ipv4(Ipv4 l) {
    const Ipv4 d;
    const auto f = Fields()
                       .add("src", l.src, d.src)
                       .add("dst", l.dst, d.dst)
                       .add("ttl", l.ttl, d.ttl)
                       .add("tos", l.tos, d.tos)
                       .add("id", l.id, d.id)
                       .add("df", l.df, d.df)
                       .add("mf", l.mf, d.mf)
                       .add("frag_offset", l.frag_offset, d.frag_offset)
                       .add("options", l.options, d.options)
                       .add("protocol", l.protocol)
                       .add("version", l.version)
                       .add("ihl", l.ihl)
                       .add("total_length", l.total_length)
                       .add("checksum", l.checksum);
    return add(std::move(l), fmt::format("ipv4({})", f.str()));
}

Packet& Packet::ipv6(Ipv6 l) {
    const Ipv6 d;
    const auto f = Fields()
                       .add("src", l.src, d.src)
                       .add("dst", l.dst, d.dst)
                       .add("hop_limit", l.hop_limit, d.hop_limit)
                       .add("traffic_class", l.traffic_class, d.traffic_class)
                       .add("flow_label", l.flow_label, d.flow_label)
                       .add("next_header", l.next_header)
                       .add("version", l.version)
                       .add("payload_length", l.payload_length);
    return add(l, fmt::format("ipv6({})", f.str()));
}

namespace {
/// Length byte and options, padded so that the header is a multiple of 8 bytes (RFC 8200 4.2).
Bytes options_body(const Options& l) {
    constexpr std::size_t kBefore = 2;  // next header and length
    const std::size_t missing = (8 - (kBefore + l.options.size()) % 8) % 8;
    Bytes padding(missing);
    if (missing >= 2) {
        padding[0] = 1;  // PadN
        padding[1] = u8(missing - 2);
    }
    const std::size_t units = (kBefore + l.options.size() + missing) / 8;
    Bytes body;
    append(body, Bytes{l.length.value_or(u8(units - 1))});
    append(body, l.options);
    append(body, padding);
    return body;
}

std::string options_text(const Options& l) {
    return Fields()
        .add("options", l.options, Bytes{})
        .add("length", l.length)
        .add("next_header", l.next_header)
        .str();
}
}  // namespace

Packet& Packet::hop_by_hop(Options l) {
    return add(Extension{IpProtocol::kHopByHop, options_body(l), l.next_header},
               fmt::format("hop_by_hop({})", options_text(l)));
}

Packet& Packet::destination_options(Options l) {
    return add(Extension{IpProtocol::kDestinationOptions, options_body(l), l.next_header},
               fmt::format("destination_options({})", options_text(l)));
}

Packet& Packet::routing(Routing l) {
    const Routing d;
    const auto f = Fields()
                       .add("type", l.type, d.type)
                       .add("segments_left", l.segments_left, d.segments_left)
                       .add("data", l.data, d.data)
                       .add("length", l.length)
                       .add("next_header", l.next_header);
    Bytes body{l.length.value_or(u8((4 + l.data.size()) / 8 - 1)), l.type, l.segments_left};
    append(body, l.data);
    return add(Extension{IpProtocol::kIpv6Route, std::move(body), l.next_header},
               fmt::format("routing({})", f.str()));
}

Packet& Packet::fragment(Fragment l) {
    const Fragment d;
    const auto f = Fields()
                       .add("offset", l.offset, d.offset)
                       .add("more", l.more, d.more)
                       .add("id", l.id, d.id)
                       .add("next_header", l.next_header);
    const std::size_t flags = l.offset | (l.more ? 1U : 0U);
    return add(Extension{IpProtocol::kIpv6Fragment,
                         {0,
                          u8(flags >> 8U),
                          u8(flags),
                          u8(l.id >> 24U),
                          u8(l.id >> 16U),
                          u8(l.id >> 8U),
                          u8(l.id)},
                         l.next_header},
               fmt::format("fragment({})", f.str()));
}

Packet& Packet::udp(Udp l) {
    const Udp d;
    const auto f = Fields()
                       .add("sport", l.sport, d.sport)
                       .add("dport", l.dport, d.dport)
                       .add("length", l.length)
                       .add("checksum", l.checksum);
    return add(l, fmt::format("udp({})", f.str()));
}

Packet& Packet::tcp(Tcp l) {
    const Tcp d;
    const auto f = Fields()
                       .add("sport", l.sport, d.sport)
                       .add("dport", l.dport, d.dport)
                       .add("seq", l.seq, d.seq)
                       .add("ack", l.ack, d.ack)
                       .add("flags", l.flags, d.flags)
                       .add("window", l.window, d.window)
                       .add("checksum", l.checksum);
    return add(l, fmt::format("tcp({})", f.str()));
}

Packet& Packet::arp(Arp l) {
    const Arp d;
    const auto f = Fields()
                       .add("operation", l.operation, d.operation)
                       .add("sender_mac", l.sender_mac, d.sender_mac)
                       .add("sender_ip", l.sender_ip, d.sender_ip)
                       .add("target_mac", l.target_mac, d.target_mac)
                       .add("target_ip", l.target_ip, d.target_ip)
                       .add("hardware", l.hardware, d.hardware)
                       .add("protocol", l.protocol, d.protocol)
                       .add("hardware_bytes", l.hardware_bytes, d.hardware_bytes)
                       .add("protocol_bytes", l.protocol_bytes, d.protocol_bytes);
    return add(l, fmt::format("arp({})", f.str()));
}

namespace {
std::string icmp_text(std::string_view name,
                      unsigned type,
                      unsigned code,
                      std::uint32_t rest,
                      std::optional<std::uint16_t> checksum) {
    const std::string last = checksum ? fmt::format(", {:#06x}", *checksum) : "";
    return fmt::format("{}({}, {}, {:#x}{})", name, type, code, rest, last);
}

Bytes ndp_body(const V6& target,
               std::uint8_t option,
               const std::optional<Mac>& link,
               const Bytes& more) {
    Bytes body(target.bytes.begin(), target.bytes.end());
    if (link) {
        append(body, Bytes{option, 1});
        append(body, link->bytes);
    }
    append(body, more);
    return body;
}
}  // namespace

Packet& Packet::icmp(std::uint8_t type,
                     std::uint8_t code,
                     std::uint32_t rest,
                     std::optional<std::uint16_t> checksum) {
    return add(Icmp{false, type, code, rest, checksum},
               icmp_text("icmp", type, code, rest, checksum));
}

Packet& Packet::icmp6(std::uint8_t type,
                      std::uint8_t code,
                      std::uint32_t rest,
                      std::optional<std::uint16_t> checksum) {
    return add(Icmp{true, type, code, rest, checksum},
               icmp_text("icmp6", type, code, rest, checksum));
}

Packet& Packet::ndp_ns(const Solicitation& m) {
    return icmp6(net::icmp6::kNeighborSolicitation)
        .raw(ndp_body(m.target, 1, m.source_link, m.options));
}

Packet& Packet::ndp_na(const Advertisement& m) {
    const std::uint32_t flags = (m.router ? 1U << 31U : 0U) | (m.solicited ? 1U << 30U : 0U) |
                                (m.override ? 1U << 29U : 0U);
    return icmp6(net::icmp6::kNeighborAdvertisement, 0, flags)
        .raw(ndp_body(m.target, 2, m.target_link, m.options));
}

Packet& Packet::raw(Bytes bytes) {
    std::string text = fmt::format("raw({{{:#04x}}})", fmt::join(bytes, ", "));
    return add(std::move(bytes), text);
}

Packet& Packet::payload(std::size_t n) {
    return add(counting(n), fmt::format("payload({})", n));
}

Packet& Packet::pad_to(std::size_t size, std::uint8_t fill) {
    return change([=](Bytes& b) { b.resize(std::max(size, b.size()), fill); },
                  fmt::format("pad_to({}, {:#04x})", size, fill));
}

Packet& Packet::truncate(std::size_t size) {
    return change([=](Bytes& b) { b.resize(std::min(size, b.size())); },
                  fmt::format("truncate({})", size));
}

Packet& Packet::set(std::size_t offset, std::uint8_t value) {
    return change(
        [=](Bytes& b) {
            if (offset >= b.size()) {
                give_up(fmt::format("set({}) in {} bytes", offset, b.size()));
            }
            b[offset] = value;
        },
        fmt::format("set({}, {:#04x})", offset, value));
}

std::string Packet::describe() const {
    return fmt::format("{}\n{}", text_, to_hex(bytes()));
}

std::ostream& operator<<(std::ostream& out, const Packet& packet) {
    return out << packet.describe();
}

}  // namespace sluice::test
