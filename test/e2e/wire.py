# SPDX-License-Identifier: BSD-3-Clause
"""The cable of a net_tap port: raw frames in and out at the tap's kernel side."""

import select
import socket
import struct
import time

_ETH_P_ALL = 0x0003
_SOL_PACKET = 263
_PACKET_AUXDATA = 8
_PACKET_IGNORE_OUTGOING = 23
_SO_RCVBUFFORCE = 33
_VLAN_VALID = 1 << 4
_TPID_VALID = 1 << 6


class Wire:
    def __init__(self, namespace, interface):
        self.interface = interface
        self.socket = namespace.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 64 << 20)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        self.socket.bind((interface, _ETH_P_ALL))

    def send(self, frame):
        """Hands the port a frame, exactly these bytes."""
        deadline = time.monotonic() + 5
        while True:
            try:
                self.socket.send(bytes(frame))
                return
            except OSError as error:
                # EAGAIN, ENOBUFS: the tap's queue is full; ENETDOWN: told once after it was down.
                if error.errno not in (11, 105, 100) or time.monotonic() > deadline:
                    raise
                time.sleep(0.001)

    def receive(self, timeout):
        """The next frame that the port sent, or None after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            readable, _, _ = select.select([self.socket], [], [], max(0, left))
            if readable:
                try:
                    return self._take()
                except OSError as error:
                    if error.errno != 100:  # ENETDOWN, told once when the interface goes down
                        raise
            if left <= 0:
                return None

    def _take(self):
        data, ancillary, _, _ = self.socket.recvmsg(70000, 256)
        for level, kind, value in ancillary:
            if level == _SOL_PACKET and kind == _PACKET_AUXDATA:
                status, _, _, _, _, tci, tpid = struct.unpack_from("IIIHHHH", value)
                if status & _VLAN_VALID:
                    # The kernel takes the outer tag off before a socket sees the frame.
                    tpid = tpid if status & _TPID_VALID else 0x8100
                    data = data[:12] + struct.pack("!HH", tpid, tci) + data[12:]
        return data

    def drain(self):
        """Whatever has come so far."""
        frames = []
        while (frame := self.receive(0)) is not None:
            frames.append(frame)
        return frames

    def wait_for(self, wanted, timeout=3.0):
        """The first frame of which wanted(frame) is true; None after `timeout`. Drops others."""
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            frame = self.receive(left)
            if frame is not None and wanted(frame):
                return frame
        return None

    def collect(self, wanted, seconds):
        """Every frame within `seconds` of which wanted(frame) is true."""
        deadline = time.monotonic() + seconds
        frames = []
        while (left := deadline - time.monotonic()) > 0:
            frame = self.receive(left)
            if frame is not None and wanted(frame):
                frames.append(frame)
        return frames

    def close(self):
        self.socket.close()
