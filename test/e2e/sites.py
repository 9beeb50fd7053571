# SPDX-License-Identifier: BSD-3-Clause
"""Ports and hosts by number: port pN is 10.0.N.1/24 and fd00:N::1/64, its host 10.0.N.2 and fd00:N::2."""

import struct
import time

import pytest
from frames import inet_sum, l3_offset, udp4, udp6

CACHE_ON = {"idle": "adaptive", "cache": "on"}


def port_mac(number, site=0):
    return f"02:00:00:00:{site:02x}:{number + 1:02x}"


def host_mac(number, site=0):
    return f"02:aa:00:{site:02x}:{number:02x}:02"


def port(number, site=0, **keys):
    return {"mac": port_mac(number, site), "addresses": [f"10.0.{number}.1/24", f"fd00:{number}::1/64"], **keys}


def neighbors(numbers, site=0, name="p{}"):
    """The hosts of these ports, and a link-local gateway fe80::2 at each."""
    return [{"to": host, "dev": name.format(n), "lladdr": host_mac(n, site)}
            for n in numbers for host in (f"10.0.{n}.2", f"fd00:{n}::2", "fe80::2")]


def wide(count, **top):
    """Options of a bench with this many ports, every host known, the cache on."""
    options = {"standard": False, "ports": {f"p{n}": port(n) for n in range(count)},
               "neighbors": neighbors(range(count)), "workers": CACHE_ON}
    return {**options, **top}


def eth(number, site=0):
    """From the host of a port to the port."""
    return {"src": host_mac(number, site), "dst": port_mac(number, site)}


def from4(number, dst, site=0, **options):
    return bytes(udp4(src=options.pop("src", f"10.0.{number}.2"), dst=dst, eth=eth(number, site), **options))


def from6(number, dst, site=0, **options):
    return bytes(udp6(src=options.pop("src", f"fd00:{number}::2"), dst=dst, eth=eth(number, site), **options))


# What tests of both families are given.
MAKE = {4: from4, 6: from6}
FAMILIES = pytest.mark.parametrize("family", [4, 6], ids=["ipv4", "ipv6"])
# A network behind the hosts, a host in it, and the host of port pN as its gateway.
PREFIX = {4: "198.51.100.0/24", 6: "2001:db8:51::/48"}
TARGET = {4: "198.51.100.9", 6: "2001:db8:51::9"}
GATEWAY = {4: "10.0.{}.2", 6: "fd00:{}::2"}


# Many frames: patched bytes, since scapy takes a millisecond for each.

def with_ports(frame, source, destination):
    """A UDP frame with other ports, its checksum right."""
    packet = bytearray(frame)
    at = l3_offset(frame)
    version = packet[at] >> 4
    udp = at + (20 if version == 4 else 40)
    struct.pack_into("!HH", packet, udp, source, destination)
    length = struct.unpack_from("!H", packet, udp + 4)[0]
    addresses = bytes(packet[at + 12:at + 20] if version == 4 else packet[at + 8:at + 40])
    packet[udp + 6:udp + 8] = b"\0\0"
    total = inet_sum(addresses + struct.pack("!II", length, 17) + bytes(packet[udp:udp + length])) ^ 0xFFFF
    struct.pack_into("!H", packet, udp + 6, total or 0xFFFF)
    return bytes(packet)


def flows(frame, count, first=1):
    """The frame as `count` flows, by destination port."""
    return [with_ports(frame, 1000, (first + n) % 0x10000) for n in range(count)]


def is_udp(frame):
    at = l3_offset(frame)
    return frame[at + (9 if frame[at] >> 4 == 4 else 6)] == 17


def count_out(bench, frames, into="p0", wanted=None, match=None, timeout=10.0):
    """{port: frames that left by it} after all of `frames` went in; waits until `wanted` have left (all of them).
    match(frame) tells ours from others; UDP when left out."""
    match = match or is_udp
    wanted = len(frames) if wanted is None else wanted
    for wire in bench.wires.values():
        wire.drain()
    total = {name: 0 for name in bench.wires}

    def take():
        for name, wire in bench.wires.items():
            while (got := wire.receive(0)) is not None:
                at = l3_offset(got)
                total[name] += got[at - 2:at] in (b"\x08\x00", b"\x86\xdd") and match(got)

    for number, frame in enumerate(frames):
        bench.wires[into].send(frame)
        if number % 64 == 63:
            take()
            # A tap's queue holds 1,000 frames, and a worker may be without its core for a while.
            pause = time.monotonic() + 0.02
            while number - sum(total.values()) > 256 and time.monotonic() < pause:
                take()
    deadline = time.monotonic() + timeout
    while sum(total.values()) < wanted and time.monotonic() < deadline:
        take()
        time.sleep(0.002)
    time.sleep(0.05)
    take()
    return {name: seen for name, seen in total.items() if seen}
