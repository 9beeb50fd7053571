#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hands frames of a capture to the kernel's IP layer as if a device had received them, as fast as one core can:

    ip netns exec NETNS kernel_feed.py DEVICE CAPTURE

A BPF program that copies one frame after the other out of a map runs in live mode (BPF_PROG_TEST_RUN, XDP_PASS), in batches
of 64 as a driver would; no driver, no copy from user space. Ends when it is told to."""

import ctypes
import mmap
import os
import pathlib
import socket
import struct
import sys

_SYS_BPF = 321  # x86-64
_MAP_CREATE, _PROG_LOAD, _TEST_RUN = 0, 5, 10
_ARRAY, _XDP = 2, 6
_MMAPABLE, _LIVE_FRAMES = 1 << 10, 2
_XDP_DROP, _XDP_PASS = 1, 2
_LOOK_UP = 1  # bpf_map_lookup_elem
_BATCH = 64
_REPEAT = 1 << 14

_libc = ctypes.CDLL(None, use_errno=True)


def bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes.ljust(144, b"\0"), 144)
    result = _libc.syscall(_SYS_BPF, command, buffer, 144)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf {command}: {os.strerror(ctypes.get_errno())}")
    return result


def array_map(value_bytes: int, entries: int) -> tuple:
    """Its descriptor and its memory."""
    fd = bpf(_MAP_CREATE, struct.pack("<IIIII", _ARRAY, 4, value_bytes, entries, _MMAPABLE))
    page = mmap.PAGESIZE
    return fd, mmap.mmap(fd, (value_bytes * entries + page - 1) // page * page)


def instruction(code: int, to: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, source << 4 | to, offset, value)


def map_address(to: int, fd: int, of_value: bool) -> bytes:
    """A map, or what its only entry holds."""
    return instruction(0x18, to, 2 if of_value else 1, 0, fd) + instruction(0)


def program(frames: int, count: int, frame_bytes: int, position: int) -> bytes:
    """Copies frame number `position` of the map `frames` into the packet, and goes on to the next one."""
    found, a, b, at, context, data, end, stack = 0, 1, 2, 3, 6, 7, 8, 10
    leave = b"".join([instruction(0xB7, found, value=_XDP_PASS), instruction(0x95),
                      instruction(0xB7, found, value=_XDP_DROP), instruction(0x95)])
    to_drop = 2  # back from the end of `leave`
    copy = b"".join(i for word in range(0, frame_bytes, 8)
                    for i in (instruction(0x79, a, found, word), instruction(0x7B, data, a, word)))
    rest = copy + leave
    find = b"".join([map_address(at, position, True),
                     instruction(0x61, b, at), instruction(0x63, stack, b, -4),  # this one
                     instruction(0x07, b, value=1), instruction(0xA5, b, offset=1, value=count), instruction(0xB7, b),
                     instruction(0x63, at, b),                                   # the next one
                     map_address(a, frames, False), instruction(0xBF, b, stack), instruction(0x07, b, value=-4),
                     instruction(0x85, value=_LOOK_UP),
                     instruction(0x15, found, offset=len(rest) // 8 - to_drop)])
    rest = find + rest
    begin = b"".join([instruction(0xBF, context, 1), instruction(0x61, data, context, 0), instruction(0x61, end, context, 4),
                      instruction(0xBF, a, data), instruction(0x07, a, value=frame_bytes),
                      instruction(0x2D, a, end, len(rest) // 8 - to_drop)])      # a packet too short
    return begin + rest


def load(code: bytes) -> int:
    text, licence, log = (ctypes.create_string_buffer(part) for part in (code, b"Dual BSD/GPL", b"\0" * 65536))
    try:
        return bpf(_PROG_LOAD, struct.pack("<IIQQIIQ", _XDP, len(code) // 8, ctypes.addressof(text), ctypes.addressof(licence),
                                           1, len(log), ctypes.addressof(log)))
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}\n{log.value.decode()[-2000:]}") from error


def frames_of(path: str) -> list:
    data = pathlib.Path(path).read_bytes()
    found, at = [], 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        found.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return found


def main(device: str, capture: str) -> None:
    frames = frames_of(capture)
    frame_bytes = (max(map(len, frames)) + 7) // 8 * 8
    map_fd, memory = array_map(frame_bytes, len(frames))
    for i, frame in enumerate(frames):
        memory[i * frame_bytes:i * frame_bytes + len(frame)] = frame
    position, _ = array_map(8, 1)
    prog = load(program(map_fd, len(frames), frame_bytes, position))
    first = ctypes.create_string_buffer(frames[0].ljust(frame_bytes, b"\0"), frame_bytes)
    context = ctypes.create_string_buffer(struct.pack("<IIIIII", 0, frame_bytes, 0, socket.if_nametoindex(device), 0, 0), 24)
    run = struct.pack("<IIIIQQIIIIQQIII", prog, 0, frame_bytes, 0, ctypes.addressof(first), 0, _REPEAT, 0, 24, 0,
                      ctypes.addressof(context), 0, _LIVE_FRAMES, 0, _BATCH)
    while True:
        try:
            bpf(_TEST_RUN, run)
        except InterruptedError:  # stopped and continued by the one that measures
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
