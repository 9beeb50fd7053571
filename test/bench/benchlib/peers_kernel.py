# SPDX-License-Identifier: BSD-3-Clause
"""The kernel as a router: a netns with two veths, fed by kernel_feed.py on the worker's core."""

import pathlib
import subprocess
import sys
import tempfile
import time

from . import cpu_clock, daemon_config
from .process import WORKER_LCORE, Program

WARM_PACKETS = 50_000  # it makes something for each destination that it has not seen yet
FEED = pathlib.Path(__file__).with_name("kernel_feed.py")


class Router:
    """What leaves by v1 is for a MAC that its other end does not have, which costs the least that an end can cost."""

    def __init__(self, name: str, family: str, prefixes: list):
        self.name = name
        self._ip("netns", "add", name, inside=False)
        try:
            self._set_up(family, prefixes)
        except BaseException:
            self.close()
            raise

    def _ip(self, *words: str, inside: bool = True, lines: str = None) -> None:
        netns = ["-n", self.name] if inside else []
        subprocess.run(["ip", *netns, *words], input=lines, text=True, check=True)

    def _set_up(self, family: str, prefixes: list) -> None:
        self._ip("link", "add", "v0", "address", "02:00:00:00:00:01", "type", "veth", "peer", "name", "v0p")
        self._ip("link", "add", "v1", "type", "veth", "peer", "name", "v1p")
        settings = ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", "net.ipv6.route.max_size=1000000"]
        settings += [f"net.ipv6.conf.{device}.accept_dad=0" for device in ("v0", "v1", "v0p", "v1p")]
        subprocess.run(["ip", "netns", "exec", self.name, "sysctl", "-qw", *settings], check=True)
        for device in ("v0p", "v1p", "v0", "v1"):
            self._ip("link", "set", device, "up")
        for device, addresses in zip(("v0", "v1"), daemon_config.ADDRESSES):
            for address in addresses.replace('"', "").split(", "):
                self._ip("addr", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
        gateway = daemon_config.gateways(family, 1)[0]
        self._ip("neigh", "add", gateway, "lladdr", daemon_config.HOP_MAC.format(2), "dev", "v1", "nud", "permanent")
        # A generated prefix may be one that the kernel has by itself.
        self._ip("-force", "-batch", "-", lines="".join(f"route replace {prefix} via {gateway}\n" for prefix in prefixes))

    def close(self) -> None:
        self._ip("netns", "del", self.name, inside=False)


class Kernel(Program):
    """Routes the packets of one capture; what the interrupts' thread does on the core is charged, too."""

    def __init__(self, router: Router, capture: pathlib.Path):
        super().__init__()
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.process = subprocess.Popen(["taskset", "-c", str(WORKER_LCORE), "ip", "netns", "exec", router.name, sys.executable,
                                         str(FEED), "v0", str(capture)], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 20
        while self._counter("v1") < WARM_PACKETS:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                self.log.seek(0)
                raise RuntimeError(f"the kernel forwards nothing:\n{self.log.read()}")
            time.sleep(0.05)

    def _polling_threads(self) -> list:
        return [*super()._polling_threads(), cpu_clock.thread_named(f"ksoftirqd/{WORKER_LCORE}")]

    def _counter(self, device: str) -> int:
        """Packets sent by it."""
        try:
            lines = pathlib.Path(f"/proc/{self.process.pid}/net/dev").read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return 0
        return next((int(line.split()[10]) for line in lines if line.strip().startswith(f"{device}:")), 0)

    def packets(self) -> int:
        return self._counter("v1")

    def check_forwarded(self) -> None:
        net = pathlib.Path(f"/proc/{self.process.pid}/net")
        names, values = [line.split() for line in (net / "snmp").read_text().splitlines() if line.startswith("Ip:")]
        counted = dict(zip(names, values)) | dict(line.split() for line in (net / "snmp6").read_text().splitlines())
        received = int(counted["InReceives"]) + int(counted["Ip6InReceives"])
        forwarded = int(counted["ForwDatagrams"]) + int(counted["Ip6OutForwDatagrams"])
        if forwarded < 0.99 * received:
            raise RuntimeError(f"the kernel received {received} packets and forwarded {forwarded}")
