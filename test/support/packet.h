// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/address.h"
#include "net/wire.h"

/// Builds the frames that tests send and expect:
///
///     Packet().eth().vlan({.id = 100}).ipv4({.ttl = 1, .df = true}).udp().payload(18).bytes()
///
/// Lengths, types and checksums follow from the layers unless a field says otherwise. Without
/// fields it is a frame of the test bench of the cases: from host H0 behind port p0 to a host
/// behind the gateway on p1.
namespace sluice::test {

using Bytes = std::vector<std::uint8_t>;

/// Addresses that tests write as text; a text that is none ends the test program.
struct Mac : net::MacAddr {
    Mac() = default;
    Mac(net::MacAddr mac) : net::MacAddr(mac) {}  // NOLINT(google-explicit-constructor)
    Mac(const char* text);                        // NOLINT(google-explicit-constructor)
};
struct V4 : net::Ipv4Addr {
    V4() = default;
    V4(net::Ipv4Addr address) : net::Ipv4Addr(address) {}  // NOLINT(google-explicit-constructor)
    V4(const char* text);                                  // NOLINT(google-explicit-constructor)
};
struct V6 : net::Ipv6Addr {
    V6() = default;
    V6(net::Ipv6Addr address) : net::Ipv6Addr(address) {}  // NOLINT(google-explicit-constructor)
    V6(const char* text);                                  // NOLINT(google-explicit-constructor)
};

/// Layers. An empty optional is computed from what follows or from the whole.
struct Eth {
    Mac dst = "02:00:00:00:00:01";
    Mac src = "02:aa:00:00:00:02";
    std::optional<std::uint16_t> type = {};
};
struct Vlan {
    std::uint16_t id = 0;
    std::uint8_t priority = 0;
    std::uint16_t tpid = net::kEtherTypeVlan;  // stands in the layer before
    std::optional<std::uint16_t> type = {};
};
struct Ipv4 {
    V4 src = "10.0.0.2";
    V4 dst = "192.0.2.9";
    std::uint8_t ttl = 64;
    std::uint8_t tos = 0;
    std::uint16_t id = 1;
    bool df = false;
    bool mf = false;
    std::uint16_t frag_offset = 0;  // in bytes, a multiple of 8
    Bytes options = {};             // padded with zeros to a multiple of 4
    std::optional<net::IpProtocol> protocol = {};
    std::optional<std::uint8_t> version = {};
    std::optional<std::uint8_t> ihl = {};  // in 4-byte units
    std::optional<std::uint16_t> total_length = {};
    std::optional<std::uint16_t> checksum = {};
};
struct Ipv6 {
    V6 src = "fd00::2";
    V6 dst = "2001:db8:2::9";
    std::uint8_t hop_limit = 64;
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;
    std::optional<net::IpProtocol> next_header = {};
    std::optional<std::uint8_t> version = {};
    std::optional<std::uint16_t> payload_length = {};
};
/// Hop-by-hop or destination options.
struct Options {
    Bytes options = {};                       // padded with PadN to a multiple of 8
    std::optional<std::uint8_t> length = {};  // as in the header: 8-byte units less one
    std::optional<net::IpProtocol> next_header = {};
};
struct Routing {
    std::uint8_t type = 0;
    std::uint8_t segments_left = 0;
    Bytes data = {0, 0, 0, 0};  // reserved and addresses: 4 bytes and a multiple of 8
    std::optional<std::uint8_t> length = {};
    std::optional<net::IpProtocol> next_header = {};
};
struct Fragment {
    std::uint16_t offset = 0;  // in bytes, a multiple of 8
    bool more = false;
    std::uint32_t id = 1;
    std::optional<net::IpProtocol> next_header = {};
};
struct Udp {
    std::uint16_t sport = 1000;
    std::uint16_t dport = 2000;
    std::optional<std::uint16_t> length = {};
    std::optional<std::uint16_t> checksum = {};  // 0 is "none"
};
struct Tcp {
    std::uint16_t sport = 1000;
    std::uint16_t dport = 2000;
    std::uint32_t seq = 1;
    std::uint32_t ack = 0;
    std::uint8_t flags = 0x02;  // SYN
    std::uint16_t window = 65535;
    std::optional<std::uint16_t> checksum = {};
};
struct Arp {
    std::uint16_t operation = net::ArpHeader::kRequest;
    Mac sender_mac = "02:aa:00:00:00:02";
    V4 sender_ip = "10.0.0.2";
    Mac target_mac = {};
    V4 target_ip = "10.0.0.1";
    std::uint16_t hardware = 1;
    std::uint16_t protocol = net::kEtherTypeIpv4;
    std::uint8_t hardware_bytes = 6;
    std::uint8_t protocol_bytes = 4;
};
struct Solicitation {
    V6 target = "fd00::1";
    std::optional<Mac> source_link = {};
    Bytes options = {};  // behind the link option, as they are
};
struct Advertisement {
    V6 target = "fd00::2";
    bool router = false, solicited = false, override = false;
    std::optional<Mac> target_link = {};
    Bytes options = {};
};

class Packet {
public:
    Packet& eth(Eth layer = {});
    Packet& vlan(Vlan layer);
    Packet& vlan(std::uint16_t id) { return vlan(Vlan{.id = id}); }
    Packet& ipv4(Ipv4 layer = {});
    Packet& ipv6(Ipv6 layer = {});
    Packet& hop_by_hop(Options layer = {});
    Packet& destination_options(Options layer = {});
    Packet& routing(Routing layer = {});
    Packet& fragment(Fragment layer = {});
    Packet& udp(Udp layer = {});
    Packet& tcp(Tcp layer = {});
    Packet& arp(Arp layer = {});
    /// `rest`: the four bytes behind the checksum, host order (echo: id << 16 | sequence).
    Packet& icmp(std::uint8_t type,
                 std::uint8_t code = 0,
                 std::uint32_t rest = 0,
                 std::optional<std::uint16_t> checksum = {});
    Packet& icmp6(std::uint8_t type,
                  std::uint8_t code = 0,
                  std::uint32_t rest = 0,
                  std::optional<std::uint16_t> checksum = {});
    /// Behind .ipv6({.dst = ..., .hop_limit = 255}).
    Packet& ndp_ns(const Solicitation& message = {});
    Packet& ndp_na(const Advertisement& message = {});
    Packet& raw(Bytes bytes);
    /// `n` bytes that count up from zero.
    Packet& payload(std::size_t n);

    /// Changes to the finished bytes, in call order.
    Packet& pad_to(std::size_t size, std::uint8_t fill = 0);
    Packet& truncate(std::size_t size);
    Packet& set(std::size_t offset, std::uint8_t value);

    Bytes bytes() const;
    std::string describe() const;  // the calls that make this packet, then its hex

private:
    struct Icmp {
        bool v6 = false;
        std::uint8_t type = 0;
        std::uint8_t code = 0;
        std::uint32_t rest = 0;
        std::optional<std::uint16_t> checksum = {};
    };
    struct Extension {
        net::IpProtocol kind{};
        Bytes body;  // behind next header
        std::optional<net::IpProtocol> next_header;
    };
    using Layer = std::variant<Eth, Vlan, Ipv4, Ipv6, Extension, Icmp, Udp, Tcp, Arp, Bytes>;

    Packet& add(Layer layer, std::string_view text);
    Packet& change(std::function<void(Bytes&)> fn, std::string_view text);
    std::uint16_t ether_type(std::size_t next) const;
    net::IpProtocol protocol(std::size_t next) const;
    net::Be16 upper_checksum(std::size_t upper, const Bytes& bytes, bool pseudo_header) const;
    /// Put a layer in front of `out`, which holds all layers from number `next` on.
    void put(const Eth& l, std::size_t next, Bytes& out) const;
    void put(const Vlan& l, std::size_t next, Bytes& out) const;
    void put(const Ipv4& l, std::size_t next, Bytes& out) const;
    void put(const Ipv6& l, std::size_t next, Bytes& out) const;
    void put(const Extension& l, std::size_t next, Bytes& out) const;
    void put(const Icmp& l, std::size_t next, Bytes& out) const;
    void put(const Udp& l, std::size_t next, Bytes& out) const;
    void put(const Tcp& l, std::size_t next, Bytes& out) const;
    void put(const Arp& l, std::size_t next, Bytes& out) const;
    void put(const Bytes& l, std::size_t next, Bytes& out) const;

    std::vector<Layer> layers_;
    std::vector<std::function<void(Bytes&)>> changes_;
    std::string text_ = "Packet()";
};

std::ostream& operator<<(std::ostream& out, const Packet& packet);

/// Hexadecimal digits, white space ignored.
Bytes from_hex(std::string_view text);
/// 32 bytes a line; from_hex reads it back.
std::string to_hex(std::span<const std::uint8_t> bytes);
/// Empty if equal; else where they differ first, and both in hexadecimal.
std::string difference(std::span<const std::uint8_t> want, std::span<const std::uint8_t> got);

}  // namespace sluice::test
