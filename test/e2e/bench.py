# SPDX-License-Identifier: BSD-3-Clause
"""sluice with its ports' cables in the tests' hands, or with the kernel's hosts at their ends."""

import collections
import copy
import ipaddress
import itertools
import os
import struct
import tempfile
import time

from daemon import CtlError, Daemon
from frames import (H0, H1, ICMP, IP, R0, R1, Ether, IPv6, checksums_ok, echo4, forwarded_l3, is_background, l3,
                    l3_offset, show, tags_of)
from netns import Namespace
from wire import Wire

_serial = itertools.count()
_MARKER = 0x5AFE

PORTS = {
    "p0": {"mac": R0, "addresses": ["10.0.0.1/24", "fd00::1/64"]},
    "p1": {"mac": R1, "addresses": ["10.0.1.1/24", "fd00:1::1/64"]},
}
ROUTES = [
    {"to": "192.0.2.0/24", "via": "10.0.1.2"},
    {"to": "2001:db8:2::/48", "via": "fd00:1::2"},
]
NEIGHBORS = [
    {"to": "10.0.0.2", "dev": "p0", "lladdr": H0},
    {"to": "fd00::2", "dev": "p0", "lladdr": H0},
    {"to": "10.0.1.2", "dev": "p1", "lladdr": H1},
    {"to": "fd00:1::2", "dev": "p1", "lladdr": H1},
]


DEVICES = {
    "tap": "net_tap{0},iface=t{0}",
    "veth": "net_pcap{0},rx_iface_in=v{0},tx_iface=v{0}",  # v0 is the other end of t0
}


def all_ports(config):
    """(key, netns, name, port) of every port; the key is NETNS/NAME where the netns is not the default."""
    for name, port in config["ports"].items():
        yield name, "default", name, port
    for netns, part in config.get("netns", {}).items():
        for name, port in part.get("ports", {}).items():
            yield f"{netns}/{name}", netns, name, port


def configuration(ports=None, routes=(), neighbors=(), standard=True, cable="tap", **top):
    """The bench of cases.md with additions; standard=False leaves only what is passed."""
    config = {
        "version": 1,
        "instance": f"e2e-{os.getpid()}-{next(_serial)}",
        "dpdk": {"lcores": [0, 1], "hugepages": False, "memory-mb": 256},
        # Everything is sent twice, and the second time shall be answered from the cache (checks.md 109).
        "workers": {"idle": "adaptive", "cache": "on"},
        # What is limited here is tested where it is limited; elsewhere it only hides answers.
        "icmp": {"error-rate": 100000, "error-burst": 50000},
        "ports": {},
        "routes": [*(ROUTES if standard else []), *routes],
        "neighbors": [*(NEIGHBORS if standard else []), *neighbors],
    }
    everything = {name: dict(port) for name, port in PORTS.items()} if standard else {}
    for name, port in (ports or {}).items():
        everything.setdefault(name, {}).update(port)
    config["ports"] = everything
    config.update(copy.deepcopy(top))
    for number, (_, _, _, port) in enumerate(all_ports(config)):
        port.setdefault("device", DEVICES[cable].format(number))
    folder = tempfile.mkdtemp(prefix="sluice-e2e-")
    config["control"] = {"socket": f"{folder}/ctl.sock"}
    return config, folder


class Outcome:
    """What became of some frames."""

    def __init__(self, frames, before, after, markers):
        self.frames = frames
        self.before = before
        self.after = after
        self.markers = markers
        self.drops = collections.Counter()
        for netdev, row in after.items():
            old = before.get(netdev, {"drops": {}})["drops"]
            for reason, count in row["drops"].items():
                if count != old.get(reason, 0):
                    self.drops[(netdev, reason)] += count - old.get(reason, 0)

    def reasons(self):
        total = collections.Counter()
        for (_, reason), count in self.drops.items():
            total[reason] += count
        return dict(total)

    def delta(self, netdev, counter):
        return self.after[netdev][counter] - self.before[netdev][counter]

    def __str__(self):
        lines = [f"{name}: {show(frame)}" for name, frames in self.frames.items() for frame in frames]
        return "\n".join([*lines, f"drops: {dict(self.drops)}"])


class Base:
    """A namespace for the daemon, the daemon, and the end: the books and a clean stop."""

    def __init__(self, ports=None, **options):
        config, folder = configuration(ports, **options)
        self.router = Namespace("router")
        self.daemon = Daemon(config, self.router, folder)
        self.ctl = self.daemon.ctl
        self.taps = {key: f"t{number}" for number, (key, *_) in enumerate(all_ports(config))}
        self.veth = options.get("cable") == "veth"
        if self.veth:
            for number in range(len(self.taps)):
                self._lay_cable(number)
        self.wires = {}
        self.level = None
        try:
            self.daemon.start()
            self.set_up()
        except BaseException:
            self.tear_down()
            raise

    def set_up(self):
        """What a kind of bench adds to the running daemon."""
        self.level = self.ctl.pools()

    def tear_down(self):
        self.daemon.clean_up()
        self.router.delete()

    def _lay_cable(self, number):
        ends = [f"t{number}", f"v{number}"]
        self.router.run("ip", "link", "add", ends[0], "mtu", 9000, "type", "veth", "peer", "name", ends[1], "mtu", 9000)
        for end in ends:
            self.router.run("ip", "link", "set", end, "up")

    def check_books(self):
        """received = forwarded + delivered + held + drops on every netdev; all mbufs are back."""
        deadline = time.monotonic() + 8
        while True:
            stats = self.ctl.json("stats", "show")
            wrong = [row for row in stats["netdevs"] if row["imbalance"] != 0]
            rows = [row for row in stats["netdevs"]
                    if row["rx_packets"] != (row["forwarded"] + row["delivered"] + row["held"] +
                                             sum(row["drops"].values())) % 2**64]
            pools = {row["name"]: row["in_use"] for row in stats["pools"]}
            if not wrong and not rows and (self.level is None or pools == self.level):
                return
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"the books do not balance: {wrong or rows}; mbufs in use at the start {self.level}, now {pools}")
            time.sleep(0.2)

    def close(self):
        try:
            assert self.daemon.alive(), f"sluice ended with {self.daemon.process.poll()}:\n{self.daemon.log_text()}"
            self.check_books()
            assert self.daemon.stop() == 0, self.daemon.log_text()
            assert not self.daemon.socket.exists(), "the control socket is left behind"
            assert self.veth or not set(self.taps.values()) & self.router.links(), "a tap is left behind"
        finally:
            self.tear_down()


class WireBench(Base):
    """Every port's cable ends in a Wire: the tests are the hosts."""

    def set_up(self):
        # Ports that cannot answer now.
        self.quiet = {key for key, _, _, port in all_ports(self.daemon.config) if not port.get("up", True)}
        for name, tap in self.taps.items():
            # The kernel's queue towards the daemon: what a test sends in one go must fit.
            self.router.run("ip", "link", "set", tap, "txqueuelen", 100000)
            self.wires[name] = Wire(self.router, tap)
        self.mac_of = {(link["name"] if link["netns"] == "default" else f"{link['netns']}/{link['name']}"): link["mac"]
                       for link in self.ctl.json("link", "show", "all")}
        self.marker_of = self._markers()
        self.settle()
        self.level = self.ctl.pools()

    def _markers(self):
        """Per port an echo request that sluice answers there: behind it, what came before is done."""
        config = self.daemon.config
        markers = {}
        for key, netns, name, port in all_ports(config):
            neighbors = (config if netns == "default" else config["netns"][netns]).get("neighbors", [])
            for address in map(ipaddress.ip_interface, port.get("addresses", [])):
                for neighbor in neighbors:
                    if (address.version == 4 and neighbor["dev"] == name and
                            ipaddress.ip_address(neighbor["to"]) in address.network):
                        markers.setdefault(key, (str(address.ip), neighbor["to"], neighbor["lladdr"], self.mac_of[key]))
        return markers

    def settle(self):
        """Waits until every port has answered; returns what the ports sent meanwhile."""
        frames = {name: [] for name in self.wires}
        sequence = next(_serial) & 0xFFFF
        waiting = set()
        for name in self.wires:
            if name in self.marker_of and name not in self.quiet:
                own, host, mac, port_mac = self.marker_of[name]
                self.wires[name].send(echo4(src=host, dst=own, eth={"src": mac, "dst": port_mac},
                                            ident=_MARKER, seq=sequence, payload=b"marker"))
                waiting.add(name)
        deadline = time.monotonic() + 5
        for name in sorted(waiting):
            while True:
                frame = self.wires[name].receive(deadline - time.monotonic())
                if frame is None:
                    raise AssertionError(f"{name} does not answer; alive: {self.daemon.alive()}\n"
                                         f"{self.daemon.log_text()[-3000:]}")
                if self._is_marker(frame, sequence):
                    break
                frames[name].append(frame)
        # Another port's frames of the same round may be on their way still, and the control thread's.
        time.sleep(0.02 if len(waiting) == len(self.wires) else 0.06)
        for name, wire in self.wires.items():
            frames[name] += wire.drain()
        return {name: [f for f in some if not is_background(f) and not self._is_marker(f)]
                for name, some in frames.items()}

    @staticmethod
    def _is_marker(frame, sequence=None):
        ether = Ether(frame)
        return ICMP in ether and ether[ICMP].type == 0 and ether[ICMP].id == _MARKER and (
            sequence is None or ether[ICMP].seq == sequence)

    def probe(self, frames, into="p0", wait=None, drops=0):
        """Sends frames and says what became of them. Waits (seconds at most) for `wait` frames out
        and `drops` drops, then until everything sent is done."""
        frames = frames if isinstance(frames, (list, tuple)) else [frames]
        for wire in self.wires.values():
            wire.drain()
        before = self.ctl.counters()
        for frame in frames:
            self.wires[into].send(frame)
        out = self.settle()
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            after = self.ctl.counters()
            outcome = Outcome(out, before, after, 1)
            if sum(map(len, out.values())) >= (wait or 0) and sum(outcome.drops.values()) >= drops:
                break
            time.sleep(0.02)
            for name, wire in self.wires.items():
                out[name] += [f for f in wire.drain() if not is_background(f)]
        return outcome

    # What follows sends everything twice, cold and warm: the second answer must be the first's.

    def forwards(self, frame, into="p0", out="p1", dst=None, src=None, tags=(), times=2, l3_want=None):
        """The frame leaves `out`, once, TTL less one, with these MACs; nothing else happens."""
        frame = bytes(frame)
        dst = dst or {"p0": H0, "p1": H1}.get(out)
        src = src or self.mac_of[out]
        for _ in range(times):
            outcome = self.probe(frame, into, wait=1)
            assert not outcome.drops, f"dropped:\n{outcome}\nsent: {show(frame)}"
            got = outcome.frames[out]
            assert len(got) == 1 and sum(map(len, outcome.frames.values())) == 1, \
                f"wanted one frame from {out}:\n{outcome}\nsent: {show(frame)}"
            ether = Ether(got[0])
            assert (ether.dst, ether.src) == (dst, src), str(outcome)
            assert tags_of(got[0]) == list(tags), str(outcome)
            want = l3_want or forwarded_l3(frame)
            assert l3(got[0]) == want, f"{outcome}\nwanted L3: {want.hex()}"
        return got[0]

    def drops(self, frames, reason, into="p0", netdev=None, times=2):
        """Every frame is dropped under `reason` (a name, or several of which one), and nothing is said."""
        frames = frames if isinstance(frames, (list, tuple)) else [frames]
        reasons = {reason} if isinstance(reason, str) else set(reason)
        for _ in range(times):
            outcome = self.probe(frames, into, drops=len(frames))
            assert not any(outcome.frames.values()), f"something was sent:\n{outcome}\nsent: {show(frames[0])}"
            assert sum(outcome.drops.values()) == len(frames) and set(outcome.reasons()) <= reasons, \
                f"wanted {len(frames)} {reason}: {dict(outcome.drops)}\nsent: {show(frames[0])}"
            if netdev:
                assert {name for name, _ in outcome.drops} == {netdev}, str(outcome)

    def silent(self, frames, into="p0", times=2):
        """Nothing is sent and every frame is in the drop counters, whatever the reason."""
        frames = frames if isinstance(frames, (list, tuple)) else [frames]
        for _ in range(times):
            outcome = self.probe(frames, into, drops=len(frames))
            assert not any(outcome.frames.values()), f"something was sent:\n{outcome}\nsent: {show(frames[0])}"
            assert sum(outcome.drops.values()) == len(frames), f"{outcome}\nsent: {show(frames[0])}"

    def error(self, frame, kind, code, source=None, into="p0", reason=None, times=2, dst=None):
        """The frame provokes this ICMP error, back where it came from. Returns the error's L3."""
        frame = bytes(frame)
        version = frame[l3_offset(frame)] >> 4
        for _ in range(times):
            outcome = self.probe(frame, into, wait=1, drops=1)
            got = outcome.frames[into]
            assert len(got) == 1 and sum(map(len, outcome.frames.values())) == 1, \
                f"wanted one ICMP error {kind}/{code}:\n{outcome}\nsent: {show(frame)}"
            packet = l3(got[0])
            sent = l3(frame)
            assert Ether(got[0]).dst == (dst or {"p0": H0, "p1": H1}.get(into, Ether(frame).src)), str(outcome)
            assert checksums_ok(packet), f"bad checksum:\n{outcome}"
            at, here, there = (20, IP, IP) if version == 4 else (40, IPv6, IPv6)
            assert (packet[9] if version == 4 else packet[6]) == (1 if version == 4 else 58), str(outcome)
            assert (packet[at], packet[at + 1]) == (kind, code), \
                f"wanted {kind}/{code}, got {packet[at]}/{packet[at + 1]}:\n{outcome}"
            ether = Ether(got[0])
            assert ether[here].dst == Ether(frame)[there].src, str(outcome)
            if source:
                assert ether[here].src == source, f"wanted from {source}:\n{outcome}"
            quote = packet[at + 8:]
            whole = (576 if version == 4 else 1280) - at - 8
            assert quote == sent[:len(quote)], f"the quote is not the packet:\n{outcome}\nsent: {show(frame)}"
            assert len(quote) == min(len(sent), whole), f"{len(quote)} bytes quoted:\n{outcome}"
            if reason:
                assert outcome.reasons() == {reason: 1}, str(outcome)
        return packet

    def own_addresses(self):
        return {row["address"].split("/")[0] for row in self.ctl.json("addr", "show")}

    def tear_down(self):
        for wire in self.wires.values():
            wire.close()
        super().tear_down()


class HostBench(Base):
    """The kernel's sides of the taps are the NICs of H0 and H1 (and they are real hosts)."""

    def __init__(self, **options):
        options.setdefault("neighbors", [])
        self.hosts = []
        super().__init__(standard=False, ports=PORTS, routes=ROUTES, **options)

    def set_up(self):
        super().set_up()
        for number, (mac, four, six) in enumerate(
                [(H0, "10.0.0", "fd00:"), (H1, "10.0.1", "fd00:1:")]):
            host = Namespace(f"h{number}")
            tap = self.taps[f"p{number}"]
            self.hosts.append(host)
            self.router.run("ip", "link", "set", tap, "netns", host.name)
            host.run("ip", "link", "set", tap, "address", mac)
            host.sysctl(f"net.ipv6.conf.{tap}.disable_ipv6", 0)
            host.sysctl("net.ipv6.conf.lo.disable_ipv6", 0)
            for name, value in (("accept_ra", 0), ("accept_dad", 0), ("router_solicitations", 0)):
                host.sysctl(f"net.ipv6.conf.{tap}.{name}", value)
            host.run("ip", "link", "set", tap, "up")
            host.run("ip", "addr", "add", f"{four}.2/24", "dev", tap)
            host.run("ip", "addr", "add", f"{six}:2/64", "dev", tap, "nodad")
            host.run("ip", "route", "add", "default", "via", f"{four}.1")
            host.run("ip", "-6", "route", "add", "default", "via", f"{six}:1")
        self.h0, self.h1 = self.hosts
        self.h1.run("ip", "addr", "add", "192.0.2.9/32", "dev", "lo")
        self.h1.run("ip", "addr", "add", "2001:db8:2::9/128", "dev", "lo", "nodad")

    def tear_down(self):
        super().tear_down()
        for host in self.hosts:
            host.delete()
