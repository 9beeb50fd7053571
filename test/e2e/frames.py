# SPDX-License-Identifier: BSD-3-Clause
"""Frames of the test bench: made with scapy, compared as bytes."""

import logging
import struct

logging.getLogger("scapy").setLevel(logging.ERROR)

# pylint: disable=unused-import
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption  # noqa: E402,F401
from scapy.layers.inet6 import (  # noqa: E402,F401
    ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA,
    ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, ICMPv6PacketTooBig, ICMPv6ParamProblem,
    ICMPv6TimeExceeded, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting, RouterAlert)
from scapy.layers.l2 import ARP, Dot1Q, Ether  # noqa: E402,F401
from scapy.packet import Raw  # noqa: E402,F401

# The test bench of all cases.
R0, R1 = "02:00:00:00:00:01", "02:00:00:00:00:02"
H0, H1 = "02:aa:00:00:00:02", "02:aa:00:00:01:02"
BROADCAST = "ff:ff:ff:ff:ff:ff"

P1 = bytes.fromhex("02000000000102aa0000000208004500001c000100004011aec50a000002c000020903e807d000080000" + "aa" * 18)
P2 = bytes.fromhex("02000000000102aa0000000208004500002eafb400004011feff0a000002c000020903e807d0001a0000" + "78" * 18)
P3 = bytes.fromhex(
    "02000000000102aa0000000286dd6000000000080040fd00000000000000000000000000000220010db8000200000000"
    "00000000000911ff010400000000")
P4 = bytes.fromhex(
    "02000000000102aa0000000286dd60000000000c1140fe80000000000000000000000000000220010db8000200000000"
    "00000000000903e807d0000c000061626364")
P5 = bytes.fromhex("02000000000102aa0000000208004500002e000100004011b8b500000000c000020903e807d0001a0000" + "78" * 18)
P6 = bytes.fromhex("02000000000102aa00000002080045000578000100004011a9690a000002c000020903e807d0001a0000" + "78" * 18)
P7 = bytes.fromhex(
    "02000000000102aa0000000208004700002e000100004011a1ac0a000002c0000209070704000000000003e807d000120000" + "78" * 10)


def udp4(src="10.0.0.2", dst="192.0.2.9", size=18, eth=None, sport=1000, dport=2000, payload=None, **ip):
    """From H0 through p0 unless told otherwise; `size` is the UDP payload's."""
    ip.setdefault("id", 1)
    ip.setdefault("ttl", 64)
    return (Ether(**{"dst": R0, "src": H0, **(eth or {})}) / IP(src=src, dst=dst, **ip) /
            UDP(sport=sport, dport=dport) / Raw(payload if payload is not None else b"x" * size))


def udp6(src="fd00::2", dst="2001:db8:2::9", size=18, eth=None, sport=1000, dport=2000, payload=None, **ip):
    ip.setdefault("hlim", 64)
    return (Ether(**{"dst": R0, "src": H0, **(eth or {})}) / IPv6(src=src, dst=dst, **ip) /
            UDP(sport=sport, dport=dport) / Raw(payload if payload is not None else b"x" * size))


def echo4(src="10.0.0.2", dst="10.0.0.1", eth=None, ident=7, seq=1, payload=b"abcdefgh", **ip):
    ip.setdefault("id", 1)
    return (Ether(**{"dst": R0, "src": H0, **(eth or {})}) / IP(src=src, dst=dst, **ip) /
            ICMP(type=8, id=ident, seq=seq) / Raw(payload))


def echo6(src="fd00::2", dst="fd00::1", eth=None, ident=7, seq=1, payload=b"abcdefgh", **ip):
    return (Ether(**{"dst": R0, "src": H0, **(eth or {})}) / IPv6(src=src, dst=dst, **ip) /
            ICMPv6EchoRequest(id=ident, seq=seq, data=payload))


def arp(op, sender, sender_mac, target, target_mac="00:00:00:00:00:00", dst=BROADCAST, src=None):
    return Ether(dst=dst, src=src or sender_mac) / ARP(
        op=op, psrc=sender, hwsrc=sender_mac, pdst=target, hwdst=target_mac)


def solicitation(target, src="fd00::2", mac=H0, dst=None, eth_dst=None, option=True):
    """A neighbor solicitation to the target's solicited-node group."""
    group = solicited_node(target)
    packet = Ether(dst=eth_dst or group_mac(group), src=mac) / IPv6(src=src, dst=dst or group, hlim=255)
    packet /= ICMPv6ND_NS(tgt=target)
    return packet / ICMPv6NDOptSrcLLAddr(lladdr=mac) if option else packet


def advertisement(target, mac, dst="ff02::1", eth_dst="33:33:00:00:00:01", solicited=0, override=1,
                  router=0, option=True, src=None):
    packet = Ether(dst=eth_dst, src=mac) / IPv6(src=src or target, dst=dst, hlim=255)
    packet /= ICMPv6ND_NA(tgt=target, R=router, S=solicited, O=override)
    return packet / ICMPv6NDOptDstLLAddr(lladdr=mac) if option else packet


def pack6(address):
    import socket
    return socket.inet_pton(socket.AF_INET6, address)


def solicited_node(address):
    import socket
    return socket.inet_ntop(socket.AF_INET6, b"\xff\x02" + bytes(9) + b"\x01\xff" + pack6(address)[13:])


def group_mac(address):
    return "33:33:" + ":".join(f"{byte:02x}" for byte in pack6(address)[12:])


def with_options(options, payload, dst="192.0.2.9", **ip):
    """From H0: UDP's protocol number, these option bytes (whole words), the checksum right."""
    assert len(options) % 4 == 0
    frame = bytearray(bytes(Ether(dst=R0, src=H0) / IP(
        src="10.0.0.2", dst=dst, id=3, proto=17, ihl=5 + len(options) // 4,
        len=20 + len(options) + len(payload), chksum=0, **ip) / Raw(options + payload)))
    frame[24:26] = struct.pack("!H", inet_sum(bytes(frame[14:34 + len(options)])) ^ 0xFFFF)
    return bytes(frame)


def tagged(frame, *tags):
    """The frame with 802.1Q tags (VLAN ids) behind the addresses."""
    frame = bytes(frame)
    return frame[:12] + b"".join(struct.pack("!HH", 0x8100, tag) for tag in tags) + frame[12:]


def l3_offset(frame):
    at = 12
    while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    return at + 2


def tags_of(frame):
    return [struct.unpack_from("!H", frame, at)[0] & 0xFFF for at in range(14, l3_offset(frame), 4)]


def l3(frame):
    """The IP packet of a frame, padding off."""
    frame = bytes(frame)
    packet = frame[l3_offset(frame):]
    if packet[0] >> 4 == 4:
        return packet[:struct.unpack_from("!H", packet, 2)[0]]
    return packet[:40 + struct.unpack_from("!H", packet, 4)[0]]


def inet_sum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def forwarded_l3(frame):
    """What must leave for what came in: TTL less one, the IPv4 checksum to match."""
    packet = bytearray(l3(frame))
    if packet[0] >> 4 == 6:
        packet[7] -= 1
        return bytes(packet)
    packet[8] -= 1
    packet[10:12] = b"\0\0"
    packet[10:12] = struct.pack("!H", inet_sum(bytes(packet[:(packet[0] & 15) * 4])) ^ 0xFFFF)
    return bytes(packet)


def checksums_ok(packet):
    """IPv4 header checksum, and ICMP's if the packet is whole ICMP."""
    if packet[0] >> 4 == 4:
        header = (packet[0] & 15) * 4
        if inet_sum(packet[:header]) != 0xFFFF:
            return False
        fragment = struct.unpack_from("!H", packet, 6)[0] & 0x3FFF
        return packet[9] != 1 or fragment or inet_sum(packet[header:]) == 0xFFFF
    if packet[6] == 58:
        pseudo = packet[8:40] + struct.pack("!II", len(packet) - 40, 58)
        return inet_sum(pseudo + packet[40:]) == 0xFFFF
    return True


def is_background(frame):
    """What a router says unasked: MLD, router solicitation, its own DAD, gratuitous ARP."""
    ether = Ether(frame)
    if ARP in ether:
        return ether[ARP].psrc == ether[ARP].pdst
    if IPv6 in ether:
        # MLD sits behind a hop-by-hop header, which no frame of these tests uses with ICMPv6.
        packet = l3(frame)
        if packet[6] == 0 and packet[40] == 58:
            return packet[40 + (packet[41] + 1) * 8] in (130, 131, 132, 143)
        return packet[6] == 58 and (packet[40] == 133 or (packet[40] == 135 and ether[IPv6].src == "::") or
                                    (packet[40] == 136 and ether[IPv6].dst == "ff02::1"))
    return False


def show(frame):
    return f"{Ether(bytes(frame)).summary()}\n{bytes(frame).hex()}"
