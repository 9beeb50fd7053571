# SPDX-License-Identifier: BSD-3-Clause
"""Capture files of minimal UDP packets, written without scapy: thousands of frames in milliseconds."""

import ipaddress
import pathlib
import random
import struct

PORT_MAC = bytes.fromhex("020000000001")
HOST_MAC = bytes.fromhex("02aa00000002")
ROUTES = 10


def _checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def udp4(destination: str, source: str = "10.0.0.2", frame_bytes: int = 60) -> bytes:
    length = frame_bytes - 14
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, 17, 0,
                         ipaddress.IPv4Address(source).packed, ipaddress.IPv4Address(destination).packed)
    header = header[:10] + struct.pack("!H", _checksum(header)) + header[12:]
    udp = struct.pack("!HHHH", 1000, 2000, length - 20, 0)
    return PORT_MAC + HOST_MAC + b"\x08\x00" + header + udp + bytes(length - 28)


def udp6(destination: str, source: str = "fd00::2", frame_bytes: int = 62) -> bytes:
    payload = frame_bytes - 54
    header = struct.pack("!IHBB16s16s", 6 << 28, payload, 17, 64, ipaddress.IPv6Address(source).packed,
                         ipaddress.IPv6Address(destination).packed)
    # The checksum is not looked at in transit; one that is not zero keeps the packet legal.
    udp = struct.pack("!HHHH", 1000, 2000, payload, 0xFFFF)
    return PORT_MAC + HOST_MAC + b"\x86\xdd" + header + udp + bytes(payload - 8)


def destinations(family: str, count: int, seed: int = 1) -> list:
    """`count` different addresses spread over the ten routes."""
    rng = random.Random(seed)
    if family == "v4":
        base = int(ipaddress.IPv4Address("198.18.0.0"))
        hosts = [rng.sample(range(1, 4095), count // ROUTES + 1) for _ in range(ROUTES)]
        return [str(ipaddress.IPv4Address(base + (i % ROUTES << 12) + hosts[i % ROUTES][i // ROUTES])) for i in range(count)]
    base = int(ipaddress.IPv6Address("2001:db8::"))
    return [str(ipaddress.IPv6Address(base + (i % ROUTES << 80) + rng.getrandbits(64))) for i in range(count)]


def routes(family: str) -> list:
    """The ten prefixes that hold every destination."""
    if family == "v4":
        return [f"198.18.{i * 16}.0/20" for i in range(ROUTES)]
    return [f"2001:db8:{i:x}::/48" for i in range(ROUTES)]


def _write(path: pathlib.Path, frames) -> None:
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            out.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def write(path: pathlib.Path, family: str, count: int, repeat_to: int = 1024, vlan_id: int = 0) -> None:
    """At least `repeat_to` packets, so that the driver's ring of them does not stay in the first cache level."""
    make = udp4 if family == "v4" else udp6
    frames = [make(address) for address in destinations(family, count)]
    if vlan_id:
        frames = [tagged(frame, vlan_id) for frame in frames]
    total = max(count, repeat_to // count * count)
    _write(path, (frames[i % count] for i in range(total)))


def write_random(path: pathlib.Path, family: str, count: int, packets: int = 4096, seed: int = 1) -> None:
    """Destinations in random order, each from a host of its own: in turn, they would defeat any cache smaller than they
    are many, and need none that is larger."""
    rng = random.Random(seed)
    if family == "v4":
        frames = [udp4(address, f"10.0.0.{rng.randrange(2, 255)}") for address in destinations(family, count)]
    else:
        frames = [udp6(address, f"fd00::{rng.randrange(2, 65536):x}") for address in destinations(family, count)]
    _write(path, (rng.choice(frames) for _ in range(packets)))


def tagged(frame: bytes, vlan_id: int) -> bytes:
    """The same with an 802.1Q tag."""
    return frame[:12] + struct.pack("!HH", 0x8100, vlan_id) + frame[12:]


def each_alike(family: str, addresses: list, frame_bytes: int = 0, vlan_id: int = 0, packets: int = 4096,
               seed: int = 1) -> list:
    """Frames to every address equally often, in random order, each from a host of its own; as short as can be unless
    `frame_bytes` says how long."""
    rng = random.Random(seed)
    length = {"frame_bytes": frame_bytes} if frame_bytes else {}
    if family == "v4":
        frames = [udp4(address, f"10.0.0.{rng.randrange(2, 255)}", **length) for address in addresses]
    else:
        frames = [udp6(address, f"fd00::{rng.randrange(2, 65536):x}", **length) for address in addresses]
    if vlan_id:
        frames = [tagged(frame, vlan_id) for frame in frames]
    frames *= max(1, packets // len(frames))
    rng.shuffle(frames)
    return frames


def save(path: pathlib.Path, frames: list) -> None:
    _write(path, frames)
