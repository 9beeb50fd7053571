# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that do nothing but answer ARP and neighbor solicitations."""

import threading

from frames import ARP, Ether, ICMPv6ND_NS, IPv6, advertisement, arp
from wire import Wire


class Responder(threading.Thread):
    """Answers on a port's cable for `hosts` ({address: MAC}), which may change meanwhile."""

    def __init__(self, bench, port, hosts):
        super().__init__(daemon=True)
        self.wire = Wire(bench.router, bench.taps[port])
        self.hosts = dict(hosts)
        self.asked = []  # (target, True if the question came by broadcast or multicast)
        self.ending = threading.Event()
        self.start()

    def run(self):
        while not self.ending.is_set():
            frame = self.wire.receive(0.05)
            if frame is None or frame[12:14] not in (b"\x08\x06", b"\x86\xdd"):
                continue
            ether = Ether(frame)
            if ARP in ether and ether[ARP].op == 1:
                self._answer(ether, ether[ARP].pdst)
            elif ICMPv6ND_NS in ether:
                self._answer(ether, ether[ICMPv6ND_NS].tgt)

    def _answer(self, ether, target):
        group = int(ether.dst[:2], 16) & 1 == 1
        self.asked.append((target, group))
        mac = self.hosts.get(target)
        # A host hears what is sent to everybody or to it.
        if mac is None or (not group and ether.dst != mac):
            return
        if ARP in ether:
            self.wire.send(bytes(arp(2, target, mac, ether[ARP].psrc, ether.src, dst=ether.src)))
        else:
            self.wire.send(bytes(advertisement(target, mac, dst=ether[IPv6].src, eth_dst=ether.src, solicited=1)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join()
        self.wire.close()
